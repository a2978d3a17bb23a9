"""How time and memory grow with rows, features, nonzeros, steps and workers: a table and a plot.

Every point is a process of its own, so that peak memory is that of one fit. The plot is saved as
dpscreen-bench/growth.png.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.timing import alone, growth, machine, peak_resident, report

PLACE = Path("dpscreen-bench")


@dataclass(frozen=True)
class Line:
    """One thing that grows; the rest stays."""

    title: str
    kind: str
    grows: str
    sizes: Sequence[int]
    fixed: dict[str, int]


LINES = (
    Line("dense, rows", "dense", "n", (20_000, 60_000, 200_000, 600_000), {"d": 50, "T": 100}),
    Line("dense, features", "dense", "d", (20, 60, 200, 600), {"n": 50_000, "T": 100}),
    Line("dense, steps", "dense", "T", (25, 50, 100, 200), {"n": 200_000, "d": 50}),
    Line(
        "sparse, features",
        "sparse",
        "d",
        (10_000, 100_000, 1_000_000, 3_000_000),
        {"n": 50_000, "nnz": 100, "T": 200},
    ),
    Line(
        "sparse, nonzeros a row",
        "sparse",
        "nnz",
        (10, 30, 100, 300),
        {"n": 50_000, "d": 1_000_000, "T": 200},
    ),
    Line("Dask, workers", "dask", "workers", (1, 2), {"n": 1_000_000, "d": 50, "T": 30}),
)


def main() -> None:
    print(f"Growth ({machine()})")
    measured = {line.title: [_alone(line, size) for size in line.sizes] for line in LINES}
    for line in LINES:
        points = measured[line.title]
        seconds = [point["seconds"] for point in points]
        report(f"{line.title}: exponent of the time of a whole fit", growth(line.sizes, seconds))
        if line.title == "dense, rows":
            for few, many in ((0, 2), (1, 3)):
                label = f"  {short(line.sizes[few])} to {short(line.sizes[many])}: times slower"
                report(label, seconds[many] / seconds[few], at_most=11)
        step = [point["step"] for point in points]
        if all(step):
            report(f"{line.title}: exponent of the time of a step", growth(line.sizes, step))
        memory = [point["peak"] for point in points]
        report(f"{line.title}: exponent of peak memory", growth(line.sizes, memory))
    draw(measured)


def short(size: int) -> str:
    """Return 20 000 as 20k, 3 000 000 as 3M."""
    for unit, name in ((10**6, "M"), (10**3, "k")):
        if size >= unit:
            return f"{size / unit:g}{name}"
    return str(size)


def draw(measured: dict[str, list[dict[str, float]]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(LINES), figsize=(3 * len(LINES), 5.2), layout="constrained")
    for column, line in zip(axes.T, LINES, strict=True):
        points = measured[line.title]
        for place, key, unit, scale in ((0, "seconds", "s", 1.0), (1, "peak", "GB", 1e-9)):
            panel = column[place]
            panel.plot(line.sizes, [scale * point[key] for point in points], "o-")
            panel.set_ylabel(f"{'time' if key == 'seconds' else 'peak memory'}, {unit}")
            panel.set_xscale("log")
            panel.set_xticks(line.sizes, [short(size) for size in line.sizes], fontsize=8)
            panel.minorticks_off()
            panel.set_ylim(0, 1.1 * scale * max(point[key] for point in points))
            panel.grid(alpha=0.3)
        column[0].set_title(line.title, fontsize=10)
        column[1].set_xlabel(line.grows)
    PLACE.mkdir(exist_ok=True)
    figure.savefig(PLACE / "growth.png", dpi=100)
    print(f"  ({PLACE / 'growth.png'})")


# --- one point ------------------------------------------------------------------------------------


def _alone(line: Line, size: int) -> dict[str, float]:
    work = {"kind": line.kind, **line.fixed, line.grows: size}
    return alone("growth", json.dumps(work))


def _point(kind: str, **sizes: int) -> dict[str, float]:
    warnings.simplefilter("ignore")
    found = {"dense": _dense, "sparse": _sparse, "dask": _dask}[kind](**sizes)
    found["peak"] = peak_resident()
    return found


def _model(bounds: float, target: float, n_iter: int) -> object:
    from dpscreen import PrivateLasso

    return PrivateLasso(
        epsilon=1,
        delta=1e-8,
        feature_bounds=(-bounds, bounds),
        target_bounds=(-target, target),
        n_iter=n_iter,
        random_state=0,
    )


def _timed(fit: object, T: int) -> dict[str, float]:
    """Time a fit of T steps and one of T/2: the difference is that of T/2 steps alone."""
    fit(2)  # type: ignore[operator]
    seconds = []
    for steps in (T, max(1, T // 2)):
        began = time.perf_counter()
        fit(steps)  # type: ignore[operator]
        seconds.append(time.perf_counter() - began)
    return {"seconds": seconds[0], "step": max(0.0, (seconds[0] - seconds[1]) / (T - T // 2))}


def _dense(n: int, d: int, T: int) -> dict[str, float]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = X[:, 0] + rng.normal(size=n)
    return _timed(lambda steps: _model(5, 10, steps).fit(X, y), T)  # type: ignore[attr-defined]


def _sparse(n: int, d: int, nnz: int, T: int) -> dict[str, float]:
    from benchmarks.sparse import UNIFORM, Problem

    problem = Problem.simulated(n, d, nnz, UNIFORM)
    return _timed(
        lambda steps: _model(1, 20, steps).fit(problem.X, problem.y),  # type: ignore[attr-defined]
        T,
    )


def _dask(n: int, d: int, T: int, workers: int) -> dict[str, float]:
    import dask.array as da
    from distributed import Client, LocalCluster

    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = X[:, 0] + rng.normal(size=n)
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, memory_limit=0, dashboard_address=None
        ) as cluster,
        Client(cluster),
    ):
        size = n // 4
        far = da.from_array(X, chunks=(size, d)).persist(), da.from_array(y, chunks=size).persist()
        return _timed(lambda steps: _model(5, 10, steps).fit(*far), T)  # type: ignore[attr-defined]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(_point(**json.loads(sys.argv[1]))))
    else:
        main()
