"""One row or unit more, the same releases: no input of a mechanism moves beyond what was booked.

In the norm that the mechanism requires, compared without rounding, and in rows that coins split
the inputs of one half only. For every transcript, honest or wild, as a proof is for all of them
(docs/evidence.md).
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from replay_sources import (
    FILES,
    KINDS,
    OF_FILES,
    SCHEMA,
    from_csv,
    from_encoded_frame,
    from_parquet,
    table,
)
from replays import (
    CASES,
    DEFAULTS,
    QUIET,
    STYLES,
    EveryTable,
    Neighbours,
    OddsOfSigns,
    OfSigns,
    chosen,
    examples,
    moved_too_far,
    moves_between,
    styled_rows,
    wild,
)

from dpscreen import PrivateLasso, scan
from dpscreen.privacy import ZCDP, Budget, named_seed
from dpscreen.privacy.replay import record
from dpscreen.tables.schema import TableSchema

PROVEN = [case for case in CASES if not case.published]
SIZES, FEW = (1, 2, 9, 60, 200), (1, 5, 50)
each_case = pytest.mark.parametrize("case", PROVEN, ids=str)
pytestmark = QUIET


@st.composite
def problems(draw):
    """Draw neighbouring rows of any style, dense or sparse, and how wild the transcript is."""
    style, n = draw(st.sampled_from(sorted(STYLES))), draw(st.sampled_from(SIZES))
    seed, share = draw(st.integers(0, 2**32)), draw(st.sampled_from([0.0, 0.3, 1.0]))
    return (style, seed, n), share, draw(st.booleans()), draw(st.booleans())


def too_far(case, problem):
    told, share, swapped, sparse = problem
    seed = told[1]
    pair = Neighbours.of(case.rows(*told), seed, at_most=case.rows_per_unit)
    wrap = scipy.sparse.csr_array if sparse and case.takes_sparse else None
    return moved_too_far(case, pair.swapped() if swapped else pair, wild(seed, share), wrap)


@pytest.mark.parametrize(("share", "swapped"), [(0.0, False), (1.0, True)])
@each_case
def test_no_input_moves_beyond_what_was_booked(case, share, swapped):
    told = chosen(f"{case} {share}", STYLES, SIZES)
    assert too_far(case, (told, share, swapped, told[1] % 3 == 0)) == []


@pytest.mark.slow
@each_case
@given(problem=problems())
@examples(100)
def test_no_input_moves_beyond_what_was_booked_widely(case, problem):
    assert too_far(case, problem) == []


# --- people of a table ----------------------------------------------------------------------------


def tables_with_one_more_person(kind, seed, n):
    """Return a table, and the same with up to four rows of somebody, in any two orders."""
    rng, made = np.random.default_rng(seed), table(kind, seed, n)
    made.loc[len(made)] = ["somebody", "40", "a", "true", "3", "1.5"]  # so that a row counts
    more = table(str(rng.choice(KINDS)), seed + 1, int(rng.integers(1, 5))).assign(person="new")
    whole = pd.concat((made, more))
    return made.iloc[rng.permutation(len(made))], whole.iloc[rng.permutation(len(whole))]


PEOPLE = st.tuples(st.sampled_from(KINDS), st.integers(0, 2**32), st.sampled_from(FEW))


def too_far_for_a_person(case, source, folder, told):
    fewer, more = tables_with_one_more_person(*told)
    rows = source(fewer, folder / "fewer"), source(more, folder / "more")
    found = moves_between(case.model(**OF_FILES), rows, steer=wild(told[1], 0.3))
    assert max(move.part for move in found) > 0 or told[0] == "full of holes"
    return [f"{move.purpose}: {move.part}" for move in found if not move.within]


@pytest.fixture
def folder(tmp_path):
    for name in ("fewer", "more"):
        (tmp_path / name).mkdir()
    return tmp_path


ONE_ROW_EACH = (OfSigns, OddsOfSigns)
OF_PEOPLE = [  # whose rows may be several of one person, with a number as target
    case
    for case in DEFAULTS
    if not case.options.get("inference") and case.estimator not in ONE_ROW_EACH
]


@pytest.mark.parametrize(
    "source", [from_csv, from_parquet, from_encoded_frame], ids=lambda one: one.__name__
)
@pytest.mark.parametrize("case", OF_PEOPLE[:3], ids=str)
def test_a_person_moves_no_input_beyond_what_was_booked(case, source, folder):
    told = chosen(f"{case} {source.__name__}", KINDS, FEW)
    assert too_far_for_a_person(case, source, folder, told) == []


@pytest.mark.slow
@pytest.mark.parametrize("source", FILES, ids=lambda one: one.__name__)
@pytest.mark.parametrize("case", OF_PEOPLE, ids=str)
@given(told=PEOPLE)
@examples(40)
def test_a_person_moves_no_input_beyond_what_was_booked_widely(case, source, folder, told):
    assert too_far_for_a_person(case, source, folder, told) == []


FORMULA = "score ~ bs(age, knots=[40, 60]) + arm*smoker + visits"
OF_FORMULA = {"formula": FORMULA, "unit": "person", "rows_per_unit": 3}
OF_TERMS = {
    "lasso": partial(PrivateLasso, max_features=2),
    "table": EveryTable,
    "table of interest": partial(EveryTable, interest=["visits"], required=["smoker"]),
}


@pytest.mark.parametrize("name", OF_TERMS)
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_person_moves_no_input_of_a_formula_beyond_what_was_booked(name, share, tmp_path):
    """One table is a frame, the other a file: the rows that count are the same in both."""
    schema = TableSchema.from_dict(SCHEMA | {"dpscreen": OF_FORMULA})
    seeds = named_seed(f"{name} {share}"), named_seed(f"{name} {share} again")
    for kind, seed in product(("plain", "full of holes", "few people"), seeds):
        fewer, more = tables_with_one_more_person(kind, seed, 50)
        more.to_csv(tmp_path / f"{kind}{seed}.csv", index=False)
        tables = (fewer,), (scan(tmp_path / f"{kind}{seed}.csv", schema),)
        model = OF_TERMS[name](epsilon=40.0, delta=1e-6, random_state=7, schema=schema)
        found = moves_between(model, tables, steer=wild(seed, share))
        assert max(move.part for move in found) > 0
        assert [move.purpose for move in found if not move.within] == []


# --- what others found by recording and replaying -------------------------------------------------


@each_case
def test_nothing_is_spent_twice_or_behind_the_account(case):
    """What went through mechanisms costs what the statement and the budget say, to the last bit."""
    model = case.model()
    with record() as transcript:
        model.fit(*case.rows("normal", 1, 60))
    costs = dict.fromkeys(sorted({one.account for one in transcript.passages}), Fraction(0))
    for one in transcript.passages:
        costs[one.account] += one.cost.rho
    *whole, first, second = costs.values() if transcript.coins else (*costs.values(), 0, 0)
    spent = ZCDP(sum(whole, Fraction(0)) + max(first, second))
    assert model.fallback_ is None
    assert float(spent) == model.privacy_.rho
    assert spent <= ZCDP.within(Budget(model.epsilon, model.delta))
    assert len(transcript.passages) == sum(one.count for one in model.privacy_.mechanisms)


@pytest.mark.parametrize("cell", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("case", DEFAULTS, ids=str)
def test_a_cell_that_is_no_number_stops_a_fit_before_anything_is_released(case, cell):
    X, y = styled_rows("normal", 1, 60)
    for place in (X, y):
        place[17] = cell
        with record() as transcript, pytest.raises(ValueError, match=r"Input [Xy] contains"):
            case.model().fit(X, y)
        assert (transcript.passages, transcript.draws, transcript.coins) == ([], [], [])
        place[17] = 0.0
