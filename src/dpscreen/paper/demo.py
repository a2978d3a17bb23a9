"""The demonstration: published, proven and non-private methods on data whose truth is known."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen._core.pictures import canvas
from dpscreen.models import DPFrankWolfe, FrankWolfeLasso, RNMScreen
from dpscreen.paper.data import Simulated, synthetic
from dpscreen.paper.metrics import density, f1, false_positive_rate, true_positive_rate
from dpscreen.privacy import PrivacyStatement, PublishedCalibrationWarning, WeakDeltaWarning

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The paper's setting for its two synthetic data sets (Table 1).
RADIUS = 50.0
EPSILON = 5.0
DELTA = 1 / 3000
CORRELATION = {"uncorrelated": 0.0, "correlated": 0.5}
METRICS = ("TPR", "FPR", "F1", "density", "MSE")


@dataclass(frozen=True)
class DemoOutcome:
    """A method's coefficients, how good they are, and what is promised about them."""

    method: str
    coef: Array
    metrics: dict[str, float]
    statement: PrivacyStatement | None


def paper_data(kind: str, rng: np.random.Generator) -> Simulated:
    """Return one of the paper's synthetic data sets."""
    return synthetic(correlation=CORRELATION[kind], rng=rng)


def contestants() -> dict[str, Callable[[], Any]]:
    """Return the methods of the demonstration, by the name they are shown under."""
    private: dict[str, Any] = {
        "radius": RADIUS,
        "epsilon": EPSILON,
        "delta": DELTA,
        "feature_bounds": (-1, 1),
        "target_bounds": (-RADIUS, RADIUS),
        "fit_intercept": False,
    }
    return {
        "RNM-Screen, published": lambda: RNMScreen(
            n_iter=1000, calibration="published", start="random", **private
        ),
        "RNM-Screen, proven": lambda: RNMScreen(n_iter=150, **private),
        "DP-FW, proven": lambda: DPFrankWolfe(n_iter=150, clip=1.0, **private),
        "optimum, not private": lambda: FrankWolfeLasso(
            radius=RADIUS, n_iter=3000, fit_intercept=False
        ),
    }


def outcomes(data: Simulated) -> Iterator[DemoOutcome]:
    """Fit each method in turn, with fresh noise."""
    for name, make in contestants().items():
        with warnings.catch_warnings():
            # The demonstration prints each statement in full, so the short notices are not needed.
            warnings.simplefilter("ignore", PublishedCalibrationWarning)
            warnings.simplefilter("ignore", WeakDeltaWarning)
            model = make().fit(data.X, data.y)
        yield DemoOutcome(
            name, model.coef_, _measure(data, model.coef_), getattr(model, "privacy_", None)
        )


def _measure(data: Simulated, coef: Array) -> dict[str, float]:
    values = (
        true_positive_rate(coef, data.coef),
        false_positive_rate(coef, data.coef),
        f1(coef, data.coef),
        density(coef),
        float(np.mean((data.X @ coef - data.y) ** 2)),
    )
    return dict(zip(METRICS, values, strict=True))


TRUTH, FOUND, FALSE = "#9aa5b1", "#0b6e4f", "#c1440e"


def draw(results: Sequence[DemoOutcome], truth: Array, title: str, path: Path) -> None:
    """Write one panel a method, side by side, to `path` (the suffix says the format)."""
    figure = canvas(11, 6.4)
    panels = figure.subplots(2, 2, sharex=True, sharey=True).ravel()
    for axes, outcome in zip(panels, results, strict=True):
        _panel(axes, outcome, truth)
    panels[0].legend(loc="upper right", fontsize=8, frameon=False)
    for axes in panels[2:]:
        axes.set_xlabel("feature")
    for axes in panels[::2]:
        axes.set_ylabel("coefficient")
    figure.suptitle(title, fontsize=12)
    figure.savefig(path, dpi=130)


def _panel(axes: Axes, outcome: DemoOutcome, truth: Array) -> None:
    feature = np.arange(truth.size)
    chosen, needed = outcome.coef != 0, truth != 0
    axes.step(feature, truth, where="mid", color=TRUTH, lw=1, label="truth")
    for mask, colour, label in ((needed, FOUND, "needed"), (~needed, FALSE, "not needed")):
        shown = chosen & mask
        axes.scatter(feature[shown], outcome.coef[shown], s=9, color=colour, label=label, lw=0)
    scores = outcome.metrics
    axes.set_title(
        f"{outcome.method}:  F1 {scores['F1']:.2f}, density {scores['density']:.2f}, "
        f"MSE {scores['MSE']:.2f}",
        fontsize=10,
        loc="left",
    )
    axes.set_ylim(-1.6, 1.6)
    axes.spines[["top", "right"]].set_visible(False)
