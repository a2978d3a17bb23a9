"""The paper's claims outside its tables: rows in, a verdict and a sentence for each reading out.

The readings are in `published.json`: how the paper's words are taken, what was run for that, and a
`test` if they are about a number on several data sets, or by what they are `refuted` whatever the
rows. For the others a check is registered here, in the same order.
"""

from __future__ import annotations

import math
import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from dpscreen.paper.agreement import (
    STANDARD_ERRORS,
    NotRunError,
    RowIndex,
    check_r2,
    check_theorem2,
    compare,
    mean_of,
)
from dpscreen.paper.methods import METHODS
from dpscreen.paper.published import (
    PublishedClaim,
    label,
    published_cells,
    published_claims,
    published_data,
)
from dpscreen.paper.suites import (
    BLOCKS,
    EXPERIMENT_A,
    EXPERIMENT_B,
    FIGURE_3,
    GAPS,
    ITERATIONS,
    LONG,
    RULES,
    SYNTHETIC,
)

REAL = tuple(name for name in published_data() if name not in SYNTHETIC)
WIDE = tuple(name for name in REAL if published_data()[name].n_features > 20)
LARGEST = "blogfeedback"
SMALLER = tuple(name for name in REAL if name != LARGEST)
BOLD_F1 = tuple(
    cell.data
    for cell in published_cells(3)
    if (cell.method, cell.metric, cell.bold) == ("rnm-screen", "f1", True)
)
SETS = {
    "all": (*SYNTHETIC, *REAL),
    "synthetic": SYNTHETIC,
    "real": REAL,
    "wide": WIDE,
    "wide but the largest": WIDE[:-1],
}
LITTLE = 0.05
"""A share or an F1 that differs by no more is called about the same."""
SAME = 0.0005
"""A number that is larger by no more is the same to three decimals."""
APART = 0.1
"""By how much TPR must exceed FPR for a method to separate nonzeros from zeros."""
FEW_NONZEROS = 10


class Outcome(NamedTuple):
    """Whether a claim holds in one reading (None: not run), why, and the numbers behind it.

    `reading` is how the words were taken, and `run` what was run for that.
    """

    holds: bool | None
    finding: str
    numbers: Mapping[str, float] = {}
    reading: str = ""
    run: str = ""

    @property
    def verdict(self) -> str:
        """Return "holds", "does not hold" or "not run"."""
        return {True: "holds", False: "does not hold", None: "not run"}[self.holds]


@dataclass(frozen=True)
class ClaimCheck(PublishedClaim):
    """A statement of the paper, and what was found of it in every reading."""

    judged: tuple[Outcome, ...]

    @property
    def verdict(self) -> str:
        """Return what all readings agree on, or that they do not."""
        found = {one.verdict for one in self.judged}
        if "not run" in found:
            return "not run"
        return found.pop() if len(found) == 1 else "depends on the reading"


Check = Callable[..., Outcome]
CHECKS: dict[str, list[Check]] = defaultdict(list)
"""By claim, one check for each of its readings that have no test."""


def check_claims(index: RowIndex) -> tuple[ClaimCheck, ...]:
    """Check every claim, in the order of `published_claims`."""
    found = []
    for key, claim in published_claims().items():
        judged, checks = [], iter(CHECKS[key])
        for one in claim.readings:
            try:
                if "refuted" in one:
                    outcome = Outcome(False, one["refuted"])
                elif "test" in one:
                    outcome = on_sets(index, one["test"])
                else:
                    outcome = next(checks)(index)
            except NotRunError as error:
                outcome = Outcome(None, f"Not run: {error}.")
            judged.append(outcome._replace(reading=one["reading"], run=one["run"]))
        found.append(ClaimCheck(**vars(claim), judged=tuple(judged)))
    return tuple(found)


def reads(key: str, *settings: Mapping[str, Any]) -> Callable[[Check], Check]:
    """Register a check for the next reading without a test; for several, one with each settings."""

    def keep(check: Check) -> Check:
        CHECKS[key] += [partial(check, **given) for given in settings or ({},)]
        return check

    return keep


# --- numbers and words --------------------------------------------------------------------------


def _curve_ends(index: RowIndex, suite: str, data: str, method: str, series: str) -> list[float]:
    """Return the mean of a curve at its first and at its last iteration."""
    curves = [row.series.get(series) for row in index.rows(suite, data, method)]
    ends = [mean_of(curve[at] for curve in curves if curve) for at in (0, -1)]
    if None in ends:
        raise NotRunError(f"{_spoken(method)} on {label(data)}")
    return [end.mean for end in ends if end]


def _changes(
    index: RowIndex, metric: str, before: str, after: str, sets: Sequence[str]
) -> dict[str, float]:
    """How much more one method has of a metric than another, on each real set."""
    return {data: _change(index, data, metric, "real", after, "real", before) for data in sets}


def _spoken(method: str) -> str:
    return METHODS[method].label


def _labelled(numbers: Mapping[str, float], of: str = "") -> dict[str, float]:
    """Return numbers by data set under the names that readers know."""
    return {f"{of} {label(data)}".strip(): value for data, value in numbers.items()}


def _of_sets(found: Iterable[str], among: Sequence[str] = REAL) -> str:
    """Return "2 of 8 sets (Abalone, Housing)"."""
    names = [label(name) for name in found]
    which = f" ({', '.join(names)})" if 0 < len(names) < len(among) else ""
    return f"{len(names)} of {len(among)} sets{which}"


# --- a number on each of several sets -------------------------------------------------------------


def on_sets(index: RowIndex, test: Mapping[str, Any]) -> Outcome:
    """Count the sets on which a number meets a condition: are there as many as the claim says?"""
    (name, *arguments), (sign, limit), sets = test["number"], test["is"], SETS[test["sets"]]
    found = {data: NUMBERS[name](index, data, *arguments) for data in sets}
    words, meets = CONDITIONS[sign]
    met = [data for data in sets if meets(found[data], limit)]
    low, high = min(found.values()), max(found.values())
    text = f"{test['what']}: {low:.3g} to {high:.3g}; {words} {limit:g} on {_of_sets(met, sets)}."
    return Outcome(EXTENTS[test["on"]](met, sets), text, _labelled(found))


CONDITIONS: dict[str, tuple[str, Callable[[float, float], bool]]] = {
    ">": ("above", operator.gt),
    ">=": ("at least", operator.ge),
    "<": ("below", operator.lt),
    "<=": ("at most", operator.le),
}
EXTENTS: dict[str, Callable[[Sequence[str], Sequence[str]], bool]] = {
    "all": lambda met, sets: len(met) == len(sets),
    "none": lambda met, _: not met,
    "most": lambda met, sets: len(met) > len(sets) / 2,
    "at least half": lambda met, sets: len(met) >= len(sets) / 2,
    "at most half": lambda met, sets: len(met) <= len(sets) / 2,
    "all but the largest": lambda met, _: tuple(met) == SMALLER,
}
"""From the sets that meet a condition, and all of them, to whether the claim holds."""


def _change(
    index: RowIndex, data: str, metric: str, suite: str, method: str, other_suite: str, other: str
) -> float:
    """Return how much more of a metric one method has than another."""
    ours = index.mean(suite, data, method, metric)
    return ours - index.mean(other_suite, data, other, metric)


def _p_ahead(index: RowIndex, data: str, suite: str, one: str, other: str, metric: str) -> float:
    """Return p of a sign test where one method is ahead of the other, else 1."""
    found = index.sign_test(suite, data, (one, other), metric)
    if found is None:
        raise NotRunError(f"{_spoken(one)} and {_spoken(other)} on {label(data)}")
    return found.p_two_sided if found.wins > found.losses else 1.0


def _least_gain(index: RowIndex, data: str, suite: str, *pairs: str) -> float:
    """Return how far one (method, metric) is above another, less two standard errors."""
    gain = index.difference((suite, data, *pairs[:2]), (suite, data, *pairs[2:]))  # type: ignore[arg-type]
    if gain is None:
        raise NotRunError(f"{_spoken(pairs[0])} and {_spoken(pairs[2])} on {label(data)}")
    return gain.mean - STANDARD_ERRORS * gain.standard_error


def _rule_change(index: RowIndex, data: str, rule: str) -> float:
    """Return the larger of the changes that a rule makes to F1 and error of NP-FW."""
    return max(
        abs(_change(index, data, metric, "real", rule, "real", "np-fw")) for metric in ("f1", "mse")
    )


def _part_of_zero_error(index: RowIndex, data: str) -> float:
    error = index.mean("real", data, "rnm-screen", "mse")
    settings = index.rows("real", data, "rnm-screen")[0].settings
    if "zero_error" not in settings:
        raise NotRunError(f"predicting zero on {label(data)}")
    return float(error / settings["zero_error"])


def _fall(index: RowIndex, data: str) -> float:
    first, last = _curve_ends(index, "real", data, "rnm-screen", "mse")
    return last - first


def _share_screened(index: RowIndex, data: str) -> float:
    suite = "synthetic" if data in SYNTHETIC else "real"
    return index.mean(suite, data, "rnm-screen", "screened") / published_data()[data].n_iter


NUMBERS: dict[str, Callable[..., float]] = {
    "change": _change,
    "p": _p_ahead,
    "gain": _least_gain,
    "mean": lambda index, data, metric: index.mean("real", data, "rnm-screen", metric),
    "change by the rule": _rule_change,
    "error of zero": _part_of_zero_error,
    "fall of the error": _fall,
    "screened share": _share_screened,
    "rows less features": lambda _index, data: (
        published_data()[data].n_rows - published_data()[data].n_features
    ),
}


# --- synthetic data, Section 5.1 ----------------------------------------------------------------


@reads(
    "nonprivate-screening",
    *({"suite": suite, "rule": rule} for suite in ("adp", "synthetic") for rule in RULES[:3]),
)
def _nonprivate_screening(index: RowIndex, suite: str, rule: str) -> Outcome:
    mean = partial(index.mean, suite, "uncorrelated")
    tpr, fpr, plain = mean(rule, "tpr"), mean(rule, "fpr"), mean("np-fw", "tpr")
    single = index.values(suite, "uncorrelated", rule, "tpr").values()
    text = (
        f"{tpr:.0%} of the true nonzeros (in single trials {min(single):.0%} to {max(single):.0%}) "
        f"and {fpr:.1%} of the true zeros are nonzero; without a rule {plain:.0%} of the true "
        "nonzeros are."
    )
    if rule != RULES[0]:
        text += f" It leaves out {mean(rule, 'screened'):.0f} of the 600 features."
    return Outcome(abs(tpr - 0.55) <= LITTLE and fpr <= 0.001, text)


def _synthetic(index: RowIndex, method: str, metric: str = "f1") -> list[float]:
    """Return the means on uncorrelated and on correlated data."""
    return [index.mean("synthetic", data, method, metric) for data in SYNTHETIC]


@reads("rnm-discriminates")
def _rnm_discriminates(index: RowIndex) -> Outcome:
    shown, right = [], []
    for method in ("rnm-screen", "adp-screen"):
        tpr, fpr = (_synthetic(index, method, metric) for metric in ("tpr", "fpr"))
        for data, a, b in zip(SYNTHETIC, tpr, fpr, strict=True):
            shown.append(f"{_spoken(method)} {a - b:.3f} on {data} data")
            right.append((a - b > APART) is (method == "rnm-screen"))
    return Outcome(all(right), f"TPR − FPR at the end: {', '.join(shown)}.")


@reads("correlated-features-help", {"method": "rnm-screen"}, {"method": "adp-screen"})
def _correlated_help(index: RowIndex, method: str) -> Outcome:
    without, with_ = _synthetic(index, method)
    text = f"F1 {without:.3f} on uncorrelated, {with_:.3f} on correlated data."
    return Outcome(with_ > without + LITTLE, text)


@reads("correlated-features-help")
def _correlated_help_the_rule(index: RowIndex) -> Outcome:
    both = (_synthetic(index, method) for method in ("rnm-screen", "uniform-zeroing"))
    ours, chance = (with_ - without for without, with_ in both)
    text = f"F1 gains {ours:.3f} with the rule and {chance:.3f} with zeroing at random."
    return Outcome(ours > chance + LITTLE, text)


# --- Appendix C ---------------------------------------------------------------------------------


@reads("adp-overscreens")
def _overscreens(index: RowIndex) -> Outcome:
    d = published_data()["uncorrelated"].n_features
    left = d * index.mean("adp", "uncorrelated", "adp-screen", "density")
    return Outcome(left <= FEW_NONZEROS, f"{left:.1f} of {d} coefficients are nonzero at the end.")


def _kept(index: RowIndex, methods: Iterable[str]) -> tuple[list[tuple[float, float]], str]:
    """The shares of true nonzeros and of true zeros that are nonzero at the end, and in words."""
    mean = partial(index.mean, "adp", "uncorrelated")
    kept = {method: (mean(method, "tpr"), mean(method, "fpr")) for method in methods}
    shown = "; ".join(f"{_spoken(name)} {a:.3f} / {b:.3f}" for name, (a, b) in kept.items())
    return list(kept.values()), f"True nonzeros / true zeros left nonzero: {shown}."


@reads("adp-no-discrimination")
def _adp_apart(index: RowIndex) -> Outcome:
    kept, text = _kept(index, FIGURE_3)
    return Outcome(all(true - false <= APART for true, false in kept), text)


@reads("adp-no-discrimination")
def _adp_differs(index: RowIndex) -> Outcome:
    gaps = {}
    for method in FIGURE_3:
        place = ("adp", "uncorrelated", method)
        gap = index.difference((*place, "tpr"), (*place, "fpr"))
        if gap is None:
            raise NotRunError(_spoken(method))
        gaps[_spoken(method)] = gap
    text = f"TPR − FPR: {'; '.join(f'{name} {gap.signed}' for name, gap in gaps.items())}."
    return Outcome(not any(gap.is_positive for gap in gaps.values()), text)


@reads("experiment-a")
def _experiment_a(index: RowIndex) -> Outcome:
    plain, other = (
        {method: index.mean("adp", data, method, "screened") for method in EXPERIMENT_A}
        for data in SYNTHETIC
    )
    shown = "; ".join(f"{_spoken(name)} {count:.1f}" for name, count in plain.items())
    text = (
        f"Coordinates set to zero in a run, each time counted: {shown}. On correlated data, of "
        f"which the paper does not speak, up to {max(other.values()):.0f}."
    )
    return Outcome(not any(plain.values()), text)


@reads("experiment-b")
def _experiment_b(index: RowIndex) -> Outcome:
    ((true, false),), text = _kept(index, EXPERIMENT_B[1:2])
    return Outcome(abs(true - 0.1) <= LITTLE and false <= 0.005, text)


@reads("experiment-b", {"place": 0}, {"place": -1})
def _experiment_b_as_figure_3(index: RowIndex, place: int) -> Outcome:
    kept, text = _kept(index, (EXPERIMENT_B[place], FIGURE_3[place]))
    return Outcome(all(abs(a - b) <= LITTLE for a, b in zip(*kept, strict=True)), text)


@reads("wolfe-gap")
def _wolfe_gap(index: RowIndex) -> Outcome:
    private, rule, plain = (
        _curve_ends(index, "adp", "uncorrelated", method, "wolfe_gap")[-1] for method in GAPS
    )
    text = (
        f"At the last iteration {private:.3f} with private optimisation and {rule:.3f} without; "
        f"{plain:.3f} with neither noise nor screening."
    )
    return Outcome(private > max(rule, plain), text)


# --- Theorem 2 ------------------------------------------------------------------------------------


@reads("theorem-2-many-iterations")
def _theorem2_iterations(index: RowIndex) -> Outcome:
    settled = [found for found in check_theorem2(index) if found.settled]
    if not settled:
        raise NotRunError("the uniform process")
    corrected = max(abs(found.off(found.corrected_limit)) for found in settled)
    published = max(abs(found.off(found.published_limit)) for found in settled)
    text = (
        f"The simulation is within {corrected:.2%} of d(d−1)/(2d−1) and up to {published:.0%} off "
        "the printed limit (erratum E6)."
    )
    return Outcome(published <= 0.02, text, {"corrected": corrected, "printed": published})


@reads("theorem-2-many-features")
def _theorem2_features(index: RowIndex) -> Outcome:
    found = max(check_theorem2(index), key=lambda one: one.process.n_features, default=None)
    if found is None:
        raise NotRunError("the uniform process")
    process, simulated, limit = found.process, found.simulated, found.process.n_iter - 1
    text = (
        f"d = {process.n_features}, T = {process.n_iter}: {simulated.mean:.2f} ± "
        f"{simulated.standard_error:.2f} nonzeros; the corrected expression gives "
        f"{found.corrected:.2f}, the printed limit is {limit}, the printed expression gives "
        f"{found.published:.1f}."
    )
    near = simulated._replace(mean=simulated.mean - limit).is_zero
    return Outcome(near and math.isclose(found.published, limit, rel_tol=0.02), text)


# --- real data, Section 5.2 -----------------------------------------------------------------------


@reads("rnm-f1-above-oracle-on-larger-sets")
def _above_oracle_in_blocks(index: RowIndex) -> Outcome:
    wins = {}
    for data in BOLD_F1:
        ours, theirs = ((LONG["real"], data, name, "f1") for name in ("rnm-screen", "oracle-k-fw"))
        pairs = index.paired(ours, theirs)
        if not pairs:
            raise NotRunError(f"further trials on {label(data)}")
        wins[data] = sum(compare(pairs[k::BLOCKS], "f1").better for k in range(BLOCKS))
    shown = ", ".join(f"{label(data)} in {count}" for data, count in wins.items())
    text = f"Significant, of {BLOCKS} studies: {shown}."
    return Outcome(all(count > BLOCKS / 2 for count in wins.values()), text)


LONGER = {"before": "rnm-screen", "after": "rnm-screen-longer"}


@reads("more-iterations-large", {"before": ITERATIONS[0], "after": ITERATIONS[1]}, LONGER)
def _more_on_the_largest(index: RowIndex, before: str, after: str) -> Outcome:
    (f1, more_f1), (density, more_density) = (
        [index.mean("real", LARGEST, name, metric) for name in (before, after)]
        for metric in ("f1", "density")
    )
    text = f"F1 {f1:.3f} → {more_f1:.3f}, density {density:.3f} → {more_density:.3f}."
    return Outcome(more_f1 > f1 and more_density > density, text)


@reads("more-iterations-small", {"before": "np-fw", "after": ITERATIONS[1]}, LONGER)
def _more_on_smaller(index: RowIndex, before: str, after: str) -> Outcome:
    f1, density = (_changes(index, metric, before, after, SMALLER) for metric in ("f1", "density"))
    steady = [data for data in SMALLER if abs(f1[data]) <= LITTLE]
    denser = [data for data in SMALLER if density[data] > 0]
    n_sparser = sum(density[data] < 0 for data in SMALLER)
    largest = max(map(abs, f1.values()))
    text = (
        f"Density rises on {_of_sets(denser, SMALLER)} and falls on {n_sparser}; F1 changes by "
        f"at most {LITTLE} on {_of_sets(steady, SMALLER)}, at most by {largest:.3f}."
    )
    holds = len(denser) == len(steady) == len(SMALLER)
    return Outcome(holds, text, _labelled(f1, "F1") | _labelled(density, "density"))


@reads("r2-definition")
def _r2_definition(index: RowIndex) -> Outcome:
    compared = check_r2(index)
    if not compared:
        raise NotRunError("RNM-Screen on real data")
    unchosen = sum(check.fits == "unchosen" for check in compared)
    text = (
        f"The regression to all unchosen features is nearer to the printed value in {unchosen} of "
        f"{len(compared)} cells, the one that the text defines in {len(compared) - unchosen}."
    )
    return Outcome(unchosen < len(compared) / 2, text)


@reads("np-fw-best")
def _np_fw_best(index: RowIndex) -> Outcome:
    best = list(REAL)
    for other in ("preselect-k-fw", "oracle-k-fw", "rnm-screen"):
        f1, mse = (_changes(index, metric, other, "np-fw", REAL) for metric in ("f1", "mse"))
        best = [data for data in best if f1[data] >= 0 and mse[data] <= SAME]
    return Outcome(len(best) == len(REAL), f"Best in F1 and in MSE on {_of_sets(best)}.")
