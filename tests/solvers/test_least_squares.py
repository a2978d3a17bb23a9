"""PrivateOLS's releases: nothing else flows out, no input moves further than booked (Lemmas 25-26).

And what is made of them holds: intervals cover, what is alike is left out, tails set the clips.
"""

from __future__ import annotations

import itertools
import math
from unittest import mock

import numpy as np
import pytest

from dpscreen import PrivateOLS
from dpscreen.privacy import Accountant, DiscreteGaussian
from dpscreen.privacy.accountant import BESIDE, DIAGONAL
from dpscreen.rows.mixed import MixedRows
from dpscreen.solvers.inference import why_left_out
from dpscreen.solvers.influences import (
    LongestRows,
    OneSided,
    Sizes,
    are_points,
    influence_clip,
    kept_slopes,
    left_of_level,
    seen_scales,
)
from dpscreen.solvers.ols_rules import LINE
from dpscreen.solvers.regression import (
    EvenFrame,
    Middle,
    NewtonStep,
    Pooled,
    pooled,
    private_errors,
    told_apart,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::dpscreen.WeakDeltaWarning"),
]

SETTING = {
    "epsilon": 3.0,
    "delta": 1e-6,
    "feature_bounds": [(-4, 6), (-4, 4), (0, 1)],
    "target_bounds": (-30, 30),
    "random_state": 1,
}


def drawn(seed, n=900):
    rng = np.random.default_rng(seed)
    X = np.column_stack((rng.normal(1, 1, n), rng.normal(0, 1, n), rng.random(n) < 0.3))
    X[:, 1] = 0.8 * X[:, 0] + 0.6 * X[:, 1]
    return X, X @ [2.0, -1.0, 3.0] + rng.standard_t(4, n)


# --- what flows out -------------------------------------------------------------------------------


def transcript(X, y, *, forced=None, **options):
    """Fit, and return the model with what each mechanism was given and released, in order."""
    release, kept = Accountant.release, []

    def listened(self, mechanism, values, *, purpose):
        out = release(self, mechanism, values, purpose=purpose)
        if forced is not None:
            out = forced[len(kept)][2]
        kept.append((mechanism, np.array(values), out, purpose))
        return out

    with mock.patch.object(Accountant, "release", listened):
        return PrivateOLS(**SETTING | options).fit(X, y), kept


def shown(model):
    table = model.table_
    numbers = (table.coefficients, table.covariance, table.freedom, table.clip_bias, table.scales)
    texts = (str(model.summary()), str(model.privacy_), str(model.inference_), model.explain())
    return [one.tobytes() for one in numbers], texts, model.feature_bounds_.tobytes(), model.n_rows_


@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"epsilon": 0.6}])
def test_nothing_but_releases_tells_rows_apart(options):
    """Other rows, in number too, under the same releases: all is the same to the last bit."""
    model, kept = transcript(*drawn(1), **options)
    rng = np.random.default_rng(9)
    others = rng.uniform(-9, 9, size=(50, 3)), rng.normal(0, 100, 50)
    again, _ = transcript(*others, forced=kept, **options)
    assert shown(again) == shown(model)


def test_without_forcing_other_rows_are_told_apart():
    assert shown(transcript(*drawn(1))[0]) != shown(transcript(*drawn(2))[0])


CORNERS = list(itertools.product((-9.0, 9.0), (-9.0, 9.0), (0.0, 1.0), (-99.0, 99.0)))


def test_no_input_of_a_mechanism_moves_further_than_is_booked():
    """One row more, under one transcript, at every corner of the bounds and amid the rows."""
    X, y = drawn(3, n=300)
    _, kept = transcript(X, y)
    closest: dict[str, float] = {}
    for *cells, target in [*CORNERS, (1.0, 0.0, 0.0, 2.0)]:
        more = np.vstack((X, cells)), np.append(y, target)
        _, moved = transcript(*more, forced=kept)
        for (mechanism, before, _, purpose), (same, after, *_) in zip(kept, moved, strict=True):
            assert mechanism == same
            step = (after - before).astype(float) * mechanism.unit
            gaussian = isinstance(mechanism, DiscreteGaussian)
            size = np.linalg.norm(step) if gaussian else np.abs(step).max()
            closest[purpose] = max(closest.get(purpose, 0.0), size / mechanism.sensitivity)
    assert max(closest.values()) <= 1
    assert closest["residuals times features, in units of the clips"] > 0.9
    assert closest["the same squared"] > 0.9
    assert closest["features squared: the whole"] > 0.9


def test_lemma_26_a_row_moves_the_weighted_triangle_by_five_at_most():
    rng = np.random.default_rng(4)
    upper = np.triu_indices(4)
    factors = np.where(upper[0] == upper[1], DIAGONAL, BESIDE)
    sizes = []
    for x in [*np.eye(4), np.ones(4) / 2, *rng.normal(size=(200, 4))]:
        unit = x / np.linalg.norm(x)
        sizes.append(np.linalg.norm(factors * np.outer(unit, unit)[upper]))
    assert max(sizes) == pytest.approx(DIAGONAL)
    assert min(sizes) > 0.98 * DIAGONAL  # so noise is alike in all directions


# --- what is made of it ---------------------------------------------------------------------------


def test_errors_are_as_large_as_they_say():
    """72 errors over standard errors: their mean square is 1.

    It lies outside (0.6, 1.6) once in 1 000 series if they are; halved or doubled standard errors
    give 4 and 1/4.
    """
    squares = []
    for seed in range(24):
        X, y = drawn(100 + seed, n=3000)
        model = PrivateOLS(**SETTING | {"random_state": seed}).fit(X, y)
        squares.append(((model.coef_ - [2, -1, 3]) / model.bse.to_numpy()[:3]) ** 2)
    assert 0.6 < np.mean(squares) < 1.6


def test_with_a_large_budget_it_is_least_squares():
    X, y = drawn(5, n=20_000)
    model = PrivateOLS(**SETTING | {"epsilon": 500.0}).fit(X, y)
    A = np.column_stack((X, np.ones(len(X))))
    best, *_ = np.linalg.lstsq(A, y, rcond=None)
    inverse, residuals = np.linalg.inv(A.T @ A), y - A @ best
    robust = np.sqrt(np.diag(inverse @ (A.T * residuals**2) @ A @ inverse))
    assert np.all(np.abs(model.params - best) < 0.2 * robust)
    np.testing.assert_allclose(model.bse, robust, rtol=0.15)


@pytest.mark.filterwarnings("ignore::dpscreen.BoundsWarning")
def test_what_is_alike_or_still_is_left_out_by_name():
    X, y = drawn(6, n=20_000)
    X = np.column_stack((X, X[:, 0], np.zeros(len(X))))
    bounds = [*SETTING["feature_bounds"], (-4, 6), (-5, 5)]
    model = PrivateOLS(**SETTING | {"feature_bounds": bounds}).fit(X, y)
    assert set(model.table_.reasons) == {3, 4}
    assert "x0" in model.table_.reasons[3]
    assert "variance is not detected" in model.table_.reasons[4]
    assert "without" in model.inference_.wording
    assert model.conf_int().isna().any(axis=1).tolist() == [False, False, False, True, True]
    np.testing.assert_allclose(model.coef_[:3], [2, -1, 3], atol=0.3)


def test_directions_that_drown_in_noise_are_left_out_by_pivoting():
    rows = MixedRows.near(np.arange(3), np.eye(3))
    gram = np.array([[100.0, 99.9, 0], [99.9, 100, 0], [0, 0, 80]])
    frame = EvenFrame(rows, 1.0, gram, 2.0, spread=np.ones(3), longest=1.0)
    found = told_apart(frame, 3, per_scale=np.ones(3))
    assert [one.feature for one in found.left_out] == [1]
    assert found.left_out[0].partners == (0,)
    np.testing.assert_allclose(found.matrix, np.diag([1 / 100, 0, 1 / 80]), atol=1e-6)


def test_what_would_be_left_out_alone_is_not_said_to_be_like_others():
    """Of 30 columns the blur is 7.7 noises: a rare level with five of them is like nothing else."""
    gram = np.diag(np.where(np.arange(30) == 4, 10.0, 100.0))
    gram[4, :3] = gram[:3, 4] = 4.0
    rows = MixedRows.near(np.arange(30), np.eye(30))
    frame = EvenFrame(rows, 1.0, gram, 2.0, spread=np.ones(30), longest=1.0)
    (one,) = told_apart(frame, 29, per_scale=np.ones(30)).left_out
    assert one.feature == 4
    assert "variance is not detected" in why_left_out(one, [f"x{j}" for j in range(29)])


def sizes_of(law, n=20_000, noise=30.0):
    rng = np.random.default_rng(8)
    edges = 2.0 ** (np.arange(-20, 9) / 2)
    cells = np.searchsorted(edges, np.abs(law(rng, n)), side="right")
    counts = np.bincount(cells, minlength=len(edges) + 1) + noise * rng.normal(size=len(edges) + 1)
    return Sizes(edges, counts, noise, n)


def test_lemma_28_clips_follow_tails():
    given = 1.0, 0.01, LongestRows(1.0, 1.0), 5.0
    light = influence_clip(sizes_of(lambda rng, n: rng.normal(size=n)), *given)
    heavy = influence_clip(sizes_of(lambda rng, n: rng.standard_t(3, n)), *given)
    assert light.deviation == pytest.approx(1, rel=0.15)
    assert 2.3 < light.tight < 6
    assert heavy.tight > 1.3 * light.tight


def test_lemma_28_what_is_cut_off_is_seen_in_cells_and_beyond():
    """Of 20 000 normals and t laws, by the truth, inside the clear cells and outside."""
    for law in (lambda rng, n: rng.normal(size=n), lambda rng, n: rng.standard_t(3, n)):
        sizes, drawn_ = sizes_of(law), np.abs(law(np.random.default_rng(9), 20_000))
        for clip in (1.0, 2.0):
            truth = float(np.maximum(drawn_ - clip, 0).sum())
            assert 0.6 * truth < sizes.cut_off(clip) < 2 * truth


HEAVY = {
    "t with 3 df": lambda rng, n: rng.standard_t(3, n),
    "lognormal": lambda rng, n: rng.lognormal(0, 1.3, n) - math.exp(0.845),
    "Pareto": lambda rng, n: rng.pareto(2.2, n) - 1 / 1.2,
}


@pytest.mark.parametrize("law", HEAVY)
def test_lemma_28_what_heavy_tails_lose_is_seen_through_noise(law):
    """At a clip that 30 of 20 000 rows reach, from a third to six times: in 32 of 40 draws or more.

    A share of 0.9, as was seen in 200 draws of the worst law, has fewer once in 60 series of draws.
    """
    told = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        drawn_ = np.abs(HEAVY[law](rng, 20_000))
        edges = 2.0 ** (np.arange(-16, 13) / 2)
        counts = np.bincount(np.searchsorted(edges, drawn_), minlength=len(edges) + 1)
        sizes = Sizes(edges, counts + 30.0 * rng.normal(size=len(counts)), 30.0, 20_000)
        clip = float(np.quantile(drawn_, 1 - 30 / 20_000))
        told.append(sizes.cut_off(clip) / float(np.maximum(drawn_ - clip, 0).sum()))
    assert sum(1 / 3 < one < 6 for one in told) >= 32


def test_lemma_28_a_tail_of_its_own_beyond_the_others_is_seen():
    """One row in a hundred is far out, up to 40, where the others are normal: 30 draws of noise.

    What a clip of 5 cuts off is told to a factor of four in 27 of them at least; by the fall of the
    cells before it was a thirtieth.
    """
    edges = 2.0 ** np.concatenate((np.arange(-16, 5) / 2, [3.5, 5.0]))
    told = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        far = rng.random(20_000) < 0.01
        drawn_ = np.abs(rng.normal(size=20_000)) + far * 5 * rng.lognormal(0, 0.8, 20_000)
        counts = np.bincount(np.searchsorted(edges, drawn_), minlength=len(edges) + 1)
        sizes = Sizes(edges, counts + 22.0 * rng.normal(size=len(counts)), 22.0, 20_000)
        told.append(sizes.cut_off(5.0) / float(np.maximum(drawn_ - 5.0, 0).sum()))
    assert sum(1 / 4 < one < 4 for one in told) >= 27


def test_lemma_50_intervals_hold_least_squares_where_the_truth_is_no_line():
    """A logarithm of a lognormal column: least squares follows the rows far out, 8 fits.

    Their slope was held in none when rows far out counted for less: 19 standard errors away.
    """
    rng, n = np.random.default_rng(3), 20_000
    x = rng.lognormal(0, 1, n)
    X = np.column_stack((x, rng.normal(size=n) + 0.3 * np.log(x), rng.random(n) < 0.3))
    y = 3 * np.log1p(x) + X[:, 1] + rng.normal(size=n)
    truth = np.linalg.lstsq(np.column_stack((X, np.ones(n))), y)[0][:3]
    held = []
    for seed in range(8):
        model = PrivateOLS(
            epsilon=5,
            delta=1e-6,
            feature_bounds=[(0, 200), (-20, 20), (0, 1)],
            target_bounds=(-50, 100),
            quality=False,
            random_state=f"no line {seed}",
        ).fit(X, y)
        low, high = model.conf_int().to_numpy().T
        held.append((low <= truth) & (truth <= high))
    assert np.mean(held, axis=0).min() >= 0.75


def test_lemma_50_what_longer_rows_change_counts_beyond_twice_its_noise():
    nothing, whole = np.zeros(2), np.array([1.0, 4.0])
    moved = Pooled(nothing, 1.0, 0.0, nothing, nothing, whole, 2.0, 0.75, np.eye(2), np.ones(2))
    left = moved.left_by_long_rows(np.eye(2), np.ones(2))
    np.testing.assert_allclose(left, [0, (16 - 4) * (0.25**2 + 1 / 3)])


@pytest.mark.parametrize(("seen", "part"), [(1.2, 1.0), (1.0, 1.0), (0.5, 2 / 3), (0.1, 0.2)])
def test_lemma_50_a_step_is_damped_where_a_direction_varies_less_than_it_was_made_to(seen, part):
    """By what it may be at most if rows count three times as long: then no step amplifies."""
    rng, spread, n_rows = np.random.default_rng(5), np.array([1.0, 0.5, 1.0]), 1000
    way = rng.normal(size=3)
    way /= np.linalg.norm(way)
    varied = np.eye(3) + (seen - 1) * np.outer(way, way)
    gram = n_rows * varied * np.outer(spread, spread)
    rows = MixedRows.near(np.arange(3), np.eye(3))
    frame = EvenFrame(rows, 1.0, gram, 1e-9, spread, 1.0)
    inverse = told_apart(frame, 3, np.ones(3))
    damped = inverse.matrix @ inverse.damping(n_rows, frame)
    lost = np.eye(3) + (part - 1) * np.outer(way, way)
    wanted = lost @ np.linalg.inv(varied) / n_rows / np.outer(spread, spread)
    np.testing.assert_allclose(damped, wanted, rtol=1e-6, atol=1e-9)
    assert all(abs(1 - part * larger) < 1 for larger in np.linspace(1, min(9, 1 / seen), 5))


def test_lemma_50_what_damping_leaves_to_the_step_before_has_the_noise_of_both():
    """That of its sum, and of the Gram matrix along its way, which is longer than the last one."""
    rng, draws = np.random.default_rng(6), 40_000
    ways, noises = np.array([[0, 5.0], [1, 0.5]]), np.array([1.5, 0.5])
    damping = np.diag([1.0, 0.25])
    frame = EvenFrame(MixedRows.near(np.arange(2), np.eye(2)), 1.0, np.eye(2), 2.0, np.ones(2), 1.0)
    found = Pooled(np.zeros(2), 1.0, 0.0, ways, ways[0], ways[0], 1.0, 0.8, damping, noises)
    drawn = rng.normal(size=(draws, 2, 2))
    gram = frame.noise / 2 * (drawn + drawn.transpose(0, 2, 1))  # its diagonal has that noise
    first, second = (
        gram @ way + noise * rng.normal(size=(draws, 2))
        for way, noise in zip(ways, noises, strict=True)
    )
    last = found.part * damping
    errors = first @ (np.eye(2) - last).T + second @ last.T
    np.testing.assert_allclose(found.private(frame), np.cov(errors.T), rtol=0.05, atol=0.1)


def test_lemma_50_the_last_step_does_not_go_beyond_what_few_long_rows_tell():
    """Two levels that are each other's contrary but in one row of 250: only these tell both.

    A whole step took noise of the one before, up to eight times as large, to the other side: of
    eight fits, the root mean square error was 13. It is 2 now.
    """
    rng, n = np.random.default_rng(11), 30_000
    first = rng.random(n) < 0.4
    second = np.where(rng.random(n) < 0.004, first, ~first)
    others = rng.normal(size=(n, 3)), rng.exponential(size=(n, 2))
    X = np.column_stack((first, second, *others)).astype(np.float64)
    y = X @ [1.0, -4.0, 1.0, 0.0, 2.0, -1.0, 0.0] + rng.normal(0, 20, n)
    truth = np.linalg.lstsq(np.column_stack((X, np.ones(n))), y)[0][0]
    errors, held = [], []
    for seed in range(8):
        model = PrivateOLS(
            epsilon=1,
            delta=1e-6,
            feature_bounds=[(0, 1), (0, 1), *[(-20, 20)] * 3, *[(0, 40)] * 2],
            target_bounds=(-300, 300),
            quality=False,
            random_state=f"o{seed}",
        ).fit(X, y)
        low, high = model.conf_int().to_numpy()[0]
        errors.append(model.coef_[0] - truth)
        held.append(low <= truth <= high)
    assert np.sqrt(np.mean(np.square(errors))) < 6
    assert all(held)


def test_rows_of_many_levels_do_not_lie_far_out():
    """Eight levels and three normal columns, 4 000 rows at ε = 1: 540 to 710 were told to."""
    for seed in range(3):
        rng, n = np.random.default_rng(seed), 4000
        levels = rng.random((n, 8)) < [0.5, 0.4, 0.3, 0.35, 0.2, 0.1, 0.35, 0.07]
        X = np.column_stack((levels, rng.normal(size=(n, 3)))).astype(np.float64)
        model = PrivateOLS(
            epsilon=1,
            delta=1e-6,
            feature_bounds=[(0, 1)] * 8 + [(-20, 20)] * 3,
            target_bounds=(-100, 100),
            quality=False,
            random_state=f"f{seed}",
        ).fit(X, X.sum(axis=1) + rng.normal(0, 2, n))
        assert model.table_.shortened < n / 20
        assert "far out" not in model.inference_.wording


def test_a_pull_is_seen_along_features_and_noise_is_none():
    """Of 400 sums that are noise, five directions each, 20 seem to pull: 8 to 36 in 999 of 1 000.

    One of five deviations is always seen.
    """
    rng, directions = np.random.default_rng(2), np.eye(6)[:5]
    sums = [NewtonStep(np.zeros(6), 3 * one, 1.0, 1.0) for one in rng.normal(size=(400, 6))]
    assert 8 <= sum(one.pulls(directions, np.full(5, 9.0)) for one in sums) <= 36
    pulled = NewtonStep(np.zeros(6), 15 * np.eye(6)[2], 1.0, 1.0)
    constant = NewtonStep(np.zeros(6), 150 * np.eye(6)[5], 1.0, 1.0)
    assert pulled.pulls(directions, np.full(5, 9.0))
    assert not constant.pulls(directions, np.full(5, 9.0))


def test_noise_whose_spread_and_skew_follow_a_feature():
    """Errors over standard errors of that feature's slope, 16 fits: their mean is near zero.

    Of fits that are right it is beyond 0.9 once in 3 000 series. Clips that took a quarter of what
    they cut off to pull one way had −1.4, and held the slope in three quarters of fits.
    """
    errors = []
    for seed in range(16):
        rng, n = np.random.default_rng(seed), 20_000
        x = rng.gamma(1.5, 1, n)
        X = np.column_stack((x, rng.normal(size=n), rng.random(n) < 0.3))
        noise = (0.3 + x) * (rng.lognormal(0, 1, n) - math.exp(0.5))
        model = PrivateOLS(
            epsilon=1,
            delta=1e-6,
            feature_bounds=[(-10, 40), (-12, 10), (0, 1)],
            target_bounds=(-500, 1500),
            quality=False,
            random_state=f"pull {seed}",
        ).fit(X, X @ [1.0, 0.5, 0.5] + noise)
        errors.append(float((model.params["x0"] - 1) / model.bse["x0"]))
    assert abs(np.mean(errors)) < 0.9


def test_lemma_38_what_a_lower_clip_changes_tells_what_the_upper_one_cut_off():
    """Exponential residuals pull one way; at the estimate what is lost is found to a third."""
    rng, upper, lower = np.random.default_rng(3), 2.5, 1.0
    r = rng.exponential(size=200_000) - 1
    r -= float(np.clip(r, -upper, upper).mean())  # the clipped sum is zero there
    for _ in range(20):
        r -= float(np.clip(r, -upper, upper).mean())
    sums = -float(np.clip(r, -lower, lower).sum())  # as steps have it: minus the sum is lost
    cuts = [float(np.maximum(np.abs(r) - clip, 0).sum()) for clip in (lower, upper)]
    found = OneSided(np.array([-sums]), 1.0, *cuts)
    truth = float((r - np.clip(r, -upper, upper)).sum())
    assert found.lost(np.eye(1), 1.0)[0] == pytest.approx(truth, rel=0.35)
    assert found.along(np.eye(1), 1.0)[0] == pytest.approx(truth, rel=0.35)


def test_lemma_38_noise_alone_hardly_counts_as_a_pull():
    """Of 1 000 sums of twelve normal numbers .16 of their variance counts in the mean.

    By t⁴/(t² + s²) for each number it was .65. The mean is within .03 in 999 of 1 000 series.
    """
    sums = np.random.default_rng(6).normal(size=(1000, 12))
    counted = [OneSided(one, 1.0, 2e9, 1e9).along(np.eye(12), 0.0) ** 2 for one in sums]
    assert float(np.mean(counted)) == pytest.approx(0.16, abs=0.03)


def test_lemma_38_what_pulls_the_constant_puts_nothing_back_along_features():
    found = OneSided(np.array([1.0, -1.8, 100.0]), 1.0, 2e9, 1e9).lost(np.eye(3), 0.0)
    np.testing.assert_allclose(found, [0, 0, -100], rtol=1e-3)


@pytest.mark.parametrize(("clip", "slope"), [(0.5, 0.383), (1.0, 0.683), (3.0, 0.997)])
def test_lemma_39_the_size_of_clipped_residuals_tells_how_many_are_not(clip, slope):
    r = np.clip(np.random.default_rng(4).normal(size=100_000), -clip, clip)
    found = kept_slopes(np.array([math.sqrt(float((r**2).mean())) / clip]))
    assert found[0] == pytest.approx(slope, abs=0.01)


def test_scales_are_read_off_cells_that_stand_out_together():
    """A column that 3 % of rows have, one of noise, and one where four cells are clear as one.

    Beside a cell that is clear by far, noise may count; that is little against what is seen.
    """
    edges = 2.0 ** np.arange(-6.0, 2.0)
    counts = np.zeros((3, 17))
    counts[:, 8] = 9700
    counts[0, 14], counts[2, 11:15] = 300, (60, 70, 60, 70)
    counts[1, 9:] = (-20, 15, -30, 28, 10, -12, 3, 9)
    for sides in (counts, counts[:, ::-1]):
        found, left = seen_scales(edges, sides, 25.0, longest=2.0)
        assert found[0] == pytest.approx(math.sqrt(0.03 * 7 / 12), rel=0.01)
        assert found[1] < 0.002
        assert found[2] > 0.03
        assert left[0] == pytest.approx(2 * math.sqrt(0.03), rel=0.01)  # of 3 %, two deviations


def test_points_are_told_from_two_values_half_and_half():
    counts = np.zeros((4, 9))
    counts[0, 3] = 1000  # all in one cell
    counts[1, 3:5] = 500  # beside an edge
    counts[2, (2, 6)] = 500  # two values, the centre between
    counts[3, 3] = 400  # most rows are hidden
    assert are_points(counts + 1.0, 10.0, 1000).tolist() == [True, True, False, False]


@pytest.mark.parametrize("share", [0.5, 0.02, 0.98])
def test_what_is_left_of_a_level_if_rows_are_cut_short(share):
    """By the rows themselves: those beyond two deviations are cut to two."""
    rows = np.repeat([0.0, 1.0], [round(1000 * (1 - share)), round(1000 * share)])
    z = (rows - rows.mean()) / rows.std()
    truth = math.sqrt(float((np.clip(z, -2, 2) ** 2).mean()))
    assert left_of_level(rows.std(keepdims=True), 2.0)[0] == pytest.approx(truth)


@pytest.mark.filterwarnings("ignore::dpscreen.BoundsWarning")
def test_a_column_mostly_zero_in_wide_bounds_gets_an_interval_of_use():
    """Its scale is noise to begin with: intervals were up to 140 times those of least squares."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = np.column_stack((rng.gamma(2, 4, 12_000), rng.poisson(0.03, 12_000))).astype(float)
        y = 1.5 * X[:, 0] - 0.5 * X[:, 1] + rng.normal(0, 6, 12_000)
        bounds = {"feature_bounds": [(0, 50), (0, 50)], "target_bounds": (-100, 200)}
        model = PrivateOLS(epsilon=1, delta=1e-6, quality=False, random_state=seed, **bounds)
        assert model.fit(X, y).bse["x1"] < 8 * 6 / math.sqrt(12_000 * 0.03)


@pytest.mark.filterwarnings("ignore::dpscreen.BoundsWarning")
def test_the_last_matrix_has_room_for_rows_that_noise_hides():
    """Rain on 3 % of days: errors were 3.1 times those of least squares in the median."""
    wider = []
    for seed in range(15):
        rng, n = np.random.default_rng(seed), 20_000
        rain = np.where(rng.random(n) < 0.97, 0, rng.gamma(2, 1, n))
        X = np.column_stack((rng.normal(size=(n, 5)), rain))
        y = X[:, 0] + rain + rng.normal(0, 2, n)
        bounds = {"feature_bounds": (-20, 30), "target_bounds": (-100, 100)}
        model = PrivateOLS(epsilon=1, delta=1e-6, quality=False, random_state=seed, **bounds)
        wider.append(model.fit(X, y).bse["x5"] * rain.std() * math.sqrt(n) / 2)
    assert np.median(wider) < 2.4


def test_what_noise_hides_is_not_taken_for_a_scale():
    """A histogram of noise says nothing: clips then follow the target's deviation."""
    hidden = influence_clip(
        sizes_of(lambda rng, n: rng.normal(size=n) / 1000, n=200, noise=100.0),
        1.0,
        0.01,
        LongestRows(2.0, 3.0),
        5.0,
    )
    assert hidden.deviation == 5
    assert hidden.tight == 30


@pytest.mark.parametrize(
    ("n_rows", "level", "effect"), [(20_000, 0.02, 3.0), (1_500, 0.5, 1.0), (20_000, 0.5, 0.0)]
)
def test_intervals_of_a_level_hold_its_effect_be_it_rare_or_rows_few(n_rows, level, effect):
    """Of 40 intervals at 95 % at most 8 miss: a false alarm in ten thousand.

    Clips that suit most rows cut those of a rare level, and 37 of 40 missed; scales that were read
    off noise made half of them miss where rows are few.
    """
    held = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = np.column_stack((rng.random(n_rows) < level, rng.normal(size=n_rows))).astype(float)
        y = effect * X[:, 0] + X[:, 1] + rng.normal(size=n_rows)
        bounds = {"feature_bounds": [(0, 1), (-6, 6)], "target_bounds": (-100, 100)}
        model = PrivateOLS(epsilon=1, delta=1e-6, quality=False, random_state=seed, **bounds)
        low, high = model.fit(X, y).conf_int().iloc[0]
        held.append(low <= effect <= high)
    assert sum(held) >= 32


def test_a_level_of_a_few_rows_is_left_out_or_known_to_be_unknown():
    """Twenty of 5 000 rows: no effect is told that predictions could not have."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = np.column_stack((rng.random(5000) < 0.004, rng.normal(50, 15, 5000))).astype(float)
        y = 5 * X[:, 0] + 0.2 * X[:, 1] + rng.normal(0, 3, 5000)
        bounds = {"feature_bounds": [(0, 1), (0, 120)], "target_bounds": (-100, 1000)}
        model = PrivateOLS(epsilon=5, delta=1e-6, quality=False, random_state=seed, **bounds)
        model.fit(X, y)
        low, high = model.conf_int().iloc[0]
        assert np.isnan(low) or low <= 5 <= high or abs(model.coef_[0] - 5) < 15


def test_the_middle_is_drawn_to_its_mean_where_it_is_noise():
    rng = np.random.default_rng(2)
    noise = rng.normal(size=(6, 6))
    middle = Middle(100 * np.eye(6) + (noise + noise.T) / 2, 1.0)
    np.testing.assert_allclose(middle.shrunk(np.ones(6)), 100 * np.eye(6), atol=3)
    spiked = Middle(np.diag([100.0, 100, 100, 400]), 5.0)
    along, _ = spiked.along(np.eye(4), np.ones(4))
    assert along[3] == pytest.approx(400, rel=0.05)


def test_few_rows_of_a_level_do_not_widen_the_others():
    """One row in a thousand has it: others' errors were twice to six times those without it."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = np.column_stack((rng.normal(size=(40_000, 2)), rng.random(40_000) < 0.001))
        y = X @ [1.0, -1, 4] + rng.normal(0, 3, 40_000)
        bounds = {"feature_bounds": [(-9, 9), (-9, 9), (0, 1)], "target_bounds": (-99, 99)}
        model = PrivateOLS(epsilon=5, delta=1e-6, quality=False, random_state=seed, **bounds)
        errors = model.fit(X, y).bse.to_numpy()
        assert (errors[:2] < 1.15 * 3 / math.sqrt(40_000)).all()
        assert not errors[2] > 4 * 3 / math.sqrt(40)


def test_lemma_36_combinations_vary_as_spreads_say_whatever_is_alike():
    """Of two directions with one eigenvalue, one is meant to vary more, and is stretched alone."""
    rng, spread = np.random.default_rng(4), np.array([1.0, 0.2, 0.7])
    rows = MixedRows.near(np.arange(3), rng.normal(size=(3, 3)) / 9)
    alike = 400 * np.array([[1.0, 0.1, 0.0], [0.1, 1.0, 0.0], [0.0, 0.0, 9.0]])
    frame = EvenFrame(rows, 1.0, alike, 1e-9, spread=np.ones(3), longest=1.0)
    turned = frame.evened(10_000, spread) @ np.linalg.inv(frame.matrix)
    np.testing.assert_allclose(turned @ alike @ turned.T, 10_000 * np.diag(spread**2), atol=1e-6)
    assert abs(turned[1, 1] - 1) < 0.02
    assert turned[0, 0] > 4.9


def test_rare_levels_leave_the_others_where_they_are():
    """Ten of sixty intervals of the others missed, and errors of rare levels were 27 to 86."""
    rng, n = np.random.default_rng(5), 40_000
    group = rng.choice(12, n, p=[0.05, *[0.94 / 6] * 6, *[0.002] * 5])
    levels = group[:, None] == np.arange(1, 12)
    X = np.column_stack((rng.normal(size=(n, 2)), levels)).astype(float)
    y = 3 * X[:, 0] + group + 21 * rng.standard_t(4, n)
    bounds = {"feature_bounds": [(-9, 9)] * 2 + [(0, 1)] * 11, "target_bounds": (-999, 999)}
    errors, held = [], []
    for seed in range(10):
        model = PrivateOLS(epsilon=3, delta=1e-6, quality=False, random_state=seed, **bounds)
        kept = np.flatnonzero(model.fit(X, y).coef_)
        best = np.zeros(13)
        best[kept] = np.linalg.lstsq(np.column_stack((X[:, kept], np.ones(n))), y)[0][:-1]
        low, high = model.conf_int().to_numpy()[2:8].T
        held.append((low <= best[2:8]) & (best[2:8] <= high))
        errors.append(model.bse.to_numpy()[8:13])
    assert np.mean(held) > 0.95
    assert (np.nanmedian(errors, axis=0) < 15).all()


def test_public_numbers_say_when_there_is_no_table():
    needed = LINE.rows_needed(10, 0.02)
    assert LINE.rho_needed(10, needed) <= 0.02 < LINE.rho_needed(10, needed - 1)
    assert LINE.most_columns(needed, 0.02, 50) == 10
    assert LINE.most_columns(needed - 1, 0.02, 50) == 9
    assert LINE.rho_needed(10, 99) is None  # fewer than ten rows for each column


@pytest.mark.filterwarnings("ignore::dpscreen.BoundsWarning")
def test_lemma_52_columns_that_hardly_any_row_tells_do_not_ruin_predictions():
    """One row in a hundred, and wild ones: R² was −3 to −4 393 in six of ten fits at ε = 1."""
    rng, n = np.random.default_rng(0), 20_000
    ill, hurt = rng.poisson(0.6, n), rng.random(n) < 0.01
    days = np.where(hurt & (rng.random(n) < 0.7), np.minimum(rng.exponential(10, n), 60), 0)
    y = np.minimum(rng.poisson(rng.gamma(0.4, 1, n) * (0.2 + 1.2 * ill + 0.3 * hurt)), 60)
    X = np.column_stack((ill, rng.normal(3, 0.6, n), hurt, days))
    bounds = {"feature_bounds": [(0, 20), (0, 8), (0, 1), (0, 60)], "target_bounds": (0, 60)}
    for epsilon, seed in itertools.product((1, 3), range(10)):
        model = PrivateOLS(epsilon=epsilon, delta=1e-6, random_state=seed, **bounds).fit(X, y)
        assert np.mean((y - model.predict(X)) ** 2) < 0.95 * np.var(y)
        kept = np.flatnonzero(model.coef_)
        assert {0, 1} <= set(kept.tolist())
        best = np.linalg.lstsq(np.column_stack((X[:, kept], np.ones(n))), y)[0][:-1]
        assert (np.abs(model.coef_[kept] - best) < 4 * model.bse.to_numpy()[kept]).all()
        assert set(model.table_.reasons) == set(range(4)) - set(kept.tolist())


def test_lemma_52_without_a_feature_steps_answer_as_if_it_had_never_been_there():
    """Also those that began where its coefficient was not zero."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(500, 3)) @ rng.normal(size=(3, 3))
    y, mixing = X @ [1.0, -2.0, 3.0] + rng.normal(size=500), rng.normal(size=(3, 3)) / 9
    rows = MixedRows.near(np.arange(3), mixing)
    U = X @ rows.matrix.T
    frame = EvenFrame(rows, 1.0, U.T @ U, 0.0, spread=np.ones(3), longest=1.0)
    inverse = told_apart(frame, 3, per_scale=np.ones(3)).without(1, frame)
    starts = rng.normal(size=(2, 3))
    steps = [NewtonStep(start, U.T @ (y - U @ start), 1.0, 1.0) for start in starts]
    found = pooled(
        steps, inverse, frame, (sizes_of(lambda rng, n: rng.normal(size=n)), 0.0), np.eye(3)
    )
    weights = frame.matrix.T @ found.theta
    best = np.linalg.lstsq(X[:, [0, 2]], y)[0]
    np.testing.assert_allclose(weights, [best[0], 0, best[1]], atol=1e-9)
    way = found.theta - starts.T @ [1 - found.part, found.part]
    np.testing.assert_allclose(found.way, way)


def test_lemma_52_errors_are_by_what_others_leave_of_a_feature():
    """Noise of one in the sum: two columns that are alike are as sure of what tells them apart."""
    n, alike = 10_000, 0.99
    gram = n * np.array([[1, alike, 0], [alike, 1, 0], [0, 0, 1.0]])
    rows = MixedRows.near(np.arange(3), np.eye(3))
    frame = EvenFrame(rows, 1.0, gram, 0.0, spread=np.ones(3), longest=1.0)
    inverse = told_apart(frame, 3, per_scale=np.ones(3))
    steps = [NewtonStep(np.zeros(3), np.zeros(3), noise, 1.0) for noise in (1e9, 1.0)]
    estimate = pooled(
        steps, inverse, frame, (sizes_of(lambda rng, n: 0 * rng.normal(size=n)), 0.0), np.eye(3)
    )
    nothing = OneSided(np.zeros(3), 0.0, 0.0, 0.0)
    for per_scale in (np.ones(3), np.array([4.0, 0.5, 1.0])):
        found = private_errors(estimate, frame, inverse, per_scale, nothing)
        errors = np.sqrt(np.diag(inverse.matrix @ inverse.matrix)) / per_scale
        left = np.sqrt([1 - alike**2, 1 - alike**2, 1])
        np.testing.assert_allclose(found, errors * left, rtol=1e-3)
