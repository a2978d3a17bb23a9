"""A secret planted in the rows is looked for in all that a fit says, keeps or leaves behind."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import gc
import pickle
import struct
import weakref

import numpy as np
import pandas as pd
import polars as pl
import pytest
from listening import DAY, OBJECTS, TOLD_AS, WORD, assert_untold, betray, listening
from listening import NUMBER as SECRET
from replays import QUIET

from dpscreen import (
    ADPScreen,
    DPFrankWolfe,
    PrivacyLedger,
    PrivateLasso,
    PrivateOLS,
    RNMScreen,
)
from tools.noise import CountingNoise

pytestmark = QUIET
OURS = (PrivateLasso, PrivateOLS)
EVERY_CLASS = (DPFrankWolfe, RNMScreen, ADPScreen, *OURS)
each_class = pytest.mark.parametrize("kind", EVERY_CLASS, ids=lambda kind: kind.__name__)

N, D = 37, 3
PUBLIC = {
    "epsilon": 2.0,
    "delta": 1e-6,
    "feature_bounds": (-1e9, 1e9),
    "target_bounds": (-1e9, 1e9),
    "random_state": "planted",  # other digits in every run would hold those of the secret one day
}
BYTES = tuple(
    struct.pack(form, SECRET) for form in ("<d", ">d", "<f", ">f")
) + tuple(text.encode() for text in TOLD_AS)  # fmt: skip


def make(kind, **options):
    steps = {} if kind in OURS else {"radius": 1e7, "n_iter": 4}
    rows = {"n_rows": 100_000} if kind is PrivateOLS else {}  # a table of so few rows is refused
    return kind(**PUBLIC | steps | rows | options)


def plain():
    rng = np.random.default_rng(5)
    return rng.uniform(-1e6, 1e6, size=(N, D)), rng.uniform(-1e6, 1e6, size=N)


# --- listening ------------------------------------------------------------------------------------


def kept_by(model):
    """List what a model shows of itself, and its pickle."""
    shown = [repr(model), str(model), model._repr_html_(), repr(vars(model))]
    privacy = getattr(model, "privacy_", None)
    return [*shown, str(privacy), repr(privacy)], pickle.dumps(model)


def fit_and_search(model, X, y, capfd):
    """Fit, or fail to; return what was told and whether the fit went through."""
    with listening() as told:
        model.fit(X, y)
        told.append("fitted")
    printed = capfd.readouterr()
    texts, pickled = kept_by(model)
    assert_untold([*told, *printed, *texts])
    assert not [code for code in BYTES if code in pickled]
    return "fitted" in told


# --- where the secret may hide --------------------------------------------------------------------


def rows_with(value):
    X = plain()[0].astype(object)
    X[4, 1] = value
    return X


def target_with(value):
    y = plain()[1].astype(object)
    y[4] = value
    return y


class HostileArray:
    """Rows that tell the secret when they are looked at."""

    __array__ = betray

    def __len__(self):
        return N


@each_class
@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_in_a_cell_is_never_told(kind, name, capfd):
    value, (X, y) = OBJECTS[name], plain()
    fit_and_search(make(kind), rows_with(value), y, capfd)
    fit_and_search(make(kind), rows_with(value).tolist(), y, capfd)
    fit_and_search(make(kind), X, target_with(value), capfd)
    fit_and_search(make(kind), X, pd.Series(target_with(value)), capfd)
    fit_and_search(make(kind), X, target_with(value).tolist(), capfd)
    fit_and_search(make(kind), X, [value] * N, capfd)


def tables():
    X, y = plain()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    days = pd.Series(pd.date_range(DAY, periods=N))
    series = {
        "category": pd.Series([WORD] * N, dtype="category"),
        "numbers as categories": pd.Series([SECRET] * N, dtype="category"),
        "string": pd.Series([WORD] * N, dtype="string"),
        "dates": days,
        "zoned dates": days.dt.tz_localize("UTC"),
        "periods": pd.Series(pd.period_range(DAY, periods=N)),
        "intervals": pd.Series(pd.interval_range(SECRET, periods=N)),
        "missing": pd.Series([SECRET, None] * N, dtype="Float64")[:N],
        "numbers": pd.Series([SECRET] * N),
    }
    polars = {
        "text": pl.Series([WORD] * N),
        "categorical": pl.Series([WORD] * N, dtype=pl.Categorical),
        "enum": pl.Series([WORD] * N, dtype=pl.Enum([WORD])),
        "lists": pl.Series([[SECRET]] * N),
        "dates": pl.Series([DAY] * N),
        "durations": pl.Series([datetime.timedelta(seconds=SECRET)] * N),
        "decimals": pl.Series([decimal.Decimal(str(SECRET))] * N),
        "numbers": pl.Series([SECRET] * N),
        "missing": pl.Series([SECRET, None] * N)[:N],
    }
    named = [(SECRET, WORD)] * N
    return (
        {f"pandas {name}": (frame.assign(b=one), y) for name, one in series.items()}
        | {f"pandas target {name}": (X, one) for name, one in series.items()}
        | {
            f"polars {name}": (pl.DataFrame(frame.to_dict("list")).with_columns(b=one), y)
            for name, one in polars.items()
        }
        | {f"polars target {name}": (X, one) for name, one in polars.items()}
        | {
            "index": (frame.set_index(pd.Index([WORD] * N)), pd.Series(y, index=[SECRET] * N)),
            "name of the index": (frame.rename_axis(WORD), pd.Series(y, name=WORD)),
            "attributes": (_with_attributes(frame), y),
            "structured": (np.array(named, dtype=[("a", float), ("b", "U20")]), y),
            "structured target": (X, np.array(named, dtype=[("a", float), ("b", "U20")])),
            "names of types": (np.array(named, dtype=[(WORD, float), ("b", "U20")]), y),
            "masked": (np.ma.masked_equal(np.full((N, D), SECRET), SECRET), y),
            "hostile rows": (HostileArray(), y),
            "hostile target": (X, HostileArray()),
            "one text": (WORD, y),
            "one text as target": (X, WORD),
            "mapping": ({WORD: [SECRET] * N}, y),
            "set": ({SECRET}, y),
            "ragged": ([[SECRET] * D, [SECRET]], [SECRET, SECRET]),
            "ragged target": (X, [[SECRET], SECRET] * (N // 2) + [SECRET]),
            "deep": ([[[[SECRET]]]] * N, y),
        }
    )


def _with_attributes(frame):
    frame = frame.copy()
    frame.attrs["note"] = WORD
    return frame


@pytest.mark.parametrize("kind", [DPFrankWolfe, PrivateLasso], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", tables())
def test_a_table_is_never_told(kind, name, capfd):
    fit_and_search(make(kind), *tables()[name], capfd)


# --- targets that are no numbers must not pass for numbers ----------------------------------------

PRETENDERS = {
    "None": lambda y: target_with(None),
    "infinity as an object": lambda y: target_with(float("inf")),
    "not a time": lambda y: np.array([DAY] * (N - 1) + ["NaT"], dtype="M8[s]"),
    "too wide": lambda y: np.where(np.arange(N) == 4, np.longdouble("1e4000"), y),
}


@pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(np.float64).max, reason="no wide float")
@each_class
@pytest.mark.parametrize("name", PRETENDERS)
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_a_target_that_becomes_nan_or_infinite_is_refused(kind, name):
    X, y = plain()
    with pytest.raises((ValueError, TypeError)):
        make(kind).fit(X, PRETENDERS[name](y))


def test_no_target_switches_the_published_noise_off():
    X, _ = plain()
    chosen = set()
    for seed in range(12):
        noise = CountingNoise(seed)
        model = make(DPFrankWolfe, calibration="published", start="zero", random_state=noise)
        with contextlib.suppress(ValueError, TypeError):
            chosen.add(tuple(np.flatnonzero(model.fit(X, target_with(None)).coef_).tolist()))
    assert len(chosen) != 1


# --- what stays on the fitted object --------------------------------------------------------------


CALIBRATIONS = [(kind, "proven") for kind in EVERY_CLASS] + [
    (kind, "published") for kind in EVERY_CLASS if kind not in OURS
]
each_fit = pytest.mark.parametrize(("kind", "calibration"), CALIBRATIONS)


def fitted(kind, calibration, X, y):
    options = {} if kind in OURS else {"calibration": calibration}
    return make(kind, **options).fit(X, y)


@each_fit
def test_a_fitted_model_holds_no_rows_and_keeps_none_alive(kind, calibration):
    X, y = plain()
    traces, cells = (weakref.ref(X), weakref.ref(y)), np.concatenate((X.ravel(), y))
    model = fitted(kind, calibration, X, y)
    del X, y
    gc.collect()
    assert model.n_features_in_ == D
    assert [trace() for trace in traces] == [None, None]
    kept = pickle.dumps(vars(model))
    # Pickle writes numbers with the first byte first in arrays, and with the last in objects.
    assert not [cell for cell in cells if cell.tobytes() in kept or cell.tobytes()[::-1] in kept]


@each_fit
def test_a_secret_in_the_numbers_is_not_told(kind, calibration, capfd):
    X, y = plain()
    X[5, 1] = y[6] = SECRET
    options = {} if kind in OURS else {"calibration": calibration}
    assert fit_and_search(make(kind, **options), X, y, capfd)
    assert fit_and_search(make(kind, **options), np.full_like(X, SECRET), y, capfd)
    assert fit_and_search(make(kind, **options), X, np.full_like(y, -SECRET), capfd)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@each_class
def test_a_secret_beside_a_bad_cell_is_not_told(kind, bad, capfd):
    X, y = np.full((N, D), SECRET), np.full(N, SECRET)
    X[2, 1] = bad
    assert not fit_and_search(make(kind), X, y, capfd)
    assert not fit_and_search(make(kind), X.astype(object), y, capfd)
    assert not fit_and_search(make(kind), pd.DataFrame(X, index=[WORD] * N), y, capfd)


@each_class
def test_a_ledger_learns_nothing_of_the_rows(kind, tmp_path, capfd):
    ledger = PrivacyLedger.create(tmp_path / "b.db", dataset="d", epsilon=2.5, delta=1e-6, who="me")
    X, y = np.full((N, D), SECRET), np.full(N, SECRET)
    with listening() as told:
        make(kind).fit(X, y, ledger=ledger)
    with listening() as refused:
        make(kind).fit(X, y, ledger=ledger)
    assert "does not fit" in "".join(refused)
    exports = [ledger.export("json"), ledger.export("csv")]
    # Times, hashes and nonces hold any digits: only what is told and the numbers are searched.
    words = [word for text in exports for word in text.split('"') if len(word) < 24]
    assert_untold([*told, *refused, *capfd.readouterr(), repr(ledger)])
    assert not [word for word in words if "Zebedee" in word or "8675309" in word]
    kept = b"".join(one.read_bytes() for one in sorted(ledger.path.iterdir()))
    assert b"SQLite" in kept
    assert struct.pack("<d", SECRET) not in kept
