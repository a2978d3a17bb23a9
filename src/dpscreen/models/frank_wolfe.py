"""Frank-Wolfe over the L1 ball: private, with the paper's two screening methods at both
calibrations, and as the reference that is not private.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen._core.messages import message
from dpscreen.models import base, intake
from dpscreen.models.base import EXACT, Charges, PrivateEstimator
from dpscreen.models.delivery import MODEL
from dpscreen.models.linear import LinearModel
from dpscreen.models.parameters import SIZE, Rule, checked, checked_parameters
from dpscreen.privacy import (
    Accountant,
    Budget,
    Noise,
    PrivacyStatement,
    PublishedCalibrationWarning,
)
from dpscreen.privacy.budget import Unit
from dpscreen.rows.design import choose_design, gram_pays
from dpscreen.rows.source import ArrayRows, PublicUnits, RowSource
from dpscreen.solvers import rules
from dpscreen.solvers.base import Solution, Spending
from dpscreen.solvers.frank_wolfe import frank_wolfe, steepest_vertex, wolfe_gap, zero_start
from dpscreen.solvers.screening import (
    Elimination,
    FrankWolfeSettings,
    Screening,
    Trail,
    optimise,
    proven_steps,
    published_scores,
    published_steps,
    safe_scores,
)

PUBLISHED_STEPS = 1000
"""T of the paper's Table 1."""

MOST_BY_RULE = 200
"""More steps than this follow from the rule only where the noise of each is small."""

CLIPPED = 0.2
"""The clip of the rules, in half-widths of the target's bounds (docs/peers.md)."""


@dataclass(frozen=True)
class FrankWolfeStart:
    """What spends the budget and returns a trail, its account, and what a statement adds."""

    charges: Charges
    units: PublicUnits
    run: Callable[[], Trail]
    accountant: Accountant
    grounds: dict[str, Any]


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateFrankWolfe(PrivateEstimator[FrankWolfeSettings]):
    """What the three estimators share: both calibrations. They differ in how they screen."""

    radius: float | None = None
    n_iter: int | None = None
    clip: float | None = None
    fit_intercept: bool | None = None
    calibration: str = "proven"
    start: str | None = None
    rows_per_unit: int | None = None  # type: ignore[misc]

    _rules: ClassVar[Mapping[str, Rule]] = {"clip": replace(SIZE, words=(math.inf,))}

    errata: ClassVar[tuple[str, ...]]
    """The errata under which the published calibration fails."""

    @property
    def _published(self) -> bool:
        return self.calibration == "published"

    @property
    def _fits_intercept(self) -> bool:
        """Whether there is an intercept; the paper has none."""
        return not self._published if self.fit_intercept is None else bool(self.fit_intercept)

    def _settings(self, parameters: dict[str, Any], unit: Unit) -> FrankWolfeSettings:
        if self._published and unit.rows_per_unit > 1:
            raise ValueError(message("published.units"))
        if self._published and self.clip is not None:
            raise ValueError(message("published.clip"))
        return FrankWolfeSettings(
            radius=parameters["radius"],
            n_iter=parameters["n_iter"] or (PUBLISHED_STEPS if self._published else None),
            intercept=self._fits_intercept,
            published=self._published,
            start=self.start or ("random" if self._published else "zero"),
            clip=parameters["clip"],
        )

    def _prepare(
        self, settings: FrankWolfeSettings, charges: Charges, noise: Noise, rows: RowSource
    ) -> FrankWolfeStart:
        if settings.published:
            if charges.ledger is not None:
                raise ValueError(message("published.ledger"))
            told = message("published.weakness", errata=", ".join(self.errata))
            warnings.warn(told, PublishedCalibrationWarning, stacklevel=3)
        features, target = self._public_bounds()
        units = PublicUnits(rows.usable_bounds(features), target, constant=settings.intercept)
        half = units.target_bound
        settings = replace(
            settings, radius=settings.radius or half, clip=settings.clip or CLIPPED * half
        )
        build = self._published_run if settings.published else self._proven_run
        self.screened_ = np.zeros((0, 2), dtype=np.int64)
        return build(settings, charges, noise, rows, units)

    def _spend(self, start: FrankWolfeStart) -> None:
        trail = start.run()
        solution = Solution(trail.weights, trail.n_iter, trail.path, 0.0)
        self._keep(MODEL, start.units, solution)
        self.screened_ = trail.screened

    def _statement(self, start: FrankWolfeStart, budget: Budget) -> PrivacyStatement:
        return PrivacyStatement.of(budget, start.accountant, **start.grounds)

    def _proven_run(
        self,
        settings: FrankWolfeSettings,
        charges: Charges,
        noise: Noise,
        rows: RowSource,
        units: PublicUnits,
    ) -> FrankWolfeStart:
        design = rows.lattice(units)
        spending = Spending.of(
            charges.budget, charges.unit, noise, n_rows=self.n_rows, n_features=rows.n_features
        )

        def steps(spending: Spending, n_iter: int) -> Any:
            fixed, bound = replace(settings, n_iter=n_iter), units.target_bound
            cost, accountant = spending.remaining, spending.accountant
            return fixed, proven_steps(fixed, accountant, design, cost, target_bound=bound)

        # Noise that would overflow is refused here, before anything is booked.
        ready = steps(spending, settings.n_iter or MOST_BY_RULE)

        def run() -> Trail:
            found, (fixed, chosen) = spending, ready
            if settings.n_iter is None:
                found = spending if self.n_rows else spending.counted(rows.n_rows)
                self.n_rows_ = found.regime.n_rows
                fixed, chosen = steps(found, rules.n_steps(found.regime))
            return optimise(fixed, design, chosen, noise)

        declared = () if self.n_rows is None else (f"n_rows, {self.n_rows}, on which T rests",)
        public = (*self._public_facts(), *declared, *rows.disclosed)
        grounds = {"public": public, "arithmetic": EXACT}
        return FrankWolfeStart(charges, units, run, spending.accountant, grounds)

    def _published_run(
        self,
        settings: FrankWolfeSettings,
        charges: Charges,
        noise: Noise,
        rows: RowSource,
        units: PublicUnits,
    ) -> FrankWolfeStart:
        if not isinstance(rows, ArrayRows):
            raise ValueError(message("published.rows"))
        X, y = rows.X, rows.y
        gram = gram_pays(len(X), units.n_candidates, n_iter=settings.steps)
        design = units.float_design(X, y, gram=gram)
        accountant = Accountant(noise, limit=None, unit=charges.unit)
        steps = published_steps(settings, accountant, design, charges.budget)
        grounds = {
            "public": (
                *self._public_facts(),
                f"the number of rows, {len(X)}, in every noise scale",
            ),
            "arithmetic": "float64 sums and float64 noise",
            "errata": self.errata,
            "rows_disclosed": True,
        }
        run = partial(optimise, settings, design, steps, noise)
        return FrankWolfeStart(charges, units, run, accountant, grounds)

    def _state(
        self, _units: PublicUnits, solution: Solution, coef: Array, _intercept: float
    ) -> dict[str, Any]:
        density = float(np.mean(coef != 0))
        return {"path_": solution.path, "density_": density, "solver_": "frank-wolfe"}

    @property
    def _predicts_within(self) -> Array:
        return self._public_bounds()[1]

    @property
    def _takes_sparse(self) -> bool:
        """Whether sparse rows are fitted: the published calibration sums floats, of dense rows."""
        return not self._published


@dataclass(kw_only=True, repr=False, eq=False)
class DPFrankWolfe(PrivateFrankWolfe):
    """Private Frank-Wolfe over the L1 ball: DP-FW.

    Each step moves towards one vertex ±radius·e_j, chosen by a noisy maximum of the gradient. With
    `calibration="proven"` residuals are clipped, the noise is Gumbel and costs add up in zCDP; the
    stated (epsilon, delta) then holds for adding or removing one row.

    Parameters
    ----------
    radius : float, default=None
        λ, the L1 radius, in the target's units: features are mapped onto [−1, 1] by their bounds,
        so a prediction differs from the middle of the target's bounds by at most the radius. None:
        half the width of `target_bounds`, with which |y| ≤ λ holds.
    n_iter : int, default=None
        T, the number of steps. More steps fit better and are noisier. None: the paper's 1000 when
        published; about M/4 when proven, with M = n√(2ρ)/ln(2d) and `n_rows` or a noisy count of
        the rows for n, which takes 1 % of the budget.
    epsilon, delta, feature_bounds, target_bounds, categories, random_state
        As in :class:`PrivateLasso`; bounds are used as they are declared.
    clip : float, default=None
        Bound on a row's residual, in the target's units (proven calibration only). Smaller means
        less noise and a more robust loss. None: a tenth of the width of `target_bounds`. `inf`: no
        clip, so that the noise covers the largest residual that the bounds allow.
    fit_intercept : bool, default=None
        Add a constant candidate, inside the same ball and the same budget. Without it, predictions
        still centre on the middle of the bounds. None: with one when proven, without when
        published, as in the paper.
    calibration : {"proven", "published"}, default="proven"
        "published" uses the constants of the paper to the letter, and warns: its stated epsilon
        does not hold.
    start : {None, "zero", "random"}, default=None
        Starting point. None: zero when proven, random when published, as in the paper.
    n_rows : int, default=None
        A public number of rows, about right, from which `n_iter` follows where that is None, and
        with which delta is compared. None: a noisy count where `n_iter` needs one; delta is not
        compared, as the true number is private.
    rows_per_unit : int, default=None
        As in :class:`PrivateLasso` (proven calibration only).

    Attributes
    ----------
    n_iter_ : int
        Steps taken, because stopping early would look at the data: `n_iter`, or what the rule gave.
    n_rows_ : int
        The number of rows that the rule used, declared or counted with noise; not there where
        `n_iter` was given.
    path_ : Path
        The released steps: `features`, `signs` and `steps`, the weight that each has in the last
        iterate, in units of the mapped features. Feature n_features is the intercept.
    screened_ : ndarray of shape (n_screened, 2)
        What the screening rule released: the iteration, from 1, and the feature that was set to
        zero after it. Empty without screening.
    density_ : float
        The share of coefficients that are not zero, which the paper calls sparsity.
    coef_, intercept_, fallback_, privacy_, n_features_in_, feature_names_in_, \
feature_names_out_, columns_
        As in :class:`PrivateLasso`.

    Notes
    -----
    Predictions are clipped to `target_bounds`, at either calibration. Tuning by fitting several
    times, as GridSearchCV does, spends the budget each time, and choosing by a score computed on
    private rows is not covered at all.

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


class SplitDefaults(NamedTuple):
    """What screening gets unless it is given: part of ε or ρ, part of δ, and after which steps."""

    share: float
    delta_share: float
    at: str | int


def _schedule(
    at: str | int | tuple[int, ...], n_iter: int | None
) -> Callable[[int], frozenset[int]]:
    """Return the iterations meant by "all", "last", every k-th (a number), or a list of them.

    Their number may follow later (None), from a rule: every k-th of fewer than k iterations is then
    the last, and a list is refused.
    """
    if isinstance(at, str):
        return lambda n: frozenset(range(1, n + 1) if at == "all" else (n,))
    several = isinstance(at, tuple)
    if several and n_iter is None:
        raise ValueError(message("parameter.iterations-unknown", name="screen_at"))
    listed = frozenset(at if isinstance(at, tuple) else (at,))
    if n_iter is not None and not (listed and max(listed) <= n_iter):
        raise ValueError(message("parameter.iterations", name="screen_at", n_iter=n_iter))
    if several:
        return lambda _: listed
    (every,) = listed
    return lambda n: frozenset(range(min(every, n), n + 1, min(every, n)))


@dataclass(kw_only=True, repr=False, eq=False)
class ScreeningFrankWolfe(PrivateFrankWolfe):
    """Private Frank-Wolfe with a private screening step; the budget is split between the two."""

    screening_share: float | None = None
    screening_delta_share: float | None = None
    screen_at: str | int | Iterable[int] | None = None

    in_the_paper: ClassVar[SplitDefaults]
    proven: ClassVar[SplitDefaults]
    one_at_a_time: ClassVar[bool]

    def _settings(self, parameters: dict[str, Any], unit: Unit) -> FrankWolfeSettings:
        settings = super()._settings(parameters, unit)
        usual = self.in_the_paper if settings.published else self.proven
        at = parameters["screen_at"]
        part = Screening(
            parameters["screening_share"] or usual.share,
            parameters["screening_delta_share"] or usual.delta_share,
            _schedule(usual.at, None) if at is None else _schedule(at, settings.n_iter),
            self.one_at_a_time,
        )
        return replace(settings, screening=part)


class RNMScreen(ScreeningFrankWolfe):
    """DP-FW that after a step sets at most one coefficient to zero: RNM-Screen (Algorithm 2).

    With `calibration="proven"` the screened feature is selected among all features and "screen
    nothing", by the relaxed safe rule. At realistic budgets the noise is far larger than the
    differences between scores, so which feature is screened is close to random: models become
    sparser, and their error larger. A noisy choice is also no longer a *safe* one.

    Parameters that are not listed here, and all attributes, are as in :class:`DPFrankWolfe`.

    Parameters
    ----------
    clip : float, default=None
        Bound on a row's residual where a step is chosen, as in :class:`DPFrankWolfe`. The rule
        that screens sees residuals as they are (docs/theory/selection.md, Lemma 35).
    screening_share : float, default=None
        Part of the budget for screening: of ε when published, where None is the paper's 0.1 of 5;
        of ρ when proven, where None is 0.02 too.
    screening_delta_share : float, default=None
        Part of δ for screening when published, where None is the paper's quarter; zCDP has no δ to
        split.
    screen_at : {"all", "last"}, int or list of int, default=None
        After which steps to screen: every one, the last one, every k-th, or the listed ones
        (counted from 1). None: every one.
    """

    errata = ("E1", "E2", "E4", "E5")
    in_the_paper = SplitDefaults(0.02, 0.25, "all")
    proven = SplitDefaults(0.02, 0.25, "all")
    one_at_a_time = True


class ADPScreen(ScreeningFrankWolfe):
    """DP-FW that at chosen steps sets every coefficient with a negative noisy score to zero.

    ADP-Screen (Algorithm 1): Gaussian noise on all scores at once. It screens far too much, which
    is why the paper turned to :class:`RNMScreen`.

    Parameters that are not listed here, and all attributes, are as in :class:`DPFrankWolfe`.

    Parameters
    ----------
    screening_share : float, default=None
        As in :class:`RNMScreen`; None is half of ε when published, as in Appendix C of the paper,
        and 0.02 of ρ when proven.
    screening_delta_share : float, default=None
        Part of δ for screening when published, where None is the paper's half.
    screen_at : {"all", "last"}, int or list of int, default=None
        As in :class:`RNMScreen`. None: every one when published, every 50th when proven, or the
        last where there are fewer.
    """

    errata = ("E1", "E2", "E4")
    in_the_paper = SplitDefaults(0.5, 0.5, "all")
    proven = SplitDefaults(0.02, 0.25, 50)
    one_at_a_time = False


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
        (erratum E3). "safe" is the rule with the corrected radius: it never does.
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
            parameters = checked_parameters(self)
            radius, n_iter = checked("radius", self.radius), parameters["n_iter"]
            centre = parameters["fit_intercept"]
            X, y = intake.rows_and_target(self, X, y)
            means = (X.mean(axis=0), y.mean()) if centre else (np.zeros(X.shape[1]), 0.0)
            design = choose_design(X - means[0], y - means[1], n_iter=n_iter)
            start = zero_start(design.n_features)
            path = partial(frank_wolfe, design, start, radius=radius, n_iter=n_iter)
            self.screened_ = np.zeros(design.n_features, dtype=bool)
            if self.screening is None:
                weights = path(choose=steepest_vertex)
            else:
                rule = Elimination(design, _RULES[self.screening], radius=radius)
                weights = path(choose=rule.choose, screen=rule.screen)
                self.screened_ = ~rule.active
            gradient = design.at(weights).gradient()
            gap = wolfe_gap(float(weights @ gradient), gradient, radius=radius)
            self.dual_gap_ = gap / design.n_rows
            self.n_iter_, self.coef_ = n_iter, weights
            self.intercept_ = float(means[1] - means[0] @ weights)
        return self
