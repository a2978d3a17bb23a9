"""`dpscreen schema ask`: the questions on a terminal or in a pipe, kept after each answer."""

from __future__ import annotations

import shlex
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpscreen._core.words import WIDTH, how_many
from dpscreen.cli.console import data_failures, usable, write_failures

if TYPE_CHECKING:
    from dpscreen.tables.asking import Interview
    from dpscreen.tables.declaration import Dialect
    from dpscreen.tables.toml import Document

WELCOME = (
    "Only the names of the columns are read. Answer from what you know about the\n"
    "subject, not from the rows: a minimum in the data is one person's value, and no\n"
    "privacy budget covers it. Enter takes what stands in brackets; ? tells more."
)
MISSING = (
    "Missing cells will count as the middle of the bounds, or as the first word;\n"
    "fill = … in a column's line sets something else."
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
    from dpscreen.tables.toml_text import settings_proposed

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
    from dpscreen.tables.toml_text import toml_text

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
    click.echo(MISSING)
    click.echo(
        f"Next: dpscreen fit {named} --schema {written} --epsilon 1 --delta 1e-6 -o model.json"
    )
