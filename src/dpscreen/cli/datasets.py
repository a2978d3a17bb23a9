"""`dpscreen datasets`: which of the paper's data sets are here, and how to get the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.text import Text

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

    here = {name: list(map(str, paths)) for name, paths in available().items()}
    if as_json:
        shown = [
            {
                "name": name,
                "title": entry.title,
                "rows": entry.n_rows,
                "features": entry.n_features,
                "files": here.get(name, []),
                "licence": entry.licence,
            }
            for name, entry in CATALOGUE.items()
        ]
        console.show_json(shown)
        return
    rows = []
    for name, entry in CATALOGUE.items():
        place = ", ".join(here.get(name, [])) or f"missing; dpscreen datasets fetch {name}"
        rows.append((name, str(entry.n_rows), str(entry.n_features), Text(place)))
    headings, left = ("name", "n", "d", "where"), {"name", "where"}
    console.print_table(headings, rows, left=left, box=None, pad_edge=False)


@command.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--base-url", metavar="URL", help="A mirror, in place of the archive's host.")
def fetch(names: tuple[str, ...], base_url: str | None) -> None:
    """Download data sets into the user's cache; without a name, all that are missing.

    A download is kept only if its content is exactly the catalogue's.
    """
    from dpscreen.paper.data import CATALOGUE, available, dataset
    from dpscreen.tables.declaration import DataError

    with console.wrong_usage(DataError):
        entries = [dataset(name) for name in names]
    entries = entries or [CATALOGUE[name] for name in CATALOGUE if name not in available()]
    if not entries:
        console.say("Every data set is here.")
    if not all([_fetched(entry, base_url) for entry in entries]):
        raise click.exceptions.Exit(1)


def _fetched(entry: Dataset, base_url: str | None) -> bool:
    """Download one set and say how it went; the others do not suffer from a failure."""
    from dpscreen.paper import data
    from dpscreen.tables.declaration import DataError

    if not console.messages().is_terminal:
        console.say(f"Fetching {entry.title} ...")
    try:
        with console.share_bar(entry.title) as progress:
            paths = data.fetch(entry, base_url=base_url, progress=progress)
    except DataError as error:
        console.say(f"Error: {console.sentence(error)}")
        return False
    console.say(f"{entry.name}: {', '.join(map(str, paths))}")
    return True


@command.command()
def path() -> None:
    """Print the directories that are searched, in order, one a line."""
    from dpscreen.paper.data import search_path

    for place in search_path():
        click.echo(place)
