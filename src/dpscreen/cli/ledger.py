"""`dpscreen ledger`: one budget for a data set, shared by all who release from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from dpscreen.cli import console
from dpscreen.cli.console import wrong_usage
from dpscreen.privacy.ledger import PrivacyLedger
from dpscreen.privacy.ledger.export import Document

COLUMNS = ("number", "at", "who", "purpose", "unit", "rho", "epsilon")
LEDGER = click.argument("ledger", type=console.PATH)


@click.group()
def command() -> None:
    """Keep one budget for a data set, shared by all who release from it.

    A cost is booked on disk before the noise it is charged for exists, and what does
    not fit is refused.

    \b
    Examples:
      dpscreen ledger create my.ledger --dataset survey --epsilon 2 --delta 1e-6
      dpscreen ledger show my.ledger
      dpscreen ledger export my.ledger > survey.csv
    """


@command.command()
@LEDGER
@click.option("--dataset", required=True, help="The name of the data set.")
@click.option(
    "--epsilon", type=console.NUMBER, required=True, help="The budget for all releases together."
)
@click.option(
    "--delta",
    type=console.NUMBER,
    required=True,
    help="Far below one over the number of rows.",
)
@click.option("--note", default="", show_default=False, help="A remark.")
@click.option(
    "--declare",
    "declared",
    metavar="NAME=TEXT",
    multiple=True,
    help="A property that identifies the data set, never computed from its rows; may be repeated.",
)
def create(ledger: Path, declared: tuple[str, ...], **given: Any) -> None:
    """Make a new ledger, a directory. What exists is never overwritten, a budget never raised.

    Put it on a local disk. Only you may enter it; the how-to page "share a budget" says how to let
    others book.

    \b
    Examples:
      dpscreen ledger create my.ledger --dataset survey --epsilon 2 --delta 1e-6
      dpscreen ledger create my.ledger --dataset panel --epsilon 1 --delta 1e-7 \\
          --declare unit="one household" --declare version=3

    With unit="one row", or another unit, costs for the other kind are refused; without it, the
    first booking decides.
    """
    pairs: dict[str, str] = {}
    for item in declared:
        name, sign, text = item.partition("=")
        if not sign or not name.strip() or name in pairs:
            raise click.BadParameter(
                f"write NAME=TEXT, each name once; got {item!r}.", param_hint="--declare"
            )
        pairs[name] = text
    with wrong_usage():
        made = PrivacyLedger.create(ledger, declared=pairs, **given)
    granted = f"epsilon {given['epsilon']:g} at delta {given['delta']:g}"
    console.say(f"Ledger for {made.dataset} written to {ledger}: {granted}.")


@command.command()
@LEDGER
@click.option("--since", metavar="HASH", help="Fail unless the ledger holds this earlier hash.")
@console.JSON(help="Print the whole ledger as JSON.")
def show(ledger: Path, since: str | None, as_json: bool) -> None:
    """Show who spent what and when, and what remains.

    \b
    Examples:
      dpscreen ledger show my.ledger
      dpscreen ledger show my.ledger --json
    """
    found = PrivacyLedger(ledger, since=since)
    if as_json:
        click.echo(found.export("json"), nl=False)
    else:
        _show(found.document())


@command.command()
@LEDGER
def export(ledger: Path) -> None:
    """Write the reservations to stdout, as CSV; `show --json` has all of the ledger.

    \b
    Examples:
      dpscreen ledger export my.ledger > survey.csv
    """
    click.echo(PrivacyLedger(ledger).export("csv"), nl=False)


def _show(ledger: Document) -> None:
    """Print what was granted, and a table of what was booked."""
    out = console.output()
    for name, text in _facts(ledger):
        out.print(Text(f"{name + ':':<13}{text}"), soft_wrap=True)
    if not ledger["reservations"]:
        out.print("Nothing is booked yet.")
        return
    rows = [[Text(_cell(line[name])) for name in COLUMNS] for line in ledger["reservations"]]
    headings = [name.replace("at", "at (UTC)") for name in COLUMNS]
    left = {"at (UTC)", "who", "purpose", "unit"}
    plain: dict[str, Any] = {} if out.is_terminal else {"box": None, "pad_edge": False}
    console.print_table(headings, rows, left=left, **plain)
    out.print("\nThe rho of reservations add up; their epsilons, each for itself, do not.")


def _facts(ledger: Document) -> Iterator[tuple[str, str]]:
    yield "data set", ledger["dataset"]
    for name, text in ledger["declared"].items():
        yield "declared", f"{name} = {text}"
    if ledger["note"]:
        yield "note", ledger["note"]
    yield "created", f"{ledger['created']['at']} by {ledger['created']['who']}"
    for name in ("total", "spent", "remaining"):
        amount = ledger[name]
        epsilon = f"epsilon {amount['epsilon']:g} at delta {ledger['delta']:g}"
        yield name, f"rho {amount['rho']:g} ({epsilon})"
    yield "fingerprint", ledger["fingerprint"]
    yield "head", ledger["head"]


def _cell(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
