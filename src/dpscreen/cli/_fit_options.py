"""The options of `dpscreen fit`, checked before any private cell is read."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from dpscreen.cli import console
from dpscreen.cli.console import wrong_usage

if TYPE_CHECKING:
    from dpscreen.planning.fitting import Booking
    from dpscreen.planning.methods import FitRequest
    from dpscreen.tables.schema import TableSchema


class FamilyNames(NamedTuple):
    """What people call the two models of a family and its outcomes.

    `others` are the methods that its sparse model is compared with; the last is not private.
    """

    sparse: str
    table: str
    outcomes: str
    others: tuple[str, ...]


FAMILY_NAMES = {
    "gaussian": FamilyNames(
        "lasso", "ols", "continuous outcomes (the default)", ("dp-fw", "rnm-screen", "lasso")
    ),
    "binomial": FamilyNames(
        "logistic",
        "logit",
        "binary outcomes (the default there)",
        ("noisy-descent", "outcome-fw", "class-means", "logistic"),
    ),
    "poisson": FamilyNames(
        "poisson-lasso", "poisson", "counts and other outcomes that are not negative", ("poisson",)
    ),
}
"""By families; here, as these are slow to import."""
SPARSE = {family: one.sparse for family, one in FAMILY_NAMES.items()}
TABLES = {family: one.table for family, one in FAMILY_NAMES.items()}
COMPARED = {family: (f"private-{one.sparse}", *one.others) for family, one in FAMILY_NAMES.items()}
OURS = (*SPARSE.values(), *TABLES.values())
EACH = "; ".join(f"{one.sparse} and {one.table} of {one.outcomes}" for one in FAMILY_NAMES.values())
ABOUT = (
    f"A sparse model that selects features, or a regression table of all: {EACH}. free-screen: a "
    "sparse linear model by a path that is screened halfway; rnm-screen, adp-screen and dp-fw: the "
    "methods of the paper."
)
RATE = click.option(
    "--rate",
    type=console.POSITIVE,
    help="Assumed mean of the outcome: the share of the second class, or the mean of a count.  "
    "[default: 0.5, or 1]",
)
MODELS = {name: f"private-{name}" for name in OURS} | {
    name: name for name in ("free-screen", "rnm-screen", "adp-screen", "dp-fw")
}
"""What people call the models, and the methods that fit them."""


def _percentage(_context: click.Context, _option: click.Parameter, value: str) -> float:
    """Return the share that 5%, 5 % or 0.05 stands for."""
    number, percent, rest = value.partition("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = -1.0
    if rest.strip() or not 0 <= share <= 1:
        raise click.BadParameter("must be a percentage, as in 5%, or a share, as in 0.05.")
    return share


MOST_UNREADABLE = click.option(
    "--most-unreadable",
    metavar="PERCENT",
    default="5%",
    show_default=True,
    callback=_percentage,
    help="A fit stops if more of the cells of a column cannot be read. Choose it without the rows.",
)


SETTINGS = (
    *("calibration", "radius", "n_iter", "clip", "offset"),
    *("screening_share", "screening_delta_share", "screen_at", "interest", "required"),
)
"""Options that only some methods have, by the names that estimators have for them."""


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
    from dpscreen.models.regression_table import places_of
    from dpscreen.models.release import checked_about
    from dpscreen.planning.fitting import Booking, request_for, usual_purpose
    from dpscreen.planning.methods import estimator
    from dpscreen.privacy import Budget
    from dpscreen.privacy.ledger import PrivacyLedger
    from dpscreen.privacy.ledger.records import one_line
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
        for name in console.NAMED:
            places_of(chosen.get(name, ()), schema.feature_names)
    booking = None
    if options.ledger is not None:
        if chosen.get("calibration") == "published":
            raise click.UsageError("--ledger: the published calibration has no true cost to book.")
        purpose, others = usual_purpose(schema, method), options.other_rows or options.no_check
        if options.purpose is not None:
            with wrong_usage():
                purpose = one_line("--purpose", options.purpose)

        ledger = PrivacyLedger(options.ledger, other_rows=others)
        booking = Booking.of(ledger, schema, purpose)
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
    from dpscreen.families import default_words_of, family_of

    if options.model is not None:
        return MODELS[options.model]
    if words := default_words_of(schema.classes, schema.target_bounds[0]):
        console.say(words.format(target=schema.target))
    return family_of(schema.classes).sparse.method


def check_budget(ready: PreparedFit) -> None:
    """Refuse with exit code 3 what the ledger does not cover, before any row is read."""
    if ready.booking is not None:
        refusal = ready.booking.shortfall(ready.request.budget)
        if refusal is not None:
            raise console.Refusal(refusal)
