"""Tables as wide as they need to be where no terminal limits them."""

from __future__ import annotations

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table


def wide_enough(console: Console, table: Table) -> Console:
    """Return a console that shows the table without folding it; a terminal stays as it is."""
    if console.is_terminal:
        return console
    needed = Measurement.get(console, console.options.update(width=1000), table).maximum
    return Console(file=console.file, width=max(console.width, needed), highlight=False)
