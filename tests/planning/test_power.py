"""Planning: the simulation, what it stands for, and what is said of it.

Every test is seeded, so none can fail by chance; tolerances are stated in standard errors.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import chi2_contingency
from sklearn.metrics import roc_auc_score

import dpscreen
from dpscreen.cli import compare
from dpscreen.planning import power as simulation
from dpscreen.planning.plan import setting_of
from dpscreen.planning.power import Contest, RoughNoise, Scale, Setting
from dpscreen.privacy import DiscreteGaussian, NoisyMax, SeededNoise, SignedNoisyMax
from dpscreen.solvers.family import BINOMIAL

SMALL = Setting(n_rows=2000, n_features=20, epsilon=1.0, delta=1e-6, n_effects=5)


@pytest.fixture(scope="module")
def expected():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return dpscreen.plan(2000, 20, 1, 1e-6, effects=[0.02, 0.1, 0.2, 0.4], repetitions=8)


# --- the simulation -------------------------------------------------------------------------------


def power_of(setting, effect=0.1, repetitions=12):
    (row,) = simulation.simulated_power(setting, [effect], repetitions=repetitions, seed="power")
    return row.power


def test_power_grows_with_rows_with_epsilon_and_with_the_effect(expected):
    few, many = (power_of(replace(SMALL, n_rows=n)) for n in (500, 5000))
    assert few + 0.1 < many
    little, much = (power_of(replace(SMALL, epsilon=epsilon)) for epsilon in (0.3, 5))
    assert little + 0.1 < much
    assert expected.rows[0].power + 0.3 < expected.rows[-1].power
    assert [row.quality for row in expected.rows] == sorted(row.quality for row in expected.rows)


def detection(fits):
    return simulation.detected(("private-lasso", 1.0, 0.1), fits)


def test_power_is_the_share_above_all_but_five_per_cent_of_the_null_features():
    others = np.arange(1.0, 101.0)
    assert simulation.critical_size(others) == 95.0
    assert np.mean(others > simulation.critical_size(others)) == simulation.FALSE_RATE
    assert simulation.critical_size(others[:19]) == 19.0  # none of so few may be above
    assert simulation.critical_size(np.array([])) == 0.0
    fits = [
        simulation.Scored(np.array([94.0, 95.0, 96.0, 0.0]), others, 100, 0.5, 1.0),
        simulation.Scored(np.array([97.0, 96.0, 99.0, 0.0]), others, 100, 0.5, 1.0),
    ]
    found = detection(fits)
    assert (found.power, found.false_positives, found.quality) == (0.5, 100.0, 0.5)


GRID_SIZES = (0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6)


def smallest(n_rows, epsilon, n_features=10, repetitions=8):
    found = dpscreen.plan(
        n_rows, n_features, epsilon, 1e-6, effects=GRID_SIZES[: 7 if n_features < 12 else 6],
        repetitions=repetitions,
    )  # fmt: skip
    return found.smallest_effect or math.inf


def test_more_budget_and_more_rows_never_detect_less():
    """300 rows, 10 features: 0.12 was told at ε = 1, where 69 % of null features enter, and 0.16
    at ε = 3, where 22 % do."""
    by_epsilon = [smallest(300, epsilon) for epsilon in (1, 3, 10)]
    assert by_epsilon == sorted(by_epsilon, reverse=True)
    assert by_epsilon[0] > 1.3 * by_epsilon[1]
    by_rows = [by_epsilon[0], smallest(1000, 1)]
    assert by_rows == sorted(by_rows, reverse=True)


def binary(n_rows=1500, d=8, epsilon=2.0, rate=0.3):
    return setting_of(n_rows, d, epsilon, 1e-6, rate=rate, family=BINOMIAL)


NEAR = {"power": 0.02, "quality": 0.02, "false_positives": 0.5}
"""How far thinned tables may be from whole ones, beside four standard errors."""


@pytest.mark.parametrize(
    ("setting", "sizes"),
    [
        (replace(SMALL, n_rows=8000, epsilon=4.0), [0.03, 0.2]),
        (replace(SMALL, n_rows=8000, epsilon=0.4), [0.05, 0.2]),  # residuals clipped tightly
        (binary(20_000, 8, 0.3), [0.4]),
    ],
)
def test_thinned_rows_agree_with_the_direct_simulation(setting, sizes, monkeypatch):
    direct = simulation.simulated_power(setting, sizes, repetitions=10, seed="direct")
    monkeypatch.setattr(simulation, "MOST_CELLS", 40_000)
    monkeypatch.setattr(simulation, "MOST_CELLS_CLIPPED", 40_000)
    assert Scale.of(setting.regime).thinning == 4
    thin = simulation.simulated_power(setting, sizes, repetitions=10, seed="thin")
    for one, other in zip(thin, direct, strict=True):
        for name, near in NEAR.items():
            error = math.hypot(*(getattr(row, f"{name}_se") for row in (one, other)))
            assert abs(getattr(one, name) - getattr(other, name)) <= near + 4 * error


def test_that_comparison_would_notice_rows_thinned_without_care(monkeypatch):
    """Its power: with moments left as those of few rows, small effects drown in sampling error."""
    monkeypatch.setattr(simulation, "MOST_CELLS", 10_000)
    setting = replace(SMALL, n_rows=50_000, epsilon=5.0)
    careful = simulation.simulated_power(setting, [0.02], repetitions=12, seed=0)[0]
    monkeypatch.setattr(simulation, "_with_moments_of_more", lambda X, *_: X)
    monkeypatch.setattr(simulation, "_less_correlated", lambda noise, *_: noise)
    careless = simulation.simulated_power(setting, [0.02], repetitions=12, seed=0)[0]
    assert careless.quality < careful.quality - 5 * math.hypot(
        careful.quality_se, careless.quality_se
    )


# --- binary outcomes ------------------------------------------------------------------------------


def test_auc_is_the_usual_one():
    rng, score = np.random.default_rng(0), BINOMIAL.simulation.score
    y, line = rng.random(300) < 0.3, rng.integers(0, 9, 300).astype(float)
    assert score(line, y.astype(float)) == pytest.approx(roc_auc_score(y, line))
    assert score(line, np.ones(300)) == 0.5


def test_more_budget_and_larger_effects_find_more():
    contest = Contest(binary(), ("private-logistic",), (0.2, 5.0), (0.02, 1.0))
    found = simulation.simulated(contest, 3, "binary")
    small, large = found[:2], found[2:]
    assert [one.epsilon for one in found] == [0.2, 0.2, 5.0, 5.0]
    assert large[1].power == 1.0 > small[0].power
    assert large[1].quality > small[1].quality
    assert all(one.quality < one.best_quality + 0.01 for one in found)


def test_all_methods_are_fitted_to_the_same_tables():
    setting = binary(800, 5)
    names = compare.NAMES["binomial"]
    found = simulation.simulated(Contest(setting, names, (2.0,), (0.8,)), 2, "same")
    assert [one.method for one in found] == list(names)
    assert len({one.best_quality for one in found}) == 1
    assert found[-1].epsilon is None


# --- reading the curve ----------------------------------------------------------------------------


def test_crossing_is_read_in_the_logarithm_of_a_monotone_curve():
    assert simulation.crossing([0.1, 0.4], [0.6, 1.0], power=0.8) == pytest.approx(0.2)
    assert simulation.crossing([0.1, 0.4], [0.8, 1.0], power=0.8) == 0.1
    assert simulation.crossing([0.1, 0.4], [0.1, 0.7], power=0.8) is None
    assert 4 < simulation.crossing([1, 2, 4, 8], [0.2, 0.75, 0.65, 1.0], power=0.8) < 8


# --- the inverse ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("power_at", "needed"),
    [
        (lambda n: 1 / (1 + 500 / n), pytest.approx(2000, rel=0.1)),
        (lambda _: 0.95, 20),
        (lambda _: 0.7, None),
    ],
)
def test_the_search_reads_off_where_a_known_power_is_reached(monkeypatch, power_at, needed):
    def simulated(setting, _effects, **_):
        return (SimpleNamespace(power=power_at(setting.n_rows)),)

    monkeypatch.setattr(simulation, "simulated_power", simulated)

    def at(rows):
        return replace(SMALL, n_features=4, n_effects=1, n_rows=math.ceil(rows))

    limits = {"low": 20.0, "high": 1e8, "power": 0.8, "seed": 0}
    assert simulation.search(at, 0.4, **limits) == needed


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_rows": 0}, "n_rows"),
        ({"n_rows": 10.5}, "n_rows"),
        ({"n_features": 0}, "n_features"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"delta": 1.5}, "delta"),
        ({"effects": []}, "effects"),
        ({"effects": [-0.1]}, "effects"),
        ({"effects": [0.5]}, "variance"),
        ({"n_effects": 21}, "n_effects"),
        ({"correlation": 1.0}, "correlation"),
        ({"looseness": 0.5}, "looseness"),
        ({"power": 1.0}, "power"),
        ({"repetitions": 1}, "repetitions"),
        ({"rate": 0.2}, "rate"),
        ({"rate": 1.0, "family": "binomial"}, "rate"),
        ({"family": "poisson"}, "family"),
    ],
)
def test_bad_input_is_refused_by_name(changed, message):
    arguments = {"n_rows": 1000, "n_features": 20, "epsilon": 1, "delta": 1e-6} | changed
    with pytest.raises((ValueError, TypeError), match=message):
        dpscreen.plan(**arguments)


def test_rough_noise_has_the_laws_of_the_exact_draws():
    """χ² of 4 000 draws each tells nothing apart, and a scale that is half as large again."""
    exact, rough = (kind("laws") for kind in (SeededNoise, RoughNoise))
    scores = np.array([3, 0, -2, 5])
    mechanisms = (
        (NoisyMax(1.0, 2.0, 4.0), scores),
        (SignedNoisyMax(1.0, 4.0), scores),
        (DiscreteGaussian(1.0, 1.5, 0.5), scores[:1]),
    )
    for mechanism, values in mechanisms:
        wider = replace(mechanism, scale=1.5 * mechanism.scale)
        want, same, other = (
            Counter(str(noise.answer(one, values, purpose="", account=None)) for _ in range(4000))
            for noise, one in ((exact, mechanism), (rough, mechanism), (rough, wider))
        )
        assert _alike(want, same) > 1e-3
        assert _alike(want, other) < 1e-6


def _alike(one: Counter, other: Counter) -> float:
    names = [name for name in one | other if one[name] + other[name] >= 20]
    return chi2_contingency([[counts[name] for name in names] for counts in (one, other)]).pvalue
