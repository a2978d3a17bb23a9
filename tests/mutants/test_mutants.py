"""Every mutant of the privacy still applies: `make mutants` runs them, which takes minutes."""

import re
from collections import Counter

import pytest

from mutants import KINDS, ROOT, read_mutants

MUTANTS = read_mutants()
ACCIDENTS = ("tests/golden", "tests/paper", "test_model_page", "in_browser")


def test_every_mutant_changes_its_file_into_another_program():
    for mutant in MUTANTS:
        text = mutant.applied()  # its text is there exactly once
        compile(text, mutant.file, "exec")
        assert all(old != new for old, new in mutant.edits), mutant.name


def test_there_are_enough_of_every_kind_and_each_says_what_it_breaks():
    assert len(MUTANTS) >= 120
    assert set(KINDS) == {mutant.kind for mutant in MUTANTS}
    assert Counter(mutant.name for mutant in MUTANTS).most_common(1)[0][1] == 1
    for mutant in MUTANTS:
        assert mutant.breaks, mutant.name
        assert "\n" not in mutant.breaks, mutant.name


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name)
def test_what_should_kill_a_mutant_is_there_and_attacks_the_privacy(mutant):
    assert mutant.killers
    for test in mutant.killers:
        path, name = re.fullmatch(r"([^:]+)::(\w+)(?:\[.*\])?", test).groups()
        assert re.search(rf"^def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.M), test
        assert not any(word in test for word in ACCIDENTS), test
