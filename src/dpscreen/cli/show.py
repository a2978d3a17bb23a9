"""`dpscreen show`: what a model file holds, for people, programs, registries and readers."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpscreen._core.words import WIDTH
from dpscreen.cli.console import (
    HELP,
    WholeWithin,
    check_output,
    loaded,
    sentence,
    simulating,
    write_failures,
)

if TYPE_CHECKING:
    from dpscreen.models import LoadedModel
    from dpscreen.models.release import Release


FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(context_settings=HELP)
@click.argument("models", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="MODEL")
@click.option("--json", "as_json", is_flag=True, help="Summary and statement as JSON.")
@click.option("--explain", is_flag=True, help="One paragraph for whoever has to decide.")
@click.option("--card", is_flag=True, help="A model card in Markdown.")
@click.option("--report", type=FILE, help="Write a page about it, as HTML.")
@click.option(
    "--formula",
    type=click.Choice(["sql", "r", "excel"]),
    help="The model as a formula on the raw table: SQL, R, or a cell of Excel.",
)
@click.option(
    "--dialect",
    help="The database that SQL is written for: postgres (the default), snowflake, bigquery, …",
)
@click.option("--onnx", type=FILE, help="Write the model as ONNX, for other software.")
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
@click.option(
    "--force",
    is_flag=True,
    help="Replace a file that exists; write a formula or ONNX that is NOT PRIVATE, marked so.",
)
def command(models: tuple[Path, ...], **given: Any) -> None:
    """Show a model: its features, its privacy statement, and what is not protected.

    The file is read and checked; nothing in it can run. Two files or more are compared.

    \b
    Examples:
      dpscreen show model.json
      dpscreen show model.json --explain
      dpscreen show model.json --report page.html
      dpscreen show model.json --formula sql --dialect snowflake
      dpscreen show model.json --onnx model.onnx
      dpscreen show model.json --card > model.md
      dpscreen show model.json --registry --tier 2 > entry.json
      dpscreen show model.json --json
      dpscreen show last-year.json this-year.json
    """
    _check(models, given)
    found = [loaded(path) for path in models]
    if len(found) > 1:
        _compare(models, found, as_json=given["as_json"])
    else:
        _show(found[0], given)


def _check(models: tuple[Path, ...], given: dict[str, Any]) -> None:
    """Refuse what cannot be shown at once."""
    alone = ("explain", "card", "registry", "report", "formula", "onnx")
    asked = [name for name in ("as_json", *alone) if given[name]]
    if len(asked) > 1:
        raise click.UsageError(
            "Give one of --json, --explain, --card, --report, --formula, --onnx and --registry."
        )
    if len(models) > 1 and asked and asked != ["as_json"]:
        raise click.UsageError(f"--{asked[0]} is for one model; two or more are compared.")
    if given["dialect"] and given["formula"] != "sql":
        raise click.UsageError("--dialect is for --formula sql.")
    check_output(given["report"] or given["onnx"], force=given["force"])


def _show(found: LoadedModel, given: dict[str, Any]) -> None:
    if given["registry"]:
        _show_entry(found, given["tier"])
    elif given["as_json"]:
        click.echo(json.dumps(as_data(found.released()), indent=2, ensure_ascii=False))
    elif given["explain"]:
        click.echo(textwrap.fill(found.explain(), WIDTH))
    elif given["card"]:
        click.echo(found.to_model_card())
    elif given["formula"]:
        _show_formula(found, given["formula"], given["dialect"], force=given["force"])
    elif given["report"]:
        _write_page(found, given["report"])
    elif given["onnx"]:
        _write_onnx(found, given["onnx"], force=given["force"])
    else:
        click.echo(f"{found.summary()}\n\n{_statement(found)}")


def _compare(paths: tuple[Path, ...], found: list[LoadedModel], *, as_json: bool) -> None:
    from dpscreen.models.comparison import compared

    told = compared([one.released() for one in found], [path.stem for path in paths])
    shown = json.dumps(told.to_dict(), indent=2, ensure_ascii=False) if as_json else str(told)
    click.echo(shown)


@contextmanager
def _export_failures() -> Iterator[None]:
    """Say in a sentence why a model cannot be exported."""
    from dpscreen.models.gate import NotPrivate
    from dpscreen.models.raw import NoFormula

    try:
        yield
    except (ImportError, NoFormula, NotPrivate) as problem:
        raise click.ClickException(sentence(problem)) from None


def _show_formula(model: LoadedModel, language: str, dialect: str | None, *, force: bool) -> None:
    from dpscreen.models.formulas import notes_of

    with _export_failures():
        formula = model.to_formula(language, dialect=dialect, force=force)
    if language == "excel":  # a cell holds no comments
        for line in notes_of(model.released(), language):
            click.echo(line, err=True)
    click.echo(formula)


def _write_page(model: LoadedModel, report: Path) -> None:
    from dpscreen.planning.model_page import write_model_page

    with write_failures(report), simulating("simulating what could be expected") as progress:
        write_model_page(model, report, progress=progress)
    click.echo(f"Page written to {report}", err=True)


def _write_onnx(model: LoadedModel, place: Path, *, force: bool) -> None:
    from dpscreen._core.files import write_bytes

    with _export_failures():
        content = model.to_onnx(force=force)
    with write_failures(place):
        write_bytes(place, content)
    click.echo(f"ONNX model written to {place}", err=True)


def _statement(model: LoadedModel) -> str:
    from dpscreen._core.words import plain

    return "\n".join(plain(line) for line in str(model.privacy_).splitlines())


def as_data(release: Release) -> dict[str, Any]:
    """Return the summary and the statement of a model, ready for JSON."""
    from dpscreen.models.explain import explanation_of
    from dpscreen.models.linear import shown_summary
    from dpscreen.models.release import summary_of

    summary = summary_of(release)
    return {
        "title": summary.title,
        "target": release.target,
        "about": dict(release.about),
        "features": [asdict(row) for row in summary.rows],
        "intercept": summary.intercept,
        "notes": list(shown_summary(release).notes),
        "explanation": explanation_of(release),
        "statement": release.statement.to_dict(),
    }


def _show_entry(model: LoadedModel, tier: int) -> None:
    from dpscreen.models.cards import TO_FILL_IN, NoEntry

    try:
        entry = model.to_registry_entry(tier=tier)
    except NoEntry as problem:
        raise click.ClickException(str(problem)) from None
    click.echo(json.dumps(entry, indent=2, ensure_ascii=False))
    click.echo(f"Only you know, so fill in: {', '.join(TO_FILL_IN)}.", err=True)
