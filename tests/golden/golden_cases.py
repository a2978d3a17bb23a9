"""The fits and commands whose numbers are recorded; public names only, so modules may move."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from unittest.mock import patch

import golden_data as data
import numpy as np
import pandas as pd
import scipy.sparse
from click.testing import CliRunner
from golden_values import numbers, plain, released

from dpscreen import (
    ADPScreen,
    DPFrankWolfe,
    FrankWolfeLasso,
    PrivacyLedger,
    PrivateLasso,
    PrivateLogisticLasso,
    PrivateLogit,
    PrivateOLS,
    RNMScreen,
    load,
    plan,
    plan_for,
    scan,
)
from dpscreen.cli.app import dpscreen as app
from dpscreen.models.outcome_peers import ClassMeans, NoisyDescent, OutcomeFrankWolfe
from dpscreen.models.peers import AdaSSP, BoostedAdaSSP, NoisyIHT, PrivateGCD, PrivateSIS
from dpscreen.planning import power

Case = Callable[[Path], dict]

BOUNDS = {"feature_bounds": (-10, 22), "target_bounds": (-90, 70)}
LOOSE = {"feature_bounds": (-2000, 5000), "target_bounds": (-1e5, 2e5)}
BUDGET = {"epsilon": 2.0, "delta": 1e-6, "random_state": 7}
WALK = {"radius": 40.0, "n_iter": 12}

# --- estimators on dense rows ---------------------------------------------------------------------

LASSO = {
    "defaults": {},
    "stagewise": {"solver": "stagewise"},
    "frank-wolfe": {"solver": "frank-wolfe"},
    "frank-wolfe, no intercept": {"solver": "frank-wolfe", "fit_intercept": False},
    "auto with a row norm": {"row_norm": 0.5},
    "standardized": {"standardize": True},
    "not standardized": {"standardize": False},
    "loose bounds": LOOSE,
    "loose bounds, standardized": {**LOOSE, "standardize": True, "fit_intercept": False},
    "bounds for each feature": {"feature_bounds": [(-10 - j, 22 + j) for j in range(6)]},
    "max_features": {"max_features": 2},
    "max_features, frank-wolfe": {"max_features": 1, "solver": "frank-wolfe"},
    "no intercept": {"fit_intercept": False},
    "split": {"inference": "split"},
    "split, loose bounds, no intercept": {**LOOSE, "inference": "split", "fit_intercept": False},
    "split, frank-wolfe": {"inference": "split", "solver": "frank-wolfe"},
    "split, refused": {"inference": "split", "epsilon": 0.05},
    "rows_per_unit": {"rows_per_unit": 3},
    "rows_per_unit, loose bounds": {**LOOSE, "rows_per_unit": 3},
    "n_rows": {"n_rows": 1900},
    "n_rows, split": {"n_rows": 1900, "inference": "split"},
    "all choices": {"radius": 30.0, "n_iter": 15, "clip": 6.0},
    "named seed": {"random_state": "a name"},
    "stagewise, loose bounds": {**LOOSE, "solver": "stagewise"},
    "small budget": {"epsilon": 0.1},
}
TABLES = {
    "defaults": {},
    "loose bounds": LOOSE,
    "no intercept": {"fit_intercept": False},
    "n_rows": {"n_rows": 1900},
}
WALKS = {
    "defaults": {},
    "no intercept": {"fit_intercept": False},
    "random start": {"start": "random"},
    "rows_per_unit": {"rows_per_unit": 3},
    "no clip": {"clip": math.inf},
    "by rule": {"radius": None, "n_iter": None},
    "published": {"calibration": "published"},
    "published, intercept": {"calibration": "published", "fit_intercept": True},
}
CLIPS = {"clip": {"clip": 8.0}, "clip, rows_per_unit": {"clip": 8.0, "rows_per_unit": 2}}
SCREENS = {"larger share": {"screening_share": 0.5}}
WHEN = {
    "at the last": {"screen_at": "last"},
    "at every third": {"screen_at": 3},
    "at listed": {"screen_at": [2, 5]},
    "published, at the last": {
        **{"screen_at": "last", "calibration": "published", "screening_delta_share": 0.5}
    },
}
REFERENCE = {
    f"{screening}, {'' if intercept else 'no '}intercept": {
        **{"radius": 4.0, "n_iter": 60, "screening": screening, "fit_intercept": intercept}
    }
    for screening in (None, "published", "safe")
    for intercept in (True, False)
}
PEER = {
    "defaults": {},
    "row norm": {"row_norm": 1.5},
    "standardized": {**LOOSE, "standardize": True},
    "not standardized, no intercept": {"standardize": False, "fit_intercept": False},
    "n_rows": {"n_rows": 1900},
}
PEERS = (AdaSSP, BoostedAdaSSP, NoisyIHT, PrivateGCD, PrivateSIS)
SETTINGS = (
    (PrivateLasso, BOUNDS | BUDGET, LASSO),
    (PrivateOLS, BOUNDS | BUDGET, TABLES),
    (DPFrankWolfe, BOUNDS | BUDGET | WALK, WALKS | CLIPS),
    (RNMScreen, BOUNDS | BUDGET | WALK, WALKS | SCREENS),
    (ADPScreen, BOUNDS | BUDGET | WALK, WALKS | SCREENS | WHEN),
    (FrankWolfeLasso, {}, REFERENCE),
    *((peer, BOUNDS | BUDGET, PEER) for peer in PEERS),
)


def fitting(model, rows: Callable[[Path], tuple], **options) -> Case:
    """Return the case in which this model is fitted to the rows that are made in a folder."""
    return lambda folder: released(model.fit(*rows(folder), **options))


def dense_rows(_folder: Path):
    return data.dense_rows()


def outcome_rows(_folder: Path):
    X, y = data.dense_rows()
    return X, (y > np.median(y)).astype(int)


FITS: dict[str, Case] = {
    f"{estimator.__name__}: {name}": fitting(estimator(**shared | setting), dense_rows)
    for estimator, shared, settings in SETTINGS
    for name, setting in settings.items()
}
OUTCOME_BOUNDS = {"feature_bounds": (-10, 22)}
OUTCOMES = {
    "PrivateLogit": PrivateLogit(**OUTCOME_BOUNDS | BUDGET),
    "PrivateLogit, no intercept": PrivateLogit(**OUTCOME_BOUNDS | BUDGET, fit_intercept=False),
    "PrivateLogisticLasso": PrivateLogisticLasso(**OUTCOME_BOUNDS | BUDGET),
    "PrivateLogisticLasso, a path": PrivateLogisticLasso(**OUTCOME_BOUNDS | BUDGET, n_iter=12),
    **{
        peer.__name__: peer(**OUTCOME_BOUNDS | BUDGET)
        for peer in (ClassMeans, NoisyDescent, OutcomeFrankWolfe)
    },
}


FITS |= {f"outcomes: {name}": fitting(model, outcome_rows) for name, model in OUTCOMES.items()}
WIDE = {
    f"wide: {estimator.__name__}": (estimator(**BOUNDS | BUDGET | shared), (120, 160))
    for estimator, shared in ((PrivateLasso, {}), (RNMScreen, WALK), (PrivateSIS, {}))
}
WIDE["60 features: auto with a row norm"] = (
    PrivateLasso(**BOUNDS | BUDGET, row_norm=2.0),
    (2000, 60),
)
FITS |= {
    name: fitting(model, lambda _, size=size: data.dense_rows(*size))
    for name, (model, size) in WIDE.items()
}

# --- the same rows in other places ----------------------------------------------------------------

TABLE = {"feature_bounds": data.FEATURE_BOUNDS, "target_bounds": data.TARGET_BOUNDS}
TABLE_MODELS = {
    "PrivateLasso": PrivateLasso(**TABLE | BUDGET),
    "stagewise": PrivateLasso(**TABLE | BUDGET, solver="stagewise"),
    "split": PrivateLasso(**TABLE | BUDGET, inference="split", n_rows=1200),
    "frank-wolfe": PrivateLasso(**TABLE | BUDGET, solver="frank-wolfe", standardize=False),
    "DPFrankWolfe": DPFrankWolfe(**TABLE | BUDGET | WALK, clip=20.0),
    "RNMScreen": RNMScreen(**TABLE | BUDGET | WALK),
    "ADPScreen": ADPScreen(**TABLE | BUDGET | WALK),
    "NoisyIHT": NoisyIHT(**TABLE | BUDGET),
    "AdaSSP": AdaSSP(**TABLE | BUDGET),
    "BoostedAdaSSP": BoostedAdaSSP(**TABLE | BUDGET),
    "PrivateOLS": PrivateOLS(**TABLE | BUDGET),
}


def in_an_array(_folder: Path):
    return data.table_rows()


def in_a_pandas_frame(_folder: Path):
    X, y = data.table_rows()
    return pd.DataFrame(X, columns=list(data.NAMES)), pd.Series(y)


def in_a_polars_frame(_folder: Path):
    import polars

    X, y = data.table_rows()
    return polars.DataFrame(X, schema=list(data.NAMES)), y


def in_a_csv_file(folder: Path):
    text = _table().to_csv(index=False)
    (folder / "rows.csv").write_text(text, encoding="utf-8")
    return (scan(folder / "rows.csv", data.SCHEMA),)


def in_a_parquet_file(folder: Path):
    _table().to_parquet(folder / "rows.parquet", row_group_size=300)
    return (scan(folder / "rows.parquet", data.SCHEMA),)


def in_a_dask_array(_folder: Path):
    """Need a client that is connected: see `cluster`."""
    import dask.array

    X, y = data.table_rows()
    return dask.array.from_array(X, chunks=(500, 4)), dask.array.from_array(y, chunks=500)


def _table() -> pd.DataFrame:
    return pd.DataFrame(data.table_columns())


PLACES = (
    *(in_an_array, in_a_pandas_frame, in_a_polars_frame),
    *(in_a_csv_file, in_a_parquet_file),
)


@contextmanager
def cluster():
    """Connect to a small cluster of this process, which is quick to start."""
    import distributed

    with (
        closing(
            distributed.LocalCluster(
                **{"n_workers": 2, "threads_per_worker": 1, "processes": False},
                **{"dashboard_address": None, "silence_logs": 50},
            )
        ) as made,
        distributed.Client(made) as client,
    ):
        yield client


def table_fit(name: str, place: Callable, folder: Path) -> dict:
    """Fit the rows of the table from this place."""
    return released(TABLE_MODELS[name].fit(*place(folder), check=False))  # units have more rows


# --- sparse rows ----------------------------------------------------------------------------------

EVEN = {"feature_bounds": (-12, 12), "target_bounds": (-90, 70)}
SPARSE_MODELS = {
    "PrivateLasso": PrivateLasso(**EVEN | BUDGET, standardize=False),
    "stagewise": PrivateLasso(**EVEN | BUDGET, standardize=False, solver="stagewise"),
    "split": PrivateLasso(**EVEN | BUDGET, standardize=False, inference="split"),
    "frank-wolfe": PrivateLasso(**EVEN | BUDGET, standardize=False, solver="frank-wolfe"),
    "rows_per_unit": PrivateLasso(**EVEN | BUDGET, standardize=False, rows_per_unit=3),
    "DPFrankWolfe": DPFrankWolfe(**EVEN | BUDGET | WALK, clip=8.0),
    "RNMScreen": RNMScreen(**EVEN | BUDGET | WALK),
    "ADPScreen": ADPScreen(**EVEN | BUDGET | WALK, fit_intercept=False),
}


def sparse_fit(name: str, kind: Callable, _folder: Path) -> dict:
    """Fit sparse rows kept as this kind of matrix."""
    X, y = data.sparse_rows()
    return released(SPARSE_MODELS[name].fit(kind(X), y))


FITS |= {f"table: {name}": partial(table_fit, name, in_an_array) for name in TABLE_MODELS}
FITS |= {
    f"sparse: {name}": partial(sparse_fit, name, scipy.sparse.csr_array) for name in SPARSE_MODELS
}


# --- commands -------------------------------------------------------------------------------------


def dpscreen(*words) -> str:
    """Run the command in this process and return what it prints."""
    done = CliRunner().invoke(app, [str(one) for one in words])
    if done.exit_code:
        raise RuntimeError(done.stderr) from done.exception
    return done.stdout


@contextmanager
def seeded_commands():
    """Seed the estimators that a command makes: it has no seed, as seeded noise is not private."""

    def seeded(fit):
        return lambda self, *rows, **more: fit(self.set_params(random_state=7), *rows, **more)

    with ExitStack() as patches:
        for estimator in (PrivateLasso, PrivateOLS, DPFrankWolfe, RNMScreen):
            patches.enter_context(patch.object(estimator, "fit", seeded(estimator.fit)))
        yield


FIT_OPTIONS = {
    "private-lasso": ("--max-features", 4),
    "intervals": ("--inference", "split"),
    "PrivateOLS": ("--model", "ols"),
    "dp-fw": ("--model", "dp-fw", "--rows-public", 1200),
    "rnm-screen": ("--model", "rnm-screen", "--rows-public", 1200),
}


def _fit_command(options: tuple, folder: Path) -> dict:
    _table().to_csv(folder / "table.csv", index=False)
    return _fitted(folder, folder / "table.csv", *options)


def _fitted(folder: Path, table: Path, *options) -> dict:
    """Return the numbers of the model file, as JSON and as loaded, and some predictions."""
    schema, model = folder / "schema.json", folder / "model.json"
    schema.write_text(json.dumps(data.SCHEMA), encoding="utf-8")
    asked = ("--epsilon", 2, "--delta", "1e-6", "-o", model, "--json", "--no-check", *options)
    with seeded_commands():
        told = dpscreen("fit", table, "--schema", schema, *asked, "--no-check")
    written = json.loads(model.read_text(encoding="utf-8"))
    predicted = dpscreen("predict", model, table).split()
    return {
        "file": plain(numbers(written)),
        "told": plain(numbers(json.loads(told))),
        "loaded": plain([load(model).coef_, load(model).intercept_]),
        "predictions": plain([float(value) for value in predicted[1:21]]),
    }


def _simulate_command(folder: Path) -> dict:
    """Simulate a table in both formats, and fit it."""
    schema, csv, parquet = (folder / name for name in ("s.json", "t.csv", "t.parquet"))
    schema.write_text(json.dumps(data.SCHEMA), encoding="utf-8")
    for path in (csv, parquet):
        dpscreen("simulate", "--schema", schema, "--rows", 900, "--seed", 3, "-o", path)
    frame = pd.read_parquet(parquet)
    columns = {name: frame[name].astype(float).head(20) for name in ("age", "dose", "score")}
    cells = {name: plain(np.asarray(values)) for name, values in columns.items()}
    return {"cells": cells, "arm": list(frame["arm"].head(20)), **_fitted(folder, csv)}


def _compare_command(_folder: Path) -> dict:
    size = ("--rows", 500, "--features", 8, "--repetitions", 2, "--seed", 5)
    told = dpscreen("compare", *size, "--epsilon", 1, "--epsilon", 4, "--json")
    return plain(numbers(json.loads(told)))


def _plan_command(_folder: Path) -> dict:
    asked = ("--rows", 300, "--features", 5, "--epsilon", 2, "--effect", 0.3, "--seed", 5)
    return plain(numbers(json.loads(dpscreen("plan", *asked, "--json"))))


def _reproduce_command(folder: Path) -> dict:
    """Compute Table 1 once: its methods at both calibrations; seeds come from names."""
    out = folder / "study"
    dpscreen("reproduce", "table1", "theorem2", "--trials", 1, "--jobs", 1, "--out", out)
    lines = (out / "results.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line)["row"] for line in lines]
    return {
        " ".join(row[key] for key in ("suite", "data", "method")): plain(
            {"seed": row["seed"], **row["metrics"]}
            | {name: values[-1] for name, values in row["series"].items()}
        )
        for row in rows
    }


def _plan(_folder: Path) -> dict:
    expected = plan(
        *(800, 10, 1.0, 1e-6),
        **{"effects": [0.1, 0.4], "repetitions": 3, "correlation": 0.5, "looseness": 4.0},
        random_state=3,
    )
    return plain(numbers(expected.to_dict()))


def _plan_for(_folder: Path) -> dict:
    """Search by three tables at a time: the search is the same with more."""
    asked = {"n_features": 4, "n_effects": 2, "delta": 1e-6, "n_rows": 300, "random_state": 3}
    with patch.object(power, "affordable_repetitions", lambda *_, **__: 3):
        needed = plan_for(0.5, **asked)
    return plain({"value": needed.value, "searched": needed.searched})


def _ledger(folder: Path) -> dict:
    """Book two fits."""
    ledger = PrivacyLedger.create(folder / "budget.db", dataset="rows", epsilon=5, delta=1e-5)
    for model in (PrivateLasso(**BOUNDS | BUDGET), RNMScreen(**BOUNDS | BUDGET | WALK)):
        model.fit(*data.dense_rows(), ledger=ledger)
    return plain({"spent": float(ledger.spent), "entries": len(ledger.entries())})


CASES: dict[str, Case] = {
    **FITS,
    **{f"dpscreen fit: {name}": partial(_fit_command, one) for name, one in FIT_OPTIONS.items()},
    "dpscreen simulate": _simulate_command,
    "dpscreen compare": _compare_command,
    "dpscreen plan": _plan_command,
    "dpscreen reproduce": _reproduce_command,
    "dpscreen.plan": _plan,
    "dpscreen.plan_for": _plan_for,
    "ledger": _ledger,
}
