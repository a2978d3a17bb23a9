"""The methods compared: an open registry. A new method is one call of `register`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dpscreen.models import PrivateLasso, peers
from dpscreen.paper.fitters import (
    LONGER,
    Adp,
    Eliminating,
    Fitter,
    OwnRules,
    Proven,
    Published,
    Steepest,
    When,
    WithoutNoise,
    lasso,
    longer_rnm,
    np_fw,
    oracle_k,
    preselect_k,
    rnm,
    uniform_zeroing,
)
from dpscreen.solvers.screening import published_scores, safe_scores

Calibration = Literal["published", "proven", "not private"]
SCREENING_SHARE = Fraction(1, 50)
"""Part of ρ that proven RNM-Screen spends on screening: the paper's 0.1 of 5."""


@dataclass(frozen=True)
class Method:
    """A way to find coefficients. `random` is False where the noise is never touched.

    A peer is a method of other authors: it can be run, but is in no table of the paper's.
    """

    name: str
    label: str
    fit: Fitter
    calibration: Calibration
    random: bool
    note: str = ""
    peer: bool = False


METHODS: dict[str, Method] = {}


def register(method: Method) -> Method:
    """Add a method under its name, which must be new."""
    if method.name in METHODS:
        raise ValueError(f"there is already a method {method.name!r}")
    METHODS[method.name] = method
    return method


def proven_names() -> tuple[str, ...]:
    """The methods whose stated budget holds, in the order of their registration; not the peers."""
    proven = (method for method in METHODS.values() if method.calibration == "proven")
    return tuple(method.name for method in proven if not method.peer)


E8 = "T, clip and |y| ≤ B are chosen from the data, as the paper's λ and scaling are (erratum E8)."
EVERY, FIFTIETH, LAST = When(1), When(50), When(None)


def _add(
    name: str,
    label: str,
    fit: Fitter,
    calibration: Calibration,
    *,
    random: bool = True,
    note: str = "",
    peer: bool = False,
) -> None:
    register(Method(name, label, fit, calibration, random, note, peer))


_add("rnm-screen", "RNM-Screen", Published(rnm), "published")
_add("rnm-screen-longer", f"RNM-Screen, {LONGER}T iterations", longer_rnm, "published")
_add("adp-screen", "ADP-Screen", Published(Adp(EVERY)), "published")
_add("adp-screen-50th", "ADP-Screen, every 50th", Published(Adp(FIFTIETH)), "published")
_add("adp-screen-last", "ADP-Screen, last", Published(Adp(LAST)), "published")
_add("dp-fw", "DP-FW", Published(), "published", note="Spends the whole stated budget.")
_add(
    "uniform-zeroing",
    "Uniform zeroing",
    Published(uniform_zeroing),
    "published",
    note="RNM-Screen with the screened coordinate replaced by a uniformly random one (erratum E7).",
)
_add(
    "oracle-k-fw",
    "Oracle-K FW",
    oracle_k,
    "not private",
    note="The K largest of DP-FW; K is not private.",
)

# Without noise: the same in every trial on the same rows.
_add("np-fw", "NP-FW", np_fw, "not private", random=False)
_add("preselect-k-fw", "Preselect-K FW", preselect_k, "not private", random=False)
_add("lasso", "LASSO", lasso, "not private", random=False, note="scikit-learn's, K nonzeros.")
_add(
    "np-fw-safe",
    "NP-FW, safe rule",
    Eliminating(safe_scores),
    "not private",
    random=False,
    note="The rule corrected for the radius (erratum E3); what it rejects is left out for good.",
)
_add(
    "np-fw-published-rule",
    "NP-FW, Eq. 1 for good",
    Eliminating(published_scores),
    "not private",
    random=False,
    note="Eq. 1 as printed, for the unit ball; what it rejects is left out for good.",
)
_add(
    "np-fw-rule",
    "NP-FW, Eq. 1",
    Steepest(WithoutNoise(EVERY)),
    "not private",
    random=False,
    note="Eq. 1 as printed, at every iteration; what it zeroes may be chosen again.",
)

# Appendix C: one of the two steps private, the other not.
_add("dp-fw-rule", "DP-FW, Eq. 1", Published(WithoutNoise(EVERY)), "not private")
_add("dp-fw-rule-50th", "DP-FW, Eq. 1 every 50th", Published(WithoutNoise(FIFTIETH)), "not private")
_add("dp-fw-rule-last", "DP-FW, Eq. 1 last", Published(WithoutNoise(LAST)), "not private")
_add("np-fw-adp", "NP-FW, ADP every", Steepest(Adp(EVERY)), "not private")
_add("np-fw-adp-50th", "NP-FW, ADP every 50th", Steepest(Adp(FIFTIETH)), "not private")
_add("np-fw-adp-last", "NP-FW, ADP last", Steepest(Adp(LAST)), "not private")

_add("proven-dp-fw", "Proven DP-FW", Proven(Fraction(0)), "proven", note=E8)
_add("proven-rnm-screen", "Proven RNM-Screen", Proven(SCREENING_SHARE), "proven", note=E8)

OWN_RULES = "Every setting follows its own rules; only |y| ≤ B is taken from the data (erratum E8)."
_add("private-lasso", "PrivateLasso", OwnRules(PrivateLasso), "proven", note=OWN_RULES)
for _name, _label, _kind in (
    ("adassp", "AdaSSP", peers.AdaSSP),
    ("dp-sis", "DP-SIS and refit", peers.PrivateSIS),
    ("noisy-iht", "Noisy IHT", peers.NoisyIHT),
    ("dp-gcd", "DP-GCD", peers.PrivateGCD),
):
    _add(_name, _label, OwnRules(_kind), "proven", note=OWN_RULES, peer=True)
