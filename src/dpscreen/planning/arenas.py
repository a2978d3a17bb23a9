"""Where methods compete: public tables with their schemas, and simulated ones of a few kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from dpscreen._core.arrays import Array, Mask
from dpscreen._core.words import listed
from dpscreen.families import BINOMIAL, GAUSSIAN, Family, family_of
from dpscreen.planning.methods import FAMILY_METHODS
from dpscreen.planning.setting import normal_rows
from dpscreen.privacy import named_seed

LEAST_ROWS, LEAST_ROWS_OF_A_CLASS = 20, 5
"""Fewest rows of a table, and of either class, on which methods compete. Conventional."""


class NoArena(ValueError):
    """Why a folder, or a table of it, cannot be played on."""


@dataclass(frozen=True, eq=False)
class PublicTable:
    """Rows that anybody may see, with bounds as a user declares them; classes are 0 and 1."""

    X: Array
    y: Array
    feature_bounds: Array
    target_bounds: tuple[float, float]
    family: Family = GAUSSIAN
    simulated: bool = False

    @property
    def division(self) -> str:
        """Name the tables that this one is ranked with."""
        return FAMILY_METHODS[self.family.name].divided(simulated=self.simulated)

    @property
    def classes(self) -> list[Mask]:
        """Return the rows of each class; all rows where the target has more than two values."""
        values = np.unique(self.y)
        if len(values) > 2:
            return [np.ones(len(self.y), dtype=bool)]
        return [self.y == value for value in values]

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
        if min(rows.sum() for rows in self.classes) < LEAST_ROWS_OF_A_CLASS:
            raise NoArena(f"an outcome occurs in fewer than {LEAST_ROWS_OF_A_CLASS} rows.")


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
            schemas = [path.with_name(f"{name}{end}") for end in SCHEMAS]
            schema = next((one for one in schemas if one.is_file()), None)
            if schema is None:
                wanted = listed((one.name for one in schemas), "or")
                raise NoArena(f"the table {path.name} has no schema: expected {wanted} beside it.")
            table = _read(path, schema).drawn(most_rows)
            found[name] = partial(_always, table)
    if not found:
        raise NoArena(f"there is no table in {folder}: none ends in {listed(TABLES, 'or')}.")
    return found


def _read(path: Path, schema_file: Path) -> PublicTable:
    """Read a table by its schema; problems are reported with its name."""
    from dpscreen.tables.declaration import DataError
    from dpscreen.tables.reading import read_rows
    from dpscreen.tables.schema import load_schema

    try:
        schema = load_schema(schema_file)
        schema.check()
        if schema.rows_per_unit != 1:
            raise NoArena(
                "its schema has units of several rows, and the peers protect single rows."
            )

        rows = read_rows(path, schema)
        bounds = schema.feature_bounds, schema.target_bounds
        table = PublicTable(*rows.named_arrays()[:2], *bounds, family_of(schema.classes))
        table.check()
    except (DataError, NoArena) as problem:
        raise NoArena(f"the table {path.name}: {problem}") from None
    return table


def _always(table: PublicTable, _trial: int) -> PublicTable:
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
    X = normal_rows(5000, 40, 0.9, rng)
    return X, X[:, ::8] @ np.array([1.0, -1.0, 1.0, -1.0, 1.0]), 8.0


def _categories(rng: np.random.Generator) -> tuple[Array, Array, float]:
    """Four columns of eight levels, some of them rare, as 0 and 1; each level has an effect."""
    probabilities = 0.6 ** np.arange(8) / np.sum(0.6 ** np.arange(8))
    picks = [rng.choice(8, size=5000, p=probabilities) for _ in range(4)]
    X = np.hstack([np.eye(8)[one][:, 1:] for one in picks])
    return X, X @ rng.normal(size=28), 1.0


def _heavy_tails(rng: np.random.Generator) -> tuple[Array, Array, float]:
    X = np.sign(rng.normal(size=(5000, 20))) * np.exp(rng.normal(size=(5000, 20)))
    return np.clip(X, -40, 40), np.clip(X, -3, 3)[:, :6] @ np.full(6, 0.5), 40.0


def _few_rows(rng: np.random.Generator) -> tuple[Array, Array, float]:
    X = rng.normal(size=(400, 15))
    return X, X[:, :3] @ np.array([1.0, -1.0, 0.5]), 5.0


DESIGNS: dict[str, tuple[Family, Draw]] = {
    "sparse": (GAUSSIAN, _sparse),
    "dense": (GAUSSIAN, _dense),
    "correlated": (GAUSSIAN, _correlated),
    "categories": (GAUSSIAN, _categories),
    "heavy tails": (GAUSSIAN, _heavy_tails),
    "few rows": (GAUSSIAN, _few_rows),
    "sparse outcomes": (BINOMIAL, _sparse),
    "correlated outcomes": (BINOMIAL, _correlated),
    "categories outcomes": (BINOMIAL, _categories),
}


def simulated(seed: str = "0") -> dict[str, Arena]:
    """Return all designs by name; half of a continuous target's variance is noise."""
    return {
        f"simulated, {name}": partial(_drawn, family, draw, f"{seed}/{name}")
        for name, (family, draw) in DESIGNS.items()
    }


def _drawn(family: Family, draw: Draw, seed: str, trial: int) -> PublicTable:
    rng = np.random.default_rng(named_seed(f"design/{seed}/{trial}"))
    X, expected, width = draw(rng)
    predictors, scale, target_bounds = family.simulation.contested(expected)
    noise = rng.normal(size=len(X))
    y = np.clip(family.simulation.outcomes(predictors, noise, scale), *target_bounds)
    low = 0.0 if width == 1.0 else -width  # levels are 0 or 1
    bounds = np.tile((low, width), (X.shape[1], 1))
    return PublicTable(X, y, bounds, target_bounds, family, simulated=True)
