"""Every number that fits and plans rest on states its origin, and the page lists all of them."""

from importlib import import_module
from pathlib import Path

import pytest

MOST_TUNED = 90


@pytest.fixture(name="listing")
def _listing(monkeypatch):
    """Return the command that lists constants, which is no part of the package."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    return import_module("benchmarks.constants")


def test_every_constant_states_its_origin(listing):
    found = list(listing.constants())
    assert len(found) > 50
    without = [(one.module, *one.names) for one in found if one.origin not in listing.ORIGINS]
    assert without == []


def test_few_constants_are_tuned(listing):
    tuned = [name for one in listing.constants() if one.origin == "tuned" for name in one.names]
    assert 10 < len(tuned) <= MOST_TUNED


def test_the_page_is_as_generated(listing):
    assert listing.PAGE.read_text(encoding="utf-8") == listing.page()


def test_halves_and_doubles_are_of_the_same_kind(listing):
    assert listing.scaled(3, 0.5) == 2
    assert listing.scaled((1.0, 4), 2.0) == (2.0, 8)
    assert listing.scaled(0.3, 0.5) == 0.15
