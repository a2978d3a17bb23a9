"""The demonstration's second half, a private regression of a table that needs no download; and all
of it as one HTML file, which holds its pictures, runs no script and asks for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpscreen import __version__
from dpscreen._core.arrays import Array
from dpscreen._core.pictures import COLOURS, INK, canvas, environment, plain_axes, themed_svg
from dpscreen._core.words import percent_at_most, whole_percent
from dpscreen.models import PrivateOLS
from dpscreen.paper import demo
from dpscreen.privacy import PrivacyStatement
from dpscreen.privacy.budget import posterior
from dpscreen.solvers.inference import FeatureInterval
from dpscreen.solvers.quality import Quality

EPSILON = 5.0
DELTA = 1e-6
TARGET_BOUNDS = (0.0, 400.0)
ROWS = 442


@dataclass(frozen=True)
class Measurement:
    """A column of scikit-learn's diabetes table: possible values, and a step that means something.

    Bounds are medical knowledge, not taken from the rows.
    """

    column: str
    name: str
    bounds: tuple[float, float]
    step: float
    step_words: str


MEASUREMENTS = (
    Measurement("bmi", "body mass index", (15, 50), 5, "5 kg/m²"),
    Measurement("bp", "blood pressure", (60, 140), 10, "10 mm Hg"),
    Measurement("s5", "log triglycerides", (3, 7), 0.5, "0.5"),
    Measurement("s3", "HDL cholesterol", (20, 100), 10, "10 mg/dl"),
    Measurement("sex", "sex", (1, 2), 1, "2 against 1"),
)


@dataclass(frozen=True)
class Effect:
    """How the prediction moves with a step of one measurement; `plain` is what OLS finds."""

    name: str
    step_words: str
    effect: float
    interval: tuple[float, float] | None
    plain: float


@dataclass(frozen=True)
class TableFit:
    """What is released about a table, beside what least squares finds without privacy."""

    effects: tuple[Effect, ...]
    quality: Quality
    plain_r2: float
    statement: PrivacyStatement

    @property
    def fit(self) -> str:
        """Say how much is explained, as far as the release can tell, and without privacy."""
        told, plain = self.quality, f"least squares, not private: {self.plain_r2:.2f}"
        found = f"not known, as {ROWS} rows are few"
        if told.r2_reason is None:
            found = f"{told.r2:.2f} ({told.r2_low:.2f} to {told.r2_high:.2f})"
        return f"Released R²: {found} ({plain})."

    @property
    def meaning(self) -> str:
        """Say what epsilon means, in words (docs/privacy.md, Lemma 19)."""
        sure = percent_at_most(posterior(0.5, self.statement.epsilon))
        hardly = percent_at_most(posterior(0.01, self.statement.epsilon))
        return (
            f"ε = {self.statement.epsilon:g} in words: whoever knows all other patients and is "
            f"50 % sure that you are in the table becomes at most {sure} sure by seeing this; "
            f"whoever is 1 % sure, at most {hardly}. It is large as rows are few: what counts is "
            f"rows times ε, so with {float(f'{ROWS * self.statement.epsilon:.2g}'):.0f} rows ε = 1 "
            "would tell as much."
        )


def regression_block() -> TableFit:
    """Fit the table privately and plainly."""
    X, y = _table()
    model = PrivateOLS(
        epsilon=EPSILON,
        delta=DELTA,
        feature_bounds=[one.bounds for one in MEASUREMENTS],
        target_bounds=TARGET_BOUNDS,
    ).fit(X, y)
    plain, plain_r2 = _least_squares(X, y)
    found = {one.feature: one for one in model.inference_.intervals}
    effects = (
        _effect(one, model.coef_[j], found.get(j), plain[j]) for j, one in enumerate(MEASUREMENTS)
    )
    return TableFit(tuple(effects), model.quality_, plain_r2, model.privacy_)


def _effect(
    one: Measurement, coefficient: float, found: FeatureInterval | None, plain: float
) -> Effect:
    """Return what a meaningful step of a measurement does."""
    interval = None if found is None else (one.step * found.low, one.step * found.high)
    return Effect(one.name, one.step_words, one.step * coefficient, interval, one.step * plain)


def _table() -> tuple[Array, Array]:
    from sklearn.datasets import load_diabetes

    table: Any = load_diabetes(as_frame=True, scaled=False)
    columns = [one.column for one in MEASUREMENTS]
    return table.data[columns].to_numpy(dtype=float), table.target.to_numpy(dtype=float)


def _least_squares(X: Array, y: Array) -> tuple[Array, float]:
    """Return slopes and R² without privacy."""
    rows = np.column_stack((X, np.ones(len(X))))
    weights = np.linalg.lstsq(rows, y, rcond=None)[0]
    left = float(np.mean((rows @ weights - y) ** 2))
    return np.asarray(weights[:-1], dtype=np.float64), 1 - left / float(np.var(y))


# --- the page -------------------------------------------------------------------------------------

PRIVATE, PLAIN = COLOURS[0], COLOURS[5]


def render(
    results: list[demo.DemoOutcome],
    truth: Array,
    regression: TableFit,
    statements: list[tuple[str, str]],
) -> str:
    """Return the page."""
    from markupsafe import Markup

    panels = [
        (one, Markup(themed_svg(demo.draw(one, truth), prefix=f"m{place}")))
        for place, one in enumerate(results)
    ]
    page = environment("dpscreen.cli").get_template("demo.html")
    return page.render(
        epsilon=demo.EPSILON,
        fits=demo.FITS,
        panels=panels,
        regression=regression,
        intervals=any(effect.interval for effect in regression.effects),
        effects=Markup(_effects(regression)),
        statements=statements,
        percent=whole_percent,
        version=__version__,
    )


def _effects(regression: TableFit) -> str:
    """Draw private effects, with intervals if there are any, beside those of least squares."""
    effects = regression.effects
    figure = canvas(4.6, 0.7 + 0.36 * len(effects))
    axes = figure.subplots()
    for place, one in enumerate(effects):
        if one.interval is not None:
            axes.plot(one.interval, [place - 0.12] * 2, color=PRIVATE, linewidth=2.4)
        axes.plot([one.effect], [place - 0.12], "o", color=PRIVATE, markersize=5)
        axes.plot([one.plain], [place + 0.16], "D", color=PLAIN, markersize=4, fillstyle="none")
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_yticks(range(len(effects)), [one.name for one in effects])
    axes.set_ylim(len(effects) - 0.5, -0.6)
    axes.set_xlabel("change of the prediction", fontsize=9, color=INK)
    plain_axes(axes)
    return themed_svg(figure, prefix="effects")
