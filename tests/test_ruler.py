"""The noise that benchmarks couple: the same standard draws for the same purpose, at any scale."""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from dpscreen.privacy import ZCDP, Accountant, DiscreteGaussian, NoisyMax, SignedNoisyMax


@pytest.fixture
def coupled_noise(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[1]))
    return import_module("benchmarks.ruler").CoupledNoise


def gaussian(noise, rho, purposes):
    mechanism = DiscreteGaussian.of_cost(ZCDP(rho), sensitivity=1.0, unit=2.0**-20)
    accountant, zeros = Accountant(noise, limit=None), np.zeros(2000, dtype=np.int64)
    return [accountant.release(mechanism, zeros, purpose=one) / mechanism.scale for one in purposes]


def test_the_kth_release_of_a_purpose_draws_the_same_standard_noise(coupled_noise):
    first = gaussian(coupled_noise("a table"), 1, ["count", "score", "score"])
    other = gaussian(coupled_noise("a table"), 100, ["score", "count", "score"])
    for mine, theirs in zip(first, (other[1], other[0], other[2]), strict=True):
        assert mine == pytest.approx(theirs, abs=1e-4)
    # 2 000 draws: mean and variance within 5 standard errors
    assert abs(first[0].mean()) < 5 / 2000**0.5
    assert first[0].var() == pytest.approx(1, abs=5 * (2 / 2000) ** 0.5)
    assert abs(np.corrcoef(first[1], first[2])[0, 1]) < 5 / 2000**0.5


def test_selections_are_coupled_too(coupled_noise):
    scores = np.array([3, 0, 1], dtype=np.int64)
    for kind in (NoisyMax, SignedNoisyMax):
        mechanism = kind.of_cost(ZCDP(1), sensitivity=1.0)
        drawn = [
            [
                Accountant(noise, limit=None).release(mechanism, scores, purpose="choice")
                for noise in [coupled_noise("x")]
                for _ in range(20)
            ]
            for _ in range(2)
        ]
        assert drawn[0] == drawn[1]
        assert len(set(drawn[0])) > 1  # noise of its own for each of them
