"""Ledgers as tests need them, their database; other processes."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from dpscreen.privacy.ledger import PrivacyLedger
from dpscreen.privacy.ledger.directory import DATABASE


def database(ledger: PrivacyLedger | Path) -> Path:
    """Return the database in the directory of a ledger."""
    return (ledger if isinstance(ledger, Path) else ledger.path) / DATABASE


def make_ledger(path: Path, reservations: int = 0, **changes: object) -> PrivacyLedger:
    """Make a ledger with some reservations of a tenth each."""
    ledger = PrivacyLedger.create(
        path, **{"dataset": "survey", "epsilon": 2, "delta": 1e-6} | changes
    )
    for number in range(reservations):
        ledger.reserve(ledger.total / 10, purpose=f"model {number}")
    return ledger


def python(*arguments: object, before: tuple = ()) -> subprocess.CompletedProcess:
    """Run Python, where warnings are errors; a process with threads should not fork."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    return subprocess.run(
        [*before, sys.executable, "-W", "error", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": path},
    )


def said_by(*arguments: object, before: tuple = ()) -> str:
    """Run Python, and return what it prints; it must end well."""
    done = python(*arguments, before=before)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def in_threads(work: Callable[[int], None], count: int) -> None:
    """Let threads work at the same time, and wait for all of them."""
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
