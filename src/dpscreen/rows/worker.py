"""What is done with one partition of rows on a worker of a cluster.

A partition is kept as rows and on the lattice, in caches that may be lost at any time: whoever
does not hold a partition, or not all moves to a point, makes up for it from the question alone.
Nothing here raises: a scheduler would log the exception, and its text could quote cells.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array, Mask
from dpscreen.rows.parts import Question, RowPart
from dpscreen.rows.source import ArrayRows, Count, PublicUnits

Work = Callable[..., Any]
Key = tuple[str, str]
"""A fit, and one partition of its rows; on the lattice, of one design of them."""
Part = tuple[Any, Any, Mask | None, Key]
"""Features and target of a partition, which of its rows are meant, and what it is kept under."""

_KEPT = 512
_lock = Lock()
_rows: OrderedDict[Key, tuple[Array, Array]] = OrderedDict()
_parts: OrderedDict[Key, RowPart] = OrderedDict()
"""Of this worker process: the partitions that fits go on with, as rows and on the lattice."""
_ended: deque[str] = deque(maxlen=_KEPT)
"""The fits that ended last: what still comes in for them is not kept."""


@dataclass(frozen=True)
class Failed:
    """What a worker answers instead of raising: the text of an exception could quote cells."""

    reason: str


def _rows_of(X: Any, y: Any, n_features: int, chosen: Mask | None) -> tuple[Array, Array]:
    """Return a partition as finite float64 arrays, the chosen rows only."""
    rows, target = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64).ravel()
    if rows.ndim != 2 or rows.shape[1] != n_features:
        raise Refused(f"a partition does not have the {n_features} columns of the others.")
    if len(rows) != len(target):
        raise Refused("a partition of X and its partition of y have different numbers of rows.")
    if not (np.isfinite(rows).all() and np.isfinite(target).all()):
        raise Refused("Input contains NaN or infinity. Fill it by a rule that does not look at it.")
    return (rows, target) if chosen is None else (rows[chosen], target[chosen])


class Refused(Exception):
    """A partition cannot be used, for a reason that quotes no cell."""


def _safely(work: Callable[[], Any]) -> Any:
    """Return what `work` returns; a worker must not raise, or its log would show the arguments."""
    try:
        return work()
    except Refused as problem:
        return Failed(str(problem))
    except MemoryError:
        return Failed("a worker ran out of memory.")
    except Exception as problem:
        return Failed(f"a worker failed on a partition ({type(problem).__name__}).")


def _kept(cache: OrderedDict[Key, Any], key: Key, make: Callable[[], Any]) -> Any:
    """Return what the cache holds, or make it; what was not used for longest gives way."""
    with _lock:
        if key in cache:
            cache.move_to_end(key)
            return cache[key]
    made = make()
    with _lock:
        if key[0] in _ended:  # a task that was asked twice may come late
            return made
        cache[key] = made
        while len(cache) > _KEPT:
            cache.popitem(last=False)
    return made


def _held(part: Part, n_features: int) -> tuple[Array, Array]:
    """Return the rows of a partition, from the cache if they are still there."""
    X, y, chosen, key = part
    rows: tuple[Array, Array] = _kept(_rows, key, lambda: _rows_of(X, y, n_features, chosen))
    return rows


def count_part(part: Part, n_features: int, side: str, count: Count, args: tuple[Any, ...]) -> Any:
    """Return a count of the features or of the target of one partition."""
    which = ("features", "target").index(side)
    return _safely(lambda: count(_held(part, n_features)[which], *args))


def answer_part(part: Part, design: str, units: PublicUnits, question: Question) -> Any:
    """Return one partition's answer, from the cache if it is still there."""
    run, name = part[-1]

    def make() -> RowPart:
        return RowPart(ArrayRows(*_held(part, len(units.feature_bounds))).lattice(units))

    return _safely(lambda: _kept(_parts, (run, name + design), make).answer(question))


def part_length(given: list[Part], n_features: int) -> Any:
    """Return the number of rows of one partition, once all its cells have been looked over."""
    return _safely(lambda: len(_held(given[0], n_features)[1]))


def summed(given: list[Part], work: Work, args: tuple[Any, ...]) -> Any:
    """Return the sum of the answers of several partitions, or the first failure."""
    total: Any = 0
    for part in given:
        found = work(part, *args)
        if isinstance(found, Failed):
            return found
        total = total + found
    return total


def checked(X: Any, y: Any, n_features: int) -> Any:
    """Return one partition as arrays, once all its cells have been looked over."""
    return _safely(lambda: _rows_of(X, y, n_features, None))


def forget(run: str) -> None:
    """Drop what this worker keeps of one fit."""
    with _lock:
        _ended.append(run)
        for cache in (_rows, _parts):
            for key in [key for key in cache if key[0] == run]:
                del cache[key]
