"""`dpscreen reproduce`: every table, figure and claim of the paper, run again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich import box
from rich.text import Text

from dpscreen._core.messages import message
from dpscreen.audit import AuditFileProblem, Finding, all_cases, audit, load_findings, save_findings
from dpscreen.cli import console
from dpscreen.paper.report import Report, summary_json, write_report
from dpscreen.paper.results import ResultStore, StudyError, StudyRun
from dpscreen.paper.runner import run, stored_rows
from dpscreen.paper.suites import find_items
from dpscreen.paper.tables import Grid

INTERRUPTED = 130
CLAIMS_OF_ITEM = {
    "experiment-a": ("experiment-a",),
    "experiment-b": ("experiment-b",),
    "claim-55": ("nonprivate-screening",),
    "claim-55-wide": ("nonprivate-screening",),
    "more-iterations": ("more-iterations-small", "more-iterations-large"),
    "long-real": ("rnm-f1-above-oracle-on-larger-sets",),
    "zero-start": ("density-better-than-dp-fw",),
}
PUBLISHED = "published-"
"""What the names of the audit's cases begin with that are about the paper; they take seconds."""


@click.command()
@click.argument("items", nargs=-1, metavar="[ITEM]...")
@click.option(
    "--trials",
    type=console.COUNT,
    default=20,
    help="Trials of each random method; the paper has 20.",
)
@click.option("--jobs", type=console.COUNT, help="Processes to use.  [default: one per core]")
@click.option(
    "--out",
    type=console.PATH,
    default=Path("dpscreen-study"),
    help="Where results, tables, figures and the page go.",
)
@click.option("--redraw", is_flag=True, help="Draw stored results again without computing any.")
@console.JSON(help="Print the summary as JSON.")
def command(
    items: tuple[str, ...], trials: int, jobs: int | None, out: Path, redraw: bool, as_json: bool
) -> None:
    """Reproduce the paper's tables, figures and claims beside proven methods.

    For every number: what the paper printed, what its algorithm gives here with the published
    constants, and what a method with a proven guarantee gives at the same stated budget. Ends
    with a page, DIR/index.html, that needs no network. Everything takes some minutes; a run that
    was stopped continues where it was.

    \b
    Items: table1 ... table5, figure1 ... figure4, experiment-a, experiment-b,
    claim-55, claim-55-wide, more-iterations, long-real, long-ablation,
    theorem2, control, zero-start, choices. Without any, all of them and an
    audit of what is claimed.

    \b
    Examples:
      dpscreen reproduce
      dpscreen reproduce table1 figure1 --trials 5
      dpscreen reproduce --redraw --out dpscreen-study
    """
    with console.wrong_usage(StudyError):
        find_items(items)
    store, done = ResultStore(out), StudyRun()
    with _clear_errors(out):
        if not redraw:
            with _progress() as shown:
                done = run(items, store=store, trials=trials, jobs=jobs, on_progress=shown)
        report = _report(store, done, audited=not (redraw or items))
        page = write_report(report, out)
    _show(report, items, as_json=as_json)
    console.say(f"Page: {page}")


@contextmanager
def _clear_errors(out: Path) -> Iterator[None]:
    try:
        with console.failures(StudyError), console.write_failures(out):
            yield
    except KeyboardInterrupt:
        console.say(
            f"\nStopped. Finished trials are kept in {out}: run the same command to go on, or add "
            "--redraw for a page of what there is."
        )
        sys.exit(INTERRUPTED)


# --- computing and drawing ------------------------------------------------------------------------


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """Show a bar on a terminal; elsewhere say after each tenth how far it is."""
    with console.share_bar("computing") as show:

        def report(done: int, planned: int) -> None:
            show(done / planned)
            a_tenth = 10 * done // planned > 10 * (done - 1) // planned
            if a_tenth and not console.messages().is_terminal:
                console.say(f"{done} of {planned} trials done")

        yield report


def _report(store: ResultStore, done: StudyRun, *, audited: bool) -> Report:
    """Return everything that the store holds, whichever run it is from."""
    stored = stored_rows(store)
    problems = tuple(dict.fromkeys((*done.problems, *stored.problems)))
    for problem in problems:
        console.say(f"Note: {problem}")
    for why in done.skipped.values():
        console.say(f"Left out: {why}")
    if not stored.rows:
        raise StudyError(message("study.nothing", folder=store.directory))
    left_out = set(done.skipped) - {row.data for row in stored.rows}
    # Directories stay off the page.
    texts = [problem.replace(f"{store.directory}/", "") for problem in problems]
    return Report(stored.rows, sorted(left_out), texts, _findings(store.directory, audited=audited))


def _findings(directory: Path, *, audited: bool = False) -> tuple[Finding, ...]:
    """Return what an audit left here; a damaged file is reported and left out.

    If there was none and one is wanted, what the paper claims is audited now.
    """
    try:
        found = load_findings(directory)
    except AuditFileProblem as problem:
        console.say(console.sentence(problem))
        return ()
    if found or not audited:
        return found
    console.say("Auditing what the paper claims")
    names = [name for name in all_cases() if name.startswith(PUBLISHED)]
    made = audit(names, seed="reproduce")
    save_findings(made, directory)
    return tuple(made)


# --- what is printed ------------------------------------------------------------------------------


def _show(report: Report, items: tuple[str, ...], *, as_json: bool) -> None:
    if as_json:
        click.echo(summary_json(report))
        return
    out = console.output()
    for key, grid in report.grids.items():
        if key in items:
            _show_grid(grid)
    wanted = {key for item in items for key in CLAIMS_OF_ITEM.get(item, ())}
    for claim in report.claims:
        if claim.key in wanted:
            out.print(Text(f"{claim.where}: {claim.description}"))
            for one in claim.judged:
                out.print(Text(f"  {one.reading}. {one.run}."))
                out.print(Text(f"    {one.verdict}. {one.finding}"))
    _show_grid(report.grids["summary"])
    whole, narrow = report.summary, report.narrow
    if whole.run:
        out.print(
            f"{whole.matching} of {whole.run} cells come out as printed; in the narrower count, "
            f"{narrow.matching} of {narrow.run}.",
            soft_wrap=True,
        )


def _show_grid(grid: Grid) -> None:
    """Print a table with its notes."""
    shorts = [(heading.partition(",")[0], name) for heading, name in grid.headings]
    headings = [grid.corner, *(f"{short}\n{name}" if short else name for short, name in shorts)]
    style: Any = {"title_justify": "left", "box": box.SIMPLE_HEAD, "pad_edge": False}
    title = Text(grid.title)
    rows = []
    for section in grid.sections:
        rows += [[Text(section.title, style="bold")]] if section.title else []
        for name, numbers in section.lines:
            cells = [Text(one.text, style="bold" if one.strong else "") for one in numbers]
            for one, cell in zip(numbers, cells, strict=True):
                if one.mark:
                    cell.append(f" ≠{one.mark}", style="bold yellow")
            rows.append([Text(name), *cells])
    console.print_table(headings, rows, left={grid.corner}, title=title, **style)
    out = console.output()
    for remark in grid.remarks:
        out.print(Text(remark, style="dim"))
    for note in grid.notes:
        out.print(Text(f"≠ {note.mark}  {note.reason}"))
        for detail in note.details:
            out.print(Text(f"     {detail}", style="dim"))
