"""`dpscreen demo`: what the paper's rule does, what can be promised, and a real table."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from dpscreen._core.files import write_text
from dpscreen._core.words import WIDTH, whole_percent
from dpscreen.cli import console
from dpscreen.privacy import named_seed

if TYPE_CHECKING:
    from dpscreen.cli._demo_table import TableFit
    from dpscreen.paper.demo import DemoOutcome


@click.command()
@click.option(
    "--data",
    type=click.Choice(["uncorrelated", "correlated"]),
    default="uncorrelated",
    help="Which of the paper's two synthetic data sets.",
)
@click.option("--statements", is_flag=True, help="Print every privacy statement in full.")
@click.option(
    "--report",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    default=Path("dpscreen-demo.html"),
    help="Write the page with pictures and statements to this file.",
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
    console.check_output(report, force=True)
    from dpscreen.cli import _demo_table
    from dpscreen.paper import demo

    log = console.messages()
    rows = demo.paper_data(data, np.random.default_rng(named_seed(f"demo/{data}")))
    results = []
    with console.progress(log) as bar:
        task = bar.add_task("fitting", total=len(demo.contestants()))
        for outcome in demo.outcomes(rows):
            results.append(outcome)
            bar.update(task, advance=1, description=f"fitted {outcome.method}")
    regression = _demo_table.regression_block()
    none = "No privacy at all: for comparison only."
    printed = [(one.method, str(one.statement or none)) for one in results]
    printed.append(("The diabetes table", str(regression.statement)))
    first = f"1. Simulated: 3000 rows, 70 of 600 features matter; ε = {demo.EPSILON:g}, δ = 1e-06"
    other = f"2. Real: 442 diabetes patients; ε = {regression.statement.epsilon:g}, δ = 1e-06"
    parts = [
        (first, "\n".join((*_contest_lines(results), ""))),
        (other, "\n".join(_regression_lines(regression))),
        *((f"\n{name}", text) for name, text in printed if statements),
    ]
    for heading, text in parts:
        console.output().print(heading, style="bold", markup=False)
        console.output().print(text, markup=False)
    with console.write_failures(report):
        write_text(report, _demo_table.render(results, rows.coef, regression, printed))
    if plot is not None:
        demo.draw_all(results, rows.coef).savefig(plot, dpi=130)
    log.print(f"Pictures and privacy statements: {report}", soft_wrap=True)


def _contest_lines(results: list[DemoOutcome]) -> Iterator[str]:
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


def _regression_lines(regression: TableFit) -> Iterator[str]:
    """Yield the table of effects, how good the fit is, and what epsilon means."""
    intervals = any(effect.interval for effect in regression.effects)
    spans = f"{'95 % interval':>20}" if intervals else ""
    yield f"{'progression moves with':<32}{'by':>8}{spans}{'not private':>14}"
    for one in regression.effects:
        span = "–" if one.interval is None else "{:.1f} to {:.1f}".format(*one.interval)
        shown = f"{span:>20}" if intervals else ""
        name = f"{one.name}, {one.step_words}"
        yield f"{name:<32}{one.effect:>8.1f}{shown}{one.plain:>14.1f}"
    yield from textwrap.wrap(regression.fit, WIDTH)
    yield from textwrap.wrap(regression.meaning, WIDTH)
