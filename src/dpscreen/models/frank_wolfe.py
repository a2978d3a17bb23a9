"""Frank-Wolfe over the L1 ball: private, with the paper's two screening methods at both
calibrations, and as the reference that is not private.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen.models import base, intake
from dpscreen.models import parameters as check
from dpscreen.models.base import EXACT, PrivateEstimator, Promise
from dpscreen.models.delivery import MODEL, START
from dpscreen.models.intake import in_memory
from dpscreen.models.linear import LinearModel
from dpscreen.privacy import Accountant, Noise, PrivacyStatement, PublishedCalibrationWarning
from dpscreen.privacy.budget import Unit
from dpscreen.rows.design import Design, choose_design, gram_pays
from dpscreen.rows.source import PublicUnits, RowSource
from dpscreen.solvers.base import Solution
from dpscreen.solvers.frank_wolfe import frank_wolfe, steepest_vertex, wolfe_gap, zero_start
from dpscreen.solvers.screening import (
    Elimination,
    FrankWolfeSettings,
    Screening,
    optimise,
    proven_steps,
    published_scores,
    published_steps,
    safe_scores,
)

Built = tuple[Accountant, Any, Any, dict[str, Any]]
"""What books, the rows, the steps over them, and what the statement is told."""


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateFrankWolfe(PrivateEstimator[FrankWolfeSettings]):
    """What the three estimators share: both calibrations. They differ in how they screen."""

    radius: float | None = None
    n_iter: int | None = None
    epsilon: float | None = None
    delta: float | None = None
    feature_bounds: Any = None
    target_bounds: Any = None
    categories: Any = None
    clip: float | None = None
    fit_intercept: bool = True
    calibration: str = "proven"
    start: str | None = None
    n_rows: int | None = None
    rows_per_unit: int | None = None
    random_state: Any = None

    errata: ClassVar[tuple[str, ...]]
    """The errata under which the published calibration fails."""

    def _settings(self, unit: Unit) -> FrankWolfeSettings:
        calibration = check.choice("calibration", self.calibration, ("proven", "published"))
        published = calibration == "published"
        if published and unit.rows_per_unit > 1:
            raise ValueError(
                "rows_per_unit: the published calibration makes no promise, for units neither."
            )
        check.optional(check.declared_rows, "n_rows", self.n_rows)
        start = check.choice("start", self.start, (None, "zero", "random"))
        return FrankWolfeSettings(
            radius=check.size("radius", self.radius),
            n_iter=check.steps("n_iter", self.n_iter),
            intercept=check.flag("fit_intercept", self.fit_intercept),
            published=published,
            start=start or ("random" if published else "zero"),
            clip=self._checked_clip(published),
        )

    def _checked_clip(self, published: bool) -> float | None:
        if self.clip is None:
            return None
        if published:
            raise ValueError("clip belongs to the proven calibration; the published one has none.")
        return check.size("clip", self.clip)

    def _warn(self, settings: FrankWolfeSettings, ledger: Any) -> None:
        if not settings.published:
            return
        if ledger is not None:
            raise ValueError("ledger: the published calibration has no true cost to book.")
        warnings.warn(
            f"calibration='published' uses the paper's constants, with which the stated epsilon "
            f"does not hold (errata {', '.join(self.errata)}).",
            PublishedCalibrationWarning,
            stacklevel=3,
        )

    def _prepare(
        self, settings: FrankWolfeSettings, promise: Promise, noise: Noise, rows: RowSource
    ) -> Callable[[], PrivacyStatement]:
        features, target = self._public_bounds()
        units = PublicUnits(rows.usable_bounds(features), target, constant=settings.intercept)
        build = self._published if settings.published else self._proven
        accountant, design, steps, told = build(settings, promise, noise, rows, units)

        def run() -> None:
            weights = optimise(settings, design, steps, noise)
            self._keep(MODEL, units, Solution(weights, settings.n_iter, None, 0.0))

        def spend() -> PrivacyStatement:
            self._keep(START, units, Solution(np.zeros(units.n_candidates), 0, None, 0.0))
            self._deliver(run)
            return PrivacyStatement.of(promise.budget, accountant, **told)

        return spend

    def _proven(
        self,
        settings: FrankWolfeSettings,
        promise: Promise,
        noise: Noise,
        rows: RowSource,
        units: PublicUnits,
    ) -> Built:
        design = rows.lattice(units)
        accountant = Accountant(noise, limit=promise.limit, unit=promise.unit)
        steps = proven_steps(
            settings, accountant, design, promise.row_limit, target_bound=units.target_bound
        )
        public = (*self._public_facts(), *rows.disclosed)
        return accountant, design, steps, {"public": public, "arithmetic": EXACT}

    def _published(
        self,
        settings: FrankWolfeSettings,
        promise: Promise,
        noise: Noise,
        rows: RowSource,
        units: PublicUnits,
    ) -> Built:
        X, y = in_memory(rows)
        gram = gram_pays(len(X), units.n_candidates, n_iter=settings.n_iter)
        design = units.float_design(X, y, gram=gram)
        accountant = Accountant(noise, limit=None, unit=promise.unit)
        steps = published_steps(settings, accountant, design, promise.budget)
        counted = f"the number of rows, {len(X)}, in every noise scale"
        told = {
            "public": (*self._public_facts(), counted),
            "arithmetic": "float64 sums and float64 noise",
            "errata": self.errata,
            "rows_disclosed": True,
        }
        return accountant, design, steps, told

    @property
    def _predicts_within(self) -> Array:
        return self._public_bounds()[1]

    @property
    def _takes_sparse(self) -> bool:
        """Whether sparse rows are fitted: the published calibration sums floats, of dense rows."""
        return self.calibration != "published"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        return tags


@dataclass(kw_only=True, repr=False, eq=False)
class DPFrankWolfe(PrivateFrankWolfe):
    """Private Frank-Wolfe over the L1 ball: DP-FW.

    Each step moves towards one vertex ±radius·e_j, chosen by a noisy maximum of the gradient. With
    `calibration="proven"` the residuals are clipped, the noise is Gumbel and the budget is composed
    in zCDP; the stated (epsilon, delta) then holds for adding or removing one row.

    Parameters
    ----------
    radius : float
        L1 radius, in the target's units: features are mapped onto [−1, 1] by their bounds, so a
        prediction differs from the middle of the target's bounds by at most the radius.
    n_iter : int
        Number of steps. More steps fit better and are noisier; fixed before the data is read.
    epsilon, delta : float
        The budget of the fit, all of which is spent. Choose delta far below 1/n.
    feature_bounds : pair, list of pairs, or mapping from column name to pair
        Public bounds (low, high), the same for all features or one pair each. They state what
        values are possible; never take them from the data.
    target_bounds : pair
        Public bounds of the target.
    categories : mapping from column name to list of levels, default=None
        The levels that may occur in columns of a data frame, the reference first, as in
        :class:`PrivateLasso`.
    clip : float, default=None
        Bound on a row's residual, in the target's units (proven calibration only). Smaller means
        less noise and a more robust loss. None: radius plus half the width of `target_bounds`,
        which no residual exceeds.
    fit_intercept : bool, default=True
        Add a constant candidate, inside the same ball and the same budget. Without it, predictions
        still centre on the middle of the bounds.
    calibration : {"proven", "published"}, default="proven"
        "published" uses the constants of the paper to the letter, and warns: its stated epsilon
        does not hold.
    start : {None, "zero", "random"}, default=None
        Starting point. None: zero when proven, random when published, as in the paper.
    n_rows : int, default=None
        A public number of rows, with which delta is compared. None: delta is not compared, as the
        true number is private.
    rows_per_unit : int, default=None
        The most rows that one unit, a person for example, has. The promise is then for adding or
        removing a unit, and all noise is so many times as large (proven calibration only). None:
        what the rows say, if they were read by a schema that names a unit; else 1, and the promise
        is for a row.
    random_state : None, int, str or numpy generator, default=None
        None draws noise from a cryptographic stream. Anything else is reproducible, not private,
        and warned about.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_features,), float
        The released model, in the user's units.
    n_iter_ : int
        Steps taken: always `n_iter`, because stopping early would look at the data.
    fallback_ : str or None
        As in :class:`PrivateLasso`.
    privacy_ : PrivacyStatement
        What is promised, and what it rests on. Print it.
    n_features_in_, feature_names_in_, feature_names_out_, columns_
        As in :class:`PrivateLasso`.

    Notes
    -----
    Predictions are clipped to `target_bounds`, at either calibration. The replication of the paper
    looks at coefficients, so nothing is clipped there.

    Tuning a parameter by fitting several times, as GridSearchCV does, spends the budget each time,
    and choosing by a score computed on private rows is not covered at all.

    Examples
    --------
    >>> import numpy as np
    >>> from dpscreen import DPFrankWolfe
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20000, 10))
    >>> y = 2 * X[:, 0] - X[:, 3] + rng.normal(0, 0.1, size=20000)
    >>> model = DPFrankWolfe(radius=3, n_iter=30, epsilon=1, delta=1e-6, clip=1,
    ...                      feature_bounds=(-1, 1), target_bounds=(-4, 4))
    >>> model.fit(X, y).privacy_.holds
    True
    """

    errata = ("E1", "E4")


@dataclass(kw_only=True, repr=False, eq=False)
class ScreeningFrankWolfe(PrivateFrankWolfe):
    """Private Frank-Wolfe with a private screening step; the budget is split between the two."""

    screening_share: float = 0.02
    screening_delta_share: float = 0.25

    def _settings(self, unit: Unit) -> FrankWolfeSettings:
        part = Screening(
            check.share("screening_share", self.screening_share),
            check.share("screening_delta_share", self.screening_delta_share),
        )
        return replace(super()._settings(unit), screening=part)


class RNMScreen(ScreeningFrankWolfe):
    """DP-FW that after each step sets at most one coefficient to zero: RNM-Screen (Algorithm 2).

    With `calibration="proven"` the screened feature is selected among all features and "screen
    nothing", by the relaxed safe rule. At realistic budgets the noise is far larger than the
    differences between scores, so the choice is close to random and little is gained: that is the
    honest price of this rule. A noisy choice is also no longer a *safe* one.

    Set `clip`: without it the noise of every step covers the largest residual that the bounds
    allow, and the steps themselves become random.

    Parameters that are not listed here, and all attributes, are as in :class:`DPFrankWolfe`.

    Parameters
    ----------
    clip : float, default=None
        Bound on a row's residual where a step is chosen, as in :class:`DPFrankWolfe`. The rule
        that screens sees residuals as they are (docs/privacy.md, Lemma 35).
    screening_share : float, default=0.02
        Part of the budget for screening: of ε when published (the paper's 0.1 of 5), of ρ when
        proven.
    screening_delta_share : float, default=0.25
        Part of δ for screening when published; zCDP has no δ to split.
    """

    errata = ("E1", "E2", "E4", "E5")


@dataclass(kw_only=True, repr=False, eq=False)
class ADPScreen(ScreeningFrankWolfe):
    """DP-FW that at chosen steps sets every coefficient with a negative noisy score to zero.

    ADP-Screen (Algorithm 1): Gaussian noise on all scores at once. It screens far too much, which
    is why the paper turned to :class:`RNMScreen`.

    Parameters that are not listed here, and all attributes, are as in :class:`DPFrankWolfe`.

    Parameters
    ----------
    screen_at : {"all", "last"}, int or list of int, default="all"
        After which steps to screen: every one, the last one, every k-th, or the listed ones
        (counted from 1).
    clip, screening_share, screening_delta_share : float
        As in :class:`RNMScreen`.
    """

    screen_at: str | int | Iterable[int] = "all"
    errata = ("E1", "E2", "E4")

    def _settings(self, unit: Unit) -> FrankWolfeSettings:
        settings = super()._settings(unit)
        assert settings.screening is not None
        at = check.iterations("screen_at", self.screen_at, settings.n_iter)
        return replace(settings, screening=replace(settings.screening, at=at))


# --- not private ----------------------------------------------------------------------------------

_RULES = {"published": published_scores, "safe": safe_scores}


@dataclass(kw_only=True, repr=False, eq=False)
class FrankWolfeLasso(LinearModel):
    """LASSO in its constrained form, min ‖y − Xw − b‖² subject to ‖w‖₁ ≤ radius. NOT private.

    The reference that private methods are measured against. It uses the data as it is given.

    Parameters
    ----------
    radius : float
        The L1 radius.
    n_iter : int, default=1000
        Number of Frank-Wolfe steps.
    screening : {None, "published", "safe"}, default=None
        Screening after every step; what is screened is left out for good. "published" is Eq. 1 of
        the paper as printed, which for radius > 1 can screen features that the optimum needs
        (erratum E3). "safe" is the rule with the radius put right: it never does.
    fit_intercept : bool, default=True
        Whether to fit an intercept, outside the ball, by centring.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_features,), float
        The model.
    n_iter_ : int
        Steps taken.
    dual_gap_ : float
        The Wolfe gap of ‖y − Xw − b‖²/(2n): the model's loss is at most this above the optimum.
    screened_ : ndarray of bool of shape (n_features,)
        The features that the rule left out.
    """

    radius: float | None = None
    n_iter: int = 1000
    screening: str | None = None
    fit_intercept: bool = True

    def fit(self, X: Any, y: Any) -> FrankWolfeLasso:
        """Fit the model. Nothing about it is private."""
        with base.refit(self):
            radius = check.positive("radius", self.radius)
            n_iter = check.whole("n_iter", self.n_iter)
            check.choice("screening", self.screening, (None, *_RULES))
            centre = check.flag("fit_intercept", self.fit_intercept)
            X, y = intake.rows_and_target(self, X, y)
            means = (X.mean(axis=0), y.mean()) if centre else (np.zeros(X.shape[1]), 0.0)
            design = choose_design(X - means[0], y - means[1], n_iter=n_iter)
            weights, self.screened_ = self._optimise(design, radius, n_iter)
            self._describe(design, weights, means, radius)
        return self

    def _optimise(self, design: Design, radius: float, n_iter: int) -> tuple[Array, Any]:
        told: Any = {"radius": radius, "n_iter": n_iter}
        start = zero_start(design.n_features)
        if self.screening is None:
            weights = frank_wolfe(design, start, **told, choose=steepest_vertex)
            return weights, np.zeros(design.n_features, dtype=bool)
        rule = Elimination(design, _RULES[self.screening], radius=radius)
        weights = frank_wolfe(design, start, **told, choose=rule.choose, screen=rule.screen)
        return weights, ~rule.active

    def _describe(
        self, design: Design, weights: Array, means: tuple[Array, float], radius: float
    ) -> None:
        gradient = design.at(weights).gradient()
        gap = wolfe_gap(float(weights @ gradient), gradient, radius=radius)
        self.dual_gap_ = gap / design.n_rows
        self.n_iter_ = self.n_iter
        self.coef_ = weights
        self.intercept_ = float(means[1] - means[0] @ weights)
