"""PrivateOLS: a regression table of all features, under differential privacy.

`TableEstimator` is what tables of all families share.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen.models.base import Charges, FitStart, ScalingModel
from dpscreen.models.delivery import MODEL
from dpscreen.models.intervals import why_unidentified
from dpscreen.models.refusal import RequestedTable, refused, table_needs
from dpscreen.models.regression_table import RegressionTable, constant_beside, places_of
from dpscreen.models.table_model import TableModel
from dpscreen.privacy import ZCDP, Budget, Noise
from dpscreen.rows.source import PublicUnits, RowSource
from dpscreen.solvers import rules
from dpscreen.solvers.base import Choices, Solution, Spending
from dpscreen.solvers.marginals import WideTask, is_yes_no, release_target, standardise_widely
from dpscreen.solvers.table import TableRelease, TableRule, plan_of, release_table

OFFSET = "it is the offset: its coefficient is 1, and not estimated."


@dataclass(kw_only=True, repr=False, eq=False)
class TableEstimator(TableModel, ScalingModel):
    """The goal of a regression table: all features, refused where noise rules the table out."""

    quality: bool = True
    interest: Any = None
    required: Any = None
    rows_per_unit: int | None = None  # type: ignore[misc]
    table_rule: ClassVar[TableRule]

    averages_units = True
    _books_in_parts = True  # a table that is refused is charged for what was released alone

    def __init_subclass__(cls) -> None:
        cls.table_rule = TableRule.of(cls.family)

    def _prepare(
        self, settings: Choices, charges: Charges, noise: Noise, rows: RowSource
    ) -> FitStart:
        assert charges.unit.rows_per_unit == 1 or rows.owners is not None, "unknown owners"
        names = tuple(map(str, self.feature_names_out_))
        start = replace(
            super()._prepare(settings, charges, noise, rows),
            interest=tuple(places_of(self.interest or (), names)),
            required=tuple(places_of(self.required or (), names)),
        )
        if settings.n_rows:
            self._refuse(start, self.table_rule)
        return start

    def _counted(self, start: FitStart) -> FitStart:
        """Release a noisy count, unless a number of rows is public, and refuse what it rules out.

        Each part is booked before it is released (docs/theory/mechanisms.md, Lemma 61). Where the
        target has classes the share of outcomes decides, too, and is released next.
        """
        charges, spending = start.charges, start.spending

        def admit(counted: Spending, recount: ZCDP) -> None:
            self._refuse(replace(start, spending=counted), self.table_rule)
            if not self.family.n_classes:
                charges.book()
            elif recount.rho:
                charges.book(recount)

        if start.choices.n_rows is None:
            charges.book(spending.share(rules.COUNT_SHARE))
            start = replace(start, spending=spending.counted(start.rows.n_units, admit))
        elif not self.family.n_classes:
            charges.book()
        self.n_rows_ = start.spending.regime.n_rows
        return start

    def _refuse(self, start: FitStart, rule: TableRule) -> None:
        """Raise `TableRefused` if the rule, given what was released so far, excludes the table."""
        charges, rows = start.charges, start.rows
        n_rows = start.spending.regime.n_rows
        asked = RequestedTable(
            n_rows,
            rows.n_features,
            charges.budget,
            start.choices.intercept,
            counted="row" if rows.owners is None else "unit",
        )
        if (needs := table_needs(rule, asked)) is None:
            return
        charged, delta, statement = charges.booked, charges.budget.delta, None
        if charged.rho:
            self.n_rows_ = n_rows
            # At a large δ an ε of 0 may be certified, and is no budget.
            statement = self._statement(start, Budget(max(charged.epsilon(delta), 1e-9), delta))
        counted, instead = start.choices.n_rows is None, self.family.sparse.estimator
        raise refused(asked, needs, charged, statement, counted=counted, instead=instead)

    def _spend(self, start: FitStart) -> None:
        kept = rules.QUALITY_SHARE if start.choices.quality else 0.0
        target = None
        if self.family.n_classes:
            start.charges.book(start.spending.share(rules.CLASS_SHARE))
            target = release_target(
                start.spending, start.rows.singles, start.bounds[1], family=self.family
            )
            curvature = self.family.mean_curvature(target.start, 0.0)
            self._refuse(start, TableRule.of(self.family, curvature))
            start.charges.book()
        wide = standardise_widely(
            replace(start.spending, reserved=kept),
            start.rows,
            start.bounds,
            start.choices,
            family=self.family,
            known=(None, target),
        )
        self._keep_centre(wide.task, wide.units, start.bounds[0])
        found = release_table(
            wide,
            family=self.family,
            constant=wide.task.start,
            interest=start.interest,
            required=start.required,
        )
        self._take(wide, found)
        if start.choices.quality:
            moves = found.predicting[: len(wide.scales)]
            spread = moves * wide.scales / wide.units.feature_half_widths
            scales = (found.deviation, found.target_deviation, float(np.linalg.norm(spread)))
            task = replace(wide.task, spending=start.spending, design=wide.single)
            self._measure(task, wide.units, found.predicting, scales, in_sample=True)

    def _state(
        self, units: PublicUnits, solution: Solution, coef: Array, intercept: float
    ) -> dict[str, Any]:
        """Return a table without intervals, until there is one with them."""
        state, d = super()._state(units, solution, coef, intercept), len(coef)
        names, size = tuple(map(str, self.feature_names_out_)), units.n_candidates
        table = RegressionTable(
            names=names + (constant_beside(names),) * units.constant,
            coefficients=np.append(coef, (intercept,) * units.constant),
            covariance=np.zeros((size, size)),
            freedom=np.ones(size),
            clip_bias=np.zeros(size),
            largest_shift=np.zeros(size),
            scales=units.feature_half_widths,
            target_scale=solution.deviation,
            shortened=0.0,
            undetected=0.0,
            reasons=dict.fromkeys(range(d), "the fit failed numerically."),
            plain_errors=np.zeros(size),
        )
        return state | {"table_": table}

    def _take(self, wide: WideTask, found: TableRelease) -> None:
        """Hold what was released, in the user's units."""
        units, offset = wide.units, wide.task.choices.offset
        rounds = plan_of(self.family)
        n_steps = len(rounds.search + rounds.last)
        solution = Solution(found.predicting, n_steps, None, found.deviation)
        others = found.covariance, found.freedom, found.bias, found.plain, found.shift
        self._keep(MODEL, units, solution, *others, wide.scales)
        names = tuple(map(str, self.feature_names_out_))
        slopes, constant = units.in_users_units(found.weights)
        # Features without an interval that have bounds as 0 and 1, and may be numbers.
        alone = (one.feature for one in found.unidentified if not (one.partners or one.nuisance))
        binary = is_yes_no(units.feature_bounds)
        numbers = [j for j in alone if binary[j] and "=" not in names[j]]
        self.table_ = replace(
            self.table_,
            coefficients=np.append(slopes, (constant,) * units.constant),
            covariance=found.covariance,
            freedom=found.freedom,
            clip_bias=found.bias,
            largest_shift=found.shift,
            scales=wide.scales,
            target_scale=found.target_deviation,
            shortened=found.long_rows,
            undetected=found.undetected,
            reasons={one.feature: why_unidentified(one, names) for one in found.unidentified}
            | ({} if offset is None else {offset: OFFSET}),
            binary_bounds=frozenset(numbers),
            nuisance=frozenset(one.feature for one in found.unidentified if one.nuisance),
            offset=frozenset(() if offset is None else (offset,)),
            plain_errors=found.plain,
        )


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateOLS(TableEstimator):
    """Linear regression under differential privacy with standard errors, intervals and tests.

    All features, all rows, no selection. Noisy sums are taken of whitened features, so that
    collinear columns cost no more than others; Newton rounds follow on influences that are clipped
    where a released histogram says; and the meat of the sandwich covariance is released. Standard
    errors include sampling error (robust to unequal variances) and all privacy noise
    (docs/explanation/what-an-interval-covers.md).

    Parameters
    ----------
    epsilon, delta, target_bounds, categories, quality, random_state, schema
        As in `PrivateLasso`.
    feature_bounds : pair, list of pairs, or mapping from column name to pair
        Public bounds (low, high), the same for all features or one pair each. They may be wide,
        and are what the linear model is meant on: rows beyond are clipped. Never take them from
        the data. Whole numbers next to each other, such as (0, 1) and (1, 2), are taken for those
        of yes and no: of a small share, such as a rate of interest, declare less.
    fit_intercept : bool, default=True
        Whether there is a constant. Without it, the line goes through a released centre.
    n_rows : int, default=None
        A public number of rows, or of units if these have several, for rules to use. With it, a
        table that is impossible is refused before anything is charged. None: a noisy count, for 1
        to 4 % of the budget.
    interest : str or list of str, default=None
        Coefficients that the budget goes to, as the table names them; a category stands for its
        levels. All others are adjusted for, whatever noise hides of them, and not reported. None:
        all coefficients share the budget.
    required : str or list of str, default=None
        Features that are never dropped as collinear: what noise hides of them counts in the errors
        of the others. With `interest` none is dropped anyway.
    rows_per_unit : int, default=None
        Not needed: `fit(X, y, unit=ids)` or a schema says whose each row is. Then units count, each
        as one: least squares with weights 1/m for the m rows of a unit, noise for one unit whatever
        their number, and standard errors that are robust to correlation within units.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_features,), float
        The released model for predictions, in the user's units: that of the table, or posterior
        means of all features where some are not identifiable.
    params, bse, tvalues, pvalues : Series
        Coefficients, standard errors, their ratio and two-sided p-values by name, "const" last, or
        "(const)" beside a feature of that name. NaN where there is no interval.
    table_ : RegressionTable
        All of it, with `reasons` for what there is no interval of, and the bias of clips.
    inference_ : Inference
        The 95 % intervals, and what they mean. Print it.
    feature_bounds_, target_bounds_ : ndarray of shape (n_features, 2), ndarray of shape (2,)
        The bounds that rows were clipped to: the public ones, or 256 scales from the centre.
    n_iter_ : int
        Newton steps taken.
    rsquared, nobs : float
        Both as released or declared: of `quality_`, NaN if it is not known, and of `n_rows_`.
    scale_, n_rows_, quality_, fallback_, bounds_notes_, privacy_, n_features_in_, \
feature_names_in_, feature_names_out_, columns_
        As in `PrivateLasso`.

    Notes
    -----
    Where features are not separable at this budget, the later one is dropped from the table, as in
    R, unless it is `required`, and the other coefficients are of the model without it; a feature
    that noise hides is kept at its posterior mean, without an interval. The table says which. Where
    noise would hide the coefficients even of uncorrelated features, the fit stops after the noisy
    count, charges it alone, and raises `TableRefused`, which says how many rows, which epsilon or
    how few features would do.

    Examples
    --------
    >>> import numpy as np
    >>> from dpscreen import PrivateOLS
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(50, 10, size=(20000, 3))
    >>> y = 2 * X[:, 0] - X[:, 1] + rng.normal(0, 20, size=20000)
    >>> model = PrivateOLS(epsilon=1, delta=1e-6, feature_bounds=(0, 100),
    ...                    target_bounds=(-500, 500)).fit(X, y)
    >>> low, high = model.conf_int().loc["x0"]
    >>> bool(low < 2.2 and high > 1.8 and model.pvalues["x0"] < 0.001)
    True
    """
