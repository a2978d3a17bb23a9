"""Private rows on a Dask cluster: sums are made where the rows are, and only sums travel.

Each partition becomes a `Part` that lives in a worker's memory, in a cache that may be lost at any
time: a worker that has not seen a partition, or not all moves of a walk, makes up for it from the
question alone. Workers draw no noise, so a question asked twice releases nothing.
"""

from __future__ import annotations

import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array, Integers, Mask
from dpscreen.rows.parts import PartedDesign, Question, RowPart
from dpscreen.rows.source import Count, PublicUnits, RowSource

PATIENCE = 120.0
"""For how many seconds a cluster may have no workers at all."""

Work = Callable[..., Any]
Key = tuple[str, str]
"""A fit, and one partition of its rows; on the lattice, of one design of them."""

_KEPT = 512
_lock = Lock()
_rows: OrderedDict[Key, tuple[Array, Array]] = OrderedDict()
_parts: OrderedDict[Key, RowPart] = OrderedDict()
"""Of this worker process: the partitions that fits go on with, as rows and on the lattice."""


class ClusterFailed(RuntimeError):
    """A cluster could not answer. What was booked stays booked; nothing is released."""


@dataclass(frozen=True)
class Failed:
    """What a worker answers instead of raising: the text of an exception could quote cells."""

    reason: str


# --- on the workers -------------------------------------------------------------------------------


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
        cache[key] = made
        while len(cache) > _KEPT:
            cache.popitem(last=False)
    return made


def count_part(
    X: Any,
    y: Any,
    chosen: Mask | None,
    key: Key,
    n_features: int,
    side: str,
    count: Count,
    args: tuple[Any, ...],
) -> Any:
    """Return a count of the features or of the target of one partition."""

    def work() -> Integers:
        rows, target = _kept(_rows, key, lambda: _rows_of(X, y, n_features, chosen))
        return count(rows if side == "features" else target, *args)

    return _safely(work)


def answer_part(
    X: Any,
    y: Any,
    chosen: Mask | None,
    key: Key,
    design: str,
    units: PublicUnits,
    question: Question,
) -> Any:
    """Return one partition's answer, from the cache if it is still there."""

    def make() -> RowPart:
        rows = _kept(_rows, key, lambda: _rows_of(X, y, len(units.feature_bounds), chosen))
        return RowPart(units.lattice_design(*rows))

    def work() -> Integers:
        part: RowPart = _kept(_parts, (key[0], key[1] + design), make)
        return part.answer(question)

    return _safely(work)


def part_length(given: list[tuple[Any, ...]], n_features: int) -> Any:
    """Return the number of rows of one partition, once all its cells have been looked over."""
    X, y, chosen, key = given[0]
    return _safely(lambda: len(_kept(_rows, key, lambda: _rows_of(X, y, n_features, chosen))[1]))


def summed(given: list[tuple[Any, ...]], work: Work, args: tuple[Any, ...]) -> Any:
    """Return the sum of the answers of several partitions, or the first failure."""
    total: Any = 0
    for one in given:
        found = work(*one, *args)
        if isinstance(found, Failed):
            return found
        total = total + found
    return total


def forget(run: str) -> None:
    """Drop what this worker keeps of one fit."""
    with _lock:
        for cache in (_rows, _parts):
            for key in [key for key in cache if key[0] == run]:
                del cache[key]


# --- on the client --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Partition:
    """Where some rows are: futures of features and target, and which of the rows are meant."""

    X: Any
    y: Any
    n_rows: int
    key: Key
    chosen: Mask | None = None

    @property
    def asked_with(self) -> tuple[Any, ...]:
        """Return what a worker needs of it."""
        return self.X, self.y, self.chosen, self.key


Group = tuple[Partition, ...]


class Crew:
    """The workers, and where each partition lives.

    A question goes to the worker that holds the partition: a scheduler that balances load would
    move rows about. If that worker is gone, the question goes wherever the rows can be had again.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._homes: dict[str, str] = {}

    def settle(self, futures: Sequence[Any]) -> None:
        """Remember which worker holds what, as far as it is known."""
        for key, workers in self._client.who_has(futures).items():
            if workers:
                self._homes.setdefault(str(key), next(iter(workers)))

    def total(self, work: Work, partitions: Sequence[Partition], *args: Any) -> Integers:
        """Return the sum of the partitions' answers, each made where the partition is."""
        answers = self.ask(summed, self._grouped(partitions), work, args)
        if any(part.X.key not in self._homes for part in partitions):
            self.settle([part.X for part in partitions])
        return np.asarray(np.sum(answers, axis=0, dtype=np.int64))

    def ask(self, work: Work, groups: Sequence[Group], *args: Any) -> list[Any]:
        """Return an answer for each group of partitions, or more if it had to be asked in parts."""
        jobs = [(group, self._submit(work, group, args)) for group in groups]
        patience = Patience()
        while not all(job.done() for _, job in jobs):
            if self._still_waiting([job for _, job in jobs]):
                patience.look(self._client.scheduler_info(n_workers=-1)["workers"])
                jobs = [again for job in jobs for again in self._asked_again(work, job, args)]
        return self._gathered([job for _, job in jobs])

    def _grouped(self, partitions: Sequence[Partition]) -> list[Group]:
        """Put the partitions of one worker together: one task each costs more than its sums."""
        homes = [self._homes.get(part.X.key, part.X.key) for part in partitions]
        return [
            tuple(part for part, home in zip(partitions, homes, strict=True) if home == one)
            for one in dict.fromkeys(homes)
        ]

    def _asked_again(
        self, work: Work, job: tuple[Group, Any], args: tuple[Any, ...]
    ) -> list[tuple[Group, Any]]:
        """Return the job, or one for each of its partitions if their worker is gone."""
        group, future = job
        home = self._homes.get(group[0].X.key)
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        if future.done() or home is None or home in workers:
            return [job]
        for part in group:
            self._homes.pop(part.X.key, None)
        return [((part,), self._submit(work, (part,), args)) for part in group]

    def run(self, work: Work, *args: Any) -> None:
        """Run something on every worker, if they can still be reached."""
        with suppress(Exception):
            self._client.run(work, *args)

    def _submit(self, work: Work, group: Group, args: tuple[Any, ...]) -> Any:
        home = self._homes.get(group[0].X.key)
        pinned = {} if home is None else {"workers": [home]}
        given = [part.asked_with for part in group]
        return self._client.submit(work, given, *args, pure=False, **pinned)

    def _still_waiting(self, jobs: list[Any]) -> bool:
        from distributed import wait

        try:
            wait(jobs, timeout=min(2.0, PATIENCE / 4))  # type: ignore[no-untyped-call]
        except TimeoutError:
            return True
        return False

    def _gathered(self, jobs: list[Any]) -> list[Any]:
        try:
            answers = self._client.gather(jobs)
        except Exception as problem:
            reason = type(problem).__name__
        else:
            failed = next((one for one in answers if isinstance(one, Failed)), None)
            if failed is None:
                return list(answers)
            raise ValueError(failed.reason)
        raise ClusterFailed(f"the cluster lost the rows or the connection ({reason}).")


class Patience:
    """Waits while there are workers; without any, for a while."""

    def __init__(self) -> None:
        self._alone_since: float | None = None

    def look(self, workers: Any) -> None:
        """Give up if there has been no worker for too long."""
        now = time.monotonic()
        self._alone_since = None if workers else self._alone_since or now
        if self._alone_since is not None and now - self._alone_since > PATIENCE:
            raise ClusterFailed(
                f"the cluster has had no worker for {PATIENCE:g} s. Nothing is released; a budget "
                "that was booked in a ledger stays booked."
            )


class ClusterRows(RowSource):
    """Partitions of rows on a cluster."""

    def __init__(self, crew: Crew, partitions: Sequence[Partition], n_features: int) -> None:
        self._crew, self._partitions, self._d = crew, partitions, n_features

    @classmethod
    def of(cls, client: Any, X: Sequence[Any], y: Sequence[Any], n_features: int) -> ClusterRows:
        """Keep delayed partitions in the workers' memory and count their rows."""
        crew, run = Crew(client), uuid.uuid4().hex
        futures = zip(client.compute(list(X)), client.compute(list(y)), strict=True)
        parts = [Partition(*pair, 0, (run, uuid.uuid4().hex)) for pair in futures]
        try:
            lengths = crew.ask(part_length, [(part,) for part in parts], n_features)
        except BaseException:
            crew.run(forget, run)
            raise
        crew.settle([part.X for part in parts])
        counted = [
            replace(part, n_rows=length) for part, length in zip(parts, lengths, strict=True)
        ]
        return cls(crew, counted, n_features)

    @property
    def n_features(self) -> int:
        """Return d."""
        return self._d

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        return sum(
            part.n_rows if part.chosen is None else int(np.count_nonzero(part.chosen))
            for part in self._partitions
        )

    def target_total(self, count: Count, *args: Any) -> Integers:
        """Return Σ count(y, *args) over all partitions."""
        return self._crew.total(count_part, self._partitions, self._d, "target", count, args)

    def feature_total(self, count: Count, *args: Any) -> Integers:
        """Return Σ count(X, *args) over all partitions."""
        return self._crew.total(count_part, self._partitions, self._d, "features", count, args)

    def lattice(self, units: PublicUnits) -> ClusterDesign:
        """Return the rows on the lattice, where they are."""
        return ClusterDesign(self._crew, self._partitions, units)

    def close(self) -> None:
        """Let the workers drop what they keep."""
        self._crew.run(forget, self._partitions[0].key[0])

    def where(self, chosen: Mask) -> ClusterRows:
        """Return the chosen rows; a flag for each travels, and no row."""
        ends = np.cumsum([part.n_rows for part in self._partitions])[:-1]
        flags = np.split(chosen, ends)
        parts = [
            replace(part, chosen=one, key=(part.key[0], uuid.uuid4().hex))
            for part, one in zip(self._partitions, flags, strict=True)
        ]
        return ClusterRows(self._crew, parts, self._d)


class ClusterDesign(PartedDesign):
    """Rows on the lattice, in the memory of workers."""

    def __init__(self, crew: Crew, partitions: Sequence[Partition], units: PublicUnits) -> None:
        super().__init__(units.n_candidates, units.loss)
        self._crew, self._partitions, self._units = crew, partitions, units
        self._name = uuid.uuid4().hex

    def total(self, question: Question) -> Integers:
        """Ask every partition where it is, and add up the answers."""
        return self._crew.total(answer_part, self._partitions, self._name, self._units, question)


# --- from Dask's collections ----------------------------------------------------------------------


def cluster_rows(X: Any, y: Any) -> tuple[ClusterRows, tuple[str, ...] | None]:
    """Return the rows of a Dask array or data frame, and the names of its columns."""
    from distributed import get_client

    try:
        client = get_client()
    except ValueError:
        raise ValueError(
            "Dask rows need a cluster: make one with dask.distributed.Client() first, or hand over "
            "X.compute() and y.compute()."
        ) from None
    names, n_features = _columns(X)
    rows, targets = _partitions(X), _partitions(y)
    if len(rows) != len(targets):
        raise ValueError("X and y must be partitioned alike, rows by rows.")
    return ClusterRows.of(client, rows, targets, n_features), names


def _columns(X: Any) -> tuple[tuple[str, ...] | None, int]:
    if hasattr(X, "columns"):
        names = tuple(str(name) for name in X.columns)
        return names, len(names)
    if X.ndim != 2:
        raise ValueError("Expected 2D array of rows and features.")
    return None, int(X.shape[1])


def _partitions(collection: Any) -> list[Any]:
    """Return whole rows as delayed values, one for each partition."""
    if hasattr(collection, "to_delayed") and hasattr(collection, "npartitions"):
        if getattr(collection, "ndim", 1) == 2 and hasattr(collection, "rechunk"):
            collection = collection.rechunk({1: -1})
        delayed = collection.to_delayed()
        return list(np.asarray(delayed, dtype=object).ravel())
    raise TypeError("X and y must both be Dask arrays or data frames.")
