"""The request of a step, and its answer."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from jinja2 import Environment

from dpscreen._core.pictures import environment


@cache
def templates() -> Environment:
    """Return the templates of all pages."""
    return environment(__package__)


@dataclass(frozen=True)
class StepRequest:
    """A request: what stands in its address, and in its form."""

    query: dict[str, str] = field(default_factory=dict)
    form: dict[str, list[str]] = field(default_factory=dict)
    posted: bool = False

    def text(self, name: str, default: str = "") -> str:
        """Return one field of the form, or of the address."""
        return self.form[name][-1] if name in self.form else self.query.get(name, default)

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
    """A page; or a part of one, for the script, where the template's name begins with _."""

    template: str
    content: dict[str, Any]
    status: int = 200


@dataclass(frozen=True)
class Go:
    """Go on to another page."""

    where: str
