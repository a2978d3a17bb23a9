"""Terminals: colours and bars on one, plain text elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from dpscreen._core.words import meant

if TYPE_CHECKING:
    from dpscreen.models import LoadedModel
    from dpscreen.tables.schema import TableSchema


def output() -> Console:
    """Return where data goes: stdout, wide enough for tables when it is not a terminal."""
    return _console(stderr=False)


def messages() -> Console:
    """Return where messages go: stderr."""
    return _console(stderr=True)


def progress(console: Console) -> Progress:
    """Return a progress bar, shown on a terminal only."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def sentence(problem: object) -> str:
    """Return what went wrong as a sentence that begins with a capital."""
    text = str(problem)
    return text[:1].upper() + text[1:]


def check_plot(plot: Path | None) -> None:
    """Refuse a picture that cannot be written, before the work."""
    if plot is None:
        return
    if plot.suffix not in {".png", ".svg", ".pdf"}:
        raise click.BadParameter("must end in .png, .svg or .pdf.", param_hint="--plot")
    if not plot.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no directory {plot.parent}.", param_hint="--plot")


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 100
    return Console(file=stream, width=width, highlight=False, soft_wrap=False)


def wide_enough(console: Console, table: Table) -> Console:
    """Return a console that shows the table without folding it; a terminal stays as it is."""
    if console.is_terminal:
        return console
    needed = Measurement.get(console, console.options.update(width=1000), table).maximum
    return Console(file=console.file, width=max(console.width, needed), highlight=False)


@contextmanager
def data_failures() -> Iterator[None]:
    """Turn what a schema or a table raises into a sentence and exit code 1."""
    from dpscreen.tables.problem import DataError

    try:
        yield
    except DataError as problem:
        raise click.ClickException(sentence(problem)) from None


def checked_schema(path: Path) -> TableSchema:
    """Read a schema; refuse one that is not filled in."""
    from dpscreen.tables.schema import load_schema

    with data_failures():
        schema = load_schema(path)
        schema.check()
    return schema


@contextmanager
def write_failures(output: Path) -> Iterator[None]:
    """Turn a refusal of the disk into a sentence and exit code 1."""
    try:
        yield
    except OSError as error:
        raise click.ClickException(f"Cannot write {output}: {error.strerror}.") from None


HELP = {"help_option_names": ["-h", "--help"]}
MODEL = click.argument("model", type=click.Path(path_type=Path))


def loaded(path: Path) -> LoadedModel:
    """Return the model in a file, or fail with exit code 1."""
    from dpscreen.models import ModelFileProblem, load

    try:
        model = load(path)
    except ModelFileProblem as problem:
        raise click.ClickException(f"{problem}{_guess(path)}") from None
    if not model.privacy_.holds:
        click.echo("Warning: the privacy statement of this model does not hold.", err=True)
    return model


def _guess(path: Path) -> str:
    """Name a file beside one that does not exist, if it may have been meant."""
    if path.exists() or not path.absolute().parent.is_dir():
        return ""
    close = meant(path.name, [one.name for one in path.absolute().parent.glob("*.json")])
    return f" Did you mean {path.with_name(close)}?" if close else ""
