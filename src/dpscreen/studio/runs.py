"""A release while it is under way, and simulations in the background."""

from __future__ import annotations

import multiprocessing
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from dpscreen._core.words import duration
from dpscreen.studio import work
from dpscreen.studio.work import PROCESSES, ReleaseOrder

if TYPE_CHECKING:
    from dpscreen.planning.curve import BudgetCurve
    from dpscreen.planning.setting import Setting

STAGES = {
    "starting": "Starting",
    "reading": "Reading the table, and checking it against its schema",
    "passes": "Fitting, part by part",
    "fitting": "Fitting",
    "saving": "Saving the model",
}


class ReleaseRun:
    """One release: started once, watched, and ended by itself or by whoever cancels it."""

    def __init__(self, order: ReleaseOrder) -> None:
        self.order = order
        self.ticket = order.ticket
        self.stage, self.share = "starting", None
        self.outcome: str | None = None
        self.message = ""
        self.unsaved: bytes | None = None
        self._since = time.monotonic()
        self._over = threading.Event()
        here, there = PROCESSES.Pipe(duplex=False)
        self._process = PROCESSES.Process(
            target=work.carry_out, args=(order, there), daemon=True, name="dpscreen-release"
        )
        self._process.start()
        there.close()
        threading.Thread(target=self._listen, args=(here,), daemon=True).start()

    @property
    def running(self) -> bool:
        """Whether it is still under way."""
        return not self._over.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait until it is over, so long at most; whether it is."""
        return self._over.wait(seconds)

    def cancel(self) -> None:
        """End it now. What was booked stays booked."""
        if self.running:
            self.outcome = self.outcome or "cancelled"
            self._process.kill()
            self.wait(10)

    def _listen(self, pipe: Connection) -> None:
        """Take what `work.carry_out` sends until its process ends."""
        with suppress(EOFError, OSError):
            while True:
                word, value = pipe.recv()
                if word in STAGES:
                    if word != self.stage:
                        self._since = time.monotonic()
                    self.stage, self.share = word, value
                elif word == "unsaved":
                    self.unsaved = value
                elif word == "done":
                    self.outcome = "done"  # even if someone has cancelled: it is on the shelf
                elif self.outcome is None:
                    self.outcome, self.message = word, value
        self._process.join()
        if self.outcome is None:
            self.outcome, self.message = "failed", "The process of the fit was ended."
        self._over.set()

    # --- what is shown --------------------------------------------------------------------------

    @property
    def stage_words(self) -> str:
        """Say what is going on."""
        return STAGES[self.stage]

    @property
    def time_left(self) -> str:
        """Say how long this stage will take, from the share that is done."""
        passed = time.monotonic() - self._since
        if not self.share:
            return f"for {duration(passed)}"
        return f"about {duration(max(1.0, passed * (1 - self.share) / self.share))} left"

    @property
    def percent(self) -> int | None:
        """Return how much is done of what can be measured; None if nothing can."""
        return None if self.share is None else round(100 * min(1.0, self.share))


# --- simulations ----------------------------------------------------------------------------------


class Simulations:
    """One process that simulates, and what it has found. Public numbers only.

    A thread waits for the process, so that no page does: until it is there, and for each answer.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue = ThreadPoolExecutor(1)
        self._pool: ProcessPoolExecutor | None = None
        self._started = self._closed = False
        self._setting: Setting | None = None
        self._points: dict[float, Future[Any]] = {}
        self._pages: dict[str, tuple[str, Future[str]]] = {}

    def start(self) -> None:
        """Start the process once, so that it is warm when it is needed."""
        with self._lock:
            if not self._started and not self._closed:
                self._submit(int)

    def curve(self, setting: Setting, *, ask: bool = True) -> tuple[BudgetCurve, int]:
        """Return what is known of a curve, and how many points are still to come.

        Without `ask` nothing is simulated.
        """
        from dpscreen.planning.curve import EPSILONS, BudgetCurve

        with self._lock:
            setting = replace(setting, epsilon=1.0)  # the curve is of all
            if setting != self._setting:
                self._give_up()
                self._points, self._setting = {}, setting
            for one in EPSILONS if ask else ():
                if one not in self._points or self._points[one].cancelled():
                    self._points[one] = self._submit(work.simulated_point, setting, one)
            known = self._points.copy()
        done = [one for one in known.values() if one.done()]
        found = (one.result() for one in done if not one.cancelled() and one.exception() is None)
        points = tuple(point for point in found if point is not None)
        return BudgetCurve(setting, points), len(known) - len(done)

    def page(self, name: str, key: str, function: Any, *arguments: Any) -> Future[str]:
        """Return a page that is being made, or is; one of another key under a name is given up."""
        with self._lock:
            made, future = self._pages.get(name, (None, None))
            if future is None or made != key:
                if future is not None:
                    future.cancel()
                self._give_up()  # somebody waits for the page, and has left the curve
                future = self._submit(function, *arguments)
                self._pages[name] = key, future
            return future

    def close(self) -> None:
        """End the process."""
        self._closed = True
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        self._queue.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.kill()  # what it simulates is of no use any more, and an exit would wait for it

    def _give_up(self) -> None:
        """Take back the points that are not begun; they are requested again when they are shown."""
        for future in self._points.values():
            future.cancel()

    def _submit(self, function: Any, *arguments: Any) -> Future[Any]:
        self._started = True
        return self._queue.submit(self._answer, function, *arguments)

    def _answer(self, function: Any, *arguments: Any) -> Any:
        """Have the process answer; if it was killed, start another, once."""
        for last in (False, True):
            try:
                self._pool = self._pool or ProcessPoolExecutor(
                    1, mp_context=PROCESSES, initializer=work.start_simulations
                )
                return self._pool.submit(function, *arguments).result()
            except BrokenProcessPool:
                self._pool = None
                if last or self._closed:
                    raise
        raise AssertionError("the last try returns or raises")
