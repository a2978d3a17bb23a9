"""`dpscreen fit`: from a table to a private model, a summary and a page."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import click

from dpscreen._core.messages import message
from dpscreen.cli import console
from dpscreen.cli._fit_options import (
    ABOUT,
    MODELS,
    MOST_UNREADABLE,
    PreparedFit,
    check_budget,
    prepared,
)
from dpscreen.cli.console import FILE, PATH, say, warn

if TYPE_CHECKING:
    from dpscreen.models.release import Release


def _schedule(_context: click.Context, _option: click.Parameter, value: str | None) -> Any:
    """Return "all", "last" or a whole number."""
    if value is None or value in ("all", "last"):
        return value
    if not value.isdecimal() or int(value) < 1:
        raise click.BadParameter("must be all, last, or k for every k-th step.")
    return int(value)


@click.command()
@click.argument("data", type=console.DATA)
@console.database_options
@click.option("--schema", "schema_file", type=FILE, required=True, help="The filled-in schema.")
@console.FORMULA
@click.option(
    "--epsilon", type=console.EPSILON, required=True, help="Budget: epsilon, all of which is spent."
)
@click.option(
    "--delta",
    type=console.SHARE,
    required=True,
    help="Budget: delta, far below 1 over the number of rows.",
)
@click.option("--model", type=click.Choice(list(MODELS)), metavar="NAME", help=ABOUT)
@click.option(
    "--inference",
    type=click.Choice(["split"]),
    help="Half of the rows select features, the other half gives intervals (sparse models).",
)
@click.option(
    "--max-features",
    type=console.COUNT,
    help="Maximum number of features (sparse models).",
)
@click.option(
    "--offset",
    metavar="FEATURE",
    help="Feature whose coefficient is fixed at 1, as of a logarithm (models of counts).",
)
@console.named_options
@click.option(
    "--rows-public",
    type=console.ROWS,
    help="A public, approximate number of rows. Without it a noisy count is charged.",
)
@click.option(
    "--calibration",
    type=click.Choice(["proven", "published"]),
    help="proven (default), or the paper's constants, whose stated epsilon does not hold.",
)
@click.option("--radius", type=console.POSITIVE, help="L1 radius, in the target's units.")
@click.option("--iterations", "n_iter", type=console.COUNT, help="Number of steps T.")
@click.option("--clip", type=console.POSITIVE, help="Bound on residuals, in the target's units.")
@click.option("--screening-share", type=console.SHARE, help="Share of the budget for screening.")
@click.option(
    "--screening-delta-share",
    type=console.SHARE,
    help="Share of delta for screening, in the published calibration.",
)
@click.option("--screen-at", callback=_schedule, help="Screen at all steps, last, or k: each k-th.")
@click.option("--ledger", type=PATH, help="Charge the cost to this ledger first.")
@click.option(
    "--other-rows",
    is_flag=True,
    help="Allow rows that the ledger has not booked before, as after rows were added.",
)
@click.option("--purpose", help="Purpose of the fit, recorded in the ledger and on the page.")
@click.option("--author", help="Author, for the model file and the page.")
@click.option("--date", help='Date, for the model file and the page; "today" is allowed.')
@click.option("--dry-run", is_flag=True, help="Check everything and show the plan at no cost.")
@console.OUTPUT(help="Write the model to this JSON file.")
@click.option("--report", type=FILE, help="Write a page about the model to this HTML file.")
@console.FORCE(help="Replace existing outputs, and fit rows that do not fit their schema.")
@MOST_UNREADABLE
@click.option(
    "--no-check",
    is_flag=True,
    help="Check neither the rows nor whether the ledger knows them: a run then never ends because "
    "of what a cell holds.",
)
@console.JSON(help="Print the summary, or the plan, as JSON.")
def command(**given: Any) -> None:
    """Fit a private model to a CSV, gzip CSV, Parquet or Excel file, or to a database table.

    The schema declares columns, bounds, levels, target and privacy unit; `dpscreen schema ask`
    makes one with you. Everything that can be checked is checked before a private cell is read,
    and the ledger, if there is one, is charged before any noise is drawn. Outputs are written whole
    or not at all, and hold released values only.

    DATA is a file, or the address of a database with --table or --query: duckdb:clinic.db,
    postgresql://…, or any address of SQLAlchemy whose driver is installed. The table is read once;
    rows beyond a quarter of the memory are kept in a nameless scratch file until the end.

    Cells that are missing or cannot be read count as the schema's fill; without one, a number
    counts as the centre that the fit releases and a category as its first level, which others are
    compared with.

    Before anything is booked the rows are checked, as `dpscreen check` does: where more than 5 %
    (--most-unreadable) of the cells of a column cannot be read, most values are outside the bounds,
    or somebody has more rows than declared, the fit stops and names the column. With --no-check it
    never does, for pipelines whose exit codes others see; whether there are such cells is then not
    disclosed.

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
          --model ols --interest treatment -o table.json
      dpscreen fit data.csv --schema schema.json --epsilon 1 --delta 1e-6 \\
          --formula "cost ~ age + bs(hours, knots=[20, 40])" -o table.json
      dpscreen fit data.csv --schema schema.json --epsilon 1 --delta 1e-6 \\
          --model rnm-screen --screen-at 10 -o model.json
      dpscreen fit duckdb:clinic.db --table visits --schema schema.toml \\
          --epsilon 1 --delta 1e-6 -o model.json
    """
    if given["date"] == "today":
        given["date"] = datetime.date.today().isoformat()
    given["data"] = console.table_of(given["data"], given.pop("table"), given.pop("query"))
    ready = prepared(given)
    if ready.options.dry_run:
        from dpscreen.cli._fit_dry_run import show_plan

        show_plan(ready)
        if ready.options.delta * (ready.options.rows_public or 0) >= 1:  # as a fit would
            warn(message("fit.weak-delta"))
        check_budget(ready)
        return
    check_budget(ready)
    from dpscreen.cli.show import as_data
    from dpscreen.models.summary import summary_of
    from dpscreen.planning.fitting import fit_rows
    from dpscreen.planning.plan import USELESS

    regime = ready.request.regime
    if regime is not None and regime.signal < USELESS:
        warn(
            f"with {regime.n_rows} rows, as --rows-public says, no useful model can be "
            "expected at this budget. The number is used as given and never compared with the "
            "table, which would disclose it; if it is wrong, press Ctrl-C and correct it or leave "
            "it out."
        )
    for text in fit_rows(ready.model, _read(ready), ready.booking):
        warn(text)
    _save(ready)
    release = _described(ready)
    if ready.options.as_json:
        console.show_json(as_data(release))
    else:
        click.echo(str(summary_of(release)))
    if ready.options.report is not None:
        _write_page(ready)


# --- the private part -----------------------------------------------------------------------------


def _read(ready: PreparedFit) -> Any:
    """Read and check the rows; what exceeds a quarter of the memory goes to a scratch file."""
    from dpscreen.planning.fitting import checked_rows
    from dpscreen.tables.scan import Bar

    options = ready.options
    most = None if options.force or options.no_check else options.most_unreadable
    watch = Bar() if console.messages().is_terminal else None
    with console.share_bar(f"reading {options.data.name}") as progress:
        return checked_rows(
            options.data, ready.schema, "--force", most, progress=progress, watch=watch
        )


# --- what comes out -------------------------------------------------------------------------------


def _described(ready: PreparedFit) -> Release:
    """Return the release with what is said of its data and of itself."""
    found: Release = ready.model.described(schema=ready.schema.to_dict(), about=ready.about)
    return found


def _save(ready: PreparedFit) -> None:
    """Write the model file before anything else, as the budget is gone.

    If the disk refuses, the model goes to stdout.
    """
    from dpscreen.models import ModelFileProblem
    from dpscreen.models.file import encoded

    options, schema = ready.options, ready.schema.to_dict()
    try:
        ready.model.save(options.output, schema=schema, about=ready.about, force=options.force)
    except ModelFileProblem as problem:
        click.echo(encoded(_described(ready)).decode())
        raise click.ClickException(
            f"{console.sentence(problem)} So that what was released is not lost, the model was "
            "printed instead: save that as a file."
        ) from None
    spent = f"The budget of the fit is spent, and the model is in {options.output}."
    click.get_current_context().meta["dpscreen.spent"] = spent  # in case somebody stops the rest
    say(f"Model written to {options.output}")


def _write_page(ready: PreparedFit) -> None:
    from dpscreen.planning.model_page import write_model_page

    options = ready.options

    public: Any = {"schema": ready.schema, "n_rows": options.rows_public, "about": ready.about}
    try:
        public["ledger"] = None if ready.booking is None else ready.booking.ledger.document()
        with console.share_bar("simulating what could be expected, for the page") as progress:
            write_model_page(ready.model, options.report, progress=progress, **public)
    except Exception as error:  # the model is safe; whatever it was, say so
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise click.ClickException(
            f"The model is in {options.output}, but the page could not be written: {reason}."
        ) from None
    say(f"Page written to {options.report}")
