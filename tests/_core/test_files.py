"""Files are whole or absent, JSON is strict, and a reader is one batch ahead."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpscreen._core.files import NotStrictJson, one_ahead, replacing, strict_json, write_bytes


def test_a_file_that_must_be_new_does_not_replace(tmp_path, monkeypatch):
    path = tmp_path / "a"
    write_bytes(path, b"first", force=False)
    with pytest.raises(FileExistsError):
        write_bytes(path, b"second", force=False)

    def refuse(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(type(path), "hardlink_to", refuse)
    with pytest.raises(FileExistsError):
        write_bytes(path, b"second", force=False)
    assert path.read_bytes() == b"first"
    write_bytes(tmp_path / "b", b"third", force=False)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a", "b"]


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "kept"
    path.write_bytes(b"old")

    def write_and_fail():
        with replacing(path) as stream:
            stream.write(b"half")
            raise RuntimeError("interrupted")

    with pytest.raises(RuntimeError, match="interrupted"):
        write_and_fail()
    assert [one.name for one in tmp_path.iterdir()] == ["kept"]
    assert path.read_bytes() == b"old"


FINITE = st.floats(allow_nan=False, allow_infinity=False)
PLAIN = st.none() | st.booleans() | st.integers(-(10**17), 10**17) | FINITE | st.text()
VALUES = st.recursive(
    PLAIN, lambda one: st.lists(one) | st.dictionaries(st.text(), one), max_leaves=12
)


@given(VALUES)
def test_what_json_says_is_what_python_reads(value):
    text = json.dumps(value)
    assert strict_json(text) == strict_json(text.encode()) == json.loads(text)


def test_a_fault_of_syntax_has_a_place_and_repeats_nothing():
    with pytest.raises(NotStrictJson, match="line 2, column 1") as problem:
        strict_json('{"a": "secret",\nsecret}')
    assert "secret" not in str(problem.value)
    assert problem.value.__context__ is None  # a JSON error holds the whole text
    with pytest.raises(NotStrictJson, match="twice"):
        strict_json('{"a": 1, "a": 2}')


def test_a_reader_runs_one_ahead_and_stops_when_nobody_listens():
    given_out, closed = [], []

    def chunks():
        try:
            for k in range(1000):
                given_out.append(k)
                yield k
        finally:
            closed.append(True)

    listener = one_ahead(chunks())
    assert [next(listener) for _ in range(3)] == [0, 1, 2]
    listener.close()
    assert closed == [True]
    assert given_out == [0, 1, 2, 3]

    def failing():
        yield 1
        raise OSError("gone")

    listener = one_ahead(failing())
    assert next(listener) == 1
    with pytest.raises(OSError, match="gone"):
        next(listener)
