"""Every release of a whole fit has the noise that was booked for it, in every number.

The transcript of a fit holds what a mechanism was given, what it released and the scale that was
booked. Vectors: the sum of squares of (released − given)/scale is chi-square, and neighbouring
numbers are independent. Choices: the place of what was chosen among all candidates, by their
chances at the booked scale, is uniform. One false alarm in 10^9 for each purpose.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from replays import CASES, QUIET
from scipy import stats

from dpscreen.privacy import DiscreteGaussian, NoisyMax, SignedNoisyMax
from dpscreen.privacy.replay import record

pytestmark = QUIET
ALARM, FITS = 1e-9, 16
KNOWN = {case.name: case for case in CASES}
NAMES = (
    "PrivateLasso: large budget",
    "PrivateLasso: stagewise, large budget",
    "PrivateLasso: auto with a row norm, 60 features",
    "PrivateLasso: split",
    "FreeScreen: screened",
    "PrivateOLS: loose bounds, large budget",
    "PrivateLogit: loose bounds, large budget",
    "PrivateLogisticLasso: large budget",
    "PrivatePoisson: loose bounds, large budget",
    "PrivatePoissonLasso: large budget",
    "PrivateLogisticLasso: split",
    "DPFrankWolfe: defaults",
    "RNMScreen: defaults",
    "ADPScreen: defaults",
    "NoisyIHT: standardized, loose bounds",
    "PrivateGCD: defaults",
)


def passages(case, fits):
    """Return all releases of several fits of the same rows, each with noise of its own."""
    found = []
    for seed in range(fits):
        with record() as transcript:
            case.model(random_state=seed).fit(*case.rows("normal", 1, 200))
        found += transcript.passages
    return found


def deviates(passage):
    """Return the noise of a vector in its booked deviations."""
    mechanism = passage.mechanism
    return (passage.released - passage.given * mechanism.unit) / mechanism.scale


def place(passage, rng):
    """Return where among all candidates, the likeliest first, the chosen one stands: in (0, 1)."""
    mechanism, given = passage.mechanism, passage.given
    chosen = passage.released
    if isinstance(mechanism, SignedNoisyMax):
        chosen = given.size * (chosen.sign < 0) + chosen.feature
        given = np.concatenate((given, -given))
    shares = np.exp((given - given.max()) * (mechanism.unit / mechanism.scale))
    shares /= shares.sum()
    before = np.argsort(-given, kind="stable")
    rank = int(np.flatnonzero(before == chosen)[0])
    return shares[before[:rank]].sum() + rng.random() * shares[chosen]


def p_values(found):
    """Return one p-value for each purpose: that of the noise's law."""
    rng, vectors, places = np.random.default_rng(0), defaultdict(list), defaultdict(list)
    for passage in found:
        match passage.mechanism:
            case DiscreteGaussian() if passage.mechanism.variance_in_units > 9:
                vectors[passage.purpose].append(deviates(passage))
            case NoisyMax() | SignedNoisyMax():
                places[passage.purpose].append(place(passage, rng))
    told = {purpose: stats.kstest(at, "uniform").pvalue for purpose, at in places.items()}
    return told | {purpose: law_of_vectors(np.concatenate(z)) for purpose, z in vectors.items()}


def law_of_vectors(z):
    squares = stats.chi2(z.size)
    size = 2 * min(squares.cdf(z @ z), squares.sf(z @ z))
    beside = 2 * stats.norm.sf(abs(z[1:] @ z[:-1]) / np.sqrt(max(z.size - 1, 1)))
    return min(size, beside)


@pytest.mark.parametrize("name", NAMES)
def test_every_release_has_the_noise_that_was_booked(name):
    told = p_values(passages(KNOWN[name], FITS))
    assert {purpose: p for purpose, p in told.items() if p < ALARM} == {}
    assert told


def test_noise_that_is_a_third_too_small_is_found(monkeypatch):
    """Other mistakes, such as noise in the first number alone, are mutants of this test."""
    release = DiscreteGaussian.__call__

    def wrong(self, values, noise):
        exact = values * self.unit
        return exact + (release(self, values, noise) - exact) / 1.5

    monkeypatch.setattr(DiscreteGaussian, "__call__", wrong)
    found = passages(KNOWN["PrivateLasso: stagewise, large budget"], FITS)
    assert min(p_values(found).values()) < ALARM
