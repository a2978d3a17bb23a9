"""`dpscreen errata`: statements of the paper that need a correction, each with what shows it."""

from __future__ import annotations

import textwrap

import click

from dpscreen._core.messages import unknown
from dpscreen._core.words import WIDTH


@click.command()
@click.argument("keys", nargs=-1, metavar="[E1 ... E11]")
def command(keys: tuple[str, ...]) -> None:
    """Print where a statement of the paper needs a correction, and how much it matters.

    Each erratum quotes the claim, derives why it fails, gives numbers, and names a command that
    shows it. Without keys, all of them.

    \b
    Examples:
      dpscreen errata
      dpscreen errata E2 E10
    """
    from dpscreen.paper.published import errata

    known = errata()
    for key in keys:
        if key.upper() not in known:
            raise click.UsageError(unknown("erratum", key, tuple(known)))
    for key in keys or known:
        one = known[key.upper()]
        click.echo(f"{one.key}: {one.title} ({one.kind})")
        for name, text in (
            ("Claim", one.claim),
            ("Reason", one.reason),
            ("Evidence", one.evidence),
            ("How much it matters", one.matters),
            ("Shown by", one.command),
        ):
            entry = textwrap.fill(f"{name}: {text}", WIDTH, subsequent_indent="  ")
            click.echo(textwrap.indent(entry, "  "))
        click.echo()
