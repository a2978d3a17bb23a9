"""Sparse private regression that chooses its own settings, within one budget.

`SparseModel` is what sparse models of all families share; `PrivateLasso` is that of numbers, and
`FreeScreen` the same by a path that screens itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen._core.messages import message
from dpscreen.models.base import FitStart, ScalingModel
from dpscreen.models.delivery import MODEL
from dpscreen.models.intervals import Inference, of_split
from dpscreen.models.parameters import Rule
from dpscreen.privacy.budget import Unit
from dpscreen.rows.source import PublicUnits, RowSource
from dpscreen.solvers import rules, split
from dpscreen.solvers.base import Choices, Solution, Task
from dpscreen.solvers.clipped_frank_wolfe import solve_frank_wolfe
from dpscreen.solvers.engine import ROUNDS, is_dense, solve
from dpscreen.solvers.free_screen import FREE_SCREEN, ScreeningRun, screened
from dpscreen.solvers.prediction_range import RangedModel, choose_range, range_share
from dpscreen.solvers.selection import PathRun

DENSE, STAGEWISE = "dense", "stagewise"
SOLVERS: dict[str, Callable[[Task], Solution]] = {
    STAGEWISE: partial(solve, run_of=PathRun),
    FREE_SCREEN: partial(solve, run_of=ScreeningRun),
    "frank-wolfe": solve_frank_wolfe,
}


@dataclass(kw_only=True, repr=False, eq=False)
class SparseModel(ScalingModel):
    """The goal of a sparse model: all features at once or a path of them, and its quality."""

    n_iter: int | None = None
    max_features: int | None = None
    standardize: bool | str = "auto"
    inference: str | None = None
    quality: bool = True
    rows_per_unit: int | None = None  # type: ignore[misc]

    row_norm: ClassVar[float | None] = None  # type: ignore[misc]
    radius: ClassVar[float | None] = None
    clip: ClassVar[float | None] = None
    solver: ClassVar[str] = "auto"

    _takes_sparse = True
    _rules: ClassVar[Mapping[str, Rule]] = {"solver": Rule(words=("auto", *SOLVERS))}

    def _settings(self, parameters: dict[str, Any], unit: Unit) -> Choices:
        if self.inference is not None and unit.rows_per_unit > 1:
            raise ValueError(message("fit.split-of-units", model=self.family.table.estimator))
        if self.inference is not None and self.offset is not None:
            raise ValueError(message("fit.split-with-offset", model=self.family.table.estimator))
        return super()._settings(parameters, unit)

    def _spend(self, start: FitStart) -> None:
        """Release the model, with intervals if they were asked for and can be had."""
        halves = False
        if self.inference is not None:
            reason = split.refusal(start.spending.regime)
            halves = reason is None
            self.inference_ = Inference.not_available(
                "the fit failed numerically."
                if halves
                else f"{reason} The model was fitted on all rows, without a split."
            )
        if halves:
            task, units, solution = self._spend_in_halves(start)
        else:
            task, units, solution = self._range(start, *self._release(start))
        if start.choices.quality:
            weights = solution.weights
            predictors = task.spread * float(np.linalg.norm(weights[: task.n_features]))
            scales = (solution.deviation, task.residual_scale, predictors)
            self._measure(task, units, weights, scales, in_sample=not halves)

    def _spend_in_halves(self, start: FitStart) -> tuple[Task, PublicUnits, Solution]:
        """Release the model from one half of the rows and intervals from the other (Lemma 16).

        What is returned is to be measured on the rows of the other half.
        """
        first, second = split.split(start.spending, start.rows)
        start.halves.extend((first, second))
        choices = replace(start.choices, quality=False)
        half = replace(start, spending=first.spending, rows=first.rows, choices=choices)
        task, units, solution = self._release(half)
        ranged, predicting, predictor = self._range(half, task, units, solution)
        kept = rules.QUALITY_SHARE if start.choices.quality else 0.0
        names = list(self.feature_names_out_)
        other = replace(second, spending=replace(second.spending, reserved=kept))
        found = split.infer(other, task, units, solution.weights, start.bounds[0])
        n_used = int(np.count_nonzero(solution.weights[: task.n_features]))
        self.inference_ = of_split(found, names, n_used)
        if start.choices.quality:
            design = second.rows.lattice(predicting)
            ranged = replace(ranged, spending=second.spending, design=design)
        return ranged, predicting, predictor

    def _solve(self, task: Task, rows: RowSource) -> Solution:
        """Solve the task, keeping what the prediction range and the quality cost."""
        dense = is_dense(task)
        rows.announce(ROUNDS + 1 + (0 if dense else task.path_steps))
        kept = (rules.QUALITY_SHARE if task.choices.quality else 0.0) + range_share(task)
        task = replace(task, spending=replace(task.spending, reserved=kept))
        solver = self.solver
        if solver == "auto":  # all features, unless noise hides their Gram matrix
            solver = DENSE if dense else STAGEWISE
        if "solver" in self.get_params():
            self.solver_ = solver
        solution = {**SOLVERS, DENSE: solve}[solver](task)
        if solver == FREE_SCREEN:
            self.screened_ = screened(self.path_, task.n_features)
        return solution

    def _range(
        self, start: FitStart, task: Task, units: PublicUnits, solution: Solution
    ) -> tuple[Task, PublicUnits, Solution]:
        """Release the range in which features enter predictions; return what predicts."""
        model = RangedModel(units, solution.weights, task.design, task.spread)
        model = choose_range(task, start.rows, model, start.bounds[0])
        solution = replace(solution, weights=model.weights)
        self._keep(MODEL, model.units, solution)
        return replace(task, design=model.design, spread=model.spread), model.units, solution

    def _state(
        self, units: PublicUnits, solution: Solution, coef: Array, intercept: float
    ) -> dict[str, Any]:
        n_features = len(units.feature_bounds)
        q_values = solution.q_values
        return super()._state(units, solution, coef, intercept) | {
            "path_": solution.path,
            "selected_": solution.selected(n_features),
            "q_values_": np.ones(n_features) if q_values is None else q_values,
        }


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateLasso(SparseModel):
    """Sparse linear regression under differential privacy that needs a budget and bounds only.

    Marginals are released first: loose bounds are tightened. Then a noisy Gram matrix is released
    and, in twelve rounds, the score of all features; each round moves to the posterior mean under a
    heavy-tailed prior. Where noise hides the Gram matrix, a private stagewise path selects features
    first. Every choice left None follows a rule in public and released numbers
    (docs/explanation/how-a-fit-works.md).

    Parameters
    ----------
    epsilon, delta : float
        The budget of the fit, all of which is spent. Choose delta far below 1/n.
    feature_bounds : pair, list of pairs, or mapping from column name to pair
        Public bounds (low, high), the same for all features or one pair each. They may be far too
        wide: see `standardize`. Never take them from the data.
    target_bounds : pair
        Public bounds of the target; they too may be wide.
    categories : mapping from column name to list of levels, default=None
        The levels that may occur in columns of a data frame, the reference first: a declaration,
        never learnt from rows. Each other level is a feature of 0 and 1, such as ward=B, and its
        coefficient is the effect against the reference; a cell that is none of the levels, or
        missing, counts as the reference. A pandas category and a polars Enum bring their levels
        along; booleans are 0 and 1. None of these needs `feature_bounds`.
    radius : float, default=None
        How long the path is: the L1 norm of the weights never exceeds it. In the target's units,
        features being mapped onto [−1, 1]. None: about √T/2 standard deviations of the target.
    n_iter : int, default=None
        Number of steps T of a path, which is then taken. None: a quarter of the signal M between 6
        and 200, or 2.5√M where that is more.
    clip : float, default=None
        Bound on a row's residual, in the target's units. None: a multiple of the residuals' scale.
    row_norm : float, default=None
        Public L2 bound of a row whose features are mapped onto [−1, 1]; larger norms are clipped.
        With it the features keep their public bounds.
    max_features : int, default=None
        At most so many distinct features have a coefficient. Costs nothing. A path then takes at
        most two steps for each; a fit of all features drops the weakest at the end.
    standardize : {"auto", True, False}, default="auto"
        Whether numeric features are standardised privately: centre, scale, tighter bounds. "auto"
        does so where there are rows enough for the budget, True always. With "auto", bounds that
        are even about zero say that a column, or the target, is expected about zero. Bounds that
        are whole numbers next to each other, such as (0, 1) or (1, 2), are kept, as those of two
        values. Sparse rows keep the public bounds: "auto" is False, and True is refused.
    inference : {None, "split"}, default=None
        "split": secret coins send each row to one of two halves. One selects and gives the model,
        the other gives 95 % intervals for at most 20 of the selected features by the table of
        `PrivateOLS`, each half at the whole budget. `inference_` lists what has none.
    solver : {"auto", "stagewise", "free-screen", "frank-wolfe"}, default="auto"
        "auto": all features at once where noise does not hide their Gram matrix ("dense" in
        `solver_`), else "stagewise". "free-screen" is that of :class:`FreeScreen`.
    fit_intercept : bool, default=True
        Estimate an intercept inside the same budget. Without it, predictions centre on the middle
        of the target's bounds, which are public or released.
    n_rows : int, default=None
        A public number of rows for rules to use. None: a noisy count, 1 to 4 % of the budget; the
        true number is disclosed nowhere.
    quality : bool, default=True
        Whether to release how good the model is, `quality_`, for 3 % of the budget.
    rows_per_unit : int, default=None
        The most rows that one unit, a person for example, has. The promise is then for a unit, and
        all noise is so many times as large. More than one not with ``inference="split"``. None:
        what the rows say, if they were read by a schema that names a unit; else 1.
    random_state : None, int, str or numpy generator, default=None
        None draws noise from a cryptographic stream. Anything else is reproducible, not private,
        and warned about.
    schema : TableSchema, mapping or path of a schema file, default=None
        By which `fit`, `predict` and `score` read the raw table, a data frame or a source that
        exports Arrow: target, privacy unit, levels, transforms, fills, and bounds that are not
        given. Predictions are in the units of the table then. `from_formula` sets it.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_features,), float
        The released model, in the user's units. It applies to features clipped to
        `feature_bounds_`, as `predict` does.
    schema_ : TableSchema
        The schema of the fit, if there was one.
    feature_bounds_, target_bounds_ : ndarray of shape (n_features, 2), ndarray of shape (2,)
        The bounds that rows were clipped to: public, or released and inside the public ones.
    path_ : Path or None
        The released path: feature, sign and length of every step, with features mapped onto
        [−1, 1], before the refit. A feature's number equal to n_features is the constant
        (Frank-Wolfe only). None where all features were fitted at once.
    selected_ : ndarray of shape (n_features,), bool
        The features selected at a false-discovery rate of 10 %: those with `q_values_` of at most
        0.1. Others may have a coefficient, for the sake of predictions. With ``radius`` or
        Frank-Wolfe: all features with a coefficient.
    q_values_ : ndarray of shape (n_features,)
        The least false-discovery rate at which each feature would be selected, by Benjamini and
        Hochberg over all features offered, counting sampling and privacy noise.
    scale_ : float
        The last released standard deviation of the residuals.
    solver_ : str
        The solver that was used.
    n_iter_ : int
        Steps or rounds taken: always as planned, because stopping early would look at the data.
    n_rows_ : int
        The number of rows that rules used: public, or a noisy count.
    quality_ : Quality
        R² and typical error (root mean squared error), each with a 95 % interval, or not known for
        a reason; on the rows of the fit, with ``inference="split"`` on rows that did not choose the
        model. Print it.
    fallback_ : str or None
        None; or, where the fit failed numerically after the budget was charged, how far it had come
        ("start", "centre", "path", "model"): the model is what was released by then.
    bounds_notes_ : tuple of BoundsNote
        Columns whose rows seem to lie at an end of the declared bounds: `column` (None of the
        target), `low`, `high` and `end`. Print one.
    inference_ : Inference
        Only with ``inference="split"``: `available`, `wording`, `intervals`. Print it.
    privacy_ : PrivacyStatement
        What is promised, and what it rests on. Print it.
    n_features_in_, feature_names_in_, feature_names_out_
        As in scikit-learn, of the columns; the last one, of the coefficients: age, ward=B.
    columns_ : FrameColumns
        What the columns hold, if the rows were a data frame with booleans or categories.

    Notes
    -----
    Coefficients are shrunken, noisy and selected; no standard errors are valid, but those of
    ``inference="split"``. Expect no useful model where M = n√(2ρ)/ln(2d) is below 20.

    Examples
    --------
    >>> import numpy as np
    >>> from dpscreen import PrivateLasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(50, 10, size=(5000, 20))
    >>> y = 2 * X[:, 0] - X[:, 3] + rng.normal(0, 5, size=5000)
    >>> model = PrivateLasso(epsilon=1, delta=1e-6, feature_bounds=(0, 200),
    ...                      target_bounds=(-500, 500)).fit(X, y)
    >>> bool(model.privacy_.holds and model.score(X, y) > 0.8)
    True
    """

    radius: float | None = None  # type: ignore[misc]
    clip: float | None = None  # type: ignore[misc]
    row_norm: float | None = None  # type: ignore[misc]
    solver: str = "auto"  # type: ignore[misc]


@dataclass(kw_only=True, repr=False, eq=False)
class FreeScreen(PrivateLasso):
    """Sparse linear regression by a private stagewise path that is screened halfway, for free.

    The path is that of :class:`PrivateLasso` with ``solver="stagewise"``: each step moves one
    signed feature, selected by a noisy maximum. After half of the steps, features that were never
    selected stop being candidates, provided that at most two thirds of the steps so far selected a
    new feature; otherwise nothing is screened. The rule uses released selections only, so it costs
    no budget (docs/theory/mechanisms.md, Lemma 7). In simulations with few true features it selects
    better than the path alone, on collinear real tables it does not (docs/open-problems.md).

    Parameters, and attributes that are not listed here, are those of :class:`PrivateLasso`.

    Attributes
    ----------
    screened_ : ndarray of shape (n_features,), bool
        The features that were no candidates in the second half of the path; none where the rule
        did not apply. Computed from `path_`.

    Examples
    --------
    >>> import numpy as np
    >>> from dpscreen import FreeScreen
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 200))
    >>> y = X[:, 0] - X[:, 3] + rng.normal(size=5000)
    >>> model = FreeScreen(epsilon=2, delta=1e-6, feature_bounds=(-4, 4),
    ...                    target_bounds=(-8, 8)).fit(X, y)
    >>> bool(model.selected_[0] and model.selected_[3])
    True
    """

    solver: str = FREE_SCREEN  # type: ignore[misc]
