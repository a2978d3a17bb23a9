"""Other rows, the same releases: then nothing else that a fit shows may differ, to the byte.

Every release of a fit is recorded, and forced on a fit of other rows, of another number where that
is not disclosed. A threshold that used a private scale, a warning that looked at a cell, a choice
made by a count: whatever flows outside a mechanism shows as a difference, or as a replay that asks
for something else than was recorded (docs/evidence.md).
"""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay_sources import (
    FILES,
    FRAMES,
    KINDS,
    NUMBERS,
    OF_FILES,
    OF_FRAMES,
    SCHEMA,
    SPARSE,
    as_dask_array,
    table,
)
from replays import (
    CASES,
    DEFAULTS,
    STYLES,
    chosen,
    differing,
    examples,
    lines_of,
    shown_by_fit,
    styled_rows,
    wild,
)

from dpscreen import PrivacyLedger, PrivateLasso, RNMScreen, scan
from dpscreen.models import intake
from dpscreen.models.peers import NoisyIHT
from dpscreen.privacy.replay import record, replay

each_case = pytest.mark.parametrize("case", CASES, ids=str)
SOURCED = (PrivateLasso, RNMScreen, NoisyIHT)
of_sources = pytest.mark.parametrize(
    "case", [one for one in DEFAULTS if one.estimator in SOURCED], ids=str
)


def by_name(source):
    return source.__name__


SIZES, FEW = (1, 2, 9, 60, 200), (1, 5, 50)
ROWS = st.tuples(st.sampled_from(sorted(STYLES)), st.integers(0, 2**32), st.sampled_from(SIZES))
TABLES = st.tuples(st.sampled_from(KINDS), st.integers(0, 2**32), st.sampled_from(FEW))
SHARES = st.sampled_from([0.0, 0.3, 1.0])
"""Of how many releases are not drawn, but wild."""


def differences(case, make, first, second, *, share=0.0, words=False, **options):
    """Name what differs between fits of two tables, the releases being the same."""
    with record(steer=wild(7, share)) as transcript:
        one = shown_by_fit(case.model(**options), *make(*first), words=words)
    with replay(transcript):
        other = shown_by_fit(case.model(**options), *make(*second), words=words)
    return differing(one, other)


def told_alike(case, first, second):
    """Return the second rows, of the same number where that is disclosed."""
    return (*second[:2], first[2]) if case.published else second


# --- every estimator and option -------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 1.0])
@each_case
def test_other_rows_change_nothing_but_releases(case, share):
    first, second = (chosen(f"{case} {share} {turn}", STYLES, SIZES) for turn in (1, 2))
    second = told_alike(case, first, second)
    assert differences(case, case.rows, first, second, share=share) == []


UNLIKE = [
    case
    for case in CASES
    if case.name.endswith((": defaults", "large budget", ": split", "budget, without quality"))
    or "all choices" in case.name
    or case.name.endswith(("many rows", "row norm, 60 features", "larger share"))
]


@pytest.mark.parametrize("case", UNLIKE, ids=str)
def test_rows_that_have_nothing_in_common_change_nothing_but_releases(case):
    """Rows about a line, rows of nothing, rows beyond all bounds and rows in the middle of them.

    Columns lie beyond upper and lower bounds in turn; in the middle, residuals may be all zero.
    """
    d, rng = case.rows("normal", 1, 1)[0].shape[1], np.random.default_rng(8)
    X = rng.normal(size=(200, d))
    line = X, 3 * X[:, 0] + rng.normal(size=200)
    far = rng.choice([4e4, 9e4], size=(321, d)) * (-1.0) ** np.arange(d), np.full(321, -9e5)
    centres = [np.mean(getattr(case.model(), of)) for of in ("feature_bounds", "target_bounds")]
    nothing = np.zeros((41, d)), np.zeros(41)
    middle = np.full((42, d), centres[0]), np.full(42, centres[1])
    with record() as transcript:
        shown = shown_by_fit(case.model(), *line, words=False)
    for other in (nothing, far, middle):
        with replay(transcript):
            assert differing(shown, shown_by_fit(case.model(), *other, words=False)) == []


@pytest.mark.slow
@each_case
@given(first=ROWS, second=ROWS, share=SHARES)
@examples(100)
def test_other_rows_change_nothing_but_releases_widely(case, first, second, share):
    second = told_alike(case, first, second)
    assert differences(case, case.rows, first, second, share=share, words=True) == []


@pytest.mark.parametrize("case", DEFAULTS, ids=str)
def test_nothing_that_a_model_says_differs(case, tmp_path):
    """Summary, explanation, card, registry entry, page, predictions; and the ledger's lines."""
    ledgers = [
        PrivacyLedger.create(tmp_path / name, dataset="d", epsilon=90, delta=1e-5)
        for name in ("one.db", "other.db")
    ]
    with record() as transcript:
        one = shown_by_fit(case.model(), *styled_rows("normal", 1, 60), ledger=ledgers[0])
    with replay(transcript):
        other = shown_by_fit(case.model(), *styled_rows("edges", 3, 41), ledger=ledgers[1])
    assert differing(one, other) == []
    assert lines_of(ledgers[0]) == lines_of(ledgers[1])
    assert float(ledgers[0].spent) > 0


# --- every place that rows may come from ----------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return an empty folder; arrays in files are left there whatever their size."""
    monkeypatch.setattr(intake, "STREAMED_BYTES", 0)
    return tmp_path


@pytest.mark.parametrize("source", [*NUMBERS, *SPARSE], ids=by_name)
@of_sources
def test_rows_from_anywhere(case, source, folder):
    if source in SPARSE and not case.takes_sparse:
        pytest.skip("it takes no sparse rows")

    def make(*told):
        return source(*styled_rows(*told), folder)

    assert differences(case, make, ("normal", 1, 60), ("mostly zero", 2, 31)) == []


@pytest.mark.parametrize("source", [*FILES, *FRAMES], ids=by_name)
@of_sources
def test_tables_from_anywhere(case, source, folder):
    first, second = (chosen(f"{case} {by_name(source)} {turn}", KINDS, FEW) for turn in (1, 2))
    assert of_tables(case, source, folder, first, second) == []


@pytest.mark.slow
@pytest.mark.parametrize("source", [*FILES, *FRAMES], ids=by_name)
@of_sources
@given(first=TABLES, second=TABLES, share=SHARES)
@examples(40)
def test_tables_from_anywhere_widely(case, source, folder, first, second, share):
    assert of_tables(case, source, folder, first, second, share=share) == []


def of_tables(case, source, folder, first, second, **options):
    """Levels, ranges, missing cells and people of two tables have nothing in common."""
    bounds = OF_FILES if source in FILES else OF_FRAMES
    if source in FILES and case.options.get("inference"):
        return []  # whose people have several rows: refused

    def make(*told):
        made = table(*told)
        made.loc[len(made)] = ["somebody", "40", "a", "true", "3", "1.5"]  # so that a row counts
        return source(made, folder)

    return differences(case, make, first, second, **bounds, **options)


def test_how_often_a_file_is_read_tells_nothing(folder):
    """The passes that a bar shows, done and expected, are those of the releases."""
    case, passes = DEFAULTS[0], ([], [])

    def make(place, *told):
        table(*told).to_csv(folder / "t.csv", index=False)
        return (scan(folder / "t.csv", SCHEMA, progress=lambda *now: passes[place].append(now)),)

    assert differences(case, make, (0, "plain", 1, 50), (1, "one level", 2, 31), **OF_FILES) == []
    assert passes[0] == passes[1] != []


@pytest.mark.slow
@of_sources
def test_rows_on_a_cluster(case):
    distributed = pytest.importorskip("distributed")
    small = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "silence_logs": 50}
    with (
        closing(distributed.LocalCluster(**small, dashboard_address=None)) as cluster,
        distributed.Client(cluster),
    ):

        def make(*told):
            return as_dask_array(*styled_rows(*told), None)

        assert differences(case, make, ("normal", 1, 60), ("edges", 2, 31)) == []
