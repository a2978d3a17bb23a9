"""The errata E1 to E11 in a paragraph each, with evidence computed from the rows.

The proofs and longer arguments are in docs/errata.md, under the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dpscreen._core.words import how_many
from dpscreen.paper.agreement import RowIndex, check_control, check_theorem2, mean_of
from dpscreen.paper.published import (
    density_checks,
    f1_ceiling,
    label,
    published_cells,
    published_data,
    published_value,
    single_run_count,
)
from dpscreen.paper.suites import SYNTHETIC
from dpscreen.privacy import sensitivity


@dataclass(frozen=True)
class Erratum:
    """Where a claim fails and why; `evidence` is what this study has to say, if anything."""

    key: str
    title: str
    kind: str
    text: str
    evidence: str | None


def errata(index: RowIndex) -> tuple[Erratum, ...]:
    """Return all of them in order."""
    return tuple(
        Erratum(key, title, kind, text, _evidence(key, index)) for key, title, kind, text in TEXTS
    )


def _evidence(key: str, index: RowIndex) -> str | None:
    return EVIDENCE[key](index) if key in EVIDENCE else None


TEXTS = (
    (
        "E1",
        "The Lipschitz constant of the loss",
        "breaks privacy",
        "The noise of the private Frank-Wolfe steps is set for a loss whose gradient never exceeds "
        "1. The gradient of half a squared residual is the residual times the row, and a residual "
        "reaches 2λ when predictions and targets may both reach λ. The steps therefore get 2λ "
        "times too little noise, and the stated ε of the optimisation does not hold.",
    ),
    (
        "E2",
        "Theorem 1: how far one row moves a screening score",
        "breaks privacy",
        "The last term of the score is a product, and the proof bounds its change by the product "
        "of the changes. A small change of one factor is multiplied by the size of the other, "
        "which grows like √n. The exact sensitivity is 2λ(1 + λ)(1/n + 1/√n), attained by an "
        "explicit pair of data sets; the printed one is too small by (√n + 1)/2.",
    ),
    (
        "E3",
        "Eq. 1 for a radius other than 1",
        "breaks safety",
        "The rule is stated for the ball of radius 1 and used with larger ones, where the first "
        "and the last term lack a factor λ. Near the optimum every score is then negative, "
        "those of the true support too, so that a negative score proves nothing.",
    ),
    (
        "E4",
        "Report-noisy-max",
        "wrong lemma",
        "Laplace noise of scale Δ/ε hides a shift by Δ. One row can raise one score and lower "
        "another, a shift of 2Δ, so the choice is 2ε-private and not ε-private. With the right Δ "
        "the loose composition would happen to cover this at the paper's settings.",
    ),
    (
        "E5",
        "The test against zero",
        "breaks the claim of a step",
        "A coordinate is zeroed only if its noisy score is negative. That test looks at the noisy "
        "value, not only at which one is smallest, and its threshold has no noise of its own: the "
        "loss of the outcome “nothing screened” grows with d. Offering “nothing” as one more "
        "candidate with its own noise mends it.",
    ),
    (
        "E6",
        "Theorem 2: how many nonzeros chance leaves",
        "wrong formula",
        "The chance that a coordinate is left alone in one round is (d − 1)/d; the proof writes "
        "1/d. The expected number of nonzeros tends to d(d − 1)/(2d − 1), about d/2, and not to "
        "about d − 1. Table 2's densities near one half are this fixed point of pure chance.",
    ),
    (
        "E7",
        "What the screening step does",
        "interpretation",
        "The noise on the screening scores is larger by orders of magnitude than the differences "
        "between them, so the coordinate that is zeroed is a random one. What tells true nonzeros "
        "from true zeros is the optimiser, whose noise is too small (E1). Random zeroing needs no "
        "data, and so no budget.",
    ),
    (
        "E8",
        "Preparation of the data",
        "outside the guarantee",
        "The Yeo-Johnson transform, the division by the largest entry and the radius taken from a "
        "non-private LASSO all look at every row, and no budget pays for them. Targets are "
        "assumed to stay below λ, which is neither enforced nor true. This study prepares the "
        "data in the same way, for the published and the proven methods alike: none of its "
        "numbers comes with an end-to-end guarantee.",
    ),
    (
        "E9",
        "The density of DP-FW",
        "artefact of the start",
        "Each step shrinks the old weights but never zeroes one. A dense random start keeps the "
        "share 2/((T + 1)(T + 2)) on every coordinate, so that the density of DP-FW is 1 by "
        "construction, and beating it in density says little. From a zero start it is sparser.",
    ),
    (
        "E10",
        "Tables 1 and 2 do not agree with themselves",
        "inconsistent",
        "Density must equal (K·TPR + (d − K)·FPR)/d, in every trial and so on average, and a mean "
        "F1 cannot exceed 2·TPR/(1 + TPR). The printed TPR and FPR look like counts of a single "
        "run, F1 and density like averages. A replication can be judged by F1, density and error, "
        "by TPR and FPR only roughly.",
    ),
    (
        "E11",
        "Slips",
        "editorial",
        "The loop over the scores runs to d, not n. The constant of the Gaussian mechanism is "
        "ln(1.25/δ). The loss stands with and without its ½, which doubles the sensitivity. "
        "Algorithm 2 screens only if the score is negative, yet is said to always screen one.",
    ),
)


# --- evidence -----------------------------------------------------------------------------------


def _e1(index: RowIndex) -> str | None:
    radii = {data: _setting(index, data, "radius") for data in published_data()}
    factors = {data: 2 * radius for data, radius in radii.items() if radius is not None}
    if not factors:
        return None
    synthetic = [factors[data] for data in SYNTHETIC if data in factors]
    real = [factor for data, factor in factors.items() if data not in SYNTHETIC]
    parts = [f"{synthetic[0]:.0f} times on the synthetic sets"] if synthetic else []
    if real:
        parts.append(f"{min(real):.3g} to {max(real):.3g} times on the real ones")
    return f"Too little noise in the runs of this page: {', '.join(parts)}."


def _e2(_index: RowIndex) -> str:
    facts = [data for name, data in published_data().items() if name not in SYNTHETIC]
    factors = [(math.sqrt(data.n_rows) + 1) / 2 for data in facts]
    exact = sensitivity.screening_score(radius=50.0, n_rows=3000)
    printed = sensitivity.published_screening_score(radius=50.0, n_rows=3000)
    return (
        f"At λ = 50, n = 3000: printed {printed:.3g}, attained {exact:.4g}, {exact / printed:.1f} "
        f"times as much; on the real sets {min(factors):.1f} to {max(factors):.0f} times."
    )


def _e3(index: RowIndex) -> str | None:
    found = {
        (method, metric): index.estimate("adp", "uncorrelated", method, metric)
        for method in ("np-fw-published-rule", "np-fw-safe")
        for metric in ("screened", "tpr")
    }
    means = {place: value.mean for place, value in found.items() if value is not None}
    if len(means) < len(found):
        return None
    return (
        "Non-private Frank-Wolfe on uncorrelated data, λ = 5, rejected features left out for good: "
        "Eq. 1 as printed rejects "
        f"{means['np-fw-published-rule', 'screened']:.0f} of 600 and ends with "
        f"{means['np-fw-published-rule', 'tpr']:.0%} of the true nonzeros; with the factors λ it "
        f"rejects {means['np-fw-safe', 'screened']:.0f} and ends with "
        f"{means['np-fw-safe', 'tpr']:.0%}."
    )


def _e6(index: RowIndex) -> str | None:
    found = check_theorem2(index.all_rows())
    if not found:
        return None
    corrected = max(abs(one.relative_error) for one in found)
    printed = [abs(one.relative_error_published) for one in found]
    return (
        f"Simulated for {how_many(len(found), 'setting')} of d and T: within {corrected:.2%} of "
        f"the corrected formula, {min(printed):.0%} to {max(printed):.0%} off the printed one."
    )


def _e7(index: RowIndex) -> str | None:
    f1 = [one for one in check_control(index.all_rows()) if one.metric == "f1"]
    if not f1:
        return None
    shown = "; ".join(
        f"{label(one.data).lower()} data {one.screened.mean:.3f} screened, {one.control.mean:.3f} "
        f"at random (difference {one.difference:+.3f} ± {one.standard_error:.3f})"
        for one in f1
    )
    scale = _noise_scale(index)
    noise = f" The noise on a score has scale {scale:.0f}." if scale else ""
    return f"F1 over paired trials: {shown}.{noise}"


def _noise_scale(index: RowIndex) -> float | None:
    """Return Δ√(8T ln(1/δ₂))/ε₂ of the synthetic runs."""
    for row in index.rows("synthetic", "uncorrelated", "rnm-screen")[:1]:
        facts = row.settings
        change = sensitivity.published_screening_score(
            radius=facts["radius"], n_rows=facts["n_rows"]
        )
        epsilon = facts["epsilon"] * facts["screening_epsilon_share"]
        delta = facts["delta"] * facts["screening_delta_share"]
        return float(change * math.sqrt(8 * facts["n_iter"] * math.log(1 / delta)) / epsilon)
    return None


def _e8(index: RowIndex) -> str | None:
    rows = [
        row
        for row in index.all_rows()
        if row.suite in ("real", "ablation") and "target_bound" in row.settings
    ]
    sets = {(row.suite, row.data): row.settings for row in rows}
    if not sets:
        return None
    beyond = [s for s in sets.values() if s["target_bound"] >= s["radius"]]
    return (
        f"The largest |y| reaches λ or more in {len(beyond)} of the {len(sets)} prepared real sets "
        "(with and without the transform)."
    )


def _e9(index: RowIndex) -> str | None:
    dense = _densities(index, "dp-fw")
    sparse = _densities(index, "proven-dp-fw")
    if not dense:
        return None
    text = f"Density of published DP-FW: at least {min(dense):.3f} on every set here."
    if not sparse:
        return text
    return f"{text} Proven DP-FW, from zero: {min(sparse):.3f} to {max(sparse):.3f}."


def _densities(index: RowIndex, method: str) -> list[float]:
    places = [("synthetic", data) for data in SYNTHETIC]
    places += [("real", data) for data in published_data() if data not in SYNTHETIC]
    found = (index.estimate(suite, data, method, "density") for suite, data in places)
    return [one.mean for one in found if one is not None]


def _e10(_index: RowIndex) -> str:
    checks = density_checks()
    odd = [check for check in checks if not check.agrees]
    worst = max(odd, key=lambda check: abs(check.printed - check.implied))
    above = [data for data in published_data() if _exceeds_ceiling(data)]
    whole = [_is_whole(data, metric) for data in published_data() for metric in ("tpr", "fpr")]
    return (
        f"The density identity fails in {len(odd)} of {len(checks)} rows, most on "
        f"{label(worst.data)} (printed {worst.printed:.3f}, implied {worst.implied:.3f}). F1 is "
        f"above its ceiling on {' and '.join(label(data) for data in above)}. {sum(whole)} of "
        f"{len(whole)} printed rates are whole counts out of K or d − K."
    )


def _exceeds_ceiling(data: str) -> bool:
    table = _first_table(data)
    tpr, f1 = (published_value(table, data, "rnm-screen", name) for name in ("tpr", "f1"))
    return f1 > f1_ceiling(tpr + 0.0005) + 0.0005


def _is_whole(data: str, metric: str) -> bool:
    facts = published_data()[data]
    total = facts.n_support if metric == "tpr" else facts.n_features - facts.n_support
    rate = published_value(_first_table(data), data, "rnm-screen", metric)
    return single_run_count(rate, total) is not None


def _first_table(data: str) -> int:
    return next(cell.table for cell in published_cells() if cell.data == data)


def _e11(index: RowIndex) -> str | None:
    shares = [
        found.mean / row.settings["n_iter"]
        for suite, data in _rnm_places()
        for row in index.rows(suite, data, "rnm-screen")[:1]
        for found in [mean_of(index.values(suite, data, "rnm-screen", "screened").values())]
        if found is not None
    ]
    if not shares:
        return None
    return (
        f"RNM-Screen zeroed {min(shares):.3f} to {max(shares):.3f} coordinates an iteration here."
    )


def _rnm_places() -> Iterable[tuple[str, str]]:
    return (("synthetic" if data in SYNTHETIC else "real", data) for data in published_data())


def _setting(index: RowIndex, data: str, name: str) -> float | None:
    suite = "synthetic" if data in SYNTHETIC else "real"
    rows = index.rows(suite, data, "rnm-screen") or index.rows(suite, data, "dp-fw")
    return float(rows[0].settings[name]) if rows else None


EVIDENCE: dict[str, Callable[[RowIndex], str | None]] = {
    "E1": _e1,
    "E2": _e2,
    "E3": _e3,
    "E6": _e6,
    "E7": _e7,
    "E8": _e8,
    "E9": _e9,
    "E10": _e10,
    "E11": _e11,
}
