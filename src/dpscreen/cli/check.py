"""`dpscreen check`: what of a table does not fit its schema, for the curator alone."""

from __future__ import annotations

from pathlib import Path

import click

from dpscreen.cli import console


@click.command()
@click.argument("data", type=console.FILE)
@click.option("--schema", "schema_file", type=console.FILE, required=True, help="The schema.")
@click.option("--examples", is_flag=True, help="List the first rows with each fault, by number.")
def command(data: Path, schema_file: Path, examples: bool) -> None:
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
    """
    from dpscreen.tables.check import check_rows

    schema = console.checked_schema(schema_file)
    with console.share_bar(f"checking {data.name}") as progress:
        report = check_rows(data, schema, progress=progress)
    click.echo(report.text(examples=examples))
    if report.stops:
        raise click.exceptions.Exit(1)
