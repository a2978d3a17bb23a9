"""Steps on sparse rows against a plain scipy DP-FW, dense vertices, and the floor under any step.

Nonzeros are simulated: `uniform` draws features with equal probability, `power law` draws d·U³, so
that a few are in most rows. The plain step recomputes Xᵀ clip(Xw − y) and draws two noises for each
feature.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from benchmarks.timing import growth, machine, peak_bytes, report, side_by_side
from dpscreen.privacy import ZCDP, Accountant, NoisyMax, SecureNoise, SignedNoisyMax
from dpscreen.rows import sparse_kernels as kernels
from dpscreen.rows.lattice import UNITS, ExactPoint
from dpscreen.rows.sparse import SparseLatticeDesign, SparsePoint
from dpscreen.solvers.frank_wolfe import Vertex, frank_wolfe, zero_start
from dpscreen.solvers.selection import decaying_grains, grain_size, stagewise

CLIP, RHO = 1.0, 0.77
UNIFORM, POWER_LAW = 1, 3
SHAPES = {
    "RCV1": (20_242, 47_236, 74),
    "news20": (19_996, 1_355_191, 455),
    "URL": (2_396_130, 3_231_961, 115),
}
BYTES_PER_NONZERO = 12


def main() -> None:
    print(f"Sparse rows ({machine()})")
    against_plain(100_000, 1_000_000, 100, "uniform", UNIFORM, at_least=1000)
    against_plain(100_000, 1_000_000, 100, "power law", POWER_LAW, at_least=25)
    against_dense_vertices()
    selections()
    growth_with_features()
    for name, shape in SHAPES.items():
        shape_of(name, *shape)


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows, a target that depends on twenty features, and the step of a fit."""

    X: sp.csr_array
    y: np.ndarray

    @classmethod
    def simulated(cls, n_rows: int, n_features: int, per_row: int, power: int) -> Problem:
        rng = np.random.default_rng(n_rows + n_features)
        X = simulated_rows(rng, n_rows, n_features, per_row, power)
        weights = np.zeros(n_features)
        weights[(n_features * rng.random(20) ** power).astype(int)] = rng.choice((-1, 1), 20)
        return cls(X, X @ weights + rng.normal(0, 0.1, n_rows))

    @property
    def nbytes(self) -> int:
        return self.X.data.nbytes + self.X.indices.nbytes + self.X.indptr.nbytes

    def design(self) -> SparseLatticeDesign:
        return SparseLatticeDesign.from_rows(self.X, self.y, constant=True)

    def plain_step(self) -> Callable[[], None]:
        """Return a step of DP-FW for clipped residuals, written down plainly, with float noise."""
        d, rng = self.X.shape[1], np.random.default_rng(0)
        weights = np.zeros(d)

        def step() -> None:
            gradient = self.X.T @ np.clip(self.X @ weights - self.y, -CLIP, CLIP)
            noisy = np.concatenate((-gradient, gradient)) + rng.laplace(scale=25.0, size=2 * d)
            chosen = int(np.argmax(noisy))
            np.multiply(weights, 0.99, out=weights)
            weights[chosen % d] += 0.01 if chosen < d else -0.01

        return step


def simulated_rows(
    rng: np.random.Generator, n_rows: int, n_features: int, per_row: int, power: int
) -> sp.csr_array:
    """Return rows with `per_row` draws each; the same feature drawn twice counts once."""
    indices, lengths = [], []
    for first in range(0, n_rows, 100_000):
        size = min(100_000, n_rows - first), per_row
        drawn = np.sort((n_features * rng.random(size) ** power).astype(np.int32), axis=1)
        new = np.ones(size, dtype=bool)
        np.not_equal(drawn[:, 1:], drawn[:, :-1], out=new[:, 1:])
        indices.append(drawn[new])
        lengths.append(new.sum(axis=1))
    together = np.concatenate(indices)
    starts = np.concatenate(([0], np.cumsum(np.concatenate(lengths))))
    starts = starts.astype(np.int32 if starts[-1] < 2**31 else np.int64)
    values = rng.uniform(-1, 1, together.size)
    return sp.csr_array((values, together, starts), shape=(n_rows, n_features))


def private_path(
    design: SparseLatticeDesign, n_iter: int, *, after: int = 0
) -> tuple[float, np.ndarray]:
    """Return the seconds that a step of the stagewise solver takes, and the features it chose.

    Steps count from `after` on: the first one sums up all rows.
    """
    accountant = Accountant(SecureNoise(), limit=ZCDP(RHO))
    select = selection(n_iter)
    features = np.arange(design.n_columns)

    def choose(t: int, point: ExactPoint) -> Vertex:
        if t == after:
            began.append(time.perf_counter())
        scores = point.signed_scores(CLIP, features)
        feature, sign = accountant.release(select, scores, purpose="step")
        return Vertex(feature, -sign)

    point = design.start(grain_size(first_step=10 / n_iter, n_iter=n_iter))
    began: list[float] = []
    path = stagewise(point, decaying_grains(n_iter), choose=choose)
    return (time.perf_counter() - began[0]) / (n_iter - after), path.features


def selection(n_iter: int) -> SignedNoisyMax:
    return SignedNoisyMax.of_cost(ZCDP(RHO) / n_iter, sensitivity=CLIP, unit=CLIP / UNITS)


def frank_wolfe_step(design: SparseLatticeDesign, n_iter: int = 5) -> float:
    """Return the seconds of a step of exact DP-FW, in which every residual changes."""
    accountant = Accountant(SecureNoise(), limit=ZCDP(RHO))
    select = selection(n_iter)

    def choose(point: SparsePoint) -> Vertex:
        feature, sign = accountant.release(select, point.clipped_sums(CLIP), purpose="step")
        return Vertex(feature, -sign)

    start = zero_start(design.n_features)
    began = time.perf_counter()
    frank_wolfe(design, start, radius=5.0, n_iter=n_iter, choose=choose)
    return (time.perf_counter() - began) / n_iter


def floor_step(design: SparseLatticeDesign, chosen: np.ndarray) -> float:
    """Return the seconds of what any step has to do: a number, and the nonzeros it changes."""
    noise, sums = SecureNoise(), np.zeros(design.n_columns, dtype=np.int64)
    changes = np.ones(design.n_rows, dtype=np.int32)
    began = time.perf_counter()
    for feature in chosen.tolist():
        noise.below(2**60)
        rows, _ = design.by_column.at(feature)
        kernels.update_sums(rows, changes[: rows.size], *design.by_row, sums)
    return (time.perf_counter() - began) / len(chosen)


def compile_first() -> None:
    """Compile everything, so that it is not timed."""
    design = Problem.simulated(200, 100, 5, UNIFORM).design()
    _, chosen = private_path(design, 20)
    frank_wolfe_step(design)
    floor_step(design, chosen)


def against_plain(
    n_rows: int, n_features: int, per_row: int, name: str, power: int, *, at_least: float
) -> float:
    """Return the time of one of T = 1000 steps over that of a plain one."""
    compile_first()
    problem = Problem.simulated(n_rows, n_features, per_row, power)
    design, plain = problem.design(), problem.plain_step()
    plain()
    taken, (ours, chosen) = timed(plain, 3), private_path(design, 1000)
    taken = (taken + timed(plain, 3)) / 2
    whole, least = frank_wolfe_step(design), floor_step(design, chosen)
    title = f"{n_rows} x {n_features}, {per_row} a row, {name}"
    report(f"{title}: stagewise, times faster a step", taken / ours, at_least=at_least)
    report("  exact DP-FW, times faster a step", taken / whole)
    report("  stagewise over the floor: one number, and the nonzeros touched", ours / least)
    print(
        f"  (plain {taken * 1e3:.0f} ms, stagewise {ours * 1e6:.0f} µs, "
        f"DP-FW {whole * 1e3:.1f} ms, floor {least * 1e6:.0f} µs a step)"
    )
    return ours / taken


def timed(work: Callable[[], object], count: int) -> float:
    began = time.perf_counter()
    for _ in range(count):
        work()
    return (time.perf_counter() - began) / count


def against_dense_vertices() -> None:
    """Time a step against scoring all 2d vertices as dense vectors, where they fit in memory."""
    problem = Problem.simulated(5_000, 3_000, 50, UNIFORM)
    rows, d = problem.X.toarray(), problem.X.shape[1]
    vertices, weights = np.vstack((np.eye(d), -np.eye(d))), np.zeros(d)
    rng = np.random.default_rng(0)

    def dense_step() -> None:
        gradient = rows.T @ np.clip(rows @ weights - problem.y, -CLIP, CLIP)
        chosen = np.argmin(vertices @ gradient + rng.laplace(scale=25.0, size=2 * d))
        np.multiply(weights, 0.99, out=weights)
        np.add(weights, 0.01 * vertices[chosen], out=weights)

    ours, dense = [], []
    for _ in range(3):
        dense.append(timed(dense_step, 3))
        ours.append(private_path(problem.design(), 300)[0])
    report("5000 x 3000, 50 a row: times faster than dense vertices", min(dense) / min(ours))


def selections() -> None:
    """Time selection by classes from an array against a bound for each of the 2d candidates."""
    for n_features, repeat in ((600, 2000), (100_000, 20)):
        ours, theirs = selection_times(n_features, repeat)
        label = f"exact selection from an array of {n_features}: over a bound for each candidate"
        report(label, ours / theirs)


def selection_times(n_features: int, repeat: int) -> list[float]:
    rng, noise = np.random.default_rng(0), SecureNoise()
    sums = rng.normal(scale=40 * UNITS, size=n_features).astype(np.int64)
    by_class = SignedNoisyMax(CLIP, 25.0, CLIP / UNITS)
    one_by_one = NoisyMax(CLIP, 2 * CLIP, 25.0, CLIP / UNITS)
    return side_by_side(
        lambda: timed(lambda: by_class(sums, noise), repeat),
        lambda: timed(lambda: one_by_one(np.concatenate((-sums, sums)), noise), repeat),
        rounds=7,
    )


def growth_with_features() -> None:
    """Fit the exponent of the step's cost in d, the nonzeros being as many."""
    sizes = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000)
    for name, power in (("uniform", UNIFORM), ("power law", POWER_LAW)):
        designs = [Problem.simulated(20_000, d, 50, power).design() for d in sizes]
        seconds = [later_step(design) for design in designs]
        label = f"20000 rows, 50 a row, {name}: growth exponent of a step in d"
        report(label, max(0.0, growth(sizes, seconds)), at_most=0.3)
        print(f"  ({', '.join(f'{s * 1e6:.0f}' for s in seconds)} µs, d from 10 000 to 3 000 000)")


def later_step(design: SparseLatticeDesign) -> float:
    """Return the seconds of a step after the first, the better of two paths."""
    return min(private_path(design, 300, after=1)[0] for _ in range(2))


def shape_of(name: str, n_rows: int, n_features: int, per_row: int) -> None:
    """Report times and memory at the shape of a known data set, power-law features."""
    n_rows = min(n_rows, rows_that_fit(per_row))
    problem = Problem.simulated(n_rows, n_features, per_row, POWER_LAW)
    made: list[SparseLatticeDesign] = []
    began = time.perf_counter()
    extra = peak_bytes(lambda: (made.append(problem.design()), private_path(made[0], 3)))
    built = time.perf_counter() - began
    ours, _ = private_path(made[0], 200)
    (plain,) = side_by_side(problem.plain_step(), rounds=3)
    title = f"{name}, {n_rows} x {n_features}, {problem.X.nnz / 1e6:.1f} M nonzeros"
    report(f"{title}: times faster a step", plain / ours)
    report("  peak memory over the size of the CSR", 1 + extra / problem.nbytes, at_most=4)
    print(
        f"  (built in {built:.1f} s, {ours * 1e6:.0f} µs a step, plain {plain * 1e3:.0f} ms; "
        f"CSR {problem.nbytes / 1e6:.0f} MB)"
    )


def rows_that_fit(per_row: int) -> int:
    """Return how many rows fit into half of the memory that is free, at five times their size."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return int(free / 2 / (5 * BYTES_PER_NONZERO * per_row))


if __name__ == "__main__":
    main()
