"""One schema for fit, predict and score: it carries unit, levels, transforms, fills and target."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from estimator_settings import PUBLIC

from dpscreen import (
    DPFrankWolfe,
    PrivateLasso,
    PrivateLogisticLasso,
    PrivateLogit,
    PrivateOLS,
    load,
    scan,
)
from dpscreen.models import peers
from dpscreen.tables.schema import TableSchema

BUDGET = {"epsilon": 5.0, "delta": 1e-6}
DESCRIPTOR = {
    "fields": [
        {"name": "who", "type": "integer"},
        {"name": "age", "type": "number", "constraints": {"minimum": 0, "maximum": 100}},
        {"name": "income", "type": "number", "constraints": {"minimum": 1, "maximum": 1e6}},
        {"name": "ward", "type": "string", "constraints": {"enum": ["A", "B", "(other)"]}},
        {"name": "ill", "type": "string", "constraints": {"enum": ["no", "yes"]}},
        {"name": "cost", "type": "number", "constraints": {"minimum": 1, "maximum": 1e4}},
    ],
    "dpscreen": {
        "target": "cost",
        "features": ["age", "income", "ward"],
        "unit": "who",
        "rows_per_unit": 3,
        "transform": {"income": "log", "cost": "log"},
        "fill": {"age": 50},
    },
}
ILL = {"target": "ill", "rows_per_unit": 1}
OF_ILLNESS = DESCRIPTOR | {"dpscreen": DESCRIPTOR["dpscreen"] | ILL}
UNIT = "one value of the column 'who' (at most 3 rows)"


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 6000
    found = pd.DataFrame({"who": np.arange(n) // 2, "age": rng.uniform(20, 90, n)})
    found["income"] = rng.lognormal(10, 0.5, n)
    found["ward"] = rng.choice(["A", "B", "C"], n)
    log_cost = 2 + 0.04 * found.age + 0.8 * (found.ward == "C") + rng.normal(0, 0.1, n)
    found["cost"] = np.exp(log_cost)
    found["ill"] = np.where(found.age + rng.normal(0, 3, n) > 55, "yes", "no")
    found.loc[::50, "age"] = np.nan
    found.loc[1::100, "cost"] = np.nan
    return found


@pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning")
@pytest.mark.parametrize("kind", [PrivateLasso, DPFrankWolfe, peers.AdaSSP])
def test_a_schema_is_all_that_a_fit_needs(kind, frame, tmp_path):
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(DESCRIPTOR))
    own = {"radius": 3.0, "n_iter": 5} if kind is DPFrankWolfe else {}
    declared = TableSchema.from_dict(DESCRIPTOR)
    told = dict(feature_bounds=declared.feature_bounds, target_bounds=declared.target_bounds)
    seeded = kind(**BUDGET, **own, random_state=1)
    want = seeded.set_params(**told).fit(declared.encode(frame))
    for one, rows in (
        (path, frame),
        (str(path), frame),
        (DESCRIPTOR, pa.Table.from_pandas(frame)),
        (declared, declared.encode(frame)),
    ):
        model = kind(schema=one, **BUDGET, **own, random_state=1).fit(rows)
        np.testing.assert_array_equal(model.coef_, want.coef_)
        assert str(model.privacy_.unit) == UNIT
        assert model.released().schema == declared.to_dict()
        counted = "the columns and their number, 3, and the 4 features that are made of them"
        assert counted in model.privacy_.public


def test_predictions_and_scores_read_the_raw_table_in_its_own_units(frame, tmp_path):
    model = PrivateLasso(schema=DESCRIPTOR, **BUDGET).fit(frame)
    new = frame.drop(columns=["cost", "who", "ill"]).head(500)
    found = model.predict(new)
    known = frame.head(500).cost
    assert np.nanmedian(np.abs(found / known - 1)) < 0.3
    filled = model.predict(new.assign(age=np.nan))
    np.testing.assert_array_equal(filled, model.predict(new.assign(age=50.0)))
    model.save(tmp_path / "model.json")
    np.testing.assert_array_equal(load(tmp_path / "model.json").predict(new), found)
    there = known.notna()
    error = ((found - known)[there] ** 2).sum() / ((known - known.mean())[there] ** 2).sum()
    assert model.score(frame.head(500)) == pytest.approx(1 - error)
    assert model.score(new, known.fillna(1.0)) < 1
    with pytest.raises(ValueError, match="y is needed"):
        model.score(np.zeros((2, 4)))


@pytest.mark.parametrize("kind", [PrivateLogit, PrivateLogisticLasso])
def test_classes_are_those_of_the_schema(kind, frame):
    model = kind(schema=OF_ILLNESS, **BUDGET).fit(frame, check=False)  # some have two rows
    assert set(model.predict(frame)) == {"no", "yes"}
    assert model.score(frame) == np.mean(model.predict(frame) == frame.ill) > 0.8
    with pytest.raises(ValueError, match="leave classes out"):
        kind(schema=OF_ILLNESS, classes=("yes", "no"), **BUDGET).fit(frame, check=False)
    with pytest.raises(ValueError, match="two outcomes"):
        kind(schema=DESCRIPTOR, **BUDGET).fit(frame)


def test_rows_that_do_not_say_whose_they_are_are_refused(frame, tmp_path):
    schema = TableSchema.from_dict(DESCRIPTOR)
    rows = schema.encode(frame)
    for name in ("X", "y"):
        with pytest.raises(ValueError, match="at most 3 rows"):
            getattr(rows, name)
    model = PrivateLasso(schema=schema, **BUDGET)
    features, target, _ = rows.named_arrays()
    with pytest.raises(ValueError, match="fitted to the raw table"):
        model.fit(features)
    with pytest.raises(ValueError, match="y must be None"):
        model.fit(frame, target)
    block = DESCRIPTOR["dpscreen"]
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for other, why in (
        (("rows_per_unit", 1), "another privacy unit"),
        (
            ("features", ["age"]),
            "other features",
        ),
    ):
        changed = DESCRIPTOR | {"dpscreen": block | dict([other])}
        for read in (
            TableSchema.from_dict(changed).encode(frame),
            scan(tmp_path / "rows.csv", changed),
        ):
            with pytest.raises(ValueError, match=why):
                model.fit(read)
    assert not hasattr(model, "privacy_")


def test_every_estimator_has_a_schema():
    for kind in (
        PrivateOLS,
        PrivateLasso,
        DPFrankWolfe,
        *(getattr(peers, n) for n in peers.__all__),
    ):
        known = {key: PUBLIC[key] for key in ("radius", "n_iter") if key in kind().get_params()}
        with pytest.raises(ValueError, match="cannot be read"):
            kind(schema="nowhere.toml", **BUDGET, **known).fit(pd.DataFrame())
