"""The paper's five tables, every cell beside what its method and the proven ones give here.

A table is data, from which text and HTML are made. The fixed texts of the smaller ones
are in `tables.json`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product
from typing import Literal, NamedTuple

from dpscreen._core.words import NOTHING, decimals, how_many, letters, span
from dpscreen.audit import Finding
from dpscreen.paper.agreement import (
    SUITE_OF_TABLE,
    UNEXPLAINED,
    CellCheck,
    Estimate,
    Place,
    RowIndex,
    check_r2,
    check_theorem2,
    mean_of,
    summarise,
)
from dpscreen.paper.methods import METHODS, proven_names
from dpscreen.paper.published import label, packaged_json, published_cells, published_data
from dpscreen.paper.suites import (
    ABLATION_SUPPORT,
    CHOICES,
    FROM_ZERO,
    SYNTHETIC,
    ZERO_START,
    all_items,
)

# --- a table as data ---------------------------------------------------------------------------

Kind = Literal["plain", "printed", "here", "proven"]
Columns = tuple[tuple[str, tuple[str, ...]], ...]
"""Groups of columns: the heading, which may be empty, and the names below it."""


class GridNumber(NamedTuple):
    """One number as text. `mark` names the note that says why it differs from the paper."""

    text: str = NOTHING
    kind: Kind = "plain"
    strong: bool = False
    mark: str = ""


Line = tuple[str, tuple[GridNumber, ...]]


class Section(NamedTuple):
    """Named rows of numbers that belong together, possibly under a title."""

    lines: tuple[Line, ...]
    title: str = ""
    detail: str = ""


class Note(NamedTuple):
    """Why numbers with this mark differ, and how far each is off."""

    mark: str
    reason: str
    details: tuple[str, ...]
    explained: bool


@dataclass(frozen=True)
class Grid:
    """A table: sections of rows, columns in groups under a heading, notes and remarks below."""

    key: str
    title: str
    corner: str
    columns: Columns
    sections: tuple[Section, ...]
    notes: tuple[Note, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def headings(self) -> list[tuple[str, str]]:
        """The heading above each column of numbers, if any, and the column's own name."""
        return [(heading, name) for heading, names in self.columns for name in names]


def mean_and_error(found: Estimate | None) -> str:
    """Return "mean ± standard error"; the mean alone where the standard error is 0."""
    if found is None:
        return NOTHING
    error = f" ± {decimals(found.standard_error)}" if found.standard_error else ""
    return decimals(found.mean) + error


def metric_name(metric: str) -> str:
    """Return the metric's name; what the paper calls sparsity is called what it is, density."""
    return "Density" if metric == "density" else label(metric)


# --- all tables ---------------------------------------------------------------------------------

TABLES = (1, 2, 3, 4, 5)
FEWEST = 6
"""Trials below which no sign test reaches 0.05, even if all of them agree."""
BOLD = {2: "DP-FW", 3: "the other of Oracle-K FW and RNM-Screen"}
BOLD |= {4: BOLD[2], 5: BOLD[3]}
"""What bold type says a method is significantly better than."""


def all_tables(
    index: RowIndex, cells: Sequence[CellCheck], findings: Sequence[Finding]
) -> Iterator[Grid]:
    """Return the tally, the paper's tables, and the small ones that there are rows for."""
    of_table = {n: [one for one in cells if one.cell.table == n] for n in TABLES}
    tallies = [(f"Table {n}", own) for n, own in of_table.items()]
    yield _small_table("summary", [_tally(*one) for one in (*tallies, ("all", cells))])
    for number, own in of_table.items():
        yield _paper_table(number, own, index)
    for grid in (
        _r2_table(index),
        _control_table(index),
        _zero_start_table(index),
        _choices_table(index),
        _theorem2_table(index),
        _audit_table(findings),
        _proven_table(index),
    ):
        if grid.sections and grid.sections[0].lines:
            yield grid


# --- the paper's --------------------------------------------------------------------------------


def _paper_table(number: int, cells: Sequence[CellCheck], index: RowIndex) -> Grid:
    """Return one table; `cells` are its own, checked, in reading order."""
    suite, details = SUITE_OF_TABLE[number], defaultdict(list)
    for found in cells:
        if found.reason:
            details[found.reason].append(f"{_name(found)}: {found.detail}")
    # Cells that differ are gathered under the reasons they share.
    notes = {
        reason: Note(letters(place), reason, tuple(texts), explained=reason != UNEXPLAINED)
        for place, (reason, texts) in enumerate(details.items())
    }
    methods = tuple(dict.fromkeys(found.cell.method for found in cells))
    proven = tuple(name for name in proven_names() if any(name in c.proven for c in cells))
    columns: Columns = tuple((label(method), ("printed", "here")) for method in methods)
    if proven:
        columns += (("Proven, same stated budget", tuple(map(_proven_label, proven))),)
    sections = []
    for data, of_data in groupby(cells, key=lambda found: found.cell.data):
        facts, here = published_data()[data], {}
        for name in (*methods, *proven):
            rows = index.rows(suite, data, name)
            made = [row.settings["n_iter"] for row in rows if "n_iter" in row.settings]
            here[name] = span(made) if made else NOTHING
        texts = [text for name in methods for text in (str(facts.n_iter), here[name])]
        texts += [here[name] for name in proven]
        iterations = ("iterations T", tuple(map(GridNumber, texts)))
        count = ABLATION_SUPPORT.get(data, facts.n_support)
        count = count if suite == "ablation" else facts.n_support
        detail = f"n = {facts.n_rows}, d = {facts.n_features}, K = {count}"
        for row in index.rows(suite, data, "rnm-screen")[:1]:
            detail += f", λ = {row.settings['radius']:.4g}"
        lines = (iterations, *_lines(list(of_data), proven, notes))
        sections.append(Section(lines, label(data), detail))
    return Grid(
        key=f"table{number}",
        title=f"Table {number}. {all_items()[f'table{number}'].title}",
        corner="data and metric",
        columns=columns,
        sections=tuple(sections),
        notes=tuple(notes.values()),
        remarks=tuple(_remarks(number, cells)),
    )


def _lines(
    cells: list[CellCheck], proven: Sequence[str], notes: Mapping[str, Note]
) -> Iterator[Line]:
    for metric in dict.fromkeys(found.cell.metric for found in cells):
        there = [found for found in cells if found.cell.metric == metric]
        numbers = []
        for found in there:
            numbers.append(GridNumber(decimals(found.cell.value), "printed", found.cell.bold))
            better = found.sign is not None and found.sign.better
            mark = notes[found.reason].mark if found.reason else ""
            text = ("≈ " if found.by_spread else "") + mean_and_error(found.ours)
            numbers.append(GridNumber(text, "here", better, mark))
        for name in proven:
            numbers.append(GridNumber(mean_and_error(there[0].proven.get(name)), "proven"))
        yield metric_name(metric), tuple(numbers)


def _proven_label(method: str) -> str:
    return METHODS[method].label.removeprefix("Proven ")


def _remarks(number: int, cells: Sequence[CellCheck]) -> Iterator[str]:
    trials = [found.ours.trials for found in cells if found.ours and found.ours.standard_error]
    if trials:
        yield (
            f"Here: mean ± standard error of {span(trials)} trials; a method without noise on "
            "fixed data has one. n rows, d features, K nonzeros in the reference; T has a line of "
            "its own, as the proven methods take another number of iterations."
        )
    missing = dict.fromkeys(label(c.cell.data) for c in cells if c.verdict == "not run")
    if missing:
        yield f"Not run, or not completely: {', '.join(missing)}."
    spread = sum(found.by_spread for found in cells)
    if spread:
        yield f"≈: {how_many(spread, 'cell')} within two standard errors only."
    if SUITE_OF_TABLE[number] == "ablation":
        yield OTHER_SUPPORT
    if number in BOLD:
        yield (
            f"Bold: significantly better than {BOLD[number]} by a sign test (two-sided, 0.05)."
            f"{_agreement_with_bold(cells)}"
        )


OTHER_SUPPORT = (
    "The paper prints no K. It is that of Table 2 but on "
    + " and ".join(
        f"{label(data)} ({count}, not {published_data()[data].n_support})"
        for data, count in ABLATION_SUPPORT.items()
    )
    + ": there NP-FW ends at a single vertex of the support, whose F1 is 2/(1 + K), and this K "
    "fits the F1 that Table 5 prints."
)


def _agreement_with_bold(cells: Sequence[CellCheck]) -> str:
    judged = [(found, found.sign) for found in cells if found.sign is not None]
    if not judged:
        return ""
    if max(sign.wins + sign.losses for _, sign in judged) < FEWEST:
        return f" With fewer than {FEWEST} trials no cell can be."
    odd = [(found, sign) for found, sign in judged if sign.better != found.cell.bold]
    agree = f"{len(judged) - len(odd)} of {len(judged)} cells"
    where = "; ".join(f"{_name(found)} (p = {sign.p_two_sided:.2g})" for found, sign in odd)
    rest = f", not for {where}" if odd else ""
    return f" The test here agrees with the printed type in {agree}{rest}."


def _name(found: CellCheck) -> str:
    cell = found.cell
    return f"{label(cell.data)}, {metric_name(cell.metric)} of {label(cell.method)}"


# --- the small ones -----------------------------------------------------------------------------


def _small_table(key: str, rows: Iterable[Sequence[str]]) -> Grid:
    """Return a table of plain text with its fixed texts; the first column names the rows."""
    texts = packaged_json("tables.json")[key]
    lines = tuple((name, tuple(map(GridNumber, numbers))) for name, *numbers in rows)
    corner, *names = texts["columns"].split(" | ")
    columns = (("", tuple(names)),)
    return Grid(key, texts["title"], corner, columns, (Section(lines),), (), (texts["remark"],))


def _tally(name: str, cells: Sequence[CellCheck]) -> list[str]:
    whole, narrow = summarise(cells), summarise(cells, counted=True)
    counts = (len(cells), whole.matching, whole.by_spread, whole.run - whole.matching)
    return [name, *map(str, (*counts, whole.not_run, *narrow[:3]))]


def _r2_table(index: RowIndex) -> Grid:
    rows = []
    for one in check_r2(index):
        both = (one.unchosen, one.unchosen_at_random, one.missed, one.missed_at_random)
        place = f"Table {one.table}, {label(one.data)}"
        rows.append((place, decimals(one.printed), *map(mean_and_error, both), one.fits))
    return _small_table("r2", rows)


def _audit_table(findings: Sequence[Finding]) -> Grid:
    rows = []
    for one in findings:
        verdict = one.verdict if one.as_expected else f"{one.verdict} (NOT expected)"
        claim = (f"{one.claimed:g}", f"{one.delta:.2g}")
        rows.append((one.title, *claim, f"≥ {one.certified:.2f}", f"{one.runs}", verdict))
    grid = _small_table("audit", rows)
    confidence = f"{findings[0].confidence:.1%}" if findings else ""
    return replace(grid, remarks=(grid.remarks[0].format(confidence=confidence),))


def _control_table(index: RowIndex) -> Grid:
    """Show RNM-Screen beside uniform zeroing on the same rows, trial by trial (erratum E7)."""
    rows = []
    for data, metric in product(SYNTHETIC, ("f1", "tpr", "fpr", "density")):
        places = [("synthetic", data, name, metric) for name in ("rnm-screen", "uniform-zeroing")]
        if difference := index.difference(*places):
            means = map(mean_and_error, _paired_means(index, *places))
            same = "yes" if difference.is_zero else "NO"
            name = f"{label(data)}, {metric_name(metric)}"
            rows.append((name, *means, difference.signed, same))
    return _small_table("control", rows)


def _zero_start_table(index: RowIndex) -> Grid:
    """Show the densities of DP-FW and RNM-Screen from a zero start, by trial (erratum E9)."""
    rows = []
    for data in published_data():
        suite = "synthetic" if data in SYNTHETIC else "real"
        random = (index.estimate(suite, data, name, "density") for name in ("dp-fw", "rnm-screen"))
        places = [(ZERO_START, data, name, "density") for name in FROM_ZERO]
        if pairs := index.paired(*places):
            densities = map(mean_and_error, (*random, *_paired_means(index, *places)))
            sparser = sum(screened < dense for dense, screened in pairs)
            rows.append((label(data), *densities, f"{sparser} of {len(pairs)}"))
    return _small_table(ZERO_START, rows)


def _paired_means(index: RowIndex, one: Place, other: Place) -> list[Estimate | None]:
    """Return the means of two metrics over the trials that have both."""
    pairs = index.paired(one, other)
    return [mean_of(pair[k] for pair in pairs) for k in (0, 1)]


K_CHOICE = "K: what fits the printed counts, or d/3 rounded"
MISSING_CELLS = "missing cells: zero, or the column's mean"
LEFT_OPEN = (
    ("true features: one block, or scattered",
     "synthetic", "rnm-screen", CHOICES, "rnm-screen-scattered", ("f1", "density")),
    ("loss: with the factor ½, or without",
     "synthetic", "rnm-screen", CHOICES, "rnm-screen-whole-loss", ("f1", "density")),
    *(("start: random, or zero",
       suite, "rnm-screen", ZERO_START, "rnm-screen-zero", ("f1", "density"))
      for suite in ("synthetic", "real")),
    (K_CHOICE, "real", "rnm-screen", CHOICES, "rnm-screen-third", ("f1", "density", "mse")),
    (K_CHOICE, "real", "oracle-k-fw", CHOICES, "oracle-k-fw-third", ("f1",)),
    (MISSING_CELLS, "real", "rnm-screen", CHOICES, "rnm-screen-filled", ("f1", "density", "mse")),
    (MISSING_CELLS, "real", "oracle-k-fw", CHOICES, "oracle-k-fw-filled", ("f1",)),
    *((f"Preselect-K: by L1 norm, or by {what}",
       "real", "preselect-k-fw", CHOICES, f"preselect-k-{what}", ("f1", "mse"))
      for what in ("variance", "correlation")),
)  # fmt: skip
"""What the paper leaves open: suite and method as taken here and as the alternative, metrics."""


def _choices_table(index: RowIndex) -> Grid:
    printed = {cell.key[1:]: cell.value for cell in published_cells()[::-1]}
    sections = defaultdict(list)
    for what, suite, method, other_suite, other, metrics in LEFT_OPEN:
        for data, metric in product(published_data(), metrics):
            taken = index.estimate(suite, data, method, metric)
            otherwise = index.estimate(other_suite, data, other, metric)
            if taken and otherwise:
                value = decimals(printed.get((data, method, metric)))
                texts = (value, mean_and_error(taken), mean_and_error(otherwise))
                name = f"{label(data)}, {metric_name(metric)} of {label(method)}"
                sections[what].append((name, tuple(map(GridNumber, texts))))
    grouped = tuple(Section(tuple(lines), what) for what, lines in sections.items())
    return replace(_small_table(CHOICES, ()), sections=grouped)


def _theorem2_table(index: RowIndex) -> Grid:
    rows = [
        (
            f"d = {one.process.n_features}, T = {one.process.n_iter}",
            f"{one.simulated.mean:.2f} ± {one.simulated.standard_error:.2f}",
            f"{one.corrected:.2f}",
            f"{one.off(one.corrected):+.2%}",
            f"{one.published:.2f}",
            f"{one.off(one.published):+.1%}",
            f"{one.corrected_limit:.2f}",
            f"{one.published_limit:.2f}",
        )
        for one in check_theorem2(index)
    ]
    return _small_table("theorem2", rows)


def _proven_table(index: RowIndex) -> Grid:
    """Show the settings of proven methods; those with the same settings share a row."""
    suites = {"synthetic": "Table 1", "real": "Tables 2, 3", "ablation": "Tables 4, 5"}
    names = ("epsilon", "delta", "rho", "n_iter", "radius", "clip", "target_bound")
    users = defaultdict(list)
    for suite, data, method in product(suites, published_data(), proven_names()):
        for row in index.rows(suite, data, method)[:1]:
            found = (row.settings.get(name) for name in names)
            texts = (NOTHING if value is None else f"{value:.4g}" for value in found)
            users[f"{suites[suite]}, {label(data)}", *texts].append(_proven_label(method))
    rows = ((place, ", ".join(methods), *rest) for (place, *rest), methods in users.items())
    return _small_table("proven", rows)
