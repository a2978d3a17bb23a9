"""Regression tables for units with several rows, which count as one (docs/theory/mechanisms.md)."""

from __future__ import annotations

import json

import duckdb
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from pyarrow.dataset import dataset
from scipy import stats

from dpscreen import PrivateLasso, PrivateLogit, PrivateOLS, PrivatePoisson, load, scan
from dpscreen.models.refusal import TableRefused
from dpscreen.privacy.budget import ALL_ROWS, Unit
from dpscreen.rows import spool
from dpscreen.tables.reading import read_rows
from dpscreen.tables.schema import TableSchema
from tools.command import invoke

pytestmark = pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning")
NAMES, MOST = ["a", "b", "c"], 6
BOUNDS = {"feature_bounds": (-9, 9), "target_bounds": (-40, 40)}
BUDGET = {"epsilon": 2, "delta": 1e-6, "random_state": 4}


def panel(seed=0, n_units=1500):
    """Return rows of units, half of whose residuals' variance is between them."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(n_units), rng.integers(1, MOST + 1, n_units))
    X = rng.normal(size=(len(ids), 3))
    X[:, 0] = rng.normal(size=n_units)[ids]
    y = X @ (1.0, -2.0, 0.5) + 3 + rng.normal(size=n_units)[ids] + rng.normal(size=len(ids))
    frame = pd.DataFrame(X, columns=NAMES).assign(y=y, who=[f"p{k}" for k in ids])
    return frame.sample(frac=1, random_state=seed).reset_index(drop=True)


def number(name, bound):
    return {"name": name, "type": "number", "constraints": {"minimum": -bound, "maximum": bound}}


def schema(most=MOST, target=None):
    features = [number(name, 9) for name in NAMES]
    fields = [*features, target or number("y", 40), {"name": "who", "type": "string"}]
    told = {"target": "y", "unit": "who", "rows_per_unit": most}
    return TableSchema.from_dict({"fields": fields, "dpscreen": told})


def test_with_little_noise_it_is_weighted_least_squares_robust_to_clusters():
    frame = panel()
    budget = BUDGET | {"epsilon": 1e4}
    model = PrivateOLS(**budget, **BOUNDS).fit(frame[NAMES], frame["y"], unit=frame["who"])
    weights = 1 / frame.groupby("who")["y"].transform("size")
    want = sm.WLS(frame["y"], sm.add_constant(frame[NAMES], prepend=False), weights).fit(
        cov_type="cluster", cov_kwds={"groups": pd.factorize(frame["who"])[0]}
    )
    np.testing.assert_allclose(model.params, want.params, rtol=0, atol=2e-3)
    np.testing.assert_allclose(model.bse, want.bse, rtol=0.03)
    alone = sm.OLS(frame["y"], sm.add_constant(frame[NAMES])).fit()
    assert model.bse["a"] > 1.2 * alone.bse["a"]  # what independent rows would have
    assert model.nobs == pytest.approx(1500, abs=1)
    assert model.table_.plain_errors == pytest.approx(want.bse.to_numpy(), rel=0.05)
    assert model.scale_ == pytest.approx(np.sqrt(2), rel=0.15)  # of single rows


CURVED = [
    (PrivateLogit, sm.families.Binomial(), lambda u, means: u < means, {}),
    (PrivatePoisson, sm.families.Poisson(), stats.poisson.ppf, {"target_bounds": (0, 60)}),
]


@pytest.mark.parametrize(("estimator", "family", "outcomes", "bounds"), CURVED)
def test_with_little_noise_other_families_are_gee_with_weights(estimator, family, outcomes, bounds):
    """The median of eight panels: in some, influences of few rows are clipped."""
    off, errors, plain, alone = [], [], [], []
    for seed in range(6, 14):
        frame, rng = panel(seed), np.random.default_rng(seed)
        means = family.link.inverse(0.5 * frame[NAMES] @ (1.0, -2.0, 0.5) - 0.3)
        whose = pd.factorize(frame["who"])[0]
        draws = np.where(rng.random(1500) < 0.6, rng.random(1500), np.nan)[whose]
        draws = np.where(np.isnan(draws), rng.random(len(frame)), draws)
        y = np.minimum(outcomes(draws, means), 60).astype(float)
        model = estimator(**BUDGET | {"epsilon": 1e4}, feature_bounds=(-9, 9), **bounds)
        model.fit(frame[NAMES], y, unit=frame["who"])
        weights = 1 / frame.groupby("who")["y"].transform("size")
        X = sm.add_constant(frame[NAMES], prepend=False)
        want = sm.GEE(y, X, whose, family=family, weights=weights).fit()
        off.append(np.abs(model.params - want.params))
        errors.append(model.bse / want.bse)
        plain.append(model.table_.plain_errors / want.bse.to_numpy())
        alone.append(model.bse["a"] / sm.GLM(y, X, family).fit().bse["a"])
        assert model.nobs == pytest.approx(1500, abs=1)
    assert (np.median(off, axis=0) < 0.02).all()
    np.testing.assert_allclose(np.median(errors, axis=0), 1, rtol=0.05)
    np.testing.assert_allclose(np.median(plain, axis=0), 1, rtol=0.05)
    assert min(alone) > 1.2


def test_every_source_gives_the_same_numbers(tmp_path, monkeypatch):
    frame, declared = panel(1), schema()
    frame.to_csv(tmp_path / "rows.csv", index=False)
    relation = duckdb.from_df(frame)
    shuffled = frame.sample(frac=1, random_state=9)

    def by_schema(rows):
        return PrivateOLS(**BUDGET, **BOUNDS).fit(rows)

    here = PrivateOLS(**BUDGET, **BOUNDS).fit(frame[NAMES], frame["y"], unit=frame["who"])
    monkeypatch.setattr(spool, "ROWS_PER_PART", 700)
    others = {
        "the other order": PrivateOLS(**BUDGET, **BOUNDS).fit(
            shuffled[NAMES], shuffled["y"], unit=shuffled["who"]
        ),
        "arrays": PrivateOLS(**BUDGET, **BOUNDS).fit(
            frame[NAMES].to_numpy(), frame["y"].to_numpy(), unit=frame["who"].to_numpy()
        ),
        "a column": PrivateOLS(**BUDGET, **BOUNDS).fit(
            frame[[*NAMES, "who"]], frame["y"], unit="who"
        ),
        "encode": by_schema(declared.encode(frame)),
        "read_rows": by_schema(read_rows(tmp_path / "rows.csv", declared)),
        "scan of a file": by_schema(scan(tmp_path / "rows.csv", declared)),
        "scan of a source": by_schema(scan(relation, declared)),
        "raw table": PrivateOLS(schema=declared, **BUDGET).fit(frame),
        "source": PrivateOLS(schema=declared, **BUDGET).fit(relation),
    }
    monkeypatch.setattr("dpscreen.tables.reading.available_memory", lambda: 1000)
    others["scratch file"] = PrivateOLS(schema=declared, **BUDGET).fit(relation)
    others["file, scratch file"] = by_schema(scan(tmp_path / "rows.csv", declared))
    for name, other in others.items():
        for what in ("coef_", "bse", "n_rows_", "scale_"):
            assert np.array_equal(getattr(other, what), getattr(here, what)), (name, what)
        assert str(other.quality_) == str(here.quality_), name


@pytest.mark.parametrize(
    ("estimator", "target", "outcome"),
    [
        (PrivateLogit, {"name": "y", "type": "boolean"}, lambda y: y > 3),
        (PrivatePoisson, number("y", 40), abs),
    ],
)
def test_curvatures_from_a_scratch_file_are_the_same(estimator, target, outcome, monkeypatch):
    frame = panel(7)
    frame["y"] = outcome(frame["y"])
    if "constraints" in target:
        target = target | {"constraints": {"minimum": 0, "maximum": 40}}
    model = estimator(schema=schema(target=target), **BUDGET)
    here = model.fit(frame)
    monkeypatch.setattr(spool, "ROWS_PER_PART", 700)
    monkeypatch.setattr("dpscreen.tables.reading.available_memory", lambda: 1000)
    shuffled = frame.sample(frac=1, random_state=9)
    there = estimator(schema=schema(target=target), **BUDGET).fit(duckdb.from_df(shuffled))
    for what in ("coef_", "bse", "n_rows_"):
        assert np.array_equal(getattr(there, what), getattr(here, what)), what
    assert str(there.quality_) == str(here.quality_)


@pytest.mark.filterwarnings("ignore")  # of Dask about pandas
def test_rows_of_dask_are_grouped_where_they_can_be(tmp_path):
    dataframe, frame = pytest.importorskip("dask.dataframe"), panel(8, 400)
    lazy = dataframe.from_pandas(frame, npartitions=3)
    ols = PrivateOLS(schema=schema(), **BUDGET)
    with pytest.raises(ValueError, match=r"write it as X\.to_parquet"):
        ols.fit(lazy)
    lazy.to_parquet(tmp_path / "folder")
    want = ols.fit(frame).coef_
    np.testing.assert_array_equal(ols.fit(dataset(tmp_path / "folder")).coef_, want)
    in_threads = PrivateOLS(**BUDGET, **BOUNDS).fit(lazy[NAMES], lazy["y"], unit=lazy["who"])
    np.testing.assert_array_equal(in_threads.coef_, want)


@pytest.mark.parametrize(
    ("model", "target", "outcome"),
    [
        ("ols", number("y", 40), np.asarray),
        ("logit", {"name": "y", "type": "boolean"}, lambda y: y > 3),
    ],
)
def test_the_command_line_fits_them(model, target, outcome, tmp_path):
    frame = panel(9)
    frame.assign(y=outcome(frame["y"])).to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "schema.json").write_text(json.dumps(schema(target=target).to_dict()))
    order = ("--schema", tmp_path / "schema.json", "--epsilon", 3, "--delta", "1e-6")
    place = tmp_path / "model.json"
    done = invoke("fit", tmp_path / "rows.csv", *order, "--model", model, "-o", place)
    assert done.exit_code == 0, done.stderr
    assert "units (a noisy count)" in done.stdout
    found = load(place)
    assert found.privacy_.unit == "one value of the column 'who' (at most 6 rows)"
    low, high = found.conf_int().loc["b"]
    assert low < high < 0


def test_the_statement_and_the_file_say_for_whom(tmp_path):
    frame = panel(2)
    model = PrivateOLS(schema=schema(), epsilon=2, delta=1e-6).fit(frame)
    statement = model.privacy_
    assert statement.unit == "one value of the column 'who' (at most 6 rows)"
    assert statement.mechanisms[0].purpose == "the number of units"
    assert statement.mechanisms[0].sensitivity == 1
    assert "averaged, and counts as one row's" in statement.preprocessing
    assert "units (a noisy count)" in str(model.summary())
    assert "Every unit counts as one" in model.explain()
    model.save(tmp_path / "model.json")
    assert load(tmp_path / "model.json").privacy_ == statement
    whole = PrivateOLS(epsilon=2, delta=1e-6, **BOUNDS).fit(
        frame[NAMES], frame["y"], unit=frame.who
    )
    assert whole.privacy_.unit == "one unit (all rows)"
    named = frame[[*NAMES, "who"]]
    named = PrivateOLS(epsilon=2, delta=1e-6, **BOUNDS).fit(named, frame["y"], unit="who")
    assert named.privacy_.unit == "one value of the column 'who' (all rows)"
    for one in (whole, named):
        one.save(tmp_path / "whole.json", force=True)
        assert load(tmp_path / "whole.json").privacy_ == one.privacy_
        assert Unit.of_words(one.privacy_.unit).rows_per_unit == ALL_ROWS
    found = json.loads((tmp_path / "whole.json").read_text())
    found["statement"]["rows_per_unit"] = 6
    (tmp_path / "whole.json").write_text(json.dumps(found))
    with pytest.raises(ValueError, match="unit does not fit"):
        load(tmp_path / "whole.json")


def test_noise_does_not_grow_with_the_number_of_rows():
    frame = panel(3)
    one = frame.groupby("who").head(1)
    many = pd.concat([frame] * 3)
    scales = [
        {(record.purpose, record.sensitivity) for record in model.privacy_.mechanisms}
        for model in (
            PrivateOLS(**BUDGET, **BOUNDS, n_rows=1500).fit(
                rows[NAMES], rows["y"], unit=rows["who"]
            )
            for rows in (one, frame, many)
        )
    ]
    counts = [{purpose for purpose, change in found if change == 1} for found in scales]
    assert counts[0] == counts[1] == counts[2]


@pytest.mark.parametrize("kind", [PrivateOLS, PrivateLogit])
def test_what_intervals_mean_says_that_units_are_clusters(kind):
    frame = panel(4)
    outcomes = frame["y"] if kind is PrivateOLS else frame["y"] > frame["y"].median()
    bounds = BOUNDS if kind is PrivateOLS else {"feature_bounds": BOUNDS["feature_bounds"]}
    model = kind(**BUDGET, **bounds).fit(frame[NAMES], outcomes, unit=frame["who"])
    assert "sampling error (robust to correlation within units)" in model.inference_.wording
    assert "as that model implies" not in model.explain()
    assert "rows is not detectable" not in model.explain()


def test_rows_without_an_id_are_left_out():
    frame = panel(4)
    ids = frame["who"].where(np.arange(len(frame)) % 7 > 0)
    kept = ids.notna()
    some = PrivateOLS(**BUDGET, **BOUNDS).fit(frame[NAMES], frame["y"], unit=ids)
    want = PrivateOLS(**BUDGET, **BOUNDS).fit(frame[kept][NAMES], frame["y"][kept], unit=ids[kept])
    np.testing.assert_array_equal(some.coef_, want.coef_)
    blank = PrivateOLS(**BUDGET, **BOUNDS).fit(frame[NAMES], frame["y"], unit=ids.fillna(""))
    np.testing.assert_array_equal(blank.coef_, want.coef_)


def test_what_cannot_be_done_is_refused(tmp_path):
    frame = panel(5, 200)
    X, y, who = frame[NAMES], frame["y"], frame["who"]
    frame.to_csv(tmp_path / "rows.csv", index=False)
    ols = PrivateOLS(**BUDGET, **BOUNDS)
    with pytest.raises(ValueError, match=r"in place of rows_per_unit, give fit\(X, y, unit=ids\)"):
        PrivateOLS(**BUDGET, **BOUNDS, rows_per_unit=3).fit(X, y)
    with pytest.raises(ValueError, match="leave rows_per_unit out"):
        PrivateOLS(**BUDGET, **BOUNDS, rows_per_unit=3).fit(X, y, unit=who)
    with pytest.raises(ValueError, match="PrivateLasso counts rows"):
        PrivateLasso(**BUDGET, **BOUNDS).fit(X, y, unit=who)
    with pytest.raises(ValueError, match="the schema of these rows says"):
        ols.fit(schema().encode(frame), unit=who)
    with pytest.raises(ValueError, match="a column of X"):
        ols.fit(X, y, unit="who")
    with pytest.raises(ValueError, match="one id for each row"):
        ols.fit(X.to_numpy(), y.to_numpy(), unit=who[:-1].to_numpy())
    with pytest.raises(ValueError, match="different indices"):
        ols.fit(X, y, unit=who[::-1])
    with pytest.raises(ValueError, match="no row of the table counts"):
        ols.fit(X, y, unit=[None] * len(X))
    with pytest.raises(ValueError, match="do not come with ids"):
        ols.fit(duckdb.from_df(frame.drop(columns="who")), "y", unit=who)
    with pytest.raises(ValueError, match="PrivateLogit needs to know the unit of each row"):
        PrivateLogit(epsilon=1, delta=1e-6, feature_bounds=(-9, 9), rows_per_unit=3).fit(X, y > 0)
    with pytest.raises(TableRefused, match="units"):
        PrivateOLS(epsilon=0.1, delta=1e-6, **BOUNDS).fit(X, y, unit=who)
