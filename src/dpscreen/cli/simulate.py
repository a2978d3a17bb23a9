"""`dpscreen simulate`: dummy data of a schema's shape."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from dpscreen.cli import console


@click.command()
@click.option(
    "--schema", "schema_path", type=console.PATH, required=True, help="A complete schema."
)
@click.option("--rows", type=click.IntRange(1, 10_000_000), default=1000)
@console.OUTPUT(type=console.PATH, help="A .csv or .parquet file.  [default: CSV to stdout]")
@click.option("--seed", type=click.IntRange(min=0), help="Seed, for the same rows each time.")
@click.option(
    "--missing",
    type=console.Number(0, 1),
    default=0.0,
    help="Share of empty cells.",
)
@console.FORCE(help="Replace an existing file.")
def command(
    schema_path: Path, rows: int, output: Path | None, seed: int | None, missing: float, force: bool
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

    from dpscreen.tables.dummy import csv_parts, effects_of, simulate_parts, write_parquet

    if output is not None and output.suffix not in (".csv", ".parquet"):
        raise click.BadParameter("must end in .csv or .parquet.", param_hint="--output")
    console.check_output(output, force=force)
    schema = console.checked_schema(schema_path)
    parts = simulate_parts(schema, rows, rng=np.random.default_rng(seed), missing=missing)
    if output is None:
        for data in csv_parts(parts, schema):
            click.echo(data, nl=False)
    else:  # whole or not at all, and meanwhile in a folder that nobody else can write to
        folder = tempfile.TemporaryDirectory
        with (
            console.write_failures(output),
            folder(prefix=".dummy-", dir=output.absolute().parent) as own,
        ):
            path = Path(own) / output.name
            if path.suffix == ".parquet":
                write_parquet(parts, path)
            else:
                with path.open("wb") as file:
                    file.writelines(csv_parts(parts, schema))
            path.replace(output)
        console.say(f"{rows} rows of dummy data written to {output}.")
    console.say(f"Features with a true effect: {', '.join(effects_of(schema))}.")
