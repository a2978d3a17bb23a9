"""Work that the server leaves to processes of its own.

Simulations share one process, which knows public numbers only. A release has a process to itself:
it alone reads rows, they are gone with it, and it can be ended at any moment. None outlives the
server.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import import_module
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpscreen._core.files import file_state, write_text
from dpscreen.studio.shelf import ReleaseRecord, Shelf
from dpscreen.tables.declaration import MOST_UNREADABLE

if TYPE_CHECKING:
    from dpscreen.planning.curve import BudgetPoint
    from dpscreen.planning.setting import Setting

HEAVY = (
    "dpscreen.planning.curve_points",
    "dpscreen.planning.methods",
    "dpscreen.models.page",
    "dpscreen.privacy.kernels",
    "dpscreen.rows.kernels",
)
"""What every process of ours needs, and what takes long to load."""


# How processes are made: where it is safe, from one that has everything loaded. It is started with
# nothing of the server's, and only ever loads: what forks off it has drawn no noise and read no
# row. Elsewhere each process starts anew: macOS does not like forks, and before 3.11.1 other users
# of the machine could talk to the one that forks (CVE-2022-42919).
PROCESSES: Any = multiprocessing.get_context("spawn")
if sys.platform.startswith("linux") and sys.version_info >= (3, 11, 1):
    PROCESSES = multiprocessing.get_context("forkserver")
    PROCESSES.set_forkserver_preload(list(HEAVY))
MOST_DRY_ROWS, MOST_DRY_CELLS, USUAL_ROWS = 20_000, 4_000_000, 2_000
DRY_TABLES = 6
"""How often the page of a dry run simulates: it serves to be looked at, not to be handed on."""
CHANGED = (
    "The table is not the one that was declared: it changed since the studio was started. Nothing "
    "was booked. Start the studio again and check the columns."
)
SMALLER = (
    "The dry run simulates {} rows at most, too few for this table. A fit of as many rows as you "
    "expect would not be refused."
)
UNSAVED = (
    "The model is released, but could not be written to disk. Download it now: it is lost when "
    "the studio ends."
)


def end_with_parent() -> None:
    """End this process when the one that started it is gone, however it ended."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    sentinel = parent.sentinel

    def watch() -> None:
        wait([sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


# --- orders ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FitOrder:
    """The parameters of a fit: public values only."""

    descriptor: dict[str, Any]
    method: str
    epsilon: float
    delta: float
    n_rows: int | None
    inference: str | None
    settings: dict[str, list[str]] = field(default_factory=dict)

    def prepared(self, n_rows: int | None) -> tuple[Any, Any]:
        """Return the schema and the estimator, with everything checked; raise if it is wrong."""
        from dpscreen.planning.fitting import FitFailed, request_for
        from dpscreen.planning.methods import estimator
        from dpscreen.privacy import Budget
        from dpscreen.tables.schema import TableSchema

        schema = TableSchema.from_dict(self.descriptor)
        schema.check()
        budget = Budget(self.epsilon, self.delta)
        try:
            given: Any = {"inference": self.inference, "settings": self.settings}
            request = request_for(schema, budget, n_rows=n_rows, **given)
            return schema, estimator(self.method, request)
        except (ValueError, TypeError) as problem:
            raise FitFailed(str(problem)) from None


@dataclass(frozen=True)
class ReleaseOrder:
    """A fit of a table, with the state in which the table was declared, and where it goes."""

    fit: FitOrder
    table: Path
    state: tuple[int, ...]
    folder: Path
    ledger: Path
    ticket: str
    most_unreadable: float | None = MOST_UNREADABLE
    """As in `check_rows`; None: the rows are not checked."""

    def check_table(self) -> None:
        """Refuse a table that has changed; its rows are not looked at."""
        from dpscreen.planning.fitting import FitFailed

        if file_state(self.table) != self.state:
            raise FitFailed(CHANGED)


# --- the release ----------------------------------------------------------------------------------

Report = Callable[[tuple[str, Any]], None]


def carry_out(order: ReleaseOrder, pipe: Connection) -> None:
    """Release in a process of its own; send ("stage", share), then "done" or "failed"."""
    end_with_parent()
    with warnings.catch_warnings(record=True):  # nothing is printed: it may hold a value
        warnings.simplefilter("always")
        pipe.send(_outcome(order, pipe.send))
    pipe.close()


def _outcome(order: ReleaseOrder, report: Report) -> tuple[str, Any]:
    from dpscreen.planning.fitting import FitFailed
    from dpscreen.privacy import BudgetExceeded, LedgerProblem
    from dpscreen.tables.declaration import DataError

    try:
        return "done", _release(order, report)
    except (FitFailed, BudgetExceeded, LedgerProblem, DataError) as problem:
        return "failed", str(problem)
    except BaseException as error:  # whatever it was, its text may hold a value
        return "failed", f"The release failed ({type(error).__name__})."


def _release(order: ReleaseOrder, report: Report) -> int:
    """Read and check, book, fit and keep: in this order."""
    from dpscreen.models.file import encoded
    from dpscreen.planning.fitting import (
        Booking,
        FitFailed,
        checked_rows,
        fit_rows,
        usual_purpose,
    )
    from dpscreen.privacy import Budget
    from dpscreen.privacy.ledger import PrivacyLedger
    from dpscreen.tables.schema import schema_text

    schema, model = order.fit.prepared(order.fit.n_rows)
    purpose = usual_purpose(schema, order.fit.method)
    ledger = PrivacyLedger(order.ledger, other_rows=order.most_unreadable is None)
    booking = Booking.of(ledger, schema, purpose, mark=order.ticket)
    refusal = booking.shortfall(Budget(order.fit.epsilon, order.fit.delta))
    if refusal is not None:
        raise FitFailed(refusal)
    order.check_table()
    rows = checked_rows(
        order.table,
        schema,
        "dpscreen studio --no-check",
        order.most_unreadable,
        progress=lambda share: report(("reading", share)),
        watch=lambda done, all_: report(("passes", done / all_ if all_ else None)),
    )
    order.check_table()  # rows of a file that changed meanwhile are of neither
    report(("fitting", None))
    fit_rows(model, rows, booking)
    report(("saving", None))
    # The model is kept before anything else, as the budget is gone; its page can be made later.
    declared = schema.to_dict()
    content = encoded(replace(model.released(), schema=declared))
    files = {"model.json": content, "schema.json": schema_text(declared).encode()}
    shared = ("method", "epsilon", "delta", "n_rows", "inference", "settings")
    record = ReleaseRecord(
        ticket=order.ticket,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        table=order.table.name,
        target=schema.target,
        ledger=order.ledger.name,
        **{name: getattr(order.fit, name) for name in shared},
    )
    try:
        return Shelf(order.folder, order.ledger).keep(record, files)
    except OSError:  # the server hands the model out
        report(("unsaved", content))
        raise FitFailed(UNSAVED) from None


# --- simulations, and pages of what is released already -------------------------------------------


def start_simulations() -> None:
    """Begin in a new process: load what takes long, if it is not there yet."""
    end_with_parent()
    for name in HEAVY:
        import_module(name)


def simulated_point(setting: Setting, epsilon: float) -> BudgetPoint | None:
    """Simulate one point of what budgets buy."""
    from dpscreen.planning.curve_points import budget_point

    return budget_point(setting, epsilon)


def dry_run_page(order: FitOrder, rows: int | None) -> str:
    """Fit simulated rows of the schema's shape, and return the page that would come out."""
    import numpy as np

    from dpscreen.models.refusal import RequestedTable, table_needs
    from dpscreen.planning.fitting import FitFailed, FitRefused, fit_rows
    from dpscreen.planning.model_page import expected_of
    from dpscreen.planning.setting import Setting
    from dpscreen.privacy import Budget
    from dpscreen.tables.dummy import simulate_table
    from dpscreen.tables.schema import TableSchema

    width = len(TableSchema.from_dict(order.descriptor).feature_names)
    n_rows = min(rows or USUAL_ROWS, MOST_DRY_ROWS, max(500, MOST_DRY_CELLS // width))
    schema, model = order.prepared(None if order.n_rows is None else n_rows)
    dummy = simulate_table(schema, n_rows, rng=np.random.default_rng(0))
    try:
        fit_rows(model, schema.encode(dummy), None)
    except FitRefused:
        if rows is None or rows <= n_rows:
            raise
        requested = RequestedTable(rows, width, Budget(model.epsilon, model.delta))
        if table_needs(model.table_rule, requested) is not None:  # all rows would be refused, too
            raise
        raise FitFailed(SMALLER.format(n_rows)) from None
    expected, family = None, model.family  # None leaves it to the page
    if order.method == family.sparse.method and family.simulation.rate is None:
        setting = Setting(
            *(n_rows, width, order.epsilon, order.delta),
            family=family.name,
            rows_per_unit=schema.rows_per_unit,
            split=order.inference is not None,
        )
        expected = expected_of(setting, repetitions=DRY_TABLES)
    return _page(model, schema, n_rows=n_rows, expected=expected, simulated=True)


def released_page(folder: Path, ledger: dict[str, Any] | None) -> str:
    """Return the page of a model that is released, and keep it beside the model."""
    from dpscreen.models import load

    model = load(folder / "model.json")
    text = _page(model, model.schema, ledger=ledger)
    write_text(folder / "page.html", text)
    return text


def _page(model: Any, schema: Any, **more: Any) -> str:
    from dpscreen.planning.model_page import write_model_page

    with tempfile.TemporaryDirectory() as place:
        path = write_model_page(model, Path(place) / "page.html", schema=schema, **more)
        return path.read_text(encoding="utf-8")
