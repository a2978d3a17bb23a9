"""What the rows were made with and on, and what was done to the data before."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dpscreen._core.numbers import duration
from dpscreen._core.words import how_many
from dpscreen.study.results import TrialRow


class Fact(NamedTuple):
    """A name and a value."""

    name: str
    value: str


def machine_facts(rows: Sequence[TrialRow]) -> tuple[Fact, ...]:
    """List versions as the rows record them, this machine's cores and the time that fits took."""
    names = dict.fromkeys(name for row in rows for name in row.versions)
    versions = [Fact(name, _several(row.versions.get(name) for row in rows)) for name in names]
    fits = sum(row.seconds for row in rows)
    return (
        *versions,
        Fact("cores, where this page was made", str(os.cpu_count() or "unknown")),
        Fact("results", how_many(len(rows), "row")),
        Fact("time spent in fits", duration(fits)),
    )


def _several(values: Iterable[str | None]) -> str:
    return ", ".join(dict.fromkeys(value for value in values if value is not None))


def preparation_notes(rows: Iterable[TrialRow]) -> tuple[str, ...]:
    """List every note on preparation once; those on λ differ by data set and are left out."""
    notes = (note for row in rows for note in row.settings.get("preparation", ()))
    return tuple(dict.fromkeys(str(note) for note in notes if not str(note).startswith("λ is")))
