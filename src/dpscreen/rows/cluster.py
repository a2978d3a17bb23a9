"""Private rows of Dask: on a cluster, where sums are made and only sums travel, or as arrays.

Each partition becomes a `RowPart` in a worker's memory (`rows/worker.py`). Workers draw no noise,
so a question asked twice releases nothing. Without a cluster, partitions are computed once and put
together.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpscreen._core.arrays import Integers, Mask
from dpscreen.rows.parts import PartedDesign, Question
from dpscreen.rows.source import ArrayRows, Count, PublicUnits, RowsLost, RowSource
from dpscreen.rows.worker import (
    Failed,
    Key,
    Part,
    Work,
    answer_part,
    checked,
    count_part,
    forget,
    part_length,
    summed,
)

PATIENCE = 120.0
"""For how many seconds a cluster may have no workers at all."""


class ClusterFailed(RowsLost):
    """Dask could not answer. What was booked stays booked; nothing is released."""


@dataclass(frozen=True, eq=False)
class Partition:
    """Where some rows are: futures of features and target, and which of the rows are meant."""

    X: Any
    y: Any
    n_rows: int
    key: Key
    chosen: Mask | None = None

    @property
    def for_workers(self) -> Part:
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
        from distributed import wait

        jobs = [(group, self._submit(work, group, args)) for group in groups]
        alone_since: float | None = None
        while not all(job.done() for _, job in jobs):
            with suppress(TimeoutError):
                patience = min(2.0, PATIENCE / 4)
                wait([job for _, job in jobs], timeout=patience)  # type: ignore[no-untyped-call]
                break
            workers = self._client.scheduler_info(n_workers=-1)["workers"]
            now = time.monotonic()
            alone_since = None if workers else alone_since or now
            if alone_since is not None and now - alone_since > PATIENCE:
                raise ClusterFailed(
                    f"the cluster has had no worker for {PATIENCE:g} s. Nothing is released; a "
                    "budget that was booked in a ledger stays booked."
                )
            jobs = [again for job in jobs for again in self._asked_again(work, job, args)]
        return _gathered(
            lambda: self._client.gather([job for _, job in jobs]),
            "the cluster lost the rows or the connection",
        )

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
        given = [part.for_workers for part in group]
        return self._client.submit(work, given, *args, pure=False, **pinned)


def _gathered(get: Callable[[], Sequence[Any]], problem: str) -> list[Any]:
    """Return answers, or raise what is known of why there are none.

    What an exception of the user's tasks says may quote cells, so only its type is named.
    """
    try:
        answers = list(get())
    except Exception as error:
        reason = type(error).__name__
    else:
        failed = next((one for one in answers if isinstance(one, Failed)), None)
        if failed is not None:
            raise ValueError(failed.reason)
        return answers
    raise ClusterFailed(f"{problem} ({reason}).")


class ClusterRows(RowSource):
    """Partitions of rows on a cluster."""

    def __init__(self, crew: Crew, partitions: Sequence[Partition], n_features: int) -> None:
        self._crew, self._partitions = crew, partitions
        self.n_features = n_features
        self.n_rows = sum(
            part.n_rows if part.chosen is None else int(np.count_nonzero(part.chosen))
            for part in partitions
        )

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

    def target_total(self, count: Count, *args: Any) -> Integers:
        return self._total("target", count, args)

    def feature_total(self, count: Count, *args: Any) -> Integers:
        return self._total("features", count, args)

    def _total(self, side: str, count: Count, args: tuple[Any, ...]) -> Integers:
        return self._crew.total(count_part, self._partitions, self.n_features, side, count, args)

    def lattice(self, units: PublicUnits) -> ClusterDesign:
        return ClusterDesign(self._crew, self._partitions, units)

    def close(self) -> None:
        """Let the workers drop what they keep; those of this process may be gone by now."""
        run = self._partitions[0].key[0]
        self._crew.run(forget, run)
        forget(run)

    def where(self, chosen: Mask) -> ClusterRows:
        """Return the chosen rows; a flag for each travels, and no row."""
        ends = np.cumsum([part.n_rows for part in self._partitions])[:-1]
        flags = np.split(chosen, ends)
        parts = [
            replace(part, chosen=one, key=(part.key[0], uuid.uuid4().hex))
            for part, one in zip(self._partitions, flags, strict=True)
        ]
        return ClusterRows(self._crew, parts, self.n_features)


class ClusterDesign(PartedDesign):
    """Rows on the lattice, in the memory of workers."""

    def __init__(self, crew: Crew, partitions: Sequence[Partition], units: PublicUnits) -> None:
        super().__init__(units.n_candidates, units.loss)
        self._crew, self._partitions, self._units = crew, partitions, units
        self._name = uuid.uuid4().hex

    def total(self, question: Question) -> Integers:
        return self._crew.total(answer_part, self._partitions, self._name, self._units, question)


# --- from Dask's collections ----------------------------------------------------------------------


def cluster_rows(X: Any, y: Any) -> tuple[RowSource, tuple[str, ...] | None]:
    """Return the rows of a Dask array or data frame, and the names of its columns."""
    names, n_features = _columns(X)
    rows, targets = _partitions(X), _partitions(y)
    if len(rows) != len(targets):
        raise ValueError("X and y must be partitioned alike, rows by rows.")
    client = None
    with suppress(ImportError, ValueError):  # `distributed` need not be installed, nor connected
        from distributed import get_client

        client = get_client()
    if client is None:
        return _computed(rows, targets, n_features), names
    return ClusterRows.of(client, rows, targets, n_features), names


def _computed(X: Sequence[Any], y: Sequence[Any], n_features: int) -> ArrayRows:
    """Compute delayed partitions once, by the scheduler that Dask is set to."""
    from dask.base import compute
    from dask.delayed import delayed

    pairs = zip(X, y, strict=True)
    jobs = [delayed(checked, pure=False)(*pair, n_features) for pair in pairs]

    def get() -> Sequence[Any]:
        return compute(*jobs)  # type: ignore[no-untyped-call, no-any-return]

    parts = _gathered(get, "Dask could not compute the rows")
    features, targets = zip(*parts, strict=True)
    return ArrayRows(np.concatenate(features), np.concatenate(targets))


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
