"""`dpscreen schema`: declare what a table may hold, before anything private is read."""

from __future__ import annotations

import json
import shlex
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpscreen._core.words import WIDTH, how_many
from dpscreen.cli.console import HELP, check_output, data_failures, usable, write_failures

if TYPE_CHECKING:
    from dpscreen.tables.asking import Interview
    from dpscreen.tables.declaration import Dialect
    from dpscreen.tables.schema import TableSchema
    from dpscreen.tables.toml import Document


WHY = """\
Only the column names were read. Fill in types, bounds and levels from what you
know about the subject (an age lies between 0 and 120), never by looking at the
data: a minimum taken from the rows tells one person's value, and no privacy
budget covers it. Then run:
"""


def how_written(command: Any) -> Any:
    """Add the options that say how a table is written, to whom no schema says it."""
    for option in (
        click.option("--sheet", help="Of an Excel file: its name or number.  [default: the first]"),
        click.option("--encoding", help="Of a file of text that is not in UTF-8, as cp1252."),
        click.option("--numeric-names", is_flag=True, help="Numbers in the first line are names."),
    ):
        command = option(command)
    return command


@click.group(context_settings=HELP)
def command() -> None:
    """Declare what a table may hold: types, bounds, levels, target and privacy unit.

    \b
    Examples:
      dpscreen schema new data.csv -o schema.toml --target cost
      dpscreen schema check schema.toml --data data.csv
    """


@command.command(context_settings=HELP)
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Where to write it.  [default: stdout]"
)
@click.option("--target", help="The column to be predicted.")
@click.option("--unit", help="The column that tells whose row it is, such as a person's number.")
@how_written
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def new(data: Path, output: Path | None, force: bool, **given: Any) -> None:
    """Make a schema to fill in from the names of the columns. No row is looked at.

    DATA is a CSV file, plain or gzip, a Parquet or an Excel file. A schema in TOML (-o schema.toml)
    has a line for each column, with bounds where its name leaves no doubt (an age, a percentage)
    and a comment. One in JSON leaves types, bounds and levels empty.

    \b
    Examples:
      dpscreen schema new data.csv -o schema.toml --target cost
      dpscreen schema new visits.parquet -o s.json --target cost --unit patient
    """
    from dpscreen._core.files import write_text

    check_output(output, force=force)
    text = _new(data, output, **with_dialect(given))
    if output is None:
        click.echo(text, nl=False)
    else:
        with write_failures(output):
            write_text(output, text)
        click.echo(f"Written to {output}.", err=True)
    made = shlex.quote(str(output or "schema.json"))
    click.echo(f"{WHY}dpscreen schema check {made}", err=True)


def with_dialect(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options with how the table is written in one."""
    from dpscreen.tables.declaration import ENCODINGS, UTF8, Dialect, is_encoding

    encoding, sheet = given.pop("encoding") or UTF8, given.pop("sheet")
    if not is_encoding(encoding):
        raise click.BadParameter(f"must be {ENCODINGS}.", param_hint="--encoding")
    number = int(sheet) if sheet is not None and sheet.isdecimal() else sheet
    return given | {"dialect": Dialect(encoding=encoding, sheet=number)}


def _new(data: Path, output: Path | None, **given: Any) -> str:
    """Return the file to be written, in the format that its name asks for."""
    from dpscreen.tables.schema import is_toml, new_schema, new_toml_schema, schema_text

    with data_failures():
        if output is not None and is_toml(output):
            return new_toml_schema(data, **given)
        return schema_text(new_schema(data, **given))


@command.command(context_settings=HELP)
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("schema.toml"),
    show_default=True,
    help="The schema; taken up again if it is there.",
)
@click.option("--target", help="The column to be predicted.")
@click.option("--unit", help="The column that tells whose row it is.")
@click.option("--quick", is_flag=True, help="Ask only where a name leaves a doubt.")
@click.option("--again", is_flag=True, help="Ask everything again, with what was answered.")
@how_written
def ask(data: Path, output: Path, **given: Any) -> None:
    """Ask what each column may hold, and write the schema. No row is looked at.

    Enter takes the proposal in brackets, which comes from the column's name. Everything is kept
    after each answer: "quit", or Ctrl-C, and the same command goes on later.

    \b
    Examples:
      dpscreen schema ask data.csv
      dpscreen schema ask data.csv --target cost --quick -o schema.toml
    """

    ask_for_schema(data, output, **with_dialect(given))


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
            click.echo(usable(found))
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


# --- the questions --------------------------------------------------------------------------------

WELCOME = (
    "Only the names of the columns are read. Answer from what you know about the\n"
    "subject, not from the rows: a minimum in the data is one person's value, and no\n"
    "privacy budget covers it. Enter takes what stands in brackets; ? tells more."
)
QUIT = ("quit", "q", "exit")


def ask_for_schema(
    data: Path,
    output: Path,
    *,
    target: str | None,
    unit: str | None,
    quick: bool,
    again: bool,
    **written: Any,
) -> None:
    """Ask until all is answered, or until somebody has had enough."""
    from dpscreen.tables.asking import Interview

    if output.suffix.lower() != ".toml":
        raise click.BadParameter("must end in .toml.", param_hint="--output")
    if not output.absolute().parent.is_dir():
        raise click.ClickException(f"There is no directory {output.parent}.")
    with data_failures():
        document = _document(data, output, target, unit, **written)
    if quick:
        _take_what_is_sure(document)
    interview = Interview(document, again=again)
    _keep(interview, data, output)
    if not interview.finished:
        click.echo(WELCOME)
    _ask(interview, data, output)
    _tell(document, data, output)


def _document(
    data: Path,
    output: Path,
    target: str | None,
    unit: str | None,
    *,
    numeric_names: bool,
    dialect: Dialect,
) -> Document:
    """Return the schema so far: a new one, or one that was begun for the same columns."""
    from dpscreen.tables.asking import new_interview
    from dpscreen.tables.schema import how_written, load_toml, public_header, toml_schema
    from dpscreen.tables.toml import column_names

    document = load_toml(output) if output.exists() else None
    if document is not None:
        dialect = toml_schema(document).dialect
    header = public_header(data, target, unit, numeric_names=numeric_names, dialect=dialect)
    if document is None:
        written = how_written(header, dialect)
        return new_interview(header.names, target=target, unit=unit, **written)
    if {*column_names(document)} != {*header.names}:
        raise click.ClickException(
            f"{output} is the schema of a table with other columns; give another name with -o."
        )
    named = {"target": target, "unit": unit}
    return document | {key: name for key, name in named.items() if name is not None}


def _take_what_is_sure(document: Document) -> None:
    from dpscreen.tables.asking import open_columns
    from dpscreen.tables.proposals import propose
    from dpscreen.tables.toml import settings_proposed

    for found in map(propose, open_columns(document)):
        if found.sure and found.is_feature and found.is_complete:
            document["columns"][found.name] = settings_proposed(found)
        elif found.sure and not found.is_feature and found.name != document.get("target"):
            document["ignore"].append(found.name)
            document["columns"].pop(found.name)


def _ask(interview: Interview, data: Path, output: Path) -> None:
    from dpscreen.tables.asking import ANSWERS

    told: set[str] = set()
    while not interview.finished:
        question = interview.question
        click.echo(f"\n({interview.left} left) {click.style(question.title, bold=True)}")
        why = question.why
        if why in told:  # so in short
            why = f"{why.split('. ')[0].rstrip('.')}."
        told.add(question.why)
        click.echo(textwrap.fill(why, WIDTH, initial_indent="  ", subsequent_indent="  "))
        given = _typed(f"  [{question.default}] > " if question.default else "  > ")
        if given is None or given.casefold() in QUIT:
            return
        if given == "?":
            click.echo(ANSWERS, nl=False)
        elif wrong := interview.answer(given):
            click.echo(wrong[:1].upper() + wrong[1:])
        else:
            _keep(interview, data, output)


def _typed(prompt: str) -> str | None:
    """Return what is typed; None at the end of the input, or when somebody presses Ctrl-C."""
    try:
        return input(prompt).strip()
    except (EOFError, KeyboardInterrupt):
        click.echo()
        return None


def _keep(interview: Interview, data: Path, output: Path) -> None:
    """Write the schema as it stands, whole or not at all."""
    from dpscreen._core.files import write_text
    from dpscreen.tables.toml import toml_text

    with write_failures(output):
        write_text(output, toml_text(interview.document, table=data.name))


def _tell(document: Document, data: Path, output: Path) -> None:
    """Say what there is now, and what to type next."""
    from dpscreen.tables.asking import open_columns, told_left
    from dpscreen.tables.schema import toml_schema

    named, written = shlex.quote(str(data)), shlex.quote(str(output))
    click.echo(f"\nWritten to {output}.")
    if not document.get("target") or open_columns(document):
        missing = told_left(document) if open_columns(document) else "The target is not named yet."
        click.echo(f"{missing}\nTo go on: dpscreen schema ask {named} -o {written}")
        return
    schema = toml_schema(document)
    problems = schema.problems()
    for problem in problems:
        click.echo(f"- {problem}")
    if problems:
        told = how_many(len(problems), "problem")
        raise click.ClickException(f"{output} cannot be used yet: {told}.")
    click.echo(usable(schema))
    click.echo(
        f"Next: dpscreen fit {named} --schema {written} --epsilon 1 --delta 1e-6 -o model.json"
    )
