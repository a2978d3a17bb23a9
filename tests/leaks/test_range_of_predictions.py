"""The range of features in predictions: other rows, neighbouring rows and the budget.

Which of the three ranges is released is forced, so that all of them are attacked, with intervals
from a second half and on rows from anywhere (docs/theory/quality.md, Lemma 55).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from replay_sources import SPARSE, as_array, as_dask_array, as_frame, as_mapped_file
from replays import QUIET, Case, OfSigns, differing, moves_between, shown_by_fit

from dpscreen import PrivateLasso
from dpscreen.models import intake
from dpscreen.privacy import ZCDP, Budget
from dpscreen.privacy.replay import record, replay
from dpscreen.solvers.prediction_range import FACTORS, RANGE_SHARE

pytestmark = QUIET
PURPOSE = "range of the features in predictions"
WIDE = {"epsilon": 300.0, "feature_bounds": (-1e4, 3e4), "target_bounds": (-1e5, 2e4)}
CASES = {
    name: Case(kind, WIDE | options, name)
    for name, kind, options in (
        ("line", PrivateLasso, {}),
        ("path", PrivateLasso, {"solver": "stagewise"}),
        ("max_features", PrivateLasso, {"max_features": 1}),
        ("rows_per_unit", PrivateLasso, {"rows_per_unit": 3, "epsilon": 3_000.0}),
        ("split", PrivateLasso, {"inference": "split"}),
        ("odds", OfSigns, {}),
        ("odds, split", OfSigns, {"inference": "split"}),
        ("odds, path", OfSigns, {"n_iter": 9, "quality": False}),
    )
}
each_case = pytest.mark.parametrize("case", CASES.values(), ids=str)
each_range = pytest.mark.parametrize("chosen", range(len(FACTORS)))


def rows(seed, n=400, slope=2.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(3, size=(n, 3)) * 4 + 20
    return X, slope * (X[:, 0] - 20) + rng.normal(size=n)


def forced(chosen):
    """Return who releases one of the ranges."""
    return lambda purpose, _mechanism, _size: chosen if purpose == PURPOSE else None


def compared(transcript):
    return [one for one in transcript.passages if one.purpose == PURPOSE]


# --- other rows -----------------------------------------------------------------------------------


OTHERS = {
    "rows without an effect": rows(2, 171, 0.0),
    "nothing": (np.zeros((41, 3)), np.zeros(41)),
    "rows beyond all bounds": (np.full((90, 3), -1e300), np.full(90, 1e300)),
}


@each_range
@each_case
def test_other_rows_change_nothing_but_releases_whose_costs_are_the_budget(case, chosen):
    model = case.model()
    with record(steer=forced(chosen)) as transcript:
        one = shown_by_fit(model, *rows(1), words=False)
    assert model.fallback_ is None
    assert_costs_add_up(model, transcript)
    for other in OTHERS.values():
        with replay(transcript):
            assert differing(one, shown_by_fit(case.model(), *other, words=False)) == []


@each_case
def test_the_range_that_is_released_predicts(case):
    widths = []
    for chosen in range(len(FACTORS)):
        with record(steer=forced(chosen)):
            widths.append(np.ptp(case.model().fit(*rows(1)).feature_bounds_[0]))
    assert widths[0] < widths[1] <= widths[2]


def assert_costs_add_up(model, transcript):
    limit = ZCDP.within(Budget(model.epsilon, model.delta))
    costs = [Fraction(0)] * 3
    for one in transcript.passages:
        costs[one.account] += one.cost.rho
    assert 0.999 * limit.rho < costs[0] + max(costs[1:]) <= limit.rho
    (cost,) = [one.cost.rho for one in compared(transcript)]
    share = limit.rho - (costs[0] if transcript.coins else 0)
    assert 0.999 * RANGE_SHARE * share < cost <= Fraction(RANGE_SHARE) * share


@pytest.mark.parametrize(
    "source", [as_array, as_frame, as_mapped_file, as_dask_array], ids=lambda one: one.__name__
)
@pytest.mark.parametrize("case", [CASES["line"], CASES["split"], CASES["odds"]], ids=str)
def test_rows_from_anywhere_are_compared_alike(case, source, tmp_path, monkeypatch):
    monkeypatch.setattr(intake, "STREAMED_BYTES", 0)
    shown = []
    with record(steer=forced(2)) as transcript:
        shown.append(shown_by_fit(case.model(), *source(*rows(1), tmp_path), words=False))
    with replay(transcript) as other:
        shown.append(shown_by_fit(case.model(), *source(*rows(2, 171), tmp_path), words=False))
    assert differing(*shown) == []
    with replay(transcript, coins=transcript.coins) as in_memory:
        case.model().fit(*rows(1))
    given = [compared(one)[0].given.tolist() for one in (transcript, in_memory, other)]
    assert given[0] == given[1] != given[2]


@pytest.mark.parametrize("source", SPARSE, ids=lambda one: one.__name__)
def test_sparse_rows_keep_their_bounds_and_compare_nothing(source, tmp_path):
    for case in CASES.values():
        with record() as transcript:
            case.model().fit(*source(*rows(1), tmp_path))
        assert compared(transcript) == []


# --- neighbouring rows ----------------------------------------------------------------------------


@each_case
def test_the_worst_row_moves_the_losses_by_what_is_booked_and_nearly_by_as_much(case):
    """A row that is right in one range and wrong in another one moves them apart."""
    k, parts = case.rows_per_unit, []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y = rows(seed)
        far = 20 + rng.choice([-1.0, 1.0], size=3) * 10 ** rng.uniform(1, 4)
        target = rng.choice([0.0, 2 * (far[0] - 20), -1e9, 1e9])
        more = np.append(X, [far] * k, axis=0), np.append(y, [target] * k)
        coins = rng.random(len(X)) < 0.5
        pair = [coins], [np.append(coins, [True] * k)]
        found = moves_between(case.model(), ((X, y), more), coins=pair, steer=forced(seed % 3))
        assert all(move.within for move in found)
        parts += [move.part for move in found if move.purpose == PURPOSE]
    assert len(parts) == 12
    assert max(parts) > 0.9


# --- what a range does not change -----------------------------------------------------------------


@pytest.mark.parametrize("case", [CASES["split"], CASES["odds, split"]], ids=str)
def test_intervals_do_not_depend_on_the_range(case):
    """The second half is placed where features were estimated, whatever range predicts."""
    told = []
    for chosen in range(len(FACTORS)):
        with record(steer=forced(chosen)):
            told.append(case.model().fit(*rows(1, 4_000, slope=0.1)).inference_)
    assert told[0].available
    assert told[0] == told[1] == told[2]
