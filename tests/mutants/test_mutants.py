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


def test_the_page_counts_them_by_kind():
    page = (ROOT / "docs/evidence.md").read_text(encoding="utf-8")
    table = page.split("| kind | what is broken", 1)[1].split("\n\n", 1)[0]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    counts, equivalent = (
        Counter(one.kind for one in some)
        for some in (MUTANTS, [m for m in MUTANTS if m.equivalent])
    )
    expected = {kind: (counts[kind], equivalent[kind]) for kind in KINDS}
    expected["all"] = counts.total(), equivalent.total()
    assert {line[0]: (int(line[2]), int(line[4] or 0)) for line in lines} == expected
    assert all(int(line[2]) == int(line[3]) + int(line[4] or 0) for line in lines)
    assert f"broken in {counts.total()} ways" in page
