"""Private Frank-Wolfe and the paper's two screening methods, at both calibrations."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Generic, Self, TypeVar

from dpscreen._core.arrays import Array
from dpscreen.models import base
from dpscreen.models import parameters as check
from dpscreen.models.base import EXACT, PrivateLinearModel, noise_source, warn_of_weak_delta
from dpscreen.models.intake import in_memory, private_rows, unit_of_rows
from dpscreen.privacy import (
    ZCDP,
    Accountant,
    Budget,
    Noise,
    PrivacyStatement,
    PublishedCalibrationWarning,
    sensitivity,
)
from dpscreen.privacy.ledger import reserve
from dpscreen.privacy.unit import ROW, Unit
from dpscreen.rows.design import Design, Point, gram_pays
from dpscreen.rows.lattice import ExactDesign, ExactPoint, RelaxedRule
from dpscreen.rows.source import PublicUnits, RowSource
from dpscreen.solvers import frank_wolfe as steps
from dpscreen.solvers.frank_wolfe import Choose, P, Screen, frank_wolfe
from dpscreen.solvers.screening import proven_adp, proven_rnm, published_adp, published_rnm

D = TypeVar("D", bound=Design | ExactDesign)

Steps = tuple[Choose[P], Screen[P] | None]


@dataclass(frozen=True)
class FrankWolfeSettings:
    """The parameters of a fit, checked before any row is read."""

    radius: float
    n_iter: int
    budget: Budget
    fit_intercept: bool
    published: bool
    start: str
    clip: float | None = None
    screening_share: float = 0.0
    screening_delta_share: float = 0.0
    screen_at: frozenset[int] = frozenset()
    unit: Unit = ROW

    def __post_init__(self) -> None:
        if self.published and self.unit.rows_per_unit > 1:
            raise ValueError(
                "rows_per_unit: the published calibration makes no promise, for units neither."
            )


@dataclass(frozen=True)
class Run(Generic[D]):
    """What the steps of one fit are built from: public settings, and rows behind an accountant."""

    settings: FrankWolfeSettings
    accountant: Accountant
    design: D
    target_bound: float

    @property
    def residual_bound(self) -> float:
        """Return R = λ + B."""
        return sensitivity.residual_bound(
            radius=self.settings.radius, target_bound=self.target_bound
        )

    @property
    def limit(self) -> ZCDP:
        """Return what a proven fit may spend on one row: ρ/k² for units of k rows (Lemma 18)."""
        assert self.accountant.limit is not None, "the published calibration has no zCDP limit"
        return self.accountant.limit / self.accountant.rows_per_unit**2


class PrivateFrankWolfe(PrivateLinearModel):
    """The fit that the three private estimators share; they differ in their steps."""

    radius: float | None
    n_iter: int | None
    epsilon: float | None
    delta: float | None
    fit_intercept: bool
    calibration: str
    start: str | None
    rows_per_unit: int | None
    random_state: Any

    errata: tuple[str, ...]
    """The errata under which the published calibration fails."""

    def fit(self, X: Any, y: Any = None, *, ledger: Any = None) -> Self:
        """Fit the model, spending the whole budget.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features), or rows read by a schema
            Private rows. Values outside `feature_bounds` are clipped. Rows that were read by a
            schema (`read_rows`, `TableSchema.encode`, `dpscreen.scan`) bring their privacy unit
            along. A Dask array or data frame is fitted on its cluster, `dpscreen.scan` reads a
            file part by part; noise being equal, the coefficients are the same, to the last bit. A
            scipy matrix or a frame of sparse columns stays sparse: its bounds are taken as ± the
            larger of their ends, so that zero stays zero (proven calibration only).
        y : array-like of shape (n_samples,)
            Private targets. Values outside `target_bounds` are clipped. None for rows that were
            read by a schema, which bring their target along.
        ledger : PrivacyLedger or path, default=None
            Where to book the budget before anything is released. If it does not fit there,
            nothing is released and `BudgetRefused` says what is left.

        Returns
        -------
        self
            The fitted estimator, which holds released values only.
        """
        with base.refit(self):
            settings = replace(self._settings(), unit=unit_of_rows(X, self.rows_per_unit))
            if settings.published:
                self._warn_of_published(ledger)
            noise = noise_source(self.random_state)
            with closing(private_rows(self, X, y)) as rows:
                units = self._units(settings, rows)
                warn_of_weak_delta(settings.budget.delta, rows.n_rows)
                if settings.published:
                    weights, self.privacy_ = self._fit_published(settings, noise, units, rows)
                else:
                    weights, self.privacy_ = self._fit_proven(settings, noise, units, rows, ledger)
            self.coef_, self.intercept_ = units.in_users_units(weights)
            self.n_iter_ = settings.n_iter
        return self

    @abstractmethod
    def _published_steps(self, run: Run[Design]) -> Steps[Point]:
        """Return the paper's choice and screening, with its constants."""

    @abstractmethod
    def _proven_steps(self, run: Run[ExactDesign]) -> Steps[ExactPoint]:
        """Return choice and screening whose costs add up to the limit."""

    def _settings(self) -> FrankWolfeSettings:
        published = (
            check.choice("calibration", self.calibration, ("proven", "published")) == "published"
        )
        start = check.choice("start", self.start, (None, "zero", "random"))
        return FrankWolfeSettings(
            radius=check.size("radius", self.radius),
            n_iter=check.steps("n_iter", self.n_iter),
            budget=Budget(
                check.positive("epsilon", self.epsilon), check.share("delta", self.delta)
            ),
            fit_intercept=check.flag("fit_intercept", self.fit_intercept),
            published=published,
            start=start or ("random" if published else "zero"),
            unit=Unit(check.rows_per_unit(self.rows_per_unit)),
        )

    def _warn_of_published(self, ledger: Any) -> None:
        if ledger is not None:
            raise ValueError("ledger: the published calibration has no true cost to book.")
        warnings.warn(
            f"calibration='published' uses the paper's constants, with which the stated epsilon "
            f"does not hold (errata {', '.join(self.errata)}).",
            PublishedCalibrationWarning,
            stacklevel=3,
        )

    def _units(self, settings: FrankWolfeSettings, rows: RowSource) -> PublicUnits:
        features, target = self._public_bounds()
        return PublicUnits(rows.usable_bounds(features), target, constant=settings.fit_intercept)

    @property
    def _takes_sparse(self) -> bool:
        """Whether sparse rows are fitted: the published calibration sums floats, of dense rows."""
        return self.calibration != "published"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        return tags

    def _fit_proven(
        self,
        settings: FrankWolfeSettings,
        noise: Noise,
        units: PublicUnits,
        rows: RowSource,
        ledger: Any,
    ) -> tuple[Array, PrivacyStatement]:
        limit = ZCDP.within(settings.budget)
        design = rows.lattice(units)
        accountant = Accountant(noise, limit=limit, unit=settings.unit)
        run = Run(settings, accountant, design, units.target_bound)
        made = self._proven_steps(run)
        # Whatever parameters can make fail has failed by now; from here on the budget is gone.
        reserve(ledger, limit, purpose=type(self).__name__, unit=settings.unit)
        weights = _optimise(run, made)
        return weights, PrivacyStatement.of(
            settings.budget,
            run.accountant,
            public=(
                *self._public(),
                *rows.disclosed,
                "whether delta is at least 1 over the number of rows",
            ),
            arithmetic=EXACT,
        )

    def _fit_published(
        self, settings: FrankWolfeSettings, noise: Noise, units: PublicUnits, rows: RowSource
    ) -> tuple[Array, PrivacyStatement]:
        X, y = in_memory(rows)
        gram = gram_pays(len(X), units.n_candidates, n_iter=settings.n_iter)
        design = units.float_design(X, y, gram=gram)
        accountant = Accountant(noise, limit=None, unit=settings.unit)
        run = Run(settings, accountant, design, units.target_bound)
        weights = _optimise(run, self._published_steps(run))
        return weights, PrivacyStatement.of(
            settings.budget,
            run.accountant,
            public=(*self._public(), f"the number of rows, {len(X)}, in every noise scale"),
            arithmetic="float64 sums and float64 noise",
            errata=self.errata,
            rows_disclosed=True,
        )

    def _public(self) -> tuple[str, ...]:
        return (
            "all parameters, the bounds of the features and the target among them",
            f"the columns and their number, {self.n_features_in_}",
        )


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
    privacy_ : PrivacyStatement
        What is promised, and what it rests on. Print it.
    n_features_in_, feature_names_in_
        As in every scikit-learn estimator.

    Notes
    -----
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

    def __init__(
        self,
        *,
        radius: float | None = None,
        n_iter: int | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        feature_bounds: Any = None,
        target_bounds: Any = None,
        clip: float | None = None,
        fit_intercept: bool = True,
        calibration: str = "proven",
        start: str | None = None,
        rows_per_unit: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.radius = radius
        self.n_iter = n_iter
        self.epsilon = epsilon
        self.delta = delta
        self.feature_bounds = feature_bounds
        self.target_bounds = target_bounds
        self.clip = clip
        self.fit_intercept = fit_intercept
        self.calibration = calibration
        self.start = start
        self.rows_per_unit = rows_per_unit
        self.random_state = random_state

    def _settings(self) -> FrankWolfeSettings:
        settings = super()._settings()
        if self.clip is None:
            return settings
        if settings.published:
            raise ValueError("clip belongs to the proven calibration; the published one has none.")
        return replace(settings, clip=check.size("clip", self.clip))

    def _published_steps(self, run: Run[Design]) -> Steps[Point]:
        return _published_choice(run, run.settings.budget), None

    def _proven_steps(self, run: Run[ExactDesign]) -> Steps[ExactPoint]:
        return _proven_choice(run, run.limit), None


class ScreeningFrankWolfe(PrivateFrankWolfe):
    """Private Frank-Wolfe with a private screening step; the budget is split between the two."""

    screening_share: float
    screening_delta_share: float

    def _settings(self) -> FrankWolfeSettings:
        return replace(
            super()._settings(),
            screening_share=check.share("screening_share", self.screening_share),
            screening_delta_share=check.share("screening_delta_share", self.screening_delta_share),
        )

    def _split(self, run: Run[Design]) -> tuple[Budget, Budget]:
        return run.settings.budget.split(
            share=run.settings.screening_share, delta_share=run.settings.screening_delta_share
        )

    def _split_cost(self, run: Run[ExactDesign]) -> tuple[ZCDP, ZCDP]:
        part = Fraction(run.settings.screening_share)
        return run.limit * (1 - part), run.limit * part


class RNMScreen(ScreeningFrankWolfe):
    """DP-FW that after each step sets at most one coefficient to zero: RNM-Screen (Algorithm 2).

    With `calibration="proven"` the screened feature is selected among all features and "screen
    nothing", by the relaxed safe rule. At realistic budgets the noise is far larger than the
    differences between scores, so the choice is close to random and little is gained: that is the
    honest price of this rule. A noisy choice is also no longer a *safe* one.

    Parameters
    ----------
    screening_share : float, default=0.02
        Part of the budget for screening: of ε when published (the paper's 0.1 of 5), of ρ when
        proven.
    screening_delta_share : float, default=0.25
        Part of δ for screening when published; zCDP has no δ to split.
    radius, n_iter, epsilon, delta, feature_bounds, target_bounds, fit_intercept, calibration, \
start, rows_per_unit, random_state
        As in :class:`DPFrankWolfe`.

    Attributes
    ----------
    coef_, intercept_, n_iter_, privacy_, n_features_in_, feature_names_in_
        As in :class:`DPFrankWolfe`.
    """

    errata = ("E1", "E2", "E4", "E5")

    def __init__(
        self,
        *,
        radius: float | None = None,
        n_iter: int | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        feature_bounds: Any = None,
        target_bounds: Any = None,
        screening_share: float = 0.02,
        screening_delta_share: float = 0.25,
        fit_intercept: bool = True,
        calibration: str = "proven",
        start: str | None = None,
        rows_per_unit: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.radius = radius
        self.n_iter = n_iter
        self.epsilon = epsilon
        self.delta = delta
        self.feature_bounds = feature_bounds
        self.target_bounds = target_bounds
        self.screening_share = screening_share
        self.screening_delta_share = screening_delta_share
        self.fit_intercept = fit_intercept
        self.calibration = calibration
        self.start = start
        self.rows_per_unit = rows_per_unit
        self.random_state = random_state

    def _published_steps(self, run: Run[Design]) -> Steps[Point]:
        optimisation, screening = self._split(run)
        settings = run.settings
        return _published_choice(run, optimisation), published_rnm(
            run.accountant, run.design, screening, radius=settings.radius, n_iter=settings.n_iter
        )

    def _proven_steps(self, run: Run[ExactDesign]) -> Steps[ExactPoint]:
        optimisation, screening = self._split_cost(run)
        settings = run.settings
        return _proven_choice(run, optimisation), proven_rnm(
            run.accountant,
            run.design,
            screening / settings.n_iter,
            rule=RelaxedRule(settings.radius, run.target_bound),
        )


class ADPScreen(ScreeningFrankWolfe):
    """DP-FW that at chosen steps sets every coefficient with a negative noisy score to zero.

    ADP-Screen (Algorithm 1): Gaussian noise on all scores at once. It screens far too much, which
    is why the paper turned to :class:`RNMScreen`.

    Parameters
    ----------
    screen_at : {"all", "last"}, int or list of int, default="all"
        After which steps to screen: every one, the last one, every k-th, or the listed ones
        (counted from 1).
    screening_share, screening_delta_share : float
        As in :class:`RNMScreen`.
    radius, n_iter, epsilon, delta, feature_bounds, target_bounds, fit_intercept, calibration, \
start, rows_per_unit, random_state
        As in :class:`DPFrankWolfe`.

    Attributes
    ----------
    coef_, intercept_, n_iter_, privacy_, n_features_in_, feature_names_in_
        As in :class:`DPFrankWolfe`.
    """

    errata = ("E1", "E2", "E4")

    def __init__(
        self,
        *,
        radius: float | None = None,
        n_iter: int | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        feature_bounds: Any = None,
        target_bounds: Any = None,
        screen_at: str | int | Iterable[int] = "all",
        screening_share: float = 0.02,
        screening_delta_share: float = 0.25,
        fit_intercept: bool = True,
        calibration: str = "proven",
        start: str | None = None,
        rows_per_unit: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.radius = radius
        self.n_iter = n_iter
        self.epsilon = epsilon
        self.delta = delta
        self.feature_bounds = feature_bounds
        self.target_bounds = target_bounds
        self.screen_at = screen_at
        self.screening_share = screening_share
        self.screening_delta_share = screening_delta_share
        self.fit_intercept = fit_intercept
        self.calibration = calibration
        self.start = start
        self.rows_per_unit = rows_per_unit
        self.random_state = random_state

    def _settings(self) -> FrankWolfeSettings:
        settings = super()._settings()
        return replace(
            settings, screen_at=check.iterations("screen_at", self.screen_at, settings.n_iter)
        )

    def _published_steps(self, run: Run[Design]) -> Steps[Point]:
        optimisation, screening = self._split(run)
        return _published_choice(run, optimisation), published_adp(
            run.accountant,
            run.design,
            screening,
            radius=run.settings.radius,
            at=run.settings.screen_at,
        )

    def _proven_steps(self, run: Run[ExactDesign]) -> Steps[ExactPoint]:
        optimisation, screening = self._split_cost(run)
        when = run.settings.screen_at
        return _proven_choice(run, optimisation), proven_adp(
            run.accountant,
            run.design,
            screening / len(when),
            rule=RelaxedRule(run.settings.radius, run.target_bound),
            at=when,
        )


def _published_choice(run: Run[Design], budget: Budget) -> Choose[Point]:
    return steps.published_choice(
        run.accountant,
        budget,
        radius=run.settings.radius,
        n_iter=run.settings.n_iter,
        n_rows=run.design.n_rows,
    )


def _proven_choice(run: Run[ExactDesign], cost: ZCDP) -> Choose[ExactPoint]:
    bound = run.residual_bound
    return steps.proven_choice(
        run.accountant,
        cost / run.settings.n_iter,
        clip=min(run.settings.clip or bound, bound),
    )


def _optimise(run: Run[Any], made: Steps[Any]) -> Array:
    """Run the loop from the starting point that the settings ask for."""
    settings = run.settings
    start = steps.starting_point(
        settings.start,
        run.design.n_features,
        radius=settings.radius,
        noise=run.accountant.noise,
    )
    return frank_wolfe(
        run.design,
        start,
        radius=settings.radius,
        n_iter=settings.n_iter,
        choose=made[0],
        screen=made[1],
    )
