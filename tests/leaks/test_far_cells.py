"""Cells far outside their bounds count as the bounds, wherever rows come from.

A cell of a table is clipped as it is read, before its transform, which is defined nowhere else; a
fit clips what it is given, since nobody vouches for the cells of an array.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import dpscreen
from dpscreen import ADPScreen, DPFrankWolfe, PrivateLasso
from dpscreen.models.peers import AdaSSP
from dpscreen.rows.streamed import MappedArrays, StreamedRows
from dpscreen.tables.reading import read_rows
from dpscreen.tables.schema import TableSchema

pytestmark = pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning")

NAMES = ["a", "b", "c", "y"]
SCHEMA = {
    "fields": [
        {"name": name, "type": "number", "constraints": {"minimum": -3, "maximum": 3}}
        for name in NAMES
    ],
    "dpscreen": {"target": "y"},
}
FAR = (1e9, -1e9, 3.0000001, -1e300, 1e300)


def planted():
    """Return a table with a far cell in one row of three, and the same table clipped."""
    rng = np.random.default_rng(4)
    table = rng.uniform(-3, 3, size=(300, 4))
    table[::3, :] = np.where(rng.random((100, 4)) < 0.5, table[::3], rng.choice(FAR, (100, 4)))
    return table, np.clip(table, -3, 3)


def frame_of(table):
    return pd.DataFrame(table, columns=NAMES)


def dask_of(table, _folder):
    da = pytest.importorskip("dask.array")
    return tuple(da.from_array(one, chunks=100) for one in (table[:, :3], table[:, 3]))


def written(table, folder, kind):
    path = folder / f"rows.{kind}"
    frame = frame_of(table)
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    return path, TableSchema.from_dict(SCHEMA)


SOURCES = {
    "array": lambda table, _: (table[:, :3], table[:, 3]),
    "frame": lambda table, _: (frame_of(table)[NAMES[:3]], table[:, 3]),
    "sparse": lambda table, _: (sp.csr_array(table[:, :3]), table[:, 3]),
    "mapped": lambda table, _: (StreamedRows(MappedArrays(table[:, :3], table[:, 3])),),
    "dask": dask_of,
    "encoded": lambda table, _: (TableSchema.from_dict(SCHEMA).encode(frame_of(table)),),
    "read CSV": lambda table, folder: (read_rows(*written(table, folder, "csv")),),
    "read Parquet": lambda table, folder: (read_rows(*written(table, folder, "parquet")),),
    "scanned CSV": lambda table, folder: (dpscreen.scan(*written(table, folder, "csv")),),
}
MODELS = {
    "lasso": (PrivateLasso, {}),
    "lasso, as declared": (PrivateLasso, {"standardize": False}),
    "frank-wolfe": (DPFrankWolfe, {"radius": 2.0, "n_iter": 6}),
    "screening": (ADPScreen, {"radius": 2.0, "n_iter": 6}),
    "adassp": (AdaSSP, {}),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("model", MODELS)
def test_far_cells_count_as_the_bounds(source, model, tmp_path):
    kind, more = MODELS[model]
    if source == "sparse" and not getattr(kind, "_takes_sparse", False):
        pytest.skip("takes no sparse rows")
    fits = []
    for table in planted():
        unfitted = kind(
            epsilon=2.0,
            delta=1e-6,
            feature_bounds=(-3, 3),
            target_bounds=(-3, 3),
            random_state=3,
            **more,
        )
        fits.append(unfitted.fit(*SOURCES[source](table, tmp_path)))
    far, clipped = ([*one.coef_.tolist(), one.intercept_] for one in fits)
    assert far == clipped


def test_a_far_cell_is_clipped_before_its_transform():
    schema = {
        "fields": [
            {"name": name, "type": "number", "constraints": {"minimum": 1, "maximum": 100}}
            for name in "xy"
        ],
        "dpscreen": {"target": "y", "transform": {"x": "log"}},
    }
    frame = pd.DataFrame({"x": [-5.0, 0.0, 10.0, 1e300], "y": 1.0})
    features, _, _ = TableSchema.from_dict(schema).encode(frame).named_arrays()
    np.testing.assert_allclose(features[:, 0], np.log([1, 1, 10, 100]))
