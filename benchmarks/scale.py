"""Files larger than memory and a Dask cluster; `growth` has rows, features and steps in memory.

Each measurement runs in a process of its own, so that peak memory is that of the work alone. The
file of 20 million rows is made once, in `dpscreen-bench/`, and kept.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from benchmarks.timing import alone, machine, peak_resident, report
from dpscreen import PrivateLasso

PLACE = Path("dpscreen-bench")
STREAMED = (20_000_000, 50, 30)
CLUSTER = (5_000_000, 100, 30)
BARE_SCANS = 3
"""How many bare scans are timed; their mean counts 30 times."""


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"Scale ({machine()})")
    streamed(*STREAMED)
    cluster(*CLUSTER)
    one_worker(*CLUSTER)


def setting(n_iter: int) -> PrivateLasso:
    return PrivateLasso(
        epsilon=1,
        delta=1e-9,
        feature_bounds=(-4, 4),
        target_bounds=(-20, 20),
        n_iter=n_iter,
        random_state=0,
    )


def rows(n_rows: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, d))
    return X, X[:, 0] - X[:, 1] / 2 + rng.normal(size=n_rows)


# --- from a file ----------------------------------------------------------------------------------


def streamed(n_rows: int, d: int, n_iter: int) -> float:
    """Return the time of a fit over that of as many bare scans of the file as it has steps."""
    path, schema = parquet(n_rows, d)
    bare = alone("scale", "bare", path, schema)
    fit = alone("scale", "fit", path, schema, d, n_iter)
    ratio = fit["seconds"] / (n_iter * bare["seconds"])
    label = f"streamed {n_rows / 10**6:g} million x {d}, T = {n_iter}"
    report(f"{label}: over {n_iter} bare scans", ratio, at_most=2.5)
    report(f"{label}: peak memory in GB", fit["peak"] / 1e9, at_most=1.5)
    print(f"  (a scan {bare['seconds']:.1f} s, the fit {fit['seconds']:.0f} s)")
    return ratio


def parquet(n_rows: int, d: int) -> tuple[Path, Path]:
    """Return a file of rows and its schema; both are made once and kept."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    PLACE.mkdir(exist_ok=True)
    path, schema = PLACE / f"rows-{n_rows}x{d}.parquet", PLACE / f"schema-{d}.json"
    names = [f"x{j}" for j in range(d)]
    schema.write_text(json.dumps(descriptor(names)), encoding="utf-8")
    if path.exists():
        return path, schema
    part = path.with_suffix(".part")
    kinds = pa.schema([(name, pa.float64()) for name in (*names, "y")])
    size = min(n_rows, 500_000)
    with pq.ParquetWriter(part, kinds, use_dictionary=False) as out:
        for k in range(n_rows // size):
            X, y = rows(size, d, seed=k)
            columns = [pa.array(column) for column in (*X.T, y)]
            out.write_table(pa.table(columns, schema=kinds), row_group_size=size)
    part.rename(path)
    return path, schema


def descriptor(names: list[str]) -> dict[str, object]:
    def field(name: str, bound: int) -> dict[str, object]:
        return {
            "name": name,
            "type": "number",
            "constraints": {"minimum": -bound, "maximum": bound},
        }

    fields = [*(field(name, 4) for name in names), field("y", 20)]
    return {"fields": fields, "dpscreen": {"target": "y"}}


def _bare(path: str, schema: str) -> float:
    from dpscreen.tables.reading import feature_batches
    from dpscreen.tables.schema import load_schema

    known = load_schema(schema)
    began = time.perf_counter()
    for _ in range(BARE_SCANS):
        for _, X in feature_batches(Path(path), known):
            assert len(X)
    return (time.perf_counter() - began) / BARE_SCANS


def _fit(path: str, schema: str, d: str, n_iter: str) -> float:
    from dpscreen.tables.reading import spooled_rows
    from dpscreen.tables.scan import ScannedRows
    from dpscreen.tables.schema import load_schema

    setting(3).fit(*rows(1000, int(d)))  # compiled code is loaded, or made, beforehand
    began = time.perf_counter()
    kept = spooled_rows(Path(path), load_schema(schema), in_memory=0)  # in a scratch file
    setting(int(n_iter)).fit(ScannedRows(kept, None))
    return time.perf_counter() - began


# --- on a cluster ---------------------------------------------------------------------------------


def cluster(n: int, d: int, n_iter: int) -> float:
    """Return the time of a fit by two workers over that of the same fit in memory."""
    shape = n, d, n_iter
    here = alone("scale", "memory", *shape)
    there = alone("scale", "cluster", 2, *shape)
    ratio = there["seconds"] / here["seconds"]
    label = f"Dask, 2 workers, {n / 10**6:g} million x {d}, T = {n_iter}"
    report(f"{label}: over the time in memory", ratio, at_most=1.5)
    report(f"{label}: bit-identical", float(here["sum"] == there["sum"]), at_least=1)
    report(f"{label}: completes after a worker is killed", there["killed"], at_least=1)
    report(
        "  and over the time in memory, with the death", there["killed_seconds"] / here["seconds"]
    )
    return ratio


def one_worker(n: int, d: int, n_iter: int) -> None:
    one, two = (alone("scale", "cluster", workers, n, d, n_iter) for workers in (1, 2))
    report("  one worker over two", one["seconds"] / two["seconds"])


def _memory(n: int, d: int, n_iter: int) -> dict[str, float]:
    X, y = np.empty((n, d)), np.empty(n)
    for first in range(0, n, n // 10):
        X[first : first + n // 10], y[first : first + n // 10] = rows(n // 10, d, seed=first)
    setting(3).fit(X[:1000], y[:1000])
    began = time.perf_counter()
    model = setting(n_iter).fit(X, y)
    return {"seconds": time.perf_counter() - began, "sum": _fingerprint(model)}


def _fingerprint(model: PrivateLasso) -> float:
    return float(int(hashlib.sha256(model.coef_.tobytes()).hexdigest()[:12], 16))


def _cluster(workers: int, n: int, d: int, n_iter: int) -> dict[str, float]:
    import os
    import signal
    import threading

    import dask.array as da
    from distributed import Client, LocalCluster, wait

    with (
        tempfile.TemporaryDirectory() as scratch,
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            memory_limit=0,
            dashboard_address=None,
            local_directory=scratch,
        ) as made,
        Client(made) as client,
    ):
        X, y = _on_workers(da, n, d)
        X, y = client.persist(X), client.persist(y)
        wait([X, y])
        setting(3).fit(X[: n // 50], y[: n // 50])
        began = time.perf_counter()
        model = setting(n_iter).fit(X, y)
        found = {"seconds": time.perf_counter() - began, "sum": _fingerprint(model)}
        if workers > 1:
            victim = next(iter(client.run(os.getpid).values()))
            threading.Timer(found["seconds"] / 2, os.kill, (victim, signal.SIGKILL)).start()
            began = time.perf_counter()
            again = setting(n_iter).fit(X, y)
            found["killed"] = float((again.coef_ == model.coef_).all())
            found["killed_seconds"] = time.perf_counter() - began
        return found


def _on_workers(da: object, n: int, d: int) -> tuple[object, object]:
    """Return the rows of `rows`, made on the workers: each chunk makes its part of the stream."""
    import dask

    size = n // 10
    X = [dask.delayed(_part, pure=True)(k * size, size, d, "X") for k in range(10)]
    y = [dask.delayed(_part, pure=True)(k * size, size, d, "y") for k in range(10)]
    return (
        da.concatenate([da.from_delayed(one, (size, d), float) for one in X]),  # type: ignore[attr-defined]
        da.concatenate([da.from_delayed(one, (size,), float) for one in y]),  # type: ignore[attr-defined]
    )


def _part(first: int, size: int, d: int, which: str) -> np.ndarray:
    X, y = rows(size, d, seed=first)
    return X if which == "X" else y


WORK = {
    "bare": lambda *args: {"seconds": _bare(*args)},
    "fit": lambda *args: {"seconds": _fit(*args)},
    "memory": lambda *sizes: _memory(*map(int, sizes)),
    "cluster": lambda *sizes: _cluster(*map(int, sizes)),
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    result = WORK[sys.argv[1]](*sys.argv[2:])
    result["peak"] = peak_resident()
    print(json.dumps(result))
