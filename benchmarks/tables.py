"""Large tables up to the fit: `python -m benchmarks.tables [rows]`, ten million by default.

Each file is read by a process of its own, whose seconds and peak memory (of the whole process,
libraries included) are reported. The features alone are 1.6 GB at ten million rows.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from benchmarks.timing import alone, machine, report
from dpscreen.tables.reading import read_rows
from dpscreen.tables.schema import TableSchema

ROWS = 10_000_000
N_FEATURES = 20
ROWS_PER_BLOCK = 250_000
SECONDS, GIGABYTES = 60.0, 3.0


def schema(*, unit: bool) -> TableSchema:
    names = [f"x{place}" for place in range(N_FEATURES)] + ["y"]
    bounds = {"type": "number", "constraints": {"minimum": -3, "maximum": 3}}
    who = {"unit": "who", "rows_per_unit": 3} if unit else {}
    features = names[:-1]
    return TableSchema.from_dict(
        {
            "fields": [{"name": name} | bounds for name in names]
            + ([{"name": "who", "type": "string"}] if unit else []),
            "dpscreen": {"target": "y", "features": features} | who,
        }
    )


def blocks(rows: int, *, unit: bool) -> Iterator[Any]:
    """Yield tables with short decimals in one half of the columns and long ones in the other."""
    rng = np.random.default_rng(7)
    for start in range(0, rows, ROWS_PER_BLOCK):
        n = min(ROWS_PER_BLOCK, rows - start)
        cells = rng.standard_normal((n, N_FEATURES + 1))
        cells[:, : N_FEATURES // 2] = cells[:, : N_FEATURES // 2].round(3)
        columns = {f"x{place}": cells[:, place] for place in range(N_FEATURES)}
        columns["y"] = cells[:, -1]
        if unit:
            columns["who"] = [f"P{number:08d}" for number in rng.integers(rows // 2 + 1, size=n)]
        yield pa.table(columns)


def write_csv(path: Path, rows: int, *, unit: bool = False) -> None:
    with path.open("wb") as file:
        for number, block in enumerate(blocks(rows, unit=unit)):
            options = pyarrow.csv.WriteOptions(include_header=number == 0)
            pyarrow.csv.write_csv(block, file, options)


def write_parquet(path: Path, rows: int, *, unit: bool = False) -> None:
    with pq.ParquetWriter(path, next(blocks(1, unit=unit)).schema) as writer:
        for block in blocks(rows, unit=unit):
            writer.write_table(block)


def child(path: str, units: str) -> None:
    """Read one file and print what it took."""
    described = schema(unit=units == "units")
    began = time.perf_counter()
    n_rows = len(read_rows(path, described))
    seconds = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_SELF)
    found = {
        "rows": n_rows,
        "seconds": seconds,
        "processor": used.ru_utime + used.ru_stime,
        "bytes": used.ru_maxrss * 1024,
    }
    print(json.dumps(found))


@contextmanager
def written(write: Callable[..., None], name: str, rows: int, *, unit: bool) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write(path, rows, unit=unit)
        yield path


def main(rows: int = ROWS) -> None:
    print(f"Tables: {rows} rows, {N_FEATURES} features. {machine()}, {os.cpu_count()} cores")
    for name, write in (("table.csv", write_csv), ("table.parquet", write_parquet)):
        for unit in (False, True):
            with written(write, name, rows, unit=unit) as path:
                size = path.stat().st_size / 1e9
                label = f"{name} ({size:.1f} GB){', units' * unit}"
                show(label, alone("tables", "--child", path, "units" * unit))


def show(label: str, found: dict[str, float]) -> None:
    rows = f"{found['rows']:.0f} rows kept"
    report(f"{label}, seconds ({rows})", found["seconds"], at_most=SECONDS)
    report(f"{label}, seconds of processors, which others do not slow down", found["processor"])
    report(f"{label}, peak GB", found["bytes"] / 1e9, at_most=GIGABYTES)


if __name__ == "__main__":
    if "--child" in sys.argv:
        child(*sys.argv[2:])
    else:
        main(*map(int, sys.argv[1:]))
