"""Steps that clip and a rule that does not (Lemma 35), on whatever the shipped steps release.

An accountant that answers as it is told records what each mechanism is given. Two data sets that
differ in one row then follow the same transcript, as in the proof, and every change is compared
with what the mechanism was calibrated for.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpscreen import ADPScreen, RNMScreen
from dpscreen.privacy import ZCDP, Budget, NoisyMax, SeededNoise
from dpscreen.rows.lattice import LatticeDesign, RelaxedRule
from dpscreen.solvers.frank_wolfe import frank_wolfe
from dpscreen.solvers.screening import FrankWolfeSettings, Screening, proven_rnm, proven_steps

COST = ZCDP.within(Budget(1.0, 0.01))
BOUND, CLIP, STEPS = 1.0, 0.5, 2
ALL = frozenset(range(1, STEPS + 1))


def settings(at=None, clip=CLIP):
    return FrankWolfeSettings(
        radius=1.0,
        n_iter=STEPS,
        intercept=False,
        published=False,
        start="zero",
        clip=clip,
        screening=Screening(0.5, 0.5, lambda _n_iter: at or ALL, at is None),
    )


class Told:
    """Stands in for an accountant: gives the next answer of a script, and keeps what it saw."""

    def __init__(self, script):
        self._script = iter(script)
        self.seen = []

    def release(self, mechanism, values, *, purpose):
        self.seen.append((mechanism, np.array(values)))
        return next(self._script)


def follow(X, y, script, at=None, clip=CLIP, start=(0.0, 0.0)):
    """Run the shipped steps along a script; return what each mechanism was given, and the model."""
    told, design = Told(script), LatticeDesign.from_rows(X, y)
    choose, screen = proven_steps(settings(at, clip), told, design, COST, target_bound=BOUND)
    weights = frank_wolfe(
        design, np.array(start), radius=1.0, n_iter=STEPS, choose=choose, screen=screen
    )
    return told.seen, weights


def answers(d, at=None):
    """Return what a step and a screening can answer: a signed feature; a feature or nothing."""
    vertices = list(itertools.product(range(d), (1, -1)))
    if at is None:
        return vertices, list(range(d + 1))
    return vertices, [np.array(signs, float) for signs in itertools.product((-1, 1), repeat=d)]


def scripts(d, at=None):
    return itertools.product(*(answers(d, at) * STEPS))


def excess(mechanism, change):
    """Return how much of what the mechanism allows for a change uses: at most 1."""
    change = change * mechanism.unit
    if isinstance(mechanism, NoisyMax):
        used = np.abs(change).max() / mechanism.sensitivity
        return max(used, np.ptp(change) / mechanism.score_range)
    if change.size and "Gaussian" in mechanism.name:
        return np.linalg.norm(change) / mechanism.sensitivity
    return np.abs(change).max() / mechanism.sensitivity


def neighbours(rng, trial, d=2):
    n = trial % 4
    X = rng.choice([-1.0, 0.0, 1.0, 0.4], size=(n + 1, d))
    y = rng.choice([-BOUND, BOUND, 0.3], size=n + 1)
    return X, y


@pytest.mark.parametrize("at", [None, ALL], ids=["RNM", "ADP"])
def test_one_row_moves_no_release_by_more_than_it_was_calibrated_for(at):
    rng = np.random.default_rng(0)
    script = list(scripts(2, at))
    worst = np.zeros(2 * STEPS)
    for trial in range(300):
        X, y = neighbours(rng, trial)
        told, start = script[rng.integers(len(script))], rng.permutation([rng.choice([0, 1]), 0.0])
        more, _ = follow(X, y, told, at, start=start)
        less, _ = follow(X[:-1], y[:-1], told, at, start=start)
        for k, ((mechanism, with_row), (_, without)) in enumerate(zip(more, less, strict=True)):
            worst[k] = max(worst[k], excess(mechanism, with_row - without))
    assert (worst <= 1).all()
    assert (worst[::2] > 0.999).all()  # steps attain it: a residual beyond the clip, a cell of 1
    assert (worst[1::2] > 0.8).all()


@pytest.mark.parametrize("at", [None, ALL], ids=["RNM", "ADP"])
def test_the_row_of_the_lemma_attains_both_sensitivities_at_once(at):
    X, y = np.vstack((np.zeros((2, 2)), np.ones(2))), np.array([0.0, 0.0, -BOUND])
    nothing = np.ones(2) if at else 2
    told = [(0, -1), nothing] * STEPS  # from λe₁ to λe₁
    more, weights = follow(X, y, told, at, start=(1.0, 0.0))
    less, _ = follow(X[:-1], y[:-1], told, at, start=(1.0, 0.0))
    used = [excess(m, a - b) for (m, a), (_, b) in zip(more, less, strict=True)]
    assert weights[0] == pytest.approx(1)
    assert used == pytest.approx([1] * (2 * STEPS), rel=1e-6)


@pytest.mark.parametrize("at", [None, ALL], ids=["RNM", "ADP"])
@pytest.mark.parametrize("screened", [True, False])
def test_what_was_released_decides_what_is_screened(at, screened):
    X, y = np.eye(2), np.array([0.3, -BOUND])
    released = np.array([1.0, -1.0 if screened else 1.0]) if at else 2 - screened
    _, weights = follow(X, y, [(1, -1), released] * STEPS, at)
    assert (weights[1] == 0) == screened


def test_the_bound_of_screening_counts_two_roundings():
    """Equal rows as far as can be: where fractions of a unit add up, the bound is all but passed.

    Without the roundings it would be passed, by less than one unit in 2^30.
    """
    rule = RelaxedRule(0.7, 1.3)
    inputs, told = [], Told(itertools.repeat(2))
    for n in range(30):
        design = LatticeDesign.from_rows(np.ones((n, 2)), np.full(n, -1.3))
        screen = proven_rnm(told, design, COST, rule=rule)
        screen(design.at(np.array([0.7, 0.0]), scale=0.7), 1)
        mechanism, values = told.seen[-1]
        inputs.append(values)
    moved = int(np.abs(np.diff(inputs, axis=0)).max())
    unit = Fraction(mechanism.unit)
    kappa, bound = rule.kappa, Fraction(rule.residual_bound)
    exactly = 2 * bound + 2 * Fraction(rule.radius) / kappa + kappa * bound
    assert exactly * (1 + Fraction(1, 10**12)) < moved * unit <= Fraction(mechanism.sensitivity)


def test_the_rule_sees_residuals_as_they_are():
    """Two targets that a clip cannot tell apart: steps see one data set, screening sees two."""
    X = np.eye(2)
    near, far = (follow(X, np.array([size, 0.0]), [(0, -1), 2] * 2)[0] for size in (0.6, 1.0))
    np.testing.assert_array_equal(near[0][1], far[0][1])
    assert (near[1][1] != far[1][1]).any()


# --- the law of the whole, exactly ----------------------------------------------------------------


def chances(mechanism, values):
    """Return the probability of each answer: `answers` lists them in the same order."""
    if not isinstance(mechanism, NoisyMax):
        values = np.stack((values, -values), axis=1).ravel()
    logs = values * (mechanism.unit / mechanism.scale)
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def law(X, y, clip=CLIP):
    """Return the probability of every transcript of RNM-Screen, and the model it leads to."""
    found = {}
    choices = answers(X.shape[1]) * STEPS
    for script in scripts(X.shape[1]):
        seen, weights = follow(X, y, script, clip=clip)
        parts = (
            chances(*given)[options.index(answer)]
            for given, options, answer in zip(seen, choices, script, strict=True)
        )
        found[script] = (math.prod(parts), weights)
    return found


def test_two_steps_and_two_screenings_cost_no_more_rényi_divergence_than_is_booked():
    rng, worst, rho = np.random.default_rng(1), 0.0, float(COST)
    for trial in range(10):
        X, y = neighbours(rng, trial)
        p, q = (
            np.array([chance for chance, _ in law(*rows).values()])
            for rows in ((X, y), (X[:-1], y[:-1]))
        )
        assert p.sum() == pytest.approx(1)
        for a, b in ((p, q), (q, p)):
            for alpha in (1.01, 2, 8, 64):
                divergence = np.log(np.sum(a**alpha * b ** (1 - alpha))) / (alpha - 1)
                worst = max(worst, divergence / (alpha * rho))
    assert worst <= 1
    assert worst > 0.2


@pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning")
@pytest.mark.filterwarnings("ignore::dpscreen.WeakDeltaWarning")
def test_the_estimator_follows_this_law():
    """Chi-square over released models; false alarm 1e-6; a clip off by 1.5 is rejected."""
    X, y = np.array([[1.0, 0.5], [-0.5, 1.0], [0.3, -1.0]]), np.array([1.0, -1.0, 0.5])
    X, y = np.tile(X, (8, 1)), np.tile(y, 8)
    noise, runs = SeededNoise("law of the clipped estimator"), 2000
    model = RNMScreen(
        **{"radius": 1.0, "n_iter": STEPS, "epsilon": 1.0, "delta": 0.01, "clip": CLIP},
        **{"feature_bounds": (-1, 1), "target_bounds": (-BOUND, BOUND), "fit_intercept": False},
        **{"screening_share": 0.5, "random_state": noise},
    )
    seen = [_key(model.fit(X, y).coef_) for _ in range(runs)]

    def p_value(clip):
        expected: dict[bytes, float] = {}
        for chance, weights in law(X, y, clip).values():
            expected[_key(weights)] = expected.get(_key(weights), 0.0) + chance
        assert set(seen) <= set(expected)
        counts = np.array([seen.count(key) for key in expected])
        return stats.chisquare(counts, runs * np.array(list(expected.values()))).pvalue

    assert p_value(CLIP) > 1e-6
    assert p_value(CLIP * 1.5) < 1e-6


def _key(weights):
    return (np.round(weights, 9) + 0.0).tobytes()


# --- the estimators -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [RNMScreen, ADPScreen])
def test_a_clip_divides_the_noise_of_the_steps_and_not_that_of_screening(kind):
    X, y = np.eye(4), np.arange(4.0)
    public = {"radius": 3.0, "n_iter": 5, "epsilon": 2.0, "delta": 1e-6}
    public |= {"feature_bounds": (-10, 10), "target_bounds": (-100, 100)}
    plain, clipped, wide = (
        kind(**public, clip=clip).fit(X, y).privacy_ for clip in (math.inf, 1.03, 1e9)
    )
    ratio = plain.mechanisms[0].scale / clipped.mechanisms[0].scale
    assert ratio == pytest.approx((3 + 100) / 1.03)
    assert plain.mechanisms[1] == clipped.mechanisms[1]
    assert wide.mechanisms == plain.mechanisms
    with pytest.raises(ValueError, match="clip belongs to the proven calibration"):
        kind(**public, clip=1.0, calibration="published").fit(X, y)
