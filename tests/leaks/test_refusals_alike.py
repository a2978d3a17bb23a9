"""A refusal says the same of any rows that are at fault in the same way, word for word.

A secret that is planted in one cell is not found in a message that counts cells, adds them up or
names where they are. So two tables of other numbers, with the fault in another row, must be refused
in the same words, by the same type of error, and with the same warnings before it.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from dpscreen import (
    ADPScreen,
    DPFrankWolfe,
    PrivateLasso,
    PrivateLogisticLasso,
    PrivateLogit,
    PrivateOLS,
    RNMScreen,
)
from dpscreen.models import outcome_peers, peers
from dpscreen.rows.streamed import MappedArrays, StreamedRows
from dpscreen.rows.worker import Refused, _rows_of
from dpscreen.tables.reading import read_rows
from dpscreen.tables.schema import TableSchema

BOUNDS = {"epsilon": 1.0, "delta": 1e-6, "feature_bounds": (-9, 9)}
LINE = BOUNDS | {"target_bounds": (-9, 9)}
STEPS = LINE | {"radius": 1.0, "n_iter": 3}
MODELS = {
    **{kind.__name__: (kind, STEPS) for kind in (DPFrankWolfe, RNMScreen, ADPScreen)},
    **{kind.__name__: (kind, LINE) for kind in (PrivateLasso, PrivateOLS)},
    **{name: (getattr(peers, name), LINE) for name in peers.__all__},
    **{kind.__name__: (kind, BOUNDS) for kind in (PrivateLogisticLasso, PrivateLogit)},
    **{name: (getattr(outcome_peers, name), BOUNDS) for name in outcome_peers.__all__},
}
OUTCOMES = [name for name, (_, public) in MODELS.items() if "target_bounds" not in public]
SEEDS = (1, 2, 3, 4)


def table(seed, *, outcomes):
    """Return rows of which everything differs from seed to seed, and a row of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(seed, seed, size=(40 + 7 * seed, 3))
    y = X[:, 0] + rng.normal(size=len(X))
    return X, (y > rng.normal(seed, 1)).astype(float) if outcomes else y, int(rng.integers(len(X)))


def in_rows(value, *, frame=False, thin=False):
    def spoilt(X, y, row):
        cells = X.astype(object if isinstance(value, str) else float)
        cells[row, row % 2] = value
        if frame:
            return pd.DataFrame({"a": cells[:, 0], "b": cells[:, 1], "c": X[:, 2]}), y
        return sparse.csr_array(cells) if thin else cells, y

    return spoilt


def in_target(*values, kind=float):
    def spoilt(X, y, row):
        target = y.astype(kind)
        for step, value in enumerate(values):
            target[(row + 5 * step) % len(target)] = value
        return X, target

    return spoilt


FAULTS = {
    "a missing cell": in_rows(np.nan),
    "an infinite cell": in_rows(-np.inf),
    "a word": in_rows("x"),
    "a missing cell in a frame": in_rows(np.nan, frame=True),
    "a word in a frame": in_rows("x", frame=True),
    "a missing cell of sparse rows": in_rows(np.nan, thin=True),
    "a missing target": in_target(np.nan),
    "an infinite target": in_target(np.inf),
    "a word in the target": in_target("x", kind=object),
}


def with_other_index(X, y, row):
    labels = np.random.default_rng(row).permutation(10**6)[: 2 * len(X)]
    frame = pd.DataFrame(X, columns=list("abc"), index=labels[: len(X)])
    return frame, pd.Series(y, index=labels[len(X) :])


FAULTS["another index"] = with_other_index
LABELS = {
    "another label": in_target(2.0),
    "several other labels": in_target(-1.0, 2.0, 7.5),
    "a label that is text": in_target("maybe", kind=object),
    "a label that is nothing": in_target(None, kind=object),
}


def refusal(name, spoil, seed):
    """Return all that a fit says before it refuses, and how it refuses."""
    kind, public = MODELS[name]
    X, y, row = table(seed, outcomes=name in OUTCOMES)
    model = kind(**public)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            model.fit(*spoil(X, y, row))
        except Exception as error:
            chain = (error.__cause__, error.__context__)
            said = (type(error), str(error), error.args, chain)
        else:
            said = None
    assert not hasattr(model, "privacy_") or said is None
    return said, [(one.category, str(one.message)) for one in seen]


CASES = [(name, fault) for name in MODELS for fault in FAULTS]
CASES += [(name, fault) for name in OUTCOMES for fault in LABELS]


@pytest.mark.parametrize(("name", "fault"), CASES, ids=lambda one: str(one))
def test_a_refusal_says_the_same_of_any_rows(name, fault):
    found = [refusal(name, (FAULTS | LABELS)[fault], seed) for seed in SEEDS]
    assert found[0][0] is not None
    assert all(one == found[0] for one in found)


def assert_refused_alike(error, refuse, match=None, *, outcomes=False):
    """Refuse tables of several seeds; the words must be the same."""
    said = set()
    for seed in SEEDS:
        with pytest.raises(error, match=match) as told:
            refuse(seed, *table(seed, outcomes=outcomes))
        said.add(str(told.value))
    assert len(said) == 1


@pytest.mark.parametrize("place", ["rows", "target"])
def test_rows_that_stay_on_disk_are_refused_alike(place):
    def refuse(_seed, X, y, row):
        (X[row] if place == "rows" else y)[row % 3] = np.nan
        PrivateLasso(**LINE).fit(StreamedRows(MappedArrays(X, y)))

    assert_refused_alike(ValueError, refuse, "NaN")


@pytest.mark.parametrize("fault", ["columns", "rows", "cells"])
def test_partitions_are_refused_alike(fault):
    def refuse(seed, X, y, row):
        if fault == "cells":
            X[row, 1] = np.inf
        _rows_of(X, y[seed:] if fault == "rows" else y, 4 if fault == "columns" else 3, None)

    assert_refused_alike(Refused, refuse)


# --- rows that a schema reads ---------------------------------------------------------------------

SCHEMA = TableSchema.from_dict(
    {
        "fields": [
            {"name": "x", "type": "number", "constraints": {"minimum": -9, "maximum": 9}},
            {"name": "y", "type": "boolean", "trueValues": ["yes"], "falseValues": ["no"]},
            {"name": "who", "type": "string"},
        ],
        "dpscreen": {"target": "y", "unit": "who", "rows_per_unit": 2},
    }
)


def test_a_table_without_a_row_that_counts_is_refused_alike(tmp_path):
    def refuse(seed, X, y, _row):
        cells = zip(X[:, 0], y, strict=True)
        lines = [f"{one:.3f},{'perhaps'[: 3 + seed]},{int(two)}" for one, two in cells]
        file = tmp_path / f"{seed}.csv"
        file.write_text("\n".join(["x,y,who", *lines, ""]))
        PrivateLogisticLasso(**BOUNDS).fit(read_rows(file, SCHEMA))

    assert_refused_alike(ValueError, refuse, "no row of the table counts", outcomes=True)
