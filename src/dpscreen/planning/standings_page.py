"""A contest as one HTML file: it holds its pictures, runs no script, asks for nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpscreen import __version__
from dpscreen._core.pictures import COLOURS, INK, canvas, environment, plain_axes, themed_svg
from dpscreen._core.words import shortened
from dpscreen.planning.standings import OURS, ContestRules, Defeat, MeanRank, Standings, measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MINE, THEIRS = COLOURS[0], COLOURS[1]


@dataclass(frozen=True)
class Kind:
    """What the page shows of a division."""

    key: str
    heading: str
    measure: str
    tables: tuple[str, ...]
    methods: tuple[str, ...]
    lines: dict[float, tuple[MeanRank, ...]]
    defeats: tuple[Defeat, ...]
    ranks_picture: str
    scores_picture: str


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


HEADINGS = {
    "numbers": "Numbers",
    "simulated numbers": "Numbers, simulated",
    "outcomes": "Yes or no",
    "simulated outcomes": "Yes or no, simulated",
}


def _kind(standings: Standings, division: str) -> Kind:
    from markupsafe import Markup

    lines = {one: standings.lines(division, one) for one in standings.epsilons}
    defeats = [standings.defeats(division, one) for one in standings.epsilons]
    key = division.replace(" ", "-")
    return Kind(
        key,
        HEADINGS[division],
        measure(division),
        standings.tables(division),
        standings.methods(division),
        lines,
        tuple(one for group in defeats for one in group),
        Markup(themed_svg(_ranks(lines), prefix=f"{key}-ranks")),
        Markup(themed_svg(_scores(standings, division), prefix=f"{key}-scores")),
    )


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
