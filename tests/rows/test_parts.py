"""Rows in parts: every answer is that of the rows in one piece, whatever becomes of the parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpscreen.rows.fits import level_sums, log_odds_counts
from dpscreen.rows.lattice import LatticeDesign, RelaxedRule
from dpscreen.rows.parts import PartedDesign, Question, RowPart
from dpscreen.rows.source import PublicUnits
from dpscreen.rows.streamed import RowsChanged, StreamedDesign
from dpscreen.rows.sums import (
    LEVELS,
    ColumnMap,
    ShortRows,
    counts_by_octave,
    counts_on_grid,
    level_moments,
)


class PartsInMemory(PartedDesign):
    """Parts that are lost and made anew now and then."""

    def __init__(self, designs, lose=lambda: False):
        super().__init__(designs[0].n_features)
        self._designs, self._lose = designs, lose
        self._parts = [RowPart(design) for design in designs]

    def total(self, question: Question):
        for k, design in enumerate(self._designs):
            if self._lose():
                self._parts[k] = RowPart(design)
        return np.sum([part.answer(question) for part in self._parts], axis=0)


def rows_on_lattice(rng, n_rows, d):
    columns = rng.integers(-LEVELS, LEVELS + 1, size=(d + 1, n_rows)).astype(np.int16)
    columns[d] = LEVELS
    return LatticeDesign(columns, rng.normal(size=n_rows))


def cut(design, edges) -> list[LatticeDesign]:
    return [
        LatticeDesign(design.columns[:, rows], design.target[rows])
        for rows in np.split(np.arange(design.n_rows), edges)
    ]


def streamed(parts, read_features: list | None = None) -> StreamedDesign:
    def read(features: Sequence[int] | None) -> Iterator[np.ndarray]:
        if read_features is not None:
            read_features.append(features)
        chosen = slice(None) if features is None else list(features)
        for part in parts:
            yield part.columns[chosen]

    target = np.concatenate([part.target for part in parts])
    return StreamedDesign(read, target, n_columns=parts[0].n_features, constant=True)


QUESTIONS = [
    lambda point, d: point.clipped_sums(0.7),
    lambda point, d: point.residual_total(1.3),
    lambda point, d: point.residual_counts(0.4),
    lambda point, d: point.relaxed_sums(RelaxedRule(2.0, 3.0)),
    lambda point, d: point.short_gradient(0.7, d, 0.9),
    lambda point, d: point.short_products(0.7, ShortRows(np.arange(0, d + 1, 2), 1.1)),
    lambda point, d: point.design.short_gram(ShortRows(np.arange(0, d + 1), 0.6, constant=900)),
    lambda point, d: point.fit_total(level_sums, (-1.0, 1.5), 0.8),
    lambda point, d: point.fit_total(log_odds_counts),
    lambda point, d: point.curved_gram(ShortRows(np.arange(0, d + 1), 0.6, constant=900)),
    lambda point, d: point.weights,
]


@given(
    seed=st.integers(0, 10**6),
    n_rows=st.integers(1, 60),
    d=st.integers(1, 6),
    edges=st.lists(st.integers(0, 60), max_size=4).map(sorted),
    kind=st.sampled_from(["parts", "losing", "streamed"]),
)
def test_any_walk_gives_the_same_answers_in_any_parts(seed, n_rows, d, edges, kind):
    rng = np.random.default_rng(seed)
    whole = rows_on_lattice(rng, n_rows, d)
    parts = cut(whole, [min(edge, n_rows) for edge in edges])
    other = {
        "parts": lambda: PartsInMemory(parts),
        "losing": lambda: PartsInMemory(parts, lambda: rng.random() < 0.3),
        "streamed": lambda: streamed(parts),
    }[kind]()
    np.testing.assert_array_equal(whole.column_squares(), other.column_squares())
    weights = rng.normal(size=d + 1)
    for start in (lambda design: design.start(0.01), lambda design: design.at(weights, scale=0.5)):
        here, there = start(whole), start(other)
        for _ in range(6):
            feature, amount = int(rng.integers(d + 1)), int(rng.integers(-50, 50))
            for point in (here, there):
                point.add(feature, amount)
                if amount % 5 == 0:
                    point.zero(feature)
            ask = QUESTIONS[int(rng.integers(len(QUESTIONS)))]
            np.testing.assert_array_equal(ask(here, d), ask(there, d))


def test_an_older_question_is_answered_after_a_newer_one():
    """A cluster may ask again what it asked before: then the walk is followed anew."""
    rng = np.random.default_rng(3)
    whole = rows_on_lattice(rng, 30, 4)
    asked: list[Question] = []

    class Recorded(PartsInMemory):
        def total(self, question):
            asked.append(question)
            return super().total(question)

    design = Recorded(cut(whole, [10]))
    point, answers = design.start(0.1), []
    for feature in (0, 2, 4):
        point.add(feature, 3)
        answers.append(point.clipped_sums(1.0))
    for k in (0, 2, 1):
        np.testing.assert_array_equal(design.total(asked[k]), answers[k])


def test_questions_about_residuals_read_only_what_has_moved():
    read: list = []
    design = streamed(cut(rows_on_lattice(np.random.default_rng(4), 20, 5), [7]), read)
    point = design.start(0.1)
    point.residual_total(1.0)
    assert read == []
    point.add(3, 2)
    point.add(5, 1)  # the constant
    point.residual_counts(1.0)
    assert read == [[3]]
    point.residual_total(1.0)
    assert read == [[3]]
    point.add(1, 1)
    point.clipped_sums(1.0)
    assert read == [[3], None]


@pytest.mark.parametrize("change", ["more", "fewer"])
def test_rows_that_change_on_the_way_are_refused(change):
    parts = cut(rows_on_lattice(np.random.default_rng(5), 20, 3), [7])
    design = streamed(parts)
    point = design.start(0.1)
    point.clipped_sums(1.0)
    parts.append(parts[0]) if change == "more" else parts.pop()
    with pytest.raises(RowsChanged, match="stays booked"):
        point.clipped_sums(1.0)


def test_missing_cells_are_in_no_histogram_and_at_the_centre_of_the_lattice():
    """Compiled loops check no index: a NaN must not become one."""
    X, columns = np.full((5, 2), np.nan), ColumnMap.of_bounds(np.array([[-1.0, 1.0]] * 2))
    for counts, whole in (
        (counts_on_grid(X, columns, np.full(2, -0.5), np.full(2, 8.0), 8), 0),
        (counts_by_octave(X, columns, np.arange(-20, 2)), 10),
    ):
        assert counts.sum() == whole
    units = PublicUnits(np.array([[-1.0, 1.0]] * 2), np.array([-1.0, 1.0]), constant=False)
    assert not units.lattice_columns(X).any()
    assert not level_moments(X, columns).any()
