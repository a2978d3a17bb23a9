"""MST and AIM: noisy marginals; least squares or LASSO on synthetic rows, or on a tree's moments.

R. McKenna, G. Miklau and D. Sheldon (2021). Winning the NIST contest. Journal of Privacy and
Confidentiality 11(3). R. McKenna, B. Mullins, D. Sheldon and G. Miklau (2022). AIM: an adaptive and
iterative mechanism for differentially private synthetic data. PVLDB 15(11). C. Ferrando and D.
Sheldon (2024). Private regression via data-dependent sufficient statistic perturbation.
arXiv:2405.15002. Models are fitted by their package `mbi`, and AIM is OpenDP's: both come with
`opendp[mbi]`, in an environment of its own (it asks for an older polars than others).
"""

from __future__ import annotations

import hashlib
import importlib
import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.contest.libraries import NotInstalled
from dpscreen.privacy import ZCDP, Accountant, Budget, Noise, NoisyMax
from dpscreen.privacy.accountant import release_histograms

Array = Any
CELLS, MOST_COLUMNS, STEPS = 16, 12, 1000
FINE = 2**10


@dataclass(frozen=True, eq=False)
class Line:
    """Coefficients in the user's units, the constant last."""

    coef: Array

    def predict(self, X: Array) -> Array:
        return X @ self.coef[:-1] + self.coef[-1]


@dataclass(frozen=True, eq=False)
class Cells:
    """Rows in cells of equal width, and the middles of the cells; a flag has two."""

    codes: Array
    middles: list[Array]

    @classmethod
    def of(cls, rows: Array, bounds: Array) -> Cells:
        codes, middles = np.empty(rows.shape, dtype=np.int64), []
        for j, (low, high) in enumerate(bounds.tolist()):
            flag = (low, high) == (0.0, 1.0)
            count = 2 if flag else CELLS
            part = (rows[:, j] - low) / (high - low) * count
            codes[:, j] = np.clip(np.rint(rows[:, j]) if flag else part, 0, count - 1)
            middles.append(
                np.array([0.0, 1.0])
                if flag
                else low + (np.arange(count) + 0.5) * (high - low) / count
            )
        return cls(codes, middles)

    @property
    def shape(self) -> list[int]:
        return [len(one) for one in self.middles]

    def drawn(self, codes: Array) -> Array:
        """Return rows with the middles of their cells."""
        columns = zip(codes.T.astype(np.int64), self.middles, strict=True)
        return np.column_stack([middles[column] for column, middles in columns])

    def counts(self, i: int, j: int | None = None) -> Array:
        """Return how many rows are in every cell of one column, or of two."""
        if j is None:
            return np.bincount(self.codes[:, i], minlength=self.shape[i])
        whole = self.codes[:, i] * self.shape[j] + self.codes[:, j]
        return np.bincount(whole, minlength=self.shape[i] * self.shape[j])


def fit(
    X: Array,
    y: Array,
    bounds: Array,
    target_bounds: tuple[float, float],
    budget: Budget,
    noise: Noise,
    *,
    how: str,
) -> Line:
    """Release marginals, and fit a line: "mst-ols", "mst-lasso", "aim-ols", "aim-lasso" on rows.

    "mst-moments" (dd-ssp) is on the moments of the tree.
    """
    if X.shape[1] + 1 > MOST_COLUMNS:
        raise ValueError(f"more than {MOST_COLUMNS} columns.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mbi = importlib.import_module("mbi")
    except ImportError as problem:
        raise NotInstalled(f"mbi: {problem}") from problem
    rows = np.column_stack((X, y))
    cells = Cells.of(rows, np.vstack((bounds, target_bounds)))
    key = how.partition("-")[0], hashlib.sha256(rows.tobytes()).digest(), budget
    if key not in _LAST:  # methods that start from the same marginals share them
        if len(_LAST) >= MOST_KEPT:
            _LAST.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            release = _adaptive if how.startswith("aim") else _tree
            _LAST[key] = release(mbi, cells, len(y), budget, noise)
    drawn, moments = _LAST[key]
    if how == "mst-moments":
        return _from_moments(*moments)
    if how.endswith("lasso"):
        return _lasso(drawn)
    return _from_moments(drawn.mean(axis=0), np.cov(drawn.T, bias=True))


_LAST: dict[Any, tuple[Array, Any]] = {}
"""Synthetic rows and moments of the last releases, by method, rows and budget."""

MOST_KEPT = 8
"""As many as there are methods and budgets of one table."""


def _tree(mbi: Any, cells: Cells, n_rows: int, budget: Budget, noise: Noise) -> tuple[Array, Any]:
    """Return synthetic rows by MST, and the moments of its tree."""
    edges, measured = released_tree(cells, budget, noise)
    domain = mbi.Domain(list(range(len(cells.shape))), cells.shape)
    model = mbi.estimation.mirror_descent(
        domain,
        [mbi.LinearMeasurement(*one) for one in measured],
        known_total=float(n_rows),
        iters=STEPS,
    )
    tables = {edge: np.asarray(model.project(edge).values) for edge in edges}
    np.random.seed(int(noise.words(1)[0] % 2**32))  # what mbi draws from
    found = model.synthetic_data(n_rows, "sample").df  # "round" makes columns dependent
    codes = np.column_stack([found[j] for j in range(len(cells.shape))])
    return cells.drawn(codes), tree_moments(cells.middles, tables)


def _adaptive(
    _mbi: Any, cells: Cells, n_rows: int, budget: Budget, _noise: Noise
) -> tuple[Array, Any]:
    """Return synthetic rows by OpenDP's AIM with all pairs for its workload; its noise is its own.

    A column of codes has a cell more, for what is no key, which holds noise alone.
    """
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    names = [f"c{j}" for j in range(len(cells.shape))]
    rho = float(ZCDP.within(budget).rho) * (1 - 1e-12)
    context = dp.Context.compositor(
        data=pl.DataFrame(cells.codes, schema=names).lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=rho),
    )
    keys = {name: list(range(count)) for name, count in zip(names, cells.shape, strict=True)}
    table = context.query(rho=rho).contingency_table(keys=keys, algorithm=dp.mbi.AIM(queries=2))
    found = table.release().synthesize(n_rows, method="sample").drop_nulls()
    return cells.drawn(found.select(names).to_numpy()), None


def _lasso(drawn: Array) -> Line:
    """Return LASSO on synthetic rows, its penalty by cross-validation on them."""
    from sklearn.linear_model import LassoCV

    centre, scale = drawn.mean(axis=0), drawn.std(axis=0) + 1e-12
    unit = (drawn - centre) / scale
    found = LassoCV(cv=5).fit(unit[:, :-1], unit[:, -1]).coef_ * scale[-1] / scale[:-1]
    return Line(np.append(found, centre[-1] - found @ centre[:-1]))


def released_tree(
    cells: Cells, budget: Budget, noise: Noise
) -> tuple[list[tuple[int, int]], list[tuple[Array, tuple[int, ...], float]]]:
    """Release single marginals, choose a spanning tree by noisy maxima, release its pairs."""
    limit, columns = ZCDP.within(budget), range(len(cells.shape))
    accountant, third = Accountant(noise, limit=limit), limit / 3
    single, scale = release_histograms(
        accountant,
        np.concatenate([cells.counts(j) for j in columns]),
        change=math.sqrt(len(columns)),
        cost=third,
        purpose="marginals",
    )
    parts = np.split(single, np.cumsum(cells.shape)[:-1])
    measured = [(part, (j,), scale) for j, part in zip(columns, parts, strict=True)]
    shares = [np.maximum(part, 0) / max(np.maximum(part, 0).sum(), 1e-9) for part in parts]
    pairs = [(i, j) for i in columns for j in columns if i < j]
    n = len(cells.codes)
    distances = [
        float(np.abs(cells.counts(i, j) - n * np.outer(shares[i], shares[j]).ravel()).sum())
        for i, j in pairs
    ]
    edges = _spanning(pairs, np.array(distances), len(columns), accountant, third)
    counts = np.concatenate([cells.counts(*edge) for edge in edges])
    double, scale = release_histograms(
        accountant, counts, change=math.sqrt(len(edges)), cost=third, purpose="pairs"
    )
    ends = np.cumsum([cells.shape[i] * cells.shape[j] for i, j in edges])[:-1]
    split = np.split(double, ends)
    return edges, measured + [(one, edge, scale) for one, edge in zip(split, edges, strict=True)]


def _spanning(
    pairs: list[tuple[int, int]],
    distances: Array,
    n_columns: int,
    accountant: Accountant,
    budget: ZCDP,
) -> list[tuple[int, int]]:
    """Choose edges one after the other among those that join two parts.

    One row moves every L1 distance by at most 1, as n and the single marginals are public or
    released; distances are rounded down to a unit.
    """
    part, edges = list(range(n_columns)), []
    scores = np.floor(distances * FINE).astype(np.int64)
    mechanism = NoisyMax.of_cost(budget / (n_columns - 1), sensitivity=1 + 1 / FINE, unit=1 / FINE)
    while len(edges) < n_columns - 1:
        allowed = np.array([part[i] != part[j] for i, j in pairs])
        places = np.flatnonzero(allowed)
        best = places[accountant.release(mechanism, scores[places], purpose="pair of the tree")]
        i, j = pairs[best]
        edges.append((i, j))
        old, new = part[j], part[i]
        part = [new if one == old else one for one in part]
    return edges


def tree_moments(middles: list[Array], tables: dict[tuple[int, int], Array]) -> tuple[Array, Array]:
    """Return means and covariances under a tree of pairs, by the law of total expectation."""
    p = len(middles)
    near: dict[int, dict[int, Array]] = {j: {} for j in range(p)}
    share: dict[int, Array] = {}
    for (i, j), table in tables.items():
        whole = np.maximum(table, 1e-12) / np.maximum(table, 1e-12).sum()
        near[i][j], near[j][i] = whole, whole.T
        share[i], share[j] = whole.sum(axis=1), whole.sum(axis=0)
    means = np.array([share[j] @ middles[j] for j in range(p)])
    covariance = np.empty((p, p))
    for root in range(p):
        # What is expected of the root given the cell of a column, along the tree.
        stack, expected = [(root, -1)], {root: middles[root]}
        while stack:
            j, before = stack.pop()
            covariance[root, j] = share[j] @ (expected[j] * middles[j]) - means[root] * means[j]
            for k, table in near[j].items():
                if k != before:
                    expected[k] = (table.T @ expected[j]) / table.sum(axis=0)
                    stack.append((k, j))
    return means, (covariance + covariance.T) / 2


def _from_moments(means: Array, covariance: Array) -> Line:
    """Return least squares of the last column on the others, with a constant."""
    inner, beside = covariance[:-1, :-1], covariance[:-1, -1]
    slopes = np.linalg.lstsq(inner, beside, rcond=1e-8)[0]
    return Line(np.append(slopes, means[-1] - slopes @ means[:-1]))
