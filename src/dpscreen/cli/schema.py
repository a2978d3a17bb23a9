"""`dpscreen schema`: declare what a table may hold, before anything private is read."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from dpscreen._core.files import write_text
from dpscreen._core.messages import message
from dpscreen._core.words import WIDTH, how_many
from dpscreen.cli import console
from dpscreen.cli.console import PATH, say, usable
from dpscreen.tables import asking, schema, toml
from dpscreen.tables.csv import matched_header
from dpscreen.tables.declaration import UTF8, DataError, Dialect, is_encoding
from dpscreen.tables.proposals import propose

WHY = """\
Only the column names were read. Fill in types, bounds and levels from what you
know about the subject (an age lies between 0 and 120), never by looking at the
data: a minimum taken from the rows is one person's value, and no privacy
budget covers it. Then run:
"""


TARGET = click.option("--target", help="The column to predict.")
UNIT = click.option(
    "--unit", help="The column that identifies the person, such as a patient number."
)
SHEET = click.option(
    "--sheet", help="Sheet of an Excel file: name or number.  [default: the first]"
)
ENCODING = click.option(
    "--encoding", help="Encoding of a text file, such as cp1252.  [default: UTF-8]"
)


def file_format(command: Any) -> Any:
    """Add the options that describe the file where no schema does."""
    numeric = click.option("--numeric-names", is_flag=True, help="Column names may be numbers.")
    return numeric(ENCODING(SHEET(command)))


@click.group()
def command() -> None:
    """Declare what a table may hold: types, bounds, levels, target and privacy unit.

    \b
    Examples:
      dpscreen schema new data.csv -o schema.toml --target cost
      dpscreen schema check schema.toml --data data.csv
    """


@command.command()
@click.argument("data", type=PATH)
@console.OUTPUT(type=PATH, help="Where to write it.  [default: stdout]")
@TARGET
@UNIT
@file_format
@console.FORCE(help="Replace an existing file.")
def new(data: Path, output: Path | None, force: bool, **given: Any) -> None:
    """Make a schema to fill in from the column names. No row is read.

    DATA is a CSV file, plain or gzip, a Parquet or an Excel file. A schema in TOML (-o schema.toml)
    has a line for each column, with bounds where its name leaves no doubt (an age, a percentage)
    and a comment. One in JSON has the same without the comments.

    \b
    Examples:
      dpscreen schema new data.csv -o schema.toml --target cost
      dpscreen schema new visits.parquet -o s.json --target cost --unit patient
    """
    console.check_output(output, force=force)
    as_json = output is None or not schema.is_toml(output)
    text = schema.new_schema(data, as_json=as_json, **with_dialect(given))
    if output is None:
        click.echo(text, nl=False)
    else:
        with console.write_failures(output):
            write_text(output, text)
        say(f"Written to {output}.")
    say(f"{WHY}dpscreen schema check {shlex.quote(str(output or 'schema.json'))}")


def with_dialect(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options with how the table is written in one."""
    encoding, sheet = given.pop("encoding") or UTF8, given.pop("sheet")
    if not is_encoding(encoding):
        raise click.BadParameter(f"must {message('must.encoding')}.", param_hint="--encoding")
    number = int(sheet) if sheet is not None and sheet.isdecimal() else sheet
    return given | {"dialect": Dialect(encoding=encoding, sheet=number)}


@command.command("import")
@click.argument("codebook", type=PATH)
@console.OUTPUT(type=PATH, help="Where to write it, as TOML.  [default: stdout]")
@TARGET
@UNIT
@click.option("--labels", is_flag=True, help="The table holds labels (female), not codes (2).")
@SHEET
@ENCODING
@console.FORCE(help="Replace an existing file.")
def import_codebook(
    codebook: Path,
    output: Path | None,
    target: str | None,
    unit: str | None,
    labels: bool,
    force: bool,
    **given: Any,
) -> None:
    """Make a schema from a code book, the documentation of a table.

    CODEBOOK is a data dictionary in CSV or Excel (a line for each variable, or for each of its
    codes; also those of REDCap), CSVW or a Table Schema in JSON, a file of SPSS, Stata or SAS
    (pyreadstat), or Parquet or Arrow. Of files that hold rows, only the metadata is read.

    Levels, formats and missing codes are proposed as they are declared, and bounds where the code
    book itself declares them. A dictionary that lists means or counts was made from rows, so its
    least and greatest values are not used. Go over the result before you fit: a code book that was
    written by looking at the rows reveals something of them.

    \b
    Examples:
      dpscreen schema import dictionary.csv -o schema.toml --target cost
      dpscreen schema import survey.sav -o schema.toml --target income --labels
    """
    from dpscreen.tables.codebooks import codebook_toml, read_codebook

    console.check_output(output, force=force)
    if output is not None and not schema.is_toml(output):
        raise click.BadParameter("must end in .toml.", param_hint="--output")
    book = read_codebook(codebook, **with_dialect(given))
    text = codebook_toml(book, target=target, unit=unit, labels=labels, table=codebook.name)
    for note in book.notes:
        say(f"Note: {note}")
    if output is None:
        click.echo(text, nl=False)
        return
    with console.write_failures(output):
        write_text(output, text)
    still_open = len(asking.open_columns(schema.load_toml(output)))
    say(f"Written to {output}: {how_many(len(book.columns), 'column')}, {still_open} to declare.")
    say(f"Next: dpscreen schema check {shlex.quote(str(output))} --data data.csv")


@command.command()
@click.argument("data", type=PATH)
@console.OUTPUT(
    type=PATH, default=Path("schema.toml"), help="The schema file; an existing one is continued."
)
@TARGET
@UNIT
@click.option("--quick", is_flag=True, help="Ask only about columns whose names are ambiguous.")
@click.option("--again", is_flag=True, help="Ask every question again, proposing earlier answers.")
@file_format
def ask(
    data: Path,
    output: Path,
    target: str | None,
    unit: str | None,
    quick: bool,
    again: bool,
    **given: Any,
) -> None:
    """Ask what each column may hold, and write the schema. No row is read.

    Enter accepts the proposal in brackets, which comes from the column's name. Every answer is
    saved at once: after "quit" or Ctrl-C, the same command continues where you stopped.

    \b
    Examples:
      dpscreen schema ask data.csv
      dpscreen schema ask data.csv --target cost --quick -o schema.toml
    """
    if output.suffix.lower() != ".toml":
        raise click.BadParameter("must end in .toml.", param_hint="--output")
    if not output.absolute().parent.is_dir():
        raise click.ClickException(f"There is no directory {output.parent}.")
    document = _document(data, output, {"target": target, "unit": unit}, **with_dialect(given))
    for found in map(propose, asking.open_columns(document) if quick else ()):
        if found.sure and found.settings:
            document["columns"][found.name] = dict(found.settings)
        elif found.sure and not found.is_feature and found.name != document.get("target"):
            document["ignore"].append(found.name)
            document["columns"].pop(found.name)
    interview = asking.Interview(document, again=again)
    _keep(interview, data, output)
    if not interview.finished:
        click.echo(WELCOME)
    _ask(interview, data, output)
    _show_rest(document, data, output)


@command.command()
@click.argument("path", metavar="SCHEMA", type=PATH)
@click.option("--data", type=PATH, help="Also compare the column names of this table.")
@console.JSON(help="Print JSON.")
def check(path: Path, data: Path | None, as_json: bool) -> None:
    """List every problem of a schema, and how to fix it. Exit code 1 if there is one.

    With --data, the column names of the table are compared; no row is read.

    \b
    Examples:
      dpscreen schema check schema.json
      dpscreen schema check schema.json --data data.csv --json
    """
    found, problems = None, list[str]()
    try:
        found = schema.load_schema(path)
        problems += found.problems()
        if data is not None:
            matched_header(data, found)
    except schema.SchemaProblem as problem:
        problems += problem.problems
    except DataError as problem:
        if found is None:
            raise
        problems.append(str(problem))
    content: dict[str, Any] = {"usable": not problems, "problems": problems}
    if found is not None and not problems:
        content |= {
            "target": found.target,
            "target_bounds": list(found.target_bounds),
            "features": list(found.feature_names),
            "feature_bounds": found.feature_bounds.tolist(),
            "unit": found.unit,
            "rows_per_unit": found.rows_per_unit,
        }
    if as_json:
        console.show_json(content)
    else:
        _show_problems(found, problems)
    if problems:
        used = f"{path} cannot be used yet" if data is None else f"{path} and {data} do not fit"
        say(f"{used}: {how_many(len(problems), 'problem')}.")
        raise click.exceptions.Exit(1)


def _show_problems(found: schema.TableSchema | None, problems: Sequence[str]) -> None:
    for problem in problems:
        click.echo(f"- {problem}")
    if found is not None and not problems:
        click.echo(usable(found))


# --- the questions --------------------------------------------------------------------------------

WELCOME = (
    "Only the names of the columns are read. Answer from what you know about the\n"
    "subject, not from the rows: a minimum in the data is one person's value, and no\n"
    "privacy budget covers it. Enter accepts the value in brackets; ? shows help."
)
QUIT = ("quit", "q", "exit")


def _document(
    data: Path, output: Path, named: dict[str, str | None], *, numeric_names: bool, dialect: Dialect
) -> toml.Document:
    """Return the schema so far: a new one, or one that was begun for the same columns."""
    document = schema.load_toml(output) if output.exists() else None
    if document is not None:
        dialect = schema.toml_schema(document).dialect
    written: Any = {"numeric_names": numeric_names, "dialect": dialect}
    header = schema.public_header(data, named["target"], named["unit"], **written)
    if document is None:
        written = schema.how_written(header, dialect)
        return toml.new_document(header.names, proposed=False, **named, **written)
    if {*toml.column_names(document)} != {*header.names}:
        raise click.ClickException(
            f"{output} is the schema of a table with other columns; give another name with -o."
        )
    return document | {key: name for key, name in named.items() if name is not None}


def _ask(interview: asking.Interview, data: Path, output: Path) -> None:
    """Ask until all is answered, or until somebody has had enough."""
    explained: set[str] = set()
    while not interview.finished:
        question = interview.question
        click.echo(f"\n({interview.left} left) {click.style(question.title, bold=True)}")
        hint = "" if question.hint in explained else question.hint
        explained.add(question.hint)
        why = f"{question.why} {hint}".rstrip()
        click.echo(textwrap.fill(why, WIDTH, initial_indent="  ", subsequent_indent="  "))
        try:
            given = input(f"  [{question.default}] > " if question.default else "  > ").strip()
        except (EOFError, KeyboardInterrupt):
            click.echo()
            return
        if given.casefold() in QUIT:
            return
        if given == "?":
            click.echo(asking.ANSWERS, nl=False)
        elif wrong := interview.answer(given):
            click.echo(console.sentence(wrong))
        else:
            _keep(interview, data, output)


def _keep(interview: asking.Interview, data: Path, output: Path) -> None:
    """Write the schema as it stands, whole or not at all."""
    with console.write_failures(output):
        before = output.read_text("utf-8-sig") if output.exists() else ""
        write_text(output, toml.edited_toml(before, interview.document, table=data.name))


def _show_rest(document: toml.Document, data: Path, output: Path) -> None:
    """Say what there is now, and what to type next."""
    named, written = shlex.quote(str(data)), shlex.quote(str(output))
    click.echo(f"\nWritten to {output}.")
    still_open = asking.open_columns(document)
    if not document.get("target") or still_open:
        missing = asking.columns_left(document) if still_open else "The target is not chosen yet."
        click.echo(f"{missing}\nContinue with: dpscreen schema ask {named} -o {written}")
        return
    found = schema.toml_schema(document)
    problems = found.problems()
    _show_problems(found, problems)
    if problems:
        count = how_many(len(problems), "problem")
        raise click.ClickException(f"{output} cannot be used yet: {count}.")
    click.echo(
        f"Next: dpscreen fit {named} --schema {written} --epsilon 1 --delta 1e-6 -o model.json"
    )
