"""Beside other libraries: scikit-learn's Lasso, and diffprivlib's LinearRegression.

diffprivlib 0.6.6 does not import with current scikit-learn, so it gets an environment of its own,
made once in `dpscreen-bench/`; what cannot be installed is said and left out. The sides take turns.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import venv
import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import Lasso

from benchmarks.sparse import UNIFORM, Problem
from benchmarks.timing import machine, report, side_by_side
from dpscreen import PrivateLasso

PLACE = Path("dpscreen-bench")
PEER = ("diffprivlib==0.6.6", "scikit-learn==1.6.1")
SHAPES = ((20_000, 50), (200_000, 50), (50_000, 280))
BOUNDS = {"feature_bounds": (-5, 5), "target_bounds": (-25, 25)}

THEIRS = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
from diffprivlib.models import LinearRegression
for line in sys.stdin:
    n, d = json.loads(line)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)); y = X[:, :5].sum(axis=1) + rng.normal(size=n)
    began = time.perf_counter()
    model = LinearRegression(epsilon=1, bounds_X=(-5, 5), bounds_y=(-25, 25)).fit(X, y)
    seconds = time.perf_counter() - began
    print(json.dumps([seconds, float(model.score(X, y))]), flush=True)
"""


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"Other libraries ({machine()})")
    dense_lasso()
    sparse_lasso()
    diffprivlib()


def rows(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, X[:, :5].sum(axis=1) + rng.normal(size=n)


def ours() -> PrivateLasso:
    return PrivateLasso(epsilon=1, delta=1e-7, random_state=0, **BOUNDS)


def dense_lasso() -> None:
    for n, d in SHAPES:
        X, y = rows(n, d)
        ours().fit(X[:1000], y[:1000])
        theirs, private = side_by_side(
            lambda X=X, y=y: Lasso(alpha=0.1).fit(X, y), lambda X=X, y=y: ours().fit(X, y), rounds=3
        )
        report(f"dense {n} x {d}: PrivateLasso over scikit-learn's Lasso", private / theirs)


def sparse_lasso() -> None:
    problem = Problem.simulated(20_000, 47_000, 74, UNIFORM)
    setting = {"feature_bounds": (-1, 1), "target_bounds": (-20, 20)}
    model = PrivateLasso(epsilon=1, delta=1e-7, random_state=0, **setting)
    columns = problem.X.tocsc()
    model.fit(problem.X, problem.y)
    theirs, private = side_by_side(
        lambda: Lasso(alpha=0.001, max_iter=1000).fit(columns, problem.y),
        lambda: model.fit(problem.X, problem.y),
        rounds=3,
    )
    report("sparse 20 000 x 47 000: PrivateLasso over scikit-learn's Lasso", private / theirs)


def diffprivlib() -> None:
    python = _peer_environment()
    if python is None:
        print("  (diffprivlib could not be installed; left out)")
        return
    with subprocess.Popen(
        [python, "-c", THEIRS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as peer:
        assert peer.stdin is not None
        assert peer.stdout is not None
        for n, d in SHAPES:
            X, y = rows(n, d)
            taken = []
            for _ in range(3):
                peer.stdin.write(json.dumps([n, d]) + "\n")
                peer.stdin.flush()
                seconds, score = json.loads(peer.stdout.readline())
                began = time.perf_counter()
                model = ours().fit(X, y)
                taken.append((time.perf_counter() - began, seconds))
            mine, theirs = np.median(taken, axis=0)
            report(f"dense {n} x {d}: over diffprivlib's LinearRegression", mine / theirs)
            print(f"    (R² {model.score(X, y):.3f} against {score:.3g}, both at epsilon 1)")


def _peer_environment() -> str | None:
    home = PLACE / "diffprivlib"
    python = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not (home / "ready").exists():
        PLACE.mkdir(exist_ok=True)
        venv.create(home, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", "--quiet", *PEER]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            return None
        (home / "ready").touch()
    return str(python)


if __name__ == "__main__":
    main()
