"""What a step is asked, and what it answers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class StepRequest:
    """A request: what stands in its address, and in its form."""

    query: dict[str, str] = field(default_factory=dict)
    form: dict[str, list[str]] = field(default_factory=dict)
    posted: bool = False

    def text(self, name: str, default: str = "") -> str:
        """Return one field of the form, or of the address."""
        if name in self.form:
            return self.form[name][-1]
        return self.query.get(name, default)

    def all(self, name: str) -> list[str]:
        """Return every value of a field of the form."""
        return self.form.get(name, [])

    def number(self, name: str) -> float | None:
        """Return a finite number; None if there is none."""
        try:
            value = float(self.text(name).strip().replace(",", "."))
        except ValueError:
            return None
        return value if math.isfinite(value) else None

    def whole(self, name: str, default: int = 1) -> int:
        """Return a whole number from 0 on."""
        text = self.text(name).strip()
        return int(text) if text.isdecimal() and len(text) < 10 else default


@dataclass(frozen=True)
class View:
    """A whole page."""

    template: str
    content: dict[str, Any]
    status: int = 200


@dataclass(frozen=True)
class Part:
    """A part of a page, to be put into its place by the script."""

    template: str
    content: dict[str, Any]


@dataclass(frozen=True)
class Go:
    """Go on to another page."""

    where: str


@dataclass(frozen=True)
class Shown:
    """A model's page, to be shown in a frame."""

    html: str
