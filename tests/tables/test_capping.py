"""At most k rows of a unit, by what they hold and not by their order."""

from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_oracle import described, features_of, schema_of_ids

from dpscreen.rows.owners import row_digests
from dpscreen.tables.reading import UnitChoice, read_rows, spooled_rows
from dpscreen.tables.schema import TableSchema


def kept(ids, most, size=100, cells=None):
    """Return which rows are kept if they come in chunks, of cells or else of their places."""
    cells = np.arange(len(ids), dtype=float) if cells is None else np.asarray(cells, dtype=float)
    choice, flags = UnitChoice(most), [np.empty(0, dtype=bool)]
    for first in range(0, len(ids), size):
        part = slice(first, first + size)
        found = choice.known(np.array(ids[part], dtype=object), None)
        choice.look(cells[part][found, None], np.zeros(found.sum()))
        flags.append(found)
    known = np.concatenate(flags)
    known[known] = choice.chosen()
    assert len(choice.keys) == known.sum()
    return known.tolist()


IDS = st.lists(st.sampled_from(["a", "b", "c", "", "aa", "ä"]) | st.text(max_size=3), max_size=60)


@given(IDS, st.integers(1, 4), st.integers(1, 60))
@settings(max_examples=60)
def test_at_most_so_many_rows_of_each_unit_are_kept(ids, most, size):
    found = kept(ids, most, size)
    assert found == kept(ids, most)
    counts, chosen = (
        Counter(ids),
        Counter(one for one, keep in zip(ids, found, strict=True) if keep),
    )
    assert chosen == {one: min(n, most) for one, n in counts.items() if one != ""}


@given(IDS, st.integers(1, 4), st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_which_rows_are_kept_does_not_depend_on_their_order(ids, most, random):
    """A frame of a query may come in another order if one person is added."""
    cells = [random.choice([0.0, -0.0, 1.0, float("nan"), 5.0]) for _ in ids]
    order = random.sample(range(len(ids)), len(ids))

    def held(places):
        found = kept([ids[k] for k in places], most, cells=[cells[k] for k in places])
        pairs = zip(places, found, strict=True)
        return Counter((ids[k], str(abs(cells[k]))) for k, keep in pairs if keep)

    assert held(order) == held(range(len(ids)))


def test_numbers_that_are_none_are_alike():
    """Which bits of a NaN a library sets may depend on how a column is stored."""
    negative = np.array([[np.copysign(np.nan, -1)], [np.nan]])
    first, second = row_digests(negative, np.zeros(2)).tolist()
    assert first == second


@given(IDS, st.integers(1, 3), st.data())
@settings(max_examples=60)
def test_one_unit_moves_no_other_units_rows(ids, most, data):
    one = data.draw(st.sampled_from(ids or [""]))
    keep = kept(ids, most)
    others = [place for place, name in enumerate(ids) if name != one]
    alone = kept([ids[place] for place in others], most, cells=others)
    assert [keep[place] for place in others] == alone
    assert sum(keep) - sum(alone) <= most


SPELLINGS = ["7", " 7", "07", "+7", "7.0", "7.", "-7", "x7", "", "NA", "70", "7e0"]


@pytest.mark.parametrize(("kind", "units"), [("integer", 3), ("string", 9), ("any", 9)])
def test_which_spellings_are_one_unit(tmp_path, kind, units):
    given_ = described(rows_per_unit=1)
    given_["fields"][6]["type"] = kind
    frame = pd.DataFrame({"age": 1, "smoker": "no", "income": 2, "grade": 1, "member": "1"}, [0])
    frame = pd.concat([frame] * len(SPELLINGS)).assign(cost=3, who=SPELLINGS)
    frame.to_csv(tmp_path / "data.csv", index=False)
    schema = TableSchema.from_dict(given_)
    # As integers: 7 in all its spellings, -7, 70; what is none is nobody's, like the missing.
    assert len(read_rows(tmp_path / "data.csv", schema)) == units
    assert len(schema.encode(frame)) == units


# --- rows without an id ---------------------------------------------------------------------------


TWO_ROWS = partial(schema_of_ids, rows_per_unit=2)


def read_every_way(ids, schema, folder):
    """Return which rows count, by their places, the same in each way of reading."""
    frame = pd.DataFrame({"x": np.arange(len(ids), dtype=float), "y": 1.0, "who": ids})
    frame.to_parquet(folder / "data.parquet")
    frame.to_csv(folder / "data.csv", index=False)
    found = [features_of(schema.encode(frame))[:, 0].tolist()]
    for form in ("csv", "parquet"):
        path = folder / f"data.{form}"
        found.append(features_of(read_rows(path, schema))[:, 0].tolist())
        chunks = spooled_rows(path, schema, in_memory=0).chunks([0])
        found.append(np.concatenate([np.empty((0, 1)), *chunks])[:, 0].tolist())
    assert all(one == found[0] for one in found)
    return found[0]


ANONYMOUS = ["a", None, "", " ", "NA", " NA ", "b", None, "a", None]


def test_rows_without_an_id_are_left_out(tmp_path):
    assert read_every_way(ANONYMOUS, TWO_ROWS("string"), tmp_path) == [0, 6, 8]
    numbers = ["1", None, "x", "1.5", "+-1", "1e3", "2", "--1", "01", "NA"]
    assert read_every_way(numbers, TWO_ROWS("integer"), tmp_path) == [0, 6, 8]


@given(
    st.lists(st.sampled_from(["a", "b", "", "NA", "7", "x"]), min_size=1, max_size=20),
    st.sampled_from(["integer", "string"]),
    st.data(),
)
@settings(max_examples=60)
def test_a_row_without_an_id_moves_no_other(ids, kind, data):
    schema = TWO_ROWS(kind)
    frame = pd.DataFrame({"x": np.arange(len(ids), dtype=float), "y": 1.0, "who": ids})
    gone = data.draw(st.integers(0, len(ids) - 1))
    whole = set(features_of(schema.encode(frame))[:, 0])
    without = set(features_of(schema.encode(frame.drop(index=gone)))[:, 0])
    if ids[gone] in ("", "NA") or (kind == "integer" and ids[gone] != "7"):
        assert whole == without
    assert len(whole ^ without) <= 2  # at most its own row and one of the same unit's


# --- ids stored as floats -------------------------------------------------------------------------


def test_whole_numbers_stored_as_floats_are_ids(tmp_path):
    ids = [1e10, np.nan, 123456789012345.0, 1e10, 0.0, -0.0, 0.0, 2.0**53 - 1, -7.0, 1e10]
    assert read_every_way(ids, TWO_ROWS("integer"), tmp_path) == [0, 2, 3, 4, 5, 7, 8]
    stored = read_rows(tmp_path / "data.parquet", TWO_ROWS("any"))
    assert features_of(stored)[:, 0].tolist() == [0, 2, 3, 4, 5, 7, 8]


def test_floats_that_may_be_several_ids_are_none():
    ids = np.array([2**53 - 1, 2**53, -(2**53), 1 - 2**53, np.inf, -np.inf, np.nan])
    table = pa.table({"x": np.arange(7.0), "y": np.ones(7), "who": ids})
    assert features_of(TWO_ROWS("integer").encode(table))[:, 0].tolist() == [0, 3]


def test_an_id_declared_as_missing_is_missing_in_any_spelling(tmp_path):
    schema = TWO_ROWS("integer", ["", "-99", "00"])
    ids = [-99.0, 5.0, np.nan, 0.0, -0.0, 99.0]
    assert read_every_way(ids, schema, tmp_path) == [1, 5]
