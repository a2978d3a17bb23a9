"""Markdown has short lines, for terminals and reviews, and numbers with a leading zero."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MADE = {"_build", "gallery_pages", "templates", ".venv", "node_modules", "build", "dist"}
PAGES = sorted(
    path
    for path in ROOT.rglob("*.md")
    if not MADE & set(path.relative_to(ROOT).parts)
    and not path.relative_to(ROOT).parts[0].startswith("dpscreen-")  # what commands write
)
GUIDE = sorted((ROOT / "docs/guide").glob("*.md"))
WIDTH = 100
BARE = re.compile(r"(?<![\w.:\])}`\\/])\.\d")
"""A number without its leading zero; `.2f` after a colon is a format."""
TWO_SCREENS = 92
EXPLAINED = 60_000
"""Lines of a page of the guide, and bytes of explanation and theory together, at most."""


def bare_numbers(text: str) -> list[str]:
    return [line for line in text.splitlines() if BARE.search(line)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_are_short_and_numbers_have_a_leading_zero(page):
    text = page.read_text(encoding="utf-8")
    long = [f"{k}: {len(line)}" for k, line in enumerate(text.splitlines(), 1) if len(line) > WIDTH]
    assert long == []
    assert bare_numbers(text) == []


def test_pages_of_the_guide_have_two_screens():
    guide = {page.name: len(page.read_text("utf-8").splitlines()) for page in GUIDE}
    assert {name: lines for name, lines in guide.items() if lines > TWO_SCREENS} == {}


def test_explanation_and_theory_stay_short():
    pages = [*(ROOT / "docs/explanation").glob("*.md"), *(ROOT / "docs/theory").glob("*.md")]
    pages.remove(ROOT / "docs/theory/peers.md")  # proofs of other authors' methods
    assert 0 < sum(page.stat().st_size for page in pages) <= EXPLAINED


def test_the_rule_finds_bare_numbers_and_nothing_else():
    for text in (".95", "from .5 to 1", "(−.02)", "±.04", "| .3 |", "ρ=.1"):
        assert bare_numbers(text), text
    for text in ("0.95", "1.2.3", "x[:.5]"[:3], "`.5`", "f'{x:.2f}'", "a.1", "pages/.1"):
        assert not bare_numbers(text), text
