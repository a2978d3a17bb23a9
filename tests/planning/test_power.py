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
from dpscreen.planning.plan import Needed, Recommended
from dpscreen.planning.power import RoughNoise, Scale, Setting
from dpscreen.privacy import DiscreteGaussian, NoisyMax, SeededNoise, SignedNoisyMax

WHOLE = 10**9  # cells: no table of these tests is thinned to so many
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
    assert [row.r2 for row in expected.rows] == sorted(row.r2 for row in expected.rows)


def scored(share, *, others=(0.0,) * 19 + (1.0,), quality=0.0):
    """Return a fit that detects such a share of ten features, at a critical size of 0."""
    effects = np.where(np.arange(10) < round(10 * share), 2.0, 0.0)
    return simulation.Scored(effects, np.array(others), 3, quality)


def test_power_is_the_share_above_all_but_five_per_cent_of_the_null_features():
    others = np.arange(1.0, 101.0)
    assert simulation.critical_size(others) == 95.0
    assert np.mean(others > simulation.critical_size(others)) == simulation.FALSE_RATE
    assert simulation.critical_size(others[:19]) == 19.0  # none of so few may be above
    assert simulation.critical_size(np.array([])) == 0.0
    fits = [
        simulation.Scored(np.array([94.0, 95.0, 96.0, 0.0]), others, 100, 0.5),
        simulation.Scored(np.array([97.0, 96.0, 99.0, 0.0]), others, 100, 0.5),
    ]
    found = simulation.detection_of(fits)
    assert (found.power, found.entered, found.quality) == (0.5, 100.0, 0.5)


@pytest.mark.parametrize("share", [0.05, 0.3, 1.0])
def test_letting_all_features_in_buys_no_power(share):
    """Null coefficients as large as those of effects: 5 % are detected, however many enter."""
    rng = np.random.default_rng(0)
    fits = []
    for _ in range(200):
        sizes = np.abs(rng.normal(size=20)) * (rng.random(20) < share)
        fits.append(simulation.Scored(sizes[:5], sizes[5:], 15, 0.0))
    assert simulation.detection_of(fits).power == pytest.approx(0.05, abs=0.04)


def test_standard_errors_of_power_count_the_critical_size():
    """They agree with the spread over repeated simulations."""
    rng = np.random.default_rng(1)

    def simulated():
        sizes = np.abs(rng.normal(size=(20, 8))) + np.repeat([1.5, 0.0], 4)
        return simulation.detection_of([simulation.Scored(s[:4], s[4:], 4, 0.0) for s in sizes])

    found = [simulated() for _ in range(300)]
    spread = np.std([one.power for one in found])
    assert np.sqrt(np.mean([one.power_se**2 for one in found])) == pytest.approx(spread, rel=0.35)


GRID_SIZES = (0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6)


def smallest(n_rows, epsilon, n_features=10, repetitions=16):
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


@pytest.mark.slow
@pytest.mark.parametrize("n_features", [10, 20])
def test_power_never_falls_over_a_grid_of_budgets_and_rows(n_features):
    """5 % for the simulation: where sampling error alone is left, ε changes next to nothing."""
    grid = np.array(
        [
            [smallest(n, epsilon, n_features, 24) for epsilon in (0.3, 1, 2, 3, 5, 10, 30)]
            for n in (300, 1000, 3000)
        ]
    )
    assert (grid[:, 1:] <= 1.05 * grid[:, :-1]).all()
    assert (grid[1:] <= 1.05 * grid[:-1]).all()
    assert (grid[:, -1] < grid[:, 0]).all()


def test_the_definition_of_power_is_printed(expected):
    for told in (
        expected.finding,
        str(expected).replace("\n", " "),
        expected.to_dict()["power_means"],
    ):
        assert "larger in size than those of 95 % of the features without effect" in told
        assert "false-selection rate of 5 %" in told
    assert expected.to_dict()["false_selection_rate"] == 0.05


def test_a_limit_of_features_is_simulated_as_it_is_fitted():
    limited = dpscreen.plan(2000, 30, 1, 1e-6, effects=[0.3], repetitions=2, max_features=2)
    assert limited.setting.n_effects == 2
    assert limited.rows[0].false_positives <= 2
    assert limited.settings.n_iter == 4


def test_a_larger_effect_never_looks_harder_to_find(monkeypatch):
    """Means of a dip and its neighbour count tables, of which some sizes have more."""
    tables = {0.1: (2, 5), 0.2: (9, 9), 0.3: (3, 6)}
    seen = {
        effect: [scored(above / 10, quality=effect)] * count
        for effect, (count, above) in tables.items()
    }
    monkeypatch.setattr(simulation, "_measure", lambda *_: seen)
    rows = simulation.simulated_power(SMALL, list(seen), repetitions=2, seed=0)
    assert [row.power for row in rows] == pytest.approx([0.5, 0.825, 0.825])
    assert [row.r2 for row in rows] == pytest.approx([0.1, 0.2, 0.3])


def test_the_same_seed_gives_the_same_plan_and_another_does_not():
    again = [
        simulation.simulated_power(SMALL, [0.1], repetitions=3, seed=seed)
        for seed in ("a", "a", "b")
    ]
    assert again[0] == again[1] != again[2]


def test_the_simulated_target_has_variance_one_whatever_the_effect():
    setting = replace(SMALL, n_rows=20_000, correlation=0.5)
    table = simulation.simulated_table(
        setting, Scale.of(setting.regime, most_cells=WHOLE), "variance"
    )
    truth = np.zeros(20)
    truth[simulation.support(20, 5)] = 0.4 * (-1.0) ** np.arange(5)
    y = table.X @ truth + math.sqrt(1 - setting.explained(0.4)) * table.noise
    assert y.var() == pytest.approx(1, abs=5 * math.sqrt(2 / 20_000))
    assert setting.explained(0.4) == pytest.approx((table.X @ truth).var(), rel=0.05)


@pytest.mark.parametrize("clipped_tightly", [False, True])
def test_thinned_rows_agree_with_the_direct_simulation(clipped_tightly, monkeypatch):
    """4 standard errors, and .02 of power and R² and half a feature for the method."""
    monkeypatch.setattr(simulation, "MOST_CELLS", 40_000)
    monkeypatch.setattr(simulation, "MOST_CELLS_CLIPPED", 40_000)
    setting = replace(SMALL, n_rows=8000, epsilon=0.4 if clipped_tightly else 4.0)
    assert Scale.of(setting.regime).thinning == 4
    sizes = [0.05, 0.2] if clipped_tightly else [0.03, 0.2]
    thin = simulation.simulated_power(setting, sizes, repetitions=10, seed="thin")
    direct = simulation.simulated_power(
        setting, sizes, repetitions=10, seed="direct", most_cells=WHOLE
    )
    for one, other in zip(thin, direct, strict=True):
        assert abs(one.power - other.power) <= 0.02 + 4 * math.hypot(one.power_se, other.power_se)
        assert abs(one.r2 - other.r2) <= 0.02 + 4 * math.hypot(one.r2_se, other.r2_se)
        error = math.hypot(one.false_positives_se, other.false_positives_se)
        assert abs(one.false_positives - other.false_positives) <= 4 * error + 0.5


def test_that_comparison_would_notice_rows_thinned_without_care(monkeypatch):
    """Its power: with moments left as those of few rows, small effects drown in sampling error."""
    monkeypatch.setattr(simulation, "MOST_CELLS", 10_000)
    setting = replace(SMALL, n_rows=50_000, epsilon=5.0)
    careful = simulation.simulated_power(setting, [0.02], repetitions=12, seed=0)[0]
    monkeypatch.setattr(simulation, "_with_moments_of_more", lambda X, *_: X)
    monkeypatch.setattr(simulation, "_less_correlated", lambda noise, *_: noise)
    careless = simulation.simulated_power(setting, [0.02], repetitions=12, seed=0)[0]
    assert careless.r2 < careful.r2 - 5 * math.hypot(careful.r2_se, careless.r2_se)


def test_thinning_leaves_every_number_that_rules_rest_on():
    regime = Setting(10**6, 100, 1.0, 1e-6, 5).regime
    scale = Scale.of(regime)
    small = replace(regime, n_rows=scale.n_rows, rho=scale.rho)
    assert scale.n_rows < regime.n_rows
    for name in ("signal", "need"):
        assert getattr(small, name) == pytest.approx(getattr(regime, name))
    assert small.counts(20) == pytest.approx(regime.counts(20))


def test_few_features_stand_for_many_at_the_same_signal():
    regime = Setting(2000, 50_000, 1.0, 1e-6, 5).regime
    scale = Scale.of(regime)
    small = replace(regime, n_rows=scale.n_rows, n_features=scale.n_features, rho=scale.rho)
    assert scale.n_features == simulation.MOST_FEATURES
    assert small.signal == pytest.approx(regime.signal)


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_thinned_moments_stray_as_those_of_all_rows(correlation):
    rng = np.random.default_rng(3)
    X = simulation._normal_rows(1000, 20, correlation, rng)
    noise = rng.standard_normal(1000)
    law = simulation._law(np.arange(20), correlation)
    closer = simulation._with_moments_of_more(X, correlation, 100)
    assert closer.T @ closer / 1000 - law == pytest.approx((X.T @ X / 1000 - law) / 10, abs=1e-9)
    quieter = simulation._less_correlated(noise, closer, 100)
    assert closer.T @ quieter == pytest.approx(closer.T @ noise / 10, abs=1e-9)
    assert quieter.var() == pytest.approx(1, abs=0.2)


def test_bounds_that_are_too_wide_are_part_of_the_plan():
    tight, loose = (
        simulation.simulated_power(replace(SMALL, looseness=width), [0.4], repetitions=6, seed=1)[0]
        for width in (1.0, 16.0)
    )
    assert 0.5 < loose.r2 <= tight.r2 + 0.01


# --- reading the curve ----------------------------------------------------------------------------


def test_crossing_is_read_in_the_logarithm():
    assert simulation.crossing([0.1, 0.4], [0.6, 1.0], power=0.8) == pytest.approx(0.2)
    assert simulation.crossing([0.1, 0.4], [0.8, 1.0], power=0.8) == 0.1
    assert simulation.crossing([0.1, 0.4], [0.1, 0.7], power=0.8) is None


def test_crossing_smooths_a_curve_that_is_not_monotone():
    found = simulation.crossing([1, 2, 4, 8], [0.2, 0.75, 0.65, 1.0], power=0.8)
    assert 4 < found < 8


# --- what is said ---------------------------------------------------------------------------------


def test_the_plan_as_data_frame_words_and_dictionary(expected):
    frame = expected.to_frame()
    assert list(frame["effect"]) == [0.02, 0.1, 0.2, 0.4]
    assert ((frame["power"] >= 0) & (frame["power"] <= 1) & (frame["power_se"] > 0)).all()
    assert (frame["r2"] <= frame["best_r2"] + 3 * frame["r2_se"]).all()
    assert 0.02 < expected.smallest_effect < 0.4
    told = str(expected)
    assert f"{expected.smallest_effect:.2g}" in told
    assert "2000 rows, 20 features" in told
    assert expected.to_dict()["setting"]["n_rows"] == 2000
    assert max(len(line) for line in told.splitlines()) <= 100


@pytest.mark.parametrize(
    ("rows", "epsilon", "told"),
    [
        (200, 1, "Too little signal: do not expect a useful model"),
        (500, 1, "Little signal"),
        (2000, 1, "A fair signal"),
        (20_000, 1, "A strong signal"),
        (20_000, 0.01, "do not expect a useful model"),
    ],
)
def test_the_regime_in_words(rows, epsilon, told):
    short = dpscreen.plan(rows, 20, epsilon, 1e-6, effects=[0.4], repetitions=2)
    assert told in short.words
    assert short.useful == ("useful model" not in told)
    assert short.signal == pytest.approx(rows * math.sqrt(2 * short.rho) / math.log(40))


def test_words_about_delta_bounds_and_chance():
    weak = dpscreen.plan(500, 200, 1, 0.01, effects=[0.1], repetitions=2)
    assert "weak promise" in weak.words
    assert "The model itself selects up to" in weak.finding
    assert "No effect up to 0.1" in weak.finding
    wide = dpscreen.plan(300, 200, 1, 1e-6, effects=[0.1], repetitions=2)
    assert "give bounds that fit" in wide.words
    full = dpscreen.plan(200, 2, 1, 1e-6, effects=[0.1], n_effects=2, repetitions=2)
    assert "All features have an effect here" in full.finding
    wide = dpscreen.plan(10**6, 10**4, 1, 1e-6, effects=[0.1], repetitions=2)
    assert "which stand for all" in str(wide)


def test_recommended_settings_are_those_of_a_fit():
    rng = np.random.default_rng(0)
    model = dpscreen.PrivateLasso(
        epsilon=1, delta=1e-6, n_rows=2000, feature_bounds=(-3, 3), target_bounds=(-5, 5)
    ).fit(rng.normal(size=(2000, 20)), rng.normal(size=2000))
    chosen = Recommended.of(SMALL.regime)
    assert (chosen.n_iter, chosen.solver) == (model.n_iter_, model.solver_)
    assert chosen.standardize == model.standardize


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_the_plot_is_a_picture(expected, tmp_path, suffix, start):
    path = tmp_path / f"plan.{suffix}"
    expected.plot(path)
    assert path.read_bytes().startswith(start)
    assert path.stat().st_size > 5000


def test_default_effects_start_where_nothing_is_found_and_end_where_all_is():
    for n_rows in (50, 5000, 10**7):
        setting = replace(SMALL, n_rows=n_rows)
        sizes = simulation.default_effects(setting)
        assert sizes == tuple(sorted(sizes))
        assert 3 <= len(sizes) <= 10
        assert setting.explained(sizes[-1]) <= simulation.MOST_EXPLAINED


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


@pytest.mark.slow
def test_more_rows_need_less_epsilon():
    few, many = (
        dpscreen.plan_for(0.3, n_features=10, delta=1e-6, n_rows=n).value for n in (300, 1200)
    )
    assert 0.01 < many < few / 2


def test_what_no_epsilon_can_find(monkeypatch):
    monkeypatch.setattr(simulation, "affordable_repetitions", lambda *_, **__: 6)
    hidden = dpscreen.plan_for(0.02, n_features=10, delta=1e-6, n_rows=100)
    assert hidden.value is None
    assert "100 rows are too few" in str(hidden)


def answered(power_at, low=20.0, high=1e8):
    """Search where power is a known function of the rows."""

    def simulated(setting, _effects, **_):
        return (SimpleNamespace(power=power_at(setting.n_rows)),)

    setting = replace(SMALL, n_features=4, n_effects=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation, "simulated_power", simulated)
        at = simulation.with_amount(setting, "n_rows")
        return simulation.search(at, 0.4, low=low, high=high, power=0.8, seed=0)


def logistic(rows, middle):
    return 1 / (1 + middle / rows)


def test_the_search_reads_off_where_the_power_is_reached():
    assert answered(lambda n: logistic(n, 500)) == pytest.approx(2000, rel=0.1)
    assert answered(lambda _: 0.95) == 20
    assert answered(lambda _: 0.7) is None


@pytest.mark.slow
def test_few_features_that_all_enter_need_more_rows_not_none():
    needed = dpscreen.plan_for(
        0.4, n_features=4, n_effects=1, delta=1e-6, epsilon=1.0, random_state=3
    )
    assert 200 < needed.value < 1200


def test_words_of_the_inverse():
    def told(name, value):
        searched = (20.0, 1e8) if name == "n_rows" else (0.01, 50.0)
        return str(Needed(name, value, searched, 0.1, 0.8, SMALL))

    assert "About 2700 rows" in told("n_rows", 2612.3)
    assert "Epsilon of about 0.51" in told("epsilon", 0.5087)
    assert "20 rows, or less" in told("n_rows", 20.0)
    assert "Epsilon of 0.01, or less" in told("epsilon", 0.01)
    assert "fewer features" in told("n_rows", None)


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "told"),
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
    ],
)
def test_bad_input_is_refused_by_name(changed, told):
    arguments = {"n_rows": 1000, "n_features": 20, "epsilon": 1, "delta": 1e-6} | changed
    with pytest.raises((ValueError, TypeError), match=told):
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
