import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from dpscreen.paper.data.store import Frame, content_hash

VALUES = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.floats())


def framed(values):
    return Frame(tuple(f"c{j}" for j in range(values.shape[1])), values)


@given(VALUES)
def test_the_hash_ignores_layout_and_the_signs_of_zero_and_nan(values):
    expected = content_hash(framed(values))
    assert content_hash(framed(np.asfortranarray(values))) == expected
    assert content_hash(framed(np.where(values == 0, -values, values))) == expected
    assert content_hash(framed(np.where(np.isnan(values), -values, values))) == expected


@given(VALUES, st.data())
def test_the_hash_sees_one_changed_bit(values, data):
    row = data.draw(st.integers(0, values.shape[0] - 1))
    column = data.draw(st.integers(0, values.shape[1] - 1))
    changed = values.copy()
    changed[row, column] = np.nextafter(values[row, column], 0.5)
    if changed[row, column] == values[row, column] or np.isnan(values[row, column]):
        changed[row, column] = 7.25
    assert content_hash(framed(changed)) != content_hash(framed(values))


def test_the_hash_sees_names_and_shape():
    values = np.zeros((2, 3))
    plain = content_hash(Frame(("a", "b", "c"), values))
    assert content_hash(Frame(("a", "b", "d"), values)) != plain
    assert content_hash(Frame(("ab", "", "c"), values)) != plain
    assert content_hash(Frame(("a", "b", "c"), np.zeros((3, 3)))) != plain


def test_the_hash_spans_blocks():
    values = np.arange(10_000.0).reshape(5000, 2)
    changed = values.copy()
    changed[-1, -1] += 1
    assert content_hash(framed(values)) != content_hash(framed(changed))


def test_the_hash_is_fixed_for_all_time():
    # Every hash in the catalogue rests on this definition.
    frame = Frame(("a", "b"), np.array([[1.0, np.nan], [-0.0, 0.1]]))
    assert content_hash(frame) == "cc1cc1efae744e3b38399a7d7d4a273de79d535f481f551e85ae16adaace5700"


def test_columns_are_selected_by_name():
    frame = Frame(("a", "b", "c"), np.array([[1.0, 2.0, 3.0]]))
    chosen = frame.select(["c", "a"])
    assert chosen.columns == ("c", "a")
    np.testing.assert_array_equal(chosen.values, [[3.0, 1.0]])
    with pytest.raises(ValueError, match="no column 'z'"):
        frame.select(["z"])


def test_names_and_values_must_fit():
    with pytest.raises(ValueError, match="do not fit"):
        Frame(("a",), np.zeros((2, 2)))
