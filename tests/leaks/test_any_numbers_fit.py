"""Whatever finite numbers the rows hold, a fit ends, adds its noise and sees them clipped only.

Neighbouring rows meet the same warnings and errors, in the same order.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from fuzz_rows import (
    EVERY_CLASS,
    FLOATS,
    IGNORED,
    CountingNoise,
    clipped,
    params_of,
    rows,
    words_per_release,
)
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dpscreen import ADPScreen, BoundsWarning, DPFrankWolfe, PrivateLasso, PrivateOLS, RNMScreen
from dpscreen.privacy import ZCDP, Budget

pytestmark = [pytest.mark.filterwarnings(one) for one in IGNORED]
many = settings(max_examples=20, suppress_health_check=list(HealthCheck))
each_class = pytest.mark.parametrize("kind", EVERY_CLASS, ids=lambda kind: kind.__name__)


def problem(data, kind):
    X, y = data.draw(rows(), label="rows")
    # Truths in a frame have bounds (0, 1), and others are refused.
    assume("bool" not in map(str, getattr(X, "dtypes", ())))
    return X, y, data.draw(params_of(kind, np.shape(X)[1]), label="params")


@each_class
@given(st.data())
@many
def test_a_fit_ends_with_finite_numbers_noise_and_the_whole_budget(kind, data):
    X, y, params = problem(data, kind)
    noise = CountingNoise(1)
    with words_per_release() as used:
        model = kind(**params, random_state=noise).fit(X, y)
    assert_finite(model, *clipped(X, y, params))
    assert used
    assert min(used) >= 1
    assert sum(record.count for record in model.privacy_.mechanisms) == len(used)
    assert all(record.scale > 0 for record in model.privacy_.mechanisms)
    assert len(used) == expected_releases(model) or kind not in (DPFrankWolfe, RNMScreen, ADPScreen)
    if model.privacy_.calibration == "proven":
        granted = ZCDP.within(Budget(params["epsilon"], params["delta"]))
        assert float(granted) * (1 - 1e-9) <= model.privacy_.rho <= float(granted)
    assert not model.privacy_.holds  # seeded noise never holds


def assert_finite(model, X, y):
    assert model.coef_.shape == (X.shape[1],)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_)
    bounds = getattr(model, "feature_bounds_", None)
    inside = X if bounds is None else np.clip(X, *bounds.T)
    assert np.isfinite(model.predict(inside)).all()


def expected_releases(model):
    n_iter = model.n_iter_
    if isinstance(model, RNMScreen):
        return 2 * n_iter
    if isinstance(model, ADPScreen):
        return n_iter + (n_iter if model.screen_at in ("all", 1) else 1)
    return n_iter


@each_class
@given(st.data())
@many
def test_rows_count_only_as_clipped(kind, data):
    X, y, params = problem(data, kind)
    as_given = kind(**params, random_state=CountingNoise(2)).fit(X, y)
    seen = clipped(X, y, params | released_bounds(as_given, params))
    as_clipped = kind(**params, random_state=CountingNoise(2)).fit(*seen)
    assert same_release(as_given, as_clipped)


def released_bounds(model, params):
    """Return the hull of public and released bounds: PrivateLasso may release wider ones."""
    if not isinstance(model, PrivateLasso | PrivateOLS):
        return {}
    public = np.asarray(params["feature_bounds"]), np.asarray(params["target_bounds"])
    released = model.feature_bounds_, model.target_bounds_
    features, target = (
        np.stack((np.minimum(a, b)[..., 0], np.maximum(a, b)[..., 1]), axis=-1)
        for a, b in zip(public, released, strict=True)
    )
    return {"feature_bounds": features, "target_bounds": target}


def same_release(one, other):
    # A -0.0 in the rows makes no other release than 0.0, so equality of numbers is asked for.
    return (
        np.array_equal(one.coef_, other.coef_)
        and one.intercept_ == other.intercept_
        and one.privacy_ == other.privacy_
    )


# --- neighbours -----------------------------------------------------------------------------------


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
@settings(parent=many, max_examples=30)
def test_neighbours_warn_and_fail_alike(kind, data):
    """With parameters that are valid, or one that is not."""
    one, other = data.draw(neighbours(), label="tables")
    params = data.draw(params_of(kind, one.shape[1] - 1), label="params")
    params["delta"] = min(params["delta"], 1e-6)  # far below 1/n: the one comparison with n
    if data.draw(st.booleans()):
        name = data.draw(st.sampled_from(sorted(params)))
        params[name] = data.draw(st.sampled_from([None, -1, "x", np.nan, (1, 0), [], object()]))
    met = [events(kind, params, table[:, :-1], table[:, -1]) for table in (one, other)]
    assert met[0] == met[1]
