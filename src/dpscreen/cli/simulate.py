"""`dpscreen simulate`: dummy data of a schema's shape."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpscreen.cli.console import (
    HELP,
    NumberWithin,
    WholeWithin,
    check_output,
    checked_schema,
    write_failures,
)

if TYPE_CHECKING:
    from dpscreen.tables.dummy import Dummy
    from dpscreen.tables.schema import TableSchema


@click.command(context_settings=HELP)
@click.option(
    "--schema",
    "schema_path",
    type=click.Path(path_type=Path),
    required=True,
    help="A schema that is filled in.",
)
@click.option("--rows", type=WholeWithin(1, 10_000_000), default=1000, show_default=True)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="A .csv or .parquet file.  [default: CSV to stdout]",
)
@click.option("--seed", type=WholeWithin(min=0), help="Draw the same rows each time.")
@click.option(
    "--missing",
    type=NumberWithin(0, 1),
    default=0.0,
    show_default=True,
    help="The share of cells that are empty.",
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def command(
    schema_path: Path,
    rows: int,
    output: Path | None,
    seed: int | None,
    missing: float,
    force: bool,
) -> None:
    """Draw dummy data that a schema describes, to try things out without private rows.

    Values lie within the declared bounds and levels, and a few features have a true linear effect.
    Nothing is read but the schema.

    \b
    Examples:
      dpscreen simulate --schema schema.toml --rows 1000 -o dummy.csv
      dpscreen simulate --schema schema.toml --missing 0.01 -o dummy.parquet
    """
    import numpy as np

    from dpscreen.tables.dummy import effects_of, simulate_parts

    if output is not None and output.suffix not in (".csv", ".parquet"):
        raise click.BadParameter("must end in .csv or .parquet.", param_hint="--output")
    check_output(output, force=force)
    schema = checked_schema(schema_path)
    parts = simulate_parts(schema, rows, rng=np.random.default_rng(seed), missing=missing)
    if output is None:
        _print(parts, schema)
    else:
        _write(output, parts, schema)
        click.echo(f"{rows} rows of dummy data written to {output}.", err=True)
    click.echo(f"Features with a true effect: {', '.join(effects_of(schema))}.", err=True)


def _print(parts: Iterator[Dummy], schema: TableSchema) -> None:
    from dpscreen.tables.dummy import csv_parts

    for data in csv_parts(parts, schema):
        click.echo(data, nl=False)


def _write(output: Path, parts: Iterator[Dummy], schema: TableSchema) -> None:
    """Write whole or not at all, and meanwhile where nobody else can have put anything."""
    beside = tempfile.TemporaryDirectory
    with write_failures(output), beside(prefix=".dummy-", dir=output.absolute().parent) as own:
        _fill(Path(own) / output.name, parts, schema)
        (Path(own) / output.name).replace(output)


def _fill(path: Path, parts: Iterator[Dummy], schema: TableSchema) -> None:
    from dpscreen.tables.dummy import csv_parts, write_parquet

    if path.suffix == ".parquet":
        write_parquet(parts, path)
        return
    with path.open("wb") as file:
        file.writelines(csv_parts(parts, schema))
