"""Fits of the same rows in one process, counted by what the rows hold.

Two fits are counted together if their rows share a value, of any feature or of the target, other
than 0 and 1; rows that hold nothing else, and rows that are not in memory, are counted together
with every other fit. Costs add up over all of them, also where rows overlap in part, as those of
folds do: for one row this is an upper bound, as long as which part a row is in does not depend on
other rows. Tables of the same people that have no value in common are not recognised, and other
processes are not counted: a ledger does that, and no part of the guarantee is here.

Values are compared by hashes under keys that are drawn anew by every process and never leave it.
"""

from __future__ import annotations

import secrets
import warnings
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from dpscreen._core.arrays import Words
from dpscreen._core.messages import message
from dpscreen.privacy.budget import ZCDP
from dpscreen.rows.marks import mixed
from dpscreen.rows.source import ArrayRows
from dpscreen.rows.sparse import SparseRows

MOST_VALUES = 2**18
"""Hashes kept of a table: of a larger one, overlaps of less than 1 in 10⁴ may be missed."""
_KEYS = secrets.randbits(64), secrets.randbits(64)


class RefitWarning(UserWarning):
    """The same rows, or some of them, were fitted again without a ledger: costs add up."""


@dataclass(frozen=True, eq=False)
class Tally:
    """How often rows were fitted, what that costs together, and hashes of what they hold.

    None of hashes stands for rows that may be any.
    """

    fits: int
    spent: ZCDP
    values: Words | None


_TALLIES: list[Tally] = []
_LOCK = Lock()


def count_fit(values: Words | None, cost: ZCDP, delta: float) -> None:
    """Count a fit that has spent its budget, and warn if some of its rows were fitted before."""
    tally = Tally(1, cost, values)
    with _LOCK:
        for known in list(_TALLIES):
            both = None
            if values is not None and known.values is not None:
                if not np.isin(values, known.values, assume_unique=True).any():
                    continue
                both = None if tally.values is None else np.union1d(known.values, tally.values)
                both = None if both is None else both[: 4 * MOST_VALUES]
            _TALLIES.remove(known)
            tally = Tally(known.fits + tally.fits, known.spent + tally.spent, both)
        _TALLIES.append(tally)
    if tally.fits > 1:
        spent = {"epsilon": tally.spent.epsilon(delta), "delta": delta}
        warnings.warn(message("fit.again", fits=tally.fits, **spent), RefitWarning, stacklevel=3)


def values_of(rows: Any) -> Words | None:
    """Return keyed hashes of the values of rows in memory; None if there are none.

    Those of 0, 1 and NaN are left out; and the larger ones, if there are too many.
    """
    match rows:
        case ArrayRows():
            parts = [*rows.X.T, rows.y]
        case SparseRows():
            parts = [rows.X.data, rows.y]
        case _:
            return None
    most = np.uint64(min(2**64 * MOST_VALUES // max(sum(map(len, parts)), 1), 2**64 - 1))
    hashes = []
    for part in parts:
        values = np.asarray(part, dtype=np.float64)
        found = mixed(values[(values != 0) & (values != 1) & ~np.isnan(values)], *_KEYS)
        hashes.append(found[found <= most])
    every = np.unique(np.concatenate(hashes))
    return every if len(every) else None
