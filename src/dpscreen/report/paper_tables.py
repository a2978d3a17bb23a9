"""The paper's five tables, every cell beside what its method and the proven ones give here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from dpscreen._core.numbers import decimals, span
from dpscreen.report.grid import Columns, Entry, Grid, Line, Note, Section, letters, mean_and_error
from dpscreen.report.names import metric_name
from dpscreen.study.compare import SUITE_OF_TABLE, CellComparison, RowIndex
from dpscreen.study.findings import findings
from dpscreen.study.methods import METHODS, proven_names
from dpscreen.study.published import known_inconsistencies, label, published_data
from dpscreen.study.suites import all_items

UNEXPLAINED = "No reason is known."
FEWEST = 6
"""Trials below which no sign test reaches .05, even if all of them agree."""
BOLD = {
    2: "significantly better than DP-FW",
    3: "significantly better than the other of Oracle-K FW and RNM-Screen",
    4: "significantly better than DP-FW",
    5: "significantly better than the other of Oracle-K FW and RNM-Screen",
}


def paper_table(number: int, cells: Sequence[CellComparison], index: RowIndex) -> Grid:
    """Return one table; `cells` are its comparisons in reading order."""
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


def _columns(methods: Sequence[str], proven: Sequence[str]) -> tuple[Columns, ...]:
    pairs = [Columns(label(method), ("printed", "here")) for method in methods]
    names = tuple(METHODS[name].label.removeprefix("Proven ") for name in proven)
    return (*pairs, Columns("Proven, same stated budget", names)) if names else tuple(pairs)


def _section(
    data: str,
    cells: list[CellComparison],
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


def _pair(found: CellComparison, notes: _Notes) -> tuple[Entry, Entry]:
    better = found.significance is not None and found.significance.better
    printed = Entry(decimals(found.cell.value), "printed", strong=found.cell.bold)
    here = Entry(mean_and_error(found.ours), "here", strong=better, mark=notes.mark(found))
    return printed, here


def _settings(data: str, table: int, index: RowIndex) -> str:
    facts = published_data()[data]
    text = f"n = {facts.n_rows}, d = {facts.n_features}, T = {facts.n_iter}, K = {facts.n_support}"
    rows = index.rows(SUITE_OF_TABLE[table], data, "rnm-screen")
    return f"{text}, λ = {rows[0].settings['radius']:.4g}" if rows else text


def _remarks(number: int, cells: Sequence[CellComparison]) -> list[str]:
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


def _bold(meaning: str, cells: Sequence[CellComparison]) -> str:
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


def _name(found: CellComparison) -> str:
    cell = found.cell
    return f"{label(cell.data)}, {metric_name(cell.metric)} of {label(cell.method)}"


# --- notes on the cells that differ -------------------------------------------------------------


@dataclass(frozen=True)
class _Difference:
    reason: str
    detail: str


class _Notes:
    """Gathers the cells that differ under the reasons they share."""

    def __init__(self, cells: Sequence[CellComparison]) -> None:
        self._details: dict[str, list[str]] = {}
        for found in cells:
            if found.verdict == "differs":
                difference = _difference(found)
                self._details.setdefault(difference.reason, []).append(difference.detail)

    def mark(self, found: CellComparison) -> str:
        """Return the mark of a cell; empty if it does not differ."""
        if found.verdict != "differs":
            return ""
        return letters(list(self._details).index(_difference(found).reason))

    def all(self) -> tuple[Note, ...]:
        """Return every note in the order of its mark."""
        return tuple(
            Note(letters(position), reason, tuple(details), explained=reason != UNEXPLAINED)
            for position, (reason, details) in enumerate(self._details.items())
        )


def _difference(found: CellComparison) -> _Difference:
    """Split an explanation into the reason, which cells may share, and what is the cell's own."""
    explanation = found.explanation or UNEXPLAINED
    key = found.cell.key
    known = (findings().get(key), known_inconsistencies().get(key))
    reason = next((text for text in known if text and explanation.startswith(text)), UNEXPLAINED)
    own = explanation.removeprefix(reason).strip()
    return _Difference(reason, f"{_name(found)}: {own}" if own else f"{_name(found)}.")
