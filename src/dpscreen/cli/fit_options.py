"""What `dpscreen fit` was asked for, checked before any private cell is read."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpscreen.cli import console
from dpscreen.cli.ledger import Refusal, ledger_failures

if TYPE_CHECKING:
    from dpscreen.planning.methods import FitRequest
    from dpscreen.privacy.budget import ZCDP
    from dpscreen.privacy.ledger import PrivacyLedger
    from dpscreen.tables.schema import TableSchema

METHODS = ("private-lasso", "rnm-screen", "dp-fw")


@dataclass(frozen=True)
class FitOptions:
    """The options, as given."""

    data: Path
    schema_file: Path
    epsilon: float
    delta: float
    method: str
    inference: str | None
    max_features: int | None
    rows_public: int | None
    ledger_file: Path | None
    purpose: str | None
    dry_run: bool
    output: Path | None
    report: Path | None
    force: bool
    as_json: bool


@dataclass
class Booking:
    """A ledger that is told what the reservation is for, and remembers that it was made."""

    ledger: PrivacyLedger
    purpose: str
    unit: str
    booked: bool = field(default=False, init=False)

    def reserve(self, cost: ZCDP, *, purpose: str) -> object:
        """Book the cost for good, or raise `BudgetRefused`."""
        made = self.ledger.reserve(cost, purpose=self.purpose, detail=purpose, unit=self.unit)
        self.booked = True
        return made


# --- files ----------------------------------------------------------------------------------------


def check_files(asked: FitOptions) -> None:
    """Refuse outputs that cannot be written, or that would replace an input."""
    if asked.output is None and not asked.dry_run:
        raise click.UsageError("Give -o, where the model goes, or --dry-run.")
    outputs = {"-o": asked.output, "--report": asked.report}
    inputs = [asked.data, asked.schema_file, asked.ledger_file]
    taken = {one.resolve() for one in inputs if one is not None}
    for name, path in outputs.items():
        if path is None:
            continue
        if path.resolve() in taken:
            raise click.BadParameter("would replace another file of this fit.", param_hint=name)
        taken.add(path.resolve())
        _check_output(path, name, asked)


def _check_output(path: Path, name: str, asked: FitOptions) -> None:
    if path.is_dir():
        raise click.BadParameter(f"{path} is a directory.", param_hint=name)
    if not path.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no directory {path.parent}.", param_hint=name)
    if path.exists() and not asked.force:
        raise click.ClickException(f"{path} exists already; give another name, or --force.")
    if not asked.dry_run:
        try:
            with tempfile.NamedTemporaryFile(prefix=".dpscreen-", dir=path.absolute().parent):
                pass
        except OSError as error:
            raise click.ClickException(f"Cannot write {path}: {error.strerror}.") from None


# --- schema, method and budget --------------------------------------------------------------------


@contextmanager
def data_failures() -> Iterator[None]:
    """Turn what a schema or table raises into a sentence and exit code 1."""
    from dpscreen.tables.problem import DataError

    try:
        yield
    except DataError as problem:
        raise click.ClickException(console.sentence(problem)) from None


def checked_schema(asked: FitOptions) -> TableSchema:
    """Read the schema; refuse one that is not filled in, and a table whose columns differ.

    Of the table only the names of its columns are looked at.
    """
    from dpscreen.tables.header import match_names, read_header
    from dpscreen.tables.schema import load_schema

    with data_failures():
        schema = load_schema(asked.schema_file)
        schema.check()
        match_names(asked.data, read_header(asked.data, schema).names, schema)
    return schema


def made_order(asked: FitOptions, schema: TableSchema) -> FitRequest:
    """Return what to fit, of public values only."""
    from dpscreen.planning.methods import FitRequest
    from dpscreen.privacy import Budget

    return FitRequest(
        Budget(asked.epsilon, asked.delta),
        schema.feature_bounds,
        schema.target_bounds,
        n_rows=asked.rows_public,
        rows_per_unit=schema.rows_per_unit,
        max_features=asked.max_features,
        inference=asked.inference,
    )


def set_up(asked: FitOptions, schema: TableSchema) -> tuple[Any, FitRequest]:
    """Return the estimator, not yet fitted, with all its parameters checked."""
    from dpscreen.planning.methods import estimator

    if asked.method != "private-lasso" and asked.rows_public is None:
        raise click.UsageError(
            f"{asked.method} needs --rows-public, about how many rows there are: its number of "
            "steps is set before the rows are read."
        )
    try:
        order = made_order(asked, schema)
        return estimator(asked.method, order), order
    except (ValueError, TypeError) as error:
        raise click.UsageError(str(error)) from None


def counted(schema: TableSchema) -> str:
    """Say what a disclosed number of rows gives away (docs/privacy.md, Lemma 19)."""
    told = "the number of rows will be disclosed, as --rows-public is not given."
    if schema.unit is None:
        return (
            f"{told} Whoever knows all the other rows can then tell by counting whether a row is "
            "in the data; only what it holds is protected."
        )
    about = (
        f"It is the number of values of {schema.unit!r} that are used"
        if schema.rows_per_unit == 1
        else f"It is how many rows the values of {schema.unit!r} have together"
    )
    rows = "" if schema.rows_per_unit == 1 else ", and with how many rows"
    return (
        f"{told} {about}: whoever knows all the others can tell by counting whether someone is in "
        f"the data{rows}. Only what those rows hold is protected. Give --rows-public, about right "
        "and not counted, to hide the rest too."
    )


def opened_ledger(asked: FitOptions, schema: TableSchema) -> Booking | None:
    """Open the ledger, verified."""
    if asked.ledger_file is None:
        return None
    from dpscreen.privacy.ledger import PrivacyLedger
    from dpscreen.privacy.unit import ROW

    purpose = _purpose(asked, schema)
    unit = schema.privacy_unit or ROW
    with ledger_failures():
        return Booking(PrivacyLedger(asked.ledger_file), purpose, str(unit))


def _purpose(asked: FitOptions, schema: TableSchema) -> str:
    from dpscreen._core.words import shortened
    from dpscreen.privacy.ledger.records import one_line

    if asked.purpose is None:
        return f"model of {shortened(schema.target, 60)} by {asked.method}"
    try:
        return one_line("--purpose", asked.purpose)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def check_budget(asked: FitOptions, booking: Booking | None) -> None:
    """Refuse early what the ledger would refuse, before any row is read: with exit code 3, if the
    budget does not cover it.
    """
    if booking is None:
        return
    from dpscreen.privacy import ZCDP, Budget
    from dpscreen.privacy.ledger.export import affordable_epsilon

    with ledger_failures():
        booking.ledger.check_unit(booking.unit)
        remaining, delta = booking.ledger.remaining, booking.ledger.budget.delta
    if ZCDP.within(Budget(asked.epsilon, asked.delta)) > remaining:
        left = affordable_epsilon(remaining, delta)
        raise Refusal(
            f"The budget does not cover this fit: the ledger has epsilon {left:g} at delta "
            f"{delta:g} left. Nothing was read, booked or written."
        )
