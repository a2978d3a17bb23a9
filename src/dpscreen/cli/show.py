"""`dpscreen show`: what a model file holds, for people, programs, registries and readers."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpscreen.cli.console import HELP, MODEL, WholeWithin, loaded

if TYPE_CHECKING:
    from dpscreen.models import LoadedModel

WIDTH = 88


@click.command(context_settings=HELP)
@MODEL
@click.option("--json", "as_json", is_flag=True, help="Summary and statement as JSON.")
@click.option("--explain", is_flag=True, help="One paragraph for whoever has to decide.")
@click.option("--card", is_flag=True, help="A model card in Markdown.")
@click.option(
    "--registry",
    is_flag=True,
    help="An entry for the public registry of deployments, as JSON, which is YAML too.",
)
@click.option(
    "--tier",
    type=WholeWithin(1, 3),
    default=3,
    show_default=True,
    help="How much an entry for the registry tells.",
)
def command(
    model: Path, as_json: bool, explain: bool, card: bool, registry: bool, tier: int
) -> None:
    """Show a model: its features, its privacy statement, and what is not protected.

    The file is read and checked; nothing in it can run.

    \b
    Examples:
      dpscreen show model.json
      dpscreen show model.json --explain
      dpscreen show model.json --card > model.md
      dpscreen show model.json --registry --tier 2 > entry.json
      dpscreen show model.json --json
    """
    if sum((as_json, explain, card, registry)) > 1:
        raise click.UsageError("Give one of --json, --explain, --card and --registry.")
    found = loaded(model)
    if registry:
        _show_entry(found, tier)
    elif as_json:
        click.echo(json.dumps(as_data(found), indent=2, ensure_ascii=False))
    elif explain:
        click.echo(textwrap.fill(found.explain(), WIDTH))
    elif card:
        click.echo(found.to_model_card())
    else:
        click.echo(f"{found.summary()}\n\n{_statement(found)}")


def _statement(model: LoadedModel) -> str:
    from dpscreen._core.words import plain

    return "\n".join(plain(line) for line in str(model.privacy_).splitlines())


def as_data(model: LoadedModel) -> dict[str, Any]:
    """Return the summary and the statement of a model, ready for JSON."""
    summary = model.summary()
    return {
        "title": summary.title,
        "features": [asdict(row) for row in summary.rows],
        "intercept": summary.intercept,
        "notes": list(summary.notes),
        "explanation": model.explain(),
        "statement": model.privacy_.to_dict(),
    }


def _show_entry(model: LoadedModel, tier: int) -> None:
    from dpscreen.models.cards import TO_FILL_IN, NoEntry

    try:
        entry = model.to_registry_entry(tier=tier)
    except NoEntry as problem:
        raise click.ClickException(str(problem)) from None
    click.echo(json.dumps(entry, indent=2, ensure_ascii=False))
    click.echo(f"Only you know, so fill in: {', '.join(TO_FILL_IN)}.", err=True)
