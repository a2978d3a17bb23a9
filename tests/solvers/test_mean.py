"""The last move of the intercept: what predictions add up to is what the rows add up to."""

import numpy as np
import pytest
from scipy.stats import norm

from dpscreen import PrivateLasso
from dpscreen.privacy import SeededNoise
from dpscreen.solvers import base

pytestmark = [
    pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::dpscreen.BoundsWarning"),
]

SETTING = {"epsilon": 1.0, "delta": 1e-6, "feature_bounds": (-5, 5), "target_bounds": (0, 4e5)}


def costs(rng, n):
    """Return features and costs with a long tail: their mean is far above their median."""
    X = rng.normal(size=(n, 4))
    return X, np.exp(7 + 0.3 * X[:, 0] + rng.normal(0, 1.0, n))


@pytest.mark.parametrize("solver", ["auto", "stagewise"])
def test_predictions_of_skewed_costs_add_up_to_what_they_cost(solver):
    """They came to three quarters of it: clips that suit most rows leave the dear ones out."""
    rng = np.random.default_rng(0)
    X, y = costs(rng, 20_000)
    for seed in range(3):
        model = PrivateLasso(**SETTING, solver=solver, random_state=seed).fit(X, y)
        assert 0.9 < model.predict(X).mean() / y.mean() < 1.06


@pytest.mark.parametrize("seed", [181, 474])
def test_noise_far_out_is_not_taken_for_rows(seed):
    """With three noises wherever they lie, these two of 700 fits were off by 6 and 25."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 5))
    y = X[:, 0] - X[:, 1] + rng.normal(size=300)
    noise = SeededNoise(f"far/{seed}")
    wide = {"epsilon": 5.0, "target_bounds": (-60, 100), "n_rows": 300, "random_state": noise}
    model = PrivateLasso(**SETTING | wide).fit(X, y)
    assert model.predict(X).mean() == pytest.approx(y.mean(), abs=0.2)


def test_noise_is_taken_for_rows_a_quarter_as_often_an_octave_further_out():
    """So that what it adds to an error is the same in every octave: noise² times 4^k."""
    chances = norm.sf(base.SURE_NOISES)
    assert chances[0] == pytest.approx(0.00135, rel=0.01)
    assert (chances * 4.0 ** np.arange(len(chances)) <= chances[0]).all()


def test_a_row_is_in_one_cell_and_all_sizes_have_one(monkeypatch):
    """By brute force: neighbours differ by one count, and cells begin at powers of two."""
    rng, seen = np.random.default_rng(1), []
    release = base.release_histograms

    def recorded(accountant, counts, **words):
        if words["purpose"] == "how far residuals lie":
            seen.append(counts[0])
        return release(accountant, counts, **words)

    monkeypatch.setattr(base, "release_histograms", recorded)
    X, y = costs(rng, 3000)
    model = PrivateLasso(**SETTING | {"epsilon": 1e4}, n_rows=3000, random_state=0).fit(X, y)
    (counts,) = seen
    assert counts.sum() == 3000
    sizes = np.abs(model.predict(X) - y)
    assert counts[0] == pytest.approx(np.count_nonzero(sizes <= model.scale_), abs=60)
    assert counts[:3].sum() == pytest.approx(np.count_nonzero(sizes <= 4 * model.scale_), abs=60)
