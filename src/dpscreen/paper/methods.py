"""The methods of the study, the product's own among them. A new one is one more in the list.

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
    OtherSettings,
    OwnRules,
    PreselectK,
    Proven,
    Published,
    Steepest,
    WithoutNoise,
    largest_correlation,
    largest_norm,
    largest_variance,
    lasso,
    longer_rnm,
    oracle_k,
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

    `printed` is the name in rows, where that is another.
    """

    name: str
    label: str
    fit: Fitter
    calibration: Calibration = "not private"
    random: bool = True
    note: str = ""
    printed: str = ""

    @property
    def row_name(self) -> str:
        """Return the name in rows and seeds."""
        return self.printed or self.name


def of_rows(row_name: str) -> Method:
    """Return the method whose rows have this name."""
    return next(method for method in METHODS.values() if method.row_name == row_name)


def proven_names() -> tuple[str, ...]:
    """The methods whose stated budget holds, in their order.

    Not the peers, which are by other authors: they can be run, but are in no table of the paper's.
    """
    proven = (method.name for method in METHODS.values() if method.calibration == "proven")
    return tuple(name for name in proven if name not in PEERS)


EVERY, FIFTIETH, LAST = 1, 50, None
OTHER = (("third", "K = d/3"), ("filled", "missing cells at their mean"))
FEW, MANY = 200, 1000
"""The iterations of the paper's middling sets, and those of its largest."""
FROM_ZERO = "As published but for the start, which is the zero vector (erratum E9)."
E8 = "T, clip and |y| ≤ B are chosen from the data, as the paper's λ and scaling are (erratum E8)."
OWN_RULES = "Every setting follows its own rules; only |y| ≤ B is taken from the data (erratum E8)."


def _published(printed: str, label: str, fit: Fitter, note: str = "") -> Method:
    return Method(f"published-{printed}", label, fit, "published", note=note, printed=printed)


def _noiseless(name: str, label: str, fit: Fitter, note: str = "", printed: str = "") -> Method:
    """Return a method that is the same in every trial on the same rows."""
    return Method(name, label, fit, random=False, note=note, printed=printed)


def _own_rules(name: str, label: str) -> Method:
    return Method(name, label, OwnRules(name), "proven", note=OWN_RULES)


METHODS = {
    method.name: method
    for method in (
        _published("rnm-screen", "RNM-Screen", Published(rnm)),
        _published("rnm-screen-longer", f"RNM-Screen, {LONGER}T iterations", longer_rnm),
        _published("adp-screen", "ADP-Screen", Published(Adp(EVERY))),
        _published("adp-screen-50th", "ADP-Screen, every 50th", Published(Adp(FIFTIETH))),
        _published("adp-screen-last", "ADP-Screen, last", Published(Adp(LAST))),
        _published("dp-fw", "DP-FW", Published(), "Spends the whole stated budget."),
        _published("dp-fw-zero", "DP-FW from zero", Published(start="zero"), FROM_ZERO),
        _published("rnm-screen-zero", "RNM-Screen from zero", Published(rnm, "zero"), FROM_ZERO),
        Method(
            "uniform-zeroing",
            "Uniform zeroing",
            Published(uniform_zeroing),
            "published",
            note="RNM-Screen with the screened coordinate replaced by a uniformly random one "
            "(erratum E7).",
        ),
        Method(
            "oracle-k-fw",
            "Oracle-K FW",
            oracle_k,
            note="The K largest of DP-FW; K is not private.",
        ),
        _noiseless("np-fw", "NP-FW", Steepest()),
        _noiseless("preselect-k-fw", "Preselect-K FW", PreselectK(largest_norm)),
        _noiseless("lasso-of-k", "LASSO", lasso, "scikit-learn's, K nonzeros.", printed="lasso"),
        _noiseless(
            "np-fw-safe",
            "NP-FW, safe rule",
            Eliminating(safe_scores),
            "The rule corrected for the radius (erratum E3); what it rejects is left out for good.",
        ),
        _noiseless(
            "np-fw-published-rule",
            "NP-FW, Eq. 1 for good",
            Eliminating(published_scores),
            "Eq. 1 as printed, for the unit ball; what it rejects is left out for good.",
        ),
        _noiseless(
            "np-fw-rule",
            "NP-FW, Eq. 1",
            Steepest(WithoutNoise(EVERY)),
            "Eq. 1 as printed, at every iteration; what it zeroes may be chosen again.",
        ),
        *(
            _noiseless(f"np-fw-{count}", f"NP-FW, {count} iterations", OtherSettings(count))
            for count in (FEW, MANY)
        ),
        _noiseless("np-fw-low", "NP-FW, smallest λ", OtherSettings(end=0)),
        _noiseless("np-fw-high", "NP-FW, largest λ", OtherSettings(end=-1)),
        # What the paper leaves open, taken otherwise.
        _published("rnm-screen-scattered", "RNM-Screen, scattered support", Published(rnm)),
        _published("rnm-screen-whole-loss", "RNM-Screen, no ½", Published(rnm, whole_loss=True)),
        *(
            _published(f"rnm-screen-{name}", f"RNM-Screen, {label}", Published(rnm))
            for name, label in OTHER
        ),
        *(
            Method(f"oracle-k-fw-{name}", f"Oracle-K FW, {label}", oracle_k)
            for name, label in OTHER
        ),
        _noiseless(
            "preselect-k-variance", "Preselect-K FW, variance", PreselectK(largest_variance)
        ),
        _noiseless(
            "preselect-k-correlation",
            "Preselect-K FW, correlation",
            PreselectK(largest_correlation),
        ),
        # Appendix C: one of the two steps private, the other not.
        Method("dp-fw-rule", "DP-FW, Eq. 1", Published(WithoutNoise(EVERY))),
        Method("np-fw-adp", "NP-FW, ADP every", Steepest(Adp(EVERY), "random")),
        Method("dp-fw-rule-50th", "DP-FW, Eq. 1 every 50th", Published(WithoutNoise(FIFTIETH))),
        Method("np-fw-adp-50th", "NP-FW, ADP every 50th", Steepest(Adp(FIFTIETH), "random")),
        Method("dp-fw-rule-last", "DP-FW, Eq. 1 last", Published(WithoutNoise(LAST))),
        Method("np-fw-adp-last", "NP-FW, ADP last", Steepest(Adp(LAST), "random")),
        Method("proven-dp-fw", "Proven DP-FW", Proven(Fraction(0)), "proven", note=E8),
        Method(
            "proven-rnm-screen", "Proven RNM-Screen", Proven(SCREENING_SHARE), "proven", note=E8
        ),
        _own_rules("private-lasso", "PrivateLasso"),
        _own_rules("adassp", "AdaSSP"),
        _own_rules("boosted-adassp", "Boosted AdaSSP"),
        _own_rules("dp-sis", "DP-SIS and refit"),
        _own_rules("noisy-iht", "Noisy IHT"),
        _own_rules("dp-gcd", "DP-GCD"),
    )
}
