"""Bounds that are even about zero: taken at their word where rows agree, and only there."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpscreen import PrivateLasso
from dpscreen.privacy import ZCDP, Accountant, NoisyMax, SeededNoise
from dpscreen.rows.source import ArrayRows
from dpscreen.solvers import rules
from dpscreen.solvers.base import Choices, Spending
from dpscreen.solvers.placing import is_even, release_places
from dpscreen.solvers.target import place_target, unevenness
from dpscreen.solvers.zoom import OCTAVES, pooled_scale
from tools.noise import ScriptedAccountant

pytestmark = [
    pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::dpscreen.WeakDeltaWarning"),
    pytest.mark.filterwarnings("ignore::dpscreen.BoundsWarning"),
]

ALL, SIDES = "all features about zero", "sides of zero"


def drawn(n: int, d: int, seed: int, *, noise: float = 0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X[:, 0] - X[:, 1] + rng.normal(0, noise, n)
    return X, y / y.std()


def fitted(X, y, *, width=3.0, target=5.0, epsilon=1.0, **options):
    given = {"feature_bounds": (-width, width), "target_bounds": (-target, target)}
    given |= {"random_state": "even"} | options
    return PrivateLasso(epsilon=epsilon, delta=1e-3, **given).fit(X, y)


def purposes(model) -> set[str]:
    return {use.purpose for use in model.privacy_.mechanisms}


# --- what a row can change ------------------------------------------------------------------------


@given(sides=st.tuples(*3 * [st.integers(0, 50)]), to=st.integers(0, 2))
def test_lemma_54_a_row_moves_how_uneven_sides_are_by_one(sides, to):
    more = [count + (place == to) for place, count in enumerate(sides)]
    assert abs(int(unevenness(*more)) - int(unevenness(*sides))) <= 1


class Told(ScriptedAccountant):
    """Says that columns lie about zero and fill their bounds, so that nothing else is asked."""

    def answer(self, mechanism, values, purpose):
        if isinstance(mechanism, NoisyMax):
            return 3
        return np.where(np.arange(values.size) == 18, 1e4, 0.0)


def asked(X, y):
    """Return what the two releases are given."""
    regime = rules.Regime(100, X.shape[1], 0.5)
    paid = Spending(Told(0), ZCDP(Fraction(1, 2)), regime)
    rows, bounds = ArrayRows(X, y), np.tile([-1.0, 1.0], (X.shape[1], 1))
    place_target(paid, rows, bounds[0], trusting=True)
    release_places(paid, rows, bounds, Choices(), trusting=True)
    return {purpose: (mechanism, values) for mechanism, values, purpose in paid.accountant.given}


CELLS = st.sampled_from([-1.0, -0.5, -1e-9, 0.0, 5e-324, 0.3, 1.0, 7.0])


@given(rows=arrays(float, st.tuples(st.integers(0, 6), st.just(4)), elements=CELLS), data=st.data())
def test_lemma_54_no_release_moves_further_than_is_booked(rows, data):
    row = data.draw(arrays(float, 4, elements=CELLS))
    before, after = asked(rows[:, 1:], rows[:, 0]), asked(*_split(np.vstack((rows, row))))
    assert {ALL, SIDES} <= set(before)
    for purpose in (ALL, SIDES):
        (mechanism, old), (same, new) = before[purpose], after[purpose]
        assert mechanism == same
        assert np.linalg.norm(new - old) * mechanism.unit <= mechanism.sensitivity


def _split(rows):
    return rows[:, 1:], rows[:, 0]


def test_lemma_54_is_attained():
    """All cells of the row in one octave, and all columns one-sided."""
    row = np.full((1, 3), 0.3)
    mechanism, old = asked(row, row[0, :1])[ALL]
    _, new = asked(np.vstack((row, row)), np.full(2, 0.3))[ALL]
    share = np.linalg.norm(new - old) * mechanism.unit / mechanism.sensitivity
    assert share == pytest.approx(1, abs=1e-9)


# --- what is made of them -------------------------------------------------------------------------


def test_standardised_columns_are_not_placed_one_by_one():
    X, y = drawn(300, 12, seed=1)
    model = fitted(X, y)
    assert {ALL, SIDES} <= purposes(model)
    assert not {"the features' histograms", "the target's centre"} & purposes(model)
    np.testing.assert_array_equal(model.feature_bounds_, np.tile([-3.0, 3.0], (12, 1)))


def test_even_bounds_are_worth_more_than_uneven_ones():
    """Mean R² of 30 fits, 120 rows, ε = 1: .69 against .58, with deviations of .02 and .03."""
    found = []
    for more in (0.0, 0.001):
        scores = []
        for seed in range(30):
            X, y = drawn(120, 12, seed)
            bounds = {"feature_bounds": (-3, 3 + more), "target_bounds": (-5, 5 + more)}
            scores.append(fitted(X, y, random_state=str(seed), **bounds).score(X, y))
        found.append(float(np.mean(scores)))
    assert found[0] > found[1] + 0.03


def test_a_pair_of_guesses_declares_nothing():
    """Half of the columns lie at 100, in (−200, 200): R² was 0, as all were taken to be about 0."""
    Z, y = drawn(300, 10, seed=7)
    X = 10 * Z + 100 * (np.arange(10) % 2)
    model = fitted(X, y, width=200.0, epsilon=5.0)
    assert ALL not in purposes(model)
    assert model.score(X, y) > 0.6


@pytest.mark.parametrize("off", ["features", "target", "zeros"])
def test_bounds_that_rows_contradict_are_not_believed(off):
    X, y = drawn(800, 6, seed=3)
    X = 0.8 * X + 4 * (off == "features")
    if off == "zeros":
        X = np.where(X > 0.6, X, 0.0)
    y = y + 30 * (off == "target")
    model = fitted(X, y, width=8.0, target=60.0)
    kept = "the target's centre" if off == "target" else "the features' histograms"
    assert {ALL, SIDES, kept} <= purposes(model)
    assert model.score(X, y) > 0.2
    assert abs(model.predict(X).mean() - y.mean()) < 0.5


def test_columns_that_hardly_fill_their_bounds_are_placed():
    X, y = drawn(800, 6, seed=4)
    model = fitted(X / 100, y, width=5.0)
    assert {ALL, "the features' histograms"} <= purposes(model)
    X = X / 100
    assert model.score(X, y) > 0.5


def test_even_bounds_that_are_far_too_wide_are_not_believed():
    """Mean R² of ten fits, 300 rows, ε = 2: .83; .00 when no count outweighed what was believed."""
    found = []
    for seed in range(10):
        X, y = drawn(300, 10, seed)
        model = fitted(X / 50, y, width=6.0, epsilon=2.0, random_state=str(seed))
        found.append(model.score(X / 50, y))
    assert np.mean(found) > 0.6


@pytest.mark.parametrize(
    "options", [{"standardize": True}, {"feature_bounds": [(-3, 3)] * 11 + [(-2, 2)]}]
)
def test_only_one_pair_for_all_declares_standardised_columns(options):
    X, y = drawn(300, 12, seed=5)
    assert ALL not in purposes(fitted(X, y, **options))


@pytest.mark.parametrize(
    ("bounds", "even"),
    [
        ([(-3, 3), (-3, 3)], True),
        ([(-3, 3), (-2, 2)], False),
        ([(0, 6), (0, 6)], False),
        ([(-200, 200)], False),
    ],
)
def test_evenness(bounds, even):
    assert is_even(np.array(bounds, dtype=float)) is even


@pytest.mark.parametrize("scale", [0.05, 0.15, 0.33, 0.6])
@pytest.mark.parametrize("law", ["normal", "laplace"])
def test_the_common_scale_is_found(scale, law):
    """20 000 cells, clipped to their bounds, and hardly any noise."""
    rng = np.random.default_rng(6)
    size = np.abs(rng.normal(size=20_000) if law == "normal" else rng.laplace(size=20_000) / 2**0.5)
    u = np.minimum(scale * size, 1.0)
    places = np.searchsorted(OCTAVES, u, side="right")
    counts = np.bincount(places, minlength=len(OCTAVES) + 1).astype(float)
    found = pooled_scale(counts, noise=20.0, n_rows=20_000)
    assert math.log2(found / scale) == pytest.approx(0, abs=0.2)


def test_few_rows_are_put_about_zero():
    """40 rows at ρ = 1/80: the centre stays within a deviation of zero in all of 60 fits."""
    limit = ZCDP(Fraction(1, 80))
    for seed in range(60):
        y = np.random.default_rng(seed).normal(0, 0.2, 40)
        paid = Spending(
            Accountant(SeededNoise(f"few {seed}"), limit=limit), limit, rules.Regime(40, 1, 1 / 80)
        )
        seat = place_target(
            paid, ArrayRows(np.zeros((40, 1)), y), np.array([-1.0, 1.0]), trusting=True
        )
        if any(use.purpose == "the target's centre" for use in paid.accountant.uses):
            continue  # noise spoke against zero, and the centre was looked for
        assert abs(seat.centre) < 0.2
        assert 0.02 < seat.deviation < 1
