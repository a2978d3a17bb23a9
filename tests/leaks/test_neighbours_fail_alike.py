"""Census of error paths: neighbouring rows meet the same warnings and errors, in the same order."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from fuzz_rows import EVERY_CLASS, FLOATS, CountingNoise, params_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dpscreen import BoundsWarning

each_class = pytest.mark.parametrize("kind", EVERY_CLASS, ids=lambda kind: kind.__name__)
many = settings(max_examples=40, suppress_health_check=list(HealthCheck))


def events(kind, params, X, y):
    """Return the types of all that a fit and a prediction warn of or raise, in order."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        raised = []
        try:
            model = kind(**params, random_state=CountingNoise(7)).fit(X, y)
            model.predict(np.zeros((1, X.shape[1])))
        except Exception as problem:
            raised = [type(problem)]
    # Of bounds released numbers tell, which neighbours move (test_other_rows.py).
    return [one.category for one in caught if one.category is not BoundsWarning] + raised


@st.composite
def neighbours(draw):
    """Draw two tables that differ in one row: added, removed or changed."""
    n, d = draw(st.integers(2, 9)), draw(st.integers(1, 3))
    table = draw(arrays.arrays(np.float64, (n, d + 1), elements=FLOATS))
    row = draw(arrays.arrays(np.float64, d + 1, elements=FLOATS))
    place = draw(st.integers(0, n - 1))
    changed = table.copy()
    changed[place] = row
    other = {
        "added": np.insert(table, place, row, axis=0),
        "removed": np.delete(table, place, axis=0),
        "changed": changed,
    }[draw(st.sampled_from(["added", "removed", "changed"]))]
    return table, other


@each_class
@given(st.data())
@many
def test_neighbours_warn_and_fail_alike(kind, data):
    one, other = data.draw(neighbours(), label="tables")
    params = data.draw(params_of(kind, one.shape[1] - 1), label="params")
    params["delta"] = min(params["delta"], 1e-6)  # far below 1/n: the one comparison with n
    met = [events(kind, params, table[:, :-1], table[:, -1]) for table in (one, other)]
    assert met[0] == met[1]


@each_class
@given(st.data())
@settings(parent=many, max_examples=30)
def test_neighbours_are_refused_alike_by_bad_parameters(kind, data):
    one, other = data.draw(neighbours(), label="tables")
    params = data.draw(params_of(kind, one.shape[1] - 1), label="params")
    params["delta"] = min(params["delta"], 1e-6)
    name = data.draw(st.sampled_from(sorted(params)))
    params[name] = data.draw(st.sampled_from([None, -1, "x", np.nan, (1, 0), [], object()]))
    met = [events(kind, params, table[:, :-1], table[:, -1]) for table in (one, other)]
    assert met[0] == met[1]
