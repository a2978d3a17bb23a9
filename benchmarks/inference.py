"""Do intervals cover as often as they should? `python -m benchmarks inference [repetitions]`.

Two tables are printed: real columns whose target is the least-squares fit with residuals drawn anew
(they lie in DPSCREEN_DATA, as for `tables-quality`), and simulated designs. So the truth is known.
Where features are left out, it is that of the model without them.

`DPSCREEN_DESIGNS` and `DPSCREEN_TABLES` choose by a part of a name ("none" for none),
`DPSCREEN_EPSILONS` the budgets, `DPSCREEN_STUDY` the seed. With `DPSCREEN_PAGE`, tables also go
between the markers of that page; every tenth repetition writes what there is, so a study may be
stopped at any time.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.markdown import write
from benchmarks.tables_quality import DELTA, harness
from benchmarks.timing import autoregressive, repeats, report, side_by_side
from dpscreen import PrivateOLS

Array = NDArray[np.float64]

EPSILONS = "0.5 1 3 5 10"
STUDY = "131072"
ROWS = 20_000
LEAST_ROWS = 3_900
"""Smaller real tables have no intervals at the budgets of the page."""

WANTED, BY_FEATURE = (0.93, 0.985), 0.90
NORMAL = 1.959964


@dataclass(frozen=True, eq=False)
class Draw:
    """Rows as a user has them, as numbers, the true coefficients, and what a user declares."""

    table: Any
    numbers: Array
    names: Sequence[str]
    y: Array
    signal: Array
    declared: dict[str, Any]


Design = Callable[[np.random.Generator], Draw]


# --- simulated designs ----------------------------------------------------------------------------


def simulated(X: Array, beta: Sequence[float], noise: Array) -> Draw:
    """Return a draw of purely numeric columns, with bounds far wider than they are."""
    signal = X @ np.asarray(beta) + 3
    bound = 3 * float(np.abs(X).max())
    declared = {"feature_bounds": (-bound, 1.5 * bound), "target_bounds": (-2000.0, 3000.0)}
    names = [f"x{j}" for j in range(X.shape[1])]
    return Draw(X, X, names, signal + noise, signal, declared)


SLOPES = (1.0, -0.5, 0.0, 0.3, 0.0, 1.0, 0.0, -0.2)


def eight(rng: np.random.Generator, rho: float = 0.5) -> Array:
    """Return eight normal columns, each correlated with its neighbours."""
    return autoregressive(rng, ROWS, len(SLOPES), rho)


def correlated(rho: float) -> Design:
    """Return a design with normal noise and so correlated columns."""
    return lambda rng: simulated(eight(rng, rho), SLOPES, rng.normal(0, 2, ROWS))


def skewed(rng: np.random.Generator) -> Draw:
    """Noise like incomes: a lognormal, less its mean."""
    noise = rng.lognormal(0, 0.8, ROWS) - np.exp(0.32)
    return simulated(eight(rng), SLOPES, 2 * noise)


def uneven(rng: np.random.Generator) -> Draw:
    """Normal noise whose spread follows a feature."""
    X = eight(rng)
    return simulated(X, SLOPES, np.exp(X[:, 0] / 2) * rng.normal(0, 2, ROWS))


def skewed_uneven(rng: np.random.Generator) -> Draw:
    """Skewed noise whose spread follows a feature: clips pull one way, and with that feature."""
    X = eight(rng)
    return simulated(X, SLOPES, (0.3 + np.abs(X[:, 0])) * 2 * (rng.exponential(size=ROWS) - 1))


def heavy(rng: np.random.Generator) -> Draw:
    """Noise from a t law with three degrees of freedom."""
    return simulated(eight(rng), SLOPES, 2 * rng.standard_t(3, ROWS))


WARDS, PAYERS = ["A", "B", "C", "D"], ["own", "state"]


def categories(rng: np.random.Generator, n: int = ROWS) -> Draw:
    """Two categories, one with a rare level, beside a normal and a skewed column."""
    ward = rng.choice(WARDS, n, p=[0.55, 0.3, 0.12, 0.03])
    payer = rng.choice(PAYERS, n, p=[0.7, 0.3])
    age = rng.normal(50, 12, n) + 4 * (ward == "B")
    table = pd.DataFrame({"age": age, "dose": rng.exponential(3, n), "ward": ward, "payer": payer})
    columns = {"age": age, "dose": table["dose"].to_numpy()}
    columns |= {f"ward={level}": (ward == level).astype(float) for level in WARDS[1:]}
    columns |= {"payer=state": (payer == "state").astype(float)}
    X = np.column_stack(list(columns.values()))
    signal = X @ [2.0, -1.0, 3.0, 0.0, 8.0, -2.0] + 5
    declared = {
        "feature_bounds": {"age": (0, 150), "dose": (0, 200)},
        "target_bounds": (-1000, 2000),
        "categories": {"ward": WARDS, "payer": PAYERS},
    }
    return Draw(table, X, list(columns), signal + rng.normal(0, 15, n), signal, declared)


def visits(rng: np.random.Generator) -> Draw:
    """Not looked at while rules were made: counts, many zeros, a square, noise that is uneven."""
    age = rng.uniform(20, 80, ROWS)
    X = np.column_stack(
        (
            age,
            (age - 50) ** 2 / 100,
            rng.poisson(1.5, ROWS),
            np.where(rng.random(ROWS) < 0.85, 0.0, rng.gamma(2, 5, ROWS)),
            rng.random(ROWS) < 0.2,
            rng.negative_binomial(2, 0.3, ROWS),
        )
    ).astype(float)
    noise = rng.gumbel(-0.5772, 1, ROWS) * np.sqrt(2 + 2 * X[:, 2])
    return simulated(X, (0.05, -0.3, 1.0, 0.2, 0.0, -0.1), noise)


def two_groups(rng: np.random.Generator) -> Draw:
    """Nor this: two clouds of rows far apart, a lognormal column, noise of two sorts."""
    group = (rng.random(ROWS) < 0.25).astype(float)
    cloud = rng.normal(size=(ROWS, 3)) * (1 + 2 * group)[:, None] + 6 * group[:, None]
    income = rng.lognormal(0, 0.9, (ROWS, 1))
    X = np.hstack((cloud, income, group[:, None], cloud[:, :1] + rng.normal(0, 0.5, (ROWS, 1))))
    wild = rng.random(ROWS) < 0.1
    noise = np.where(wild, 6, 1.5) * rng.laplace(size=ROWS)
    return simulated(X, (0.5, 0.0, -1.0, 0.8, 2.0, 0.0), noise)


def rare_levels(rng: np.random.Generator) -> Draw:
    """Nor this: levels that one row in fifty and one in two hundred have, and sums mostly zero."""
    X = np.column_stack(
        (
            rng.normal(size=ROWS),
            rng.random(ROWS) < 0.02,
            rng.random(ROWS) < 0.005,
            np.where(rng.random(ROWS) < 0.95, 0.0, rng.lognormal(5, 0.5, ROWS)),
        )
    ).astype(float)
    return simulated(X, (1.0, 3.0, 3.0, 0.01), rng.normal(size=ROWS))


DESIGNS: dict[str, Design] = {
    "categories": categories,
    "AR .5": correlated(0.5),
    "AR .9": correlated(0.9),
    "skewed": skewed,
    "uneven": uneven,
    "skewed and uneven": skewed_uneven,
    "t with 3 df": heavy,
    "visits (new)": visits,
    "two groups (new)": two_groups,
    "rare levels (new)": rare_levels,
}


# --- real columns ---------------------------------------------------------------------------------


def resampled(tables: Any, task: Any, looseness: float = 4.0) -> Design:
    """Return the design with the columns of a table, a known line and residuals drawn anew."""
    X = with_constant(task.X)
    signal = X @ np.linalg.lstsq(X, task.y)[0]
    residuals = task.y - signal

    def draw(rng: np.random.Generator) -> Draw:
        y = signal + rng.choice(residuals, len(signal))
        features, target = tables.loose_bounds(replace(task, y=y), looseness, rng)
        declared = {"feature_bounds": features, "target_bounds": target}
        return Draw(task.X, task.X, task.names, y, signal, declared)

    return draw


def real_designs() -> dict[str, Design]:
    """Return the tables that are large enough; none where there is no data."""
    part = os.environ.get("DPSCREEN_TABLES", "")
    if part == "none" or "DPSCREEN_DATA" not in os.environ:
        return {}
    tables = harness()
    tasks = [task for task in tables.tasks("regression") if len(task.y) >= LEAST_ROWS]
    return {
        task.name.split("-")[-1]: resampled(tables, task) for task in tasks if part in task.name
    }


# --- one repetition -------------------------------------------------------------------------------


def with_constant(X: Array) -> Array:
    return np.hstack((X, np.ones((len(X), 1))))


def least_squares(X: Array, *targets: Array) -> tuple[list[Array], Array]:
    """Return the coefficients of several targets, and robust standard errors of the first's.

    They are HC3's, residuals over 1 − leverage: others are too short where one row has much of it.
    """
    scales = X.std(axis=0)
    Z = with_constant((X - X.mean(axis=0)) / scales)
    inverse = np.linalg.inv(Z.T @ Z)
    found = [inverse @ (Z.T @ target) for target in targets]
    leverage = ((Z @ inverse) * Z).sum(axis=1)
    residuals = (targets[0] - Z @ found[0]) / (1 - leverage)
    meat = Z.T @ (Z * (residuals**2)[:, None])
    errors = np.sqrt(np.diag(inverse @ meat @ inverse))
    return [one[:-1] / scales for one in found], errors[:-1] / scales


@dataclass
class Cell:
    """What was found for a design and a budget, a line for each repetition and NaN if nothing."""

    level: float = 0.95
    names: Sequence[str] = ()
    n_rows: int = 0
    held: list[Array] = field(default_factory=list)
    wider: list[Array] = field(default_factory=list)

    def add(self, draw: Draw, epsilon: float, seed: str) -> None:
        """Fit once; compare the intervals with the truth and with robust ones."""
        self.names, self.n_rows = draw.names, len(draw.y)
        low, high = self._private(draw, epsilon, seed) if epsilon < np.inf else self._plain(draw)
        known = np.flatnonzero(np.isfinite(low))
        held, wider = np.full((2, len(low)), np.nan)
        if known.size:
            (_, truth), errors = least_squares(draw.numbers[:, known], draw.y, draw.signal)
            held[known] = (low[known] <= truth) & (truth <= high[known])
            wider[known] = (high - low)[known] / (2 * NORMAL * errors)
        self.held.append(held)
        self.wider.append(wider)

    def _private(self, draw: Draw, epsilon: float, seed: str) -> Array:
        model = PrivateOLS(epsilon=epsilon, delta=DELTA, random_state=seed, **draw.declared)
        return model.fit(draw.table, draw.y).conf_int(self.level).to_numpy()[:-1].T

    def _plain(self, draw: Draw) -> tuple[Array, Array]:
        """Return the robust intervals of least squares itself: draws may be unlucky for all."""
        (found,), errors = least_squares(draw.numbers, draw.y)
        return found - NORMAL * errors, found + NORMAL * errors

    @property
    def often(self) -> NDArray[np.bool_]:
        """Return which features have an interval in half of the repetitions or more."""
        return np.isfinite(self.held).mean(axis=0) >= 0.5

    @property
    def coverage(self) -> float:
        return float(np.nanmean(self.held)) if np.isfinite(self.held).any() else np.nan

    @property
    def lowest(self) -> tuple[float, str]:
        """Return the least coverage of a feature, and its name."""
        means = np.nanmean(np.array(self.held)[:, self.often], axis=0)
        worst = int(np.argmin(means))
        return float(means[worst]), str(np.array(self.names)[self.often][worst])

    @property
    def widths(self) -> tuple[float, float]:
        """Return the median over robust intervals' width, and that of the widest feature."""
        by_feature = np.nanmedian(np.array(self.wider)[:, self.often], axis=0)
        return float(np.nanmedian(self.wider)), float(by_feature.max())

    def shown(self) -> str:
        """Return a cell of the page."""
        if not self.often.any():
            return "no intervals"
        (low, _), (median, largest) = self.lowest, self.widths
        missing = int((~self.often).sum())
        without = f", {missing} without" if missing else ""
        return f"{self.coverage:.3f} ({low:.2f}), {median:.2f} ({largest:.1f}){without}"

    def misses(self) -> Iterator[str]:
        """Yield what is not as it should be."""
        if not self.often.any():
            return
        low, name = self.lowest
        if not WANTED[0] <= self.coverage <= WANTED[1]:
            yield f"coverage {self.coverage:.3f}"
        if low < BY_FEATURE:
            yield f"{name} {low:.2f}"


Found = dict[str, dict[float, Cell]]


def measure(
    designs: dict[str, Design], epsilons: Sequence[float], repetitions: int
) -> Iterator[Found]:
    """Yield all cells after every round, which takes all designs once."""
    epsilons = [*epsilons, np.inf]
    found: Found = {name: {epsilon: Cell() for epsilon in epsilons} for name in designs}
    study = os.environ.get("DPSCREEN_STUDY", STUDY)
    for round_ in range(repetitions):
        for name, design in designs.items():
            draw = design(np.random.default_rng([int(study), round_, *name.encode()]))
            for epsilon in epsilons:
                found[name][epsilon].add(draw, epsilon, f"{study} {name} {epsilon} {round_}")
        yield found


# --- the page -------------------------------------------------------------------------------------


def page(found: Found) -> str:
    """Return a table in Markdown, and the misses."""
    epsilons = list(next(iter(found.values())))
    lines = [
        "| | rows × features, repetitions | " + " | ".join(map(_budget, epsilons)) + " |",
        "|---|---|" + "---|" * len(epsilons),
    ]
    for name, cells in found.items():
        first = cells[epsilons[0]]
        size = f"{first.n_rows} × {len(first.names)}, {len(cells[epsilons[-1]].held)}"
        shown = " | ".join(cells[epsilon].shown() for epsilon in epsilons)
        lines.append(f"| {name} | {size} | {shown} |")
    return "\n".join(lines) + "\n\n" + _misses(found)


def _budget(epsilon: float) -> str:
    return f"ε = {epsilon:g}" if epsilon < np.inf else "least squares"


def _misses(found: Found) -> str:
    missed = [
        f"* {name}, {_budget(epsilon)}: {', '.join(misses)}"
        for name, cells in found.items()
        for epsilon, cell in cells.items()
        if (misses := list(cell.misses()))
    ]
    low, high = WANTED
    limits = f"Outside {low:g} to {high:g}, or a feature below {BY_FEATURE:g}:"
    return "\n".join([limits, "", *missed]) if missed else f"{limits} none."


def main() -> None:
    """Measure both kinds of designs and report them."""
    warnings.simplefilter("ignore")
    repetitions = repeats(60)
    epsilons = [float(one) for one in os.environ.get("DPSCREEN_EPSILONS", EPSILONS).split()]
    part = os.environ.get("DPSCREEN_DESIGNS", "")
    chosen = {name: design for name, design in DESIGNS.items() if part in name}
    kinds = {"real columns": real_designs(), "simulated designs": chosen}
    whole = {name: design for designs in kinds.values() for name, design in designs.items()}
    for done, found in enumerate(measure(whole, epsilons, repetitions), start=1):
        if done % 10 == 0 or done == repetitions:
            for kind, designs in kinds.items():
                if designs:
                    write(kind, page({name: found[name] for name in designs}))


# --- speed ----------------------------------------------------------------------------------------


def speed(n: int = 1_000_000, d: int = 20) -> None:
    """Report the time of a fit over a bare pass over the same rows."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(n, d)), rng.random((n, 1))
    y = X[:, 0] - X[:, 1] / 2 + rng.normal(size=n)
    model = PrivateOLS(
        epsilon=1, delta=1e-9, feature_bounds=(-10, 10), target_bounds=(-40, 40), random_state=0
    )
    bare, fit = side_by_side(lambda: X.T @ (X * w), lambda: model.fit(X, y))
    report(f"PrivateOLS, {n} x {d}: a fit over a bare pass X.T @ (X * w)", fit / bare, at_most=12)
