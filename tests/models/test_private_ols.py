"""The regression table as a user meets it: frames, categories, tests of several, files, parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dpscreen import PrivateOLS
from dpscreen.models.explain import explanation_of

LEVELS = {"ward": ["A", "B", "C"]}
SETTING = {
    "epsilon": 2.0,
    "delta": 1e-6,
    "feature_bounds": {"age": (0, 120), "dose": (0, 60)},
    "target_bounds": (-300, 600),
    "categories": LEVELS,
    "random_state": 4,
}


def frame(n=8000, seed=2):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.normal(50, 10, n),
            "dose": rng.exponential(3, n),
            "ward": rng.choice(["A", "B", "C"], n),
        }
    )
    y = 2 * table["age"] - table["dose"] + 3 * (table["ward"] == "B") + rng.normal(0, 10, n)
    return table, y.to_numpy()


@pytest.fixture(scope="module")
def fitted():
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PrivateOLS(**SETTING | {"random_state": None}).fit(*frame())


def test_the_table_has_the_habits_of_statsmodels(fitted):
    features = ["age", "dose", "ward=B", "ward=C"]
    assert list(fitted.params.index) == [*features, "const"]
    np.testing.assert_array_equal(fitted.params.to_numpy()[:4], fitted.coef_)
    assert fitted.params["const"] == fitted.intercept_
    ends = fitted.conf_int()
    assert list(ends.index) == features
    assert list(ends.columns) == ["low", "high"]
    assert (ends["low"] < fitted.params[features]).all()
    assert fitted.conf_int(constant=True).loc["const"].between(-1e9, 1e9).all()
    pd.testing.assert_frame_equal(fitted.conf_int(constant=True).iloc[:-1], ends)
    wide, narrow = fitted.conf_int(0.99), fitted.conf_int(level=0.5)
    assert (wide["low"] < ends["low"]).all()
    assert (narrow["low"] > ends["low"]).all()
    np.testing.assert_allclose(np.sqrt(np.diag(fitted.cov_params())), fitted.bse)
    np.testing.assert_allclose(fitted.tvalues, fitted.params / fitted.bse)
    assert fitted.pvalues["age"] < 1e-6
    with pytest.raises(ValueError, match="level"):
        fitted.conf_int(95)
    pd.testing.assert_frame_equal(fitted.conf_int(alpha=0.01), wide)
    for alpha in ({"level": 0.05}, {"alpha": 0.95}):
        with pytest.raises(ValueError, match="where other software says alpha"):
            fitted.conf_int(**alpha)
    assert fitted.nobs == fitted.n_rows_
    np.testing.assert_equal(fitted.rsquared, fitted.quality_.r2)  # NaN where it is not told


@pytest.mark.parametrize("name", ["fittedvalues", "resid"])
def test_nothing_is_kept_of_single_rows(fitted, name):
    with pytest.raises(AttributeError, match="a number for each private row"):
        getattr(fitted, name)


def test_levels_are_compared_with_those_left_out_too(fitted):
    release = fitted.released()
    place = list(release.table.names).index("ward=C")
    coefficients = np.where(np.arange(len(release.table.names)) == place, 0.0, 1.0)
    why = {place: "not told apart; left out."}
    without = replace(release.table, reasons=why, coefficients=coefficients)
    text = explanation_of(replace(release, table=without))
    assert "with the first declared one and those left out: ward with A or C." in text
    assert "with the first declared one: ward with A." in fitted.explain()


def test_dask_rows_give_the_same_table():
    dd = pytest.importorskip("dask.dataframe")
    table, y = frame(3000)
    here = PrivateOLS(**SETTING).fit(table, y)
    parts = dd.from_pandas(table.assign(y=y), npartitions=3)
    there = PrivateOLS(**SETTING).fit(parts[["age", "dose", "ward"]], parts["y"])
    pd.testing.assert_frame_equal(there.conf_int(), here.conf_int())
