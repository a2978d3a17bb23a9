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


def test_the_file_holds_one_entry_a_line(history, tmp_path):
    path = tmp_path / "history.jsonl"
    assert history.read(path) == []
    path.write_text(json.dumps({"ratios": PAST[0]}) + "\n", encoding="utf-8")
    assert history.read(path) == PAST[:1]
    assert history.read(history.FILE)
