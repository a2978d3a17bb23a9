"""`dpscreen check`: what of a table does not fit its schema, for the curator alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dpscreen.cli import console
from dpscreen.cli._fit_options import MOST_UNREADABLE


@click.command()
@click.argument("data", type=console.DATA)
@console.database_options
@click.option("--schema", "schema_file", type=console.FILE, required=True, help="The schema.")
@click.option("--examples", is_flag=True, help="List the first rows with each fault, by number.")
@MOST_UNREADABLE
def command(
    data: Any,
    table: str | None,
    query: str | None,
    schema_file: Path,
    examples: bool,
    most_unreadable: float,
) -> None:
    """Count the cells of a table that do not fit its schema. NOT PRIVATE: for the curator alone.

    Cells that cannot be read, undeclared levels, missing cells, units with more rows than declared
    and constant columns are counted exactly. Of values outside the bounds only a coarse share is
    reported: bounds are public, and must not be chosen by the rows. The report goes to the
    terminal, and nothing of it into a model, page or ledger. It spends no budget because nothing of
    it may be released.

    \b
    Exit codes: 0 a fit would start, 1 it would stop, 2 wrong usage.

    \b
    Examples:
      dpscreen check data.csv --schema schema.toml
      dpscreen check data.csv --schema schema.toml --examples
      dpscreen check duckdb:clinic.db --table visits --schema schema.toml
    """
    from dpscreen.tables.check import check_rows

    schema, rows = console.checked_schema(schema_file), console.table_of(data, table, query)
    with console.share_bar(f"checking {rows.name}") as progress:
        report = check_rows(rows, schema, most_unreadable=most_unreadable, progress=progress)
    click.echo(report.text(examples=examples))
    if report.stops:
        raise click.exceptions.Exit(1)
