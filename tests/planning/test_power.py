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

import dpscreen
from dpscreen.planning import power as simulation
from dpscreen.planning.plan import Recommended
from dpscreen.planning.power import RoughNoise, Scale
from dpscreen.planning.setting import MOST_EXPLAINED, MOST_FEATURES, Setting, law, normal_rows
from dpscreen.privacy import DiscreteGaussian, NoisyMax, SeededNoise, SignedNoisyMax

FEW = Setting(n_rows=100, n_features=10, epsilon=1.0, delta=1e-6)
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


def test_no_standard_error_is_zero_where_few_tables_are_alike():
    fits = [simulation.Scored(np.array([2.0]), np.zeros(15), 0, 0.0, 1.0)] * 4
    found = detection(fits)
    assert found.false_positives_se == pytest.approx(15 * math.sqrt(1 / 62 * 61 / 62 / 60))
    assert found.power_se > 0


def scored(share, *, others=(0.0,) * 19 + (1.0,), quality=0.0):
    """Return a fit that detects such a share of ten features, at a critical size of 0."""
    effects = np.where(np.arange(10) < round(10 * share), 2.0, 0.0)
    return simulation.Scored(effects, np.array(others), 3, quality, 1.0)


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


def test_standard_errors_of_power_count_the_critical_size():
    """They agree with the spread over repeated simulations."""
    rng = np.random.default_rng(1)

    def simulated():
        sizes = np.abs(rng.normal(size=(20, 8))) + np.repeat([1.5, 0.0], 4)
        return detection([simulation.Scored(s[:4], s[4:], 4, 0.0, 1.0) for s in sizes])

    found = [simulated() for _ in range(300)]
    spread = np.std([one.power for one in found])
    assert np.sqrt(np.mean([one.power_se**2 for one in found])) == pytest.approx(spread, rel=0.35)


def smallest(n_rows, epsilon):
    sizes = (0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6)
    found = dpscreen.plan(n_rows, 10, epsilon, 1e-6, effects=sizes, repetitions=8)
    return found.smallest_effect or math.inf


def test_more_budget_and_more_rows_never_detect_less():
    """300 rows, 10 features: 0.12 was told at ε = 1, where 69 % of null features enter, and 0.16
    at ε = 3, where 22 % do."""
    by_epsilon = [smallest(300, epsilon) for epsilon in (1, 3, 10)]
    assert by_epsilon == sorted(by_epsilon, reverse=True)
    assert by_epsilon[0] > 1.3 * by_epsilon[1]
    by_rows = [by_epsilon[0], smallest(1000, 1)]
    assert by_rows == sorted(by_rows, reverse=True)


def test_a_limit_of_features_is_simulated_as_it_is_fitted():
    limited = dpscreen.plan(2000, 30, 1, 1e-6, effects=[0.3], repetitions=2, max_features=2)
    assert limited.setting.n_effects == 2
    assert limited.rows[0].false_positives <= 2


def test_a_larger_effect_never_looks_harder_to_find():
    """Means of a dip and its neighbour count tables, of which some sizes have more."""
    tables = {0.1: (2, 5), 0.2: (9, 9), 0.3: (3, 6)}
    seen = {
        ("private-lasso", 1.0, effect): [scored(above / 10, quality=effect)] * count
        for effect, (count, above) in tables.items()
    }
    rows = simulation.power_rows(seen)
    assert [row.power for row in rows] == pytest.approx([0.5, 0.825, 0.825])
    assert [row.quality for row in rows] == pytest.approx([0.1, 0.2, 0.3])


def test_the_simulated_target_has_variance_one_whatever_the_effect():
    setting = replace(SMALL, n_rows=20_000, correlation=0.5)
    table = simulation.simulated_table(setting, Scale.of(setting.regime), "variance")
    assert table.outcomes(0.4).var() == pytest.approx(1, abs=5 * math.sqrt(2 / 20_000))
    predictors = table.X @ table.truth(0.4)[0]
    assert setting.explained(0.4) == pytest.approx(predictors.var(), rel=0.05)


def binary(n_rows, epsilon=2.0, rate=0.3):
    return Setting(n_rows, 8, epsilon, 1e-6, rate=rate, family="binomial")


NEAR = {"power": 0.02, "quality": 0.02, "false_positives": 0.5}
"""How far thinned tables may be from whole ones, beside four standard errors."""


@pytest.mark.parametrize(
    ("setting", "sizes"),
    [
        (replace(SMALL, n_rows=8000, epsilon=4.0), [0.03, 0.2]),
        (replace(SMALL, n_rows=8000, epsilon=0.4), [0.05, 0.2]),  # residuals clipped tightly
        (binary(20_000, 0.3), [0.4]),
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


@pytest.mark.parametrize(("n_rows", "n_features"), [(10**6, 100), (2000, 50_000)])
def test_what_is_smaller_leaves_every_number_that_rules_rest_on(n_rows, n_features):
    regime = Setting(n_rows, n_features, 1.0, 1e-6, 5).regime
    scale = Scale.of(regime)
    small = replace(regime, n_rows=scale.n_rows, n_features=scale.n_features, rho=scale.rho(regime))
    assert small.signal == pytest.approx(regime.signal)
    assert scale.n_features == min(n_features, MOST_FEATURES)
    if n_features < MOST_FEATURES:
        assert scale.n_rows < regime.n_rows
        assert small.need == pytest.approx(regime.need)
        assert small.counts(20) == pytest.approx(regime.counts(20))


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_thinned_moments_stray_as_those_of_all_rows(correlation):
    rng = np.random.default_rng(3)
    X = normal_rows(1000, 20, correlation, rng)
    noise = rng.standard_normal(1000)
    expected = law(np.arange(20), correlation)
    closer = simulation._with_moments_of_more(X, correlation, 100)
    wanted = expected + (X.T @ X / 1000 - expected) / 10
    assert closer.T @ closer / 1000 == pytest.approx(wanted, abs=1e-9)
    quieter = simulation._less_correlated(noise, closer, 100)
    assert closer.T @ quieter == pytest.approx(closer.T @ noise / 10, abs=1e-9)
    assert quieter.var() == pytest.approx(1, abs=0.2)


def test_bounds_that_are_too_wide_are_part_of_the_plan():
    tight, loose = (
        simulation.simulated_power(replace(SMALL, looseness=width), [0.4], repetitions=6, seed=1)[0]
        for width in (1.0, 16.0)
    )
    assert 0.5 < loose.quality <= tight.quality + 0.01


# --- binary outcomes ------------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "effect"), [(0.05, 0.2), (0.5, 2.0), (0.9, 1.0)])
def test_outcomes_are_as_common_as_supposed(rate, effect):
    """5 standard deviations of a share: one false alarm in 10^6."""
    setting = binary(40_000, rate=rate)
    table = simulation.simulated_table(setting, Scale.of(setting.regime), "share")
    share = table.outcomes(effect).mean()
    assert abs(share - rate) < 5 * math.sqrt(rate * (1 - rate) / 40_000)


def test_a_plan_of_binary_outcomes():
    given = {"effects": [0.02, 0.9], "repetitions": 3, "rate": 0.3, "family": "binomial"}
    plan = dpscreen.plan(900, 4, 3, 1e-6, **given)
    assert "900 rows, 30% yes, 4 features" in str(plan)
    assert "held-out AUC" in str(plan)
    assert "log-odds for one standard deviation" in plan.finding
    assert "0.0 ± 0.0" not in str(plan)
    assert {"auc", "auc_se", "best_auc"} <= set(plan.to_frame())
    assert plan.settings is None


# --- reading the curve ----------------------------------------------------------------------------


def test_crossing_is_read_in_the_logarithm_of_a_monotone_curve():
    assert simulation.crossing([0.1, 0.4], [0.6, 1.0], power=0.8) == pytest.approx(0.2)
    assert simulation.crossing([0.1, 0.4], [0.8, 1.0], power=0.8) == 0.1
    assert simulation.crossing([0.1, 0.4], [0.1, 0.7], power=0.8) is None
    assert 4 < simulation.crossing([1, 2, 4, 8], [0.2, 0.75, 0.65, 1.0], power=0.8) < 8


# --- what is said ---------------------------------------------------------------------------------


def test_the_plan_as_data_frame_words_and_dictionary(expected):
    frame = expected.to_frame()
    assert list(frame["effect"]) == [0.02, 0.1, 0.2, 0.4]
    assert ((frame["power"] >= 0) & (frame["power"] <= 1) & (frame["power_se"] > 0)).all()
    assert (frame["r2"] <= frame["best_r2"] + 3 * frame["r2_se"]).all()
    assert 0.02 < expected.smallest_effect < 0.4
    message = str(expected)
    assert f"{expected.smallest_effect:.2g}" in message
    assert "2000 rows, 20 features" in message
    assert expected.to_dict()["setting"]["n_rows"] == 2000
    assert max(len(line) for line in message.splitlines()) <= 100


@pytest.mark.parametrize(
    ("public", "words"),
    [
        ((200, 20, 1, 1e-6), "Too little signal: do not expect a useful model"),
        ((20_000, 20, 1, 1e-6), "A strong signal"),
        ((500, 200, 1, 0.01), "protects little"),
        ((500, 200, 1, 0.01), "No effect up to 0.1"),
        ((300, 200, 1, 1e-6), "declare close bounds"),
        ((2000, 1, 1, 1e-6), "All features have an effect here"),
        ((10**6, 10**4, 1, 1e-6), "which stand for all"),
    ],
)
def test_the_plan_in_words(public, words):
    short = dpscreen.plan(*public, effects=[0.1], repetitions=2)
    assert words in " ".join(str(short).split())
    assert short.useful == ("do not expect a useful model" not in short.words)
    wanted = public[0] * math.sqrt(2 * short.rho) / math.log(2 * public[1])
    assert short.signal == pytest.approx(wanted)


def test_recommended_settings_are_those_of_a_fit():
    rng = np.random.default_rng(0)
    model = dpscreen.PrivateLasso(
        epsilon=1, delta=1e-6, n_rows=2000, feature_bounds=(-3, 3), target_bounds=(-5, 5)
    ).fit(rng.normal(size=(2000, 20)), rng.normal(size=2000))
    chosen = Recommended.of(SMALL.regime)
    assert (chosen.n_iter, chosen.solver) == (model.n_iter_, model.solver_)
    assert chosen.standardize == model.standardize


def test_default_effects_start_where_nothing_is_found_and_end_where_all_is():
    for n_rows in (50, 5000, 10**7):
        setting = replace(SMALL, n_rows=n_rows)
        sizes = setting.usual_effects
        assert sizes == tuple(sorted(sizes))
        assert 3 <= len(sizes) <= 10
        assert setting.explained(sizes[-1]) <= MOST_EXPLAINED


@pytest.mark.parametrize(
    "asked",
    [(2, 1, 1e-3), (50, 1, 1.0), (30, 400, 0.5), (10**7, 5, 1.0), (200, 10**5, 1.0)],
)
def test_strange_tables_are_planned_too(asked):
    short = dpscreen.plan(*asked, 1e-8, effects=[0.05], repetitions=2)
    assert all(math.isfinite(value) for value in short.to_frame().to_numpy().ravel())


# --- the inverse ----------------------------------------------------------------------------------


def test_the_inverse_finds_rows_that_have_the_power():
    needed = dpscreen.plan_for(0.2, n_features=20, delta=1e-6, epsilon=1)
    assert needed.name == "n_rows"
    at = replace(SMALL, n_rows=math.ceil(needed.value))
    assert power_of(replace(at, n_rows=at.n_rows * 3 // 4), 0.2, 20) < 0.85
    assert power_of(replace(at, n_rows=at.n_rows * 4 // 3), 0.2, 20) > 0.75
    assert "rows are needed" in str(needed)
    assert "100 rows are too few" in str(replace(needed, name="epsilon", value=None, setting=FEW))


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
        ({"family": "gamma"}, "family"),
    ],
)
def test_bad_input_is_refused_by_name(changed, message):
    arguments = {"n_rows": 1000, "n_features": 20, "epsilon": 1, "delta": 1e-6} | changed
    with pytest.raises((ValueError, TypeError), match=message):
        dpscreen.plan(**arguments)


@pytest.mark.parametrize("given", [{}, {"n_rows": 100, "epsilon": 1}])
def test_the_inverse_wants_one_of_rows_and_epsilon(given):
    with pytest.raises(ValueError, match="one of them"):
        dpscreen.plan_for(0.1, n_features=10, delta=1e-6, **given)


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
