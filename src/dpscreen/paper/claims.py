"""The paper's claims outside its tables: rows in, a verdict and a sentence for each reading out.

The readings, how the paper's words are taken and what was run for that, are in `published.json`. A
check is registered for each, in the same order.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from dpscreen.paper.agreement import (
    NotRunError,
    RowIndex,
    check_control,
    check_r2,
    check_theorem2,
    compare,
    mean_of,
)
from dpscreen.paper.methods import of_rows
from dpscreen.paper.metrics import SignTest
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
    FROM_ZERO,
    GAPS,
    ITERATIONS,
    LONG,
    RULES,
    SYNTHETIC,
    ZERO_START,
)
from dpscreen.privacy import sensitivity

REAL = tuple(name for name in published_data() if name not in SYNTHETIC)
WIDE = tuple(name for name in REAL if published_data()[name].n_features > 20)
LARGEST = "blogfeedback"
SMALLER = tuple(name for name in REAL if name != LARGEST)
BOLD_F1 = tuple(
    cell.data
    for cell in published_cells(3)
    if (cell.method, cell.metric, cell.bold) == ("rnm-screen", "f1", True)
)
RNM_OR_DP_FW = ("rnm-screen", "dp-fw")
RNM_OR_ADP = ("rnm-screen", "adp-screen")
RNM_OR_ORACLE = ("rnm-screen", "oracle-k-fw")
LITTLE = 0.05
"""A share or an F1 that differs by no more is called about the same."""
SAME = 0.0005
"""A number that differs by less is the same to three decimals."""
APART = 0.1
"""By how much TPR must exceed FPR for a method to separate nonzeros from zeros."""
HALF = 0.5
"""An R² above which some features are called reasonably good at predicting others."""
FEW_NONZEROS = 10
NEARLY_ALL = 0.99


class Outcome(NamedTuple):
    """Whether a claim holds in one reading (None: not run), why, and the numbers behind it."""

    holds: bool | None
    finding: str
    numbers: Mapping[str, float] = {}


class JudgedReading(NamedTuple):
    """How the words were taken, what was run for that, and what came out."""

    reading: str
    run: str
    outcome: Outcome

    @property
    def verdict(self) -> str:
        """Return "holds", "does not hold" or "not run"."""
        return {True: "holds", False: "does not hold", None: "not run"}[self.outcome.holds]


@dataclass(frozen=True)
class ClaimCheck(PublishedClaim):
    """A statement of the paper, and what was found of it in every reading."""

    judged: tuple[JudgedReading, ...]

    @property
    def verdict(self) -> str:
        """Return what all readings agree on, or that they do not."""
        found = {one.verdict for one in self.judged}
        if "not run" in found:
            return "not run"
        return found.pop() if len(found) == 1 else "depends on the reading"


Check = Callable[..., Outcome]
CHECKS: dict[str, list[Check]] = defaultdict(list)
"""By claim, one check for each of its readings."""


def check_claims(index: RowIndex) -> tuple[ClaimCheck, ...]:
    """Check every claim, in the order of `published_claims`."""
    found = []
    for key, claim in published_claims().items():
        judged = []
        for reading, check in zip(claim.readings, CHECKS[key], strict=True):
            try:
                outcome = check(index)
            except NotRunError as error:
                outcome = Outcome(None, f"Not run: {error}.")
            judged.append(JudgedReading(**reading, outcome=outcome))
        found.append(ClaimCheck(**vars(claim), judged=tuple(judged)))
    return tuple(found)


def reads(key: str, *settings: Mapping[str, Any]) -> Callable[[Check], Check]:
    """Register a check for the next reading of a claim; for several, one with each settings."""

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


def _tested(
    index: RowIndex, suite: str, data: str, methods: tuple[str, str], metric: str
) -> SignTest:
    """Return the sign test of the first method against the second."""
    found = index.sign_test(suite, data, methods, metric)
    if found is None:
        raise NotRunError(f"{_spoken(methods[0])} and {_spoken(methods[1])} on {label(data)}")
    return found


def _means(
    index: RowIndex, suite: str, method: str, metric: str, sets: Sequence[str] = REAL
) -> dict[str, float]:
    return {data: index.mean(suite, data, method, metric) for data in sets}


def _changes(
    index: RowIndex,
    metric: str,
    ours: tuple[str, str],
    theirs: tuple[str, str],
    sets: Sequence[str] = REAL,
) -> dict[str, float]:
    """How much more one (suite, method) has of a metric than another, on each set."""
    first, second = (_means(index, *one, metric, sets) for one in (ours, theirs))
    return {data: first[data] - second[data] for data in sets}


def _spoken(method: str) -> str:
    return of_rows(method).label


def _labelled(numbers: Mapping[str, float], of: str = "") -> dict[str, float]:
    """Return numbers by data set under the names that readers know."""
    return {f"{of} {label(data)}".strip(): value for data, value in numbers.items()}


def _of_sets(found: Iterable[str], among: Sequence[str] = REAL) -> str:
    """Return "2 of 8 sets (Abalone, Housing)"."""
    names = [label(name) for name in found]
    which = f" ({', '.join(names)})" if 0 < len(names) < len(among) else ""
    return f"{len(names)} of {len(among)} sets{which}"


def _largest(numbers: Mapping[str, float]) -> float:
    return max(map(abs, numbers.values()))


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
    return list(_means(index, "synthetic", method, metric, SYNTHETIC).values())


@reads("rnm-better-f1-than-adp")
def _rnm_better_than_adp(index: RowIndex) -> Outcome:
    tests = [_tested(index, "synthetic", data, RNM_OR_ADP, "f1") for data in SYNTHETIC]
    ours, theirs = (_synthetic(index, name) for name in RNM_OR_ADP)
    found = "; ".join(
        f"{label(data).lower()} {a:.3f} against {b:.3f}, p = {test.p_two_sided:.2g}"
        for data, a, b, test in zip(SYNTHETIC, ours, theirs, tests, strict=True)
    )
    return Outcome(all(test.better for test in tests), f"F1: {found}.")


@reads("rnm-discriminates")
def _rnm_discriminates(index: RowIndex) -> Outcome:
    shown, right = [], []
    for method in RNM_OR_ADP:
        tpr, fpr = (_synthetic(index, method, metric) for metric in ("tpr", "fpr"))
        for data, a, b in zip(SYNTHETIC, tpr, fpr, strict=True):
            shown.append(f"{_spoken(method)} {a - b:.3f} on {data} data")
            right.append((a - b > APART) is (method == "rnm-screen"))
    return Outcome(all(right), f"TPR − FPR at the end: {', '.join(shown)}.")


@reads("rnm-discriminates")
def _rule_discriminates(index: RowIndex) -> Outcome:
    found = [one for one in check_control(index) if one.metric == "f1"]
    if len(found) < len(SYNTHETIC):
        raise NotRunError("zeroing at random")
    shown = "; ".join(
        f"{label(one.data).lower()} {one.screened.mean:.3f} and {one.control.mean:.3f}, difference "
        f"{one.difference.signed}"
        for one in found
    )
    ahead = all(one.difference.is_positive for one in found)
    return Outcome(ahead, f"F1 with the rule and with zeroing at random: {shown}.")


@reads("rnm-less-sparse-than-adp")
def _less_sparse(index: RowIndex) -> Outcome:
    both = (_synthetic(index, name, "density") for name in RNM_OR_ADP)
    found = list(zip(*both, SYNTHETIC, strict=True))
    shown = ", ".join(f"{a:.3f} against {b:.3f} on {data} data" for a, b, data in found)
    return Outcome(all(a > b for a, b, _ in found), f"Density {shown}.")


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


@reads("one-screened-per-iteration", {"least": 1.0}, {"least": NEARLY_ALL})
def _one_per_iteration(index: RowIndex, least: float) -> Outcome:
    shares = {
        data: index.mean(suite, data, "rnm-screen", "screened") / published_data()[data].n_iter
        for suite, sets in (("synthetic", SYNTHETIC), ("real", REAL))
        for data in sets
    }
    fewest = min(shares, key=shares.__getitem__)
    always = sum(share == 1 for share in shares.values())
    text = (
        f"In every round on {always} of {len(shares)} sets; least often on {label(fewest)}, in "
        f"{shares[fewest]:.2%} of the rounds."
    )
    return Outcome(shares[fewest] >= least, text, _labelled(shares))


# --- mathematics: no rows needed but for Theorem 2 ----------------------------------------------


@reads("theorem-1")
def _theorem1(_index: RowIndex) -> Outcome:
    published = sensitivity.published_screening_score(radius=50.0, n_rows=3000)
    exact = sensitivity.screening_score(radius=50.0, n_rows=3000)
    text = f"At λ = 50, n = 3000: printed {published:.3g}, attained {exact:.4g} (erratum E2)."
    return Outcome(False, text, {"printed": published, "attained": exact})


@reads("lipschitz-constant")
def _lipschitz(_index: RowIndex) -> Outcome:
    bound = sensitivity.residual_bound(radius=50.0, target_bound=50.0)
    return Outcome(False, f"It is 2λ: {bound:.0f} at λ = 50 (erratum E1).")


@reads("rnm-privacy")
@reads("adp-privacy")
def _privacy(_index: RowIndex) -> Outcome:
    return Outcome(False, "Its sensitivities are too small (errata E1 and E2).")


@reads("theorem-2-many-iterations")
def _theorem2_iterations(index: RowIndex) -> Outcome:
    settled = [found for found in check_theorem2(index) if found.settled]
    if not settled:
        raise NotRunError("the uniform process")
    corrected = max(abs(found.simulated.mean / found.corrected_limit - 1) for found in settled)
    published = max(abs(found.simulated.mean / found.published_limit - 1) for found in settled)
    text = (
        f"The simulation is within {corrected:.2%} of d(d−1)/(2d−1) and up to {published:.0%} off "
        "the printed limit (erratum E6)."
    )
    return Outcome(published <= 0.02, text, {"corrected": corrected, "printed": published})


@reads("theorem-2-many-features")
def _theorem2_features(index: RowIndex) -> Outcome:
    found = max(check_theorem2(index), key=lambda one: one.n_features, default=None)
    if found is None:
        raise NotRunError("the uniform process")
    simulated, limit = found.simulated, found.n_iter - 1
    text = (
        f"d = {found.n_features}, T = {found.n_iter}: {simulated.mean:.2f} ± "
        f"{simulated.standard_error:.2f} nonzeros; the corrected expression gives "
        f"{found.corrected:.2f}, the printed limit is {limit}, the printed expression gives "
        f"{found.published:.1f}."
    )
    near = simulated._replace(mean=simulated.mean - limit).is_zero
    return Outcome(near and math.isclose(found.published, limit, rel_tol=0.02), text)


# --- real data, Section 5.2 and Appendix E: significance ----------------------------------------

ORACLE = {"suite": "real", "methods": RNM_OR_ORACLE[::-1]}


@reads("f1-not-better-than-dp-fw", {"suite": "real", "methods": RNM_OR_DP_FW})
@reads("ablation-f1-not-better-than-dp-fw", {"suite": "ablation", "methods": RNM_OR_DP_FW})
@reads("oracle-f1-not-better-above-20-features", ORACLE | {"sets": WIDE})
@reads("oracle-mse-not-better-above-20-features", ORACLE | {"sets": WIDE[:-1], "metric": "mse"})
def _none_better(
    index: RowIndex,
    suite: str,
    methods: tuple[str, str],
    metric: str = "f1",
    sets: tuple[str, ...] = REAL,
) -> Outcome:
    tests = {data: _tested(index, suite, data, methods, metric) for data in sets}
    ahead = [data for data, test in tests.items() if test.better]
    text = (
        f"{_spoken(methods[0])} is significantly better than {_spoken(methods[1])} in "
        f"{label(metric)} on {_of_sets(ahead, sets)}."
    )
    numbers = {data: test.p_two_sided for data, test in tests.items()}
    return Outcome(not ahead, text, _labelled(numbers, "p"))


@reads(
    "density-better-than-dp-fw",
    {"suite": "real"},
    {"suite": ZERO_START, "methods": FROM_ZERO[::-1]},
)
@reads("ablation-density-better-than-dp-fw", {"suite": "ablation"})
def _density_better(
    index: RowIndex, suite: str, methods: tuple[str, str] = RNM_OR_DP_FW
) -> Outcome:
    ahead = [data for data in REAL if _tested(index, suite, data, methods, "density").better]
    dense = min(_means(index, suite, methods[1], "density").values())
    text = f"On {_of_sets(ahead)}; the density of {_spoken(methods[1])} is at least {dense:.3f}."
    return Outcome(len(ahead) == len(REAL), text)


@reads("minimal-side-effects")
def _small_side_effects(index: RowIndex) -> Outcome:
    more = _changes(index, "mse", ("real", "rnm-screen"), ("real", "dp-fw"))
    small = [data for data in REAL if more[data] <= LITTLE]
    text = (
        f"At most {LITTLE} above on {_of_sets(small)}; from {min(more.values()):+.3f} to "
        f"{max(more.values()):+.3f}."
    )
    return Outcome(len(small) >= len(REAL) / 2, text, _labelled(more))


@reads("minimal-side-effects")
def _side_effects(index: RowIndex) -> Outcome:
    methods = RNM_OR_DP_FW[::-1]
    worse = [data for data in REAL if _tested(index, "real", data, methods, "mse").better]
    return Outcome(len(worse) <= len(REAL) / 2, f"Significantly above on {_of_sets(worse)}.")


@reads("rnm-f1-above-oracle-on-larger-sets", {"suite": "real", "sets": WIDE, "expected": WIDE})
@reads("ablation-f1", {"suite": "ablation", "sets": REAL, "expected": ()})
def _f1_above_oracle(
    index: RowIndex, suite: str, sets: tuple[str, ...], expected: tuple[str, ...]
) -> Outcome:
    more = _changes(index, "f1", (suite, "rnm-screen"), (suite, "oracle-k-fw"), sets)
    higher = tuple(data for data in sets if more[data] > 0)
    return Outcome(higher == expected, f"Higher on {_of_sets(higher, sets)}.", _labelled(more))


@reads("rnm-f1-above-oracle-on-larger-sets")
def _above_oracle_in_blocks(index: RowIndex) -> Outcome:
    wins = {}
    for data in BOLD_F1:
        ours, theirs = ((LONG["real"], data, name, "f1") for name in RNM_OR_ORACLE)
        pairs = index.paired(ours, theirs)
        if not pairs:
            raise NotRunError(f"further trials on {label(data)}")
        wins[data] = sum(compare(pairs[k::BLOCKS], "f1").better for k in range(BLOCKS))
    shown = ", ".join(f"{label(data)} in {count}" for data, count in wins.items())
    text = f"Significant, of {BLOCKS} studies: {shown}."
    return Outcome(all(count > BLOCKS / 2 for count in wins.values()), text)


# --- real data: iterations ----------------------------------------------------------------------

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
    f1, density = (
        _changes(index, metric, ("real", after), ("real", before), SMALLER)
        for metric in ("f1", "density")
    )
    steady = [data for data in SMALLER if abs(f1[data]) <= LITTLE]
    denser = [data for data in SMALLER if density[data] > 0]
    n_sparser = sum(density[data] < 0 for data in SMALLER)
    text = (
        f"Density rises on {_of_sets(denser, SMALLER)} and falls on {n_sparser}; F1 changes by "
        f"at most {LITTLE} on {_of_sets(steady, SMALLER)}, at most by {_largest(f1):.3f}."
    )
    holds = len(denser) == len(steady) == len(SMALLER)
    return Outcome(holds, text, _labelled(f1, "F1") | _labelled(density, "density"))


@reads("learning-on-larger-sets")
def _loss_falls(index: RowIndex) -> Outcome:
    ends = {data: _curve_ends(index, "real", data, "rnm-screen", "mse") for data in REAL}
    first, last = ({data: both[at] for data, both in ends.items()} for at in (0, 1))
    falling = [data for data in WIDE if last[data] < first[data]]
    text = f"Below the error after the first iteration on {_of_sets(falling, WIDE)}."
    numbers = _labelled(first, "first") | _labelled(last, "last")
    return Outcome(len(falling) == len(WIDE), text, numbers)


@reads("learning-on-larger-sets")
def _better_than_zero(index: RowIndex) -> Outcome:
    ratios = _means(index, "real", "rnm-screen", "mse")
    for data in REAL:
        settings = index.rows("real", data, "rnm-screen")[0].settings
        if "zero_error" not in settings:
            raise NotRunError(f"predicting zero on {label(data)}")
        ratios[data] /= settings["zero_error"]
    wide = [ratios[data] for data in WIDE]
    below = [data for data in WIDE if ratios[data] < 1]
    text = (
        f"Its error is {min(wide):.2f} to {max(wide):.2f} of that of predicting zero, below it on "
        f"{_of_sets(below, WIDE)}."
    )
    return Outcome(len(below) == len(WIDE), text, _labelled(ratios))


# --- real data: R² ------------------------------------------------------------------------------


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


@reads("r2-reasonable", {"metric": "r2_missed"}, {"metric": "r2_unchosen"})
def _r2_reasonable(index: RowIndex, metric: str) -> Outcome:
    found = _means(index, "real", "rnm-screen", metric)
    good = [data for data in REAL if found[data] > HALF]
    text = f"Above {HALF} on {_of_sets(good)}."
    return Outcome(len(good) > len(REAL) / 2, text, _labelled(found))


@reads("r2-reasonable", {"metric": "r2_missed"}, {"metric": "r2_unchosen"})
def _r2_beyond_chance(index: RowIndex, metric: str) -> Outcome:
    above, parts = [], []
    for data in REAL:
        ours, chance = (("real", data, "rnm-screen", metric + end) for end in ("", "_at_random"))
        parts.append(f"{label(data)} {index.mean(*ours):.3f} and {index.mean(*chance):.3f}")
        gain = index.difference(ours, chance)
        above += [data] if gain is not None and gain.is_positive else []
    text = (
        f"Chosen and random features explain: {'; '.join(parts)}. The chosen ones explain more, by "
        f"two standard errors, on {_of_sets(above)}."
    )
    return Outcome(len(above) > len(REAL) / 2, text)


# --- real data: Table 3, and without the Yeo-Johnson transform ----------------------------------


@reads("np-fw-unchanged-by-screening", *({"rule": rule} for rule in RULES[:3]))
def _unchanged_by_screening(index: RowIndex, rule: str) -> Outcome:
    f1, mse = (
        _changes(index, metric, ("real", rule), ("real", "np-fw")) for metric in ("f1", "mse")
    )
    same = [data for data in REAL if max(abs(f1[data]), abs(mse[data])) < SAME]
    text = (
        f"To three decimals the same on {_of_sets(same)}; F1 changes by at most "
        f"{_largest(f1):.3f}, MSE by at most {_largest(mse):.3f}."
    )
    if rule != RULES[0]:
        out = [data for data in REAL if index.mean("real", data, rule, "screened")]
        text += f" It leaves features out on {_of_sets(out)}."
    return Outcome(len(same) == len(REAL), text, _labelled(f1, "F1") | _labelled(mse, "MSE"))


@reads("np-fw-best")
def _np_fw_best(index: RowIndex) -> Outcome:
    best = list(REAL)
    for other in ("preselect-k-fw", "oracle-k-fw", "rnm-screen"):
        f1, mse = (
            _changes(index, metric, ("real", "np-fw"), ("real", other)) for metric in ("f1", "mse")
        )
        best = [data for data in best if f1[data] >= 0 and mse[data] <= SAME]
    return Outcome(len(best) == len(REAL), f"Best in F1 and in MSE on {_of_sets(best)}.")


@reads("low-dimensional-data", {"more_rows": False}, {"more_rows": True})
def _low_dimensional(_index: RowIndex, more_rows: bool) -> Outcome:
    facts = published_data()
    taller = [name for name in REAL if facts[name].n_rows > facts[name].n_features]
    holds = len(taller) == (len(REAL) if more_rows else 0)
    return Outcome(holds, f"{_of_sets(taller)} have more rows than features.")


@reads("ablation-r2", {"metric": "r2_unchosen"}, {"metric": "r2_missed"})
def _ablation_r2(index: RowIndex, metric: str) -> Outcome:
    more = _changes(index, metric, ("ablation", "rnm-screen"), ("real", "rnm-screen"))
    lower = [data for data in REAL if more[data] < 0]
    return Outcome(lower == list(SMALLER), f"Lower on {_of_sets(lower)}.", _labelled(more))


reads("ablation-f1", {"suite": "ablation", "methods": RNM_OR_ORACLE})(_none_better)
