"""What every picture shares: colours, an empty figure, and saving it without a trace of today.

matplotlib's global state is not touched.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, GRID_LINES = "#24292f", "#d8dee4"
COLOURS = ("#0067a5", "#c44e00", "#00795a", "#9b4f96", "#6b5b00", "#5c6670")
"""Distinguishable with any of the common colour vision deficiencies; each at least 4:1 on white."""
STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "dpscreen", "path.simplify_threshold": 0.2}
METADATA: dict[str, Any] = {"Date": None, "Creator": None}
SHARED = "dpscreen._core"
"""The package with the templates that all pages share."""


def canvas(width: float, height: float) -> Figure:
    """Return an empty figure, in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, target: Path | BytesIO, **options: Any) -> None:
    """Write a PNG where the name says so, otherwise SVG."""
    import matplotlib

    with matplotlib.rc_context(STYLE):
        if isinstance(target, Path) and target.suffix == ".png":
            figure.savefig(target, dpi=140)
        else:
            figure.savefig(target, format="svg", metadata=METADATA, **options)


def themed_svg(figure: Figure, *, prefix: str) -> str:
    """Return the picture as an `<svg>` element in the colours of the page's theme."""
    buffer = BytesIO()
    save(figure, buffer, transparent=True)
    swap = {INK: "var(--ink)", GRID_LINES: "var(--line)"}
    swap |= {colour: f"var(--c{shade})" for shade, colour in enumerate(COLOURS)}
    return inline(buffer.getvalue().decode(), prefix=prefix, colours=swap)


def plain_axes(axes: Axes) -> None:
    """Leave two spines, in ink, over faint lines."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(INK)
    axes.tick_params(colors=INK, labelsize=9, which="both")
    axes.grid(color=GRID_LINES, linewidth=0.6)
    axes.set_axisbelow(True)


COORDINATES = re.compile(r'\s(?:d|x|y|transform)="[^"]*"')
NOT_SHOWN = r"(?:<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->)\s*"
LONG_NUMBER = re.compile(r"-?\d+\.\d{2,}")
FAMILY = re.compile(r"font-family: [^;\"]*")


def inline(text: str, *, prefix: str, colours: Mapping[str, str]) -> str:
    """Return the `<svg>` element alone.

    Ids get a prefix, as several pictures share a page. Colours become what `colours` says, so that
    the page's theme can change them. The size is left to the page.
    """
    body = text[text.index("<svg") :]
    body = re.sub(NOT_SHOWN, "", body, flags=re.DOTALL)
    body = re.sub(r'\s(?:xmlns(?::xlink)?|version|width|height)="[^"]*"', "", body, count=5)
    body = re.sub(r'(\bid="|url\(#|href="#)', rf"\1{prefix}-", body).replace("xlink:href", "href")
    for colour, stand_in in colours.items():
        body = body.replace(colour, stand_in)
    body = FAMILY.sub("font-family: system-ui, sans-serif", body)
    body = COORDINATES.sub(lambda found: LONG_NUMBER.sub(_one_decimal, found[0]), body)
    return re.sub(r"\s*\n\s*", "\n", body).strip()


def _one_decimal(found: re.Match[str]) -> str:
    return f"{float(found[0]):.1f}"


def environment(package: str) -> Environment:
    """Return Jinja's settings for a package's pages; a misspelt name in a template is an error.

    `page.html`, its styles and all else that pages share lie here; the package adds its own.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=ChoiceLoader([PackageLoader(one) for one in (package, SHARED)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def template_text(package: str, name: str) -> str:
    """Read a template or style sheet of one of our packages."""
    return files(package).joinpath("templates", name).read_text(encoding="utf-8")
