"""The curves of a model with a formula: partial effects of what is a spline, a power or a function.

Each is drawn over the declared range, with a pointwise 95 % band where the model is a table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from dpscreen._core.pictures import COLOURS, INK, canvas, themed_svg
from dpscreen._core.words import figure, plain, shortened
from dpscreen.models.page.effects import WIDTH, Picture, labelled
from dpscreen.tables.arithmetic import Feature

MOST_CURVES = 12
"""Curves on a page; the others are those of `partial_effect`."""


def curved_variables(schema: Any) -> Iterator[str]:
    """Yield the numbers of which some term of the formula is not a straight line."""
    bounded = {name for name in schema.columns if "transformed" in schema.field(name).roles}
    counts: Counter[str] = Counter()
    for one in schema.derived:
        used = set(one.of.occurrences())
        if len(used) == 1 and not isinstance(one.of, Feature):
            counts.update(used)
    yield from (name for name in counts if name in bounded)


def curves_of(model: Any, predicted: str) -> tuple[Picture, ...]:
    """Return a curve for each such variable of a fitted model; none without a formula."""
    schema = getattr(model, "table_schema", None)
    if schema is None:
        return ()
    names = list(curved_variables(schema))[:MOST_CURVES]
    return tuple(_curve(model, name, k, predicted) for k, name in enumerate(names))


def _curve(model: Any, name: str, place: int, predicted: str) -> Picture:
    found = model.partial_effect(name)
    sheet = canvas(WIDTH, 2.7)
    axes = sheet.subplots()
    banded = bool(found["lower"].notna().all())
    if banded:
        axes.fill_between(
            found.index, found["lower"], found["upper"], color=COLOURS[0], alpha=0.2, linewidth=0
        )
    axes.plot(found.index, found["estimate"], color=COLOURS[0], linewidth=1.6)
    axes.axhline(0, color=INK, linewidth=0.8, linestyle=(0, (1, 2)))
    labelled(axes, shortened(plain(name), 40).replace("$", r"\$"), f"change of {predicted}")
    low, high = found["estimate"].idxmin(), found["estimate"].idxmax()
    band = "The band is a 95 % interval at each value." if banded else "There is no band."
    words = (
        f"{shortened(plain(name), 60)}: least at {figure(low)} and largest at {figure(high)}, "
        f"{figure(found['estimate'].max() - found['estimate'].min())} apart. {band}"
    )
    return Picture(themed_svg(sheet, prefix=f"curve{place}"), words)
