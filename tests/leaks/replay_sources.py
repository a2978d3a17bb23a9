"""Every place that rows may come from, and tables of all kinds of columns, for replays."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse

from dpscreen import scan
from dpscreen.tables.reading import read_rows
from dpscreen.tables.schema import TableSchema

# --- numbers: X and y -----------------------------------------------------------------------------


def as_array(X, y, _folder):
    return X, y


def as_narrow_array(X, y, _folder):
    return np.asfortranarray(X, dtype=np.float32), y.astype(np.float32)


def as_whole_numbers(X, y, _folder):
    return np.clip(X, -(2.0**63), 2.0**63 - 1024).astype(np.int64), y > 0


def as_frame(X, y, _folder):
    return named(X), pd.Series(y)


def as_polars_frame(X, y, _folder):
    import polars

    return polars.from_pandas(named(X)), polars.Series(y)


def as_sparse_array(X, y, _folder):
    return scipy.sparse.csr_array(X), y


def as_sparse_columns(X, y, _folder):
    """Zeros are stored here and there: which ones tells nothing."""
    made = scipy.sparse.csc_matrix(X)
    made.data[::3] = 0.0
    return made, y


def as_sparse_frame(X, y, _folder):
    return named(X).astype(pd.SparseDtype(np.float64, 0.0)), y


def as_mapped_file(X, y, folder):
    made = np.memmap(Path(folder) / f"{len(X)}.bin", dtype=np.float64, mode="w+", shape=X.shape)
    made[:] = X
    return made, y


def as_dask_array(X, y, _folder):
    """Parts of other lengths for other rows, empty ones among them."""
    import dask.array

    sizes = (len(X) // 3, 0, len(X) - len(X) // 3)
    made = dask.array.from_array(X, chunks=(sizes, X.shape[1]))
    return made, dask.array.from_array(y, chunks=(sizes,))


def as_dask_frame(X, y, _folder):
    import dask.dataframe

    made = dask.dataframe.from_pandas(named(X).assign(y=y), npartitions=2)
    return made.drop(columns="y"), made["y"]


def named(X):
    return pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])


SPARSE = (as_sparse_array, as_sparse_columns, as_sparse_frame)
NUMBERS = (
    *(as_array, as_narrow_array, as_whole_numbers, as_frame, as_polars_frame, as_mapped_file),
    *(as_dask_array, as_dask_frame),
)

# --- tables ---------------------------------------------------------------------------------------

SCHEMA: dict[str, Any] = {
    "fields": [
        {"name": "person", "type": "string"},
        {"name": "age", "type": "number", "constraints": {"minimum": 0, "maximum": 128}},
        {"name": "arm", "type": "string", "constraints": {"enum": ["a", "b", "c"]}},
        {"name": "smoker", "type": "boolean"},
        {"name": "visits", "type": "integer", "constraints": {"minimum": 0, "maximum": 30}},
        {"name": "score", "type": "number", "constraints": {"minimum": -64, "maximum": 192}},
    ],
    "missingValues": ["", "NA"],
    "dpscreen": {"target": "score", "unit": "person", "rows_per_unit": 2},
}
READ = TableSchema.from_dict(SCHEMA)
LEVELS = ["a", "b", "c"]
OTHER_LEVELS = {"one level": ["b"], "unknown levels": ["x", "Ä", "b "]}
KINDS = ("plain", "one level", "unknown levels", "full of holes", "far out", "few people", "sorted")


def table(kind: str, seed: int, n: int) -> pd.DataFrame:
    """Return a table with text in every cell, as a CSV file has it."""
    rng, far = np.random.default_rng(seed), kind == "far out"
    people = 3 if kind == "few people" else 2 * n
    columns = {
        "person": [f"p{i}" for i in rng.integers(0, people, n)],
        "age": np.round(rng.normal(50, 20, n) * (1e6 if far else 1), 2),
        "arm": rng.choice(OTHER_LEVELS.get(kind, LEVELS), n),
        "smoker": rng.choice(["true", "false"], n),
        "visits": rng.integers(*((-(2**63), 2**63 - 1) if far else (0, 40)), n),
        "score": np.round(rng.normal(60, 30, n), 3),
    }
    made = pd.DataFrame(columns).astype(str)
    if kind == "full of holes":
        holes = rng.choice(["", "NA", "nan", "-inf", "1e999", "?"], size=made.shape)
        made = made.where(rng.random(made.shape) < 0.6, holes)
    return made.sort_values("score") if kind == "sorted" else made


def from_csv(made, folder):
    made.to_csv(folder / "t.csv", index=False)
    return (scan(folder / "t.csv", SCHEMA),)


def from_csv_in_memory(made, folder):
    made.to_csv(folder / "m.csv", index=False)
    return (read_rows(folder / "m.csv", READ),)


def from_gzip(made, folder):
    (folder / "t.csv.gz").write_bytes(gzip.compress(made.to_csv(index=False).encode()))
    return (scan(folder / "t.csv.gz", SCHEMA),)


def from_parquet(made, folder):
    made.to_parquet(folder / "t.parquet", row_group_size=7, index=False)
    return (scan(folder / "t.parquet", SCHEMA),)


def from_encoded_frame(made, _folder):
    return (READ.encode(made),)


FILES = (from_csv, from_csv_in_memory, from_gzip, from_parquet, from_encoded_frame)


def in_columns(made):
    """Return the features by their types, as a frame would hold them, and the target."""
    frame = pd.DataFrame(
        {
            "age": pd.to_numeric(made["age"], errors="coerce").fillna(64.0).clip(-1e300, 1e300),
            "arm": made["arm"].astype(object),
            "smoker": (made["smoker"] == "true").to_numpy(dtype=bool),
        }
    )
    score = pd.to_numeric(made["score"], errors="coerce").fillna(0.0).clip(-1e300, 1e300)
    return frame, score.to_numpy()


def from_frame(made, _folder):
    return in_columns(made)


def from_polars(made, _folder):
    import polars

    frame, y = in_columns(made)
    return polars.from_pandas(frame.astype({"arm": str})), y


def from_dask(made, _folder):
    import dask.dataframe

    frame, y = in_columns(made)
    whole = dask.dataframe.from_pandas(frame.assign(y=y).reset_index(drop=True), npartitions=3)
    return whole.drop(columns="y"), whole["y"]


FRAMES = (from_frame, from_polars, from_dask)
OF_FRAMES = {
    "feature_bounds": {"age": (0, 128)},
    "target_bounds": (-64, 192),
    "categories": {"arm": LEVELS},
}
OF_FILES = {"feature_bounds": READ.feature_bounds, "target_bounds": READ.target_bounds}
