"""`dpscreen fit`: from a table to a private model, a summary and a page."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpscreen.cli import console
from dpscreen.cli.fit_options import (
    METHODS,
    Booking,
    FitOptions,
    check_budget,
    check_files,
    checked_schema,
    counted,
    data_failures,
    opened_ledger,
    set_up,
)
from dpscreen.cli.ledger import ledger_failures

if TYPE_CHECKING:
    from dpscreen.tables.reading import EncodedRows
    from dpscreen.tables.schema import TableSchema

FILE = click.Path(dir_okay=False, path_type=Path)
BOOKED = " The ledger keeps what was booked, as something may have been released."


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("data", type=FILE)
@click.option("--schema", "schema_file", type=FILE, required=True, help="The filled-in schema.")
@click.option(
    "--epsilon",
    type=click.FloatRange(0, min_open=True),
    required=True,
    help="Budget: epsilon, all of which is spent.",
)
@click.option(
    "--delta",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    required=True,
    help="Budget: delta, far below 1 over the number of rows.",
)
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="private-lasso",
    show_default=True,
    help="`dpscreen compare` shows how they differ.",
)
@click.option(
    "--inference",
    type=click.Choice(["split"]),
    help="Half of the rows select, the other half gives intervals (private-lasso).",
)
@click.option(
    "--max-features",
    type=click.IntRange(min=1),
    help="At most so many features enter (private-lasso).",
)
@click.option(
    "--rows-public",
    type=click.IntRange(min=2),
    help="A public number of rows, about right. Without it the true number is disclosed.",
)
@click.option("--ledger", "ledger_file", type=FILE, help="Book the cost here first.")
@click.option("--purpose", help="What the ledger is told that this is for.")
@click.option("--dry-run", is_flag=True, help="Check everything and show the plan: spends nothing.")
@click.option("-o", "--output", type=FILE, help="Where the model goes, as JSON.")
@click.option("--report", type=FILE, help="Where a page about it goes, as HTML.")
@click.option("--force", is_flag=True, help="Replace outputs that exist.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary, or the plan, as JSON.")
def command(**options: Any) -> None:
    """Fit a sparse private model to a table: CSV, gzip CSV or Parquet.

    The schema declares columns, bounds, levels, target and privacy unit; `dpscreen schema new`
    makes one to fill in. Everything that can be checked is checked before a private cell is read,
    and the ledger, if there is one, is charged before any noise is drawn. Outputs are written whole
    or not at all, and hold released values only.

    dp-fw and rnm-screen are set up by public rules: radius half the width of the target's bounds, a
    number of steps that suits rows and budget, and for dp-fw a clip of a tenth of that width.

    \b
    Exit codes: 0 done, 1 failed, 2 wrong usage, 3 budget refused.

    \b
    Examples:
      dpscreen fit data.csv --schema schema.json --epsilon 1 --delta 1e-6 --dry-run
      dpscreen fit data.csv --schema schema.json --epsilon 1 --delta 1e-6 \\
          -o model.json --report report.html
      dpscreen fit data.parquet --schema schema.json --epsilon 1 --delta 1e-6 \\
          --inference split --ledger budget.db -o model.json
    """
    asked = FitOptions(**options)
    check_files(asked)
    schema = checked_schema(asked)
    model, order = set_up(asked, schema)
    booking = opened_ledger(asked, schema)
    if asked.dry_run:
        from dpscreen.cli.dry_run import show_plan

        show_plan(asked, schema, model, order, booking)
        check_budget(asked, booking)
        return
    check_budget(asked, booking)
    if asked.rows_public is None:
        click.echo(f"Note: {counted(schema)}", err=True)
    rows = _read(asked, schema)
    _fit(model, rows, booking)
    del rows
    _save(model, asked, schema)
    _show(model, asked)
    _write_page(model, asked, schema, booking)


# --- the private part -----------------------------------------------------------------------------


def _read(asked: FitOptions, schema: TableSchema) -> EncodedRows:
    from dpscreen.tables.reading import read_rows

    with data_failures(), console.progress(console.messages()) as bar:
        task = bar.add_task(f"reading {asked.data.name}", total=100)
        return read_rows(
            asked.data, schema, progress=lambda share: bar.update(task, completed=int(100 * share))
        )


def _fit(model: Any, rows: EncodedRows, booking: Booking | None) -> None:
    """Fit, and let nothing out of a failure but what is known to hold no data."""
    from dpscreen.privacy import BudgetExceeded, LedgerProblem

    failure = None
    with ledger_failures(), warnings.catch_warnings(record=True) as noticed:
        warnings.simplefilter("always")
        try:
            model.fit(rows, ledger=booking)
        except (BudgetExceeded, LedgerProblem):
            raise
        except (ValueError, TypeError) as error:
            failure = console.sentence(error)  # in our own words, which repeat no cell
        except (Exception, KeyboardInterrupt) as error:
            failure = f"The fit failed ({type(error).__name__})."
    _tell(noticed)
    if failure is not None:
        raise click.ClickException(failure + (BOOKED if booking and booking.booked else ""))


def _tell(noticed: list[warnings.WarningMessage]) -> None:
    """Pass on our own warnings, once each; other libraries' may hold values."""
    from dpscreen.privacy.statement import SeededNoiseWarning, WeakDeltaWarning

    ours = (SeededNoiseWarning, WeakDeltaWarning)
    for text in dict.fromkeys(
        str(one.message) for one in noticed if issubclass(one.category, ours)
    ):
        click.echo(f"Warning: {text}", err=True)


# --- what comes out -------------------------------------------------------------------------------


def _save(model: Any, asked: FitOptions, schema: TableSchema) -> None:
    """Write the model file before anything else, as the budget is gone.

    If the disk refuses, the model goes to stdout.
    """
    from dpscreen.models import ModelFileProblem

    assert asked.output is not None
    try:
        model.save(asked.output, schema=schema.to_dict(), force=asked.force)
    except ModelFileProblem as problem:
        click.echo(_as_file(model, schema))
        raise click.ClickException(
            f"{console.sentence(problem)} So that what was paid for is not lost, the model was "
            "printed instead: save that as a file."
        ) from None
    click.echo(f"Model written to {asked.output}", err=True)


def _as_file(model: Any, schema: TableSchema) -> str:
    from dataclasses import replace

    from dpscreen.models.file import encoded

    return encoded(replace(model._released(), schema=schema.to_dict())).decode()


def _show(model: Any, asked: FitOptions) -> None:
    if not asked.as_json:
        click.echo(str(model.summary()))
        return
    from dpscreen.cli.show import as_data

    click.echo(json.dumps(as_data(model), indent=2, ensure_ascii=False))


def _write_page(
    model: Any, asked: FitOptions, schema: TableSchema, booking: Booking | None
) -> None:
    if asked.report is None:
        return
    from dpscreen.planning.what_if import write_model_page

    click.echo("Simulating what could be expected, for the page ...", err=True)
    try:
        ledger = None if booking is None else booking.ledger.document()
        write_model_page(
            model, asked.report, schema=schema, ledger=ledger, n_rows=asked.rows_public
        )
    except Exception as error:  # the model is safe; whatever it was, say so
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise click.ClickException(
            f"The model is in {asked.output}, but the page could not be written: {reason}."
        ) from None
    click.echo(f"Page written to {asked.report}", err=True)
