"""`dpscreen show`: what a model file holds, for people, programs, registries and readers."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpscreen._core.files import write_bytes
from dpscreen._core.words import WIDTH, plain
from dpscreen.cli import console
from dpscreen.cli.console import FILE, PATH, say

if TYPE_CHECKING:
    from dpscreen.models import LoadedModel
    from dpscreen.models.release import Release


@click.command()
@click.argument("models", type=PATH, nargs=-1, required=True, metavar="MODEL")
@console.JSON(help="Summary and statement as JSON.")
@click.option("--explain", is_flag=True, help="Explain the model and its guarantee in plain words.")
@click.option("--card", is_flag=True, help="A model card in Markdown.")
@click.option("--report", type=FILE, help="Write a page about the model to this HTML file.")
@click.option(
    "--formula",
    type=click.Choice(["sql", "r", "excel"]),
    help="The model as a formula on the raw table, in SQL, R or Excel.",
)
@click.option(
    "--dialect",
    help="SQL dialect: postgres (the default), snowflake, bigquery, …",
)
@click.option("--onnx", type=FILE, help="Write the model as ONNX, for other software.")
@click.option(
    "--registry",
    is_flag=True,
    help="An entry for the public registry of deployments, as JSON.",
)
@click.option(
    "--tier",
    type=click.IntRange(1, 3),
    default=3,
    help="Level of detail of the registry entry.",
)
@console.FORCE(help="Replace an existing file; export a model that is NOT PRIVATE, marked as such.")
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
    asked = [name for name in SHOWN if given[name]]
    if len(asked) > 1:
        raise click.UsageError(
            "Give one of --json, --explain, --card, --report, --formula, --onnx and --registry."
        )
    if len(models) > 1 and asked and asked != ["as_json"]:
        raise click.UsageError(f"--{asked[0]} is for one model; two or more are compared.")
    if given["dialect"] and given["formula"] != "sql":
        raise click.UsageError("--dialect is for --formula sql.")
    console.check_output(given["report"] or given["onnx"], force=given["force"])
    found = [console.loaded(path) for path in models]
    if len(found) == 1:
        show = SHOWN[asked[0]] if asked else _show_summary
        show(found[0], given)
        return
    from dpscreen.models.comparison import compared

    comparison = compared([one.released() for one in found], [path.stem for path in models])
    if given["as_json"]:
        console.show_json(comparison.to_dict())
    else:
        click.echo(str(comparison))


# --- one model, in each of the ways that can be asked for -----------------------------------------


def _show_summary(model: LoadedModel, _given: dict[str, Any]) -> None:
    statement = "\n".join(plain(line) for line in str(model.privacy_).splitlines())
    click.echo(f"{model.summary()}\n\n{statement}")


def as_data(release: Release) -> dict[str, Any]:
    """Return the summary and the statement of a model, ready for JSON."""
    from dpscreen.models.explain import explanation_of
    from dpscreen.models.summary import summary_of

    summary = summary_of(release)
    return {
        "title": summary.title,
        "target": release.target,
        "about": dict(release.about),
        "features": [asdict(row) for row in summary.rows],
        "intercept": release.intercept,
        "notes": list(summary.notes),
        "explanation": explanation_of(release),
        "statement": release.statement.to_dict(),
    }


def _show_entry(model: LoadedModel, given: dict[str, Any]) -> None:
    from dpscreen.models.cards import TO_FILL_IN, NoEntry

    try:
        entry = model.to_registry_entry(tier=given["tier"])
    except NoEntry as problem:
        raise click.ClickException(str(problem)) from None
    console.show_json(entry)
    say(f"To be filled in by you: {', '.join(TO_FILL_IN)}.")


def _exported(export: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Export a model, or say in a sentence why it cannot be."""
    from dpscreen.models.raw import NoFormula
    from dpscreen.models.release import NotPrivate

    with console.failures(ImportError, NoFormula, NotPrivate):
        return export(*arguments, **options)


def _show_formula(model: LoadedModel, given: dict[str, Any]) -> None:
    from dpscreen.models.code import notes_of

    language, options = given["formula"], {name: given[name] for name in ("dialect", "force")}
    formula = _exported(model.to_formula, language, **options)
    if language == "excel":  # a cell holds no comments
        for line in notes_of(model.released(), language):
            say(line)
    click.echo(formula)


def _write_page(model: LoadedModel, given: dict[str, Any]) -> None:
    from dpscreen.planning.model_page import write_model_page

    report, what = given["report"], "simulating what could be expected"
    with console.write_failures(report, "Page"), console.share_bar(what) as progress:
        write_model_page(model, report, progress=progress)


def _write_onnx(model: LoadedModel, given: dict[str, Any]) -> None:
    content = _exported(model.to_onnx, force=given["force"])
    with console.write_failures(given["onnx"], "ONNX model"):
        write_bytes(given["onnx"], content)


SHOWN: dict[str, Callable[[LoadedModel, dict[str, Any]], None]] = {
    "as_json": lambda model, _given: console.show_json(as_data(model.released())),
    "explain": lambda model, _given: click.echo(
        "\n\n".join(textwrap.fill(one, WIDTH) for one in model.explain().split("\n\n"))
    ),
    "card": lambda model, _given: click.echo(model.to_model_card()),
    "registry": _show_entry,
    "report": _write_page,
    "formula": _show_formula,
    "onnx": _write_onnx,
}
"""What shows a model, by the option that asks for it."""
