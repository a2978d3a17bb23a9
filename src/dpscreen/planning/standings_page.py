"""A contest as one HTML file: it holds its pictures, runs no script, asks for nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dpscreen import __version__
from dpscreen._core.pictures import COLOURS, INK, canvas, environment, plain_axes, themed_svg
from dpscreen._core.words import shortened
from dpscreen.planning.methods import OURS
from dpscreen.planning.standings import ContestRules, MeanRank, Standings, measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MINE, THEIRS = COLOURS[0], COLOURS[1]


def render(standings: Standings, rules: ContestRules) -> str:
    """Return the page."""
    page = environment("dpscreen.planning").get_template("standings.html")
    return page.render(
        standings=standings,
        rules=rules,
        kinds=[_kind(standings, one) for one in standings.divisions],
        ours=OURS,
        version=__version__,
    )


def _kind(standings: Standings, division: str) -> dict[str, Any]:
    """Return what the page shows of a division."""
    from markupsafe import Markup

    lines = {one: standings.lines(division, one) for one in standings.epsilons}
    defeats = [standings.defeats(division, one) for one in standings.epsilons]
    key = division.replace(" ", "-")
    return {
        "key": key,
        "heading": division.capitalize(),
        "measure": measure(division),
        "tables": standings.tables(division),
        "methods": standings.methods(division),
        "lines": lines,
        "defeats": [one for group in defeats for one in group],
        "ranks_picture": Markup(themed_svg(_ranks(lines), prefix=f"{key}-ranks")),
        "scores_picture": Markup(themed_svg(_scores(standings, division), prefix=f"{key}-scores")),
    }


def _panels(
    epsilons: Sequence[float],
    names: Sequence[str],
    draw: Callable[[Axes, float], None],
    label: str,
) -> Figure:
    """Draw one panel for each ε above the other, with a line for each name."""
    figure = canvas(6.4, (0.7 + 0.24 * len(names)) * len(epsilons))
    panels = figure.subplots(len(epsilons), 1, squeeze=False, sharex=True)[:, 0]
    for axes, epsilon in zip(panels, epsilons, strict=True):
        draw(axes, epsilon)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_title(f"ε = {epsilon:.3g}", fontsize=10, color=INK, loc="left")
        axes.set_xlabel(label, fontsize=9, color=INK)
        plain_axes(axes)
        axes.tick_params(labelbottom=True)
    return figure


def _ranks(lines: dict[float, tuple[MeanRank, ...]]) -> Figure:
    """Draw mean ranks, methods in the order of the last ε."""
    names = [line.method for line in list(lines.values())[-1]]

    def draw(axes: Axes, epsilon: float) -> None:
        for line in lines[epsilon]:
            colour = MINE if line.method in OURS else THEIRS
            place = names.index(line.method)
            axes.plot([1, line.rank], [place] * 2, color=colour, linewidth=1)
            axes.plot([line.rank], [place], "o", color=colour, markersize=6)

    return _panels(list(lines), names, draw, "mean rank, 1 the best")


def _scores(standings: Standings, division: str) -> Figure:
    """Draw for each table our first method's score, the best of others, and the non-private one."""
    tables, methods = standings.tables(division), standings.methods(division)
    mine = [one for one in methods if one in OURS][:1]
    theirs = [one for one in methods if one not in OURS]

    def draw(axes: Axes, epsilon: float) -> None:
        for place, table in enumerate(tables):
            axes.plot([standings.best(table)], [place], "|", color=INK, markersize=11)
            for group, colour, mark in ((theirs, THEIRS, "D"), (mine, MINE, "o")):
                if group:
                    best = max(standings.mean(table, one, epsilon) for one in group)
                    axes.plot([best], [place], mark, color=colour, markersize=5)

    label = f"{measure(division)} on held-out rows"
    return _panels(standings.epsilons, [shortened(one, 30) for one in tables], draw, label)
