"""PrivateLogistic: sparse private models of outcomes that are yes or no, within one budget."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dpscreen._core.words import plain
from dpscreen.models.base import FitStart, PathModel, ScalingModel
from dpscreen.models.outcomes import (
    OutcomeModel,
    as_outcomes,
    declared_classes,
    refuse_strangers,
)
from dpscreen.privacy.budget import Unit
from dpscreen.rows.source import PublicUnits, RowSource
from dpscreen.solvers import rules
from dpscreen.solvers.base import Choices, Solution, Task
from dpscreen.solvers.inference import SecondTable
from dpscreen.solvers.logistic import OutcomeTask, place_outcomes
from dpscreen.solvers.logit_table import log_odds_table
from dpscreen.solvers.outcome_walk import n_walk_steps, solve_outcomes, walks_on_outcomes
from dpscreen.solvers.quality import fitted_range, release_outcome_quality


class OutcomeEstimator(OutcomeModel, ScalingModel):  # type: ignore[misc]
    """What all private models of outcomes share: declared classes, and how rows are placed."""

    classes: Any
    target_bounds = (0.0, 1.0)

    def _settings(self, unit: Unit) -> Choices:
        declared_classes(self.classes)
        return super()._settings(unit)

    def _rows(self, X: Any, y: Any) -> RowSource:
        self.classes_ = declared_classes(self.classes)
        return refuse_strangers(super()._rows(X, as_outcomes(y, self.classes_)))

    def _public_facts(self) -> tuple[str, ...]:
        first, second = (plain(str(label)) for label in self.classes_.tolist())
        return (*super()._public_facts(), f"the two classes, {first} and {second}")

    def _state(self, units: PublicUnits, solution: Solution) -> dict[str, Any]:
        state = super()._state(units, solution)
        for name in ("scale_", "target_bounds_"):  # chances have neither
            del state[name]
        line = {"coef_": state["coef_"][None, :], "intercept_": np.array([state["intercept_"]])}
        return state | line

    def _public_units(self, start: FitStart) -> PublicUnits:
        return replace(super()._public_units(start), target_at=0.0)

    def _constant(self, task: Task, units: PublicUnits) -> Solution:
        assert isinstance(task, OutcomeTask), "as it was placed"
        nothing = super()._constant(task, units)
        nothing.weights[task.n_features :] = task.share.log_odds
        return nothing

    def _place(self, start: FitStart) -> tuple[Task, PublicUnits]:
        return place_outcomes(start.spending, start.rows, start.bounds[0], start.choices)


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateLogistic(OutcomeEstimator, PathModel):  # type: ignore[misc]
    """Sparse logistic regression under differential privacy that needs a budget and bounds only.

    `PrivateLasso` with another loss: each step moves one signed feature a little, chosen by a noisy
    maximum of the sums of residuals, which are chances less outcomes and lie in [−1, 1] whatever
    the weights. What was chosen is refitted by Newton steps. Where features are not many, none is
    chosen: all budget goes into steps along all of them at once. Every estimate
    is paid for out of the one budget, and every choice left None follows a rule in public and
    released numbers (docs/yes-no.md).

    Parameters
    ----------
    epsilon, delta : float
        The budget of the fit, all of which is spent. Choose delta far below 1/n.
    feature_bounds : pair, list of pairs, or mapping from column name to pair
        Public bounds (low, high), the same for all features or one pair each. They may be far too
        wide: see `standardize`. Never take them from the data.
    classes : pair of labels, default=(0, 1)
        The two classes of the target, the reference first: chances and odds are those of the
        second, in whatever order labels would sort. Numbers, truths or texts. A declaration, never
        learnt from rows; a target that holds anything else is refused. Rows that a schema read have
        0 and 1. scikit-learn's scorers of chances ("roc_auc", "neg_log_loss") take the label that
        sorts last for the second: where it is not, compare `predict_proba` with y yourself.
    categories : mapping from column name to list of levels, default=None
        The levels that may occur in columns of a data frame, the reference first, as in
        `PrivateLasso`.
    n_iter : int, default=None
        Number of steps T of a path. None: a quarter of the signal M between 6 and 200, or 2.5√M
        where that is more; 5 to 16 along all features where none is chosen.
    max_features : int, default=None
        At most so many distinct features ever enter the model. Costs nothing.
    standardize : {"auto", True, False}, default="auto"
        Whether numeric features are placed privately: centre, scale, and tighter bounds, as in
        `PrivateLasso`.
    inference : {None, "split"}, default=None
        "split": secret coins send each row to one of two halves. One selects and gives the model,
        the other gives 95 % intervals of log-odds for at most 20 of the selected features by the
        table of `PrivateLogit`, each half at the whole budget. What has no interval is told in
        `inference_`.
    fit_intercept : bool, default=True
        Estimate an intercept inside the same budget. Without it, the chance is ½ where all features
        are at the centres that were released, or in the middle of their bounds where none were.
    n_rows : int, default=None
        A public number of rows for rules to use. None: a noisy count, 1 to 4 % of the budget; the
        true number is disclosed nowhere.
    quality : bool, default=True
        Whether to release how good the model is, `quality_`, for 3 % of the budget.
    rows_per_unit : int, default=None
        The most rows that one unit, a person for example, has, as in `PrivateLasso`. More than one
        not with ``inference="split"``.
    random_state : None, int, str or numpy generator, default=None
        None draws noise from a cryptographic stream. Anything else is reproducible, not private,
        and warned about.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The declared classes, as declared.
    coef_, intercept_ : ndarray of shape (1, n_features), ndarray of shape (1,)
        The released model of the log-odds of the second class, in the user's units. It applies to
        features clipped to `feature_bounds_`, as `predict` does.
    feature_bounds_ : ndarray of shape (n_features, 2)
        The bounds that rows were clipped to: public, or released and inside the public ones.
    path_ : Path or None
        The released path: feature, sign and length of every step, with features mapped onto
        [−1, 1], before weights were dropped and the rest refitted. None where no feature was
        chosen; setting `n_iter` or `max_features` asks for a path.
    selected_ : ndarray of shape (n_features,), bool
        The features that stand out of sampling and privacy noise among all that were offered;
        others may have a coefficient, for the predictions' sake.
    n_iter_ : int
        Steps taken: always as planned, because stopping early would look at the data.
    n_rows_ : int
        The number of rows that rules used: public, or a noisy count.
    quality_ : OutcomeQuality
        AUC and deviance, each with a 95 % interval or not known, on the rows of the fit; with
        ``inference="split"`` on rows that did not choose the model. Print it.
    fallback_ : str or None
        None; or, where the fit failed numerically after the budget was charged, how far it had come
        ("start", "centre", "path", "model"): the model is what was released by then.
    bounds_notes_ : tuple of str
        Columns whose rows seem to lie at an end of the declared bounds.
    inference_ : Inference
        Only with ``inference="split"``, as in `PrivateLasso`, of log-odds: their exponentials are
        odds ratios. They are those of the model of these features alone. Print it.
    privacy_ : PrivacyStatement
        What is promised, and what it rests on. Print it.
    n_features_in_, feature_names_in_, feature_names_out_, columns_
        As in `PrivateLasso`.

    Notes
    -----
    Coefficients are shrunken, noisy and selected; no standard errors are valid, but those of
    ``inference="split"``. `PrivateLogit` has a table of all features with intervals, from all rows,
    where they are few enough for one. Where classes can be told apart without an error, weights
    stay finite, as the steps are. Expect no useful model where M = n√(2ρ)/ln(2d) is below 20, or
    the rarer class has fewer than some hundred rows.

    Examples
    --------
    >>> import numpy as np
    >>> from dpscreen import PrivateLogistic
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(50, 10, size=(5000, 20))
    >>> y = 0.2 * (X[:, 0] - X[:, 3]) + rng.logistic(size=5000) > 0
    >>> model = PrivateLogistic(epsilon=1, delta=1e-6, feature_bounds=(0, 200)).fit(X, y)
    >>> bool(model.privacy_.holds and model.score(X, y) > 0.75)
    True
    """

    row_norm = None

    epsilon: float | None = None
    delta: float | None = None
    feature_bounds: Any = None
    classes: Any = (0, 1)
    categories: Any = None
    n_iter: int | None = None
    max_features: int | None = None
    standardize: bool | str = "auto"
    inference: str | None = None
    fit_intercept: bool = True
    n_rows: int | None = None
    quality: bool = True
    rows_per_unit: int | None = None
    random_state: Any = None

    def _solve(self, task: Task, rows: RowSource) -> Solution:
        assert isinstance(task, OutcomeTask), "as it was placed"
        steps = (
            n_walk_steps(task)
            if walks_on_outcomes(task)
            else task.path_steps + len(rules.newton_parts())
        )
        rows.announce(1 + steps)
        return self._walk(task, solve_outcomes)

    def _measure(
        self, task: OutcomeTask, units: PublicUnits, solution: Solution, *, in_sample: bool
    ) -> None:
        self.quality_ = release_outcome_quality(
            task.spending,
            task.design,
            solution.weights,
            task.share.log_odds,
            fitted_range(units.effect_ranges(solution.weights)),
            spread=task.spread,
            cost=task.spending.remaining,
            in_sample=in_sample,
        )

    def _table(self, task: OutcomeTask) -> SecondTable:
        # The share of the first half is released: it costs the second nothing to start there.
        return SecondTable(partial(log_odds_table, task.share), telling=4 * task.share.variance)
