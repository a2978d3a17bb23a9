"""What every picture shares: colours, an empty figure, and saving it without a trace of today.

matplotlib's global state is not touched.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpscreen.report.svg import inline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, GRID_LINES = "#24292f", "#d8dee4"
COLOURS = ("#0067a5", "#c44e00", "#00795a", "#9b4f96", "#6b5b00", "#5c6670")
"""Told apart with any of the common colour vision deficiencies; each at least 4:1 on white."""
STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "dpscreen", "path.simplify_threshold": 0.2}
METADATA: dict[str, Any] = {"Date": None, "Creator": None}


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
