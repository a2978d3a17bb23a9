"""Every erratum quotes a claim, derives, weighs, and names a command, which runs and shows it."""

import json
import shlex
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path

import pytest

from dpscreen.paper.agreement import RowIndex
from dpscreen.paper.errata import EVIDENCE, errata
from dpscreen.paper.published import densities_outside_rates
from tools.command import here

ENTRIES = json.loads(files("dpscreen.paper").joinpath("errata.json").read_text(encoding="utf-8"))
FIELDS = {"key", "title", "kind", "claim", "reason", "command", "matters"}
PAGE = Path(__file__).parents[2] / "docs" / "errata.md"

SMALLER = {"audit": ("--seed", "errata"), "reproduce": ("--trials", "1", "--jobs", "1")}
SHOWN = {
    "E1": "claim refuted",
    "E2": "claim refuted",
    "E3": "Eq. 1 gives -8",
    "E4": "claim refuted",
    "E5": "0.1 is claimed",
    "E6": "d = 600, T = 6000",
    "E7": "RNM-Screen against zeroing at random",
    "E8": "RNM-Screen without the Yeo-Johnson transform",
    "E9": "Density from a random and from a zero start",
    "E10": "Body Fat, Pyrim, Triazines",
    "E11": "probability 0.4%",
}
"""What each command prints that shows its erratum."""


def test_every_entry_is_complete():
    assert [one["key"] for one in ENTRIES] == [f"E{n}" for n in range(1, 12)] == list(EVIDENCE)
    for one in ENTRIES:
        assert set(one) == FIELDS, one["key"]
        assert all(len(text) > 1 for text in one.values()), one["key"]
        assert one["matters"].split()[0].strip(":") in ("Much", "Moderately", "Little")
    quoting = [one["key"] for one in ENTRIES if "“" in one["claim"]]
    assert quoting == list(EVIDENCE)


@pytest.mark.parametrize("one", ENTRIES, ids=lambda one: one["key"])
def test_the_command_shows_it(one, tmp_path, monkeypatch):
    """Studies with one trial; without the real data, which E8 alone is about."""
    monkeypatch.setattr("dpscreen.paper.runner._worker_pool", ThreadPoolExecutor)
    monkeypatch.setenv("DPSCREEN_DATA", str(tmp_path / "none"))
    _, command, *arguments = shlex.split(one["command"])
    if one["key"] == "E8":
        arguments.append("theorem2")  # so that there are rows
    done = here(command, *arguments, *SMALLER.get(command, ()), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert SHOWN[one["key"]] in " ".join(done.stdout.split())


def test_all_are_printed_and_a_wrong_key_is_explained(tmp_path):
    done = here("errata", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for one in ENTRIES:
        assert f"{one['key']}: {one['title']}" in done.stdout
        assert one["command"] in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 82
    wrong = here("errata", "E12", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "E12" in wrong.stderr


def test_evidence_needs_no_rows_but_for_the_control():
    without = {one.key: one.evidence for one in errata(RowIndex(()))}
    assert [key for key, text in without.items() if not text] == ["E7"]


def test_five_densities_contradict_their_rates_whatever_k_is():
    expected = ("bodyfat", "pyrim", "triazines", "residential", "blogfeedback")
    assert densities_outside_rates() == expected


def test_the_page_has_the_same_errata_with_the_same_commands():
    page = PAGE.read_text(encoding="utf-8")
    for one in ENTRIES:
        assert f"## {one['key']}\n" in page
        assert f"`{one['command']}`" in page, one["key"]
