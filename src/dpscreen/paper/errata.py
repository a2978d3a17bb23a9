"""The errata E1 to E11, whose texts are in `errata.json`, with evidence computed from the rows.

The proofs and longer arguments are in docs/errata.md, under the same numbers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.resources import files

from dpscreen._core.words import how_many
from dpscreen.paper.agreement import RowIndex, check_control, check_theorem2
from dpscreen.paper.published import (
    density_checks,
    f1_ceiling,
    label,
    published_cells,
    published_data,
    published_value,
    single_run_count,
)
from dpscreen.paper.suites import RULES, SYNTHETIC
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
    texts = json.loads(files("dpscreen.paper").joinpath("errata.json").read_text(encoding="utf-8"))
    found = {key: evidence(index) for key, evidence in EVIDENCE.items()}
    return tuple(Erratum(**one, evidence=found.get(one["key"])) for one in texts)


# --- evidence -----------------------------------------------------------------------------------


def _e1(index: RowIndex) -> str | None:
    factors = {}
    for suite, data in _places():
        rows = index.rows(suite, data, "rnm-screen") or index.rows(suite, data, "dp-fw")
        if rows:
            factors[data] = 2 * rows[0].settings["radius"]
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
    """What both readings of the rule do, where the paper says 55 % and where it says nothing."""
    told = []
    for rule in RULES[1:3]:
        tpr, screened = (
            index.estimate("adp", "uncorrelated", rule, metric) for metric in ("tpr", "screened")
        )
        changed = [
            label(data)
            for data in published_data()
            for ours, plain in [
                [index.estimate("real", data, name, "mse") for name in (rule, "np-fw")]
            ]
            if ours and plain and abs(ours.mean - plain.mean) >= 0.0005
        ]
        if tpr and screened:
            told.append(
                f"rejects {screened.mean:.0f} of 600 features, ends with {tpr.mean:.0%} of the "
                f"true nonzeros, and changes the error on {' and '.join(changed) or 'no set'}"
            )
    if len(told) < 2:
        return None
    return (
        "Non-private Frank-Wolfe, rejected features left out for good; rejections and nonzeros on "
        f"uncorrelated data with λ = 5, errors on the real sets. Eq. 1 as printed {told[0]}; with "
        f"the factors λ it {told[1]}."
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
        f"at random (difference {one.difference.mean:+.3f} ± {one.difference.standard_error:.3f})"
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
    dense, sparse = (_densities(index, method) for method in ("dp-fw", "proven-dp-fw"))
    if not dense:
        return None
    text = f"Density of published DP-FW: at least {min(dense):.3f} on every set here."
    proven = f" Proven DP-FW, from zero: {min(sparse):.3f} to {max(sparse):.3f}." if sparse else ""
    return text + proven


def _densities(index: RowIndex, method: str) -> list[float]:
    found = (index.estimate(suite, data, method, "density") for suite, data in _places())
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
        for suite, data in _places()
        for row in index.rows(suite, data, "rnm-screen")[:1]
        if (found := index.estimate(suite, data, "rnm-screen", "screened"))
    ]
    if not shares:
        return None
    return (
        f"RNM-Screen zeroed a coordinate in {min(shares):.1%} to {max(shares):.1%} of the "
        "iterations here, depending on the set."
    )


def _places() -> Iterable[tuple[str, str]]:
    return (("synthetic" if data in SYNTHETIC else "real", data) for data in published_data())


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
