"""`dpscreen studio`: from a file to a private model, in the browser."""

from __future__ import annotations

from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpscreen.cli import console
from dpscreen.cli._fit_options import MOST_UNREADABLE
from dpscreen.cli.schema import file_format, with_dialect

if TYPE_CHECKING:
    from dpscreen.studio.session import Session

MISSING = "The studio needs two more packages: pip install 'dpscreen[studio]'."
ONE_COLUMN = "The table has one column, or its columns are not separated by , ; | or a tab."
OTHERS = "Give another --folder, or fix or remove the schema.json that is in this one."


@click.command()
@click.argument("table", type=console.FILE)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=False,
    help="Port to listen on.  [default: any free port]",
)
@click.option("--no-browser", is_flag=True, help="Print the address without opening a browser.")
@click.option(
    "--folder",
    type=console.FOLDER,
    help="Folder for schema, ledger and releases.  [default: <table>-studio, beside the table]",
)
@click.option(
    "--ledger", type=console.PATH, help="Charge costs to this ledger.  [default: one in the folder]"
)
@MOST_UNREADABLE
@click.option("--no-check", is_flag=True, help="Release even if rows do not fit the schema.")
@file_format
def command(
    table: Path,
    port: int,
    no_browser: bool,
    folder: Path | None,
    ledger: Path | None,
    most_unreadable: float,
    no_check: bool,
    **given: Any,
) -> None:
    """Open a wizard in the browser: table, question, budget, dry run, release, result.

    It runs on this machine only. The address that it prints works once. Before a release is
    started, only the column names of the table are read. Every release is booked in a ledger before
    any noise is drawn. Ctrl-C ends it.

    \b
    Examples:
      dpscreen studio survey.csv
      dpscreen studio survey.parquet --no-browser --port 8600
      dpscreen studio survey.csv --ledger survey.ledger --folder releases
    """
    try:
        from dpscreen.studio.app import studio_app
        from dpscreen.studio.server import Listener, PortTaken, browser_door, serve
    except ModuleNotFoundError:
        raise click.ClickException(MISSING) from None
    with closing(_session(table, folder, ledger, **with_dialect(given))) as session:
        session.most_unreadable = None if no_check else most_unreadable
        with console.failures(PortTaken):
            listener = Listener.at(port)
        door: Any = nullcontext(int) if no_browser else browser_door(listener.address)
        with door as open_browser:

            def ready() -> None:
                click.echo(listener.address)
                console.say("The address works once. Ctrl-C ends the studio.")
                open_browser()

            serve(studio_app(session, listener.keys.place), listener, ready)


def _session(table: Path, folder: Path | None, ledger: Path | None, **written: Any) -> Session:
    """Read the names of the columns, and take hold of the folder."""
    from dpscreen.studio.session import Session
    from dpscreen.studio.shelf import FolderInUse, Shelf

    place = folder or table.with_name(f"{table.name.partition('.')[0]}-studio")
    if ledger is not None and not ledger.exists():
        raise click.BadParameter(f"there is no ledger {ledger}.", param_hint="--ledger")
    with console.write_failures(place), console.failures(FolderInUse):
        from dpscreen.tables.declaration import DataError
        from dpscreen.tables.schema import public_header

        if not (place / "schema.json").exists():
            header = public_header(table, **written)  # no table leaves no folder behind
            if len(header.names) < 2:
                raise click.ClickException(ONE_COLUMN)
        shelf = Shelf(place, ledger)
        shelf.open()
        try:
            return Session(table, shelf, **written)
        except DataError as problem:
            shelf.close()
            raise click.ClickException(f"{console.sentence(problem)} {OTHERS}") from None
        except BaseException:
            shelf.close()
            raise
