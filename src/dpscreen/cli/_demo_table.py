"""The demonstration's second half, a private regression of a table that needs no download; and all
of it as one HTML file, which holds its pictures, runs no script and asks for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpscreen import __version__
from dpscreen._core.arrays import Array
from dpscreen._core.pictures import COLOURS, INK, canvas, environment, plain_axes, themed_svg
from dpscreen._core.words import percent_at_most, whole_percent
from dpscreen.models import PrivateOLS
from dpscreen.paper import demo
from dpscreen.privacy import PrivacyStatement
from dpscreen.privacy.budget import posterior
from dpscreen.solvers.family import Quality

EPSILON = 5.0
DELTA = 1e-6
TARGET_BOUNDS = (0.0, 400.0)
ROWS = 442


MEASUREMENTS = {
    "bmi": ("body mass index", (15, 50), 5, "5 kg/m²"),
    "bp": ("blood pressure", (60, 140), 10, "10 mm Hg"),
    "s5": ("log triglycerides", (3, 7), 0.5, "0.5"),
    "s3": ("HDL cholesterol", (20, 100), 10, "10 mg/dl"),
    "sex": ("sex", (1, 2), 1, "2 against 1"),
}
"""Columns of scikit-learn's diabetes table: name, bounds, and a step that means something.

Bounds are medical knowledge, not taken from the rows.
"""


@dataclass(frozen=True)
class Effect:
    """How the prediction moves with a step of one measurement; `plain` is the OLS estimate."""

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
        """Say how much is explained, as far as the release shows it, and without privacy."""
        quality, found = self.quality, f"not known, as {ROWS} rows are few"
        if quality.r2_reason is None:
            found = f"{quality.r2:.2f} ({quality.r2_low:.2f} to {quality.r2_high:.2f})"
        return f"Released R²: {found} (least squares, not private: {self.plain_r2:.2f})."

    @property
    def meaning(self) -> str:
        """Say what epsilon means, in words (docs/theory/mechanisms.md, Lemma 19)."""
        sure = percent_at_most(posterior(0.5, self.statement.epsilon))
        hardly = percent_at_most(posterior(0.01, self.statement.epsilon))
        return (
            f"ε = {self.statement.epsilon:g} in words: whoever knows all other patients and is "
            f"50 % sure that you are in the table becomes at most {sure} sure by seeing this; "
            f"whoever is 1 % sure, at most {hardly}. It is large as rows are few: what counts is "
            f"rows times ε, so with {float(f'{ROWS * self.statement.epsilon:.2g}'):.0f} rows ε = 1 "
            "would be as precise."
        )


def regression_block() -> TableFit:
    """Fit the table privately, and by least squares."""
    from sklearn.datasets import load_diabetes
    from sklearn.linear_model import LinearRegression

    table: Any = load_diabetes(as_frame=True, scaled=False)
    X = table.data[list(MEASUREMENTS)].to_numpy(dtype=float)
    y = table.target.to_numpy(dtype=float)
    model = PrivateOLS(
        epsilon=EPSILON,
        delta=DELTA,
        feature_bounds=[bounds for _, bounds, _, _ in MEASUREMENTS.values()],
        target_bounds=TARGET_BOUNDS,
    ).fit(X, y)
    plain = LinearRegression().fit(X, y)
    found = {one.feature: one for one in model.inference_.intervals}
    effects = []
    for j, (name, _, step, words) in enumerate(MEASUREMENTS.values()):
        known = found.get(j)
        interval = None if known is None else (step * known.low, step * known.high)
        sizes = float(step * model.coef_[j]), interval, float(step * plain.coef_[j])
        effects.append(Effect(name, words, *sizes))
    return TableFit(tuple(effects), model.quality_, plain.score(X, y), model.privacy_)


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
