"""The claims about real data, Section 5.2 and Appendix E, one function for each reading."""

from __future__ import annotations

from dpscreen.paper.agreement import (
    STANDARD_ERRORS,
    RowIndex,
    better_by_sign_test,
    check_r2,
    mean_of,
)
from dpscreen.paper.findings import (
    LITTLE,
    REAL,
    WIDE,
    Checks,
    NotRunError,
    Outcome,
    better,
    by_label,
    changes,
    curve_mean,
    mean,
    of_sets,
    spoken,
)
from dpscreen.paper.published import label, published_cells, published_data
from dpscreen.paper.suites import BLOCKS, FROM_ZERO, ITERATIONS, LONG, RULES, ZERO_START

REAL_CHECKS = Checks()
reads = REAL_CHECKS.reads

LARGEST = "blogfeedback"
SMALLER = tuple(name for name in REAL if name != LARGEST)
HALF = 0.5
"""An R² above which some features are called reasonably good at standing in for others."""


# --- significance -------------------------------------------------------------------------------

RNM_OR_DP_FW = ("rnm-screen", "dp-fw")
ORACLE_OR_RNM = ("oracle-k-fw", "rnm-screen")
NOT_BLOG = tuple(name for name in WIDE if name != LARGEST)


@reads("f1-not-better-than-dp-fw", {"suite": "real", "metric": "f1", "methods": RNM_OR_DP_FW})
@reads(
    "ablation-f1-not-better-than-dp-fw",
    {"suite": "ablation", "metric": "f1", "methods": RNM_OR_DP_FW},
)
@reads(
    "oracle-f1-not-better-above-20-features",
    {"suite": "real", "metric": "f1", "methods": ORACLE_OR_RNM, "sets": WIDE},
)
@reads(
    "oracle-mse-not-better-above-20-features",
    {"suite": "real", "metric": "mse", "methods": ORACLE_OR_RNM, "sets": NOT_BLOG},
)
def _none_better(
    index: RowIndex,
    suite: str,
    metric: str,
    methods: tuple[str, str],
    sets: tuple[str, ...] = REAL,
) -> Outcome:
    tests = {data: better(index, suite, data, methods, metric) for data in sets}
    ahead = [data for data, (found, _) in tests.items() if found]
    text = (
        f"{spoken(methods[0])} is significantly better than {spoken(methods[1])} in "
        f"{label(metric)} on {of_sets(ahead, sets)}."
    )
    return Outcome(not ahead, text, by_label({data: p for data, (_, p) in tests.items()}, "p"))


@reads(
    "density-better-than-dp-fw",
    {"suite": "real"},
    {"suite": ZERO_START, "methods": FROM_ZERO[::-1]},
)
@reads("ablation-density-better-than-dp-fw", {"suite": "ablation"})
def _density_better(
    index: RowIndex, suite: str, methods: tuple[str, str] = RNM_OR_DP_FW
) -> Outcome:
    ahead = [data for data in REAL if better(index, suite, data, methods, "density")[0]]
    dense = min(mean(index, suite, data, methods[1], "density") for data in REAL)
    text = f"On {of_sets(ahead)}; the density of {spoken(methods[1])} is at least {dense:.3f}."
    return Outcome(len(ahead) == len(REAL), text)


@reads("minimal-side-effects")
def _small_side_effects(index: RowIndex) -> Outcome:
    more = changes(index, "mse", ("real", "rnm-screen"), ("real", "dp-fw"))
    small = [data for data in REAL if more[data] <= LITTLE]
    text = (
        f"At most {LITTLE} above on {of_sets(small)}; from {min(more.values()):+.3f} to "
        f"{max(more.values()):+.3f}."
    )
    return Outcome(len(small) >= len(REAL) / 2, text, by_label(more))


@reads("minimal-side-effects")
def _side_effects(index: RowIndex) -> Outcome:
    methods = ("dp-fw", "rnm-screen")
    worse = [data for data in REAL if better(index, "real", data, methods, "mse")[0]]
    return Outcome(len(worse) <= len(REAL) / 2, f"Significantly above on {of_sets(worse)}.")


BOLD_F1 = tuple(
    cell.data
    for cell in published_cells(3)
    if (cell.method, cell.metric, cell.bold) == ("rnm-screen", "f1", True)
)


@reads("rnm-f1-above-oracle-on-larger-sets")
def _above_oracle(index: RowIndex) -> Outcome:
    more = changes(index, "f1", ("real", "rnm-screen"), ("real", "oracle-k-fw"), WIDE)
    higher = [data for data in WIDE if more[data] > 0]
    return Outcome(len(higher) == len(WIDE), f"Higher on {of_sets(higher, WIDE)}.", by_label(more))


@reads("rnm-f1-above-oracle-on-larger-sets")
def _above_oracle_in_blocks(index: RowIndex) -> Outcome:
    wins = {data: _significant_blocks(index, data) for data in BOLD_F1}
    shown = ", ".join(f"{label(data)} in {count}" for data, count in wins.items())
    text = f"Significant, of {BLOCKS} studies: {shown}."
    return Outcome(all(count > BLOCKS / 2 for count in wins.values()), text)


def _significant_blocks(index: RowIndex, data: str) -> int:
    """In how many of the studies a sign test finds RNM-Screen's F1 above Oracle-K's."""
    trials = [index.values(LONG["real"], data, name, "f1") for name in ORACLE_OR_RNM[::-1]]
    both = sorted(set(trials[0]) & set(trials[1]))
    if not both:
        raise NotRunError(f"further trials on {label(data)}")
    found = 0
    for start in range(BLOCKS):
        ours, theirs = ({t: values[t] for t in both[start::BLOCKS]} for values in trials)
        found += better_by_sign_test(ours, theirs, "f1")[1]
    return found


# --- iterations ---------------------------------------------------------------------------------

MORE = (
    {"before": ITERATIONS[0], "after": ITERATIONS[1]},
    {"before": "rnm-screen", "after": "rnm-screen-longer"},
)


@reads("more-iterations-large", *MORE)
def _more_on_the_largest(index: RowIndex, before: str, after: str) -> Outcome:
    (f1, more_f1), (density, more_density) = (
        [mean(index, "real", LARGEST, name, metric) for name in (before, after)]
        for metric in ("f1", "density")
    )
    text = f"F1 {f1:.3f} → {more_f1:.3f}, density {density:.3f} → {more_density:.3f}."
    return Outcome(more_f1 > f1 and more_density > density, text)


@reads("more-iterations-small", {"before": "np-fw", "after": ITERATIONS[1]}, MORE[1])
def _more_on_smaller(index: RowIndex, before: str, after: str) -> Outcome:
    f1, density = (
        changes(index, metric, ("real", after), ("real", before), SMALLER)
        for metric in ("f1", "density")
    )
    steady = [data for data in SMALLER if abs(f1[data]) <= LITTLE]
    denser = [data for data in SMALLER if density[data] > 0]
    sparser = [data for data in SMALLER if density[data] < 0]
    text = (
        f"Density rises on {of_sets(denser, SMALLER)} and falls on {len(sparser)}; F1 changes by "
        f"at most {LITTLE} on {of_sets(steady, SMALLER)}, at most by "
        f"{max(map(abs, f1.values())):.3f}."
    )
    holds = len(denser) == len(steady) == len(SMALLER)
    return Outcome(holds, text, by_label(f1, "F1") | by_label(density, "density"))


@reads("learning-on-larger-sets")
def _loss_falls(index: RowIndex) -> Outcome:
    first, last = (
        {data: curve_mean(index, "real", data, "rnm-screen", "mse", place) for data in REAL}
        for place in (0, -1)
    )
    falling = [data for data in WIDE if last[data] < first[data]]
    text = f"Below the error after the first iteration on {of_sets(falling, WIDE)}."
    return Outcome(
        len(falling) == len(WIDE), text, by_label(first, "first") | by_label(last, "last")
    )


@reads("learning-on-larger-sets")
def _better_than_zero(index: RowIndex) -> Outcome:
    ratios = {}
    for data in REAL:
        error = mean(index, "real", data, "rnm-screen", "mse")
        row = index.rows("real", data, "rnm-screen")[0]
        if "zero_error" not in row.settings:
            raise NotRunError(f"predicting zero on {label(data)}")
        ratios[data] = error / row.settings["zero_error"]
    below = [data for data in WIDE if ratios[data] < 1]
    text = (
        f"Its error is {min(ratios[d] for d in WIDE):.2f} to {max(ratios[d] for d in WIDE):.2f} "
        f"of that of predicting zero, below it on {of_sets(below, WIDE)}."
    )
    return Outcome(len(below) == len(WIDE), text, by_label(ratios))


# --- R² -----------------------------------------------------------------------------------------


@reads("r2-definition")
def _r2_definition(index: RowIndex) -> Outcome:
    compared = check_r2(index.all_rows())
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
    found = {data: mean(index, "real", data, "rnm-screen", metric) for data in REAL}
    good = [data for data in REAL if found[data] > HALF]
    return Outcome(len(good) > len(REAL) / 2, f"Above {HALF} on {of_sets(good)}.", by_label(found))


@reads("r2-reasonable", {"metric": "r2_missed"}, {"metric": "r2_unchosen"})
def _r2_beyond_chance(index: RowIndex, metric: str) -> Outcome:
    ours, chance = (
        {data: mean(index, "real", data, "rnm-screen", f"{metric}{which}") for data in REAL}
        for which in ("", "_at_random")
    )
    above = [data for data in REAL if _explains_more(index, data, metric)]
    shown = "; ".join(f"{label(d)} {ours[d]:.3f} and {chance[d]:.3f}" for d in REAL)
    text = (
        f"Chosen and random features explain: {shown}. The chosen ones explain more, by two "
        f"standard errors, on {of_sets(above)}."
    )
    return Outcome(len(above) > len(REAL) / 2, text)


def _explains_more(index: RowIndex, data: str, metric: str) -> bool:
    ours, chance = (
        index.values("real", data, "rnm-screen", f"{metric}{which}") for which in ("", "_at_random")
    )
    gain = mean_of(ours[t] - chance[t] for t in ours if t in chance)
    return gain is not None and gain.mean > STANDARD_ERRORS * gain.standard_error


# --- Table 3 ------------------------------------------------------------------------------------


@reads("np-fw-unchanged-by-screening", *({"rule": rule} for rule in RULES[:3]))
def _unchanged_by_screening(index: RowIndex, rule: str) -> Outcome:
    f1, mse = (
        changes(index, metric, ("real", rule), ("real", "np-fw")) for metric in ("f1", "mse")
    )
    same = [data for data in REAL if abs(f1[data]) < 0.0005 and abs(mse[data]) < 0.0005]
    text = (
        f"To three decimals the same on {of_sets(same)}; F1 changes by at most "
        f"{max(map(abs, f1.values())):.3f}, MSE by at most {max(map(abs, mse.values())):.3f}."
    )
    if rule != RULES[0]:
        out = {data: mean(index, "real", data, rule, "screened") for data in REAL}
        text += f" It leaves features out on {of_sets([data for data in REAL if out[data]])}."
    return Outcome(len(same) == len(REAL), text, by_label(f1, "F1") | by_label(mse, "MSE"))


@reads("np-fw-best")
def _np_fw_best(index: RowIndex) -> Outcome:
    others = ("preselect-k-fw", "oracle-k-fw", "rnm-screen")
    f1, mse = (
        [changes(index, metric, ("real", "np-fw"), ("real", other)) for other in others]
        for metric in ("f1", "mse")
    )
    best = [
        data
        for data in REAL
        if min(more[data] for more in f1) >= 0 and max(more[data] for more in mse) <= 5e-4
    ]
    return Outcome(len(best) == len(REAL), f"Best in F1 and in MSE on {of_sets(best)}.")


@reads("low-dimensional-data", {"more_rows": False}, {"more_rows": True})
def _low_dimensional(_index: RowIndex, more_rows: bool) -> Outcome:
    facts = published_data()
    taller = [name for name in REAL if facts[name].n_rows > facts[name].n_features]
    wanted = taller if more_rows else [name for name in REAL if name not in taller]
    text = f"{of_sets(taller)} have more rows than features."
    return Outcome(len(wanted) == len(REAL), text)


# --- without the Yeo-Johnson transform ----------------------------------------------------------


@reads("ablation-r2", {"metric": "r2_unchosen"}, {"metric": "r2_missed"})
def _ablation_r2(index: RowIndex, metric: str) -> Outcome:
    more = changes(index, metric, ("ablation", "rnm-screen"), ("real", "rnm-screen"))
    lower = [data for data in REAL if more[data] < 0]
    return Outcome(lower == list(SMALLER), f"Lower on {of_sets(lower)}.", by_label(more))


@reads("ablation-f1")
def _ablation_f1(index: RowIndex) -> Outcome:
    more = changes(index, "f1", ("ablation", "rnm-screen"), ("ablation", "oracle-k-fw"))
    higher = [data for data in REAL if more[data] > 0]
    return Outcome(not higher, f"Higher on {of_sets(higher)}.", by_label(more))


@reads("ablation-f1")
def _ablation_f1_significantly(index: RowIndex) -> Outcome:
    return _none_better(index, "ablation", "f1", ORACLE_OR_RNM[::-1])
