"""`dpscreen demo`: what the paper's rule does, what can be promised, and a real table."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np
from rich.console import Console

from dpscreen._core.arrays import Array
from dpscreen._core.words import WIDTH, whole_percent
from dpscreen.cli import console
from dpscreen.privacy import named_seed

if TYPE_CHECKING:
    from dpscreen.cli._demo_table import Effect, TableFit
    from dpscreen.paper.demo import DemoOutcome

KINDS = ("uncorrelated", "correlated")


@click.command(context_settings=console.HELP)
@click.option(
    "--data",
    type=click.Choice(KINDS),
    default="uncorrelated",
    show_default=True,
    help="Which of the paper's two synthetic data sets.",
)
@click.option("--statements", is_flag=True, help="Print every privacy statement in full.")
@click.option(
    "--report",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    default=Path("dpscreen-demo.html"),
    show_default=True,
    help="Where to write the page with pictures and statements.",
)
@console.plot_option("Also write the pictures alone")
def command(data: str, statements: bool, report: Path, plot: Path | None) -> None:
    """Compare published, proven and non-private methods, then fit a real table.

    First 3000 rows with 600 features of which 70 matter, at the epsilon of the paper's Table 1;
    then the diabetes table that comes with scikit-learn. The data is the same in every run; the
    privacy noise is not. Writes one page, which asks for nothing from anywhere.

    \b
    Examples:
      dpscreen demo
      dpscreen demo --data correlated --statements
    """
    console.check_plot(plot)
    console.check_output(report, force=True)
    from dpscreen.cli import _demo_table
    from dpscreen.paper import demo

    out, log = console.output(), console.messages()
    rows = demo.paper_data(data, np.random.default_rng(named_seed(f"demo/{data}")))
    results = []
    with console.progress(log) as bar:
        task = bar.add_task("fitting", total=len(demo.contestants()))
        for outcome in demo.outcomes(rows):
            results.append(outcome)
            bar.update(task, advance=1, description=f"fitted {outcome.method}")
    regression = _demo_table.regression_block()
    show(out, results, regression, demo.EPSILON)
    if statements:
        _show_statements(out, results, regression)
    _write(report, plot, results, rows.coef, regression)
    log.print(f"Pictures and privacy statements: {report}", soft_wrap=True)


def show(out: Console, results: list[DemoOutcome], regression: TableFit, epsilon: float) -> None:
    """Print one screen: at most 30 lines of 80 columns."""
    heading = f"1. Simulated: 3000 rows, 70 of 600 features matter; ε = {epsilon:g}, δ = 1e-06"
    out.print(heading, style="bold", markup=False)
    for line in (*contest_lines(results), ""):
        out.print(line, markup=False)
    heading = f"2. Real: 442 diabetes patients; ε = {regression.statement.epsilon:g}, δ = 1e-06"
    out.print(heading, style="bold", markup=False)
    for line in regression_lines(regression):
        out.print(line, markup=False)


def contest_lines(results: list[DemoOutcome]) -> Iterator[str]:
    """Yield the table of methods, and what can be learnt from it."""
    from dpscreen.paper.demo import FITS, LESSONS

    corner, scores = f"means of {FITS} fits", f"{'found':>7}{'wrong':>7}{'F1':>7}{'MSE':>8}"
    yield f"{corner:<27}{'T':>5}{scores}  the stated ε"
    for one in results:
        found, wrong = whole_percent(one.found), whole_percent(one.wrong)
        steps = "" if one.n_iter is None else one.n_iter
        yield (
            f"{one.method:<27}{steps:>5}{found:>7}{wrong:>7}{one.f1:>7.2f}{one.mse:>8.2f}"
            f"  {one.promise}"
        )
    yield from (f"* {lesson}" for lesson in LESSONS)


def regression_lines(regression: TableFit) -> Iterator[str]:
    """Yield the table of effects, how good the fit is, and what epsilon means."""
    intervals = any(effect.interval for effect in regression.effects)
    spans = f"{'95 % interval':>20}" if intervals else ""
    yield f"{'progression moves with':<32}{'by':>8}{spans}{'not private':>14}"
    yield from (_effect_line(effect, intervals) for effect in regression.effects)
    yield from textwrap.wrap(regression.fit, WIDTH)
    yield from textwrap.wrap(regression.meaning, WIDTH)


def _effect_line(effect: Effect, intervals: bool) -> str:
    name = f"{effect.name}, {effect.step_words}"
    span = f"{_span(effect):>20}" if intervals else ""
    return f"{name:<32}{effect.effect:>8.1f}{span}{effect.plain:>14.1f}"


def _span(effect: Effect) -> str:
    if effect.interval is None:
        return "–"
    low, high = effect.interval
    return f"{low:.1f} to {high:.1f}"


def _show_statements(out: Console, results: list[DemoOutcome], regression: TableFit) -> None:
    for name, statement in statements_of(results, regression):
        out.print(f"\n{name}", style="bold", markup=False)
        out.print(statement, markup=False)


def statements_of(results: list[DemoOutcome], regression: TableFit) -> list[tuple[str, str]]:
    """Return each method with its statement in full."""
    none = "No privacy at all: for comparison only."
    told = [(one.method, str(one.statement or none)) for one in results]
    return [*told, ("The diabetes table", str(regression.statement))]


def _write(
    report: Path,
    plot: Path | None,
    results: list[DemoOutcome],
    truth: Array,
    regression: TableFit,
) -> None:
    from dpscreen._core.files import write_text
    from dpscreen.cli._demo_table import render
    from dpscreen.paper import demo

    page = render(results, truth, regression, statements_of(results, regression))
    with console.write_failures(report):
        write_text(report, page)
    if plot is not None:
        demo.draw_all(results, truth).savefig(plot, dpi=130)
