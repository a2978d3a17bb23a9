"""The errata E1 to E11, whose texts are in `errata.json`, with evidence computed from the rows.

The proofs and longer arguments are in docs/errata.md, under the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from dpscreen._core.words import how_many
from dpscreen.paper import metrics
from dpscreen.paper.agreement import RowIndex, check_control, check_theorem2, check_zero_start
from dpscreen.paper.data import synthetic
from dpscreen.paper.published import (
    ROUNDING,
    densities_outside_rates,
    f1_ceiling,
    label,
    packaged_json,
    published_data,
    published_value,
    single_run_count,
)
from dpscreen.paper.suites import RULES, SYNTHETIC
from dpscreen.privacy import sensitivity
from dpscreen.rows.design import DenseDesign
from dpscreen.solvers.screening import published_scores


@dataclass(frozen=True)
class Erratum:
    """A statement of the paper that needs a correction.

    `claim` quotes it, `reason` derives why it fails, `command` shows it, `matters` says how much
    depends on it, and `evidence` is computed now, from rows where there are any.
    """

    key: str
    title: str
    kind: str
    claim: str
    reason: str
    command: str
    matters: str
    evidence: str


def errata(index: RowIndex) -> tuple[Erratum, ...]:
    """Return all of them in order."""
    return tuple(
        Erratum(**one, evidence=" ".join(EVIDENCE[one["key"]](index)))
        for one in packaged_json("errata.json")
    )


# --- evidence: each yields sentences, some of which need rows ------------------------------------


def _e1(index: RowIndex) -> Iterator[str]:
    bound = sensitivity.residual_bound(radius=50.0, target_bound=50.0)
    yield f"At λ = 50 the largest entry of the gradient is {bound:.0f}, where 1 is assumed."
    rows = [row for data in published_data() for row in index.rows("real", data, "rnm-screen")[:1]]
    real = [2 * row.settings["radius"] for row in rows]
    if real:
        yield f"On the real sets the factor is {min(real):.3g} to {max(real):.3g}."


def _e2(_index: RowIndex) -> Iterator[str]:
    facts = [data for name, data in published_data().items() if name not in SYNTHETIC]
    factors = [(math.sqrt(data.n_rows) + 1) / 2 for data in facts]
    exact = sensitivity.screening_score(radius=50.0, n_rows=3000)
    printed = sensitivity.published_screening_score(radius=50.0, n_rows=3000)
    yield (
        f"At λ = 50, n = 3000: printed {printed:.3g}, attained {exact:.4g}, {exact / printed:.1f} "
        f"times as much; on the real sets {min(factors):.1f} to {max(factors):.0f} times."
    )


def _e3(index: RowIndex) -> Iterator[str]:
    """One row, and what both readings of the rule do where the paper uses it without noise."""
    radius, design = 2.0, DenseDesign(np.array([[1.0]]), np.array([10.0]))
    score = published_scores(design, design.at(np.array([radius])), radius=radius)[0]
    yield (
        f"One row x = 1, y = 10 and λ = 2: the optimum is w = 2, and Eq. 1 gives {score:.0f} "
        "for the only feature."
    )
    found = []
    for rule in RULES[1:3]:
        place = "adp", "uncorrelated", rule
        tpr, screened = (index.estimate(*place, metric) for metric in ("tpr", "screened"))
        changed = []
        for data in published_data():
            ours, plain = (index.estimate("real", data, name, "mse") for name in (rule, "np-fw"))
            if ours and plain and abs(ours.mean - plain.mean) >= 0.0005:
                changed.append(label(data))
        if tpr and screened:
            found.append(
                f"rejects {screened.mean:.0f} of 600 features, ends with {tpr.mean:.0%} of the "
                f"true nonzeros, and changes the error on {' and '.join(changed) or 'no set'}"
            )
    if len(found) == 2:
        yield (
            "Non-private Frank-Wolfe, rejected features left out for good; rejections and nonzeros "
            f"on uncorrelated data with λ = 5, errors on the real sets. Eq. 1 as printed "
            f"{found[0]}; with the factors λ it {found[1]}."
        )


def _e4(_index: RowIndex) -> Iterator[str]:
    losses = (f"{2 + math.log(m / (m + 2)):.2f} for m = {m}" for m in (10, 100))
    yield (
        "Two candidates, s = ε = 1. The second trails by m, and by m − 2 with one more row: the "
        f"log-ratio of its probabilities is {' and '.join(losses)}; the claim is 1, the limit 2."
    )


def _e5(_index: RowIndex) -> Iterator[str]:
    d, step, chance = 600, 0.1, 0.1
    # All d scores are equal and so high that no noisy one is negative with this probability.
    below = 1 - chance ** (1 / d)
    moved = d * math.log((1 - below * math.exp(step)) / (1 - below))
    yield (
        f"d = {d} scores at 0, and at −Δ with one more row, Δ/b = {step}: the log-probability of "
        f"“nothing is screened” changes by {d * step:.0f}. Where that event has probability "
        f"{chance}, it changes by {-moved:.3f}; {step} is claimed."
    )


def _e6(index: RowIndex) -> Iterator[str]:
    d, T = 600, 1000
    yield (
        f"d = {d}, T = {T}: {metrics.expected_nonzeros(d, T):.1f} by the corrected formula, "
        f"{metrics.expected_nonzeros_published(d, T):.1f} by the printed one."
    )
    found = check_theorem2(index)
    if found:
        corrected = max(abs(one.relative_error) for one in found)
        printed = [abs(one.relative_error_published) for one in found]
        yield (
            f"Simulated for {how_many(len(found), 'setting')} of d and T: within {corrected:.2%} "
            f"of the corrected formula, {min(printed):.0%} to {max(printed):.0%} off the printed "
            "one."
        )


def _e7(index: RowIndex) -> Iterator[str]:
    f1 = [one for one in check_control(index) if one.metric == "f1"]
    if f1:
        shown = "; ".join(
            f"{label(one.data).lower()} data {one.screened.mean:.3f} screened, "
            f"{one.control.mean:.3f} at random (difference {one.difference.signed})"
            for one in f1
        )
        yield f"F1 over paired trials: {shown}."
    for row in index.rows("synthetic", "uncorrelated", "rnm-screen")[:1]:
        # Δ√(8T ln(1/δ₂))/ε₂
        facts = row.settings
        change = sensitivity.published_screening_score(
            radius=facts["radius"], n_rows=facts["n_rows"]
        )
        epsilon = facts["epsilon"] * facts["screening_epsilon_share"]
        delta = facts["delta"] * facts["screening_delta_share"]
        scale = change * math.sqrt(8 * facts["n_iter"] * math.log(1 / delta)) / epsilon
        yield f"The noise on a score has scale {scale:.0f}."
    for one in check_zero_start(index):
        if one.data in SYNTHETIC:
            yield f"From a zero start, {one.data} data, without and with screening: {one.effect}."


def _e8(index: RowIndex) -> Iterator[str]:
    for suite, tables in (("real", "Tables 2 and 3"), ("ablation", "Tables 4 and 5")):
        known = {
            row.data: row.settings["target_bound"] >= row.settings["radius"]
            for row in index.all_rows()
            if row.suite == suite and "target_bound" in row.settings
        }
        if known:
            beyond = [label(data) for data, reaches in known.items() if reaches]
            which = f": {', '.join(beyond)}" if beyond else ""
            yield f"{tables}: |y| reaches λ on {len(beyond)} of {len(known)} sets{which}."
    drawn = [synthetic(rng=np.random.default_rng(k)).y for k in range(3)]
    counts = ", ".join(str(np.count_nonzero(np.abs(y) >= 5)) for y in drawn)
    largest = max(float(np.abs(y).max()) for y in drawn)
    yield (
        f"Three synthetic sets: {counts} of 3000 rows have |y| ≥ 5, the λ of Appendix C; the "
        f"largest |y| is {largest:.1f}, where Table 1 has λ = 50."
    )


def _e9(index: RowIndex) -> Iterator[str]:
    share = 2 / (1001 * 1002)
    yield f"At T = 1000 each coordinate of the start keeps the share {share:.1e}: never zero."
    found = check_zero_start(index)
    for synthetic_sets, name in ((False, "real"), (True, "synthetic")):
        sets = [one for one in found if (one.data in SYNTHETIC) is synthetic_sets]
        if sets:
            names = ", ".join(label(one.data) for one in sets)
            dense = ", ".join(f"{one.dp_fw.mean:.3f}" for one in sets)
            screened = ", ".join(f"{one.rnm.mean:.3f}" for one in sets)
            sparser, trials = sum(one.sparser for one in sets), sum(one.trials for one in sets)
            yield (
                f"Density from a zero start on the {name} sets ({names}): DP-FW {dense}; "
                f"RNM-Screen {screened}, sparser in {sparser} of {trials} trials."
            )


def _e10(_index: RowIndex) -> Iterator[str]:
    outside, above, whole = densities_outside_rates(), [], []
    for name, facts in published_data().items():
        table = 1 if name in SYNTHETIC else 2
        tpr, fpr, f1 = (
            published_value(table, name, "rnm-screen", metric) for metric in ("tpr", "fpr", "f1")
        )
        above += [label(name)] if f1 > f1_ceiling(tpr + ROUNDING) + ROUNDING else []
        counts = ((tpr, facts.n_support), (fpr, facts.n_features - facts.n_support))
        whole += [single_run_count(*count) is not None for count in counts]
    yield (
        f"Printed densities outside [FPR, TPR]: {len(outside)} ("
        f"{', '.join(label(data) for data in outside)}). F1 above its ceiling: "
        f"{' and '.join(above)}. With the K of this study "
        f"{sum(whole)} of {len(whole)} printed rates are whole counts out of K or d − K."
    )


def _e11(index: RowIndex) -> Iterator[str]:
    fewest = min(data.n_features for data in published_data().values())
    yield (
        f"If noise alone decides, all {fewest} noisy scores of the smallest set are positive, and "
        f"none is screened, with probability {0.5**fewest:.1%}."
    )
    shares = [
        found.mean / row.settings["n_iter"]
        for data in published_data()
        for suite in ("synthetic" if data in SYNTHETIC else "real",)
        for row in index.rows(suite, data, "rnm-screen")[:1]
        if (found := index.estimate(suite, data, "rnm-screen", "screened"))
    ]
    if shares:
        yield (
            f"RNM-Screen zeroed a coordinate in {min(shares):.1%} to {max(shares):.1%} of the "
            "iterations here, depending on the set."
        )


EVIDENCE: dict[str, Callable[[RowIndex], Iterable[str]]] = {
    f"E{number}": check
    for number, check in enumerate((_e1, _e2, _e3, _e4, _e5, _e6, _e7, _e8, _e9, _e10, _e11), 1)
}
