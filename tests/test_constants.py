"""Every number that fits and plans rest on states its origin, and the page lists all of them."""

from benchmarks.constants import ORIGINS, PAGE, constants, page, scaled

MOST_TUNED = 90


def test_every_constant_states_its_origin():
    found = list(constants())
    assert len(found) > 50
    without = [
        f"{one.module}: {', '.join(one.names)}" for one in found if one.origin not in ORIGINS
    ]
    assert without == []


def test_few_constants_are_tuned():
    tuned = [name for one in constants() if one.origin == "tuned" for name in one.names]
    assert 10 < len(tuned) <= MOST_TUNED


def test_the_page_is_as_generated():
    assert PAGE.read_text(encoding="utf-8") == page()


def test_halves_and_doubles_are_of_the_same_kind():
    assert scaled(3, 0.5) == 2
    assert scaled((1.0, 4), 2.0) == (2.0, 8)
    assert scaled(0.3, 0.5) == 0.15
