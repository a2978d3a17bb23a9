"""Pictures of error against ε, rows and bounds: `python -m benchmarks.pictures [trials]`.

Error against ε, against the number of rows and against loose bounds, and one released path. Noise
is seeded by name; held-out R² is by five folds, drawn anew in every trial. The picture of README
and landing page needs no data set: `python -m benchmarks.pictures overview`.
"""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from sklearn.linear_model import LassoCV

from benchmarks.private_lasso import Problem, lasso_r2, private_r2, raw, real
from dpscreen import PrivateLasso
from dpscreen._core.pictures import COLOURS as THEMED
from dpscreen._core.pictures import INK, SHARED, canvas, plain_axes, template_text, themed_svg

matplotlib.use("Agg")

PLACE = Path(__file__).parents[1] / "docs" / "images"
COLOURS = ("#0b6e4f", "#c1440e", "#3a5a98", "#7b4fa3")


def axes_for(title: str, x: str, y: str) -> Axes:
    _, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def save(axes: Axes, name: str) -> None:
    PLACE.mkdir(exist_ok=True)
    axes.figure.savefig(PLACE / name, dpi=110)
    plt.close(axes.figure)
    print(f"  {name}", flush=True)


def band(axes: Axes, x: object, scores: np.ndarray, colour: str, label: str) -> None:
    """Draw means over trials with two standard errors."""
    mean = scores.mean(axis=1)
    error = 2 * scores.std(axis=1, ddof=1) / np.sqrt(scores.shape[1])
    axes.plot(x, mean, "o-", color=colour, markersize=3.5, label=label)
    axes.fill_between(x, mean - error, mean + error, color=colour, alpha=0.15, linewidth=0)


def against_epsilon(trials: int) -> None:
    axes = axes_for("Held-out R² against ε (dotted: LassoCV, not private)", "ε", "held-out R²")
    budgets = np.array([0.1, 0.2, 0.5, 1, 2, 5, 10])
    for name, colour in zip(("abalone", "housing", "bodyfat", "communities"), COLOURS, strict=True):
        problem = real(name)
        scores = np.array([private_r2(problem, e, trials) for e in budgets])
        band(axes, budgets, np.maximum(scores, -0.2), colour, f"{name} (n = {len(problem.y)})")
        axes.axhline(lasso_r2(problem), color=colour, linestyle=":", linewidth=1)
    axes.set_xscale("log")
    axes.set_ylim(-0.25, 1)
    axes.legend(fontsize=8, frameon=False)
    save(axes, "error-against-epsilon.png")


def against_rows(trials: int) -> None:
    axes = axes_for(
        "Held-out R² against rows: 5 of 40 features matter, at best .5",
        "rows",
        "held-out R²",
    )
    rows = np.array([200, 500, 1000, 2000, 5000, 10_000, 20_000])
    for epsilon, colour in zip((0.5, 1.0, 5.0), COLOURS, strict=False):
        scores = np.array([[_one(n, epsilon, t) for t in range(trials)] for n in rows])
        band(axes, rows, np.maximum(scores, -0.2), colour, f"ε = {epsilon:g}")
    axes.axhline(0.5, color="#555", linestyle=":", linewidth=1)
    axes.set_xscale("log")
    axes.legend(fontsize=8, frameon=False)
    save(axes, "error-against-rows.png")


def _one(n: int, epsilon: float, trial: int) -> float:
    rng = np.random.default_rng((n, trial))
    X = rng.standard_normal((2 * n, 40))
    signal = X[:, :5] @ (np.array([1, -1, 1, -1, 1]) / np.sqrt(5))
    y = signal + rng.standard_normal(2 * n)
    model = PrivateLasso(
        epsilon=epsilon,
        delta=1e-6,
        feature_bounds=(-5, 5),
        target_bounds=(-10, 10),
        random_state=f"rows {n} {trial}",
    ).fit(X[:n], y[:n])
    return float(model.score(X[n:], y[n:]))


def against_looseness(trials: int) -> None:
    axes = axes_for(
        "Raw features, bounds too wide (ε = 5; dashed: standardize=False)",
        "bounds too wide by",
        "held-out R²",
    )
    widths = np.array([1, 2, 4, 8, 16, 32, 64])
    for name, colour in zip(("housing", "bodyfat", "diabetes"), COLOURS, strict=False):
        for standardize, style in (("auto", "-"), (False, "--")):
            means = [_loose(name, int(w), standardize, trials) for w in widths]
            label = name if style == "-" else None
            axes.plot(widths, np.maximum(means, -0.5), style, color=colour, label=label)
    axes.set_xscale("log", base=2)
    axes.set_xticks(widths, [f"{w}×" for w in widths])
    axes.legend(fontsize=8, frameon=False)
    save(axes, "error-against-looseness.png")


def _loose(name: str, width: int, standardize: object, trials: int) -> float:
    problem: Problem = raw(name, width, False)
    problem.setting["standardize"] = standardize
    return float(private_r2(problem, 5.0, trials).mean())


def released_path() -> None:
    problem = real("housing")
    axes = axes_for("The released path on Housing, ε = 1", "step", "weight, features on [−1, 1]")
    model = PrivateLasso(
        epsilon=1, delta=1 / len(problem.y), random_state="path", **problem.setting
    ).fit(problem.X, problem.y)
    trace = model.path_.trace(problem.X.shape[1])
    largest = np.argsort(-np.abs(trace[-1]))
    for rank, j in enumerate(largest):
        colour = COLOURS[rank] if rank < len(COLOURS) else "#b8bec7"
        axes.step(np.arange(len(trace)), trace[:, j], color=colour, where="post", linewidth=1.3)
        if rank < len(COLOURS):
            above = 7 if rank % 2 else -7  # two may end at the same height
            axes.annotate(
                f"feature {j + 1}",
                (len(trace) - 1, trace[-1, j]),
                xytext=(3, above - 3),
                textcoords="offset points",
                fontsize=8,
            )
    axes.axhline(0, color="#555", linewidth=0.6)
    save(axes, "released-path.png")


# --- the first thing that a visitor sees ----------------------------------------------------------


def overview() -> None:
    """Draw PrivateLasso beside the truth and LASSO, in the colours of the reader's theme."""
    truth, X, y = _few_effects()
    private = PrivateLasso(
        epsilon=1,
        delta=1e-6,
        feature_bounds=(-20, 20),
        target_bounds=(-50, 50),
        random_state="overview",
    )
    figure = canvas(8.4, 3.0)
    axes = figure.subplots()
    place = np.arange(truth.size)
    axes.vlines(place, 0, truth, color=THEMED[5], linewidth=9, alpha=0.45, label="truth")
    look = {"markersize": 6, "fillstyle": "none", "markeredgewidth": 1.4}
    plain = LassoCV().fit(X, y).coef_
    axes.plot(place - 0.12, plain, "D", color=THEMED[1], label="LASSO, not private", **look)
    coef = private.fit(X, y).coef_
    axes.plot(place + 0.12, coef, "o", color=THEMED[0], label="PrivateLasso, ε = 1", markersize=6)
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.set_xlabel("feature: 6 of 30 matter; 10 000 rows, bounds five times too wide", color=INK)
    axes.set_ylabel("coefficient", color=INK)
    axes.legend(frameon=False, labelcolor=INK, fontsize=9, loc="upper right")
    plain_axes(axes)
    text = _standing_alone(themed_svg(figure, prefix="overview"))
    (PLACE / "overview.svg").write_text(text, encoding="utf-8")
    print("  overview.svg", flush=True)


def _few_effects() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    truth = np.zeros(30)
    truth[[1, 5, 10, 15, 20, 26]] = 1, -0.7, 0.5, -0.35, 0.25, -0.15
    X = rng.standard_normal((10_000, 30))
    return truth, X, X @ truth + rng.standard_normal(10_000)


def _standing_alone(svg: str) -> str:
    """Return the element as a file with its own paper, so that it is legible on any page."""
    css = template_text(SHARED, "page.css")
    themes = css[: re.search(r"^\}\n\* ", css, re.MULTILINE).start() + 2]
    head, _, rest = svg.partition(">")
    paper = '<rect width="100%" height="100%" rx="8" style="fill: var(--paper)"/>'
    return f'{head} xmlns="http://www.w3.org/2000/svg">\n<style>{themes}</style>\n{paper}{rest}\n'


def main(trials: int = 8) -> None:
    print("Pictures of error against ε, rows and bounds")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        released_path()
        against_rows(trials)
        against_looseness(max(2, trials // 2))
        against_epsilon(trials)


if __name__ == "__main__":
    if sys.argv[1:] == ["overview"]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the seed is meant: the picture can be drawn again
            overview()
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 8)
