"""`dpscreen datasets`: which of the paper's data sets are here, and how to get the others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich import progress as rich_progress
from rich.table import Table
from rich.text import Text

from dpscreen._core.words import did_you_mean
from dpscreen.cli import console

if TYPE_CHECKING:
    from dpscreen.paper.data import Dataset


@click.group(context_settings=console.HELP)
def command() -> None:
    """List and download the data sets of the paper.

    \b
    Examples:
      dpscreen datasets list
      dpscreen datasets fetch abalone housing
      dpscreen datasets path
    """


@command.command("list", context_settings=console.HELP)
@console.AS_JSON
def list_datasets(as_json: bool) -> None:
    """Show every data set: rows, features, and where it is or how to get it."""
    from dpscreen.paper.data import CATALOGUE, available

    here = available()
    if as_json:
        click.echo(json.dumps([_entry(entry, here) for entry in CATALOGUE], indent=2))
    else:
        _print_table([(entry, _where(entry, here)) for entry in CATALOGUE])


@command.command(context_settings=console.HELP)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--base-url", metavar="URL", help="A mirror, in place of the archive's host.")
def fetch(names: tuple[str, ...], base_url: str | None) -> None:
    """Download data sets into the user's cache; without a name, all that are missing.

    A download is kept only if its content is exactly the catalogue's.
    """
    entries = [_known(name) for name in names] or _missing()
    if not entries:
        console.say("Every data set that can be fetched is here.")
    if not all([_fetched(entry, base_url) for entry in entries]):
        raise click.exceptions.Exit(1)


@command.command(context_settings=console.HELP)
def path() -> None:
    """Print the directories that are searched, in order, one a line."""
    from dpscreen.paper.data import search_path

    for place in search_path():
        click.echo(place)


# --- showing ------------------------------------------------------------------------------------


def _where(entry: Dataset, here: dict[str, tuple[Path, ...]]) -> str:
    if entry.name in here:
        return ", ".join(str(place) for place in here[entry.name])
    if entry.archive is None:
        return f"missing; cannot be fetched ({entry.origin})"
    return f"missing; dpscreen datasets fetch {entry.name}"


def _entry(entry: Dataset, here: dict[str, tuple[Path, ...]]) -> dict[str, Any]:
    return {
        "name": entry.name,
        "title": entry.title,
        "rows": entry.n_rows,
        "features": entry.n_features,
        "files": [str(place) for place in here.get(entry.name, ())],
        "fetchable": entry.archive is not None,
        "licence": entry.licence,
    }


def _print_table(rows: list[tuple[Dataset, str]]) -> None:
    table = Table(box=None, pad_edge=False)
    for name in ("name", "n", "d", "where"):
        table.add_column(name, justify="right" if name in "nd" else "left", overflow="fold")
    for entry, where in rows:
        numbers = (str(entry.n_rows), str(entry.n_features))
        table.add_row(Text(entry.name), *numbers, Text(where))
    console.wide_enough(console.output(), table).print(table)


# --- fetching -----------------------------------------------------------------------------------


def _known(name: str) -> Dataset:
    from dpscreen.paper.data import UnknownDataset, dataset, names

    try:
        return dataset(name)
    except UnknownDataset as error:
        hint = did_you_mean(name.lower(), names())
        raise click.UsageError(f"{_sentence(error)}{hint}") from error


def _missing() -> list[Dataset]:
    from dpscreen.paper.data import CATALOGUE, available

    here = available()
    return [entry for entry in CATALOGUE if entry.archive and entry.name not in here]


def _fetched(entry: Dataset, base_url: str | None) -> bool:
    """Download one set and say how it went; the others do not suffer from a failure."""
    from dpscreen.paper.data import DataError
    from dpscreen.paper.data import fetch as download

    try:
        with _progress(entry) as report:
            paths = download(entry, base_url=base_url, progress=report)
    except DataError as error:
        console.say(f"Error: {_sentence(error)}")
        return False
    console.say(f"{entry.name}: {', '.join(str(place) for place in paths)}")
    return True


@contextmanager
def _progress(entry: Dataset) -> Iterator[Any]:
    """Show a bar on a terminal, one line elsewhere."""
    log = console.messages()
    if not log.is_terminal:
        console.say(f"Fetching {entry.title} ...")
    columns = (
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.DownloadColumn(),
        rich_progress.TimeRemainingColumn(),
    )
    with rich_progress.Progress(
        *columns, console=log, transient=True, disable=not log.is_terminal
    ) as bar:
        task = bar.add_task(entry.title, total=None)

        def report(received: int, expected: int) -> None:
            bar.update(task, completed=received, total=expected or None)

        yield report


def _sentence(problem: object) -> str:
    text = console.sentence(problem)
    return text if text.endswith(".") else f"{text}."
