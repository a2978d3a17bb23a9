import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_rows import row as made_row

from dpscreen.paper.results import (
    NOT_A_ROW,
    ResultStore,
    fingerprint,
    from_line,
    to_line,
    versions,
)

numbers = st.floats(allow_nan=False, allow_infinity=False)


def row(trial=0, **changes):
    plain = made_row("real", "housing", "dp-fw", trial, metrics={"f1": 0.5}, series={"mse": [0.3]})
    return replace(plain, **{"seed": "λ", "versions": versions(), **changes})


@given(st.dictionaries(st.text(), numbers), st.lists(numbers), st.text())
def test_a_row_survives_its_line(metrics, curve, seed):
    written = row(metrics=metrics, series={"x": curve}, seed=seed)
    line = to_line(written)
    assert "\n" not in line
    assert from_line(line) == written


def test_undefined_metrics_stay_undefined():
    line = to_line(row(metrics={"r2": math.nan, "f1": 1.0}))
    assert "NaN" not in line
    found = from_line(line).metrics
    assert math.isnan(found["r2"])
    assert found["f1"] == 1.0
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_line(row(metrics={"mse": math.inf}))


@given(st.data())
def test_any_changed_character_is_noticed(data):
    line = to_line(row())
    place = data.draw(st.integers(0, len(line) - 1))
    other = data.draw(st.characters(codec="utf-8").filter(lambda c: c != line[place]))
    try:
        found = from_line(line[:place] + other + line[place + 1 :])
    except NOT_A_ROW:
        return
    assert found == row(seconds=found.seconds)  # e.g. a space between two fields


# --- the file ---------------------------------------------------------------------------------


@given(st.integers(1, 10_000))
def test_a_file_cut_anywhere_keeps_its_whole_rows(tmp_path_factory, cut):
    store = ResultStore(tmp_path_factory.mktemp("cut"))
    lines = [to_line(row(trial)).encode() for trial in range(3)]
    whole = b"".join(line + b"\n" for line in lines)
    store.path.write_bytes(whole[: -(cut % len(whole)) or None])
    left = [line for line in store.path.read_bytes().split(b"\n") if line]
    loaded = store.open()
    assert [to_line(found).encode() for found in loaded.rows] == [
        one for one in left if one in lines
    ]
    assert len(loaded.problems) == sum(one not in lines for one in left)
    store.append(row(9))
    assert store.open() == store.read() == ((*loaded.rows, row(9)), loaded.problems, {})


# --- fingerprints -----------------------------------------------------------------------------


def test_a_fingerprint_depends_on_settings_and_versions(monkeypatch):
    before = fingerprint({"radius": 1})
    assert before == fingerprint({"radius": 1}) != fingerprint({"radius": 2})
    for name, changes in (("numpy", True), ("machine", False)):
        other = {**versions(), name: "0.0"}
        monkeypatch.setattr("dpscreen.paper.results.versions", lambda other=other: other)
        assert (fingerprint({"radius": 1}) != before) == changes
