"""The one private fit, which all private estimators share.

A new estimator says what its parameters are, and either how a task is solved (`ScalingModel`) or
how a fit is prepared (`PrivateEstimator`); everything else is here.
"""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import ThreadpoolController

from dpscreen._core.arrays import Array, Mask
from dpscreen._core.words import plain, some
from dpscreen.models import parameters as check
from dpscreen.models.categories import declared_levels
from dpscreen.models.delivery import (
    CENTRE,
    MODEL,
    PATH,
    START,
    BoundsNote,
    FallbackWarning,
    check_finite,
    completed,
    fallback_words,
)
from dpscreen.models.intake import (
    aligned,
    check_frame,
    owned,
    private_rows,
    take_ids,
    unit_of_rows,
)
from dpscreen.models.linear import PrivateLinearModel
from dpscreen.models.refits import count_fit, values_of
from dpscreen.models.refusal import TableRefused
from dpscreen.models.steps import refuse_learnt_steps
from dpscreen.privacy import (
    ZCDP,
    Budget,
    BudgetRefused,
    Noise,
    PrivacyLedger,
    PrivacyStatement,
    SecureNoise,
    SeededNoise,
    SeededNoiseWarning,
    WeakDeltaWarning,
)
from dpscreen.privacy.budget import Unit
from dpscreen.privacy.ledger import reserve
from dpscreen.privacy.noise import watched
from dpscreen.privacy.statement import COMPOSITION, IN_HALVES
from dpscreen.rows.source import PublicUnits, RowSource
from dpscreen.solvers import rules, split
from dpscreen.solvers.base import Choices, Path, Solution, Spending, Task
from dpscreen.solvers.engine import is_dense, n_passes, solve_dense, solve_selected
from dpscreen.solvers.marginals import NEITHER, end_of_target, standardise
from dpscreen.solvers.prediction_range import RangedModel, choose_range, range_share
from dpscreen.solvers.quality import QualityReleases
from dpscreen.solvers.results import Inference
from dpscreen.solvers.split import SplitHalf
from dpscreen.tables.schema import TableSchema, as_schema

if TYPE_CHECKING:
    from dpscreen.models.release import Release

Settings = TypeVar("Settings")


class BoundsWarning(UserWarning):
    """Released numbers say that declared bounds cut most rows off. Reporting it costs nothing."""


class Charges:
    """What a fit has booked of its limit, in a ledger if there is one: before it is spent.

    Parts that are booked one by one add up to the limit, exactly (docs/theory/mechanisms.md, Lemma
    61).
    """

    def __init__(self, ledger: Any, limit: ZCDP, unit: Unit, purpose: str) -> None:
        self._ledger, self._limit, self._unit, self._purpose = ledger, limit, unit, purpose
        self.booked = ZCDP.free()
        self._marks: frozenset[str] = frozenset()

    def recognise(self, rows: RowSource) -> None:
        """Make the marks by which the ledger knows whether it has booked these rows before."""
        self._open()
        key = getattr(self._ledger, "row_key", None)
        if key is not None:
            self._marks = rows.marks(key)

    def _open(self) -> None:
        if isinstance(self._ledger, str | os.PathLike):
            self._ledger = PrivacyLedger(self._ledger)

    def check(self) -> None:
        """Raise `BudgetRefused` if the ledger does not cover the whole limit even now."""
        self._open()
        if not isinstance(self._ledger, PrivacyLedger):
            return
        self._ledger.check_unit(str(self._unit))
        left = self._ledger.remaining
        if left < self._limit:
            delta = self._ledger.budget.delta
            raise BudgetRefused(
                f"too little budget is left: the fit needs rho={float(self._limit):g}, and "
                f"rho={float(left):g} remains for {self._ledger.dataset!r}. Nothing was booked.",
                remaining=left,
                epsilon=left.epsilon(delta),
            )

    def book(self, cost: ZCDP) -> None:
        """Book a part of the limit for good, or raise `BudgetRefused`."""
        reserve(self._ledger, cost, purpose=self._purpose, unit=self._unit, marks=self._marks)
        self.booked = self.booked + cost

    def book_rest(self) -> None:
        """Book what is left of the limit."""
        self.book(ZCDP(self._limit.rho - self.booked.rho))


@dataclass(frozen=True)
class Promise:
    """What a fit promises: a budget, for adding or removing one unit; and what it has booked."""

    budget: Budget
    unit: Unit
    charges: Charges

    @property
    def limit(self) -> ZCDP:
        """Return the budget of one unit."""
        return ZCDP.within(self.budget)


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateEstimator(PrivateLinearModel, Generic[Settings]):
    """A model with a budget, and the fit that keeps its promise: the parameters that all share."""

    epsilon: float | None = None
    delta: float | None = None
    feature_bounds: Any = None
    target_bounds: Any = None
    categories: Any = None
    fit_intercept: bool | None = True
    n_rows: int | None = None
    random_state: Any = None
    schema: Any = None

    rows_per_unit: ClassVar[int | None] = None

    @property
    def averages_units(self) -> bool:
        """Whether the rows of a unit count together, as one; else each of them is charged."""
        return False

    @classmethod
    def from_formula(cls, formula: str, schema: Any, **settings: Any) -> Self:
        """Return a model whose features are the terms of a formula.

        Parameters
        ----------
        formula : str
            Such as ``"charges ~ age + I(age**2) + smoker*bmi + C(region) + bs(hours,
            knots=[20, 40])"``. Terms are evaluated row by row, with declared levels, bounds and
            knots; bounds of terms follow from the declared ones.
        schema : TableSchema, mapping, or path of a schema file
            Types, bounds and levels of the table's columns.
        **settings
            The other parameters of the model: epsilon, delta and so on.

        Returns
        -------
        estimator
            Not fitted yet. `fit` and `predict` take data frames with the columns of the schema.
        """
        made = cls(schema=as_schema(schema).with_formula(formula), **settings)
        made._declared_schema()
        return made

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        ledger: Any = None,
        check: bool = True,
        unit: Any = None,
        **unknown: Any,
    ) -> Self:
        """Fit the model, spending the whole budget.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features), or rows read by a schema
            Private rows. Values outside `feature_bounds` are clipped. Columns of a frame may hold
            truths, and categories whose levels are declared (`categories`). With a `schema`, a
            frame is the raw table, target included. Rows that were read by a schema
            (`read_rows`, `TableSchema.encode`, `dpscreen.scan`) bring their privacy unit along. A
            Dask array or data frame is fitted on its cluster, `dpscreen.scan` reads a file
            part by part; noise being equal, the coefficients are the same, to the last bit. Where
            the estimator takes sparse rows, a scipy matrix or a frame of sparse columns stays
            sparse: its bounds are taken as ± the larger of their ends, so that zero stays zero, and
            are not tightened.
        y : array-like of shape (n_samples,)
            Private targets. Values outside `target_bounds` are clipped. None for rows that were
            read by a schema, which bring their target along; the name of the target's column for
            a source that exports Arrow, whose other columns are the features.
        ledger : PrivacyLedger or path, default=None
            Where to book the budget before anything is released. If it does not fit there,
            nothing is released and `BudgetRefused` says what is left. A regression table books its
            noisy count first and, unless the table is refused, the rest.
        check : bool, default=True
            Whether a data frame is checked against the `schema` first, as by `schema.check`, so
            that a format mistake spends no budget. False for pipelines whose failures others see:
            what does not fit then counts as missing. A source that exports Arrow is read once, and
            not checked.
        unit : array-like of shape (n_samples,), or name of a column of the frame X, default=None
            Whose each row is, for a model in which units count, and not rows (`PrivateOLS`): ε is
            then for adding or removing all rows of a unit, however many. Rows without an id are
            left out. A `schema` names its own column.
        **unknown
            Refused, `sample_weight` among them: rows count alike.

        Returns
        -------
        self
            The fitted estimator, which holds released values only. Where it fails numerically after
            the budget was booked, it holds what was released by then, and warns (`fallback_`).

        Raises
        ------
        FormatFault
            The frame does not fit the schema. Nothing is booked.
        TableRefused
            Of a regression table alone: it is impossible with so many rows and features at this
            budget. Only what it was decided from is charged.
        """
        refuse_unknown(unknown)
        refuse_learnt_steps()
        with refit(self):
            if (schema := self._declared_schema()) is not None:
                self.schema_ = schema
                if check:
                    check_frame(X, schema)
            X, ids = take_ids(self, X, unit, schema)
            promised = unit_of_rows(X, self.rows_per_unit, schema) if ids is None else ids.unit
            promise = self._promise(promised, ledger)
            settings = self._settings(promise.unit)
            self._warn(settings, ledger)
            noise = noise_source(self.random_state)
            counted = ledger is None and noise.secure
            with closing(owned(self._rows(X, aligned(y, X)), ids)) as rows:
                values = values_of(rows) if counted else None
                spend = self._prepare(settings, promise, noise, rows)
                self._warn_of_rows(promise)
                promise.charges.recognise(rows)
                # Whatever parameters can make fail has failed by now; then the budget is gone.
                self._book(promise.charges)
                try:
                    self.privacy_ = spend()
                except TableRefused as refusal:
                    if counted and refusal.privacy is not None:
                        count_fit(values, refusal.charged, promise.budget.delta)
                    raise
        if self.fallback_ is not None:
            warnings.warn(fallback_words(self.fallback_), FallbackWarning, stacklevel=2)
        self._warn_of_release()
        if counted:
            count_fit(values, promise.limit, promise.budget.delta)
        return self

    def _declared_schema(self) -> TableSchema | None:
        """Return the schema as it is given now; refuse one that this model cannot be fitted by."""
        if self.schema is None:
            return None
        declared = as_schema(self.schema)
        declared.check()
        if not self.family.fits(declared.classes):
            raise ValueError(
                f"{type(self).__name__} needs a target of two outcomes: declare it as boolean, or "
                "with two levels."
            )
        centred = [one.name for one in declared.derived if one.centred]
        if centred and not self._fits_intercept:
            raise ValueError(
                f"{some(centred)}: powers and products are centred at declared middles, which "
                "without an intercept is another model. Fit it with an intercept."
            )
        return declared

    def _promise(self, unit: Unit, ledger: Any) -> Promise:
        budget = self._budget()
        charges = Charges(ledger, ZCDP.within(budget), unit, type(self).__name__)
        return Promise(budget, unit, charges)

    def _book(self, charges: Charges) -> None:
        """Book the budget before anything is released."""
        charges.book_rest()

    def _rows(self, X: Any, y: Any) -> RowSource:
        """Return X and y as private rows, or say what is wrong without quoting them."""
        return private_rows(self, X, y if isinstance(y, str) else self._as_numbers(y))

    def _as_numbers(self, y: Any) -> Any:
        """Return the target, or a part of it, as numbers."""
        return y

    def check_parameters(self) -> None:
        """Raise what `fit` would raise because of its parameters, without any rows.

        Bounds are left out: how many there must be depends on the rows.
        """
        self._budget()
        declared_levels(self.categories)
        self._declared_schema()
        self._settings(unit_of_rows(None, self.rows_per_unit))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # at the ε of scikit-learn's checks, noise wins
        return tags

    def _public_bounds(self) -> tuple[Array, Array]:
        """Return the declared bounds of every feature and of the target."""
        names, columns = getattr(self, "feature_names_in_", None), getattr(self, "columns_", None)
        if columns is None:
            zero_one = np.zeros(self.n_features_in_, dtype=np.bool_)
        else:
            zero_one, names = columns.zero_one, None if names is None else columns.feature_names
        features, target = self.feature_bounds, self.target_bounds
        if (schema := self.table_schema) is not None:
            features = schema.feature_bounds if features is None else features
            target = schema.target_bounds if target is None else target
        return check.declared_bounds(features, target, names, zero_one)

    @property
    def _fits_intercept(self) -> bool:
        return bool(self.fit_intercept)

    def _public_facts(self) -> tuple[str, ...]:
        """Return what every statement says is public."""
        columns = getattr(self, "columns_", None)
        return (
            "all parameters, the bounds of the features and the target among them",
            f"the columns and their number, {self.n_features_in_}",
            *(() if columns is None else columns.public),
        )

    def released(self) -> Release:
        """Return all that the model has released."""
        from dpscreen.models.release import release_of

        check_is_fitted(self)
        return release_of(self, self._public_bounds(), fit_intercept=self._fits_intercept)

    def _budget(self) -> Budget:
        return Budget(check.positive("epsilon", self.epsilon), check.share("delta", self.delta))

    @abstractmethod
    def _settings(self, unit: Unit) -> Settings:
        """Return the parameters, checked, for a promise that is made to such units."""

    def _warn(self, settings: Settings, ledger: Any) -> None:
        """Warn, two calls up, of what this fit does not keep."""

    def _warn_of_rows(self, promise: Promise) -> None:
        """Warn if δ is weak for the declared number of rows; the true one is private."""
        if self.n_rows is not None:
            warn_of_weak_delta(promise.budget.delta, self.n_rows)

    def _warn_of_release(self) -> None:
        """Warn of what released numbers show, once the model is there."""

    def _keep(self, stage: str, units: PublicUnits, solution: Solution) -> None:
        """Hold what is released by now as a whole model, or raise and hold what was before."""
        for name, value in (self._state(units, solution) | {"fallback_": stage}).items():
            setattr(self, name, value)

    def _state(self, units: PublicUnits, solution: Solution) -> dict[str, Any]:
        """Return the attributes of a model with these weights, in the user's units."""
        coef, intercept = units.in_users_units(solution.weights)
        check_finite(coef, intercept)
        state = self._line_state(coef, intercept) | {"n_iter_": solution.n_iter}
        if hasattr(self, "missing_as_"):
            state["missing_as_"] = np.array(units.feature_centres)
        return state

    def _deliver(self, spend: Callable[[], None]) -> None:
        """Release the model; where its numbers fail, what was held last stays."""
        if completed(spend):
            self.fallback_ = None

    @abstractmethod
    def _prepare(
        self, settings: Settings, promise: Promise, noise: Noise, rows: RowSource
    ) -> Callable[[], PrivacyStatement]:
        """Return what spends the budget, releases the model and accounts for it.

        Whatever parameters can make fail must fail here: nothing is booked yet, and no noise drawn.
        """


@dataclass(frozen=True)
class FitStart:
    """All that a `ScalingModel` has when it begins to spend; `bounds` are the public ones."""

    promise: Promise
    choices: Choices
    bounds: tuple[Array, Array]
    spending: Spending
    rows: RowSource
    halves: list[SplitHalf] = field(default_factory=list)


class ScalingModel(PrivateEstimator[Choices]):
    """A linear model that first releases the marginals: centres, scales and clipping ranges."""

    row_norm: float | None
    standardize: bool | str

    feature_bounds_: Array
    target_bounds_: Array
    scale_: float
    n_rows_: int
    bounds_notes_: tuple[BoundsNote, ...]

    @abstractmethod
    def _solve(self, task: Task, rows: RowSource) -> Solution:
        """Release weights for what is left of the budget; `rows` are those of the task."""

    def _settings(self, _unit: Unit) -> Choices:
        if not isinstance(self.standardize, bool | np.bool_):
            check.choice("standardize", self.standardize, ("auto",))
        return Choices(
            row_norm=check.optional(check.size, "row_norm", self.row_norm),
            intercept=check.flag("fit_intercept", self.fit_intercept),
            standardize=self.standardize,
            n_rows=check.optional(check.declared_rows, "n_rows", self.n_rows),
        )

    def _prepare(
        self, settings: Choices, promise: Promise, noise: Noise, rows: RowSource
    ) -> Callable[[], PrivacyStatement]:
        features, target = self._public_bounds()
        choices = replace(settings, standardize=standardize_for(rows, settings.standardize))
        spending = Spending.of(
            promise.budget,
            promise.unit,
            noise,
            n_rows=choices.n_rows,
            n_features=rows.n_features,
            averaged=rows.owners is not None,
        )
        bounds = rows.usable_bounds(features), target
        start = FitStart(promise, choices, bounds, spending, rows)

        def spend() -> PrivacyStatement:
            with one_blas_thread():  # sums of rows have a pool
                counted = self._counted(start)
                self._begin(counted)
                self._deliver(lambda: self._spend(counted))
                return self._account(counted)

        return spend

    def _begin(self, start: FitStart) -> None:
        """Hold a constant from public numbers alone."""
        self.bounds_notes_ = ()
        units = self._public_units(start)
        nothing = Solution(np.zeros(units.n_candidates), 0, None, units.target_bound)
        self._keep(START, units, nothing)

    def _public_units(self, start: FitStart) -> PublicUnits:
        return PublicUnits(*start.bounds, constant=start.choices.intercept)

    def _warn_of_rows(self, promise: Promise) -> None:
        """Wait until the number of rows has been released."""

    def _warn_of_release(self) -> None:
        """Warn of a weak delta, and of bounds that cut rows off."""
        warn_of_weak_delta(self.privacy_.delta, self.n_rows_)
        warn_of_bounds(self.bounds_notes_)

    def _counted(self, start: FitStart) -> FitStart:
        """Release the number of rows that rules use, unless one is public."""
        if start.choices.n_rows is None:
            start = replace(start, spending=start.spending.counted(start.rows.n_rows))
        self.n_rows_ = start.spending.regime.n_rows
        return start

    def _spend(self, start: FitStart) -> None:
        """Release the model from all rows."""
        self._release(start)

    def _account(self, start: FitStart) -> PrivacyStatement:
        """Return the statement of all that was released, wherever the fit ended."""
        return self._statement(start, start.spending)

    def _release(self, start: FitStart) -> tuple[Task, PublicUnits, Solution]:
        """Release the model from the rows that are given, out of their spending."""
        task, units = self._place(start)
        self.bounds_notes_ = tuple(self._notes_on_bounds(task, units, start.bounds[0]))
        self._keep(CENTRE, units, self._constant(task, units))
        solution = self._solve(replace(task, keep=partial(self._keep, PATH, units)), start.rows)
        self._keep(MODEL, units, solution)
        return task, units, solution

    def _constant(self, task: Task, units: PublicUnits) -> Solution:
        """Return the model without features that is released once the marginals are known."""
        weights = np.zeros(units.n_candidates)
        weights[task.n_features :] = task.start
        return Solution(weights, 0, None, task.residual_scale)

    def _state(self, units: PublicUnits, solution: Solution) -> dict[str, Any]:
        check_finite(units.feature_bounds, units.target_bounds, solution.deviation)
        state = super()._state(units, solution) | self._target_state(units, solution)
        return state | {"feature_bounds_": units.feature_bounds}

    def _target_state(self, units: PublicUnits, solution: Solution) -> dict[str, Any]:
        """Return what is held of a target that is a number."""
        return {
            "target_bounds_": units.target_bounds,
            "scale_": solution.deviation * units.target_unit,
        }

    def _place(self, start: FitStart) -> tuple[Task, PublicUnits]:
        """Release the marginals of target and features, and put the rows on the lattice."""
        return standardise(
            start.spending, start.rows, start.bounds, start.choices, family=self.family
        )

    def _measure(
        self,
        task: Task,
        units: PublicUnits,
        weights: Array,
        scales: tuple[float, float, float],
        *,
        in_sample: bool,
    ) -> None:
        """Release how good weights are on the rows of a task, for all that is left.

        `scales` are the standard deviations of residuals, target and predictors.
        """
        spending = task.spending
        releases = QualityReleases(
            spending.accountant,
            spending.release_sum,
            n_rows=spending.regime.n_rows,
            count_noise=spending.count_noise,
            cost=spending.remaining,
        )
        self.quality_ = self.family.release_quality(
            releases, task.design, units, weights, scales, task.start, in_sample=in_sample
        )

    def _notes_on_bounds(
        self, task: Task, units: PublicUnits, declared: Array
    ) -> Iterator[BoundsNote]:
        names = self.feature_names_out_ if task.at_ends else ()  # there may be very many
        for feature, end in task.at_ends:
            low, high = map(float, declared[feature])
            name = plain(str(names[feature]))
            yield BoundsNote(name, low, high, None if end == NEITHER else end)
        at = end_of_target(task, units)
        if at is not None:
            low, high = map(float, units.target_bounds)
            yield BoundsNote(None, low, high, at)

    def _statement(
        self, start: FitStart, spending: Spending, composition: str = COMPOSITION
    ) -> PrivacyStatement:
        public = start.choices.n_rows is not None
        declared = (f"n_rows, {self.n_rows_}, on which the rules rest",) if public else ()
        return PrivacyStatement.of(
            start.promise.budget,
            spending.accountant,
            public=(*self._public_facts(), *declared, *start.rows.disclosed),
            arithmetic=EXACT,
            composition=composition,
        )


class SparseModel(ScalingModel):
    """The goal of a sparse model: all features at once or a path of them, and its quality."""

    n_iter: int | None
    max_features: int | None
    inference: str | None
    quality: bool

    path_: Path | None
    selected_: Mask
    q_values_: Array
    inference_: Inference

    _takes_sparse = True

    def noise_p_values(self) -> Array:
        """Return for each feature a p-value of "only privacy noise ever chose it".

        No p-value of an effect: `PrivateOLS` has those. It tests privacy noise only, for the
        hypothesis that the feature's gradient was zero at every step; sampling noise gives a
        gradient too. A feature that others kept from being chosen shows a large value or NaN,
        however strong it is, so there is little power with few features, and with rows enough for
        the refit to find what the path did not. Computed from `path_`, so free; `max_features` and
        `fit_intercept` must still be those of the fit.

        Returns
        -------
        ndarray of shape (n_features,)
            NaN for features that were chosen no more than noise alone would, or never: the path
            says nothing of them. Not corrected for the number of features.
        """
        found = self.released().noise_p_values
        if found is None:
            raise ValueError("noise p-values need a path: here no feature had to be chosen.")
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.standardize is not True
        return tags

    def _settings(self, unit: Unit) -> Choices:
        check.choice("inference", self.inference, (None, "split"))
        if self.inference is not None and unit.rows_per_unit > 1:
            raise ValueError(
                "inference='split' needs rows_per_unit=1: rows of one unit are not independent, "
                "so intervals that count them as if they were would be too short."
            )
        return replace(
            super()._settings(unit),
            quality=check.flag("quality", self.quality),
            n_iter=check.optional(check.steps, "n_iter", self.n_iter),
            max_features=check.optional(check.whole, "max_features", self.max_features),
        )

    def _solver(self, task: Task) -> Callable[[Task], Solution]:
        """Return what solves the task: for all features unless noise hides their Gram matrix."""
        return solve_dense if is_dense(task) else solve_selected

    def _solve(self, task: Task, rows: RowSource) -> Solution:
        """Solve the task, keeping what the prediction range and the quality cost."""
        rows.announce(n_passes(task))
        kept = (rules.QUALITY_SHARE if task.choices.quality else 0.0) + range_share(task)
        return self._solver(task)(replace(task, spending=replace(task.spending, reserved=kept)))

    def _measure_model(
        self, task: Task, units: PublicUnits, solution: Solution, *, in_sample: bool
    ) -> None:
        weights = solution.weights
        predictors = task.spread * float(np.linalg.norm(weights[: task.n_features]))
        scales = (solution.deviation, task.residual_scale, predictors)
        self._measure(task, units, weights, scales, in_sample=in_sample)

    def _range(
        self, start: FitStart, task: Task, units: PublicUnits, solution: Solution
    ) -> tuple[Task, PublicUnits, Solution]:
        """Release the range in which features enter predictions; return what predicts."""
        model = RangedModel(units, solution.weights, task.design, task.spread)
        model = choose_range(task, start.rows, model, start.bounds[0])
        solution = replace(solution, weights=model.weights)
        self._keep(MODEL, model.units, solution)
        return replace(task, design=model.design, spread=model.spread), model.units, solution

    def _state(self, units: PublicUnits, solution: Solution) -> dict[str, Any]:
        n_features = len(units.feature_bounds)
        q_values = solution.q_values
        return super()._state(units, solution) | {
            "path_": solution.path,
            "selected_": solution.selected(n_features),
            "q_values_": np.ones(n_features) if q_values is None else q_values,
        }

    def _begin(self, start: FitStart) -> None:
        super()._begin(start)
        if self.inference is not None:
            self.inference_ = Inference.not_available("the fit failed numerically.")

    def _spend(self, start: FitStart) -> None:
        """Release the model, with intervals if they were asked for and can be had."""
        reason = None if self.inference is None else split.refusal(start.spending.regime)
        if reason is not None:
            self.inference_ = Inference.not_available(
                f"{reason} The model was fitted on all rows, without a split."
            )
        if self.inference is not None and reason is None:
            self._spend_in_halves(start)
            return
        task, units, solution = self._range(start, *self._release(start))
        if start.choices.quality:
            self._measure_model(task, units, solution, in_sample=True)

    def _account(self, start: FitStart) -> PrivacyStatement:
        if not start.halves:
            return super()._account(start)
        charged = (start.spending, *(half.spending for half in start.halves))
        return split.parallel_statement(
            float(split.parallel_cost(*charged)),
            *(self._statement(start, spending, IN_HALVES) for spending in charged),
        )

    def _spend_in_halves(self, start: FitStart) -> None:
        """Release the model from one half of the rows and intervals from the other (Lemma 16)."""
        first, second = split.split(start.spending, start.rows)
        start.halves.extend((first, second))
        choices = replace(start.choices, quality=False)
        half = replace(start, spending=first.spending, rows=first.rows, choices=choices)
        task, units, solution = self._release(half)
        ranged, predicting, predictor = self._range(half, task, units, solution)
        n_used = int(np.count_nonzero(solution.weights[: task.n_features]))
        selected = split.Selected(
            solution.weights,
            units,
            deviation=task.deviation,
            marginals=task.marginals,
            n_used=n_used,
            residual=task.residual,
            family=self.family,
            start=task.start,
        )
        names = list(self.feature_names_out_)
        kept = rules.QUALITY_SHARE if start.choices.quality else 0.0
        other = replace(second, spending=replace(second.spending, reserved=kept))
        self.inference_ = split.infer(other, selected, start.bounds[0], choices, names)
        if start.choices.quality:
            design = second.rows.lattice(predicting)
            held_out = replace(ranged, spending=second.spending, design=design)
            self._measure_model(held_out, predicting, predictor, in_sample=False)


def refuse_unknown(given: Mapping[str, Any]) -> None:
    """Raise a TypeError if `fit` was given what it does not take."""
    if "sample_weight" in given:
        raise TypeError(
            "sample_weight: weights of rows, as surveys have them, are not supported: a row would "
            "change sums by its weight, and the noise is made for rows that count alike."
        )
    if given:
        raise TypeError(f"fit takes no {', '.join(map(plain, given))}.")


def standardize_for(rows: RowSource, standardize: bool | str) -> bool | str:
    """Return what these rows allow: what is sparse is not centred."""
    if not rows.keeps_zero:
        return standardize
    if standardize is True:
        raise ValueError(
            "standardize=True would centre the features, and sparse rows would be sparse no more; "
            "use standardize=False, and declare bounds that fit."
        )
    return False


SEEDED = (
    "random_state makes the noise reproducible: whoever knows it can remove the noise, so this fit "
    "is not private. Leave it None for a release."
)
WATCHED = "releases are recorded or forced, for a test: this fit is not private."


def noise_source(random_state: Any) -> Noise:
    """Return secure noise for None; anything else is reproducible, and warned about.

    Accepts a whole number, a name, a numpy generator or RandomState, or a `Noise` of the caller's,
    which alone is never watched (`dpscreen.privacy.replay`).
    """
    given = isinstance(random_state, Noise)
    own = random_state if given else _noise_from(random_state)
    noise = own if given else watched(own)
    if not noise.secure:
        told = SEEDED if noise is own else WATCHED
        warnings.warn(told, SeededNoiseWarning, stacklevel=3)
    return noise


def _noise_from(random_state: Any) -> Noise:
    match random_state:
        case None:
            return SecureNoise()
        case str():
            return SeededNoise(random_state)
        case np.random.Generator():
            return SeededNoise(int(random_state.integers(2**63)))
        case np.random.RandomState():
            return SeededNoise(int(random_state.randint(2**31 - 1)))
        case int() | np.integer() if not isinstance(random_state, bool) and random_state >= 0:
            return SeededNoise(int(random_state))
    raise ValueError(
        "random_state must be None, a whole number that is not negative, a name, or a numpy "
        f"generator; got {type(random_state).__name__}."
    )


WEAK_DELTA = (
    "delta is at least 1/n: such a promise would even be kept by publishing one row chosen at "
    "random. Choose delta far below 1/n."
)


def warn_of_weak_delta(delta: float, n_rows: int) -> None:
    """Warn when δ would allow to publish one row in full at random."""
    if delta * n_rows >= 1:
        warnings.warn(WEAK_DELTA, WeakDeltaWarning, stacklevel=4)


def warn_of_bounds(notes: Sequence[BoundsNote]) -> None:
    """Warn where, by released numbers, most rows share one value, perhaps an end of the bounds."""
    if notes:
        warnings.warn(
            f"most rows seem to share one value: {'; '.join(map(str, notes))}. At an end of the "
            "declared bounds that happens with counts that are mostly zero, and with rows outside "
            "the bounds: are these bounds in the right units?",
            BoundsWarning,
            stacklevel=4,
        )


@contextmanager
def refit(estimator: BaseEstimator) -> Iterator[None]:
    """Begin a fit with nothing left of an earlier one, and leave nothing of one that fails."""
    _forget(estimator)
    try:
        yield
    except BaseException:
        _forget(estimator)
        raise


def _forget(estimator: BaseEstimator) -> None:
    for name in [name for name in vars(estimator) if name.endswith("_") and name[0] != "_"]:
        delattr(estimator, name)


EXACT = (
    "exact: features are truncated to 2^-14 of their half-width and clipped residuals rounded to "
    "2^-14 of the clip, sums are of whole numbers, and noise is sampled without rounding"
)


# --- threads --------------------------------------------------------------------------------------


def one_blas_thread() -> AbstractContextManager[Any]:
    """Keep matrices to one thread each: several wait for each other over small ones."""
    return _blas().limit(limits=1)  # type: ignore[no-any-return]


@cache
def _blas() -> Any:
    """Find the libraries once: reading the process's map anew took a quarter of a small fit."""
    return ThreadpoolController().select(user_api="blas")
