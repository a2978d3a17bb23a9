"""The one register of private methods: a name, and how to set it up from public numbers alone.

Those in `ON_OFFER`, `ON_REQUEST` and `OTHER_QUESTIONS` can be fitted from the command line; the
peers, of other authors, are there to compare with. Every method sets itself by its own rules, from
public numbers and what it releases; `FitRequest.settings` overrides them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen._core.words import listed
from dpscreen.models import (
    ADPScreen,
    DPFrankWolfe,
    FreeScreen,
    PrivateLasso,
    PrivateLogisticLasso,
    PrivateLogit,
    PrivateOLS,
    PrivatePoisson,
    PrivatePoissonLasso,
    RNMScreen,
    outcome_peers,
    peers,
    tukey,
)
from dpscreen.privacy import ZCDP, Budget
from dpscreen.solvers import rules
from dpscreen.solvers.family import BINOMIAL, GAUSSIAN, POISSON, Family
from dpscreen.solvers.table import TableRule


@dataclass(frozen=True)
class FitRequest:
    """The request of a fit: everything in it is public. `n_rows` None: not known beforehand.

    `settings` are parameters that only some methods have, by their names there.
    """

    budget: Budget
    feature_bounds: Array
    target_bounds: tuple[float, float]
    n_rows: int | None = None
    rows_per_unit: int = 1
    max_features: int | None = None
    inference: str | None = None
    random_state: Any = None
    classes: tuple[Any, Any] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def regime(self) -> rules.Regime | None:
        """Return the numbers that the rules rest on; None without a public number of rows."""
        if self.n_rows is None:
            return None
        rho = ZCDP.within(self.budget) / self.rows_per_unit**2
        return rules.Regime(self.n_rows, len(self.feature_bounds), float(rho))

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the parameters by the names that estimators have for them."""
        fields = {
            name: one for name, one in vars(self).items() if name not in ("budget", "settings")
        }
        budget = {"epsilon": self.budget.epsilon, "delta": self.budget.delta}
        return fields | budget | dict(self.settings)


ON_OFFER: dict[str, type[Any]] = {
    "private-lasso": PrivateLasso,
    "dp-fw": DPFrankWolfe,
    "rnm-screen": RNMScreen,
}
ON_REQUEST: dict[str, type[Any]] = {"free-screen": FreeScreen, "adp-screen": ADPScreen}
"""Fitted where the method is named, and in no comparison: `python -m benchmarks
free-screen` compares the first, and its authors call the second impractical."""

OTHER_QUESTIONS: dict[str, type[Any]] = {
    "private-ols": PrivateOLS,
    "private-logistic": PrivateLogisticLasso,
    "private-logit": PrivateLogit,
    "private-poisson": PrivatePoisson,
    "private-poisson-lasso": PrivatePoissonLasso,
}
"""Models that answer something else than which features matter, so are not compared with those."""

PEERS: dict[str, type[Any]] = {
    "adassp": peers.AdaSSP,
    "boosted-adassp": peers.BoostedAdaSSP,
    "dp-sis": peers.PrivateSIS,
    "noisy-iht": peers.NoisyIHT,
    "dp-gcd": peers.PrivateGCD,
}
COMPARED_ONLY: dict[str, type[Any]] = {
    "tukey-em": tukey.TukeyEM,
    "kendall-tukey-em": tukey.KendallTukeyEM,
}
"""Peers with a pure ε that no release is made from (`dpscreen contest`)."""

OUTCOME_PEERS: dict[str, type[Any]] = {
    "class-means": outcome_peers.ClassMeans,
    "noisy-descent": outcome_peers.NoisyDescent,
    "outcome-fw": outcome_peers.OutcomeFrankWolfe,
}
METHODS = ON_OFFER | ON_REQUEST | OTHER_QUESTIONS | PEERS | COMPARED_ONLY | OUTCOME_PEERS

OURS = ("private-lasso", *OTHER_QUESTIONS)


def _lasso(noise: float) -> Any:
    from sklearn.linear_model import Lasso

    return Lasso(alpha=noise)


def _lasso_by_folds() -> Any:
    """Return LASSO with a penalty by cross-validation; rows may be in order of time."""
    from sklearn.linear_model import LassoCV
    from sklearn.model_selection import KFold

    return LassoCV(cv=KFold(5, shuffle=True, random_state=0))


def _logistic(_noise: float = 0.0) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=0.1, max_iter=500)


def _poisson(_noise: float = 0.0) -> Any:
    from sklearn.linear_model import PoissonRegressor

    return PoissonRegressor(alpha=1e-3, max_iter=500)


@dataclass(frozen=True)
class FamilyMethods:
    """The methods for outcomes of one family, by name, and what their tables are called.

    Ours are those that the family names; plans simulate them. `contested` are the private methods
    of `dpscreen contest`. `table_rule` gives the rule by
    which a table is refused, from the supposed mean of outcomes. `without_privacy` builds the model
    called `not_private`, from the largest sampling error to expect of a coefficient, and
    `reference` that of the contest.
    """

    family: Family
    contested: tuple[str, ...]
    not_private: str
    table_rule: Callable[[float | None], TableRule]
    without_privacy: Callable[[float], Any]
    reference: Callable[[], Any]
    division: str

    def divided(self, *, simulated: bool) -> str:
        """Return the name of the tables that are ranked together."""
        return f"simulated {self.division}" if simulated else self.division


FAMILY_METHODS = {
    methods.family.name: methods
    for methods in (
        FamilyMethods(
            family=GAUSSIAN,
            contested=("private-lasso", "private-ols", *list(ON_OFFER)[1:], *PEERS, *COMPARED_ONLY),
            not_private="lasso",
            table_rule=lambda _rate: PrivateOLS.table_rule,
            without_privacy=_lasso,
            reference=_lasso_by_folds,
            division="numbers",
        ),
        FamilyMethods(
            family=BINOMIAL,
            contested=("private-logistic", "private-logit", *OUTCOME_PEERS),
            not_private="logistic",
            table_rule=lambda rate: TableRule.of(
                BINOMIAL, BINOMIAL.variance(np.array(rate)).item()
            ),
            without_privacy=_logistic,
            reference=_logistic,
            division="outcomes",
        ),
        FamilyMethods(
            family=POISSON,
            contested=("private-poisson-lasso", "private-poisson"),
            not_private="poisson",
            table_rule=lambda _rate: PrivatePoisson.table_rule,
            without_privacy=_poisson,
            reference=_poisson,
            division="counts",
        ),
    )
}


def estimator(method: str, order: FitRequest) -> Any:
    """Return the method, set up and not yet fitted; a ValueError says what it cannot do."""
    _check(method, order)
    known = _parameters_of(METHODS[method])
    given = {name: one for name, one in order.parameters.items() if name in known}
    model = METHODS[method](**given)
    model.check_parameters()
    return model


def _check(method: str, order: FitRequest) -> None:
    """Refuse what the method has no parameter for, and outcomes that nobody named."""
    known = _parameters_of(METHODS[method])
    for name in ("max_features", "inference", *order.settings):
        if order.parameters[name] is not None and name not in known:
            owners = [one for one, kind in METHODS.items() if name in _parameters_of(kind)]
            raise ValueError(f"{name} belongs to {listed(owners)}; {method} does not have it.")
    family = getattr(METHODS[method], "family", GAUSSIAN)
    if not family.fits(order.classes, order.target_bounds[0]):
        raise ValueError(family.unfit_words)
    if "rows_per_unit" not in known and order.rows_per_unit != 1:
        raise ValueError("this method protects single rows: it needs rows_per_unit=1.")


def _parameters_of(kind: type[Any]) -> set[str]:
    return set(signature(kind).parameters)


def settings_of(model: Any) -> dict[str, Any]:
    """Return the settings of an estimator that are neither budget nor bounds."""
    bounds = {"feature_bounds", "target_bounds", "categories", "schema"}
    left_out = {"epsilon", "delta", "random_state", *bounds}
    return {name: value for name, value in model.get_params().items() if name not in left_out}
