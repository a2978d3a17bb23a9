"""What is booked is delivered: whatever fails numerically afterwards, a fit ends with a model.

Failures are made in three ways: by bounds, budgets and tables at the ends of what is allowed; by
releases that noise would not make in a lifetime; and by an error after any release at all. The
model must be finite, say what happened, be saved and loaded, and account for all that was released.
Other rows with the same releases must fail at the same place (docs/evidence.md).
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from replays import (
    CASES,
    DEFAULTS,
    STYLES,
    Case,
    chosen,
    styled_rows,
    wild,
)

import dpscreen
from dpscreen import FallbackWarning, PrivacyLedger, PrivateLasso, PrivateOLS, RNMScreen
from dpscreen.models import outcome_peers
from dpscreen.models.delivery import CENTRE, MODEL, PATH, START, fallback_words
from dpscreen.models.logistic import OutcomeModel
from dpscreen.models.tukey import KendallTukeyEM, TukeyEM
from dpscreen.privacy import ZCDP, Accountant, Budget
from dpscreen.privacy.replay import record, replay
from dpscreen.rows.source import RowsLost
from dpscreen.rows.streamed import MappedArrays, StreamedRows
from dpscreen.solvers import tukey

SECRET = "8675309"
STAGES = [START, CENTRE, PATH, MODEL]
PEERS = [Case(getattr(outcome_peers, name), {}, name) for name in outcome_peers.__all__]
ONE_OF_EACH = [*DEFAULTS, *PEERS]
each_model = pytest.mark.parametrize("case", ONE_OF_EACH, ids=str)
few = settings(max_examples=6, suppress_health_check=list(HealthCheck))


class Booked(list):
    """A ledger that keeps what is reserved, and writes no file."""

    def reserve(self, cost, *, purpose):
        self.append(cost.rho)


def rows_for(case, X, y):
    """Return rows with outcomes, if it is outcomes that the model is for."""
    return X, (y > np.median(y)) * 1.0 if isinstance(case.model(), OutcomeModel) else y


def fitted(model, X, y, **more):
    """Fit with warnings shown, as users do; return the model and whether it warned of a failure."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model.fit(X, y, **more)
    told = [str(one.message) for one in seen if one.category is FallbackWarning]
    return model, told


def assert_delivered(model, told, folder):
    """Check that a model is whole, that it says whether it failed, and that a file holds it."""
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    middle = np.mean(np.broadcast_to(model.feature_bounds, (np.size(model.coef_), 2)), axis=1)
    assert np.isfinite(model.predict(middle[None, :])).all()
    if model.privacy_.calibration == "proven":
        limit = ZCDP.within(Budget(model.epsilon, model.delta))
        assert 0 < model.privacy_.rho <= float(limit)
    failed = model.fallback_ is not None
    assert failed == bool(told)
    for words in (str(model.summary()), model.explain(), model.to_model_card()):
        assert ("failed numerically" in " ".join(words.split())) == failed
        assert SECRET not in words
    if failed:
        assert "found no feature" not in model.explain()
        assert fallback_words(model.fallback_) in told[0]
    file = folder / "model.json"
    model.save(file, force=True)
    loaded = dpscreen.load(file)
    assert loaded.fallback_ == model.fallback_
    assert np.array_equal(np.ravel(loaded.coef_), np.ravel(model.coef_))
    assert str(loaded.summary()) == str(model.summary())


# --- numbers at the ends of what is allowed -------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("delivered")


WIDTHS = st.sampled_from([4e-60, 1e-30, 1.0, 2.0**52, 1e30, 1e59])
BUDGETS = st.sampled_from([1e-3, 0.1, 1.0, 30.0, 300.0, 1e3, 1e4])
DELTAS = st.sampled_from([1e-300, 1e-9, 1e-6, 0.5])


@each_model
@given(
    widths=st.tuples(WIDTHS, WIDTHS),
    budget=st.tuples(BUDGETS, DELTAS),
    style=st.tuples(st.sampled_from(sorted(STYLES)), st.integers(0, 2**32)),
    shape=st.tuples(st.sampled_from([1, 2, 9, 200]), st.sampled_from([1, 3, 12])),
    place=st.tuples(st.sampled_from([0.0, 1.0, 1e3]), st.sampled_from([1.0, 1e-6, 1e-16])),
)
@few
def test_extreme_numbers_are_refused_before_booking_or_delivered(
    case, widths, budget, style, shape, place, folder
):
    X, y = styled_rows(*style, *shape)
    with np.errstate(over="ignore"):
        X = np.clip(X * (widths[0] * place[1]) + place[0] * widths[0], -1e300, 1e300)
        y = np.clip(y * (widths[1] * place[1]), -1e300, 1e300)
    low = place[0] * widths[0]
    model = case.model(
        epsilon=budget[0],
        delta=budget[1],
        feature_bounds=(low - widths[0], low + widths[0]),
        target_bounds=(-widths[1], widths[1]),
    )
    if hasattr(model, "radius") and not isinstance(model, PrivateLasso):
        model.radius = widths[1]
    booked = Booked()
    try:
        model, told = fitted(model, *rows_for(case, X, y), ledger=booked)
    except ValueError:
        assert not booked
    else:
        assert_delivered(model, told, folder)


def test_regression_at_the_bounds_and_the_budget_of_the_report(tmp_path):
    """Fits with bounds of 2^52 at ε = 300 that failed after they were booked."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 4)) * 2.0 ** rng.uniform(0, 52, size=4)
        model = PrivateOLS(
            epsilon=300.0,
            delta=1e-6,
            feature_bounds=(-(2.0**52), 2.0**52),
            target_bounds=(-(2.0**52), 2.0**52),
            random_state=seed,
        )
        assert_delivered(*fitted(model, X, X[:, 0] + rng.normal(size=300)), tmp_path)


# --- releases that noise would not make -----------------------------------------------------------


@pytest.mark.parametrize("case", [*CASES, *PEERS], ids=str)
def test_wild_releases_are_delivered_and_other_rows_meet_the_same_end(case, tmp_path):
    name, seed, n = chosen(f"{case} delivered", STYLES, (9, 60, 200))
    first, second = (rows_for(case, *case.rows(name, seed + turn, n)) for turn in (0, 1))
    with record(steer=wild(seed, 1.0)) as transcript:
        model, told = fitted(case.model(random_state=None), *first)
    assert_delivered(model, told, tmp_path)
    with replay(transcript):
        other, _ = fitted(case.model(random_state=None), *second)
    assert other.fallback_ == model.fallback_
    assert np.array_equal(other.coef_, model.coef_)
    assert np.array_equal(other.intercept_, model.intercept_)


# --- a failure after any release ------------------------------------------------------------------


class FailsAfter:
    """An accountant's release that raises once so many were made."""

    def __init__(self, count, error):
        self.count, self.error, self.made = count, error, 0
        self.release = Accountant.release

    def __call__(self, accountant, *given, **words):
        found = self.release(accountant, *given, **words)
        self.made += 1
        if self.made == self.count:
            raise self.error
        return found

    def __get__(self, accountant, _):
        return lambda *given, **words: self(accountant, *given, **words)


def failing_after(monkeypatch, count, error):
    failing = FailsAfter(count, error)
    monkeypatch.setattr(Accountant, "release", failing)
    return failing


def some_rows(case, n=300):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 3))
    return rows_for(case, X, X @ [1.0, -1.0, 0.0] + rng.normal(size=n) / 2)


@each_model
def test_a_failure_after_any_release_leaves_what_was_released(case, tmp_path, monkeypatch):
    X, y = some_rows(case)
    options = {"n_rows": len(X)} if "n_rows" in case.model().get_params() else {}
    with monkeypatch.context() as patch:
        whole = failing_after(patch, 0, None)
        model, told = fitted(case.model(epsilon=40.0, **options), X, y)
    assert (told, model.fallback_) == ([], None)
    stages = []
    for count in sorted({1, 2, 3, *np.linspace(1, whole.made, 7).astype(int).tolist()}):
        with monkeypatch.context() as patch:
            failing_after(patch, count, np.linalg.LinAlgError(f"{SECRET} is singular"))
            booked = Booked()
            model, told = fitted(case.model(epsilon=40.0, **options), X, y, ledger=booked)
        assert_delivered(model, told, tmp_path)
        assert model.fallback_ in STAGES
        assert sum(one.count for one in model.privacy_.mechanisms) == count
        assert model.privacy_.rho <= sum(booked) <= ZCDP.within(Budget(40.0, 1e-6)).rho
        assert not any(SECRET in one for one in told)
        stages.append(STAGES.index(model.fallback_))
    assert stages == sorted(stages)
    assert stages[0] == STAGES.index(START)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"solver": "stagewise"}, {START, CENTRE, PATH, MODEL}),
        ({}, {START, CENTRE, MODEL}),
        ({"inference": "split", "n_rows": 6000}, {START, CENTRE, MODEL}),
    ],
)
def test_a_failure_keeps_the_last_state_that_was_released(options, expected, monkeypatch):
    case = Case(PrivateLasso, {}, "lasso")
    rows = some_rows(case)
    given = {"n_rows": 300, "epsilon": 40.0} | options
    with monkeypatch.context() as patch:
        whole = failing_after(patch, 0, None)
        complete, _ = fitted(case.model(**given), *rows)
    found = set()
    for count in sorted({*range(1, 13), *range(13, whole.made, 3), whole.made}):
        with monkeypatch.context() as patch:
            failing_after(patch, count, ZeroDivisionError())
            model, _ = fitted(case.model(**given), *rows)
        found.add(model.fallback_)
        match model.fallback_:
            case "start":
                assert model.intercept_ == 1.0  # the middle of the declared bounds
                assert not model.coef_.any()
            case "centre":
                assert model.intercept_ != 1.0
                assert not model.coef_.any()
            case "path":
                assert np.array_equal(model.path_.features, complete.path_.features)
                assert model.coef_.any()
            case "model":
                assert np.array_equal(model.coef_, complete.coef_)
                assert not hasattr(model, "quality_")
    assert found == expected


@each_model
def test_a_number_that_is_not_finite_is_no_model(case, monkeypatch):
    X, y = some_rows(case)
    model = case.model(epsilon=40.0)
    keep, seen = type(model)._keep, []

    def spoilt(self, stage, units, solution, *others):
        seen.append(solution)
        if len(seen) > 1:
            solution.weights[0] = np.nan
        keep(self, stage, units, solution, *others)

    monkeypatch.setattr(type(model), "_keep", spoilt)
    model, told = fitted(model, X, y)
    assert model.fallback_ == START
    assert told
    assert not model.coef_.any()


# --- what is no numerical failure -----------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), SystemExit(1), MemoryError(), OSError(5, "gone"), RowsLost()]
)
@pytest.mark.parametrize("kind", [PrivateLasso, RNMScreen])
def test_interrupts_and_failures_of_the_machine_are_passed_on(kind, error, tmp_path, monkeypatch):
    (case,) = (one for one in DEFAULTS if one.name == f"{kind.__name__}: defaults")
    ledger = PrivacyLedger.create(tmp_path / "b.db", dataset="d", epsilon=2, delta=1e-6)
    failing_after(monkeypatch, 3, error)
    model = case.model(random_state=None)
    with pytest.raises(type(error)):
        fitted(model, *some_rows(case), ledger=ledger)
    assert not [name for name in vars(model) if name.endswith("_")]
    assert len(ledger.entries()) == 1


def test_rows_that_change_on_disk_are_no_numerical_failure(monkeypatch):
    """A cell that becomes infinite is private: no constant may be delivered because of it."""
    case = Case(PrivateLasso, {}, "lasso")
    X, y = some_rows(case)
    release, made = Accountant.release, []

    def changing(accountant, *given, **words):
        made.append(1)
        X[17, 0] = np.inf if len(made) > 1 else X[17, 0]
        return release(accountant, *given, **words)

    monkeypatch.setattr(Accountant, "release", changing)
    model = case.model(random_state=None)
    with pytest.raises(RowsLost):
        fitted(model, StreamedRows(MappedArrays(X, y)), None)
    assert not hasattr(model, "coef_")


def test_a_warning_that_is_an_error_leaves_the_model(monkeypatch):
    case = Case(PrivateLasso, {}, "lasso")
    failing_after(monkeypatch, 3, ZeroDivisionError())
    model = case.model(random_state=None)
    with pytest.raises(FallbackWarning, match="budget was charged"):
        model.fit(*some_rows(case))
    assert model.fallback_ in STAGES
    assert model.privacy_.holds


@pytest.mark.parametrize("kind", [TukeyEM, KendallTukeyEM])
def test_a_part_whose_least_squares_fail_has_a_model_too(kind, monkeypatch):
    """The rows decide whether LAPACK converges: so that of one part concerns one model alone."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(4000, 2))
    public = {"feature_bounds": [(-1, 1)] * 2, "target_bounds": (-2, 2), "n_rows": 4000}

    def fails(*_):
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(tukey.np.linalg, "lstsq", fails)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind(epsilon=3.0, delta=1e-6, random_state=1, **public).fit(X, X[:, 0])
    assert np.isfinite(model.coef_).all()
