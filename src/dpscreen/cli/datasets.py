"""`dpscreen datasets`: which of the paper's data sets are here, and how to get the others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from dpscreen._core.words import did_you_mean
from dpscreen.cli import console

if TYPE_CHECKING:
    from dpscreen.paper.data import Dataset


@click.group()
def command() -> None:
    """List and download the data sets of the paper.

    \b
    Examples:
      dpscreen datasets list
      dpscreen datasets fetch abalone housing
      dpscreen datasets path
    """


@command.command("list")
@console.JSON(help="Print JSON.")
def list_datasets(as_json: bool) -> None:
    """Show every data set: rows, features, and where it is or how to get it."""
    from dpscreen.paper.data import CATALOGUE, available

    here = available()
    if as_json:
        shown = [
            {
                "name": entry.name,
                "title": entry.title,
                "rows": entry.n_rows,
                "features": entry.n_features,
                "files": [str(path) for path in here.get(entry.name, ())],
                "fetchable": entry.archive is not None,
                "licence": entry.licence,
            }
            for entry in CATALOGUE
        ]
        console.show_json(shown)
        return
    rows = [
        (entry.name, str(entry.n_rows), str(entry.n_features), Text(_where(entry, here)))
        for entry in CATALOGUE
    ]
    headings, left = ("name", "n", "d", "where"), {"name", "where"}
    console.print_table(console.made_table(headings, rows, left=left, box=None, pad_edge=False))


def _where(entry: Dataset, here: dict[str, tuple[Path, ...]]) -> str:
    if entry.name in here:
        return ", ".join(map(str, here[entry.name]))
    if entry.archive is None:
        return f"missing; cannot be fetched ({entry.origin})"
    return f"missing; dpscreen datasets fetch {entry.name}"


@command.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--base-url", metavar="URL", help="A mirror, in place of the archive's host.")
def fetch(names: tuple[str, ...], base_url: str | None) -> None:
    """Download data sets into the user's cache; without a name, all that are missing.

    A download is kept only if its content is exactly the catalogue's.
    """
    from dpscreen.paper.data import CATALOGUE, available

    here = available()
    missing = [entry for entry in CATALOGUE if entry.archive and entry.name not in here]
    entries = [_known(name) for name in names] or missing
    if not entries:
        console.say("Every data set that can be fetched is here.")
    if not all([_fetched(entry, base_url) for entry in entries]):
        raise click.exceptions.Exit(1)


def _known(name: str) -> Dataset:
    from dpscreen.paper.data import UnknownDataset, dataset, names

    try:
        return dataset(name)
    except UnknownDataset as error:
        hint = did_you_mean(name.lower(), names())
        raise click.UsageError(f"{_sentence(error)}{hint}") from error


def _fetched(entry: Dataset, base_url: str | None) -> bool:
    """Download one set and say how it went; the others do not suffer from a failure."""
    from dpscreen.paper import data

    if not console.messages().is_terminal:
        console.say(f"Fetching {entry.title} ...")
    try:
        with console.share_bar(entry.title) as bar:

            def report(received: int, expected: int) -> None:
                bar(received / expected if expected else 0.0)

            paths = data.fetch(entry, base_url=base_url, progress=report)
    except data.DataError as error:
        console.say(f"Error: {_sentence(error)}")
        return False
    console.say(f"{entry.name}: {', '.join(map(str, paths))}")
    return True


def _sentence(problem: object) -> str:
    return console.sentence(problem).removesuffix(".") + "."


@command.command()
def path() -> None:
    """Print the directories that are searched, in order, one a line."""
    from dpscreen.paper.data import search_path

    for place in search_path():
        click.echo(place)
