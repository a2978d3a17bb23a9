"""At most k rows of a unit, by their order alone."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_oracle import described

from dpscreen.data.schema import TableSchema
from dpscreen.data.tables import read_rows
from dpscreen.data.tables_units import UnitCounter


def kept(ids, most, cut=None):
    counter = UnitCounter(most)
    parts = [ids] if cut is None else [ids[:cut], ids[cut:]]
    return np.concatenate([counter.keep(np.array(part, dtype=object)) for part in parts]).tolist()


def first_of_each(ids, most):
    seen = Counter()
    for one in ids:
        seen[one] += 1
        yield seen[one] <= most


IDS = st.lists(st.sampled_from(["a", "b", "c", "", "aa", "ä"]) | st.text(max_size=3), max_size=60)


@given(IDS, st.integers(1, 4), st.integers(0, 60))
@settings(max_examples=60)
def test_the_first_rows_of_each_unit_are_kept(ids, most, cut):
    want = list(first_of_each(ids, most))
    assert kept(ids, most) == want
    assert kept(ids, most, cut) == want


def test_the_table_of_units_grows():
    ids = [str(number % 50_000) for number in range(120_000)]
    counter = UnitCounter(2)
    found = [
        counter.keep(np.array(ids[k : k + 999], dtype=object)) for k in range(0, len(ids), 999)
    ]
    assert np.concatenate(found).tolist() == [number < 100_000 for number in range(len(ids))]


@given(IDS, st.integers(1, 3), st.data())
@settings(max_examples=60)
def test_one_unit_moves_no_other_units_rows(ids, most, data):
    one = data.draw(st.sampled_from(ids or [""]))
    keep = kept(ids, most)
    others = [place for place, name in enumerate(ids) if name != one]
    alone = kept([ids[place] for place in others], most)
    assert [keep[place] for place in others] == alone
    assert sum(keep) - sum(alone) <= most


SPELLINGS = ["7", " 7", "07", "+7", "7.0", "7.", "-7", "x7", "", "NA", "70", "7e0"]


@pytest.mark.parametrize(("kind", "units"), [("integer", 3), ("string", 10), ("any", 10)])
def test_which_spellings_are_one_unit(tmp_path, kind, units):
    given_ = described(rows_per_unit=1, missing_target="fill")
    given_["fields"][6]["type"] = kind
    frame = pd.DataFrame({"age": 1, "smoker": "no", "income": 2, "grade": 1, "member": "1"}, [0])
    frame = pd.concat([frame] * len(SPELLINGS)).assign(cost=3, who=SPELLINGS)
    frame.to_csv(tmp_path / "data.csv", index=False)
    schema = TableSchema.from_dict(given_)
    # As integers: 7 in all its spellings, -7, 70; what is none is one unit with the missing.
    assert len(read_rows(tmp_path / "data.csv", schema)) == units + (kind == "integer")
    assert len(schema.encode(frame)) == units + (kind == "integer")
