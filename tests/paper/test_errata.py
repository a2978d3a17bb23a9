"""Every erratum quotes a claim, derives, weighs, and names a command, which runs and shows it."""

import json
import math
import shlex
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from dpscreen.paper.data import synthetic
from dpscreen.paper.metrics import expected_nonzeros, expected_nonzeros_published
from dpscreen.paper.published import errata, published_data
from dpscreen.privacy import sensitivity
from dpscreen.rows.design import DenseDesign
from dpscreen.solvers.screening import published_scores
from tools.command import here

ENTRIES = json.loads(files("dpscreen.paper").joinpath("errata.json").read_text(encoding="utf-8"))
KEYS = [f"E{n}" for n in range(1, 12)]
FIELDS = {"key", "title", "kind", "claim", "reason", "evidence", "command", "matters"}
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
    assert [one["key"] for one in ENTRIES] == KEYS
    for one in ENTRIES:
        assert set(one) == FIELDS, one["key"]
        assert all(len(text) > 1 for text in one.values()), one["key"]
        assert one["matters"].split()[0].strip(":") in ("Much", "Moderately", "Little")
    quoting = [one["key"] for one in ENTRIES if "“" in one["claim"]]
    assert quoting == KEYS


@pytest.mark.usefixtures("_in_this_process")
@pytest.mark.parametrize("one", ENTRIES, ids=lambda one: one["key"])
def test_the_command_shows_it(one, tmp_path, monkeypatch):
    """Studies with one trial; without the real data, which E8 alone is about."""
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


def test_the_numbers_of_the_evidence_are_computed_here_again():
    """Those of E10 are in test_published.py."""
    radius, n, d, T = 50.0, 3000, 600, 1000
    printed = sensitivity.published_screening_score(radius=radius, n_rows=n)
    attained = sensitivity.screening_score(radius=radius, n_rows=n)
    real = [one for name, one in published_data().items() if "correlated" not in name]
    factors = [(math.sqrt(one.n_rows) + 1) / 2 for one in real]
    one_row = DenseDesign(np.array([[1.0]]), np.array([10.0]))
    score = published_scores(one_row, one_row.at(np.array([2.0])), radius=2.0)[0]
    # d equal scores so high that none of the noisy ones is negative with probability 0.1
    below = 1 - 0.1 ** (1 / d)
    moved = -d * math.log((1 - below * math.exp(0.1)) / (1 - below))
    noise = printed * math.sqrt(8 * T * math.log(4 * n)) / 0.1  # Δ√(8T ln(1/δ₂))/ε₂
    drawn = [np.abs(synthetic(rng=np.random.default_rng(k)).y) for k in range(3)]
    fewest = min(one.n_features for one in real)
    found = {
        "E1": [f"{sensitivity.residual_bound(radius=radius, target_bound=radius):.0f}, where 1"],
        "E2": [
            f"printed {printed:.3g}, attained {attained:.4g}, {attained / printed:.1f} times",
            f"{min(factors):.1f} to {max(factors):.0f} times",
        ],
        "E3": [f"gives {score:.0f} for"],
        "E4": [f"{2 + math.log(m / (m + 2)):.2f} for m = {m}" for m in (10, 100)],
        "E5": [f"changes by {0.1 * d:.0f}.", f"changes by {moved:.3f};"],
        "E6": [
            f"{expected_nonzeros(d, T):.1f} by the corrected",
            f"{expected_nonzeros_published(d, T):.1f} by the printed",
        ],
        "E7": [f"scale {noise:.0f}."],
        "E8": [
            ", ".join(str(np.count_nonzero(y >= 5)) for y in drawn) + " of 3000",
            f"largest |y| is {max(map(np.max, drawn)):.1f},",
        ],
        "E9": [f"{2 / ((T + 1) * (T + 2)):.1e}"],
        "E11": [f"all {fewest} noisy", f"probability {0.5**fewest:.1%}."],
    }
    for key, words in found.items():
        for one in words:
            assert one in errata()[key].evidence, one


def test_the_page_has_the_same_errata_with_the_same_commands():
    page = PAGE.read_text(encoding="utf-8")
    for one in ENTRIES:
        assert f"## {one['key']}\n" in page
        assert f"`{one['command']}`" in page, one["key"]
