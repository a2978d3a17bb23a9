"""Ranks, gaps and defeats of a contest, and where it is played."""

from dataclasses import replace

import numpy as np
import pytest

from dpscreen.families import BINOMIAL, GAUSSIAN
from dpscreen.planning.arenas import NoArena, simulated
from dpscreen.planning.methods import METHODS, ON_REQUEST, OURS
from dpscreen.planning.standings import (
    CONTESTED,
    NOT_PRIVATE,
    ContestRules,
    PlayedFit,
    Standings,
    play,
)


def fit(table, method, scores, *, epsilon=1.0, refused=False):
    return [
        PlayedFit(table, "numbers", 100, 3, method, epsilon, trial, score, refused, 0.5)
        for trial, score in enumerate(scores)
    ]


def standings():
    found = []
    for table, ours, other, third in (("a", 0.5, 0.6, 0.1), ("b", 0.4, 0.2, 0.2)):
        found += fit(table, NOT_PRIVATE, [0.7, 0.7], epsilon=None)
        found += fit(table, "private-lasso", [ours, ours + 0.1])
        found += fit(table, "adassp", [other, other + 0.2])
        found += fit(table, "dp-gcd", [third, third], refused=table == "a")
    return Standings(tuple(found))


def test_ranks_and_gaps_are_means_over_tables():
    lines = standings().ranks("numbers", 1.0).set_index("method")
    assert list(lines.index) == ["private-lasso", "adassp", "dp-gcd"]
    lasso = lines.loc["private-lasso"]
    assert (lasso["rank"], lasso["firsts"], lasso["refused"]) == (1.5, 1, 0)
    assert lasso["score"] == pytest.approx((0.55 + 0.45) / 2)
    assert lasso["gap"] == pytest.approx(0.7 - 0.5)
    assert lines["rank"]["adassp"] == 1.5
    assert lines["refused"]["dp-gcd"] == 1
    assert standings().divisions == ("numbers",)


def test_a_defeat_has_the_error_of_the_difference():
    (lost,) = standings().defeats("numbers", 1.0)
    assert (lost["table"], lost["ours"], lost["winner"]) == ("a", "private-lasso", "adassp")
    assert lost["difference"] == pytest.approx(0.15)
    assert lost["error"] == pytest.approx(0.05)


def test_every_method_has_its_place():
    assert set(CONTESTED) == set(METHODS) - set(ON_REQUEST)
    assert set(OURS) <= set(METHODS)


def test_designs_are_drawn_anew_within_their_bounds():
    for name, arena in simulated("1").items():
        first, again, other = arena(0), arena(0), arena(1)
        np.testing.assert_array_equal(first.X, again.X)
        assert not np.array_equal(first.y, other.y)
        first.check()
        assert first.family == (BINOMIAL if name.endswith("outcomes") else GAUSSIAN)
        low, high = first.feature_bounds.T
        assert ((low <= first.X) & (high >= first.X)).all()
        assert first.target_bounds[0] <= first.y.min() < first.y.max() <= first.target_bounds[1]


def test_rows_are_drawn_and_too_few_are_refused():
    table = simulated()["simulated, few rows"](0)
    assert len(table.drawn(50).y) == 50
    assert table.drawn(1000) is table
    with pytest.raises(NoArena, match="fewer than 20 rows"):
        table.drawn(10).check()
    flat = replace(table, y=np.zeros(400))
    with pytest.raises(NoArena, match="the same in all rows"):
        flat.check()
    with pytest.raises(NoArena, match="fewer than 5 rows"):
        replace(flat, y=np.eye(400)[0], family=BINOMIAL).check()


def test_a_refusal_has_the_worst_score():
    arenas = {"few": simulated()["simulated, few rows"]}
    found = play(arenas, ContestRules((0.5,), 1e-6, 1, ("private-ols",)))
    (line,) = found.ranks("simulated numbers", 0.5).to_dict("records")
    assert (line["score"], line["refused"]) == (GAUSSIAN.simulation.worst, 1)
