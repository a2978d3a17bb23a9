"""Free screening: the rule sees released selections only, costs nothing, and changes nothing else.

A fit that screens is compared with one that does not under the same noise: up to the screening step
they agree, and outside the domain they are the same to the bit.
"""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from dpscreen import FreeScreen, PrivateLasso
from dpscreen.privacy import ZCDP
from dpscreen.privacy.replay import record, replay
from dpscreen.solvers.base import Path
from dpscreen.solvers.free_screen import screened, screens
from dpscreen.solvers.selection import Selector

pytestmark = [
    pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::dpscreen.WeakDeltaWarning"),
]
SETTING = {
    "epsilon": 2.0,
    "delta": 1e-6,
    "feature_bounds": (-1, 1),
    "target_bounds": (-3, 3),
    "standardize": False,
    "n_rows": 2_000,
}


def rows(seed, *, n=2_000, d=60, k=3):
    """Return rows of which k features matter, so that a path selects them again and again."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, d))
    return X, X[:, :k].sum(axis=1) / np.sqrt(k) + rng.normal(0, 0.1, n)


def both(X, y, **more):
    """Return a fit with screening and one without, of the same noise."""
    given = {**SETTING, "random_state": 3, **more}
    return FreeScreen(**given).fit(X, y), PrivateLasso(**given, solver="stagewise").fit(X, y)


def path_of(features):
    features = np.array(features, dtype=np.int64)
    return Path(features, np.ones_like(features), np.arange(len(features), 0, -1.0))


# --- the rule -------------------------------------------------------------------------------------


@given(st.integers(0, 40), st.integers(0, 60))
def test_screening_needs_three_steps_for_two_features(n_selected, n_steps):
    assert screens(n_selected, n_steps) == (0 < 3 * n_selected <= 2 * n_steps)


@pytest.mark.parametrize(
    ("features", "left"),
    [
        ([0, 1, 0, 2, 2, 2], {0, 1}),  # two features in three steps
        ([0, 1, 2, 2, 2, 2], None),  # three in three
        ([4, 4, 0, 1], {4}),  # one in two
        ([4], None),  # no step before
    ],
)
def test_what_is_screened_follows_from_the_first_half(features, left):
    path = path_of(features)
    half = path.features[: len(features) // 2]
    applies = screens(len(set(half.tolist())), len(half))
    kept = np.flatnonzero(~screened(path, 6)).tolist()
    assert kept == (sorted(set(half.tolist())) if applies else list(range(6)))
    if left is not None:
        assert set(kept) == left
    later = replace(path, features=np.append(half, 5 - path.features[len(half) :]))
    np.testing.assert_array_equal(screened(later, 6), screened(path, 6))


def test_candidates_that_were_not_selected_are_closed_out_and_constants_are_not():
    selector = Selector(mock.Mock(), np.arange(5), ZCDP(1), purpose="", constants=[5])
    for candidate in (3, 5, 1, 3):
        selector.enter(candidate)
    assert selector.entered == {1, 3}
    selector.close()
    assert selector.allowed.tolist() == [1, 3, 5]


# --- inside the domain ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_inside_the_domain_the_first_half_agrees_and_nothing_new_comes_later(seed):
    X, y = rows(seed)
    model, plain = both(X, y, n_iter=24)
    assert model.screened_.any()
    first = set(model.path_.features[:12].tolist())
    np.testing.assert_array_equal(model.path_.features[:12], plain.path_.features[:12])
    np.testing.assert_array_equal(model.path_.signs[:12], plain.path_.signs[:12])
    assert set(model.path_.features[12:].tolist()) <= first
    assert set(np.flatnonzero(~model.screened_).tolist()) == first
    assert not (model.coef_[model.screened_] != 0).any()


def test_outside_the_domain_a_fit_is_that_without_screening_to_the_bit():
    X, y = rows(0, k=40)
    model, plain = both(X, y, n_iter=24, epsilon=20.0)
    assert not model.screened_.any()
    assert model.coef_.tolist() == plain.coef_.tolist()
    assert model.path_.features.tolist() == plain.path_.features.tolist()


@pytest.mark.parametrize("n_iter", [1, 2, 3])
def test_paths_too_short_to_be_screened_are_fitted(n_iter):
    model, plain = both(*rows(1), n_iter=n_iter)
    assert model.path_.features[:1].tolist() == plain.path_.features[:1].tolist()
    assert str(model.summary())


def test_max_features_and_screening_go_together():
    model, _ = both(*rows(2), n_iter=24, max_features=2)
    assert len(np.unique(model.path_.features)) <= 2


# --- it costs nothing -----------------------------------------------------------------------------


def test_screening_is_charged_nothing():
    model, plain = both(*rows(0), n_iter=24)
    assert model.screened_.any()
    assert model.privacy_.epsilon == plain.privacy_.epsilon
    with record() as screening:
        FreeScreen(**SETTING, n_iter=24, random_state=3).fit(*rows(0))
    with record() as none:
        PrivateLasso(**SETTING, solver="stagewise", n_iter=24, random_state=3).fit(*rows(0))
    steps = [
        [float(p.mechanism.cost) for p in one.passages if p.purpose == "stagewise step"]
        for one in (screening, none)
    ]
    assert steps[0] == pytest.approx(steps[1], rel=1e-12)  # scales are rounded up
    assert [p.purpose for p in screening.passages] == [p.purpose for p in none.passages]


@pytest.mark.parametrize("shift", [-2.0, 2.0])
def test_other_rows_under_the_same_releases_are_screened_alike(shift):
    """The attack on the lemma: a rule that saw a row would screen other rows otherwise.

    Residuals of the other rows lie all on one side of zero.
    """
    model = FreeScreen(**SETTING, n_iter=24, random_state=3)
    with record() as before:
        model.fit(*rows(0))
    assert model.screened_.any()
    X, y = rows(7, n=900)
    with replay(before):
        other = FreeScreen(**SETTING, n_iter=24, random_state=3).fit(X[:, ::-1], shift - y)
    assert other.screened_.tolist() == model.screened_.tolist()
    assert other.path_.features.tolist() == model.path_.features.tolist()
    assert other.coef_.tolist() == model.coef_.tolist()


# --- rows of other forms --------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
def test_sparse_rows_release_what_dense_ones_do(intercept):
    rng = np.random.default_rng(4)
    X = np.where(rng.random((1500, 80)) < 0.2, rng.uniform(-1, 1, (1500, 80)), 0.0)
    y = 3 * X[:, 2] - 3 * X[:, 5] + rng.normal(0, 0.1, 1500)
    model = FreeScreen(**SETTING, n_iter=40, fit_intercept=intercept, random_state=1)
    dense = model.fit(X, y)
    found = dense.coef_.tolist(), dense.intercept_, dense.screened_.tolist()
    assert dense.screened_.any()
    sparse = model.fit(sp.csr_array(X), y)
    assert (sparse.coef_.tolist(), sparse.intercept_, sparse.screened_.tolist()) == found
