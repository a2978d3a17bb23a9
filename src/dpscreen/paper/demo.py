"""The demonstration: published, proven and non-private methods on data whose truth is known."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen._core.pictures import COLOURS, INK, canvas, plain_axes
from dpscreen.models import DPFrankWolfe, FrankWolfeLasso, PrivateLasso, RNMScreen
from dpscreen.models.refits import RefitWarning
from dpscreen.paper.data import Simulated
from dpscreen.paper.metrics import f1, false_positive_rate, true_positive_rate
from dpscreen.privacy import PrivacyStatement, PublishedCalibrationWarning

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The data, radius and epsilon of the paper's Table 1; its delta of 1/n would protect nobody.
RADIUS = 50.0
EPSILON = 5.0
DELTA = 1e-6
STEPS, PAPER_STEPS = 120, 1000
FITS = 5
"""Fits of each random method, of which means are shown."""


@dataclass(frozen=True)
class Contestant:
    """A method under the name that it is shown by, and a sentence on why it does what it does."""

    method: str
    why: str
    make: Callable[[], Any]
    fits: int = FITS


@dataclass(frozen=True)
class DemoOutcome:
    """What a method found on average, and what is promised; `coef` are those of one fit."""

    method: str
    why: str
    n_iter: int | None
    coef: Array
    found: float
    wrong: float
    f1: float
    mse: float
    statement: PrivacyStatement | None

    @property
    def promise(self) -> str:
        """Say whether the stated epsilon is true."""
        if self.statement is None:
            return "no privacy"
        return "holds" if self.statement.holds else "does NOT hold"


PRIVATE: dict[str, Any] = {
    "epsilon": EPSILON,
    "delta": DELTA,
    "feature_bounds": (-1, 1),
    "target_bounds": (-RADIUS, RADIUS),
}
IN_BALL = PRIVATE | {"radius": RADIUS, "fit_intercept": False}
PUBLISHED = IN_BALL | {"calibration": "published"}
CLIPPED = IN_BALL | {"n_iter": STEPS, "clip": 1.0}


def contestants() -> tuple[Contestant, ...]:
    """Return the methods of the demonstration, in the order in which they are shown."""
    return (
        Contestant(
            "RNM-Screen, published",
            "With the paper's constants and T the stated ε does not hold: too little noise.",
            lambda: RNMScreen(n_iter=PAPER_STEPS, **PUBLISHED),
        ),
        Contestant(
            "… with fewer steps, from 0",
            "The same constants with fewer steps, each with more of the budget, from zero.",
            lambda: RNMScreen(n_iter=STEPS, start="zero", **PUBLISHED),
        ),
        Contestant(
            "RNM-Screen, proven",
            "Proven, no clip: the noise of each step must cover residuals of up to 100.",
            lambda: RNMScreen(n_iter=STEPS, clip=math.inf, **IN_BALL),
        ),
        Contestant(
            "… with clip=1", "A clip at 1 divides that noise by 100.", lambda: RNMScreen(**CLIPPED)
        ),
        Contestant(
            "DP-FW, proven, clip=1",
            "The same steps without screening, whose choices are close to random.",
            lambda: DPFrankWolfe(**CLIPPED),
        ),
        Contestant(
            "PrivateLasso",
            "PrivateLasso chooses clip, steps and scales within its budget, and refits.",
            lambda: PrivateLasso(**PRIVATE),
        ),
        Contestant(
            "LASSO, not private",
            "LASSO has no privacy; the paper's radius of 50 shrinks it, hence its MSE.",
            lambda: FrankWolfeLasso(radius=RADIUS, n_iter=3000, fit_intercept=False),
            fits=1,
        ),
    )


def outcomes(data: Simulated) -> Iterator[DemoOutcome]:
    """Fit each method in turn, several times, with fresh noise."""
    for one in contestants():
        with warnings.catch_warnings():
            # The demonstration says itself, and in full, what does not hold.
            warnings.simplefilter("ignore", PublishedCalibrationWarning)
            warnings.simplefilter("ignore", RefitWarning)
            models = [one.make().fit(data.X, data.y) for _ in range(one.fits)]
        last, statement = models[-1], getattr(models[-1], "privacy_", None)
        yield DemoOutcome(
            method=one.method,
            why=one.why,
            n_iter=None if statement is None else last.n_iter_,
            coef=last.coef_,
            found=fmean(true_positive_rate(model.coef_, data.coef) for model in models),
            wrong=fmean(false_positive_rate(model.coef_, data.coef) for model in models),
            f1=fmean(f1(model.coef_, data.coef) for model in models),
            mse=fmean(np.mean((model.predict(data.X) - data.y) ** 2) for model in models),
            statement=statement,
        )


TRUTH, FOUND, FALSE = COLOURS[5], COLOURS[2], COLOURS[1]


def draw(outcome: DemoOutcome, truth: Array) -> Figure:
    """Draw the coefficients of one method over the truth."""
    figure, feature = canvas(4.6, 2.3), np.arange(truth.size)
    axes = figure.subplots()
    axes.step(feature, truth, where="mid", color=TRUTH, lw=1)
    for mask, colour, marker in ((truth != 0, FOUND, "o"), (truth == 0, FALSE, "x")):
        shown = (outcome.coef != 0) & mask
        axes.plot(feature[shown], outcome.coef[shown], marker, color=colour, markersize=3, mew=0.8)
    axes.set_ylim(-1.6, 1.6)
    axes.set_ylabel("coefficient", fontsize=9, color=INK)
    plain_axes(axes)
    return figure
