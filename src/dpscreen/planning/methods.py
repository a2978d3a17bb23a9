"""The one register of private methods: a name, and how to set it up from public numbers alone.

Those in `ON_OFFER` and `OTHER_QUESTIONS` can be fitted from the command line; the peers, of other
authors, are there to compare with. PrivateLasso and the peers choose for themselves. DP-FW and
RNM-Screen need settings that nobody knows beforehand, so these rules stand in. Of those tried in
simulations, they did best where bounds fit:

    radius    half the width of the target's bounds: a prediction can then reach every value
    n_iter    by the rule of PrivateLasso, about M/4 with M = n√(2ρ)/ln(2d), from a public n
    clip      a tenth of the width of the target's bounds (DP-FW only)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpscreen._core.arrays import Array
from dpscreen._core.words import listed
from dpscreen.models import (
    DPFrankWolfe,
    PrivateLasso,
    PrivateLogistic,
    PrivateLogit,
    PrivateOLS,
    RNMScreen,
    outcome_peers,
    peers,
    tukey,
)
from dpscreen.privacy import ZCDP, Budget
from dpscreen.solvers import rules


@dataclass(frozen=True)
class FitRequest:
    """What is asked for: everything in it is public. `n_rows` None: not known beforehand."""

    budget: Budget
    feature_bounds: Array
    target_bounds: tuple[float, float]
    n_rows: int | None = None
    rows_per_unit: int = 1
    max_features: int | None = None
    inference: str | None = None
    random_state: Any = None
    classes: tuple[Any, Any] | None = None

    @property
    def regime(self) -> rules.Regime | None:
        """Return the numbers that the rules rest on; None without a public number of rows."""
        if self.n_rows is None:
            return None
        rho = ZCDP.within(self.budget) / self.rows_per_unit**2
        return rules.Regime(self.n_rows, len(self.feature_bounds), float(rho))

    @property
    def _shared(self) -> dict[str, Any]:
        return {
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "feature_bounds": self.feature_bounds,
            "target_bounds": self.target_bounds,
            "rows_per_unit": self.rows_per_unit,
            "random_state": self.random_state,
        }

    @property
    def _without_target(self) -> dict[str, Any]:
        """Return what models of outcomes share with the others: their target needs no bounds."""
        return {name: value for name, value in self._shared.items() if name != "target_bounds"}

    @property
    def _ball(self) -> dict[str, Any]:
        """Return radius and steps of the methods that need them."""
        regime = self.regime
        if regime is None:
            raise ValueError("this method needs a public number of rows, to set its steps.")
        return {"radius": self._half_width, "n_iter": rules.n_steps(regime)}

    @property
    def _half_width(self) -> float:
        low, high = self.target_bounds
        return high / 2 - low / 2


def _private_lasso(order: FitRequest) -> PrivateLasso:
    return PrivateLasso(
        n_rows=order.n_rows,
        max_features=order.max_features,
        inference=order.inference,
        **order._shared,
    )


def _private_ols(order: FitRequest) -> PrivateOLS:
    return PrivateOLS(n_rows=order.n_rows, **order._shared)


def _private_logistic(order: FitRequest) -> PrivateLogistic:
    return PrivateLogistic(
        classes=_two_outcomes(order),
        n_rows=order.n_rows,
        max_features=order.max_features,
        **order._without_target,
    )


def _private_logit(order: FitRequest) -> PrivateLogit:
    classes = _two_outcomes(order)
    return PrivateLogit(classes=classes, n_rows=order.n_rows, **order._without_target)


def _two_outcomes(order: FitRequest) -> tuple[Any, Any]:
    if order.classes is None:
        raise ValueError(
            "the target is a number, and a model of chances needs two outcomes: declare the "
            "column as boolean, or with two levels."
        )
    return order.classes


def _dp_fw(order: FitRequest) -> DPFrankWolfe:
    return DPFrankWolfe(clip=order._half_width / 5, **order._ball, **order._shared)


def _rnm_screen(order: FitRequest) -> RNMScreen:
    return RNMScreen(**order._ball, **order._shared)


def _peer(kind: type[peers.Peer | tukey.TukeyEM]) -> Maker:
    return lambda order: kind(n_rows=order.n_rows, **_of_single_rows(order._shared, order))


def _outcome_peer(kind: type[outcome_peers.OutcomePeer]) -> Maker:
    def make(order: FitRequest) -> outcome_peers.OutcomePeer:
        shared = _of_single_rows(order._without_target, order)
        return kind(classes=order.classes, n_rows=order.n_rows, **shared)

    return make


def _of_single_rows(shared: dict[str, Any], order: FitRequest) -> dict[str, Any]:
    if order.rows_per_unit != 1:
        raise ValueError("this method protects single rows: it needs rows_per_unit=1.")
    return {name: value for name, value in shared.items() if name != "rows_per_unit"}


Maker = Callable[[FitRequest], Any]
ON_OFFER: dict[str, Maker] = {
    "private-lasso": _private_lasso,
    "dp-fw": _dp_fw,
    "rnm-screen": _rnm_screen,
}
OTHER_QUESTIONS: dict[str, Maker] = {
    "private-ols": _private_ols,
    "private-logistic": _private_logistic,
    "private-logit": _private_logit,
}
"""Models that answer something else than which features matter, so are not compared with those."""

PEERS: dict[str, Maker] = {
    "adassp": _peer(peers.AdaSSP),
    "boosted-adassp": _peer(peers.BoostedAdaSSP),
    "dp-sis": _peer(peers.PrivateSIS),
    "noisy-iht": _peer(peers.NoisyIHT),
    "dp-gcd": _peer(peers.PrivateGCD),
}
COMPARED_ONLY: dict[str, Maker] = {
    "tukey-em": _peer(tukey.TukeyEM),
    "kendall-tukey-em": _peer(tukey.KendallTukeyEM),
}
"""Peers with a pure ε that no release is made from (`dpscreen contest`)."""

OUTCOME_PEERS: dict[str, Maker] = {
    "class-means": _outcome_peer(outcome_peers.ClassMeans),
    "noisy-descent": _outcome_peer(outcome_peers.NoisyDescent),
    "outcome-fw": _outcome_peer(outcome_peers.OutcomeFrankWolfe),
}
METHODS = ON_OFFER | OTHER_QUESTIONS | PEERS | COMPARED_ONLY | OUTCOME_PEERS
OPTIONS = {
    "max_features": ("private-lasso", "private-logistic"),
    "inference": ("private-lasso",),
}
"""Which methods have what may be asked for."""


def estimator(method: str, order: FitRequest) -> Any:
    """Return the method, set up and not yet fitted; a ValueError says what it cannot do."""
    for name, owners in OPTIONS.items():
        if getattr(order, name) is not None and method not in owners:
            raise ValueError(f"{name} belongs to {listed(owners)}; {method} does not have it.")
    model = METHODS[method](order)
    model.check_parameters()
    return model


def settings_of(model: Any) -> dict[str, Any]:
    """Return the settings of an estimator that are neither budget nor bounds."""
    left_out = {"epsilon", "delta", "feature_bounds", "target_bounds", "categories", "random_state"}
    return {name: value for name, value in model.get_params().items() if name not in left_out}
