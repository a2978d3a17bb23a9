"""Whatever finite numbers the rows hold, a fit ends, adds its noise and sees them clipped only."""

from __future__ import annotations

import numpy as np
import pytest
from fuzz_rows import (
    EVERY_CLASS,
    IGNORED,
    CountingNoise,
    clipped,
    params_of,
    rows,
    words_per_release,
)
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dpscreen import ADPScreen, DPFrankWolfe, PrivateLasso, PrivateOLS, RNMScreen
from dpscreen.privacy import ZCDP, Budget

pytestmark = [pytest.mark.filterwarnings(one) for one in IGNORED]
many = settings(max_examples=50, suppress_health_check=list(HealthCheck))
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


@each_class
@given(st.data())
@settings(parent=many, max_examples=10)
def test_the_order_of_the_columns_in_memory_and_their_type_do_not_matter(kind, data):
    n, d = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 3))
    numbers = np.array(
        data.draw(st.lists(st.integers(-100, 100), min_size=n * d + n, max_size=n * d + n))
    )
    X, y = numbers[: n * d].reshape(n, d), numbers[n * d :]
    params = data.draw(params_of(kind, d))
    releases = [
        kind(**params, random_state=CountingNoise(3)).fit(form, target)
        for form, target in (
            (X, y),
            (np.asfortranarray(X.astype(np.float32)), y.astype(np.int8)),
            (X.tolist(), y.astype(object)),
        )
    ]
    assert all(same_release(releases[0], other) for other in releases[1:])


def same_release(one, other):
    # A -0.0 in the rows makes no other release than 0.0, so equality of numbers is asked for.
    return (
        np.array_equal(one.coef_, other.coef_)
        and one.intercept_ == other.intercept_
        and one.privacy_ == other.privacy_
    )


@each_class
@given(st.data())
@settings(parent=many, max_examples=25)
def test_the_caller_keeps_unchanged_rows(kind, data):
    X, y, params = problem(data, kind)
    before = np.array(X, copy=True), np.array(y, copy=True)
    kind(**params, random_state=CountingNoise(4)).fit(X, y)
    assert np.array_equal(before[0], np.asarray(X))
    assert np.array_equal(before[1], y)
