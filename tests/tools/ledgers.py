"""Ledgers as tests need them: their database, and how earlier versions wrote them."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from dpscreen.privacy.ledger import PrivacyLedger
from dpscreen.privacy.ledger.directory import DATABASE


def database(ledger: PrivacyLedger | Path) -> Path:
    """Return the database in the directory of a ledger."""
    return (ledger if isinstance(ledger, Path) else ledger.path) / DATABASE


def as_single_file(ledger: PrivacyLedger, path: Path) -> Path:
    """Write a ledger as earlier versions did: the same database, alone and with another number."""
    shutil.copy(database(ledger), path)
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA user_version = 1")
    return path
