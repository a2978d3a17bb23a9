"""`dpscreen simulate`: dummy data of a schema's shape."""

from __future__ import annotations

import os
from pathlib import Path

import click

from dpscreen.cli import console
from dpscreen.cli.schema import check_output


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--schema",
    "schema_path",
    type=click.Path(path_type=Path),
    required=True,
    help="A schema that is filled in.",
)
@click.option("--rows", type=click.IntRange(1, 10_000_000), default=1000, show_default=True)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="A .csv or .parquet file.  [default: CSV to stdout]",
)
@click.option("--seed", type=click.IntRange(min=0), help="Draw the same rows each time.")
@click.option(
    "--missing",
    type=click.FloatRange(0, 1),
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
      dpscreen simulate --schema schema.json --rows 1000 -o dummy.csv
      dpscreen simulate --schema schema.json --rows 100000 --missing 0.01 -o dummy.parquet
    """
    if output is not None and output.suffix not in (".csv", ".parquet"):
        raise click.BadParameter("must end in .csv or .parquet.", param_hint="--output")
    check_output(output, force=force)
    data, effects = _simulated(schema_path, rows, seed, missing, output)
    if output is None:
        click.echo(data, nl=False)
    else:
        _write(output, data)
        click.echo(f"{rows} rows of dummy data written to {output}.", err=True)
    click.echo(f"Features with a true effect: {', '.join(effects)}.", err=True)


def _simulated(
    path: Path, rows: int, seed: int | None, missing: float, output: Path | None
) -> tuple[bytes, tuple[str, ...]]:
    import numpy as np

    from dpscreen.data.dummy import as_csv, as_parquet, simulate_table
    from dpscreen.data.schema import SchemaProblem, load_schema

    try:
        schema = load_schema(path)
        dummy = simulate_table(schema, rows, rng=np.random.default_rng(seed), missing=missing)
    except SchemaProblem as problem:
        raise click.ClickException(console.sentence(problem)) from None
    parquet = output is not None and output.suffix == ".parquet"
    return (as_parquet(dummy) if parquet else as_csv(dummy, schema)), dummy.effects


def _write(output: Path, data: bytes) -> None:
    """Write whole or not at all."""
    beside = output.with_name(f".{output.name}.{os.getpid()}.tmp")
    try:
        beside.write_bytes(data)
        beside.replace(output)
    except OSError as error:
        raise click.ClickException(f"Cannot write {output}: {error.strerror}.") from None
    finally:
        beside.unlink(missing_ok=True)
