"""What `dpscreen fit` was asked for, checked before any private cell is read."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpscreen.cli.console import (
    POSITIVE,
    SHARE,
    Refusal,
    WholeWithin,
    checked_schema,
    data_failures,
    ledger_failures,
    sentence,
    wrong_usage,
)

if TYPE_CHECKING:
    from dpscreen.planning.fitting import Booking
    from dpscreen.planning.methods import FitRequest
    from dpscreen.tables.schema import TableSchema

BY_NAME = ("free-screen", "rnm-screen", "adp-screen", "dp-fw")
MODELS = {name: f"private-{name}" for name in ("lasso", "ols", "logistic", "logit")} | {
    name: name for name in BY_NAME
}
"""What people call the models, and the methods that fit them."""
METHODS = tuple(MODELS.values())


def _schedule(_context: click.Context, _option: click.Parameter, value: str | None) -> Any:
    """Return "all", "last" or a whole number."""
    if value is None or value in ("all", "last"):
        return value
    if not value.isdecimal() or int(value) < 1:
        raise click.BadParameter("must be all, last, or k for every k-th step.")
    return int(value)


PAPER_OPTIONS = (
    click.option(
        "--calibration",
        type=click.Choice(["proven", "published"]),
        help="proven (default), or the paper's constants, whose stated epsilon does not hold.",
    ),
    click.option("--radius", type=POSITIVE, help="L1 radius, in the target's units."),
    click.option("--iterations", "n_iter", type=WholeWithin(min=1), help="Number of steps T."),
    click.option("--clip", type=POSITIVE, help="Bound on residuals, in the target's units."),
    click.option("--screening-share", type=SHARE, help="Share of the budget for screening."),
    click.option(
        "--screening-delta-share",
        type=SHARE,
        help="Share of delta for screening, in the published calibration.",
    ),
    click.option(
        "--screen-at", callback=_schedule, help="Screen at all steps, last, or k: each k-th."
    ),
)
SETTINGS = (
    *("calibration", "radius", "n_iter", "clip"),
    *("screening_share", "screening_delta_share", "screen_at"),
)
"""What the options above set, by the names that estimators have for it."""


def paper_options(command: Any) -> Any:
    """Add the options of the paper's methods to a command."""
    for option in reversed(PAPER_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True)
class FitOptions:
    """The options, as given."""

    data: Path
    schema_file: Path
    epsilon: float
    delta: float
    model: str | None
    method: str | None
    inference: str | None
    max_features: int | None
    rows_public: int | None
    ledger: Path | None
    purpose: str | None
    author: str | None
    date: str | None
    dry_run: bool
    output: Path | None
    report: Path | None
    force: bool
    as_json: bool
    calibration: str | None = None
    radius: float | None = None
    n_iter: int | None = None
    clip: float | None = None
    screening_share: float | None = None
    screening_delta_share: float | None = None
    screen_at: str | int | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """Return the parameters of the method that were given."""
        given = {name: getattr(self, name) for name in SETTINGS}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def about(self) -> dict[str, str]:
        """Return what is said of the model, as far as it is."""
        told = {"author": self.author, "date": self.date, "purpose": self.purpose}
        return {name: text for name, text in told.items() if text}


@dataclass(frozen=True)
class PreparedFit:
    """All that can be said of a fit before a private cell is read; the model is not fitted yet."""

    options: FitOptions
    schema: TableSchema
    model: Any
    request: FitRequest
    booking: Booking | None
    method: str


def prepared(options: FitOptions) -> PreparedFit:
    """Check files, schema, method and ledger, and set everything up."""
    _check_files(options)
    _check_about(options)
    schema = _matching_schema(options)
    method = _method(options, schema)
    model, request = _set_up(options, schema, method)
    booking = _opened_ledger(options, schema, method)
    return PreparedFit(options, schema, model, request, booking, method)


def _check_about(options: FitOptions) -> None:
    from dpscreen.models.release import checked_about

    try:
        checked_about(options.about)
    except ValueError as error:
        raise click.UsageError(sentence(error)) from None


def _method(options: FitOptions, schema: TableSchema) -> str:
    """Return the method: as asked for, or by what the target is."""
    asked = None if options.model is None else MODELS[options.model]
    if asked is not None and options.method not in (None, asked):
        raise click.UsageError("Give --model or --method, not two that differ.")
    found = options.method or asked
    if found is None:
        outcomes = schema.classes is not None
        found = MODELS["logistic" if outcomes else "lasso"]
        if outcomes:
            click.echo(
                f"The target {schema.target!r} has two outcomes, so their chances are modelled "
                "(--model logistic).",
                err=True,
            )
    return found


# --- files ----------------------------------------------------------------------------------------


def _check_files(options: FitOptions) -> None:
    """Refuse outputs that cannot be written, or that would replace an input."""
    if options.output is None and not options.dry_run:
        raise click.UsageError("Give -o, where the model goes, or --dry-run.")
    outputs = {"-o": options.output, "--report": options.report}
    taken = {one.resolve() for one in (options.data, options.schema_file)}
    ledger = None if options.ledger is None else options.ledger.resolve()
    for name, path in outputs.items():
        if path is None:
            continue
        if path.resolve() in taken or ledger in (path.resolve(), *path.resolve().parents):
            raise click.BadParameter("would replace another file of this fit.", param_hint=name)
        taken.add(path.resolve())
        _check_output(path, name, options)


def _check_output(path: Path, name: str, options: FitOptions) -> None:
    if not path.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no directory {path.parent}.", param_hint=name)
    if path.exists() and not options.force:
        raise click.ClickException(f"{path} exists already; give another name, or --force.")
    if not options.dry_run:
        try:
            with tempfile.NamedTemporaryFile(prefix=".dpscreen-", dir=path.absolute().parent):
                pass
        except OSError as error:
            raise click.ClickException(f"Cannot write {path}: {error.strerror}.") from None


# --- schema, method and budget --------------------------------------------------------------------


def _matching_schema(options: FitOptions) -> TableSchema:
    """Read the schema; refuse one that is not filled in, and a table whose columns differ.

    Of the table only the names of its columns are looked at.
    """
    from dpscreen.tables.csv import matched_header

    schema = checked_schema(options.schema_file)
    with data_failures():
        matched_header(options.data, schema)
    return schema


def _set_up(options: FitOptions, schema: TableSchema, method: str) -> tuple[Any, FitRequest]:
    """Return the estimator, not yet fitted, with all its parameters checked; and what was asked."""
    from dpscreen.planning.fitting import request_for
    from dpscreen.planning.methods import estimator
    from dpscreen.privacy import Budget

    try:
        request = request_for(
            schema,
            Budget(options.epsilon, options.delta),
            n_rows=options.rows_public,
            max_features=options.max_features,
            inference=options.inference,
            settings=options.settings,
        )
        return estimator(method, request), request
    except (ValueError, TypeError) as error:
        raise click.UsageError(str(error)) from None


def _opened_ledger(options: FitOptions, schema: TableSchema, method: str) -> Booking | None:
    """Open the ledger, verified."""
    if options.ledger is None:
        return None
    if options.calibration == "published":
        raise click.UsageError("--ledger: the published calibration has no true cost to book.")
    from dpscreen.planning.fitting import Booking
    from dpscreen.privacy.ledger import PrivacyLedger

    purpose = _purpose(options, schema, method)
    with ledger_failures():
        return Booking.of(PrivacyLedger(options.ledger), schema, purpose)


def _purpose(options: FitOptions, schema: TableSchema, method: str) -> str:
    from dpscreen.planning.fitting import usual_purpose
    from dpscreen.privacy.ledger.records import one_line

    if options.purpose is None:
        return usual_purpose(schema, method)
    with wrong_usage():
        return one_line("--purpose", options.purpose)


def check_budget(ready: PreparedFit) -> None:
    """Refuse early what the ledger would refuse, before any row is read: with exit code 3, if the
    budget does not cover it.
    """
    if ready.booking is None:
        return
    with ledger_failures():
        refusal = ready.booking.shortfall(ready.request.budget)
    if refusal is not None:
        raise Refusal(refusal)
