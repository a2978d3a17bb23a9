"""`dpscreen reproduce`: every table, figure and claim of the paper, with the truth beside it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dpscreen.cli import console
from dpscreen.cli.console import wide_enough
from dpscreen.paper.claims import ClaimCheck
from dpscreen.paper.grid import Entry, Grid, verdict

if TYPE_CHECKING:
    from dpscreen.audit import Finding
    from dpscreen.paper.report import Report
    from dpscreen.paper.results import ResultsProblem, ResultStore
    from dpscreen.paper.runner import Progress, Skipped, StudyRun

INTERRUPTED = 130
CLAIM_OF_ITEM = {
    "experiment-a": "experiment-a",
    "experiment-b": "experiment-b",
    "claim-55": "nonprivate-screening",
    "more-iterations": "more-iterations",
}
SECONDS_BETWEEN_LINES = 15.0
"""How often progress is reported where there is no terminal."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("items", nargs=-1, metavar="[ITEM]...")
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Trials of each random method; the paper has 20.",
)
@click.option(
    "--jobs", type=click.IntRange(min=1), help="Processes to use.  [default: one per core]"
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("dpscreen-study"),
    show_default=True,
    help="Where results, tables, figures and the page go.",
)
@click.option("--redraw", is_flag=True, help="Compute nothing: draw again what is stored.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def command(
    items: tuple[str, ...], trials: int, jobs: int | None, out: Path, redraw: bool, as_json: bool
) -> None:
    """Reproduce the paper's tables, figures and claims beside proven methods.

    For every number: what the paper printed, what its algorithm gives here with the published
    constants, and what a method with a proven guarantee gives at the same stated budget. Ends
    with a page, DIR/index.html, that needs no network. Everything takes some minutes; a run that
    was stopped goes on where it was.

    \b
    Items: table1 ... table5, figure1 ... figure4, experiment-a, experiment-b, claim-55,
    more-iterations, theorem2, control. Without any, all of them.

    \b
    Examples:
      dpscreen reproduce
      dpscreen reproduce table1 figure1 --trials 5
      dpscreen reproduce --redraw --out dpscreen-study
    """
    from dpscreen.paper.report import write_report
    from dpscreen.paper.results import ResultStore

    _check_items(items)
    store = ResultStore(out)
    with _clear_errors(out):
        run = None if redraw else _compute(items, store, trials, jobs)
        report = _report(store, run)
        page = write_report(report, out)
    _show(report, items, as_json=as_json)
    _say(f"Page: {page}")


# --- what can go wrong --------------------------------------------------------------------------


@contextmanager
def _clear_errors(out: Path) -> Iterator[None]:
    from dpscreen.paper.results import StudyError

    try:
        yield
    except StudyError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"cannot write to {error.filename or out}: {error.strerror or error}")
    except KeyboardInterrupt:
        _say(
            f"\nStopped. Finished trials are kept in {out}: run the same command to go on, or add "
            "--redraw for a page of what there is."
        )
        sys.exit(INTERRUPTED)


def _fail(message: str) -> NoReturn:
    raise click.ClickException(message[:1].upper() + message[1:])


def _say(message: str) -> None:
    click.echo(message, err=True)


def _check_items(items: tuple[str, ...]) -> None:
    from dpscreen.paper.results import StudyError
    from dpscreen.paper.suites import find_items

    try:
        find_items(items)
    except StudyError as error:
        raise click.UsageError(str(error)) from error


# --- computing and drawing ------------------------------------------------------------------------


def _compute(items: tuple[str, ...], store: ResultStore, trials: int, jobs: int | None) -> StudyRun:
    from dpscreen.paper.runner import run

    log = console.messages()
    with _bar(log) if log.is_terminal else _lines() as report:
        return run(items, store=store, trials=trials, jobs=jobs, on_progress=report)


@contextmanager
def _bar(log: Console) -> Iterator[Callable[[Progress], None]]:
    """Show a live bar with what is under way and the time left."""
    from rich import progress as rich_progress

    columns = (
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TextColumn("{task.fields[left]}"),
        rich_progress.TextColumn("{task.description}", style="dim"),
    )
    with rich_progress.Progress(*columns, console=log, transient=True) as bar:
        task = bar.add_task("starting", total=None, left="")

        def report(now: Progress) -> None:
            bar.update(
                task, total=now.total, completed=now.done, description=now.label, left=_left(now)
            )

        yield report


@contextmanager
def _lines() -> Iterator[Callable[[Progress], None]]:
    """Print a line first, one now and then, and one at the end."""
    said = time.monotonic()

    def report(now: Progress) -> None:
        nonlocal said
        if now.done == 0:
            _say(f"{now.total} trials to run" if now.total else "Nothing is left to run")
        elif now.done == now.total or time.monotonic() - said >= SECONDS_BETWEEN_LINES:
            said = time.monotonic()
            _say(f"{now.done} of {now.total} trials done{_left(now, before=', ')}")

    yield report


def _left(now: Progress, before: str = "") -> str:
    from dpscreen._core.words import duration

    if now.seconds_left is None or now.done == now.total:
        return ""
    return f"{before}about {duration(now.seconds_left)} left"


def _report(store: ResultStore, run: StudyRun | None) -> Report:
    """Return everything that the store holds, whichever run it is from."""
    from dpscreen.paper.report import Report
    from dpscreen.paper.results import StudyError, read_rows
    from dpscreen.paper.runner import stored_rows

    most = max((row.trial + 1 for row in read_rows(store.path).rows), default=1)
    stored = stored_rows(store, trials=most)
    problems = (*(run.problems if run else ()), *stored.problems)
    with_rows = {row.data for row in stored.rows}
    skipped = run.skipped if run else ()
    _tell(problems, skipped)
    if not stored.rows:
        raise StudyError(f"there are no results in {store.directory}; run `dpscreen reproduce`")
    texts = dict.fromkeys(_without_place(problem, store) for problem in problems)
    left_out = tuple(_for_page(one) for one in skipped if one.data not in with_rows)
    return Report(stored.rows, left_out, tuple(texts), _findings(store.directory))


def _findings(directory: Path) -> tuple[Finding, ...]:
    """Return what an audit left here; a damaged file is told and left out."""
    from dpscreen.audit import AuditFileProblem, load_findings

    try:
        return load_findings(directory)
    except AuditFileProblem as problem:
        _say(f"{problem}.")
        return ()


def _tell(problems: tuple[ResultsProblem, ...], skipped: tuple[Skipped, ...]) -> None:
    for message in dict.fromkeys(problem.message for problem in problems):
        _say(f"Note: {message}")
    for one in skipped:
        _say(f"Left out: {one.message}")


def _without_place(problem: ResultsProblem, store: ResultStore) -> str:
    """Keep directories, which are nobody else's business, off the page."""
    return problem.message.replace(f"{store.directory}/", "")


def _for_page(one: Skipped) -> Skipped:
    from dpscreen.paper.published import label
    from dpscreen.paper.runner import Skipped

    return Skipped(
        one.data,
        f"{label(one.data)}: not found, or not the data it should be. "
        f"`dpscreen datasets fetch {one.data}` gets it; then run again.",
    )


# --- what is printed ------------------------------------------------------------------------------


def _show(report: Report, items: tuple[str, ...], *, as_json: bool) -> None:
    from dpscreen.paper.report import summary_json

    if as_json:
        click.echo(summary_json(report))
        return
    out = console.output()
    for grid in report.grids:
        if grid.key in items:
            show(grid, out)
    wanted = {CLAIM_OF_ITEM.get(item) for item in items}
    show_claims((claim for claim in report.claims if claim.key in wanted), out)
    show(report.tally, out)
    summary = report.summary
    if summary.counted:
        out.print(f"{summary.matching} of {summary.counted} counted cells come out as printed.")


def show(grid: Grid, console: Console) -> None:
    """Print a table with its notes."""
    table = _table(grid)
    wide_enough(console, table).print(table)
    for remark in grid.remarks:
        console.print(Text(remark, style="dim"))
    for note in grid.notes:
        console.print(Text(f"≠ {note.mark}  {note.reason}"))
        for detail in note.details:
            console.print(Text(f"     {detail}", style="dim"))


def show_claims(claims: Iterable[ClaimCheck], console: Console) -> None:
    """Print what became of some claims."""
    for claim in claims:
        console.print(Text(f"{claim.where}: {claim.description}"))
        console.print(Text(f"  {verdict(claim)}. {claim.finding}"))


def _table(grid: Grid) -> Table:
    table = Table(
        title=Text(grid.title),
        title_style="bold",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column(Text(grid.corner))
    for heading in _headings(grid):
        table.add_column(heading, justify="right")
    for cells in _rows(grid):
        table.add_row(*cells)
    return table


def _headings(grid: Grid) -> Iterator[Text]:
    for group in grid.columns:
        for name in group.names:
            heading = group.heading.partition(",")[0]
            yield Text(f"{heading}\n{name}" if heading else name)


def _rows(grid: Grid) -> Iterator[list[Text]]:
    for section in grid.sections:
        if section.title:
            yield [Text(section.title, style="bold")]
        for line in section.lines:
            yield [Text(line.name), *map(_cell, line.entries)]


def _cell(entry: Entry) -> Text:
    text = Text(entry.text, style="bold" if entry.strong else "")
    return text.append(f" ≠{entry.mark}", style="bold yellow") if entry.mark else text
