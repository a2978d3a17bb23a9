"""What a private fit releases, what it books, and that it is what the analysis speaks of."""

from __future__ import annotations

import numpy as np
import pytest
from enumerated_laws import counted, divergence, law_of_paths, neighbours, p_value
from estimator_settings import PUBLIC
from hypothesis import given, settings
from hypothesis import strategies as st

from dpscreen import (
    ADPScreen,
    DPFrankWolfe,
    PublishedCalibrationWarning,
    RNMScreen,
    SeededNoiseWarning,
)
from dpscreen.privacy import ZCDP, Budget, SeededNoise
from dpscreen.rows.lattice import LatticeDesign
from dpscreen.solvers.frank_wolfe import vertex_at, vertex_scores
from dpscreen.solvers.rules import Regime, n_steps

# --- what is promised -----------------------------------------------------------------------------


@settings(max_examples=40)
@given(
    n_iter=st.integers(1, 60),
    epsilon=st.floats(0.01, 20),
    share=st.floats(0.001, 0.999),
    screen_at=st.one_of(st.just("all"), st.just("last"), st.integers(1, 4)),
)
def test_any_split_stays_within_the_budget(n_iter, epsilon, share, screen_at):
    X, y = np.eye(4), np.arange(4.0)
    setting = PUBLIC | {"n_iter": n_iter, "epsilon": epsilon}
    for kind, extra in ((RNMScreen, {}), (ADPScreen, {"screen_at": screen_at})):
        if isinstance(screen_at, int) and screen_at > n_iter:
            continue
        model = kind(**setting, screening_share=share, **extra).fit(X, y)
        limit = ZCDP.within(Budget(epsilon, PUBLIC["delta"]))
        assert model.privacy_.rho <= float(limit)
        assert model.privacy_.rho >= float(limit) * (1 - 1e-9)


def test_published_noise_is_the_papers(rows):
    X, y = rows
    n, setting = len(X), PUBLIC | {"epsilon": 5.0, "delta": 1 / 1000, "n_iter": 7}
    model = RNMScreen(**setting, calibration="published").fit(X, y)
    step, screening = model.privacy_.mechanisms
    lam, T = setting["radius"], 7
    assert step.scale == pytest.approx(
        lam * np.sqrt(8 * T * np.log(1 / 0.00075)) / (n * 4.9), rel=1e-12
    )
    per_step = 0.1 / np.sqrt(8 * T * np.log(1 / 0.00025))
    bound = (2 * lam + 2 * lam**2 + 2 * lam * (1 + lam)) / n
    assert screening.scale == pytest.approx(bound / per_step, rel=1e-12)
    assert (step.count, screening.count) == (7, 7)
    assert model.privacy_.rho is None
    assert not model.privacy_.holds
    assert "NOT PRIVATE" in str(model.privacy_)


@pytest.mark.parametrize(
    ("screen_at", "count"), [("all", 6), ("last", 1), (2, 3), (4, 1), ([1, 5], 2)]
)
def test_adp_screens_when_told_to(rows, screen_at, count):
    X, y = rows
    setting = PUBLIC | {"n_iter": 6, "epsilon": 5.0}
    model = ADPScreen(**setting, screen_at=screen_at, calibration="published").fit(X, y)
    screening = model.privacy_.mechanisms[1]
    assert screening.count == count
    lam, d, n = setting["radius"], X.shape[1], len(X)
    delta = 0.5 * setting["delta"] / (count + 1)
    epsilon = 2.5 / (2 * np.sqrt(2 * count * np.log(1 / delta)))
    bound = np.sqrt(d) * 4 * lam * (1 + lam) / n
    sigma = np.sqrt(2 * bound**2 * np.log(1.25 / delta) / epsilon**2)
    assert screening.scale == pytest.approx(sigma, rel=1e-12)


@pytest.mark.parametrize(
    ("kind", "share", "delta_share"), [(RNMScreen, 0.02, 0.25), (ADPScreen, 0.5, 0.5)]
)
def test_the_published_defaults_are_the_papers(rows, kind, share, delta_share):
    """No intercept, T = 1000, a random start, and the splits of Table 1 and Appendix C."""
    X, y = rows
    public = {name: one for name, one in PUBLIC.items() if name not in ("radius", "n_iter")}
    model = kind(**public, calibration="published").fit(X, y)
    assert not model._fits_intercept
    assert model.intercept_ == pytest.approx(-model.coef_ @ np.zeros(X.shape[1]))
    step, screening = model.privacy_.mechanisms
    assert (step.count, screening.count, model.n_iter_) == (1000, 1000, 1000)
    lam, T, n = 100.0, 1000, len(X)  # half the width of the target's bounds
    epsilon, delta = public["epsilon"], public["delta"]
    spent = epsilon * (1 - share), delta * (1 - delta_share)
    scale = lam * np.sqrt(8 * T * np.log(1 / spent[1])) / (n * spent[0])
    assert step.scale == pytest.approx(scale, rel=1e-9)
    assert model.screened_.shape[1] == 2
    asked = dict(screening_share=share, screening_delta_share=delta_share, screen_at="all")
    told = kind(**public, **asked, calibration="published", radius=100.0, n_iter=1000)
    assert told.fit(X, y).privacy_.mechanisms == model.privacy_.mechanisms


def test_a_proven_fit_sets_itself_from_bounds_and_a_noisy_count(private_class, rows):
    """The count is booked like any release, and all of the budget is spent."""
    X, y = rows
    public = {name: one for name, one in PUBLIC.items() if name not in ("radius", "n_iter")}
    model = private_class(**public).fit(X, y)
    purposes = [record.purpose for record in model.privacy_.mechanisms]
    assert purposes[0] == "the number of rows"
    assert model.n_iter_ == n_steps(Regime(model.n_rows_, X.shape[1], model.privacy_.rho))
    step = next(one for one in model.privacy_.mechanisms if one.purpose == "Frank-Wolfe step")
    assert step.sensitivity == pytest.approx(0.2 * 100)  # a tenth of the target's width
    limit = float(ZCDP.within(Budget(public["epsilon"], public["delta"])))
    assert limit * (1 - 1e-9) <= model.privacy_.rho <= limit
    declared = private_class(**public, n_rows=500).fit(X, y)
    assert declared.n_rows_ == 500
    assert "n_rows, 500" in str(declared.privacy_)
    assert "the number of rows" not in [one.purpose for one in declared.privacy_.mechanisms]
    fixed = private_class(**public, n_iter=4).fit(X, y)
    assert not hasattr(fixed, "n_rows_")


def test_the_steps_follow_the_noisy_count_and_not_the_rows():
    """T is a function of what was released; with the true number it would often be another."""
    X = np.zeros((3000, 5))
    public = {"epsilon": 0.5, "delta": 1e-6, "feature_bounds": (-1, 1), "target_bounds": (-1, 1)}
    rho, others = float(ZCDP.within(Budget(0.5, 1e-6))), 0
    for seed in range(8):
        model = DPFrankWolfe(**public, random_state=f"noisy count {seed}").fit(X, X[:, 0])
        assert model.n_iter_ == n_steps(Regime(model.n_rows_, 5, rho))
        others += model.n_iter_ != n_steps(Regime(3000, 5, rho))
    assert others >= 2


@pytest.mark.parametrize("kind", [DPFrankWolfe, RNMScreen, ADPScreen])
@pytest.mark.parametrize("intercept", [True, False])
def test_path_and_screened_features_lead_to_the_released_model(rows, kind, intercept):
    """Replayed from zero, the released steps and screenings give the released coefficients."""
    X, y = rows
    setting = PUBLIC | {"n_iter": 30, "epsilon": 50.0, "fit_intercept": intercept}
    when = {} if kind is DPFrankWolfe else {"screen_at": 3}
    model = kind(**setting, **when, random_state=3).fit(X, y)
    radius, path = setting["radius"], model.path_
    weights, screened = np.zeros(X.shape[1] + intercept), model.screened_
    assert {int(t) % 3 for t in screened[:, 0]} <= {0}
    for t, (feature, sign) in enumerate(zip(path.features, path.signs, strict=True), start=1):
        step = 2 / (t + 2)
        weights *= 1 - step
        weights[feature] += step * radius * sign
        weights[screened[screened[:, 0] == t, 1]] = 0.0
    np.testing.assert_allclose(model.coef_, weights[: X.shape[1]] / 10, atol=1e-9)
    assert model.density_ == np.mean(model.coef_ != 0)
    assert len(path) == model.n_iter_ == 30
    if kind is DPFrankWolfe:
        assert screened.size == 0
        np.testing.assert_allclose(path.weights(len(weights)), weights, atol=1e-9)


@pytest.mark.parametrize(("screen_at", "count"), [("all", 6), ("last", 1), (2, 3), ([1, 5], 2)])
def test_rnm_screens_when_told_to_and_pays_for_no_more(rows, screen_at, count):
    model = RNMScreen(**PUBLIC | {"n_iter": 6}, screen_at=screen_at).fit(*rows)
    assert model.privacy_.mechanisms[1].count == count
    limit = float(ZCDP.within(Budget(PUBLIC["epsilon"], PUBLIC["delta"])))
    assert limit * (1 - 1e-9) <= model.privacy_.rho <= limit


def test_warnings_name_the_errata_and_the_seed(private_class, rows):
    with pytest.warns(PublishedCalibrationWarning, match=r"does not hold \(errata E1") as told:
        private_class(**PUBLIC, calibration="published").fit(*rows)
    assert told[0].filename == __file__
    with pytest.warns(SeededNoiseWarning, match="not private") as told:
        seeded = private_class(**PUBLIC, random_state=1).fit(*rows)
    assert told[0].filename == __file__
    assert not seeded.privacy_.holds
    assert not seeded.privacy_.secure_noise


# --- what is released -----------------------------------------------------------------------------


def test_noise_is_fresh_unless_seeded(private_class, rows):
    setting = PUBLIC | {"n_iter": 12}
    models = {private_class(**setting).fit(*rows).coef_.tobytes() for _ in range(40)}
    assert len(models) > 1


def test_generators_are_accepted_and_advance(rows):
    for generator in (np.random.default_rng(1), np.random.RandomState(1)):
        model = RNMScreen(**PUBLIC | {"n_iter": 12}, random_state=generator)
        assert (model.fit(*rows).coef_ != model.fit(*rows).coef_).any()


# --- units ----------------------------------------------------------------------------------------


@given(scale=st.floats(1e-3, 1e3), shift=st.floats(-1e3, 1e3), target_shift=st.floats(-100, 100))
def test_units_do_not_matter(scale, shift, target_shift):
    """The same data in other units, with bounds to match, gives the same predictions."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, size=(50, 3)), rng.uniform(-2, 2, size=50)
    setting = PUBLIC | {"random_state": 4, "n_iter": 10}
    plain = DPFrankWolfe(**setting | {"feature_bounds": (-1, 1), "target_bounds": (-2, 2)})
    moved = DPFrankWolfe(
        **setting
        | {
            "feature_bounds": (shift - scale, shift + scale),
            "target_bounds": (target_shift - 2, target_shift + 2),
        }
    )
    expected = plain.fit(X, y).predict(X) + target_shift
    found = moved.fit(shift + scale * X, y + target_shift).predict(shift + scale * X)
    np.testing.assert_allclose(found, expected, atol=1e-6 * (1 + abs(shift) / scale))


def test_predictions_stay_within_the_radius_of_the_centre(private_class):
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 50, size=(200, 4))
    setting = PUBLIC | {"feature_bounds": (0, 50), "target_bounds": (10, 30), "radius": 2.5}
    for intercept in (True, False):
        model = private_class(**setting, fit_intercept=intercept).fit(X, X[:, 0])
        assert np.abs(model.predict(X) - 20).max() <= 2.5 * (1 + 1e-9)


def test_values_outside_the_bounds_are_clipped(private_class, rows):
    X, y = rows
    setting = PUBLIC | {"feature_bounds": (-0.5, 0.5), "target_bounds": (-1, 1), "random_state": 2}
    wild = private_class(**setting).fit(X, y)
    tame = private_class(**setting).fit(np.clip(X, -0.5, 0.5), np.clip(y, -1, 1))
    np.testing.assert_array_equal(wild.coef_, tame.coef_)


def test_gram_and_dense_forms_choose_alike(private_class, rows, monkeypatch):
    import dpscreen.models.frank_wolfe as home

    X, y = rows
    setting = PUBLIC | {"n_iter": 40, "random_state": 8, "calibration": "published"}
    folded = private_class(**setting).fit(X, y)
    monkeypatch.setattr(home, "gram_pays", lambda *_, **__: False)
    dense = private_class(**setting).fit(X, y)
    np.testing.assert_allclose(folded.coef_, dense.coef_, atol=1e-12)


def test_proven_fits_from_a_random_start_stay_on_the_lattice(private_class, rows):
    model = private_class(**PUBLIC, start="random", random_state=2).fit(*rows)
    assert model.privacy_.arithmetic.startswith("exact")
    assert np.abs(model.coef_).sum() * 10 <= PUBLIC["radius"] * (1 + 1e-9)


# --- the guarantee, end to end on data small enough to enumerate ----------------------------------

SMALL = {
    "radius": 1.0,
    "n_iter": 2,
    "epsilon": 1.0,
    "delta": 0.01,
    "feature_bounds": (-1, 1),
    "target_bounds": (-1, 1),
    "fit_intercept": False,
}


def law_of_transcripts(X, y, *, clip, scale):
    """Return the probability of every sequence of vertices of a two-step proven DP-FW."""
    design, d = LatticeDesign.from_rows(X, y), X.shape[1]

    def scores(point):
        return vertex_scores(point.clipped_sums(clip)) * (clip / 2**28 / scale)

    def move(point, t, position):
        vertex = vertex_at(position, d)
        point.add(vertex.feature, vertex.sign * (t + 2))
        point.scale = 2 / ((t + 2) * (t + 3))

    return law_of_paths(2 * d, lambda: design.at(np.zeros(d), scale=1.0), scores, move)


@pytest.mark.parametrize("clip", [np.inf, 0.5])
def test_two_steps_cost_no_more_rényi_divergence_than_is_booked(clip):
    """Over neighbouring data sets, exactly: D_α ≤ αρ for every order, and the bound is not idle."""
    bound = min(clip, 2.0)
    worst = 0.0
    for few, more in neighbours(60):
        statement = DPFrankWolfe(**SMALL, clip=clip).fit(*more).privacy_
        scale = statement.mechanisms[0].scale
        laws = (law_of_transcripts(*rows, clip=bound, scale=scale) for rows in (few, more))
        worst = max(worst, divergence(*laws) / statement.rho)
    assert 0.3 < worst <= 1


def test_the_estimator_follows_the_law_that_was_analysed():
    """Chi-square over released models; false alarm 1e-6; a scale off by 1.3 is rejected.

    Among 2000 models of 16 the latter has power .9995, by the noncentral law.
    """
    X = np.array([[1.0, 0.5], [-0.5, 1.0], [0.3, -1.0]])
    y = np.array([1.0, -1.0, 0.5])
    setting = SMALL | {"epsilon": 4.0}
    noise = SeededNoise("law of the estimator")
    model = DPFrankWolfe(**setting, clip=np.inf, random_state=noise)
    seen = counted(model.fit(X, y).coef_ for _ in range(2000))
    scale = model.privacy_.mechanisms[0].scale

    assert p_value(seen, law_of_transcripts(X, y, clip=2.0, scale=scale)) > 1e-6
    assert p_value(seen, law_of_transcripts(X, y, clip=2.0, scale=scale / 1.3)) < 1e-6
