"""Terminals: colours and bars on one, plain text elsewhere."""

from __future__ import annotations

import math
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO, TypeVar

import click
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from dpscreen._core.words import WIDTH, how_many, meant, number, outcome, plain, some

if TYPE_CHECKING:
    from dpscreen.models import LoadedModel
    from dpscreen.models.page.charts import OutcomeRow, PowerRow
    from dpscreen.planning.compare import ContestOutcome
    from dpscreen.tables.schema import TableSchema

Command = TypeVar("Command", bound=Callable[..., object])


def output() -> Console:
    """Return where data goes: stdout, wide enough for tables when it is not a terminal."""
    return _console(sys.stdout)


def messages() -> Console:
    """Return where messages go: stderr."""
    return _console(sys.stderr)


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


@contextmanager
def simulating(what: str) -> Iterator[Callable[[float], None]]:
    """Show a bar on a terminal, and yield what is to be told the share that is done."""
    with progress(messages()) as bar:
        task = bar.add_task(what, total=100)
        yield lambda share: bar.update(task, completed=int(100 * share))


def say(message: str) -> None:
    """Print a message as plain text."""
    click.echo(message, err=True)


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


def _console(stream: TextIO) -> Console:
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
    from dpscreen.tables.declaration import DataError

    try:
        yield
    except DataError as problem:
        raise click.ClickException(sentence(problem)) from None


SPENT = "dpscreen.spent"
"""What a command has spent so far, for whoever stops it; kept with the context of a command."""


def note_spent(told: str) -> None:
    """Remember what a stopped command has to say about the budget."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[SPENT] = told


@contextmanager
def wrong_usage() -> Iterator[None]:
    """Turn a value that cannot be used into wrong usage: a sentence and exit code 2."""
    try:
        yield
    except ValueError as error:
        raise click.UsageError(str(error)) from None


class Refusal(click.ClickException):
    """A budget that does not cover what was asked for: exit code 3."""

    exit_code = 3


@contextmanager
def ledger_failures() -> Iterator[None]:
    """Turn what a ledger raises into a sentence and an exit code."""
    from dpscreen.privacy import BudgetExceeded, LedgerProblem

    try:
        yield
    except LedgerProblem as problem:
        raise click.ClickException(str(problem)) from None
    except BudgetExceeded as refusal:
        raise Refusal(str(refusal)) from None


@contextmanager
def write_failures(output: Path) -> Iterator[None]:
    """Turn a refusal of the disk into a sentence and exit code 1."""
    try:
        yield
    except OSError as error:
        raise click.ClickException(f"Cannot write {output}: {error.strerror}.") from None


# --- options that several commands have ---------------------------------------------------------


class PlainRange(click.ParamType):  # type: ignore[type-arg]
    """Numbers within a range, whose refusals are plain sentences."""

    min: Any
    max: Any
    min_open: bool
    max_open: bool

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the number; refuse what is none, or lies outside."""
        try:
            found = super().convert(value, param, ctx)
            if math.isnan(found):  # no bound refuses it
                self.fail("not a number", param, ctx)
        except click.BadParameter as refused:
            told = f"must be a {self.name} {self._in_words()}".rstrip()
            raise click.BadParameter(
                f"{told}; got {str(value)!r}.", ctx=refused.ctx, param=refused.param
            ) from None
        return found

    def _describe_range(self) -> str:
        return self._in_words().removeprefix("of ")

    def _in_words(self) -> str:
        """Return which numbers are allowed, as it stands after the noun."""
        if self.min is None:
            return ""
        if self.max is None:
            return f"above {self.min}" if self.min_open else f"of at least {self.min}"
        if self.min_open or self.max_open:
            start = "above" if self.min_open else "from"
            return f"{start} {self.min} and {'below' if self.max_open else 'up to'} {self.max}"
        return f"from {self.min} to {self.max}"


class NumberWithin(PlainRange, click.FloatRange):
    """A number."""

    name = "number"


class Epsilon(NumberWithin):
    """A number that a budget can have."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number, or say what `Budget` has against it."""
        from dpscreen.privacy.budget import Budget

        found = float(super().convert(value, param, ctx))
        try:
            Budget(found, delta=0.5)
        except ValueError as problem:
            self.fail(str(problem), param, ctx)
        return found


class WholeWithin(PlainRange, click.IntRange):
    """A whole number."""

    name = "whole number"


HELP = {"help_option_names": ["-h", "--help"]}
NUMBER = NumberWithin()
COUNT = WholeWithin(min=1)
POSITIVE = NumberWithin(0, min_open=True)
EPSILON = Epsilon(0, min_open=True)
SHARE = NumberWithin(0, 1, min_open=True, max_open=True)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
SEED = click.option("--seed", default="0", show_default=True, help="Of the simulation.")
MODEL = click.argument("model", type=click.Path(path_type=Path))


def delta_option(words: str) -> Callable[[Command], Command]:
    """Return the option of a plan's delta, with what it is said to be."""
    return click.option("--delta", type=SHARE, default=1e-6, show_default=True, help=words)


def schema_option(words: str) -> Callable[[Command], Command]:
    """Return the option of a schema in place of a number of features, read by `table_shape`."""
    kind = click.Path(dir_okay=False, path_type=Path)
    told = f"Take the number of features, and the rows of a unit, from this schema. {words}"
    return click.option("--schema", "schema_file", type=kind, help=told)


class TableShape(NamedTuple):
    """What is public of a table to simulate: how many features are levels, and rows of a unit."""

    features: int
    levels: int = 0
    rows_per_unit: int = 1
    yes_or_no: bool = False


def table_shape(features: int | None, schema_file: Path | None) -> TableShape:
    """Return what a schema declares, or so many features."""
    if features is not None and schema_file is None:
        return TableShape(features)
    if features is not None or schema_file is None:
        raise click.UsageError("Give --features or --schema: one of them.")
    from dpscreen.solvers.placing import is_binary

    schema = checked_schema(schema_file)
    levels = int(is_binary(schema.feature_bounds).sum())
    outcomes = schema.classes is not None
    return TableShape(len(schema.feature_names), levels, schema.rows_per_unit, outcomes)


def plot_option(words: str) -> Callable[[Command], Command]:
    """Return the option of a picture's file, to be checked with `check_plot`."""
    kind = click.Path(dir_okay=False, writable=True, path_type=Path)
    words = f"{words} (.png, .svg or .pdf)."
    return click.option("--plot", type=kind, help=words)


QUALITIES = ("power", "without effect", "held-out R²", "best R²")


def qualities(one: ContestOutcome | PowerRow) -> tuple[str, ...]:
    """Return what simulated fits found, as `QUALITIES` names it."""
    return (*_found(one), f"{one.r2:.3f} ± {one.r2_se:.3f}", f"{one.best_r2:.3f}")


def _found(one: ContestOutcome | PowerRow | OutcomeRow) -> tuple[str, str]:
    """Return power, and how many features without effect are selected."""
    false = f"{one.false_positives:.1f} ± {one.false_positives_se:.1f}"
    return f"{one.power:.2f} ± {one.power_se:.2f}", false


OUTCOME_QUALITIES = ("power", "without effect", "held-out AUC", "best AUC")


def outcome_qualities(one: OutcomeRow) -> tuple[str, ...]:
    """Return what simulated fits found, as `OUTCOME_QUALITIES` names it."""
    return (*_found(one), f"{one.auc:.3f} ± {one.auc_se:.3f}", f"{one.best_auc:.3f}")


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


def check_output(output: Path | None, *, force: bool) -> None:
    """Refuse a place that cannot be written to, before any work is done."""
    if output is None:
        return
    if output.exists() and not force:
        raise click.ClickException(f"{output} is there already; --force replaces it.")
    if not output.absolute().parent.is_dir():
        raise click.ClickException(f"There is no directory {output.parent}.")


def checked_schema(path: Path) -> TableSchema:
    """Read a schema; refuse one that is not filled in."""
    from dpscreen.tables.schema import load_schema

    with data_failures():
        schema = load_schema(path)
        schema.check()
    return schema


def usable(schema: TableSchema) -> str:
    """Say in a sentence what a schema without problems declares."""
    low, high = schema.field(schema.target).declared_bounds
    bounds = f"lies between {number(low)} and {number(high)}"
    classes = [outcome(one) for one in schema.classes or ()]
    may_be = f"is {classes[1]} or {classes[0]}" if classes else bounds
    unit = "one row" if schema.unit is None else f"one value of {schema.unit!r}"
    rows = how_many(schema.rows_per_unit, "row")
    most = "" if schema.unit is None else f", at most {rows} of each"
    columns = how_many(len(schema.columns), "column")
    features = how_many(len(schema.feature_names), "feature")
    return textwrap.fill(
        f"The schema can be used: {columns} and {features}; the target {schema.target!r} {may_be}; "
        f"the privacy unit is {unit}{most}. {unfilled_words(schema)}".rstrip(),
        WIDTH,
    )


def unfilled_words(schema: TableSchema) -> str:
    """Say what missing numbers count as without a fill: few of them, far out, bend a slope."""
    counts = [f"{plain(name)} as {number(value)}" for name, value in schema.unfilled.items()]
    if not counts:
        return ""
    declare = "give it a typical fill if cells may be missing"
    return f"A missing number counts as the middle of its bounds, {some(counts)}: {declare}."


def _guess(path: Path) -> str:
    """Name a file beside one that does not exist, if it may have been meant."""
    if path.exists() or not path.absolute().parent.is_dir():
        return ""
    close = meant(path.name, [one.name for one in path.absolute().parent.glob("*.json")])
    return f" Did you mean {path.with_name(close)}?" if close else ""
