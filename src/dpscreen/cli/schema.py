"""`dpscreen schema`: declare what a table may hold, before anything private is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpscreen._core.words import how_many
from dpscreen.cli.console import HELP, check_output, sentence, write_failures

if TYPE_CHECKING:
    from dpscreen.tables.schema import TableSchema

WHY = (
    "Only the column names were read. Fill in types, bounds and levels from what you know about "
    "the subject (an age lies between 0 and 120), never by looking at the data: a minimum taken "
    "from the rows tells one person's value, and no privacy budget covers it. Then run: "
)


@click.group(context_settings=HELP)
def command() -> None:
    """Declare what a table may hold: types, bounds, levels, target and privacy unit.

    \b
    Examples:
      dpscreen schema new data.csv -o schema.json --target cost
      dpscreen schema check schema.json --data data.csv
    """


@command.command(context_settings=HELP)
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Where to write it.  [default: stdout]"
)
@click.option("--target", help="The column to be predicted.")
@click.option("--unit", help="The column that tells whose row it is, such as a person's number.")
@click.option("--numeric-names", is_flag=True, help="Numbers in the first line are names.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def new(
    data: Path,
    output: Path | None,
    target: str | None,
    unit: str | None,
    numeric_names: bool,
    force: bool,
) -> None:
    """Make a schema to fill in from the names of the columns. No row is looked at.

    DATA is a CSV file, plain or gzip, or a Parquet file. Types, bounds and levels stay empty.

    \b
    Examples:
      dpscreen schema new data.csv -o schema.json
      dpscreen schema new visits.parquet -o s.json --target cost --unit patient
    """
    from dpscreen._core.files import write_text
    from dpscreen.tables.declaration import DataError
    from dpscreen.tables.schema import new_schema

    check_output(output, force=force)
    try:
        made = new_schema(data, target=target, unit=unit, numeric_names=numeric_names)
    except DataError as problem:
        hint = " If they are names, add --numeric-names." if "no header" in str(problem) else ""
        raise click.ClickException(f"{sentence(problem)}{hint}") from None
    text = json.dumps(made, indent=2, ensure_ascii=False) + "\n"
    if output is None:
        click.echo(text, nl=False)
    else:
        with write_failures(output):
            write_text(output, text)
        click.echo(f"Written to {output}: {how_many(len(made['fields']), 'column')}.", err=True)
    click.echo(f"{WHY}dpscreen schema check {output or 'schema.json'}", err=True)


@command.command(context_settings=HELP)
@click.argument("schema", type=click.Path(path_type=Path))
@click.option(
    "--data", type=click.Path(path_type=Path), help="Compare the column names of this table too."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(schema: Path, data: Path | None, as_json: bool) -> None:
    """Tell every problem of a schema, and how to mend it. Exit code 1 if there is one.

    With --data, the names in the table's first line are compared; no row is looked at.

    \b
    Examples:
      dpscreen schema check schema.json
      dpscreen schema check schema.json --data data.csv --json
    """
    found, problems = _problems(schema, data)
    if as_json:
        click.echo(json.dumps(_as_json(found, problems), indent=2, ensure_ascii=False))
    else:
        for problem in problems:
            click.echo(f"- {problem}")
        if found is not None and not problems:
            click.echo(_in_words(found))
    if problems:
        used = f"{schema} cannot be used yet" if data is None else f"{schema} and {data} do not fit"
        click.echo(f"{used}: {how_many(len(problems), 'problem')}.", err=True)
        raise click.exceptions.Exit(1)


def _problems(path: Path, data: Path | None) -> tuple[TableSchema | None, list[str]]:
    from dpscreen.tables.csv import matched_header
    from dpscreen.tables.declaration import DataError
    from dpscreen.tables.schema import SchemaProblem, load_schema

    try:
        schema = load_schema(path)
    except SchemaProblem as problem:
        return None, list(problem.problems)
    problems = schema.problems()
    if data is not None:
        try:
            matched_header(data, schema)
        except DataError as problem:
            problems.append(str(problem))
    return schema, problems


def _as_json(schema: TableSchema | None, problems: list[str]) -> dict[str, Any]:
    told: dict[str, Any] = {"usable": not problems, "problems": problems}
    if schema is None or problems:
        return told
    return told | {
        "target": schema.target,
        "target_bounds": list(schema.target_bounds),
        "features": list(schema.feature_names),
        "feature_bounds": schema.feature_bounds.tolist(),
        "unit": schema.unit,
        "rows_per_unit": schema.rows_per_unit,
    }


def _in_words(schema: TableSchema) -> str:
    low, high = schema.field(schema.target).declared_bounds
    unit = "one row" if schema.unit is None else f"one value of {schema.unit!r}"
    most = "" if schema.unit is None else f", at most {schema.rows_per_unit} rows of each"
    columns = how_many(len(schema.columns), "column")
    features = how_many(len(schema.feature_names), "feature")
    return (
        f"The schema can be used: {columns} and {features}; the target {schema.target!r} lies in "
        f"[{low:g}, {high:g}]; the privacy unit is {unit}{most}."
    )
