"""Rows that are the same everywhere: raw bits of PCG64 and whole numbers over powers of two."""

from __future__ import annotations

import numpy as np


def whole(name: int, low: int, high: int, *shape: int):
    """Return numbers from low to high; `random_raw` is a stream that numpy promises to keep."""
    raw = np.random.PCG64(name).random_raw(int(np.prod(shape))).reshape(shape)
    return low + (raw % np.uint64(high - low + 1)).astype(np.int64)


def dense_rows(n_rows: int = 2000, n_features: int = 6):
    """Return features between −8 and 12, and a target that two of them make up."""
    X = whole(1, -8 * 64, 12 * 64, n_rows, n_features) / 64
    return X, 2 * X[:, 0] - 3 * X[:, -1] + whole(2, -256, 256, n_rows) / 64


def sparse_rows(n_rows: int = 1500, n_features: int = 40):
    """Return features of which one in eight is not zero."""
    X, y = dense_rows(n_rows, n_features)
    X = np.where(whole(3, 0, 7, n_rows, n_features) == 0, X, 0.0)
    return X, 4 * X[:, 1] - 2 * X[:, 7] + y / 64


# --- a table with all kinds of columns ------------------------------------------------------------

SCHEMA = {
    "fields": [
        {"name": "person", "type": "string"},
        {"name": "age", "type": "number", "constraints": {"minimum": 0, "maximum": 128}},
        {"name": "arm", "type": "string", "constraints": {"enum": ["other", "a", "b", "c"]}},
        {"name": "smoker", "type": "boolean"},
        {"name": "dose", "type": "number", "constraints": {"minimum": -4, "maximum": 60}},
        {"name": "score", "type": "number", "constraints": {"minimum": -64, "maximum": 192}},
    ],
    "dpscreen": {"target": "score", "unit": "person", "rows_per_unit": 1},
}
NAMES = ("age", "arm=a", "arm=b", "arm=c", "smoker", "dose")
FEATURE_BOUNDS = [(0, 128), (0, 1), (0, 1), (0, 1), (0, 1), (-4, 60)]
TARGET_BOUNDS = (-64, 192)
PERSONS, SURPLUS = 1200, 50


def table_columns():
    """Return the columns of the table; its last rows repeat those of some persons."""
    n = PERSONS + SURPLUS
    again = np.arange(n) % PERSONS
    age, dose = whole(4, 0, 100 * 8, n) / 8, whole(5, 0, 50 * 8, n) / 8
    arm, smoker = np.array(["a", "b", "c", "other"])[whole(6, 0, 3, n)], whole(7, 0, 1, n) == 1
    effect = 24.0 * (arm == "a") - 16.0 * (arm == "c") + 20.0 * smoker
    score = age / 2 + effect + whole(8, -64, 64, n) / 8
    columns = {"age": age, "arm": arm, "smoker": smoker, "dose": dose, "score": score}
    people = {"person": [f"p{i}" for i in again]}
    return people | {name: values[again] for name, values in columns.items()}


def table_rows():
    """Return what the schema makes of the table, made by hand: one row of each person."""
    told = {name: np.asarray(values)[:PERSONS] for name, values in table_columns().items()}
    levels = [told["arm"] == level for level in "abc"]
    columns = [told["age"], *levels, told["smoker"], told["dose"]]
    return np.column_stack(columns).astype(np.float64), told["score"]
