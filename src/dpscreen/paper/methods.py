"""The methods of the study, the product's own among them. A new one is one call of `register`.

A name means the same here as in `dpscreen.planning.methods`. What the paper calls DP-FW is
"published-dp-fw" for that reason; in its tables, and so in rows and seeds, it is "dp-fw".
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

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
from dpscreen.planning.methods import PEERS
from dpscreen.solvers.screening import published_scores, safe_scores

Calibration = Literal["published", "proven", "not private"]
SCREENING_SHARE = Fraction(1, 50)
"""Part of ρ that proven RNM-Screen spends on screening: the paper's 0.1 of 5."""


@dataclass(frozen=True)
class Method:
    """A way to find coefficients. `random` is False where the noise is never touched.

    A peer is a method of other authors: it can be run, but is in no table of the paper's.
    `printed` is the name in rows, where that is another.
    """

    name: str
    label: str
    fit: Fitter
    calibration: Calibration
    random: bool
    note: str = ""
    peer: bool = False
    printed: str = ""

    @property
    def row_name(self) -> str:
        """Return the name in rows and seeds."""
        return self.printed or self.name


METHODS: dict[str, Method] = {}


def register(method: Method) -> Method:
    """Add a method under its name, which must be new."""
    if method.name in METHODS:
        raise ValueError(f"there is already a method {method.name!r}")
    METHODS[method.name] = method
    return method


def of_rows(row_name: str) -> Method:
    """Return the method whose rows have this name."""
    return next(method for method in METHODS.values() if method.row_name == row_name)


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
    calibration: Calibration = "not private",
    *,
    random: bool = True,
    note: str = "",
    printed: str = "",
) -> None:
    register(Method(name, label, fit, calibration, random, note, name in PEERS, printed))


def _published(printed: str, label: str, fit: Fitter, note: str = "") -> None:
    _add(f"published-{printed}", label, fit, "published", note=note, printed=printed)


_published("rnm-screen", "RNM-Screen", Published(rnm))
_published("rnm-screen-longer", f"RNM-Screen, {LONGER}T iterations", longer_rnm)
_published("adp-screen", "ADP-Screen", Published(Adp(EVERY)))
_published("adp-screen-50th", "ADP-Screen, every 50th", Published(Adp(FIFTIETH)))
_published("adp-screen-last", "ADP-Screen, last", Published(Adp(LAST)))
_published("dp-fw", "DP-FW", Published(), "Spends the whole stated budget.")
_add(
    "uniform-zeroing",
    "Uniform zeroing",
    Published(uniform_zeroing),
    "published",
    note="RNM-Screen with the screened coordinate replaced by a uniformly random one (erratum E7).",
)
_add("oracle-k-fw", "Oracle-K FW", oracle_k, note="The K largest of DP-FW; K is not private.")

# Without noise: the same in every trial on the same rows.
_add("np-fw", "NP-FW", np_fw, random=False)
_add("preselect-k-fw", "Preselect-K FW", preselect_k, random=False)
_add(
    "lasso-of-k",
    "LASSO",
    lasso,
    random=False,
    note="scikit-learn's, K nonzeros.",
    printed="lasso",
)
_add(
    "np-fw-safe",
    "NP-FW, safe rule",
    Eliminating(safe_scores),
    random=False,
    note="The rule corrected for the radius (erratum E3); what it rejects is left out for good.",
)
_add(
    "np-fw-published-rule",
    "NP-FW, Eq. 1 for good",
    Eliminating(published_scores),
    random=False,
    note="Eq. 1 as printed, for the unit ball; what it rejects is left out for good.",
)
_add(
    "np-fw-rule",
    "NP-FW, Eq. 1",
    Steepest(WithoutNoise(EVERY)),
    random=False,
    note="Eq. 1 as printed, at every iteration; what it zeroes may be chosen again.",
)

# Appendix C: one of the two steps private, the other not.
for _suffix, _often, _when in (("", "", EVERY), ("-50th", " every 50th", FIFTIETH),
                               ("-last", " last", LAST)):  # fmt: skip
    _add(f"dp-fw-rule{_suffix}", f"DP-FW, Eq. 1{_often}", Published(WithoutNoise(_when)))
    _add(f"np-fw-adp{_suffix}", f"NP-FW, ADP{_often or ' every'}", Steepest(Adp(_when)))

_add("proven-dp-fw", "Proven DP-FW", Proven(Fraction(0)), "proven", note=E8)
_add("proven-rnm-screen", "Proven RNM-Screen", Proven(SCREENING_SHARE), "proven", note=E8)

OWN_RULES = "Every setting follows its own rules; only |y| ≤ B is taken from the data (erratum E8)."
for _name, _label in (
    ("private-lasso", "PrivateLasso"),
    ("adassp", "AdaSSP"),
    ("boosted-adassp", "Boosted AdaSSP"),
    ("dp-sis", "DP-SIS and refit"),
    ("noisy-iht", "Noisy IHT"),
    ("dp-gcd", "DP-GCD"),
):
    _add(_name, _label, OwnRules(_name), "proven", note=OWN_RULES)
