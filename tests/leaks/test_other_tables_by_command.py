"""Commands on other tables with the same releases: whatever they print or write is the same.

The page's simulations are not forced: their noise is the caller's own, so they must come out the
same by themselves.
"""

from __future__ import annotations

import json
from contextlib import chdir

import pytest
from replay_sources import SCHEMA, table
from replays import differing, lines_of, wild

from dpscreen import PrivacyLedger
from dpscreen.planning import plan
from dpscreen.privacy.replay import record, replay
from dpscreen.tables import reading
from tools.command import invoke

FIT = ("fit", "data.csv", "--schema", "schema.json", "--no-check")
BUDGET = ("--epsilon", 2, "--delta", "1e-6")
FITS = {
    "private-lasso": ("--report", "page.html"),
    "as JSON, booked": (
        "--json",
        "--max-features",
        2,
        "--ledger",
        "l.ledger",
        "--purpose",
        "why",
    ),
    "split": ("--inference", "split", "--rows-public", 3000),
    "dp-fw": ("--model", "dp-fw", "--rows-public", 200),
    "rnm-screen": ("--model", "rnm-screen", "--rows-public", 200),
    "dry run": ("--dry-run",),
    "dry run, booked": ("--dry-run", "--json", "--ledger", "l.ledger"),
}


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Return two folders with the same files, but for the private table."""
    monkeypatch.setattr(plan, "SECONDS", 0.05)
    schema = SCHEMA | {"dpscreen": SCHEMA["dpscreen"] | {"rows_per_unit": 1}}
    for name, kind, n in (("one", "plain", 90), ("other", "full of holes", 140)):
        (tmp_path / name).mkdir()
        table(kind, n, n).to_csv(tmp_path / name / "data.csv", index=False)
        table("plain", 1, 9).to_csv(tmp_path / name / "public.csv", index=False)
        (tmp_path / name / "schema.json").write_text(json.dumps(schema))
        PrivacyLedger.create(tmp_path / name / "l.ledger", dataset="d", epsilon=9, delta=1e-5)
    return tmp_path / "one", tmp_path / "other"


def shown_by_command(place, *words):
    """Run a command in a folder; return what it prints and all files that it leaves there."""
    with chdir(place):
        done = invoke(*words)
    files = {
        one.name: one.read_bytes()
        for one in sorted(place.iterdir())
        if one.name != "data.csv" and one.is_file()
    }
    ledger = lines_of(PrivacyLedger(place / "l.ledger"))
    return {"printed": (done.exit_code, done.stdout, done.stderr), "ledger": ledger, **files}


def shown_by_fit(place, options):
    """Fit, then show the model and predict public rows with it."""
    fitted = shown_by_command(place, *FIT, *BUDGET, "-o", "model.json", *options)
    if "model.json" not in fitted:
        return fitted
    later = [("show", "model.json"), ("predict", "model.json", "public.csv")]
    return fitted | {words[0]: shown_by_command(place, *words)["printed"] for words in later}


@pytest.mark.parametrize("options", FITS.values(), ids=FITS)
def test_a_fit_by_command(places, options):
    assert_nothing_differs(places, options)


@pytest.mark.parametrize("name", ["as JSON, booked", "rnm-screen"])
def test_a_fit_by_command_of_a_large_table(places, name, monkeypatch):
    monkeypatch.setattr(reading, "available_memory", lambda: 0)
    assert_nothing_differs(places, FITS[name])


def test_a_fit_that_the_ledger_refuses(places):
    for place in places:
        PrivacyLedger.create(place / "s.ledger", dataset="d", epsilon=0.1, delta=1e-5)
    with record() as transcript:
        one, other = (shown_by_fit(place, ("--ledger", "s.ledger")) for place in places)
    assert differing(one, other) == []
    assert one["printed"][0] == 3
    assert not transcript.passages


def assert_nothing_differs(places, options):
    with record(steer=wild(5, 0.1)) as transcript:
        one = shown_by_fit(places[0], options)
    with replay(transcript):
        other = shown_by_fit(places[1], options)
    assert differing(one, other) == []
    assert one["printed"][0] == 0
    assert ("model.json" in one) == ("--dry-run" not in options) == bool(transcript.passages)


@pytest.mark.parametrize(
    "words",
    [
        ("schema", "check", "schema.json", "--data", "data.csv"),
        ("schema", "check", "schema.json", "--data", "data.csv", "--json"),
        ("schema", "new", "data.csv", "-o", "new.json"),
    ],
    ids=" ".join,
)
def test_commands_that_release_nothing_look_at_no_row(places, words):
    with record() as transcript:
        one, other = (shown_by_command(place, *words) for place in places)
    assert differing(one, other) == []
    assert one["printed"][0] == 0
    assert not transcript.passages
