"""Exact selection and exact steps against what they replace: OpenDP, float Gumbel noise, BLAS."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import opendp.prelude as dp
from threadpoolctl import threadpool_limits

from benchmarks.timing import machine, report, side_by_side
from dpscreen.privacy import NoisyMax, SecureNoise, SignedNoisyMax
from dpscreen.rows.lattice import UNITS, LatticeDesign

CLIP = 1.0
UNIT = CLIP / UNITS
SCALE = 25 * CLIP


NEAR, FAR = 1.6, 1000.0
"""How far scores are apart, in noise scales: as in a fit, and as where one candidate stands out."""


def main() -> None:
    print(f"Exactness ({machine()})")
    for n_candidates, repeat, opendp_repeat in ((1_200, 1000, 10), (200_000, 20, 1)):
        for spread in (NEAR, FAR):
            selections(n_candidates, repeat, opendp_repeat, spread)
    for n_rows, n_features, at_most, repeat in ((50_000, 280, 0.7, 10), (3_000, 600, 0.9, 40)):
        steps(n_rows, n_features, at_most, repeat)


def selections(n_candidates: int, repeat: int, opendp_repeat: int, spread: float) -> float:
    """Time one selection: ours, OpenDP's with arrays of both kinds, and numpy's Gumbel noise.

    Return ours over the faster one of OpenDP's.

    OpenDP is fastest on whole numbers that lie close together, and takes many times longer where
    they lie far apart; ours takes the same.
    """
    rng, noise = np.random.default_rng(n_candidates), SecureNoise()
    scores = rng.normal(scale=spread * SCALE / UNIT, size=n_candidates).astype(np.int64)
    values, select = scores * UNIT, NoisyMax(CLIP, 2 * CLIP, SCALE, UNIT)
    of_floats, of_integers = opendp_selection("f64", SCALE), opendp_selection("i64", SCALE / UNIT)

    def gumbel() -> np.integer:
        return np.argmax(values + rng.gumbel(scale=SCALE, size=values.size))

    seconds = side_by_side(
        times(repeat, lambda: select(scores, noise)),
        times(repeat, gumbel),
        times(opendp_repeat, lambda: of_floats(values)),
        times(opendp_repeat, lambda: of_integers(scores)),
        rounds=9,
    )
    counts = (repeat, repeat, opendp_repeat, opendp_repeat)
    ours, numpy, floats, integers = (s / count for s, count in zip(seconds, counts, strict=True))
    print(f"  exact selection among {n_candidates}, scores {spread:g} scales apart:")
    report("    times faster than OpenDP, float64 array", floats / ours, at_least=40)
    report("    times faster than OpenDP, int64 array", integers / ours, at_least=40)
    report("    times faster than plain numpy Gumbel noise", numpy / ours, at_least=1)
    print(
        f"    ({ours * 1e6:.1f} µs; OpenDP {floats * 1e6:.0f} and {integers * 1e6:.0f} µs, "
        f"Gumbel {numpy * 1e6:.0f} µs)"
    )
    return ours / min(floats, integers)


def steps(n_rows: int, n_features: int, at_most: float, repeat: int) -> float:
    """Return the time of a whole exact step over that of one bare float64 product in C order.

    BLAS with all its threads is slower than with one on a busy machine; the better of both counts.
    """
    rng = np.random.default_rng(n_rows)
    X = rng.uniform(-1, 1, size=(n_rows, n_features))
    y, r = X[:, 0] - X[:, 1] + rng.normal(0, 0.1, size=n_rows), rng.normal(size=n_rows)
    design, noise = LatticeDesign.from_rows(X, y), SecureNoise()
    point = design.at(np.zeros(n_features), scale=2.0**-10)
    levels, select = point.residual_levels(CLIP).copy(), SignedNoisyMax(CLIP, SCALE, UNIT)

    def step() -> None:
        feature, sign = select(point.clipped_sums(CLIP), noise)
        point.add(feature, -sign)

    product = times(repeat, lambda: X.T @ r)

    def product_by_one_thread() -> None:
        with threadpool_limits(1):
            product()

    whole, floor, *bare = side_by_side(
        times(repeat, step),
        times(repeat, lambda: design.sums(levels)),
        product,
        product_by_one_thread,
        rounds=9,
    )
    title = f"{n_rows} x {n_features}"
    report(f"a whole exact step {title}: over one bare X.T @ r", whole / min(bare), at_most=at_most)
    report("  the floor: the sums alone", floor / min(bare))
    print(f"  ({whole / repeat * 1e6:.0f} µs a step, {min(bare) / repeat * 1e6:.0f} µs a product)")
    return whole / min(bare)


def opendp_selection(kind: str, scale: float) -> Callable[[np.ndarray], int]:
    dp.enable_features("contrib")
    atoms = dp.atom_domain(T=kind, nan=False) if kind == "f64" else dp.atom_domain(T=kind)
    return dp.m.make_noisy_max(
        dp.vector_domain(atoms),
        dp.linf_distance(T=kind),
        dp.zero_concentrated_divergence(),
        scale=scale,
    )


def times(count: int, work: Callable[[], object]) -> Callable[[], None]:
    """Return a side that does its work several times, after once to compile and warm up."""
    work()

    def side() -> None:
        for _ in range(count):
            work()

    return side


if __name__ == "__main__":
    main()
