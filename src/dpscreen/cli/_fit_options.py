"""The options of `dpscreen fit`, checked before any private cell is read."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from dpscreen.cli import console
from dpscreen.cli.console import COUNT, POSITIVE, SHARE, wrong_usage

if TYPE_CHECKING:
    from dpscreen.planning.fitting import Booking
    from dpscreen.planning.methods import FitRequest
    from dpscreen.tables.schema import TableSchema

SPARSE = {"gaussian": "lasso", "binomial": "logistic", "poisson": "poisson-lasso"}
TABLES = {"gaussian": "ols", "binomial": "logit", "poisson": "poisson"}
"""What people call the models of each family; here, as families are slow to import."""

ABOUT = {
    "lasso": "finds the few features that matter",
    "free-screen": "does so by a path that is screened halfway",
    "ols": "is a regression table of all of them",
    "logistic": "is for binary outcomes, and the default where the target is binary",
    "logit": "is a table of all odds ratios",
    "poisson": "is a table of rate ratios of counts and other outcomes that are not negative",
    "poisson-lasso": "is its sparse sibling",
}

COMPARED = {
    "gaussian": ("private-lasso", "dp-fw", "rnm-screen", "lasso"),
    "binomial": ("private-logistic", "noisy-descent", "outcome-fw", "class-means", "logistic"),
    "poisson": ("private-poisson-lasso", "poisson"),
}
"""The methods that are compared for each family of outcomes; the last is not private."""

OURS = (*SPARSE.values(), *TABLES.values())
SELECTING = ", ".join(f"private-{name}" for name in SPARSE.values())
MODELS = {name: f"private-{name}" for name in OURS} | {
    name: name for name in ("free-screen", "rnm-screen", "adp-screen", "dp-fw")
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
    click.option("--iterations", "n_iter", type=COUNT, help="Number of steps T."),
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
    *("calibration", "radius", "n_iter", "clip", "offset"),
    *("screening_share", "screening_delta_share", "screen_at", "interest", "required"),
)
"""What these options set, by the names that estimators have for it."""


def paper_options(command: Any) -> Any:
    """Add the options of the paper's methods to a command."""
    for option in reversed(PAPER_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True)
class PreparedFit:
    """All that can be said of a fit before a private cell is read; the model is not fitted yet.

    `options` are those of the command, by their names there, and `settings` for the method; `about`
    is what is said of the model, as far as it is.
    """

    options: Any
    schema: TableSchema
    model: Any
    request: FitRequest
    booking: Booking | None
    method: str
    about: dict[str, str]


def prepared(given: dict[str, Any]) -> PreparedFit:
    """Check files, schema, method and ledger, and set everything up.

    Of the table only the names of its columns are read.
    """
    from dpscreen.models.release import checked_about
    from dpscreen.planning.fitting import request_for
    from dpscreen.planning.methods import estimator
    from dpscreen.privacy import Budget
    from dpscreen.tables.reading import check_columns

    settings = {name: given.pop(name) for name in SETTINGS}
    chosen = {name: value for name, value in settings.items() if value not in (None, ())}
    options = SimpleNamespace(**given, settings=chosen)
    _check_files(options)
    about = {name: given[name] for name in ("author", "date", "purpose") if given[name]}
    try:
        checked_about(about)
    except ValueError as error:
        raise click.UsageError(console.sentence(error)) from None
    schema = console.checked_schema(options.schema_file, options.formula)
    check_columns(options.data, schema)
    method = _method(options, schema)
    with wrong_usage(ValueError, TypeError):
        request = request_for(
            schema,
            Budget(options.epsilon, options.delta),
            n_rows=options.rows_public,
            max_features=options.max_features,
            inference=options.inference,
            settings=chosen,
        )
        model = estimator(method, request)
    booking = _opened_ledger(options, schema, method)
    return PreparedFit(options, schema, model, request, booking, method, about)


def _check_files(options: Any) -> None:
    """Refuse outputs that cannot be written, or that would replace an input."""
    if options.output is None and not options.dry_run:
        raise click.UsageError("Give -o, where the model goes, or --dry-run.")
    inputs = (options.data, options.schema_file)
    taken = {one.resolve() for one in inputs if isinstance(one, Path)}
    ledger = None if options.ledger is None else options.ledger.resolve()
    for name, path in (("-o", options.output), ("--report", options.report)):
        if path is None:
            continue
        folder = path.absolute().parent
        if path.resolve() in taken or ledger in (path.resolve(), *path.resolve().parents):
            raise click.BadParameter("would replace another file of this fit.", param_hint=name)
        taken.add(path.resolve())
        if not folder.is_dir():
            raise click.BadParameter(f"there is no directory {path.parent}.", param_hint=name)
        console.check_output(path, force=options.force)
        if not options.dry_run:
            with (
                console.write_failures(path),
                tempfile.NamedTemporaryFile(prefix=".dpscreen-", dir=folder),
            ):
                pass


def _method(options: Any, schema: TableSchema) -> str:
    """Return the method: as given, or the one that suits the target."""
    from dpscreen.solvers.family import default_words_of, family_of

    model = None if options.model is None else MODELS[options.model]
    if model is not None and options.method not in (None, model):
        raise click.UsageError("Give --model or --method, not two that differ.")
    if found := options.method or model:
        return found
    if words := default_words_of(schema.classes, schema.target_bounds[0]):
        console.say(words.format(target=schema.target))
    return family_of(schema.classes).sparse.method


def _opened_ledger(options: Any, schema: TableSchema, method: str) -> Booking | None:
    """Open the ledger, verified."""
    if options.ledger is None:
        return None
    if options.settings.get("calibration") == "published":
        raise click.UsageError("--ledger: the published calibration has no true cost to book.")
    from dpscreen.planning.fitting import Booking, usual_purpose
    from dpscreen.privacy.ledger import PrivacyLedger
    from dpscreen.privacy.ledger.records import one_line

    purpose = usual_purpose(schema, method)
    if options.purpose is not None:
        with wrong_usage():
            purpose = one_line("--purpose", options.purpose)
    others = options.other_rows or options.no_check
    return Booking.of(PrivacyLedger(options.ledger, other_rows=others), schema, purpose)


def check_budget(ready: PreparedFit) -> None:
    """Refuse with exit code 3 what the ledger does not cover, before any row is read."""
    if ready.booking is not None:
        refusal = ready.booking.shortfall(ready.request.budget)
        if refusal is not None:
            raise console.Refusal(refusal)
