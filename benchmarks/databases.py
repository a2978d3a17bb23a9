"""A fit of a DuckDB table that exceeds its share of memory, against DuckDB's own scan into Arrow.

`python -m benchmarks databases` has 20 million rows; `python -m benchmarks.databases 1000000` less.
The fit reads the database once, into a scratch file; every later pass reads that. After each pass
it waits for a scan by a process of its own, so that a busy spell hits both, and medians count.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from benchmarks.scale import descriptor, rows
from benchmarks.timing import alone, machine, peak_resident, report

N_ROWS, N_COLUMNS = 20_000_000, 20


def main(n_rows: int = N_ROWS) -> None:
    print(f"Databases ({machine()})")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "rows.db"
        _make(place, n_rows)
        fit = alone("databases", "fit", place)
    label = f"DuckDB, {n_rows / 10**6:g} million x {N_COLUMNS}"
    report(f"{label}: a pass over a scan into Arrow", fit["pass"] / fit["scan"], at_most=1.5)
    report("  all passes over all scans", fit["whole"])
    report("  the same in seconds of processors", fit["work"])
    report(f"{label}: the first reading over a scan", fit["first"] / fit["scan"])
    report(f"{label}: peak memory in GB", fit["peak"] / 1e9, at_most=2)
    print(f"  (a scan {fit['scan']:.1f} s, {fit['passes']} passes of {fit['pass']:.1f} s)")


def _names() -> list[str]:
    return [f"x{j}" for j in range(N_COLUMNS)]


def _make(place: Path, n_rows: int) -> None:
    import duckdb
    import pyarrow as pa

    with duckdb.connect(str(place)) as connection:
        columns = ", ".join(f"{name} DOUBLE" for name in (*_names(), "y"))
        connection.execute(f"CREATE TABLE rows ({columns})")
        for seed in range(0, n_rows, 500_000):
            X, y = rows(min(500_000, n_rows - seed), N_COLUMNS, seed)
            part = pa.table([*X.T, y], names=[*_names(), "y"])
            connection.register("part", part)
            connection.execute("INSERT INTO rows SELECT * FROM part")


def _bare(place: str) -> dict[str, Any]:
    import duckdb

    began, worked = time.perf_counter(), time.process_time()
    with duckdb.connect(place, read_only=True) as connection:
        for batch in connection.sql("SELECT * FROM rows").to_arrow_reader(1 << 16):
            assert len(batch)
    return {"scan": time.perf_counter() - began, "work": time.process_time() - worked}


def _fit(place: str) -> dict[str, Any]:
    from dpscreen import PrivateLasso
    from dpscreen.tables.databases import DatabaseTable
    from dpscreen.tables.reading import spooled_rows
    from dpscreen.tables.scan import ScannedRows
    from dpscreen.tables.schema import TableSchema

    budget = {"epsilon": 1, "delta": 1e-9, "random_state": 0}
    model = PrivateLasso(**budget, feature_bounds=(-4, 4), target_bounds=(-20, 20))
    model.fit(*rows(1000, N_COLUMNS))  # compiled code is loaded, or made, beforehand
    schema = TableSchema.from_dict(descriptor(_names()))
    began = time.perf_counter()
    spool = spooled_rows(DatabaseTable(f"duckdb:{place}", "rows"), schema, in_memory=0)
    first = time.perf_counter() - began

    passes, scans = list[float](), list[dict[str, float]]()

    def watch(*_: int) -> None:
        passes.append(time.perf_counter() - began - sum(passes) - sum(waited))
        waiting = time.perf_counter()
        scans.append(alone("databases", "bare", place))
        waited.append(time.perf_counter() - waiting)

    waited, began, worked = list[float](), time.perf_counter(), time.process_time()
    model.fit(ScannedRows(spool, None, watch=watch))
    spent = time.perf_counter() - began - sum(waited)
    worked = time.process_time() - worked
    return {
        "first": first,
        "pass": statistics.median(passes),
        "scan": statistics.median(one["scan"] for one in scans),
        "whole": spent / sum(one["scan"] for one in scans),
        "work": worked / sum(one["work"] for one in scans),
        "passes": len(passes),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    work = {"bare": _bare, "fit": _fit}
    if sys.argv[1] not in work:
        main(int(sys.argv[1]))
        sys.exit()
    result = work[sys.argv[1]](sys.argv[2])
    result["peak"] = peak_resident()
    print(json.dumps(result))
