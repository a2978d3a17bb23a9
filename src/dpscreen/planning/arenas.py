"""Where methods compete: public tables with their schemas, and simulated ones of a few kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen._core.words import listed
from dpscreen.privacy import named_seed

LEAST_ROWS = 20
FEWEST_OF_ONE_OUTCOME = 5


class NoArena(ValueError):
    """Why a folder, or a table of it, cannot be played on."""


@dataclass(frozen=True, eq=False)
class PublicTable:
    """Rows that anybody may see, with bounds as a user declares them. Outcomes are 0 and 1."""

    X: Array
    y: Array
    feature_bounds: Array
    target_bounds: tuple[float, float]
    outcomes: bool = False
    simulated: bool = False

    @property
    def division(self) -> str:
        """Name the tables that this one is ranked with."""
        kind = "outcomes" if self.outcomes else "numbers"
        return f"simulated {kind}" if self.simulated else kind

    def drawn(self, most_rows: int) -> PublicTable:
        """Return at most so many rows, drawn at random."""
        if len(self.y) <= most_rows:
            return self
        keep = np.sort(np.random.default_rng(0).permutation(len(self.y))[:most_rows])
        return replace(self, X=self.X[keep], y=self.y[keep])

    def check(self) -> None:
        """Raise where nothing can be held out and scored."""
        if len(self.y) < LEAST_ROWS:
            raise NoArena(f"it has fewer than {LEAST_ROWS} rows.")
        if np.ptp(self.y) == 0:
            raise NoArena("its target is the same in all rows.")
        if self.outcomes and min(np.sum(self.y == one) for one in (0, 1)) < FEWEST_OF_ONE_OUTCOME:
            raise NoArena(f"an outcome occurs in fewer than {FEWEST_OF_ONE_OUTCOME} rows.")


Arena = Callable[[int], PublicTable]
"""The table of a trial: always the same, or simulated anew."""


# --- a folder -------------------------------------------------------------------------------------

TABLES = (".csv", ".csv.gz", ".parquet", ".xlsx")
SCHEMAS = (".toml", ".json", ".schema.json")


def in_folder(folder: Path, *, most_rows: int) -> dict[str, Arena]:
    """Return the tables of a folder by name: each file with a schema of its name beside it."""
    found: dict[str, Arena] = {}
    for path in sorted(folder.iterdir()):
        name = next((path.name.removesuffix(end) for end in TABLES if path.name.endswith(end)), "")
        if name:
            table = _read(path, _schema_of(path, name)).drawn(most_rows)
            found[name] = partial(_always, table)
    if not found:
        raise NoArena(f"there is no table in {folder}: none ends in {listed(TABLES, 'or')}.")
    return found


def _always(table: PublicTable, _trial: int) -> PublicTable:
    return table


def _schema_of(path: Path, name: str) -> Path:
    places = [path.with_name(f"{name}{end}") for end in SCHEMAS]
    for place in places:
        if place.is_file():
            return place
    wanted = listed((place.name for place in places), "or")
    raise NoArena(f"the table {path.name} has no schema: {wanted} must lie beside it.")


def _read(path: Path, schema_file: Path) -> PublicTable:
    """Read a table by its schema; what is wrong with it is told with its name."""
    from dpscreen.tables.declaration import DataError
    from dpscreen.tables.reading import read_rows
    from dpscreen.tables.schema import load_schema

    try:
        schema = load_schema(schema_file)
        schema.check()
        if schema.rows_per_unit != 1:
            raise NoArena(
                "its schema has a unit of several rows, and the peers protect single rows."
            )
        rows = read_rows(path, schema)
        bounds = schema.feature_bounds, schema.target_bounds
        table = PublicTable(rows.X, rows.y, *bounds, outcomes=schema.classes is not None)
        table.check()
    except (DataError, NoArena) as problem:
        raise NoArena(f"the table {path.name}: {problem}") from None
    return table


# --- simulated ------------------------------------------------------------------------------------

Draw = Callable[[np.random.Generator], tuple[Array, Array, float]]
"""Features, what is expected of the target, and how wide the bounds of features are."""


def _sparse(rng: np.random.Generator) -> tuple[Array, Array, float]:
    X = rng.normal(size=(5000, 100))
    return X, X[:, :5] @ rng.choice([-1.0, 1.0], 5), 8.0


def _dense(rng: np.random.Generator) -> tuple[Array, Array, float]:
    X = rng.normal(size=(5000, 30))
    return X, X @ rng.normal(size=30) / np.sqrt(30), 8.0


def _correlated(rng: np.random.Generator) -> tuple[Array, Array, float]:
    X = rng.normal(size=(5000, 40))
    for j in range(1, 40):
        X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1 - 0.81) * X[:, j]
    return X, X[:, ::8] @ np.array([1.0, -1.0, 1.0, -1.0, 1.0]), 8.0


def _categories(rng: np.random.Generator) -> tuple[Array, Array, float]:
    """Four columns of eight levels, some of them rare, as 0 and 1; each level has an effect."""
    chances = 0.6 ** np.arange(8) / np.sum(0.6 ** np.arange(8))
    picks = [rng.choice(8, size=5000, p=chances) for _ in range(4)]
    X = np.hstack([np.eye(8)[one][:, 1:] for one in picks])
    return X, X @ rng.normal(size=28), 1.0


def _heavy_tails(rng: np.random.Generator) -> tuple[Array, Array, float]:
    X = np.sign(rng.normal(size=(5000, 20))) * np.exp(rng.normal(size=(5000, 20)))
    return np.clip(X, -40, 40), np.clip(X, -3, 3)[:, :6] @ np.full(6, 0.5), 40.0


def _few_rows(rng: np.random.Generator) -> tuple[Array, Array, float]:
    X = rng.normal(size=(400, 15))
    return X, X[:, :3] @ np.array([1.0, -1.0, 0.5]), 5.0


NUMBER_DESIGNS: dict[str, Draw] = {
    "sparse": _sparse,
    "dense": _dense,
    "correlated": _correlated,
    "categories": _categories,
    "heavy tails": _heavy_tails,
    "few rows": _few_rows,
}
OUTCOME_DESIGNS: dict[str, Draw] = {
    "sparse outcomes": _sparse,
    "correlated outcomes": _correlated,
    "categories outcomes": _categories,
}


def simulated(seed: str = "0") -> dict[str, Arena]:
    """Return all designs by name; half of a target's variance is noise."""
    found: dict[str, Arena] = {}
    for name, draw in NUMBER_DESIGNS.items():
        found[f"simulated, {name}"] = partial(_numbers, draw, f"{seed}/{name}")
    for name, draw in OUTCOME_DESIGNS.items():
        found[f"simulated, {name}"] = partial(_outcomes, draw, f"{seed}/{name}")
    return found


def _numbers(draw: Draw, seed: str, trial: int) -> PublicTable:
    rng = np.random.default_rng(named_seed(f"design/{seed}/{trial}"))
    X, expected, width = draw(rng)
    y = expected + expected.std() * rng.normal(size=len(X))
    most = 8 * float(np.sqrt(2) * expected.std())
    target = np.clip(y, -most, most)
    return PublicTable(X, target, _bounds(X, width), (-most, most), simulated=True)


def _outcomes(draw: Draw, seed: str, trial: int) -> PublicTable:
    rng = np.random.default_rng(named_seed(f"design/{seed}/{trial}"))
    X, expected, width = draw(rng)
    log_odds = 1.5 * (expected - expected.mean()) / expected.std() - 0.5
    y = (rng.random(len(X)) < 1 / (1 + np.exp(-log_odds))).astype(np.float64)
    return PublicTable(X, y, _bounds(X, width), (0.0, 1.0), outcomes=True, simulated=True)


def _bounds(X: Array, width: float) -> Array:
    """Return ±width; (0, 1) for levels."""
    low = 0.0 if width == 1.0 else -width
    return np.tile((low, width), (X.shape[1], 1))
