"""A point deep among many small models, drawn exactly: TukeyEM; and features by Kendall's τ.

Models are points of a lattice. How deep a lattice point lies among them is a whole number, so are
the sizes of all regions, and nothing here rounds (docs/theory/peers.md, Lemmas 43 and 44). Unlike
the other peers these methods have a pure ε, apart from a probability δ that a test errs, so their
ε are added up: one share of zCDP would cost them more.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import accumulate, pairwise
from typing import Any, TypeVar

import numpy as np
from scipy.special import ndtri

from dpscreen._core.arrays import Array, Integers
from dpscreen.privacy import BudgetExceeded, Noise, NoisyMax
from dpscreen.privacy.sampling import below_exponential, exponential_enclosure

Released = TypeVar("Released")

FINEST = 2.0**-30
"""The lattice's step, for features and target mapped onto [−1, 1]."""

MOST = 2**50
"""How many steps from zero the lattice ends; models beyond are moved to its end."""


class PureSpending:
    """Books pure ε before noise exists: costs add, adaptively.

    (docs/theory/mechanisms.md, Lemma 4)
    """

    def __init__(self, noise: Noise, epsilon: float) -> None:
        self.noise, self.left = noise, Fraction(epsilon)

    def release(
        self,
        mechanism: Callable[[Any, Noise], Released],
        values: Any,
        *,
        epsilon: Fraction,
        purpose: str,
    ) -> Released:
        """Book one call, then make it."""
        if epsilon > self.left:
            raise BudgetExceeded("a release does not fit into what is left of epsilon.")
        self.left -= epsilon
        return self.noise.answer(mechanism, values, purpose=purpose, account=self)


# --- how deep a point lies ------------------------------------------------------------------------


class Regions:
    """The lattice points of depth at least i among m models, for i = 0 to m.

    A point's depth is the least number, over coordinates and both sides, of models that lie there
    on that side or at the point. So each region is a box between two order statistics.
    """

    def __init__(self, models: Integers, most: int = MOST) -> None:
        ordered = np.sort(models, axis=0)
        edge = np.full((1, models.shape[1]), most, dtype=np.int64)
        self.low = np.vstack((-edge, ordered))
        self.high = np.vstack((edge, ordered[::-1]))

    @property
    def least_depth(self) -> int:
        """Return t: only points of at least this depth can be drawn."""
        return (len(self.low) - 1) // 4

    @cached_property
    def sizes(self) -> list[int]:
        """Return how many lattice points each region has, and 0 for what is deeper than all."""
        widths = np.maximum(self.high - self.low + 1, 0)
        return [math.prod(line) for line in widths.tolist()] + [0]

    def box(self, depth: int) -> list[tuple[int, int]]:
        """Return the first and the last lattice point of a region, in each coordinate."""
        return list(zip(self.low[depth].tolist(), self.high[depth].tolist(), strict=True))


# --- may a deep point be drawn? -------------------------------------------------------------------


def distance_to_unsafe(sizes: Sequence[int], n_models: int, epsilon: float, delta: float) -> int:
    """Return a number of models that must change at least before drawing is unsafe; 0 if it is now.

    Sizes N_i are of `Regions`. It is the count of k ≥ 0 with N_{t−1−k} ≤ δe^{ε(g−1)/2}N_{t+g+k} for
    some g ≥ 0, up to t. One model moves it by at most 1 (docs/theory/peers.md, Lemma 43).
    """
    least = n_models // 4
    factors = allowances(n_models, epsilon, delta)

    def unsafe(k: int) -> bool:
        inner = sizes[least + k : n_models + 1]
        outer = sizes[least - 1 - k] << SHIFT
        return all(outer > factor * size for factor, size in zip(factors, inner, strict=False))

    return bisect_left(range(least), True, key=unsafe)  # unsafe(k) implies unsafe(k + 1)


SHIFT = 256


@cache
def allowances(n_models: int, epsilon: float, delta: float) -> tuple[int, ...]:
    """Return δe^{ε(g−1)/2} for g = 0, 1, …, in units of 2^−256, rounded down."""
    low, high = exponential_enclosure(Fraction(epsilon) / 2, 60)
    found = [math.floor(Fraction(delta) * low * 2**SHIFT)]
    growth = math.floor(2**SHIFT / high)
    for _ in range(n_models):
        found.append(found[-1] * growth >> SHIFT)
    return tuple(found)


@dataclass(frozen=True)
class SafetyTest:
    """Whether a distance, with two-sided geometric noise, reaches a threshold.

    Requires    a whole number that one row moves by at most 1
    Guarantees  ε-DP; and where the number is 0 it passes with probability at most δ
                                                              (docs/theory/peers.md, Lemma 43)
    """

    epsilon: Fraction
    delta: float

    @property
    def threshold(self) -> int:
        """Return τ = ⌈ln(1/δ)/ε⌉, rounded up."""
        return math.ceil(-math.log(self.delta) / float(self.epsilon) * (1 + 1e-12))

    def __call__(self, distance: int, noise: Noise) -> bool:
        """Release whether it passes."""
        up, down = 0, 0
        while below_exponential(0, 0, self.epsilon, noise):
            up += 1
        while below_exponential(0, 0, self.epsilon, noise):
            down += 1
        return distance + up - down >= self.threshold


# --- a deep point ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class DeepPoint:
    """A lattice point of depth at least t, with probability proportional to e^{ε·depth/2}.

    Requires    one row changes one model
    Guarantees  (ε, δ)-DP where `distance_to_unsafe` is not 0 (docs/theory/peers.md, Lemma 43)
    """

    epsilon: Fraction

    def __call__(self, regions: Regions, noise: Noise) -> Integers:
        """Release the point: its depth i, with weight (N_i − N_{i+1})e^{εi/2}, then its place."""
        counts = [here - deeper for here, deeper in pairwise(regions.sizes)]
        filled = [depth for depth in range(regions.least_depth, len(counts)) if counts[depth]]
        # The weights over that of the deepest, in units of 2^−64: points·e^{−x}.
        shells = [(counts[i] << 64, (filled[-1] - i) * self.epsilon / 2) for i in filled]
        depth = filled[_weighted(shells, noise)]
        outer = regions.box(depth)
        inner = regions.box(depth + 1) if regions.sizes[depth + 1] else None
        return np.array(_in_shell(outer, inner, noise), dtype=np.int64)


def _weighted(shells: Sequence[tuple[int, Fraction]], noise: Noise) -> int:
    """Draw a place with weight points·e^{−x}, exactly, by rejection."""
    bounds = [math.floor(points * exponential_enclosure(x, 30)[1]) + 1 for points, x in shells]
    ends = list(accumulate(bounds))
    while True:
        number = noise.below(ends[-1])
        place = bisect_right(ends, number)
        if _below(number - ends[place] + bounds[place], *shells[place], noise):
            return place


def _below(place: int, factor: int, x: Fraction, noise: Noise) -> bool:
    """Whether place + U < factor·exp(−x), exactly, for a uniform U in [0, 1)."""
    precision, n_bits = 30, 0
    while True:
        low, high = (factor * side * 2**n_bits for side in exponential_enclosure(x, precision))
        if place + 1 <= low:
            return True
        if place >= high:
            return False
        place, n_bits, precision = place << 64 | noise.word(), n_bits + 64, 2 * precision


Box = list[tuple[int, int]]


def _in_shell(outer: Box, inner: Box | None, noise: Noise) -> list[int]:
    """Draw a point of a box that is not in one inside it, each with the same probability.

    The shell is cut by the first coordinate that lies outside the inner box.
    """
    whole = [high - low + 1 for low, high in outer]
    if inner is None:
        return [low + noise.below(width) for (low, _), width in zip(outer, whole, strict=True)]
    inside = [high - low + 1 for low, high in inner]
    counts = [
        math.prod(inside[:j]) * (whole[j] - inside[j]) * math.prod(whole[j + 1 :])
        for j in range(len(outer))
    ]
    number = noise.below(sum(counts))
    first = bisect_right(list(accumulate(counts)), number)
    before = [inner[j][0] + noise.below(inside[j]) for j in range(first)]
    after = [outer[j][0] + noise.below(whole[j]) for j in range(first + 1, len(outer))]
    beside = outer[first][0] + noise.below(whole[first] - inside[first])
    if beside >= inner[first][0]:
        beside += inside[first]
    return [*before, beside, *after]


# --- many models ----------------------------------------------------------------------------------


def small_models(X: Array, y: Array, parts: Integers, n_models: int) -> Integers:
    """Return the least-squares weights of every part's rows, the constant last, on the lattice.

    Each is a function of the rows of its part alone, so one row changes one of them.
    """
    columns = np.column_stack((X, np.ones(len(X))))
    order = np.argsort(parts, kind="stable")
    ends = np.searchsorted(parts[order], np.arange(1, n_models))
    weights = np.zeros((n_models, columns.shape[1]))
    for place, rows in enumerate(np.split(order, ends)):
        if len(rows):
            with suppress(np.linalg.LinAlgError):  # its rows alone decide: it stays at zero
                weights[place] = np.linalg.lstsq(columns[rows], y[rows])[0]
    return np.rint(np.clip(weights / FINEST, -MOST, MOST)).astype(np.int64)


def drawn_parts(n_rows: int, n_models: int, noise: Noise) -> Integers:
    """Return the part of every row, by secret and independent coins.

    (docs/theory/peers.md, Lemma 43)
    """
    high = noise.words(n_rows) >> np.uint64(32)
    return (high * np.uint64(n_models) >> np.uint64(32)).astype(np.int64)


TEST_SHARE = Fraction(1, 2)
"""The share of ε that the test takes; the rest draws the point."""

SPARE = 4.0
"""Standard deviations of its noise by which expected models should pass a test."""

LEAST_ROWS, ENOUGH_ROWS = 1.5, 3.0
"""How many rows a part must have for each weight, and should have before there are features."""

MODELS = (*range(40, 400, 20), *range(400, 3001, 100))


@cache
def models_needed(n_weights: int, epsilon: float, delta: float) -> int | None:
    """Return how many models pass the test if they scatter as normal ones; None if 3000 fail."""
    test = SafetyTest(TEST_SHARE * Fraction(epsilon), delta)
    wanted = test.threshold + SPARE / float(test.epsilon)
    rest = float(Fraction(epsilon) * (1 - TEST_SHARE))

    def passes(m: int) -> bool:
        # Regions are as wide as quantiles of a normal are apart.
        places = np.arange(1, m // 2 + 1) / (m + 1)
        levels = np.rint(-(2.0**20) * ndtri(places)).astype(np.int64).tolist()
        sizes = [MOST**n_weights, *(level**n_weights for level in levels)]
        sizes += [0] * (m + 2 - len(sizes))
        return distance_to_unsafe(sizes, m, rest, delta) >= wanted

    place = bisect_left(MODELS, True, key=passes)
    return MODELS[place] if place < len(MODELS) else None


def affordable(n_rows: int, n_weights: int, epsilon: float, delta: float) -> bool:
    """Whether there are rows for as many models as the test needs, by public numbers."""
    needed = models_needed(n_weights, epsilon, delta)
    return needed is not None and n_rows >= ENOUGH_ROWS * needed * n_weights


def n_models(n_rows: int, n_weights: int, epsilon: float, delta: float) -> int:
    """Return m: as many as the test needs, while rows suffice to fit each, but a few at least."""
    needed = models_needed(n_weights, epsilon, delta) or MODELS[-1]
    return max(8, min(needed, math.floor(n_rows / (LEAST_ROWS * n_weights))))


CENTRE_SHARE = Fraction(1, 20)
"""The share of ε that places the features."""

CELLS = 256


def cell_scores(counts: Integers) -> Integers:
    """Score each cell [g_k, g_{k+1}) by how many rows it is away from holding the median.

    u_k = −max(2·#{v < g_k} − n, n − 2·#{v < g_{k+1}}, 0), from the cells' counts, which add up to
    n. One row moves it by at most 1, up or down (docs/theory/peers.md, Lemma 11).
    """
    below = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    excess = 2 * below - below[-1]
    return np.asarray(-np.maximum(np.maximum(excess[:-1], -excess[1:]), 0))


def release_centres(spending: PureSpending, X: Array) -> Array:
    """Release a cell of [−1, 1] where the median of each feature lies, as the cell's middle.

    One row moves the scores of cells by at most 1, so each costs its ε (docs/theory/peers.md,
    Lemma 11). Around the middle of loose bounds weights and constant would go together.
    """
    edges, centres = np.linspace(-1, 1, CELLS + 1), np.zeros(X.shape[1])
    epsilon = spending.left * CENTRE_SHARE / max(1, len(centres))
    choose = NoisyMax(1.0, 2.0, _float_above(2 / epsilon))
    for j, column in enumerate(X.T):
        scores = cell_scores(np.histogram(column, edges)[0])
        cell = spending.release(choose, scores, epsilon=epsilon, purpose="where a feature lies")
        centres[j] = edges[cell] + 1 / CELLS
    return centres


def release_deep_model(
    spending: PureSpending, X: Array, y: Array, *, n_rows: int, delta: float
) -> Array | None:
    """Release weights, the constant last, for all that is left of ε; None if the test fails.

    X and y lie within [−1, 1], X perhaps moved since, and n_rows is public (docs/theory/peers.md,
    Lemma 43).
    """
    left, n_weights = spending.left, X.shape[1] + 1
    count = n_models(n_rows, n_weights, float(left), delta)
    parts = drawn_parts(len(X), count, spending.noise)
    regions = Regions(small_models(X, y, parts, count))
    test, draw = SafetyTest(left * TEST_SHARE, delta), DeepPoint(left * (1 - TEST_SHARE))
    distance = distance_to_unsafe(regions.sizes, count, float(draw.epsilon), delta)
    purpose = "how far the models are from an unsafe choice"
    if not spending.release(test, distance, epsilon=test.epsilon, purpose=purpose):
        return None
    purpose = "a model deep among the models of the parts"
    point = spending.release(draw, regions, epsilon=draw.epsilon, purpose=purpose)
    return np.asarray(point * FINEST, dtype=np.float64)


# --- features by Kendall's τ ----------------------------------------------------------------------

UNITS = 2**20
"""Units of a score in which a correlation of all pairs of n rows is n/2."""

KENDALL_SHARE = Fraction(1, 4)
"""The share of ε that choosing features takes."""

MOST_FEATURES = 10


def kendall_score(x: Array, y: Array) -> int:
    """Return |Σ sgn(x_a − x_b)sgn(y_a − y_b)|/(n − 1) over pairs of rows, in units, rounded down.

    One row moves it by at most 3/2 and a unit (docs/theory/peers.md, Lemma 44).
    """
    n = len(x)
    return abs(concordance(x, y)) * UNITS // (n - 1) if n > 1 else 0


def concordance(x: Array, y: Array) -> int:
    """Return how many more pairs are in the same order than in the other; ties count as none.

    scipy's τ_b is that number over a root of counts of ties, from which it is found again exactly
    below 10^7 rows.
    """
    from scipy.stats import kendalltau

    untied = []
    for values in (x, y):
        counts = np.unique(values, return_counts=True)[1].astype(object)
        untied.append(int(len(x) * (len(x) - 1) - (counts * (counts - 1)).sum()) // 2)
    if not all(untied):
        return 0
    if len(x) == 2:
        return int(np.sign((x[0] - x[1]) * (y[0] - y[1])))
    tau = kendalltau(x, y, method="asymptotic").statistic
    return round(float(tau) * math.sqrt(untied[0]) * math.sqrt(untied[1]))


def release_features(
    spending: PureSpending, X: Array, y: Array, count: int, *, epsilon: Fraction
) -> Integers:
    """Release features that go with the target, and not with those before them, one by one.

    Each by the exponential mechanism with ε/count, of scores that one row moves by at most 3/2 and
    a unit, or twice that and a unit (docs/theory/peers.md, Lemma 44).
    """
    scores = [kendall_score(column, y) for column in X.T]
    alike, chosen = np.zeros(X.shape[1], dtype=np.int64), list[int]()
    left = list(range(X.shape[1]))
    for _ in range(count):
        change = 1.5 + 1 / UNITS if not chosen else 3 + 3 / UNITS
        scale = 2 * Fraction(change) * count / epsilon
        choose = NoisyMax(change, 2 * change, _float_above(scale), 1 / UNITS)
        gains = np.array([scores[j] - int(alike[j]) // max(1, len(chosen)) for j in left])
        place = spending.release(
            choose, gains, epsilon=epsilon / count, purpose="a feature by its rank correlation"
        )
        chosen.append(left.pop(place))
        alike[left] += [kendall_score(X[:, j], X[:, chosen[-1]]) for j in left]
    return np.sort(np.array(chosen, dtype=np.int64))


def _float_above(number: Fraction) -> float:
    near = float(number)
    return near if Fraction(near) >= number else math.nextafter(near, math.inf)


def n_chosen(n_rows: int, n_features: int, epsilon: float, delta: float) -> int:
    """Return how many features: as many as leave rows for the models that the test needs."""
    rest = float(Fraction(epsilon) * (1 - KENDALL_SHARE))
    counts = range(min(MOST_FEATURES, n_features), 0, -1)
    return next((k for k in counts if affordable(n_rows, k + 1, rest, delta)), 0)
