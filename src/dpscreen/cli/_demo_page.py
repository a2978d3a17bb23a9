"""The demonstration as one HTML file: it holds its pictures, runs no script, asks for nothing."""

from __future__ import annotations

from dpscreen import __version__
from dpscreen._core.arrays import Array
from dpscreen._core.pictures import (
    COLOURS,
    INK,
    canvas,
    environment,
    plain_axes,
    themed_svg,
)
from dpscreen._core.words import whole_percent
from dpscreen.cli._demo_table import TableFit
from dpscreen.paper import demo

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
