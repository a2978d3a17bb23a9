"""Units whose rows count together: one with any rows moves no input beyond what was booked.

(docs/theory/mechanisms.md, Lemma 89)
"""

import warnings
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replays import (
    CASES,
    DEFAULTS,
    STYLES,
    EveryRates,
    EveryTable,
    OddsOfSigns,
    chosen,
    differing,
    examples,
    rows_to_add,
    shown_by_fit,
    styled_rows,
    wild,
)

from dpscreen.models.intake import take_ids
from dpscreen.privacy.replay import moves, record, replay
from dpscreen.rows import mixed, owners
from dpscreen.rows.lattice import UNITS, LatticePoint
from dpscreen.rows.owners import Owners, row_digests
from dpscreen.rows.source import ArrayRows

pytestmark = pytest.mark.filterwarnings("ignore")
TABLES = [case for case in CASES if case.estimator in (EveryTable, OddsOfSigns, EveryRates)]
USUAL = [case for case in TABLES if case in DEFAULTS]
MOST = 9  # rows of a unit


def people(style, seed, n):
    """Return rows, ids, and which of these rows are of one unit, anywhere among the others."""
    rng = np.random.default_rng(seed)
    X, y = styled_rows(style, seed, n)
    ids = rng.integers(0, max(1, n // 3), n)
    added = rows_to_add(rng, X, y, int(rng.integers(1, MOST + 1)))
    at = rng.integers(n + 1, size=len(added))
    X, y = np.insert(X, at, added[:, :-1], axis=0), np.insert(y, at, added[:, -1])
    return X, y, np.insert(ids, at, -5)


def fitted(model, X, y, ids):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y, unit=ids)


def too_far(case, told, *, swapped=False, share=0.0):
    X, y, ids = people(*told)
    others = ids != -5
    tables = [(X[others], y[others], ids[others]), (X, y, ids)]
    before, after = tables[::-1] if swapped else tables
    with record(steer=wild(told[1], share)) as first:
        fitted(case.model(), *before)
    with replay(first) as second:
        fitted(case.model(), *after)
    return [f"{move.purpose}: {move.part}" for move in moves(first, second) if not move.within]


@pytest.mark.parametrize(("share", "swapped"), [(0.0, False), (1.0, True)])
@pytest.mark.parametrize("case", TABLES, ids=str)
def test_no_input_moves_beyond_what_was_booked(case, share, swapped):
    told = chosen(f"{case} {share}", STYLES, (3, 30, 100))
    assert too_far(case, told, swapped=swapped, share=share) == []


@pytest.mark.slow
@pytest.mark.parametrize("case", TABLES, ids=str)
@given(
    told=st.tuples(st.sampled_from(sorted(STYLES)), st.integers(0, 2**32), st.integers(1, 60)),
    share=st.sampled_from([0.0, 0.3, 1.0]),
)
@examples(100)
def test_no_input_moves_beyond_what_was_booked_widely(case, told, share):
    assert too_far(case, told, share=share, swapped=bool(told[1] % 2)) == []


def sums_for_means(monkeypatch):
    monkeypatch.setattr(Owners, "means", lambda self, rows, levels: sums_of(self, rows, levels))


def sums_of(whose, rows, levels):
    found = np.add.reduceat(rows.astype(np.int64) * levels, whose.starts, axis=1)
    return np.clip(found // owners.LEVELS, -(2**15), 2**15 - 1).astype(np.int16)


def an_unshared_gram(monkeypatch):
    monkeypatch.setattr(Owners, "shared", lambda _, rows: rows)


def means_that_are_not_cut(monkeypatch):
    sums_for_means(monkeypatch)
    monkeypatch.setattr(mixed, "capped", lambda _squares, residuals, _cap: residuals)


def all_rows_as_singles(monkeypatch):
    monkeypatch.setattr(Owners, "singles", property(lambda self: np.ones(self.n_rows, dtype=bool)))


def a_count_of_rows(monkeypatch):
    monkeypatch.setattr(ArrayRows, "n_units", property(lambda self: self.n_rows))


@pytest.mark.parametrize(
    "mistake", [an_unshared_gram, means_that_are_not_cut, all_rows_as_singles, a_count_of_rows]
)
@pytest.mark.parametrize("case", USUAL, ids=str)
def test_a_mistake_moves_an_input_too_far(case, mistake, monkeypatch):
    mistake(monkeypatch)
    seeds = product(("constant", "normal"), range(12))
    assert any(too_far(case, (style, seed, 40)) for style, seed in seeds)


@pytest.mark.parametrize("case", USUAL[1:], ids=str)
def test_a_curvature_of_all_rows_moves_too_far(case, monkeypatch):
    curved = LatticePoint.curved_gram, LatticePoint.curved_total

    def unshared(method):
        def answer(self, *args):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(self.design, "owners", None)
                return method(self, *args)

        return answer

    for method in curved:
        monkeypatch.setattr(LatticePoint, method.__name__, unshared(method))
    seeds = product(("constant", "normal"), range(12))
    found = [move for style, seed in seeds for move in too_far(case, (style, seed, 40))]
    assert {move.partition(":")[0] for move in found} == {"curvature of the loss"}


def test_sums_in_place_of_means_are_cut_as_well(monkeypatch):
    # The cut is by the norm of what is cut: a mean is what the estimate is, not what is safe.
    sums_for_means(monkeypatch)
    assert not any(too_far(case, ("normal", 0, 40)) for case in TABLES)


@pytest.mark.parametrize("case", TABLES, ids=str)
def test_other_people_under_the_same_releases_show_the_same(case):
    first, second = people("normal", 1, 120), people("uniform and wide", 2, 77)
    with record() as before:
        one = shown_by_fit(case.model(), *first[:2], unit=first[2])
    with replay(before):
        other = shown_by_fit(case.model(), *second[:2], unit=second[2])
    assert differing(one, other) == []


# --- brute force ----------------------------------------------------------------------------------


@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 2**32))
def test_means_and_shared_rows_are_those_of_their_definition(n, n_units, seed):
    rng = np.random.default_rng(seed)
    ids, d = rng.integers(0, n_units, n), 3
    X, y = rng.choice([0.0, 1.0, -0.5], size=(n, d)), rng.choice([0.0, 1.0], size=n)
    order, whose = Owners.of(np.column_stack((ids.astype(np.uint64), row_digests(X, y))))
    ids, rows = ids[order], rng.integers(-(2**14), 2**14 + 1, (d, n)).astype(np.int16)
    levels = rng.integers(-(2**14), 2**14 + 1, n).astype(np.int16)
    assert len(whose) == len(set(ids.tolist()))
    means, shared = whose.means(rows, levels), whose.shared(rows).astype(np.int64)
    for k, (start, size) in enumerate(zip(whose.starts, whose.sizes, strict=True)):
        own = slice(start, start + size)
        assert (ids[own] == ids[start]).all()
        assert (ids == ids[start]).sum() == size
        exact = rows[:, own].astype(np.int64) @ levels[own].astype(np.int64)
        assert np.abs(means[:, k] - exact / (size * 2**14)).max() <= 0.5
        whole = (rows[:, own].astype(np.int64) ** 2).sum()
        assert (shared[:, own] ** 2).sum() * size <= whole
    assert whose.singles.sum() == len(whose)
    for size in (1, 4, 1000):
        parts = list(whose.parts(size))
        assert [part.start for part in parts[1:]] == [part.stop for part in parts[:-1]]
        alike = [whose.part(part).means(rows[:, part], levels[part]) for part in parts]
        np.testing.assert_array_equal(np.concatenate(alike, axis=1), means)


@given(st.integers(1, 30), st.integers(0, 2**32))
def test_which_row_stands_for_a_unit_depends_on_its_rows_alone(n, seed):
    rng = np.random.default_rng(seed)
    X, y, ids = rng.choice([0.0, 1.0], (n, 2)), rng.choice([0.0, 1.0], n), rng.integers(0, 5, n)

    def standing(chosen):
        rows = ArrayRows(X[chosen], y[chosen]).owned(ids[chosen])
        single = rows.singles
        return sorted(map(tuple, np.column_stack((single.X, single.y)).tolist()))

    shuffled = rng.permutation(n)
    assert standing(shuffled) == standing(np.arange(n))
    for one in set(ids.tolist()):
        alone, others = np.flatnonzero(ids == one), np.flatnonzero(ids != one)
        rest = standing(others) if others.size else []
        assert sorted(standing(alone) + rest) == standing(np.arange(n))


def test_the_gram_matrix_of_units_has_their_bound():
    # Nine equal rows of norm 1: the weighted norm of Lemma 26 is reached, and not passed.
    X = np.tile([1.0, 0.0], (9, 1))
    rows = np.round(X.T * 2**14).astype(np.int16)
    _, whose = Owners.of(np.zeros((9, 3), dtype=np.uint64))
    gram = whose.shared(rows).astype(np.int64) @ whose.shared(rows).astype(np.int64).T
    assert UNITS * (1 - 1e-3) < gram[0, 0] <= UNITS


@pytest.mark.parametrize("form", [list, pd.Series, pl.Series])
@pytest.mark.parametrize("other", [None, float("nan"), 0.5, "x"])
def test_no_id_changes_whose_another_row_is(form, other):
    """An id that is missing made floats of a list of numbers, which merged 2^53 and 2^53 + 1."""
    for texts in (["", "a"], np.array(["", "a"]), [2**53, 7], np.array([2.0**53, 7])):
        codes = take_ids(EveryTable(epsilon=1, delta=1e-6), np.zeros((2, 2)), texts, None)[1]
        assert codes[0] == -1 != codes[1]
    if form is pl.Series and other is not None:
        pytest.skip("a column of polars has one kind of cell")
    numbers = [2**53 - 40 + k // 2 for k in range(40)]
    if form is pd.Series:
        made = partial(pd.Series, dtype="Int64" if other is None else object)
    else:
        made = form
    model, X = EveryTable(epsilon=1, delta=1e-6), np.zeros((41, 2))
    alone = take_ids(model, X[:40], made(numbers), None)[1]
    beside = take_ids(model, X, made([*numbers, other]), None)[1]
    assert np.array_equal(beside[:40], alone)
    assert len({*alone}) == 20
