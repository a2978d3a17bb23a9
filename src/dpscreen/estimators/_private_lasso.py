"""PrivateLasso: sparse private regression that chooses its own settings, within one budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from dpscreen.estimators import _checks as check
from dpscreen.estimators import _private_lasso_bounds as bounds
from dpscreen.estimators import _private_lasso_inference as inference
from dpscreen.estimators import _private_lasso_rules as rules
from dpscreen.estimators._base import PrivateLinearModel, noise_source, warn_of_weak_delta
from dpscreen.estimators._private import EXACT
from dpscreen.estimators._private_lasso_gradients import rows_fill_the_norm, solve_noisy_gradient
from dpscreen.estimators._private_lasso_purse import Purse
from dpscreen.estimators._private_lasso_pvalues import noise_p_values
from dpscreen.estimators._private_lasso_stagewise import solve_frank_wolfe, solve_stagewise
from dpscreen.estimators._private_lasso_task import Choices, Solution, Task
from dpscreen.estimators._rows import RowSource
from dpscreen.estimators._sources import private_rows
from dpscreen.estimators._units import PublicUnits
from dpscreen.privacy import ZCDP, Accountant, Budget, Noise, PrivacyStatement
from dpscreen.privacy.ledger import reserve
from dpscreen.regression.lattice import UNITS, ExactDesign
from dpscreen.regression.stagewise import Path

Array = NDArray[np.float64]

SOLVERS = {
    "stagewise": solve_stagewise,
    "frank-wolfe": solve_frank_wolfe,
    "noisy-gradient": solve_noisy_gradient,
}


@dataclass(frozen=True)
class Settings:
    """The parameters of a fit, checked before any row is read."""

    budget: Budget
    choices: Choices
    standardize: bool | str
    solver: str
    n_rows: int | None
    split: bool


class PrivateLasso(PrivateLinearModel):
    """Sparse linear regression under differential privacy that needs a budget and bounds only.

    The default solver walks: each step moves one signed feature a little, chosen by a noisy maximum
    of the sums of clipped residuals. The clip follows the residuals' scale, which is estimated on
    the way; loose bounds are tightened first. Every estimate is paid for out of the one budget, and
    every choice left None follows a rule in public and released numbers (docs/private-lasso.md).

    Parameters
    ----------
    epsilon, delta : float
        The budget of the fit, all of which is spent. Choose delta far below 1/n.
    feature_bounds : pair, list of pairs, or mapping from column name to pair
        Public bounds (low, high), the same for all features or one pair each. They may be far too
        wide: see `standardize`. Never take them from the data.
    target_bounds : pair
        Public bounds of the target; they too may be wide.
    radius : float, default=None
        How long the path is: the L1 norm of the weights never exceeds it. In the target's units,
        features being mapped onto [−1, 1]. None: about √T/2 deviations of the target.
    n_iter : int, default=None
        Number of steps T, or of gradients. None: a quarter of the signal M, between 6 and 200.
    clip : float, default=None
        Bound on a row's residual, in the target's units. None: a multiple of the residuals' scale.
    row_norm : float, default=None
        Public L2 bound of a row whose features are mapped onto [−1, 1]; longer rows are shortened.
        With it the features keep their public bounds, and noisy gradients may be used.
    max_features : int, default=None
        At most so many distinct features ever enter the model. Costs nothing.
    standardize : {"auto", True, False}, default="auto"
        Whether features get tighter bounds, found privately. "auto" pays a little to ask whether
        the public bounds fit, and tightens them where they do not and there are rows enough.
    inference : {None, "split"}, default=None
        "split": secret coins send each row to one of two halves. One selects and gives the model,
        the other gives 95 % intervals for at most 20 of the selected features, each half at the
        whole budget. Where intervals would not be valid, `inference_` says why.
    solver : {"auto", "stagewise", "frank-wolfe", "noisy-gradient"}, default="auto"
        "auto": stagewise, unless `row_norm` is given and a paid check speaks for noisy gradients.
    fit_intercept : bool, default=True
        Estimate an intercept inside the same budget. Without it, predictions centre on the middle
        of the target's bounds, which are public or released.
    n_rows : int, default=None
        The public number of rows that rules may use. None: the actual number, which is thereby
        disclosed, and the statement says so.
    random_state : None, int, str or numpy generator, default=None
        None draws noise from a cryptographic stream. Anything else is reproducible, not private,
        and warned about.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_features,), float
        The released model, in the user's units. It applies to features clipped to
        `feature_bounds_`, as `predict` does.
    feature_bounds_, target_bounds_ : ndarray of shape (n_features, 2), ndarray of shape (2,)
        The bounds that rows were clipped to: public, or released.
    path_ : Path or None
        The released path: feature, sign and length of every step, with features mapped onto
        [−1, 1], before small weights were dropped. A feature's number equal to n_features_in_ is
        the constant (Frank-Wolfe only). None for noisy gradients.
    scale_ : float
        The last released deviation of the residuals.
    solver_ : str
        The solver that was used.
    n_iter_ : int
        Steps or gradients taken: always as planned, because stopping early would look at the data.
    n_rows_ : int
        The number of rows that rules used.
    inference_ : Inference
        Only with ``inference="split"``: `available`, `wording` and `intervals`, each with feature,
        name, coefficient, standard_error, low and high, in the user's units. Print it.
    privacy_ : PrivacyStatement
        What is promised, and what it rests on. Print it.
    n_features_in_, feature_names_in_
        As in every scikit-learn estimator.

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

    feature_bounds_: Array
    target_bounds_: Array
    path_: Path | None
    scale_: float
    solver_: str
    n_rows_: int
    inference_: inference.Inference

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        feature_bounds: Any = None,
        target_bounds: Any = None,
        radius: float | None = None,
        n_iter: int | None = None,
        clip: float | None = None,
        row_norm: float | None = None,
        max_features: int | None = None,
        standardize: bool | str = "auto",
        inference: str | None = None,
        solver: str = "auto",
        fit_intercept: bool = True,
        n_rows: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.feature_bounds = feature_bounds
        self.target_bounds = target_bounds
        self.radius = radius
        self.n_iter = n_iter
        self.clip = clip
        self.row_norm = row_norm
        self.max_features = max_features
        self.standardize = standardize
        self.inference = inference
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.n_rows = n_rows
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, ledger: Any = None) -> Self:
        """Fit the model, spending the whole budget.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Private rows. Values outside `feature_bounds` are clipped.
        y : array-like of shape (n_samples,)
            Private targets. Values outside `target_bounds` are clipped.
        ledger : PrivacyLedger or path, default=None
            Where to book the budget before anything is released. If it does not fit there,
            nothing is released and `BudgetRefused` says what is left.

        Returns
        -------
        self
            The fitted estimator, which holds released values only.
        """
        with check.refit(self):
            settings = self._settings()
            noise = noise_source(self.random_state)
            rows = private_rows(self, X, y)
            pairs = self._public_bounds()
            warn_of_weak_delta(settings.budget.delta, rows.n_rows)
            purse = _purse(settings, noise, rows)
            if ledger is not None:
                reserve(ledger, purse.limit, purpose=type(self).__name__)
            self.n_rows_ = purse.regime.n_rows
            reason = inference.refusal(purse.regime)
            if settings.split and reason is None:
                self._fit_split(settings, purse, pairs, rows)
            else:
                self._fit_rows(settings, inference.Half(purse, rows), pairs)
                self.privacy_ = self._statement(settings, purse)
                if settings.split:
                    self.inference_ = inference.not_available(str(reason))
        return self

    def noise_p_values(self) -> Array:
        """Return for each feature a p-value of "only privacy noise ever chose it".

        Valid for the hypothesis that the feature's gradient was zero at every step. It does not
        test whether a coefficient is zero in the population, and with few features it has little
        power. Computed from `path_`, so free; `max_features` and `fit_intercept` must still be
        those of the fit.

        Returns
        -------
        ndarray of shape (n_features,)
            1 for features that were never chosen. Not corrected for the number of features.
        """
        check_is_fitted(self)
        if self.path_ is None:
            raise ValueError("noise p-values need a path, which noisy gradients do not have.")
        constants = int(self.solver_ == "frank-wolfe" and self.fit_intercept)
        return noise_p_values(
            self.path_,
            n_features=self.n_features_in_,
            n_constants=constants,
            limit=self.max_features,
        )

    def predict(self, X: Any) -> Array:
        """Predict the target for each row of X.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows to predict for, in the units of the rows that were fitted. They are clipped to
            `feature_bounds_`, as those were.

        Returns
        -------
        ndarray of shape (n_samples,)
            The clipped rows @ coef_ + intercept_.
        """
        check_is_fitted(self)
        low, high = self.feature_bounds_.T
        rows = np.clip(check.rows_alone(self, X), low, high)
        return np.asarray(rows @ self.coef_ + self.intercept_, dtype=np.float64)

    def _settings(self) -> Settings:
        choices = Choices(
            radius=_optional(check.size, "radius", self.radius),
            n_iter=_optional(check.steps, "n_iter", self.n_iter),
            clip=_optional(check.size, "clip", self.clip),
            row_norm=_optional(check.size, "row_norm", self.row_norm),
            max_features=_optional(check.whole, "max_features", self.max_features),
            intercept=check.flag("fit_intercept", self.fit_intercept),
        )
        if not isinstance(self.standardize, bool | np.bool_):
            check.choice("standardize", self.standardize, ("auto",))
        return Settings(
            Budget(check.positive("epsilon", self.epsilon), check.share("delta", self.delta)),
            choices,
            self.standardize,
            check.choice("solver", self.solver, ("auto", *SOLVERS)),
            _optional(check.whole, "n_rows", self.n_rows),
            check.choice("inference", self.inference, (None, "split")) == "split",
        )

    def _fit_rows(
        self, settings: Settings, half: inference.Half, public: tuple[Array, Array]
    ) -> inference.Selected:
        """Release the model from the rows that are given, out of their purse."""
        purse, rows = half.purse, half.rows
        place = bounds.place_target(purse, rows, public[1])
        features = _feature_bounds(settings, purse, rows, public[0])
        units = PublicUnits(features, place.bounds, constant=settings.choices.intercept)
        task = _task(settings, purse, rows.lattice(units), place.deviation)
        self.solver_ = settings.solver if settings.solver != "auto" else _best_solver(task)
        solution = SOLVERS[self.solver_](task)
        self._release(solution, units)
        return inference.Selected(solution.weights, units, place.deviation, task.spread)

    def _fit_split(
        self, settings: Settings, purse: Purse, public: tuple[Array, Array], rows: RowSource
    ) -> None:
        """Release the model from one half of the rows and intervals from the other (Lemma 16)."""
        first, second = inference.split(purse, rows)
        selected = self._fit_rows(settings, first, public)
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        self.inference_ = inference.infer(second, selected, names)
        self.privacy_ = inference.parallel_statement(
            *(self._statement(settings, half.purse) for half in (first, second))
        )

    def _release(self, solution: Solution, units: PublicUnits) -> None:
        self.coef_, self.intercept_ = units.in_users_units(solution.weights)
        self.feature_bounds_, self.target_bounds_ = units.feature_bounds, units.target_bounds
        self.path_ = solution.path
        self.scale_ = solution.deviation
        self.n_iter_ = solution.n_iter

    def _statement(self, settings: Settings, purse: Purse) -> PrivacyStatement:
        rows = f"{self.n_rows_}, on which the rules rest"
        public = (
            "all parameters, the bounds of the features and the target among them",
            f"the columns and their number, {self.n_features_in_}",
            f"the number of rows, {rows}: it was not given, and is hereby disclosed"
            if settings.n_rows is None
            else f"n_rows, {rows}",
            "whether delta is at least 1 over the number of rows",
        )
        return PrivacyStatement.of(
            settings.budget, purse.accountant, public=public, arithmetic=EXACT
        )


def _optional(checked: Any, name: str, value: Any) -> Any:
    return None if value is None else checked(name, value)


def _purse(settings: Settings, noise: Noise, rows: RowSource) -> Purse:
    limit = ZCDP.within(settings.budget)
    regime = rules.Regime(settings.n_rows or rows.n_rows, rows.n_features, float(limit))
    return Purse(Accountant(noise, limit=limit), limit, regime)


def _feature_bounds(settings: Settings, purse: Purse, rows: RowSource, public: Array) -> Array:
    """Return the features' bounds: as declared, or tightened."""
    declared = settings.choices.row_norm is not None and settings.standardize == "auto"
    if declared or not settings.standardize:
        return public
    return bounds.tightened(purse, rows, public, always=settings.standardize != "auto")


def _task(settings: Settings, purse: Purse, design: ExactDesign, deviation: float) -> Task:
    return Task(purse, design, deviation, _release_spread(purse, design), settings.choices)


def _release_spread(purse: Purse, design: ExactDesign) -> float:
    """Release the features' root mean square; Σ_j x_ij²/d is at most 1 in each row."""
    if not rules.finds_spread(purse.regime):
        return rules.UNKNOWN_SPREAD
    d = purse.regime.n_features
    total = sum(int(square) for square in design.column_squares()[:d])
    noisy, _ = purse.release_sum(
        total,
        most=d * UNITS,
        bound=1.0,
        cost=purse.share(rules.SPREAD_SHARE),
        purpose="the features' mean square",
    )
    return rules.spread_of(noisy, purse.regime.n_rows)


def _best_solver(task: Task) -> str:
    """Return the solver: stagewise, unless rows are short and a paid check agrees."""
    row_norm = task.choices.row_norm
    if row_norm is None or task.choices.radius is not None:
        return "stagewise"
    pays = rules.gradients_may_pay(task.regime, row_norm) and rows_fill_the_norm(task, row_norm)
    return "noisy-gradient" if pays else "stagewise"
