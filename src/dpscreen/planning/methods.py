"""The one register of private methods: a name, and how to set it up from public numbers alone.

Those in `OURS`, `PAPER` and `ON_REQUEST` can be fitted from the command line; the peers, of other
authors, are there to compare with. Every method sets itself by its own rules, from public numbers
and what it releases; `FitRequest.settings` overrides them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

from dpscreen import models
from dpscreen._core.arrays import Array
from dpscreen._core.messages import message
from dpscreen.families import FAMILIES, GAUSSIAN, Family
from dpscreen.models import outcome_peers, peers, tukey
from dpscreen.privacy import ZCDP, Budget
from dpscreen.solvers import rules


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


OURS: dict[str, type[Any]] = {
    one.method: getattr(models, one.estimator)
    for family in FAMILIES.values()
    for one in (family.sparse, family.table)
}
"""A sparse model and a table for each family of outcomes."""

PAPER: dict[str, type[Any]] = {"dp-fw": models.DPFrankWolfe, "rnm-screen": models.RNMScreen}
ON_REQUEST: dict[str, type[Any]] = {
    "free-screen": models.FreeScreen,
    "adp-screen": models.ADPScreen,
}
"""Fitted where the method is named, and in no comparison: `python -m benchmarks
free-screen` compares the first, and its authors call the second impractical."""

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
METHODS = OURS | PAPER | ON_REQUEST | PEERS | COMPARED_ONLY | OUTCOME_PEERS


@dataclass(frozen=True)
class FamilyMethods:
    """The methods for outcomes of one family, by name: ours are simulated by plans."""

    family: Family

    @property
    def contested(self) -> tuple[str, ...]:
        """Return the private methods of `dpscreen contest`: ours, then those of other authors."""
        ours = self.family.sparse.method, self.family.table.method
        others = PAPER | PEERS | COMPARED_ONLY | OUTCOME_PEERS
        theirs = (name for name in others if _family_of(name) is self.family)
        return (*ours, *(name for name in theirs if name not in ours))

    def divided(self, *, simulated: bool) -> str:
        """Return the name of the tables that are ranked together."""
        division = self.family.simulation.division
        return f"simulated {division}" if simulated else division


FAMILY_METHODS = {name: FamilyMethods(family) for name, family in FAMILIES.items()}


def _family_of(method: str) -> Family:
    family: Family = getattr(METHODS[method], "family", GAUSSIAN)
    return family


def estimator(method: str, order: FitRequest) -> Any:
    """Return the method, set up and not yet fitted; a ValueError says what it cannot do."""
    _check(method, order)
    kind = METHODS[method]
    known = _parameters_of(kind)
    if getattr(kind, "averages_units", False):  # the rows say whose they are
        known = known - {"rows_per_unit"}
    model = kind(**{name: one for name, one in order.parameters.items() if name in known})
    model.check_parameters()
    return model


def _check(method: str, order: FitRequest) -> None:
    """Refuse what the method has no parameter for, and outcomes that nobody named."""
    known = _parameters_of(METHODS[method])
    for name in ("max_features", "inference", *order.settings):
        if order.parameters[name] is not None and name not in known:
            owners = [one for one, kind in METHODS.items() if name in _parameters_of(kind)]
            raise ValueError(message("method.no-setting", name=name, owners=owners, method=method))
    family = _family_of(method)
    if not family.fits(order.classes, order.target_bounds[0]):
        raise ValueError(family.words.unfit)
    if "rows_per_unit" not in known and order.rows_per_unit != 1:
        raise ValueError(message("method.single-rows"))


def _parameters_of(kind: type[Any]) -> set[str]:
    return set(signature(kind).parameters)


def settings_of(model: Any) -> dict[str, Any]:
    """Return the settings of an estimator that are neither budget nor bounds."""
    bounds = {"feature_bounds", "target_bounds", "categories", "schema"}
    left_out = {"epsilon", "delta", "random_state", *bounds}
    return {name: value for name, value in model.get_params().items() if name not in left_out}
