"""Formulas as MathML, which browsers draw by themselves: no script, no font, no network."""

from __future__ import annotations

import re

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)

# What the pages use for the sake of code hosts, in words that docutils knows.
_REPLACED = (
    (r"\\lt\b", "<"),
    (r"\\gt\b", ">"),
    (r"\\dots\b", r"\\ldots"),
    (r"‖", r"\\Vert "),
    (r"\\bar\b", r"\\overline"),
    (r"\\mathrel\{(.*?)\}", r"\1"),
    (r"\\(t?frac)\s*(\w)\s*(\w)", r"\\\1{\2}{\3}"),
    (r"\\(hat|tilde)\s*(\\[a-z]+|\w)", r"{\\\1{\2}{}}"),
    (r"^\^", r"{}^"),
)


def as_mathml(formula: str, *, block: bool) -> str:
    """Return a formula as MathML."""
    text = formula.strip()
    for pattern, known in _REPLACED:
        text = re.sub(pattern, known, text)
    drawn = tex2mathml(text, as_block=block)
    return re.sub(r"<mo[^>]*>\|</mo>", '<mo lspace="0" rspace="0" stretchy="false">|</mo>', drawn)


def _written(node: nodes.Element, *, block: bool) -> str:
    try:
        return as_mathml(node.astext(), block=block)
    except Exception as problem:  # docutils raises many kinds
        logger.warning("this formula cannot be drawn: %s", problem, location=node)
        return ""


def _inline(self: HTML5Translator, node: nodes.Element) -> None:
    self.body.append(_written(node, block=False))
    raise nodes.SkipNode


def _block(self: HTML5Translator, node: nodes.Element) -> None:
    # As wide as it is: it scrolls within its own box on a narrow screen.
    formula = _written(node, block=True)
    self.body.append(f'<div class="formula" tabindex="0">{formula}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer, chosen in conf.py."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
