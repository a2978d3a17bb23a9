"""Fair timing on a shared machine: the two sides take turns, and the median of each counts."""

from __future__ import annotations

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import sklearn


def side_by_side(*sides: Callable[[], object], rounds: int = 5) -> list[float]:
    """Return the median seconds of each side, taken in turns so that a busy spell hits all."""
    seconds: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for side, taken in zip(sides, seconds, strict=True):
            began = time.perf_counter()
            side()
            taken.append(time.perf_counter() - began)
    return [statistics.median(taken) for taken in seconds]


def peak_bytes(work: Callable[[], object]) -> int:
    """Return the most memory that `work` held at once, numpy arrays included."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def peak_resident() -> float:
    """Return the most bytes that this process had in memory.

    Not from getrusage: what that reports of a fresh process may be its parent's.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024.0 * int(line.split()[1])
    return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def growth(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the exponent with which time grows: the slope of log time on log size."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def machine() -> str:
    """Say where the numbers come from."""
    return (
        f"Python {platform.python_version()}, numpy {np.__version__}, "
        f"scikit-learn {sklearn.__version__}, {platform.machine()}"
    )


def repeats(default: int) -> int:
    """Return the number of repetitions that was asked for."""
    return int(os.environ.get("DPSCREEN_TRIALS", default))


def alone(module: str, *arguments: object) -> dict[str, float]:
    """Run a module of this package in a process of its own; return the JSON it prints last."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def autoregressive(rng: np.random.Generator, n: int, d: int, rho: float) -> np.ndarray:
    """Return standard normal columns, each correlated with the one before."""
    X = rng.normal(size=(n, d))
    for j in range(1, d if rho else 1):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    return X


RATIOS: list[dict[str, object]] = []
"""Everything that was reported, for whoever saves it."""


def report(label: str, value: float, *, at_least: float = 0.0, at_most: float = np.inf) -> None:
    """Print a ratio beside what it should reach."""
    wanted = f"≥ {at_least:g}" if at_least else f"≤ {at_most:g}" if at_most < np.inf else ""
    verdict = "" if not wanted else "ok" if at_least <= value <= at_most else "MISSED"
    RATIOS.append({"label": label.strip(), "value": value, "wanted": wanted, "verdict": verdict})
    print(f"  {label:<74} {value:8.2f}   {wanted:<7} {verdict}".rstrip())
