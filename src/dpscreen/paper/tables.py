"""The paper's five tables, every cell beside what its method and the proven ones give here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from dpscreen._core.words import decimals, span
from dpscreen.audit import Finding
from dpscreen.paper.agreement import (
    SUITE_OF_TABLE,
    CellCheck,
    ControlCheck,
    R2Check,
    RowIndex,
    Theorem2Check,
    summarise,
)
from dpscreen.paper.grid import (
    ColumnGroup,
    Entry,
    Grid,
    Line,
    Note,
    Section,
    flat_grid,
    letters,
    mean_and_error,
    metric_name,
)
from dpscreen.paper.methods import METHODS, proven_names
from dpscreen.paper.published import known_inconsistencies, label, published_data
from dpscreen.paper.suites import all_items

UNEXPLAINED = "No reason is known."
FEWEST = 6
"""Trials below which no sign test reaches .05, even if all of them agree."""
BOLD = {
    2: "significantly better than DP-FW",
    3: "significantly better than the other of Oracle-K FW and RNM-Screen",
    4: "significantly better than DP-FW",
    5: "significantly better than the other of Oracle-K FW and RNM-Screen",
}


def paper_table(number: int, cells: Sequence[CellCheck], index: RowIndex) -> Grid:
    """Return one table; `cells` are its own, checked, in reading order."""
    notes = _Notes(cells)
    methods = tuple(dict.fromkeys(found.cell.method for found in cells))
    proven = tuple(name for name in proven_names() if any(name in c.proven for c in cells))
    return Grid(
        key=f"table{number}",
        title=f"Table {number}. {all_items()[f'table{number}'].title}",
        corner="data and metric",
        columns=_columns(methods, proven),
        sections=tuple(
            _section(data, list(of_data), methods, proven, notes, index)
            for data, of_data in groupby(cells, key=lambda found: found.cell.data)
        ),
        notes=notes.all(),
        remarks=tuple(_remarks(number, cells)),
    )


# --- its parts ----------------------------------------------------------------------------------


def _columns(methods: Sequence[str], proven: Sequence[str]) -> tuple[ColumnGroup, ...]:
    pairs = [ColumnGroup(label(method), ("printed", "here")) for method in methods]
    names = tuple(METHODS[name].label.removeprefix("Proven ") for name in proven)
    return (*pairs, ColumnGroup("Proven, same stated budget", names)) if names else tuple(pairs)


def _section(
    data: str,
    cells: list[CellCheck],
    methods: Sequence[str],
    proven: Sequence[str],
    notes: _Notes,
    index: RowIndex,
) -> Section:
    metrics = dict.fromkeys(found.cell.metric for found in cells)
    by_place = {(found.cell.metric, found.cell.method): found for found in cells}
    lines = []
    for metric in metrics:
        there = [by_place[metric, method] for method in methods]
        entries = [entry for found in there for entry in _pair(found, notes)]
        entries += [Entry(mean_and_error(there[0].proven.get(name)), "proven") for name in proven]
        lines.append(Line(metric_name(metric), tuple(entries)))
    return Section(tuple(lines), label(data), _settings(data, cells[0].cell.table, index))


def _pair(found: CellCheck, notes: _Notes) -> tuple[Entry, Entry]:
    better = found.significance is not None and found.significance.better
    printed = Entry(decimals(found.cell.value), "printed", strong=found.cell.bold)
    here = Entry(mean_and_error(found.ours), "here", strong=better, mark=notes.mark(found))
    return printed, here


def _settings(data: str, table: int, index: RowIndex) -> str:
    facts = published_data()[data]
    text = f"n = {facts.n_rows}, d = {facts.n_features}, T = {facts.n_iter}, K = {facts.n_support}"
    rows = index.rows(SUITE_OF_TABLE[table], data, "rnm-screen")
    return f"{text}, λ = {rows[0].settings['radius']:.4g}" if rows else text


def _remarks(number: int, cells: Sequence[CellCheck]) -> list[str]:
    remarks = []
    trials = [found.ours.trials for found in cells if found.ours and found.ours.standard_error]
    if trials:
        remarks.append(
            f"Here: mean ± standard error of {span(trials)} trials; a method without noise on "
            "fixed data has one. n rows, d features, T iterations, K nonzeros in the reference."
        )
    missing = dict.fromkeys(label(c.cell.data) for c in cells if c.verdict == "not run")
    if missing:
        remarks.append(f"Not run, or not completely: {', '.join(missing)}.")
    if number in BOLD:
        remarks.append(_bold(BOLD[number], cells))
    return remarks


def _bold(meaning: str, cells: Sequence[CellCheck]) -> str:
    text = f"Bold: {meaning} by a sign test (two-sided, .05)."
    judged = [(found, found.significance) for found in cells if found.significance is not None]
    if not judged:
        return text
    if max(sign.test.wins + sign.test.losses for _, sign in judged) < FEWEST:
        return f"{text} With fewer than {FEWEST} trials no cell can be."
    odd = [(found, sign) for found, sign in judged if not sign.agrees_with_bold]
    agree = f"{text} The test here agrees with the printed type in {len(judged) - len(odd)} of "
    if not odd:
        return f"{agree}{len(judged)} cells."
    where = "; ".join(f"{_name(found)} (p = {sign.test.p_two_sided:.2g})" for found, sign in odd)
    return f"{agree}{len(judged)} cells, not for {where}."


def _name(found: CellCheck) -> str:
    cell = found.cell
    return f"{label(cell.data)}, {metric_name(cell.metric)} of {label(cell.method)}"


# --- notes on the cells that differ -------------------------------------------------------------


class _Notes:
    """Gathers the cells that differ under the reasons they share."""

    def __init__(self, cells: Sequence[CellCheck]) -> None:
        self._details: dict[str, list[str]] = {}
        for found in cells:
            if found.verdict == "differs":
                reason, detail = _difference(found)
                self._details.setdefault(reason, []).append(detail)

    def mark(self, found: CellCheck) -> str:
        """Return the mark of a cell; empty if it does not differ."""
        if found.verdict != "differs":
            return ""
        return letters(list(self._details).index(_difference(found)[0]))

    def all(self) -> tuple[Note, ...]:
        """Return every note in the order of its mark."""
        return tuple(
            Note(letters(position), reason, tuple(details), explained=reason != UNEXPLAINED)
            for position, (reason, details) in enumerate(self._details.items())
        )


def _difference(found: CellCheck) -> tuple[str, str]:
    """Split an explanation into the reason, which cells may share, and what is the cell's own."""
    explanation = found.explanation or UNEXPLAINED
    known = known_inconsistencies().get(found.cell.key)
    reason = known if known and explanation.startswith(known) else UNEXPLAINED
    own = explanation.removeprefix(reason).strip()
    return reason, f"{_name(found)}: {own}" if own else f"{_name(found)}."


TABLES = (1, 2, 3, 4, 5)


def tally(cells: Sequence[CellCheck]) -> Grid:
    """Count, table by table, how many cells match."""
    rows = [_tally_row(f"Table {n}", [c for c in cells if c.cell.table == n]) for n in TABLES]
    rows.append(_tally_row("all", cells))
    columns = ("table", "cells", "match", "differ", "not run", "counted", "counted that match")
    return flat_grid("summary", "Cells of Tables 1 to 5 that come out as printed", columns, rows)


def _tally_row(name: str, cells: Sequence[CellCheck]) -> tuple[str, ...]:
    verdicts = [found.verdict for found in cells]
    counts = [verdicts.count(verdict) for verdict in ("matches", "differs", "not run")]
    summary = summarise(cells)
    return (name, *map(str, (len(cells), *counts, summary.counted, summary.matching)))


def r2_table(found: Sequence[R2Check]) -> Grid | None:
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


def control_table(found: Sequence[ControlCheck]) -> Grid | None:
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


def theorem2_table(found: Sequence[Theorem2Check]) -> Grid | None:
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
                    names = users.setdefault((place, *_proven_settings_row(found.settings)), [])
                    names.append(METHODS[name].label.removeprefix("Proven "))
    rows = [(place, ", ".join(names), *rest) for (place, *rest), names in users.items()]
    columns = ("data", "proven", "ε", "δ", "ρ (zCDP)", "T", "λ", "clip", "|y| ≤")
    remark = (
        "The guarantee covers adding or removing one row with all of these held fixed. Here λ, T, "
        "the clip and the bound on |y| were read off the data, which no budget pays for (E8)."
    )
    title = "What the proven methods ran with"
    return flat_grid("proven", title, columns, rows, (remark,)) if rows else None


def _proven_settings_row(settings: Mapping[str, Any]) -> tuple[str, ...]:
    names = ("epsilon", "delta", "rho", "n_iter", "radius", "clip", "target_bound")
    return tuple(f"{settings[name]:.4g}" if name in settings else "–" for name in names)


def _suite_label(suite: str) -> str:
    return {"synthetic": "Table 1", "real": "Tables 2, 3", "ablation": "Tables 4, 5"}[suite]
