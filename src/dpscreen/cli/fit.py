"""`dpscreen fit`: from a table to a private model, a summary and a page."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpscreen.cli import console
from dpscreen.cli._fit_options import (
    METHODS,
    MODELS,
    FitOptions,
    PreparedFit,
    check_budget,
    paper_options,
    prepared,
)
from dpscreen.cli.console import ledger_failures, note_spent

if TYPE_CHECKING:
    from dpscreen.models.release import Release
    from dpscreen.tables.reading import EncodedRows
    from dpscreen.tables.scan import ScannedRows

FILE = click.Path(dir_okay=False, path_type=Path)
DIRECTORY = click.Path(path_type=Path)  # what it is instead, the ledger says


@click.command(context_settings=console.HELP)
@click.argument("data", type=FILE)
@click.option("--schema", "schema_file", type=FILE, required=True, help="The filled-in schema.")
@click.option(
    "--epsilon",
    type=console.EPSILON,
    required=True,
    help="Budget: epsilon, all of which is spent.",
)
@click.option(
    "--delta",
    type=console.NumberWithin(0, 1, min_open=True, max_open=True),
    required=True,
    help="Budget: delta, far below 1 over the number of rows.",
)
@click.option(
    "--model",
    type=click.Choice(list(MODELS)),
    metavar="NAME",
    help="lasso finds the few features that matter; free-screen does so by a path that is screened "
    "halfway; ols is a regression table of all of them; "
    "logistic is for yes or no, and the default where the target is true or false; logit is a "
    "table of all odds ratios; rnm-screen, adp-screen and dp-fw are those of the paper.",
)
@click.option(
    "--method",
    type=click.Choice(METHODS),
    metavar="NAME",
    help=f"By its own name: {', '.join(METHODS)}; `dpscreen compare` shows how those for lasso "
    "differ.",
)
@click.option(
    "--inference",
    type=click.Choice(["split"]),
    help="Half of the rows select, the other half gives intervals (private-lasso, "
    "private-logistic).",
)
@click.option(
    "--max-features",
    type=console.WholeWithin(min=1),
    help="At most so many features enter (private-lasso, private-logistic).",
)
@click.option(
    "--rows-public",
    type=console.WholeWithin(min=2),
    help="A public number of rows, about right. Without it a noisy count is paid for.",
)
@paper_options
@click.option("--ledger", type=DIRECTORY, help="Book the cost here first.")
@click.option("--purpose", help="What this is for: told to the ledger, and on the page.")
@click.option("--author", help="Who made it, for the model file and the page.")
@click.option("--date", help="When, for the model file and the page; or today.")
@click.option("--dry-run", is_flag=True, help="Check everything and show the plan: spends nothing.")
@click.option("-o", "--output", type=FILE, help="Where the model goes, as JSON.")
@click.option("--report", type=FILE, help="Where a page about it goes, as HTML.")
@click.option("--force", is_flag=True, help="Replace outputs that exist.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary, or the plan, as JSON.")
def command(**given: Any) -> None:
    """Fit a private model to a table: CSV, gzip CSV, Parquet or Excel.

    The schema declares columns, bounds, levels, target and privacy unit; `dpscreen schema ask`
    makes one with you. Everything that can be checked is checked before a private cell is read,
    and the ledger, if there is one, is charged before any noise is drawn. Outputs are written whole
    or not at all, and hold released values only.

    Cells that are missing or cannot be read count as the schema's fill; without one, a number
    counts as the middle of its bounds and a category as its first level, which others are compared
    with. Whether there are such cells is not told.

    rnm-screen, adp-screen and dp-fw (docs/paper-methods.md) take the options from --calibration to
    --screen-at. Without them the radius is half the width of the target's bounds, residuals are
    clipped at a tenth of that width, and the number of steps suits rows and budget.

    \b
    Exit codes: 0 done, 1 failed or table refused, 2 wrong usage, 3 over budget.

    \b
    Examples:
      dpscreen fit data.csv --schema schema.json --epsilon 1 --delta 1e-6 \\
          --dry-run
      dpscreen fit data.csv --schema schema.json --epsilon 1 --delta 1e-6 \\
          -o model.json --report report.html
      dpscreen fit data.parquet --schema schema.json --epsilon 1 --delta 1e-6 \\
          --inference split --ledger budget.ledger -o model.json
      dpscreen fit data.csv --schema schema.json --epsilon 1 --delta 1e-6 \\
          --model ols -o table.json
      dpscreen fit data.csv --schema schema.json --epsilon 1 --delta 1e-6 \\
          --model rnm-screen --screen-at 10 -o model.json
    """
    if given["date"] == "today":
        given["date"] = datetime.date.today().isoformat()
    ready = prepared(FitOptions(**given))
    if ready.options.dry_run:
        from dpscreen.cli._fit_dry_run import show_plan

        show_plan(ready)
        _warn_of_delta(ready)
        check_budget(ready)
        return
    check_budget(ready)
    _warn_of_few_rows(ready)
    _fit(ready, _read(ready))
    _save(ready)
    _show(ready)
    _write_page(ready)


def _warn_of_delta(ready: PreparedFit) -> None:
    """Warn as a fit would, if the number of rows is declared."""
    from dpscreen.models.base import WEAK_DELTA

    if ready.options.delta * (ready.options.rows_public or 0) >= 1:
        click.echo(f"Warning: {WEAK_DELTA}", err=True)


def _warn_of_few_rows(ready: PreparedFit) -> None:
    """Warn of a declared number of rows with which nothing can be found.

    Whether it is the true one is never looked at: to say so would tell how many rows there are.
    """
    from dpscreen.planning.plan import USELESS

    regime = ready.request.regime
    if regime is not None and regime.signal < USELESS:
        click.echo(
            f"Warning: with {regime.n_rows} rows, as --rows-public says, no useful model can be "
            "expected at this budget. The number is taken as it is and never compared with the "
            "table; if it is wrong, press Ctrl-C, and give it about right or leave it out.",
            err=True,
        )


# --- the private part -----------------------------------------------------------------------------


def _read(ready: PreparedFit) -> EncodedRows | ScannedRows:
    """Read the rows, or leave them in a file that is too large (docs/howto/large-files.md)."""
    from dpscreen.tables.reading import fits_memory, read_rows

    data, schema, screen = ready.options.data, ready.schema, console.messages()
    with console.data_failures():
        if not fits_memory(data, schema):
            click.echo("The table is large: it is read again for every step.", err=True)
            from dpscreen.tables.scan import scan

            return scan(data, schema, progress=screen.is_terminal)
        with console.progress(screen) as bar:
            task = bar.add_task(f"reading {data.name}", total=100)
            return read_rows(
                data, schema, progress=lambda share: bar.update(task, completed=int(100 * share))
            )


def _fit(ready: PreparedFit, rows: EncodedRows | ScannedRows) -> None:
    """Fit, and let nothing out of a failure but what is known to hold no data."""
    from dpscreen.planning.fitting import FitFailed, fit_rows

    try:
        with ledger_failures():
            told = fit_rows(ready.model, rows, ready.booking)
    except FitFailed as failure:
        raise click.ClickException(console.sentence(failure)) from None
    for text in told:
        click.echo(f"Warning: {text}", err=True)


# --- what comes out -------------------------------------------------------------------------------


def _save(ready: PreparedFit) -> None:
    """Write the model file before anything else, as the budget is gone.

    If the disk refuses, the model goes to stdout.
    """
    from dpscreen.models import ModelFileProblem

    model, output, schema = ready.model, ready.options.output, ready.schema.to_dict()
    try:
        model.save(output, schema=schema, about=ready.options.about, force=ready.options.force)
    except ModelFileProblem as problem:
        click.echo(_as_file(ready))
        raise click.ClickException(
            f"{console.sentence(problem)} So that what was paid for is not lost, the model was "
            "printed instead: save that as a file."
        ) from None
    note_spent(f"The budget of the fit is spent, and the model is in {output}.")
    click.echo(f"Model written to {output}", err=True)


def _as_file(ready: PreparedFit) -> str:
    from dpscreen.models.file import encoded

    return encoded(_described(ready)).decode()


def _described(ready: PreparedFit) -> Release:
    """Return the release with what is said of its data and of itself."""
    found: Release = ready.model.described(schema=ready.schema.to_dict(), about=ready.options.about)
    return found


def _show(ready: PreparedFit) -> None:
    from dpscreen.cli.show import as_data
    from dpscreen.models.linear import shown_summary

    release = _described(ready)
    if ready.options.as_json:
        click.echo(json.dumps(as_data(release), indent=2, ensure_ascii=False))
    else:
        click.echo(str(shown_summary(release)))


def _write_page(ready: PreparedFit) -> None:
    report, rows, schema = ready.options.report, ready.options.rows_public, ready.schema
    if report is None:
        return
    from dpscreen.planning.model_page import write_model_page

    told: Any = {"schema": schema, "n_rows": rows, "about": ready.options.about}
    try:
        told["ledger"] = None if ready.booking is None else ready.booking.ledger.document()
        with console.simulating("simulating what could be expected, for the page") as progress:
            write_model_page(ready.model, report, progress=progress, **told)
    except Exception as error:  # the model is safe; whatever it was, say so
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise click.ClickException(
            f"The model is in {ready.options.output}, but the page could not be written: {reason}."
        ) from None
    click.echo(f"Page written to {report}", err=True)
