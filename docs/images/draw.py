"""The pictures of README and tutorial: `python docs/images/draw.py`.

overview.png: a private model with intervals beside the truth, and what ε buys. The noise is seeded,
so that the picture can be drawn again. report.png: the page of the tutorial's model, by Chromium.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from sklearn.linear_model import LassoCV

from dpscreen import PrivateLasso

matplotlib.use("Agg")

HERE = Path(__file__).parent
GREEN, RED, GREY = "#0b6e4f", "#c1440e", "#8a939e"
SEED = "overview"


def intervals(axes: Axes) -> None:
    """Draw 95 % intervals of one fit, and what is true."""
    rng = np.random.default_rng(3)
    truth = np.zeros(30)
    truth[:5] = 1, -0.7, 0.5, -0.3, 0.15
    X = rng.standard_normal((20_000, 30))
    y = X @ truth + rng.standard_normal(20_000)
    model = PrivateLasso(
        epsilon=1,
        delta=1e-7,
        feature_bounds=(-4, 4),
        target_bounds=(-8, 8),
        inference="split",
        random_state=SEED,
    ).fit(X, y)
    found = sorted(model.inference_.intervals, key=lambda one: one.feature)
    for place, one in enumerate(found):
        axes.hlines(place, one.low, one.high, color=GREEN, linewidth=3)
        axes.plot(truth[one.feature], place, "x", color=RED)
    axes.plot([], [], color=GREEN, linewidth=3, label="95 % interval")
    axes.plot([], [], "x", color=RED, label="true")
    axes.set_yticks(range(len(found)), [f"x{one.feature}" for one in found])
    axes.invert_yaxis()
    axes.axvline(0, color=GREY, linewidth=0.6)
    axes.set_title("One fit, ε = 1: 20 000 rows, 30 features", fontsize=10, loc="left")
    axes.set_xlabel("coefficient")
    axes.legend(frameon=False, fontsize=8)


def what_epsilon_buys(axes: Axes) -> None:
    """Draw R² on new rows against ε, for three numbers of rows."""
    budgets = [0.1, 0.2, 0.5, 1, 2, 5, 10]
    for n, colour in ((500, "#7b4fa3"), (2_000, "#3a5a98"), (10_000, GREEN)):
        scores = [np.mean([_score(n, one, trial) for trial in range(8)]) for one in budgets]
        axes.plot(budgets, scores, "o-", color=colour, markersize=3, label=f"{n} rows")
    axes.axhline(_not_private(), color=RED, linestyle=":", label="LASSO, not private, 10000 rows")
    axes.set_xscale("log")
    axes.set_xticks(budgets, [f"{epsilon:g}" for epsilon in budgets])
    axes.set_ylim(-0.2, 0.6)
    axes.set_title("What ε buys: 5 of 40 features matter", fontsize=10, loc="left")
    axes.set_xlabel("ε")
    axes.set_ylabel("R² on new rows")
    axes.legend(frameon=False, fontsize=8)


def _rows(n: int, trial: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng((n, trial))
    X = rng.standard_normal((2 * n, 40))
    return X, X[:, :5] @ [1, -1, 1, -1, 1] / np.sqrt(5) + rng.standard_normal(2 * n)


def _score(n: int, epsilon: float, trial: int) -> float:
    X, y = _rows(n, trial)
    model = PrivateLasso(
        epsilon=epsilon,
        delta=1e-6,
        feature_bounds=(-5, 5),
        target_bounds=(-10, 10),
        random_state=f"{SEED} {n} {epsilon} {trial}",
    )
    return max(-1.0, float(model.fit(X[:n], y[:n]).score(X[n:], y[n:])))


def _not_private() -> float:
    X, y = _rows(10_000, 0)
    return float(LassoCV().fit(X[:10_000], y[:10_000]).score(X[10_000:], y[10_000:]))


def overview() -> None:
    """Draw the picture of the README."""
    _, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    intervals(left)
    what_epsilon_buys(right)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    left.figure.savefig(HERE / "overview.png", dpi=110)


def report() -> None:
    """Fit as the tutorial does, and photograph the page."""
    browser = shutil.which("chromium")
    if browser is None:
        print("no chromium: report.png is left as it is")
        return
    with tempfile.TemporaryDirectory() as place:
        command = Path(sys.executable).with_name("dpscreen")
        subprocess.run(
            [sys.executable, HERE.parent / "diabetes/write_csv.py"], cwd=place, check=True
        )
        fit = "fit diabetes.csv --epsilon 3 --delta 1e-4 --rows-public 440 -o model.json"
        schema = HERE.parent / "diabetes/schema.json"
        options = [*fit.split(), "--report", "report.html", "--schema", schema]
        subprocess.run([command, *options], cwd=place, check=True, stdout=subprocess.DEVNULL)
        shot = [f"--screenshot={HERE / 'report.png'}", "--window-size=1000,1480"]
        quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        page = (Path(place) / "report.html").as_uri()
        subprocess.run([browser, *quiet, *shot, page], check=True, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        overview()
    report()
