"""PrivateLasso: sparse private regression that chooses its own settings, within one budget.

FreeScreen is the same by a path that screens itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dpscreen.models import parameters as check
from dpscreen.models.base import PathModel
from dpscreen.privacy.budget import Unit
from dpscreen.rows.source import PublicUnits, RowSource
from dpscreen.solvers import rules
from dpscreen.solvers.base import Choices, Solution, Task
from dpscreen.solvers.inference import SecondTable
from dpscreen.solvers.least_squares import regress
from dpscreen.solvers.noisy_gradient import rows_fill_the_norm, solve_noisy_gradient
from dpscreen.solvers.quality import Ranges, release_quality
from dpscreen.solvers.stagewise import (
    FREE_SCREEN,
    screened,
    solve_frank_wolfe,
    solve_free_screen,
    solve_stagewise,
)
from dpscreen.solvers.walk import solve_walk, walks_on_line

WALK = "walk"
SOLVERS = {
    "stagewise": solve_stagewise,
    FREE_SCREEN: solve_free_screen,
    "frank-wolfe": solve_frank_wolfe,
    "noisy-gradient": solve_noisy_gradient,
}


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateLasso(PathModel):
    """Sparse linear regression under differential privacy that needs a budget and bounds only.

    The default solver walks: each step moves one signed feature a little, chosen by a noisy maximum
    of the sums of clipped residuals. The clip follows the residuals' scale, which is estimated on
    the way; loose bounds are tightened first, and what was chosen is refitted. Every estimate is
    paid for out of the one budget, and every choice left None follows a rule in public and released
    numbers (docs/private-lasso.md).

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
        along; truths are 0 and 1. None of these needs `feature_bounds`.
    radius : float, default=None
        How long the path is: the L1 norm of the weights never exceeds it. In the target's units,
        features being mapped onto [−1, 1]. None: about √T/2 deviations of the target.
    n_iter : int, default=None
        Number of steps T, or of gradients. None: a quarter of the signal M between 6 and 200, or
        2.5√M where that is more.
    clip : float, default=None
        Bound on a row's residual, in the target's units. None: a multiple of the residuals' scale.
    row_norm : float, default=None
        Public L2 bound of a row whose features are mapped onto [−1, 1]; longer rows are shortened.
        With it the features keep their public bounds, and noisy gradients may be used.
    max_features : int, default=None
        At most so many distinct features ever enter the model. Costs nothing. A path then takes at
        most two steps for each; steps along all features drop the weakest at the end.
    standardize : {"auto", True, False}, default="auto"
        Whether numeric features are placed privately: centre, scale, and tighter bounds. "auto"
        does so where there are rows enough for the budget, True always. One pair of bounds for all
        that is even about zero, (-8, 8) at most, declares standardised columns: with few rows
        "auto" only checks that they lie about zero, and how wide they are. Target bounds even about
        zero declare a target about zero, which is checked too. One of yes and
        no, whose bounds are whole numbers next to each other, such as (0, 1) or (1, 2), keeps them.
        Sparse rows keep the public bounds: "auto" is False, and True is refused.
    inference : {None, "split"}, default=None
        "split": secret coins send each row to one of two halves. One selects and gives the model,
        the other gives 95 % intervals for at most 20 of the selected features by the table of
        `PrivateOLS`, each half at the whole budget. What has no interval is told in `inference_`.
    solver : {"auto", "stagewise", "free-screen", "frank-wolfe", "noisy-gradient"}, default="auto"
        "auto": steps along all features at once where noise lets all be seen ("walk" in `solver_`),
        else stagewise; neither if `row_norm` is given and a paid check speaks for noisy gradients.
        "free-screen": stagewise and screened halfway, as :class:`FreeScreen`.
    fit_intercept : bool, default=True
        Estimate an intercept inside the same budget. Without it, predictions centre on the middle
        of the target's bounds, which are public or released.
    n_rows : int, default=None
        A public number of rows for rules to use. None: a noisy count, 1 to 4 % of the budget; the
        true number is disclosed nowhere.
    quality : bool, default=True
        Whether to release how good the model is, `quality_`, for 3 % of the budget.
    rows_per_unit : int, default=None
        The most rows that one unit, a person for example, has. The promise is then for adding or
        removing a unit, and all noise is so many times as large. More than one not with
        ``inference="split"``. None: what the rows say, if they were read by a schema that names a
        unit; else 1, and the promise is for a row.
    random_state : None, int, str or numpy generator, default=None
        None draws noise from a cryptographic stream. Anything else is reproducible, not private,
        and warned about.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_features,), float
        The released model, in the user's units. It applies to features clipped to
        `feature_bounds_`, as `predict` does.
    feature_bounds_, target_bounds_ : ndarray of shape (n_features, 2), ndarray of shape (2,)
        The bounds that rows were clipped to: public, or released and inside the public ones.
    path_ : Path or None
        The released path: feature, sign and length of every step, with features mapped onto
        [−1, 1], before small weights were dropped and the rest refitted. A feature's number equal
        to n_features is the constant (Frank-Wolfe only). None for noisy gradients, and where steps
        went along all features.
    selected_ : ndarray of shape (n_features,), bool
        What the path chose, or what stands out of the noise after steps along all features. Where
        a path is asked for and rows abound, the refit takes all, and others get a coefficient too.
    scale_ : float
        The last released deviation of the residuals.
    solver_ : str
        The solver that was used.
    n_iter_ : int
        Steps or gradients taken: always as planned, because stopping early would look at the data.
    n_rows_ : int
        The number of rows that rules used: public, or a noisy count.
    quality_ : Quality
        R² and typical error (root mean squared error), each with a 95 % interval, or not known for
        a reason; on the rows of the fit, with ``inference="split"`` on rows that did not choose the
        model. Print it.
    fallback_ : str or None
        None; or, where the fit failed numerically after the budget was charged, how far it had come
        ("start", "centre", "path", "model"): the model is what was released by then.
    bounds_notes_ : tuple of str
        Columns whose rows seem to lie at an end of the declared bounds.
    inference_ : Inference
        Only with ``inference="split"``: `available`, `wording` and `intervals`, each with feature,
        name, coefficient, standard_error, low and high, in the user's units. Print it.
    privacy_ : PrivacyStatement
        What is promised, and what it rests on. Print it.
    n_features_in_, feature_names_in_
        As in every scikit-learn estimator: of the columns.
    feature_names_out_ : ndarray of shape (n_features,)
        The names of the features, one for each coefficient: age, ward=B.
    columns_ : FrameColumns
        What the columns hold, if the rows were a data frame with truths or categories.

    Notes
    -----
    Coefficients are shrunken, noisy and selected; no standard errors are valid, but those of
    ``inference="split"``. `noise_p_values` tests only whether a choice could be privacy noise.
    Expect no useful model where M = n√(2ρ)/ln(2d) is below 20.

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

    epsilon: float | None = None
    delta: float | None = None
    feature_bounds: Any = None
    target_bounds: Any = None
    categories: Any = None
    radius: float | None = None
    n_iter: int | None = None
    clip: float | None = None
    row_norm: float | None = None
    max_features: int | None = None
    standardize: bool | str = "auto"
    inference: str | None = None
    solver: str = "auto"
    fit_intercept: bool = True
    n_rows: int | None = None
    quality: bool = True
    rows_per_unit: int | None = None
    random_state: Any = None

    def _settings(self, unit: Unit) -> Choices:
        check.choice("solver", self.solver, ("auto", *SOLVERS))
        return replace(
            super()._settings(unit),
            radius=check.optional(check.size, "radius", self.radius),
            clip=check.optional(check.size, "clip", self.clip),
        )

    def _solve(self, task: Task, rows: RowSource) -> Solution:
        self.solver_ = self.solver if self.solver != "auto" else _best_solver(task)
        rows.announce(_n_passes(task, self.solver_))
        solution = self._walk(task, {**SOLVERS, WALK: solve_walk}[self.solver_])
        if self.solver_ == FREE_SCREEN:
            self.screened_ = screened(self.path_, task.n_features)
        return solution

    def _measure(
        self, task: Task, units: PublicUnits, solution: Solution, *, in_sample: bool
    ) -> None:
        self.quality_ = release_quality(
            task.spending,
            task.design,
            solution.weights,
            Ranges.of(units, solution.weights, solution.deviation, task.deviation),
            cost=task.spending.remaining,
            in_sample=in_sample,
        )

    def _table(self, _task: Task) -> SecondTable:
        return SecondTable(regress)


def _n_passes(task: Task, solver: str) -> int:
    """Return how often the rows will be looked at, about."""
    if solver == WALK:
        return 1 + len(rules.walk_parts())
    if solver != "stagewise":
        return task.n_steps
    return task.path_steps + (1 + len(rules.newton_parts()) if task.refits else 0)


def _best_solver(task: Task) -> str:
    """Return the solver: a walk where noise lets all features be seen, else stagewise.

    Neither where rows are short and a paid check agrees.
    """
    row_norm = task.choices.row_norm
    if row_norm is None or task.choices.radius is not None:
        return WALK if walks_on_line(task) else "stagewise"
    pays = rules.gradients_may_pay(task.regime, row_norm) and rows_fill_the_norm(task, row_norm)
    return "noisy-gradient" if pays else "stagewise"


@dataclass(kw_only=True, repr=False, eq=False)
class FreeScreen(PrivateLasso):
    """Sparse linear regression by a private stagewise path that is screened halfway, for free.

    The path is that of :class:`PrivateLasso` with ``solver="stagewise"``: each step moves one
    signed feature, selected by a noisy maximum. After half of the steps, features that were never
    selected stop being candidates, provided that at most two thirds of the steps so far selected a
    new feature; otherwise nothing is screened and the fit is that of the stagewise path. The rule
    uses released selections only, so it costs no budget (docs/privacy.md, Lemma 7), and later
    steps look at fewer columns. In simulations with few true features it selects better than the
    path alone, and about as well as half as many steps; on collinear real tables it does not
    (docs/open-problems.md).

    Parameters that are not listed here, and other attributes, are as in :class:`PrivateLasso`.

    Parameters
    ----------
    solver : str, default="free-screen"
        The path with screening. Other solvers are those of :class:`PrivateLasso`.

    Attributes
    ----------
    screened_ : ndarray of shape (n_features,), bool
        The features that were no candidates in the second half of the path; none where the rule
        did not apply. Computed from `path_`.

    Notes
    -----
    `noise_p_values` uses the steps before screening only: how many features compete afterwards
    depends on the path (docs/private-lasso.md, Lemma 15).

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

    solver: str = FREE_SCREEN
