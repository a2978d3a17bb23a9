"""`dpscreen demo`: what the paper's rule does, what can be promised, and a real table.

All of it is also one HTML file, which holds its pictures, runs no script and asks for nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from dpscreen import __version__
from dpscreen._core.arrays import Array
from dpscreen._core.files import write_text
from dpscreen._core.words import whole_percent
from dpscreen.cli import console
from dpscreen.privacy import named_seed

if TYPE_CHECKING:
    from dpscreen.models import PrivateOLS
    from dpscreen.paper.demo import DemoOutcome

MEASUREMENTS = {
    "bmi": ("body mass index", (15, 50)),
    "bp": ("blood pressure", (60, 140)),
    "s5": ("log triglycerides", (3, 7)),
}
"""Columns of scikit-learn's diabetes table: name and bounds.

Bounds are medical knowledge, not taken from the rows.
"""


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
def command(data: str, statements: bool, report: Path) -> None:
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
    from dpscreen.paper import demo
    from dpscreen.paper.data import CORRELATION, synthetic

    log, rng = console.messages(), np.random.default_rng(named_seed(f"demo/{data}"))
    rows = synthetic(correlation=CORRELATION[data], rng=rng)
    results = []
    with console.progress() as bar:
        task = bar.add_task("fitting", total=len(demo.contestants()))
        for outcome in demo.outcomes(rows):
            results.append(outcome)
            bar.update(task, advance=1, description=f"fitted {outcome.method}")
    table = diabetes_model()
    none = "No privacy at all: for comparison only."
    printed = [(one.method, str(one.statement or none)) for one in results]
    printed.append(("The diabetes table", str(table.privacy_)))
    out = console.output()
    setting = f"ε = {demo.EPSILON:g}, δ = 1e-06"
    out.print(f"1. Simulated: 3000 rows, 70 of 600 features matter; {setting}", style="bold")
    _show_methods(results)
    parts = [("2. Real: 442 diabetes patients", str(table.summary()))]
    for heading, text in (*parts, *((f"\n{name}", text) for name, text in printed if statements)):
        out.print(heading, style="bold", markup=False)
        out.print(text, markup=False)
    with console.write_failures(report):
        write_text(report, _page(results, rows.coef, table, printed))
    log.print(f"Pictures and privacy statements: {report}", soft_wrap=True)


def _show_methods(results: list[DemoOutcome]) -> None:
    """Print the table of methods, and why each does what it does."""
    from dpscreen.paper.demo import FITS

    name, promise = f"means of {FITS} fits", "the stated ε"
    rows = [
        (
            *(one.method, "" if one.n_iter is None else f"{one.n_iter}"),
            *(whole_percent(one.found), whole_percent(one.wrong)),
            *(f"{one.f1:.2f}", f"{one.mse:.2f}", one.promise),
        )
        for one in results
    ]
    headings = (name, "T", "found", "wrong", "F1", "MSE", promise)
    console.print_table(headings, rows, left={name, promise}, box=None, pad_edge=False)
    for one in results:
        console.output().print(f"* {one.why}", markup=False)


def diabetes_model() -> PrivateOLS:
    """Fit the table that comes with scikit-learn."""
    from sklearn.datasets import load_diabetes

    from dpscreen.models import PrivateOLS
    from dpscreen.paper import demo

    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    names, bounds = zip(*MEASUREMENTS.values(), strict=True)
    model = PrivateOLS(
        epsilon=demo.EPSILON,
        delta=demo.DELTA,
        feature_bounds=list(bounds),
        target_bounds=(0, 400),
    )
    return model.fit(X[list(MEASUREMENTS)].set_axis(list(names), axis=1), y)


def _page(
    results: list[DemoOutcome], truth: Array, table: PrivateOLS, statements: list[tuple[str, str]]
) -> str:
    """Return the page."""
    from markupsafe import Markup

    from dpscreen._core.pictures import environment, themed_svg
    from dpscreen.models.page.effects import effects_chart, effects_of
    from dpscreen.paper import demo

    panels = [
        (one, Markup(themed_svg(demo.draw(one, truth), prefix=f"m{place}")))
        for place, one in enumerate(results)
    ]
    return (
        environment("dpscreen.cli")
        .get_template("demo.html")
        .render(
            epsilon=demo.EPSILON,
            fits=demo.FITS,
            panels=panels,
            summary=table.summary(),
            effects=effects_chart(effects_of(table.released())),
            svg=Markup,
            statements=statements,
            percent=whole_percent,
            version=__version__,
        )
    )
