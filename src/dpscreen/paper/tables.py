"""The paper's five tables, every cell beside what its method and the proven ones give here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, product
from typing import Any, NamedTuple

from dpscreen._core.words import NOTHING, decimals, how_many, letters, span
from dpscreen.audit import Finding
from dpscreen.paper.agreement import (
    SUITE_OF_TABLE,
    UNEXPLAINED,
    CellCheck,
    ControlCheck,
    Estimate,
    R2Check,
    RowIndex,
    Theorem2Check,
    check_control,
    check_r2,
    check_theorem2,
    check_zero_start,
    summarise,
)
from dpscreen.paper.grid import (
    Columns,
    Grid,
    GridNumber,
    Note,
    Section,
    flat_grid,
    mean_and_error,
    metric_name,
)
from dpscreen.paper.methods import METHODS, proven_names
from dpscreen.paper.published import label, published_cells, published_data
from dpscreen.paper.suites import ABLATION_SUPPORT, CHOICES, SYNTHETIC, ZERO_START, all_items

TABLES = (1, 2, 3, 4, 5)
FEWEST = 6
"""Trials below which no sign test reaches .05, even if all of them agree."""
BOLD = {
    2: "significantly better than DP-FW",
    3: "significantly better than the other of Oracle-K FW and RNM-Screen",
    4: "significantly better than DP-FW",
    5: "significantly better than the other of Oracle-K FW and RNM-Screen",
}


def all_tables(
    index: RowIndex, cells: Sequence[CellCheck], findings: Sequence[Finding]
) -> Iterator[Grid]:
    """Return the tally, the paper's tables, and the small ones that there are rows for."""
    yield _tally(cells)
    for number in TABLES:
        yield _paper_table(number, [one for one in cells if one.cell.table == number], index)
    rows = index.all_rows()
    for grid in (
        _r2_table(check_r2(rows)),
        _control_table(check_control(rows)),
        _zero_start_table(index),
        _choices_table(index),
        _theorem2_table(check_theorem2(rows)),
        _audit_table(findings),
        _proven_settings(index),
    ):
        if grid.sections[0].lines:
            yield grid


# --- the paper's --------------------------------------------------------------------------------


def _paper_table(number: int, cells: Sequence[CellCheck], index: RowIndex) -> Grid:
    """Return one table; `cells` are its own, checked, in reading order."""
    notes = _notes(cells)
    methods = tuple(dict.fromkeys(found.cell.method for found in cells))
    proven = tuple(name for name in proven_names() if any(name in c.proven for c in cells))
    columns: Columns = tuple((label(method), ("printed", "here")) for method in methods)
    if proven:
        columns += (("Proven, same stated budget", tuple(map(_proven_label, proven))),)
    return Grid(
        key=f"table{number}",
        title=f"Table {number}. {all_items()[f'table{number}'].title}",
        corner="data and metric",
        columns=columns,
        sections=tuple(
            Section(
                (_iterations(data, methods, proven, index, SUITE_OF_TABLE[number]), *lines),
                label(data),
                _settings(data, number, index),
            )
            for data, of_data in groupby(cells, key=lambda found: found.cell.data)
            for lines in [_lines(list(of_data), proven, notes)]
        ),
        notes=tuple(notes.values()),
        remarks=tuple(_remarks(number, cells)),
    )


def _iterations(
    data: str, methods: Sequence[str], proven: Sequence[str], index: RowIndex, suite: str
) -> tuple[str, tuple[GridNumber, ...]]:
    """The number of iterations of each column, as they differ."""
    printed = GridNumber(str(published_data()[data].n_iter))
    numbers = [one for name in methods for one in (printed, _n_iter(index, suite, data, name))]
    return "iterations T", (*numbers, *(_n_iter(index, suite, data, name) for name in proven))


def _n_iter(index: RowIndex, suite: str, data: str, method: str) -> GridNumber:
    rows = index.rows(suite, data, method)
    found = [row.settings["n_iter"] for row in rows if "n_iter" in row.settings]
    return GridNumber(span(found) if found else NOTHING)


def _lines(
    cells: list[CellCheck], proven: Sequence[str], notes: Mapping[str, Note]
) -> Iterator[tuple[str, tuple[GridNumber, ...]]]:
    for metric in dict.fromkeys(found.cell.metric for found in cells):
        there = [found for found in cells if found.cell.metric == metric]
        numbers = [number for found in there for number in _pair(found, notes)]
        for name in proven:
            numbers.append(GridNumber(mean_and_error(there[0].proven.get(name)), "proven"))
        yield metric_name(metric), tuple(numbers)


def _pair(found: CellCheck, notes: Mapping[str, Note]) -> tuple[GridNumber, GridNumber]:
    better = found.significance is not None and found.significance.better
    mark = notes[found.reason].mark if found.reason else ""
    printed = GridNumber(decimals(found.cell.value), "printed", found.cell.bold)
    about = "≈ " if found.by_spread else ""
    return printed, GridNumber(about + mean_and_error(found.ours), "here", better, mark)


def _proven_label(method: str) -> str:
    return METHODS[method].label.removeprefix("Proven ")


def _settings(data: str, table: int, index: RowIndex) -> str:
    facts, suite = published_data()[data], SUITE_OF_TABLE[table]
    count = ABLATION_SUPPORT.get(data, facts.n_support) if suite == "ablation" else facts.n_support
    text = f"n = {facts.n_rows}, d = {facts.n_features}, K = {count}"
    rows = index.rows(suite, data, "rnm-screen")
    return f"{text}, λ = {rows[0].settings['radius']:.4g}" if rows else text


def _remarks(number: int, cells: Sequence[CellCheck]) -> list[str]:
    remarks = []
    trials = [found.ours.trials for found in cells if found.ours and found.ours.standard_error]
    if trials:
        remarks.append(
            f"Here: mean ± standard error of {span(trials)} trials; a method without noise on "
            "fixed data has one. n rows, d features, K nonzeros in the reference; T has a line of "
            "its own, as the proven methods take another number of iterations."
        )
    missing = dict.fromkeys(label(c.cell.data) for c in cells if c.verdict == "not run")
    if missing:
        remarks.append(f"Not run, or not completely: {', '.join(missing)}.")
    spread = sum(found.by_spread for found in cells)
    if spread:
        remarks.append(f"≈: {how_many(spread, 'cell')} within two standard errors only.")
    if SUITE_OF_TABLE[number] == "ablation":
        remarks.append(OTHER_SUPPORT)
    if number in BOLD:
        remarks.append(_bold(BOLD[number], cells))
    return remarks


OTHER_SUPPORT = (
    "The paper prints no K. It is that of Table 2 but on "
    + " and ".join(
        f"{label(data)} ({count}, not {published_data()[data].n_support})"
        for data, count in ABLATION_SUPPORT.items()
    )
    + ": there NP-FW ends at a single vertex of the support, whose F1 is 2/(1 + K), and this K "
    "fits the F1 that Table 5 prints."
)


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


def _notes(cells: Sequence[CellCheck]) -> dict[str, Note]:
    """Gather the cells that differ under the reasons they share."""
    details = defaultdict(list)
    for found in cells:
        if found.reason:
            details[found.reason].append(f"{_name(found)}: {found.detail}")
    return {
        reason: Note(letters(place), reason, tuple(found), explained=reason != UNEXPLAINED)
        for place, (reason, found) in enumerate(details.items())
    }


# --- the small ones -----------------------------------------------------------------------------


def _tally(cells: Sequence[CellCheck]) -> Grid:
    """Count, table by table, how many cells match."""
    rows = [_tally_row(f"Table {n}", [c for c in cells if c.cell.table == n]) for n in TABLES]
    return flat_grid(
        "summary",
        "Cells of Tables 1 to 5 that come out as printed",
        "table | cells | match | only by spread (≈) | differ | not run | narrower count | "
        "of these match | only by spread (≈)",
        [*rows, _tally_row("all", cells)],
        NARROWER,
    )


def _tally_row(name: str, cells: Sequence[CellCheck]) -> tuple[str, ...]:
    verdicts = [found.verdict for found in cells]
    match, *rest = (verdicts.count(verdict) for verdict in ("matches", "differs", "not run"))
    spread, narrow = sum(found.by_spread for found in cells), summarise(cells, counted=True)
    counts = (narrow.run, narrow.matching, narrow.by_spread)
    return (name, *map(str, (len(cells), match, spread, *rest, *counts)))


NARROWER = (
    "The narrower count leaves out 84 cells: TPR and FPR (20), which contradict the rest of their "
    "rows (E10); NP-FW and Preselect-K FW (48), which are not private and depend on choices that "
    "the paper leaves open; and the F1 of RNM-Screen in Tables 3 and 5 (16), which repeats that of "
    "Tables 2 and 4."
)


def _r2_table(found: Sequence[R2Check]) -> Grid:
    """Both definitions of R² beside the printed one."""
    rows = [
        (
            f"Table {one.table}, {label(one.data)}",
            decimals(one.printed),
            mean_and_error(one.unchosen),
            mean_and_error(one.unchosen_at_random),
            mean_and_error(one.missed),
            mean_and_error(one.missed_at_random),
            one.fits,
        )
        for one in found
    ]
    return flat_grid(
        "r2",
        "R² of Tables 2 and 4 under two definitions",
        "data | printed | to all unchosen | same, random subset | to the missed | "
        "same, random subset | nearer",
        rows,
        "Regressions from the chosen features, without penalty: to every feature that was not "
        "chosen, or, as the text defines it, to those that were missed but are in the LASSO's "
        "support. Random subset: the same for as many features drawn at random, trial by trial.",
    )


def _audit_table(found: Sequence[Finding]) -> Grid:
    """What the audit certified beside what is claimed."""
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
    sure = f"{found[0].confidence:.1%}" if found else ""
    return flat_grid(
        "audit",
        "Certified lower bounds on ε",
        "case | claimed ε | δ | certified ε | runs | verdict",
        rows,
        "Runs with and without one row; the event that tells them apart was chosen on one half and "
        f"judged on the other. A bound above the claim refutes it, each at {sure} confidence. "
        "DP-FW has the paper's λ, T and budget, on 100 rows of one feature; screening is audited "
        "for one step at λ = 1 with a budget of its own, not the paper's. Cases whose noise is cut "
        "by 1.5, if there are any, show that the audit can see a fault.",
    )


def _control_table(found: Sequence[ControlCheck]) -> Grid:
    """RNM-Screen beside random zeroing."""
    rows = [
        (
            f"{label(one.data)}, {metric_name(one.metric)}",
            mean_and_error(one.screened),
            mean_and_error(one.control),
            f"{one.difference.mean:+.3f} ± {one.difference.standard_error:.3f}",
            "yes" if one.agrees else "NO",
        )
        for one in found
    ]
    return flat_grid(
        "control",
        "RNM-Screen against zeroing at random",
        "data and metric | RNM-Screen | random zeroing | difference, paired | "
        "within two standard errors",
        rows,
        "Trial by trial on the same data, each with noise of its own. Both decide as Algorithm 2 "
        "does whether to zero a coordinate; the control then zeroes one drawn uniformly in place "
        "of the one that the noisy scores name (erratum E7).",
    )


def _zero_start_table(index: RowIndex) -> Grid:
    """Densities from a zero start, beside those from the paper's random one."""
    rows = [
        (
            label(one.data),
            *(mean_and_error(_density(index, one.data, name)) for name in ("dp-fw", "rnm-screen")),
            mean_and_error(one.dp_fw),
            mean_and_error(one.rnm),
            f"{one.sparser} of {one.trials}",
        )
        for one in check_zero_start(index)
    ]
    return flat_grid(
        ZERO_START,
        "Density from a random and from a zero start",
        "data | random: DP-FW | random: RNM-Screen | zero: DP-FW | zero: RNM-Screen | "
        "RNM-Screen sparser, trials from zero",
        rows,
        "Published noise, the T of Tables 1 and 2. The paper starts from a random dense vector, "
        "which alone makes the density of DP-FW 1 (erratum E9).",
    )


def _density(index: RowIndex, data: str, method: str) -> Estimate | None:
    suite = "synthetic" if data in SYNTHETIC else "real"
    return index.estimate(suite, data, method, "density")


class Choice(NamedTuple):
    """What the paper leaves open: as taken here, and an alternative, each a suite and a method."""

    what: str
    taken: tuple[str, str]
    other: tuple[str, str]
    metrics: tuple[str, ...]


FROM_ZERO = (ZERO_START, "rnm-screen-zero")
LEFT_OPEN = (
    Choice(
        "true features: one block, or scattered",
        ("synthetic", "rnm-screen"),
        (CHOICES, "rnm-screen-scattered"),
        ("f1", "density"),
    ),
    Choice(
        "loss: with the factor ½, or without",
        ("synthetic", "rnm-screen"),
        (CHOICES, "rnm-screen-whole-loss"),
        ("f1", "density"),
    ),
    *(
        Choice("start: random, or zero", (suite, "rnm-screen"), FROM_ZERO, ("f1", "density"))
        for suite in ("synthetic", "real")
    ),
    *(
        Choice(what, ("real", name), (CHOICES, f"{name}-{other}"), found)
        for what, other in (
            ("K: what fits the printed counts, or d/3 rounded", "third"),
            ("missing cells: zero, or the column's mean", "filled"),
        )
        for name, found in (("rnm-screen", ("f1", "density", "mse")), ("oracle-k-fw", ("f1",)))
    ),
    *(
        Choice(
            f"Preselect-K: by L1 norm, or by {what}",
            ("real", "preselect-k-fw"),
            (CHOICES, f"preselect-k-{what}"),
            ("f1", "mse"),
        )
        for what in ("variance", "correlation")
    ),
)


def _choices_table(index: RowIndex) -> Grid:
    """What comes out where the paper leaves a choice, under the one taken and an alternative."""
    sections = (
        Section(tuple(_compared(index, list(choices))), what)
        for what, choices in groupby(LEFT_OPEN, key=lambda choice: choice.what)
    )
    return Grid(
        key=CHOICES,
        title="What the paper leaves open, and what comes out otherwise",
        corner="choice: as taken here, or the alternative",
        columns=(("", ("printed", "as taken", "alternative")),),
        sections=tuple(section for section in sections if section.lines) or (Section(()),),
        remarks=(
            "The choices taken are those that fit most printed numbers. Whether correlated "
            "features help, as the caption of Figure 1 says, depends on the first: in a block, "
            "features that correlate with a true one are mostly true ones. R² under both "
            "readings of its definition has a table of its own.",
        ),
    )


def _compared(
    index: RowIndex, choices: Sequence[Choice]
) -> Iterator[tuple[str, tuple[GridNumber, ...]]]:
    cells = published_cells()[::-1]
    printed = {(cell.data, cell.method, cell.metric): cell.value for cell in cells}
    for choice, data in product(choices, published_data()):
        method = choice.taken[1]
        for metric in choice.metrics:
            found = [
                index.estimate(suite, data, name, metric)
                for suite, name in (choice.taken, choice.other)
            ]
            if None not in found:
                texts = decimals(printed.get((data, method, metric))), *map(mean_and_error, found)
                name = f"{label(data)}, {metric_name(metric)} of {label(method)}"
                yield name, tuple(map(GridNumber, texts))


def _theorem2_table(found: Sequence[Theorem2Check]) -> Grid:
    """Simulated nonzeros beside the corrected and the printed formula."""
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
    return flat_grid(
        "theorem2",
        "Theorem 2: expected nonzeros, simulated and by formula",
        "setting | simulated | corrected | off by | printed | off by | corrected, T → ∞ | "
        "printed, T → ∞",
        rows,
        "Nonzeros after T rounds of one uniform update and one uniform zeroing, from zero.",
    )


def _proven_settings(index: RowIndex) -> Grid:
    """What the proven methods ran with."""
    suites = {"synthetic": "Table 1", "real": "Tables 2, 3", "ablation": "Tables 4, 5"}
    users = defaultdict(list)
    for suite, data, name in product(suites, published_data(), proven_names()):
        for row in index.rows(suite, data, name)[:1]:
            key = (f"{suites[suite]}, {label(data)}", *_proven_settings_row(row.settings))
            users[key].append(_proven_label(name))
    return flat_grid(
        "proven",
        "What the proven methods ran with",
        "data | proven | ε | δ | ρ (zCDP) | T | λ | clip | |y| ≤",
        [(place, ", ".join(names), *rest) for (place, *rest), names in users.items()],
        "The guarantee covers adding or removing one row with all of these held fixed. Here λ, T, "
        "the clip and the bound on |y| were read off the data, which no budget pays for (E8).",
    )


def _proven_settings_row(settings: Mapping[str, Any]) -> tuple[str, ...]:
    names = ("epsilon", "delta", "rho", "n_iter", "radius", "clip", "target_bound")
    return tuple(f"{settings[name]:.4g}" if name in settings else NOTHING for name in names)
