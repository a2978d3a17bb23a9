"""Terminals: colours and bars on one, plain text elsewhere; and what several commands share."""

from __future__ import annotations

import json
import math
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO, TypeVar

import click
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.table import Table

from dpscreen._core.words import WIDTH, how_many, meant, number

if TYPE_CHECKING:
    from dpscreen.families import Family
    from dpscreen.models import LoadedModel
    from dpscreen.tables.schema import TableSchema

Command = TypeVar("Command", bound=Callable[..., object])


# --- output ---------------------------------------------------------------------------------------


def output(stream: TextIO | None = None) -> Console:
    """Return where data goes: stdout, wide enough for tables when it is not a terminal."""
    stream = stream or sys.stdout
    width = None if stream.isatty() else 100
    return Console(file=stream, width=width, highlight=False, soft_wrap=False)


def messages() -> Console:
    """Return where messages go: stderr."""
    return output(sys.stderr)


def say(message: str) -> None:
    """Print a message as plain text."""
    click.echo(message, err=True)


def warn(message: str) -> None:
    """Print a warning as plain text."""
    say(f"Warning: {message}")


def show_json(content: object) -> None:
    """Print data as JSON."""
    click.echo(json.dumps(content, indent=2, ensure_ascii=False))


def sentence(problem: object) -> str:
    """Return what went wrong as a sentence that begins with a capital."""
    text = str(problem)
    return text[:1].upper() + text[1:]


def print_table(
    headings: Iterable[str],
    rows: Iterable[Sequence[Any]],
    *,
    left: Collection[str] = (),
    **options: Any,
) -> None:
    """Print a table without folding it; on a terminal, as wide as that is.

    Columns are to the right, but for those that `left` names.
    """
    table, out = Table(title_style="bold", **options), output()
    for name in headings:
        justify: Any = "left" if name in left else "right"
        table.add_column(escape(name), justify=justify, overflow="fold")
    for cells in rows:
        table.add_row(*cells)
    if not out.is_terminal:
        needed = Measurement.get(out, out.options.update(width=1000), table).maximum
        out = Console(file=out.file, width=max(out.width, needed), highlight=False)
    out.print(table)


def progress() -> Progress:
    """Return a progress bar, shown on a terminal only."""
    usual = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    log = messages()
    return Progress(*usual, console=log, transient=True, disable=not log.is_terminal)


@contextmanager
def share_bar(what: str = "simulating") -> Iterator[Callable[[float], None]]:
    """Show a bar on a terminal, and yield a function that takes the share that is done."""
    with progress() as bar:
        task = bar.add_task(what, total=100)
        yield lambda share: bar.update(task, completed=int(100 * share))


# --- failures -------------------------------------------------------------------------------------


class Refusal(click.ClickException):
    """A budget that does not cover the request: exit code 3."""

    exit_code = 3


def failure_of(error: Exception) -> click.ClickException | None:
    """Return what a table, a ledger or a fit raised as a sentence; None for any other error."""
    from dpscreen.planning.fitting import FitFailed
    from dpscreen.privacy import BudgetExceeded, LedgerProblem
    from dpscreen.tables.declaration import DataError

    match error:
        case BudgetExceeded():
            return Refusal(str(error))
        case LedgerProblem():
            return click.ClickException(str(error))
        case DataError() | FitFailed():
            return click.ClickException(sentence(error))
    return None


@contextmanager
def failures(*kinds: type[Exception]) -> Iterator[None]:
    """Turn exceptions that only this command knows into a sentence and exit code 1."""
    try:
        yield
    except kinds as problem:
        raise click.ClickException(sentence(problem)) from None


@contextmanager
def wrong_usage(*kinds: type[Exception]) -> Iterator[None]:
    """Turn a value that cannot be used into wrong usage: a sentence and exit code 2."""
    caught = kinds or (ValueError,)
    try:
        yield
    except caught as error:
        raise click.UsageError(str(error)) from None


@contextmanager
def write_failures(path: Path, what: str = "") -> Iterator[None]:
    """Turn a refusal of the disk into a sentence and exit code 1; else say what was written."""
    try:
        yield
    except OSError as error:
        raise click.ClickException(f"Cannot write {path}: {error.strerror}.") from None
    if what:
        say(f"{what} written to {path}")


# --- options that several commands have ---------------------------------------------------------


class Number(click.FloatRange):
    """A number within a range."""

    name = "number"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Return the number; nan is none, which no bound refuses."""
        found: float = super().convert(value, param, ctx)
        if math.isnan(found):
            self.fail("nan is not a number.", param, ctx)
        return found


class Epsilon(Number):
    """A number that a budget can have."""

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Return the number, or say what `Budget` has against it."""
        from dpscreen.privacy.budget import Budget

        found = super().convert(value, param, ctx)
        try:
            Budget(found, delta=0.5)
        except ValueError as problem:
            self.fail(str(problem), param, ctx)
        return found


class TableOrAddress(click.ParamType):  # type: ignore[type-arg]
    """A file, as a path, or the address of a database, as a text."""

    name = "data"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Whether it is an address, by how it begins."""
        from dpscreen.tables.databases import is_address

        return value if is_address(str(value)) else FILE.convert(value, param, ctx)


def database_options(command: Command) -> Command:
    """Add the options that say what is read of a database."""
    table = click.option("--table", help="Table of a database, as name or schema.name.")
    query = click.option("--query", help="SQL query to use in place of a table.")
    return table(query(command))


def table_of(data: Path | str, table: str | None, query: str | None) -> Any:
    """Return the path of a file, or the table of a database."""
    from dpscreen.tables.databases import DatabaseTable
    from dpscreen.tables.declaration import TableProblem

    if isinstance(data, Path):
        if table is not None or query is not None:
            raise click.UsageError("--table and --query are for databases, and DATA is a file.")
        return data
    with wrong_usage(TableProblem):
        return DatabaseTable(data, table, query)


PATH = click.Path(path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
NUMBER = Number()
COUNT = click.IntRange(min=1)
ROWS = click.IntRange(min=2)
POSITIVE = Number(0, min_open=True)
EPSILON = Epsilon(0, min_open=True)
SHARE = Number(0, 1, min_open=True, max_open=True)
DATA = TableOrAddress()
SEED = click.option("--seed", default="0", help="Seed of the simulation.")


JSON = partial(click.option, "--json", "as_json", is_flag=True)
FORCE = partial(click.option, "--force", is_flag=True)
DELTA = partial(click.option, "--delta", type=SHARE, default=1e-6)
EPSILONS = partial(click.option, "--epsilon", "epsilons", type=EPSILON, multiple=True)
OUTPUT = partial(click.option, "-o", "--output", type=FILE)


def plot_option(words: str) -> Callable[[Command], Command]:
    """Return the option of a picture's file; one that cannot be written is refused at once."""

    def checked(_context: click.Context, _option: click.Parameter, plot: Path | None) -> Any:
        if plot is not None and plot.suffix not in {".png", ".svg", ".pdf"}:
            raise click.BadParameter("must end in .png, .svg or .pdf.", param_hint="--plot")
        if plot is not None and not plot.absolute().parent.is_dir():
            raise click.BadParameter(f"there is no directory {plot.parent}.", param_hint="--plot")
        return plot

    kind = click.Path(dir_okay=False, writable=True, path_type=Path)
    words = f"{words} (.png, .svg or .pdf)."
    return click.option("--plot", type=kind, callback=checked, help=words)


FORMULA = click.option(
    "--formula",
    help='Formula of the model, "charges ~ age + I(age**2) + smoker*bmi"; replaces the schema\'s.',
)


def schema_option(words: str) -> Callable[[Command], Command]:
    """Return the options of a schema in place of a number of features, read by `table_shape`."""
    words = f"Take the number of features and the rows per unit from this schema. {words}"
    option = click.option("--schema", "schema_file", type=FILE, help=words)
    return lambda command: option(FORMULA(command))


NAMED = {
    "interest": "Coefficient of interest of a regression table: the budget goes to its precision, "
    "others are adjusted for. May be repeated.",
    "required": "Feature that a regression table never drops. May be repeated.",
}
"""Settings of tables that name features."""


def named_options(command: Command) -> Command:
    """Add the options that name features of a table."""
    for name, words in NAMED.items():
        option = click.option(f"--{name}", multiple=True, metavar="NAME", help=words)
        command = option(command)
    return command


class TableShape(NamedTuple):
    """What is public about a table to simulate."""

    features: int
    family: Family
    rows_per_unit: int = 1
    schema: TableSchema | None = None

    def expected(self, named: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        """Return what `expected_table` takes of the features, those of some settings by name.

        Without a schema they are numbers called x0, x1, …
        """
        import numpy as np

        from dpscreen.models.regression_table import places_of
        from dpscreen.planning.regression_plan import simulated_places
        from dpscreen.solvers.marginals import is_yes_no

        if self.schema is None:
            features = [f"x{j}" for j in range(self.features)]
            zero_one = np.zeros(self.features, dtype=bool)
        else:
            features = list(self.schema.feature_names)
            zero_one = is_yes_no(self.schema.feature_bounds)
        with wrong_usage():
            found = {name: places_of(named.get(name, ()), features) for name in NAMED}
        places = {name: simulated_places(zero_one, one) for name, one in found.items()}
        return {"n_features": self.features, "levels": int(zero_one.sum()), **places}


def table_shape(
    features: int | None, schema_file: Path | None, formula: str | None = None
) -> TableShape:
    """Return what a schema declares, or so many features."""
    from dpscreen.families import family_of

    if formula is not None and schema_file is None:
        raise click.UsageError("--formula needs --schema, which declares its columns.")
    if features is not None and schema_file is None:
        return TableShape(features, family_of(None))
    if features is not None or schema_file is None:
        raise click.UsageError("Give --features or --schema: one of them.")

    return shape_of(checked_schema(schema_file, formula))


def shape_of(schema: TableSchema) -> TableShape:
    """Return what a schema declares."""
    from dpscreen.families import family_of

    family = family_of(schema.classes)
    return TableShape(len(schema.feature_names), family, schema.rows_per_unit, schema)


# --- files ----------------------------------------------------------------------------------------


def loaded(path: Path) -> LoadedModel:
    """Return the model in a file, or fail with exit code 1."""
    from dpscreen.models import ModelFileProblem, load

    try:
        model = load(path)
    except ModelFileProblem as problem:
        folder, hint = path.absolute().parent, ""
        if folder.is_dir() and not path.exists():
            close = meant(path.name, [one.name for one in folder.glob("*.json")])
            hint = f" Did you mean {path.with_name(close)}?" if close else ""
        raise click.ClickException(f"{problem}{hint}") from None
    if not model.privacy_.holds:
        warn("the privacy statement of this model does not hold.")
    return model


def check_output(output: Path | None, *, force: bool) -> None:
    """Refuse an output that cannot be written, before any work is done."""
    if output is None:
        return
    if output.exists() and not force:
        raise click.ClickException(f"{output} exists already; give another name, or --force.")
    if not output.absolute().parent.is_dir():
        raise click.ClickException(f"There is no directory {output.parent}.")


def checked_schema(path: Path, formula: str | None = None) -> TableSchema:
    """Read a schema, with another formula if one is given; refuse one that is not filled in."""
    from dpscreen.tables.schema import load_schema

    schema = load_schema(path)
    if formula is not None:
        schema = schema.with_formula(formula)
    schema.check()
    return schema


def usable(schema: TableSchema) -> str:
    """Return in a sentence what a schema without problems declares."""

    from dpscreen.families import family_of

    low, high = map(number, schema.field(schema.target).declared_bounds)
    words = family_of(schema.classes).target.range_words
    may_be = words.format(low=low, high=high, classes=schema.class_names)
    unit = "one row" if schema.unit is None else f"one value of {schema.unit!r}"
    most = f", at most {how_many(schema.rows_per_unit, 'row')} of each" if schema.unit else ""
    columns = how_many(len(schema.columns), "column")
    features = how_many(len(schema.feature_names), "feature")
    return textwrap.fill(
        f"The schema can be used: {columns} and {features}; the target {schema.target!r} {may_be}; "
        f"the privacy unit is {unit}{most}.",
        WIDTH,
    )
