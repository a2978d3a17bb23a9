"""TukeyEM and DPKendall: their lemmas over all neighbours of small cases, and exact draws."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dpscreen.models.tukey import KendallTukeyEM, TukeyEM
from dpscreen.privacy import BudgetExceeded, NoisyMax, SeededNoise
from dpscreen.solvers import tukey
from tools.laws import chi_square

EDGES = {1: 2, 2: 1}
"""Where the lattice of so many weights ends."""


def depth(models, point):
    """Return how deep a point lies, by definition."""
    sides = (min((models[:, j] <= v).sum(), (models[:, j] >= v).sum()) for j, v in enumerate(point))
    return int(min(sides))


def lattice(n_weights):
    edge = EDGES[n_weights]
    return list(itertools.product(range(-edge, edge + 1), repeat=n_weights))


def drawn_law(models, epsilon):
    """Return the chance of every lattice point, by definition."""
    depths = np.array([depth(models, point) for point in lattice(models.shape[1])])
    weights = np.exp(epsilon * depths / 2) * (depths >= len(models) // 4)
    return weights / weights.sum()


def chance_to_pass(distance, test):
    """Return P(distance + noise ≥ τ) of two-sided geometric noise."""
    ratio, need = math.exp(-test.epsilon), test.threshold - distance
    if need >= 0:
        return ratio**need / (1 + ratio)
    return 1 - ratio ** (1 - need) / (1 + ratio)


def whole_law(models, epsilons, delta, distance=tukey.distance_to_unsafe):
    """Return the chance of nothing, and of every point."""
    regions = tukey.Regions(models, EDGES[models.shape[1]])
    found = distance(regions.sizes, len(models), epsilons[1], delta)
    passes = chance_to_pass(found, tukey.SafetyTest(Fraction(epsilons[0]), delta))
    return np.append(1 - passes, passes * drawn_law(models, epsilons[1])), found


def worst(laws, epsilon):
    """Return the largest δ needed between neighbours, and the largest move of the distance."""
    needed, moved = 0.0, 0
    for key, (law, distance) in laws.items():
        for place, value in itertools.product(range(len(key)), lattice(len(key[0]))):
            other = tuple(sorted((*key[:place], *key[place + 1 :], value)))
            if other in laws:
                excess = law - math.exp(epsilon) * laws[other][0]
                needed = max(needed, float(excess[excess > 0].sum()))
                moved = max(moved, abs(distance - laws[other][1]))
    return needed, moved


def all_laws(n_models, n_weights, epsilons, delta, **options):
    sets = list(itertools.combinations_with_replacement(lattice(n_weights), n_models))
    sets = [one for one in sets if n_weights == 1 or len(set(one)) <= 3]
    return {
        one: whole_law(np.array(one, dtype=np.int64), epsilons, delta, **options) for one in sets
    }


CASES = [(8, 1, (1.0, 1.0), 0.3), (8, 1, (6.0, 4.0), 0.01), (8, 2, (2.0, 3.0), 0.2)]


@pytest.mark.parametrize(("n_models", "n_weights", "epsilons", "delta"), CASES)
def test_a_deep_point_keeps_its_promise_for_all_neighbours(n_models, n_weights, epsilons, delta):
    """Lemma 43, from definitions: depths are counted, and laws are whole."""
    laws = all_laws(n_models, n_weights, epsilons, delta)
    needed, moved = worst(laws, sum(epsilons))
    assert needed <= delta * (1 + 1e-9)
    assert moved <= 1
    assert max(distance for _, distance in laws.values()) > 0


def test_the_check_sees_what_would_break_it():
    """A test that always passes, a distance that moves by 2, half of the noise."""
    granted, delta, right = (6.0, 4.0), 0.01, tukey.distance_to_unsafe
    wrong = {"always": lambda *_: 100, "by two": lambda *given: 2 * right(*given)}
    for name, distance in wrong.items():
        laws = all_laws(8, 1, granted, delta, distance=distance)
        assert worst(laws, sum(granted))[0] > 2 * delta, name
    assert worst(all_laws(8, 1, granted, delta), sum(granted) / 2)[0] > 2 * delta


def test_the_distance_moves_by_one_among_many_models():
    """Where it is large, with models as they come; every tenth is moved, one at a time."""
    rng = np.random.default_rng(1)
    models = np.rint(rng.normal(size=(200, 3)) * 1000).astype(np.int64)

    def distance(points):
        return tukey.distance_to_unsafe(tukey.Regions(points).sizes, 200, 2.0, 1e-6)

    here = distance(models)
    assert 10 < here < 50
    for place, value in itertools.product(range(0, 200, 10), (-(2**50), 0, 10**6)):
        other = models.copy()
        other[place] = value
        assert abs(distance(other) - here) <= 1


def test_regions_are_boxes_of_that_depth():
    rng = np.random.default_rng(2)
    for n_models in (5, 8):
        models = rng.integers(-1, 2, size=(n_models, 2))
        regions = tukey.Regions(models, 1)
        depths = [depth(models, point) for point in lattice(2)]
        counted = [sum(d >= i for d in depths) for i in range(n_models + 2)]
        assert regions.sizes == counted


def test_draws_have_that_law():
    """False alarms: one in a million; half of ε is seen."""
    models = np.random.default_rng(3).integers(-1, 2, size=(9, 2))
    regions, noise, n_draws = tukey.Regions(models, 1), SeededNoise("deep"), 5000
    draw = tukey.DeepPoint(Fraction(3))
    places = {point: place for place, point in enumerate(lattice(2))}
    draws = np.bincount(
        [places[tuple(draw(regions, noise).tolist())] for _ in range(n_draws)], minlength=9
    )
    law = drawn_law(models, 3.0)
    assert not draws[law == 0].any()
    assert chi_square(draws, law) > 1e-6
    assert chi_square(draws, drawn_law(models, 1.5)) < 1e-6


def test_a_verdict_passes_as_often_as_it_should():
    """False alarms: one in a million (five deviations of a share)."""
    test, noise, n_draws = tukey.SafetyTest(Fraction(1, 2), 0.05), SeededNoise("test"), 600
    for distance in (0, test.threshold, test.threshold + 3):
        share = sum(test(distance, noise) for _ in range(n_draws)) / n_draws
        chance = chance_to_pass(distance, test)
        assert abs(share - chance) < 5 * math.sqrt(chance * (1 - chance) / n_draws)
    assert chance_to_pass(0, test) <= 0.05 < chance_to_pass(1, test) + 0.05


# --- rank correlations ----------------------------------------------------------------------------


def slow_concordance(x, y):
    pairs = itertools.combinations(range(len(x)), 2)
    return int(sum(np.sign(x[a] - x[b]) * np.sign(y[a] - y[b]) for a, b in pairs))


def test_concordance_counts_pairs():
    rng = np.random.default_rng(4)
    for levels in (2, 5, 1000):
        x, y = rng.integers(0, levels, (2, 60)).astype(float)
        assert tukey.concordance(x, y) == slow_concordance(x, y)
    assert tukey.concordance(np.zeros(9), np.arange(9.0)) == 0


def test_one_row_moves_a_score_by_three_halves_at_most():
    """Lemma 44: all tables of up to three rows on a grid, and every row that may join them."""
    cells = list(itertools.product((0.0, 1.0, 2.0), repeat=2))
    unit, largest = tukey.UNITS, 0
    for n_rows in range(4):
        for rows in itertools.combinations_with_replacement(cells, n_rows):
            table = np.array(rows).reshape(n_rows, 2)
            here = tukey.kendall_score(*table.T)
            for row in cells:
                there = tukey.kendall_score(*np.vstack((table, row)).T)
                largest = max(largest, abs(there - here))
    assert unit <= largest <= 1.5 * unit + 1
    n = 50
    x = np.arange(n + 1.0)
    y = np.append(x[:-1], -1.0)
    met = tukey.kendall_score(x[:n], y[:n]) - tukey.kendall_score(x, y)
    assert abs(met - 1.5 * unit) <= 1


def test_features_are_chosen_by_what_they_add():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(1500, 6))
    X[:, 1] = X[:, 0] + 0.01 * rng.normal(size=1500)
    y = 2 * X[:, 0] + X[:, 4] + 0.1 * rng.normal(size=1500)
    spending = tukey.PureSpending(SeededNoise(1), 50.0)
    chosen = tukey.release_features(spending, X, y, 2, epsilon=Fraction(50))
    assert 4 in chosen
    assert len(set(chosen) & {0, 1}) == 1
    assert spending.left == 0


def test_centres_are_where_features_lie():
    rng = np.random.default_rng(9)
    X = np.column_stack((rng.normal(0.6, 0.05, 2000), rng.random(2000) < 0.2, np.full(2000, -1.0)))
    spending = tukey.PureSpending(SeededNoise(4), 20.0)
    np.testing.assert_allclose(
        tukey.release_centres(spending, X), (0.6, 0.0, -1.0), atol=2 / tukey.CELLS + 0.01
    )
    assert spending.left == 20 * (1 - tukey.CENTRE_SHARE)


class Watched(SeededNoise):
    """Noise that notes every release and what ε was left after it; coins repeat.

    It answers what it is told, if that is something.
    """

    def __init__(self, answers=None):
        super().__init__("watched")
        self.seen, self.released, self.left, self._answers = [], [], [], answers

    def words(self, count):
        return SeededNoise("coins").words(count) if count > 1000 else super().words(count)

    def answer(self, mechanism, values, *, purpose, account):
        self.seen.append((mechanism, values))
        self.left.append(account.left)
        if self._answers is not None:
            return self._answers[len(self.seen) - 1]
        self.released.append(super().answer(mechanism, values, purpose=purpose, account=account))
        return self.released[-1]


def releases(release, X, y, count, epsilon):
    """Return (mechanism, values, ε booked) of every release of a function."""
    noise = Watched()
    spending = tukey.PureSpending(noise, epsilon)
    whole = spending.left
    release(spending, X, y, count)
    left = [whole, *noise.left]
    booked = [before - after for before, after in itertools.pairwise(left)]
    return [(*one, cost) for one, cost in zip(noise.seen, booked, strict=True)]


PURE = {
    "centres": lambda spending, X, _y, _count: tukey.release_centres(spending, X),
    "features": lambda spending, X, y, count: tukey.release_features(
        spending, X, y, count, epsilon=spending.left
    ),
}


@pytest.mark.parametrize("name", PURE)
def test_every_choice_has_the_noise_that_is_booked(name):
    """The exponential mechanism costs range/β, and neighbours move scores no further (Lemma 43).

    Neighbours are compared under the same releases: the first choice of each, and all later ones
    where the features chosen before are the same.
    """
    rng = np.random.default_rng(11)
    X = rng.uniform(-1, 1, size=(30, 5))
    X[:, 1] = X[:, 0]
    y = X[:, 0] + 0.1 * rng.normal(size=30)
    here = releases(PURE[name], X, y, 3, 2.0)
    assert len(here) == (5 if name == "centres" else 3)
    for mechanism, _, booked in here:
        cost = Fraction(mechanism.score_range) / Fraction(mechanism.scale)
        assert booked * Fraction(999, 1000) < cost <= booked
        assert mechanism.score_range >= 2 * mechanism.sensitivity
    moved = [0.0] * len(here)
    for cells in itertools.product((-1.0, 0.0, 1.0), repeat=2):
        row = np.full(5, cells[0])
        there = releases(PURE[name], np.vstack((X, row)), np.append(y, cells[1]), 3, 2.0)
        for place, (one, other) in enumerate(zip(here, there, strict=True)):
            if np.size(one[1]) == np.size(other[1]) and one[0] == other[0]:
                change = np.abs(np.asarray(other[1]) - np.asarray(one[1])).max() * one[0].unit
                moved[place] = max(moved[place], float(change))
    assert moved[0] > 0
    if name == "centres":
        assert max(moved) <= 1.0
    assert moved[0] <= here[0][0].sensitivity


def test_a_later_rank_choice_has_noise_for_what_one_row_moves():
    """Lemma 44: one row moves a score less the mean of others by more than a score alone."""
    n, unit = 50, tukey.UNITS
    x = np.arange(n + 1.0)
    y = np.append(x[:-1], -1.0)

    def gain(rows):
        alike = tukey.kendall_score(x[:rows], x[:rows])  # with a copy, which was chosen before
        return tukey.kendall_score(x[:rows], y[:rows]) - alike

    moved = abs(gain(n + 1) - gain(n)) / unit
    assert moved > 1.9
    X = np.column_stack((x, x, y, -y)) / n
    _, *later = releases(PURE["features"], X, y / n, 3, 2.0)
    assert len(later) == 2
    for mechanism, *_ in later:
        assert mechanism.unit == 1 / unit
        assert moved <= mechanism.sensitivity


# --- whole fits -----------------------------------------------------------------------------------


def rows(n=12_000, d=4):
    rng = np.random.default_rng(6)
    X = rng.uniform(-1, 1, size=(n, d))
    return X, X[:, 0] - 2 * X[:, 1] + 0.5 + 0.3 * rng.normal(size=n)


SETTING = {"delta": 1e-6, "feature_bounds": np.tile((-3.0, 2.0), (4, 1)), "target_bounds": (-5, 9)}


@pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning")
@pytest.mark.parametrize("kind", [TukeyEM, KendallTukeyEM])
def test_it_learns_and_spends_no_more_than_was_granted(kind):
    """Measured: .97 and more."""
    X, y = rows()
    noise = Watched()
    model = kind(epsilon=2.0, n_rows=len(X), random_state=noise, **SETTING).fit(X, y)
    assert model.passed_
    assert noise.left[-1] == 0
    missed = ((y - model.predict(X)) ** 2).mean() / y.var()
    assert missed < 0.1


@pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning")
def test_too_few_rows_give_a_constant():
    X, y = rows(200)
    model = TukeyEM(epsilon=1.0, n_rows=200, random_state=1, **SETTING).fit(X, y)
    assert not model.passed_
    assert not model.coef_.any()
    assert model.intercept_ == 2.0  # the middle of the target's bounds


def test_the_part_of_a_row_is_secret_and_depends_on_no_other_row():
    """Lemma 43: a row that comes or goes must not send others elsewhere."""
    for n_rows in (1, 7, 299):
        parts = tukey.drawn_parts(300, 40, SeededNoise(3))
        assert np.array_equal(parts[:n_rows], tukey.drawn_parts(n_rows, 40, SeededNoise(3)))
    others = tukey.drawn_parts(300, 40, SeededNoise(4))
    assert 0 < (parts == others).mean() < 0.2
    counts = np.bincount(tukey.drawn_parts(40_000, 40, SeededNoise(5)), minlength=40)
    assert chi_square(counts, np.full(40, 1 / 40)) > 1e-6


def test_one_row_changes_one_model():
    X, y = rows(3000)
    parts = tukey.drawn_parts(len(X), 40, SeededNoise(3))
    assert np.bincount(parts, minlength=40).min() > 30
    with_it = tukey.small_models(X, y, parts, 40)
    without = tukey.small_models(X[:-1], y[:-1], parts[:-1], 40)
    changed = (with_it != without).any(axis=1)
    assert np.flatnonzero(changed).tolist() == [parts[-1]]


def moved_too_far(mechanism, here, there):
    """Whether what a mechanism is given moved by more than it asks for."""
    match mechanism:
        case NoisyMax():
            return np.abs(here - there).max() > mechanism.sensitivity / mechanism.unit
        case tukey.SafetyTest():
            return abs(here - there) > 1
        case tukey.DeepPoint():
            mine, other = here.sizes, there.sizes
            return any(not mine[i + 1] <= other[i] <= mine[i - 1] for i in range(1, len(mine) - 2))
    raise AssertionError(mechanism)


@pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning")
def test_no_mechanism_of_a_fit_is_moved_further_than_it_asks_for(monkeypatch):
    """Whole fits without one row, the same coins and releases; two rows more are seen."""
    monkeypatch.setattr(tukey, "MOST_FEATURES", 3)
    X, y = rows(6000)
    X[-3:], y[-3:] = (-3.0, 2.0, -3.0, 2.0), 9.0
    told = {"epsilon": 3.0, "n_rows": 6000, **SETTING}
    first = Watched()
    KendallTukeyEM(random_state=first, **told).fit(X, y)
    assert len(first.seen) == 3 + 3 + 2

    def too_far(n_rows):
        other = Watched(first.released)
        KendallTukeyEM(random_state=other, **told).fit(X[:n_rows], y[:n_rows])
        pairs = zip(first.seen, other.seen, strict=True)
        return [
            type(mechanism).__name__
            for (mechanism, here), (_, there) in pairs
            if moved_too_far(mechanism, here, there)
        ]

    assert too_far(5999) == []
    assert "NoisyMax" in too_far(5997)


def test_what_is_left_is_a_limit():
    spending = tukey.PureSpending(SeededNoise(1), 1.0)
    with pytest.raises(BudgetExceeded, match="does not fit"):
        spending.release(lambda _v, _n: 0, 0, epsilon=Fraction(11, 10), purpose="too much")
