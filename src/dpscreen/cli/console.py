"""Terminals: colours and bars on one, plain text elsewhere."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


def output() -> Console:
    """Return where data goes: stdout, wide enough for tables when it is not a terminal."""
    return _console(stderr=False)


def messages() -> Console:
    """Return where messages go: stderr."""
    return _console(stderr=True)


def progress(console: Console) -> Progress:
    """Return a progress bar, shown on a terminal only."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def sentence(problem: object) -> str:
    """Return what went wrong as a sentence that begins with a capital."""
    text = str(problem)
    return text[:1].upper() + text[1:]


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 100
    return Console(file=stream, width=width, highlight=False, soft_wrap=False)
