"""The history of benchmarks flags what became slower than the recent median, and nothing else."""

import json
from importlib import import_module

import pytest

PAST = [{"a / b": value, "c / d": 1.0} for value in (9.0, 1.0, 1.2, 0.8)]


@pytest.fixture
def history(monkeypatch, request):
    monkeypatch.syspath_prepend(request.config.rootpath)
    return import_module("benchmarks.history")


def test_a_ratio_far_above_the_recent_median_is_flagged(history):
    assert history.slower(PAST, {"a / b": 2.2, "c / d": 1.4}) == {"a / b": 2.0}
    assert history.slower(PAST, {"a / b": 1.6, "c / d": 1.5}) == {}


def test_old_entries_and_new_labels_do_not_count(history):
    old = [{"a / b": 100.0}] * 5 + [{"a / b": 1.0}] * history.RECENT
    assert history.slower(old, {"a / b": 1.6, "new": 7.0}) == {"a / b": 1.6}
    assert history.slower([], {"a / b": 9.0}) == {}


NAMED = {
    "exact step / bare product",
    "exact selection / OpenDP",
    "sparse step / plain step, uniform",
    "sparse step / plain step, power law",
    "streamed fit / bare scans",
    "Dask with two workers / memory",
    "--dry-run / fit",
}


def test_one_command_appends_all_ratios_as_one_line_and_fails_where_one_grew(
    history, tmp_path, monkeypatch
):
    path, seconds = tmp_path / "history.jsonl", {"value": 1 / 3000}
    one = {label: lambda: seconds["value"] for label in history.RATIOS}
    monkeypatch.setattr(history, "FILE", path)
    monkeypatch.setattr(history, "RATIOS", one)
    monkeypatch.setattr(history, "whole_fits", lambda: {"PrivateLasso / LassoCV": 0.5})
    assert set(one) == NAMED
    assert history.read(path) == []
    history.main()
    seconds["value"] *= 2
    with pytest.raises(SystemExit, match=r"--dry-run / fit: 2\.00 times the median"):
        history.main()
    entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [set(entry) for entry in entries] == [{"date", "commit", "machine", "ratios"}] * 2
    assert set(entries[0]["ratios"]) == NAMED | {"PrivateLasso / LassoCV"}
    assert entries[0]["ratios"]["--dry-run / fit"] == 0.0003333  # four digits of small ratios, too
    assert history.read(path) == [entry["ratios"] for entry in entries]


def test_the_committed_file_can_be_read(history):
    assert all(value > 0 for entry in history.read(history.FILE) for value in entry.values())
