"""How pages are made from templates: everything that is filled in is escaped."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


def environment() -> Environment:
    """Return Jinja's settings for all pages; a name that a template misspells is an error."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        loader=FunctionLoader(template_text),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def template_text(name: str) -> str:
    """Read a template or style sheet of ours."""
    return files("dpscreen.report").joinpath("templates", name).read_text(encoding="utf-8")
