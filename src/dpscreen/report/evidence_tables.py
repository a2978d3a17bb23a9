"""The smaller tables: the tally, two definitions of R², the control, Theorem 2, settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpscreen._core.numbers import decimals
from dpscreen.audit import Finding
from dpscreen.report.grid import Grid, flat_grid, mean_and_error
from dpscreen.report.names import metric_name
from dpscreen.study.compare import CellComparison, R2Comparison, RowIndex, summarise
from dpscreen.study.evidence import ControlComparison, Theorem2Comparison
from dpscreen.study.methods import METHODS, proven_names
from dpscreen.study.published import label, published_data

TABLES = (1, 2, 3, 4, 5)


def tally(comparisons: Sequence[CellComparison]) -> Grid:
    """Count, table by table, how many cells match."""
    rows = [_tally_row(f"Table {n}", [c for c in comparisons if c.cell.table == n]) for n in TABLES]
    rows.append(_tally_row("all", comparisons))
    columns = ("table", "cells", "match", "differ", "not run", "counted", "counted that match")
    return flat_grid("summary", "Cells of Tables 1 to 5 that come out as printed", columns, rows)


def _tally_row(name: str, cells: Sequence[CellComparison]) -> tuple[str, ...]:
    verdicts = [found.verdict for found in cells]
    counts = [verdicts.count(verdict) for verdict in ("matches", "differs", "not run")]
    summary = summarise(cells)
    return (name, *map(str, (len(cells), *counts, summary.counted, summary.matching)))


def r2_table(found: Sequence[R2Comparison]) -> Grid | None:
    """Both definitions of R² beside the printed one; None without rows."""
    rows = [
        (
            f"Table {one.table}, {label(one.data)}",
            decimals(one.printed),
            mean_and_error(one.unchosen),
            mean_and_error(one.missed),
            one.fits,
        )
        for one in found
    ]
    columns = ("data", "printed", "to all unchosen", "to the missed", "nearer")
    remark = (
        "Regressions from the chosen features, without penalty: to every feature that was not "
        "chosen, or, as the text defines it, to those that were missed but are in the LASSO's "
        "support."
    )
    title = "R² of Tables 2 and 4 under two definitions"
    return flat_grid("r2", title, columns, rows, (remark,)) if rows else None


def audit_table(found: Sequence[Finding]) -> Grid | None:
    """What the audit certified beside what is claimed; None without an audit."""
    rows = [
        (
            one.title,
            f"{one.claimed:g}",
            f"{one.delta:.2g}",
            f"≥ {one.certified:.2f}",
            f"{one.runs}",
            one.verdict if one.as_expected else f"{one.verdict} (NOT expected)",
        )
        for one in found
    ]
    columns = ("case", "claimed ε", "δ", "certified ε", "runs", "verdict")
    sure = f"{found[0].confidence:.1%}" if found else ""
    remark = (
        "Runs with and without one row; the event that tells them apart was chosen on one half and "
        f"judged on the other. A bound above the claim refutes it, each at {sure} confidence. The "
        "last cases have their noise cut by 1.5: they show that the audit can see a fault."
    )
    title = "Certified lower bounds on ε"
    return flat_grid("audit", title, columns, rows, (remark,)) if rows else None


def control_table(found: Sequence[ControlComparison]) -> Grid | None:
    """RNM-Screen beside random zeroing; None without rows."""
    rows = [
        (
            f"{label(one.data)}, {metric_name(one.metric)}",
            mean_and_error(one.screened),
            mean_and_error(one.control),
            f"{one.difference:+.3f} ± {one.standard_error:.3f}",
            "yes" if one.agrees else "NO",
        )
        for one in found
    ]
    columns = (
        "data and metric",
        "RNM-Screen",
        "random zeroing",
        "difference, paired",
        "within two standard errors",
    )
    remark = (
        "Both screen at the same iterations of the same runs; the control zeroes a coordinate "
        "drawn uniformly in place of the one that the noisy scores name (erratum E7)."
    )
    title = "RNM-Screen against zeroing at random"
    return flat_grid("control", title, columns, rows, (remark,)) if rows else None


def theorem2_table(found: Sequence[Theorem2Comparison]) -> Grid | None:
    """Simulated nonzeros beside the corrected and the printed formula; None without rows."""
    rows = [
        (
            f"d = {one.n_features}, T = {one.n_iter}",
            f"{one.simulated.mean:.2f} ± {one.simulated.standard_error:.2f}",
            f"{one.corrected:.2f}",
            f"{one.relative_error:+.2%}",
            f"{one.published:.2f}",
            f"{one.relative_error_published:+.1%}",
            f"{one.corrected_limit:.2f}",
            f"{one.published_limit:.2f}",
        )
        for one in found
    ]
    columns = (
        "setting",
        "simulated",
        "corrected",
        "off by",
        "printed",
        "off by",
        "corrected, T → ∞",
        "printed, T → ∞",
    )
    remark = "Nonzeros after T rounds of one uniform update and one uniform zeroing, from zero."
    title = "Theorem 2: expected nonzeros, simulated and by formula"
    return flat_grid("theorem2", title, columns, rows, (remark,)) if rows else None


def proven_settings(index: RowIndex) -> Grid | None:
    """What the proven methods ran with; None without rows."""
    users: dict[tuple[str, ...], list[str]] = {}
    for suite in ("synthetic", "real", "ablation"):
        for data in published_data():
            for name in proven_names():
                for found in index.rows(suite, data, name)[:1]:
                    place = f"{_suite_label(suite)}, {label(data)}"
                    names = users.setdefault((place, *_settings(found.settings)), [])
                    names.append(METHODS[name].label.removeprefix("Proven "))
    rows = [(place, ", ".join(names), *rest) for (place, *rest), names in users.items()]
    columns = ("data", "proven", "ε", "δ", "ρ (zCDP)", "T", "λ", "clip", "|y| ≤")
    remark = (
        "The guarantee covers adding or removing one row with all of these held fixed. Here λ, T, "
        "the clip and the bound on |y| were read off the data, which no budget pays for (E8)."
    )
    title = "What the proven methods ran with"
    return flat_grid("proven", title, columns, rows, (remark,)) if rows else None


def _settings(settings: Mapping[str, Any]) -> tuple[str, ...]:
    names = ("epsilon", "delta", "rho", "n_iter", "radius", "clip", "target_bound")
    return tuple(f"{settings[name]:.4g}" if name in settings else "–" for name in names)


def _suite_label(suite: str) -> str:
    return {"synthetic": "Table 1", "real": "Tables 2, 3", "ablation": "Tables 4, 5"}[suite]
