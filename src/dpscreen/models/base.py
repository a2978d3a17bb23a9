"""The one private fit, which all private estimators share.

`PrivateEstimator.fit` says in which order things happen: what is asked for, rows, booking, release.
A `ScalingModel` releases marginals first, and then what its goal is: a sparse model
(`SparseModel`), a regression table (`TableEstimator`), or whatever its `_solve` releases.
"""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import ThreadpoolController

from dpscreen._core.arrays import Array
from dpscreen._core.messages import message
from dpscreen._core.words import how_many, plain
from dpscreen.families.quality import QualityReleases
from dpscreen.models.categories import declared_levels
from dpscreen.models.delivery import (
    CENTRE,
    MODEL,
    PASSED_ON,
    PATH,
    START,
    BoundsNote,
    FallbackWarning,
    fallback_words,
)
from dpscreen.models.intake import private_rows, take_ids, unit_of_rows
from dpscreen.models.linear import PrivateLinearModel
from dpscreen.models.outcomes import declared_classes
from dpscreen.models.parameters import checked_parameters, declared_bounds
from dpscreen.models.refits import count_fit, values_of
from dpscreen.models.refusal import TableRefused
from dpscreen.models.steps import refuse_learnt_steps
from dpscreen.privacy import (
    ZCDP,
    Budget,
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
from dpscreen.solvers import split
from dpscreen.solvers.base import Choices, Solution, Spending, Task
from dpscreen.solvers.marginals import NEITHER, end_of_target, standardise
from dpscreen.solvers.split import SplitHalf
from dpscreen.tables.declaration import MOST_UNREADABLE
from dpscreen.tables.schema import TableSchema, as_schema

if TYPE_CHECKING:
    from dpscreen.models.release import Release

Settings = TypeVar("Settings")


class BoundsWarning(UserWarning):
    """Released numbers say that declared bounds cut most rows off. Reporting it costs nothing."""


@dataclass
class Charges:
    """What a fit promises to units, and what it has booked, in a ledger if there is one.

    Each part is booked before it is spent; parts add up to the limit, exactly
    (docs/theory/mechanisms.md, Lemma 61).
    """

    ledger: Any
    budget: Budget
    limit: ZCDP
    unit: Unit
    purpose: str
    booked: ZCDP = field(default_factory=ZCDP.free)
    marks: frozenset[str] = frozenset()

    def open(self, rows: RowSource) -> None:
        """Open the ledger; raise `BudgetRefused` if it does not cover the whole limit even now.

        Marks are made by which it knows if it has booked these rows before.
        """
        if isinstance(self.ledger, str | os.PathLike):
            self.ledger = PrivacyLedger(self.ledger)
        key = getattr(self.ledger, "row_key", None)
        if key is not None:
            self.marks = rows.marks(key)
        if not isinstance(self.ledger, PrivacyLedger):
            return
        self.ledger.check_unit(str(self.unit))
        left = self.ledger.remaining
        if left < self.limit:
            raise self.ledger.refused(self.limit, left)

    def book(self, cost: ZCDP | None = None) -> None:
        """Book a part of the limit for good, or what is left of it; or raise `BudgetRefused`."""
        if cost is None:
            cost = ZCDP(self.limit.rho - self.booked.rho)
        reserve(self.ledger, cost, purpose=self.purpose, unit=self.unit, marks=self.marks)
        self.booked = self.booked + cost


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateEstimator(PrivateLinearModel, Generic[Settings]):
    """A model with a budget, and the fit that keeps its promise: the parameters that all share.

    A subclass checks its parameters (`_settings`), and says how a fit is prepared (`_prepare`) and
    what beside coefficients is held of a solution (`_state`).
    """

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
    averages_units: ClassVar[bool] = False
    """Whether the rows of a unit count together, as one; else each of them is charged."""

    _books_in_parts: ClassVar[bool] = False
    """Whether each part of the budget is booked just before it is released."""

    @classmethod
    def from_formula(cls, formula: str, schema: Any, **settings: Any) -> Self:
        """Return a model, not fitted yet, whose features are the terms of a formula.

        Parameters
        ----------
        formula : str
            Such as ``"charges ~ age + I(age**2) + smoker*bmi + C(region) + bs(hours,
            knots=[20, 40])"``. Terms are evaluated row by row, with declared levels, bounds and
            knots; bounds of terms follow from the declared ones.
        schema, **settings
            The parameters of the model. `fit` and `predict` take data frames of this schema.
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
        check: bool | float = True,
        unit: Any = None,
        **unknown: Any,
    ) -> Self:
        """Fit the model, spending the whole budget.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features), or rows read by a schema
            Private rows, clipped to `feature_bounds`. Columns of a frame may be boolean, and
            `categories`. With a `schema`, a frame is the raw table, target included. Rows that were
            read by a schema (`read_rows`, `TableSchema.encode`, `dpscreen.scan`) bring their
            privacy unit along. A Dask array or data frame is fitted on its cluster, `dpscreen.scan`
            reads a file part by part: the coefficients are the same, to the last bit. Where the
            estimator takes sparse rows, a scipy matrix or a frame of sparse columns stays sparse:
            its bounds are ± the larger of their ends, so that zero stays zero, and not tightened.
        y : array-like of shape (n_samples,)
            Private targets, clipped to `target_bounds`. None for rows that were read by a schema;
            the name of a column for a source that exports Arrow, whose others are the features.
        ledger : PrivacyLedger or path, default=None
            Where to book the budget before anything is released. If it does not fit there,
            nothing is released and `BudgetRefused` says what is left. A regression table books its
            noisy count first and, unless the table is refused, the rest.
        check : bool or float, default=True
            Whether rows are checked against the `schema` first, as by `schema.check`, so that a
            format mistake spends no budget; a float is another `most_unreadable` than 0.05. False
            for pipelines whose failures others see: what does not fit then counts as missing. Dask
            frames, and rows that `read_rows` or `encode` returned, are not checked.
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
            The rows do not fit the schema. Nothing is booked.
        TableRefused
            Of a regression table alone: it is impossible with so many rows and features at this
            budget. Only what it was decided from is charged.
        """
        if "sample_weight" in unknown:
            raise TypeError(message("fit.weights"))
        if unknown:
            raise TypeError(message("fit.unknown", names=", ".join(map(plain, unknown))))
        refuse_learnt_steps()
        with refit(self):
            # What is asked for: public, all of it.
            schema = self._declared_schema()
            if schema is not None:
                self.schema_ = schema
            parameters, ids = checked_parameters(self), None
            if unit is None:
                promised = unit_of_rows(X, parameters["rows_per_unit"], schema)
            else:
                X, ids, promised = take_ids(self, X, unit, schema)
            budget = Budget(parameters["epsilon"], parameters["delta"])
            limit = ZCDP.within(budget)
            charges = Charges(ledger, budget, limit, promised, type(self).__name__)
            settings = self._settings(parameters, promised)
            noise = noise_source(self.random_state)
            counted = ledger is None and noise.secure
            unreadable = MOST_UNREADABLE if check is True else None if check is False else check

            with closing(private_rows(self, X, y, ids, unreadable)) as rows:
                values = values_of(rows) if counted else None
                start = self._prepare(settings, charges, noise, rows)
                charges.open(rows)
                # Whatever parameters can make fail has failed by now; then the budget is gone.
                if not self._books_in_parts:
                    charges.book()
                try:
                    self.privacy_ = self._deliver(start)
                except TableRefused as refusal:
                    if counted and refusal.privacy is not None:
                        count_fit(values, refusal.charged, budget.delta)
                    raise

        self._warn_of_release(budget.delta)
        if counted:
            count_fit(values, limit, budget.delta)
        return self

    def _declared_schema(self) -> TableSchema | None:
        """Return the schema as it is given now; refuse one that this model cannot be fitted by.

        Classes and categories, the other declarations, are refused here, too.
        """
        if self.categories is not None:
            declared_levels(self.categories)
        if self.family.n_classes:
            declared_classes(self.classes)
        if self.schema is None:
            return None
        declared = as_schema(self.schema)
        declared.check()
        if not self.family.fits(declared.classes):
            raise ValueError(message("fit.target-not-binary", model=type(self).__name__))
        centred = tuple(one.name for one in declared.derived if one.centred)
        if centred and not self._fits_intercept:
            raise ValueError(message("fit.centred", terms=centred))
        return declared

    def check_parameters(self) -> None:
        """Raise what `fit` would raise because of its parameters, without any rows.

        Bounds are left out: how many there must be depends on the rows.
        """
        self._declared_schema()
        parameters = checked_parameters(self)
        Budget(parameters["epsilon"], parameters["delta"])
        self._settings(parameters, unit_of_rows(None, parameters["rows_per_unit"]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.family.in_parts
        tags.input_tags.sparse = (
            getattr(self, "_takes_sparse", False) and getattr(self, "standardize", 0) is not True
        )
        if tags.regressor_tags is not None:
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
        found = declared_bounds(features, target, names, zero_one)
        if not self.family.fits(range(self.family.n_classes), found[1][0]):
            raise ValueError(message("fit.target-negative", model=type(self).__name__))
        return found

    @property
    def _fits_intercept(self) -> bool:
        return bool(self.fit_intercept)

    def _public_facts(self) -> tuple[str, ...]:
        """Return what every statement says is public."""
        columns, classes = getattr(self, "columns_", None), getattr(self, "classes_", None)
        counted = f"the columns and their number, {self.n_features_in_}"
        if (schema := self.table_schema) is not None:
            counted = f"the columns and their number, {len(schema.columns)}"
            counted += f", and the {how_many(self.n_features_in_, 'feature')} that are made of them"
        facts = [
            "all parameters, the bounds of the features and the target among them",
            counted,
            *(() if columns is None else columns.public),
        ]
        if classes is not None:
            first, second = (plain(str(label)) for label in classes.tolist())
            facts.append(f"the two classes, {first} and {second}")
        return tuple(facts)

    def released(self) -> Release:
        """Return all that the model has released."""
        from dpscreen.models.release import release_of

        check_is_fitted(self)
        return release_of(self, self._public_bounds(), fit_intercept=self._fits_intercept)

    @abstractmethod
    def _settings(self, parameters: dict[str, Any], unit: Unit) -> Settings:
        """Return what checked parameters ask for, for a promise that is made to such units."""

    def _warn_of_release(self, delta: float) -> None:
        """Warn, two calls up, of what released numbers and public ones show."""
        if self.fallback_ is not None:
            warnings.warn(fallback_words(self.fallback_), FallbackWarning, stacklevel=3)
        n_rows = getattr(self, "n_rows_", self.n_rows)
        if n_rows is not None and delta * n_rows >= 1:
            warnings.warn(message("fit.weak-delta"), WeakDeltaWarning, stacklevel=3)
        if notes := getattr(self, "bounds_notes_", ()):
            found = message("fit.shared-value", found="; ".join(map(str, notes)))
            warnings.warn(found, BoundsWarning, stacklevel=3)

    @abstractmethod
    def _prepare(self, settings: Settings, charges: Charges, noise: Noise, rows: RowSource) -> Any:
        """Return all that `_deliver` needs.

        Whatever parameters can make fail must fail here: nothing is booked yet, and no noise drawn.
        """

    def _deliver(self, start: Any) -> PrivacyStatement:
        """Spend the budget, release the model and account for it.

        Where released numbers fail, what was held last stays. The failure is dropped with its text
        and its frames, which may hold rows. Interrupts and failures of the machine are passed on,
        and the estimator is then unfitted; what was booked stays booked.
        """
        with blas_threads().limit(limits=1):  # several wait for each other; sums have a pool
            start = self._counted(start)
            units = start.units
            nothing = Solution(np.zeros(units.n_candidates), 0, None, units.target_bound)
            self._keep(START, units, nothing)
            try:
                with np.errstate(divide="warn", over="warn", invalid="warn", under="ignore"):
                    self._spend(start)
                self.fallback_ = None
            except PASSED_ON:
                raise
            except Exception:
                pass
            return self._statement(start, start.charges.budget)

    def _counted(self, start: Any) -> Any:
        """Release what comes before any model, such as the number of rows."""
        return start

    @abstractmethod
    def _spend(self, start: Any) -> None:
        """Release the model, and hold each whole one on the way (`_keep`)."""

    @abstractmethod
    def _statement(self, start: Any, budget: Budget) -> PrivacyStatement:
        """Return the statement of all that was released, wherever the fit ended."""

    def _keep(
        self, stage: str, units: PublicUnits, solution: Solution, *others: Array | float
    ) -> None:
        """Hold what is released by now as a whole model, in the user's units.

        Where it, or another number, is not finite, raise and hold what was before.
        """
        coef, intercept = units.in_users_units(solution.weights)
        numbers = (coef, intercept, units.feature_bounds, units.target_bounds, solution.deviation)
        if not all(np.isfinite(one).all() for one in (*numbers, *others)):
            raise ArithmeticError("a released number is not finite.")
        state = self._state(units, solution, coef, intercept)
        state |= {"coef_": coef, "intercept_": intercept, "n_iter_": solution.n_iter}
        if self.family.n_classes:
            state |= {"coef_": coef[None, :], "intercept_": np.array([intercept])}
        if hasattr(self, "missing_as_"):
            state["missing_as_"] = np.array(units.feature_centres)
        self.__dict__.update(state, fallback_=stage)

    @abstractmethod
    def _state(
        self, units: PublicUnits, solution: Solution, coef: Array, intercept: float
    ) -> dict[str, Any]:
        """Return the attributes that this kind of model has beside those of every one."""


@dataclass(frozen=True)
class FitStart:
    """All that a `ScalingModel` has when it begins to spend; `bounds` are the public ones.

    `units` are those of a model before marginals are released: from public numbers alone. The
    places of coefficients of `interest`, and of those `required`, are for tables.
    """

    charges: Charges
    choices: Choices
    bounds: tuple[Array, Array]
    units: PublicUnits
    spending: Spending
    rows: RowSource
    halves: list[SplitHalf] = field(default_factory=list)
    interest: tuple[int, ...] = ()
    required: tuple[int, ...] = ()


class ScalingModel(PrivateEstimator[Choices]):
    """A linear model that first releases the marginals: centres, scales and clipping ranges.

    Then it spends the rest: `_spend`, or what `_solve` releases. `_counted` is what comes before.
    """

    row_norm: float | None
    standardize: bool | str
    offset: str | int | None = None

    feature_bounds_: Array
    target_bounds_: Array
    scale_: float
    n_rows_: int
    bounds_notes_: tuple[BoundsNote, ...]

    @abstractmethod
    def _solve(self, task: Task, rows: RowSource) -> Solution:
        """Release weights for what is left of the budget; `rows` are those of the task."""

    def _settings(self, parameters: dict[str, Any], unit: Unit) -> Choices:
        owned = unit.whole or unit.column is not None
        if self.averages_units and unit.rows_per_unit > 1 and not owned:
            raise ValueError(message("unit.unknown-owners", model=type(self).__name__))
        known = parameters.keys() & Choices.__dataclass_fields__
        return Choices(
            intercept=parameters["fit_intercept"], **{name: parameters[name] for name in known}
        )

    def _prepare(
        self, settings: Choices, charges: Charges, noise: Noise, rows: RowSource
    ) -> FitStart:
        features, target = self._public_bounds()
        if rows.keeps_zero and settings.standardize is True:
            raise ValueError(message("fit.sparse-standardized"))
        choices = replace(
            settings,
            standardize=False if rows.keeps_zero else settings.standardize,
            offset=None if self.offset is None else self._place_of_offset(),
        )
        spending = Spending.of(
            charges.budget,
            charges.unit,
            noise,
            n_rows=choices.n_rows,
            n_features=rows.n_features,
            averaged=rows.owners is not None,
        )
        bounds = rows.usable_bounds(features), target
        unit, predictor = self.family.target_units(float(target[1]))
        units = PublicUnits(
            *bounds,
            constant=choices.intercept,
            target_at=None if self.family.quadratic else 0.0,
            target_unit=unit,
            predictor_at=predictor,
        )
        self.bounds_notes_ = ()
        return FitStart(charges, choices, bounds, units, spending, rows)

    def _place_of_offset(self) -> int:
        """Return which feature is the offset."""
        names = tuple(map(str, self.feature_names_out_))
        places: dict[Any, int] = {name: place for place, name in enumerate(names)}
        places |= {place: place for place in range(len(names))}
        if self.offset not in places or isinstance(self.offset, bool) or len(names) < 2:
            raise ValueError(message("fit.offset", names=names))
        return places[self.offset]

    def _counted(self, start: FitStart) -> FitStart:
        """Release the number of rows that rules use, unless one is public."""
        if start.choices.n_rows is None:
            start = replace(start, spending=start.spending.counted(start.rows.n_rows))
        self.n_rows_ = start.spending.regime.n_rows
        return start

    def _spend(self, start: FitStart) -> None:
        """Release the model from all rows."""
        self._release(start)

    def _release(self, start: FitStart) -> tuple[Task, PublicUnits, Solution]:
        """Release the model from the rows that are given, out of their spending."""
        task, units = standardise(
            start.spending, start.rows, start.bounds, start.choices, family=self.family
        )
        self._keep_centre(task, units, start.bounds[0])
        solution = self._solve(replace(task, keep=partial(self._keep, PATH, units)), start.rows)
        self._keep(MODEL, units, solution)
        return task, units, solution

    def _keep_centre(self, task: Task, units: PublicUnits, declared: Array) -> None:
        """Hold what marginals say: a model without features, and columns that share one value."""
        names = self.feature_names_out_ if task.at_ends else ()  # there may be very many
        notes = []
        for feature, end in task.at_ends:
            name, (low, high) = plain(str(names[feature])), map(float, declared[feature])
            notes.append(BoundsNote(name, low, high, None if end == NEITHER else end))
        at = end_of_target(task, units)
        if at is not None:
            notes.append(BoundsNote(None, *units.target_ends, at))
        self.bounds_notes_ = tuple(notes)
        weights = np.zeros(units.n_candidates)
        weights[task.n_features :] = task.start
        self._keep(CENTRE, units, Solution(weights, 0, None, task.residual_scale))

    def _state(
        self, units: PublicUnits, solution: Solution, _coef: Array, _intercept: float
    ) -> dict[str, Any]:
        state: dict[str, Any] = {"feature_bounds_": units.feature_bounds}
        if self.family.n_classes:
            return state
        scale = solution.deviation * units.target_unit
        return state | {"target_bounds_": units.target_bounds, "scale_": scale}

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

    def _statement(self, start: FitStart, budget: Budget) -> PrivacyStatement:
        public = self._public_facts()
        if start.choices.n_rows is not None:
            public = (*public, f"n_rows, {self.n_rows_}, on which the rules rest")
        public = (*public, *start.rows.disclosed)
        statement = partial(PrivacyStatement.of, budget, public=public, arithmetic=EXACT)
        if not start.halves:
            return statement(start.spending.accountant, composition=COMPOSITION)
        charged = (start.spending, *(half.spending for half in start.halves))
        return split.parallel_statement(
            float(split.parallel_cost(*charged)),
            *(statement(one.accountant, composition=IN_HALVES) for one in charged),
        )


def noise_source(random_state: Any) -> Noise:
    """Return secure noise for None; anything else is reproducible, and warned about.

    Accepts a whole number, a name, a numpy generator or RandomState, or a `Noise` of the caller's,
    which alone is never watched (`dpscreen.privacy.replay`).
    """
    own: Noise
    match random_state:
        case Noise():
            own = random_state
        case None:
            own = SecureNoise()
        case str():
            own = SeededNoise(random_state)
        case np.random.Generator():
            own = SeededNoise(int(random_state.integers(2**63)))
        case np.random.RandomState():
            own = SeededNoise(int(random_state.randint(2**31 - 1)))
        case int() | np.integer() if not isinstance(random_state, bool) and random_state >= 0:
            own = SeededNoise(int(random_state))
        case _:
            raise ValueError(message("fit.random-state", given=type(random_state).__name__))
    noise = own if own is random_state else watched(own)
    if not noise.secure:
        why = message("fit.seeded") if noise is own else message("fit.watched")
        warnings.warn(why, SeededNoiseWarning, stacklevel=3)
    return noise


EXACT = (
    "exact: features are truncated to 2^-14 of their half-width and clipped residuals rounded to "
    "2^-14 of the clip, sums are of whole numbers, and noise is sampled without rounding"
)


@contextmanager
def refit(estimator: BaseEstimator) -> Iterator[None]:
    """Begin a fit with nothing left of an earlier one, and leave nothing of one that fails."""
    held = vars(estimator)
    given = {name: one for name, one in held.items() if not name.endswith("_") or name[0] == "_"}
    try:
        held.clear()
        held.update(given)
        yield
    except BaseException:
        held.clear()
        held.update(given)
        raise


# --- threads --------------------------------------------------------------------------------------


@cache
def blas_threads() -> Any:
    """Find the libraries once: reading the process's map anew took a quarter of a small fit."""
    return ThreadpoolController().select(user_api="blas")
