"""Truths and categories of frames: declared levels, one feature each against the reference."""

from __future__ import annotations

import json
import math
import traceback
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import dpscreen
from dpscreen import (
    ADPScreen,
    DPFrankWolfe,
    PrivateLasso,
    PrivateOLS,
    RNMScreen,
)
from dpscreen.models import peers
from dpscreen.models.categories import (
    LearntLevelsWarning,
    _read_part,
    about_levels,
    about_missing,
    frame_columns,
)
from dpscreen.models.delivery import BoundsNote
from dpscreen.models.explain import explanation_of
from dpscreen.models.file import ModelFileProblem, to_dict
from dpscreen.tables.schema import TableSchema

WARDS = ["B", "A", "C", "D"]  # B is the reference, and nobody is in D
LEVELS = {"ward": WARDS}
SCALES = {"epsilon": 5.0, "delta": 1e-6, "target_bounds": (-50, 100), "random_state": 1}
SETTING = SCALES | {"feature_bounds": {"age": (0, 100)}}
WALK = {"radius": 60.0, "n_iter": 8}
NAMES = ["age", "ward=A", "ward=C", "ward=D", "smoker"]
EVERY = [
    (PrivateLasso, {}),
    (PrivateLasso, {"solver": "frank-wolfe", "standardize": False}),
    *((kind, WALK) for kind in (DPFrankWolfe, RNMScreen, ADPScreen)),
    *((getattr(peers, name), {}) for name in peers.__all__),
]


def table(n_rows=600):
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {
            "age": rng.uniform(20, 80, n_rows),
            "ward": rng.choice(WARDS[:3], n_rows, p=[0.5, 0.3, 0.2]),
            "smoker": rng.random(n_rows) < 0.3,
        }
    )
    effects = frame["ward"].map({"A": 12.0, "B": 0.0, "C": -9.0})
    return frame, (frame["age"] / 2 + effects + 7 * frame["smoker"] + rng.normal(0, 2, n_rows))


def closed(frame):
    return frame.assign(ward=frame["ward"].astype(pd.CategoricalDtype(WARDS)))


def by_hand(frame):
    """Encode as pandas does: a dummy for every level of the type but the first."""
    dummies = pd.get_dummies(closed(frame), prefix_sep="=", drop_first=True, columns=["ward"])
    return dummies[NAMES].astype(float)


def as_polars(frame, kind):
    wards = pl.Series(frame["ward"].tolist(), dtype=pl.String).cast(kind)
    return pl.DataFrame({"age": frame["age"], "ward": wards, "smoker": frame["smoker"]})


FORMS = {
    "texts": lambda frame: frame,
    "objects": lambda frame: frame.assign(ward=frame["ward"].astype(object)),
    "category": closed,
    "learnt category": lambda frame: frame.astype({"ward": "category"}),
    "Arrow texts": lambda frame: frame.astype({"ward": "string[pyarrow]"}),
    "nullable truths": lambda frame: frame.astype({"smoker": "boolean"}),
    "Arrow truths": lambda frame: frame.astype({"smoker": "bool[pyarrow]"}),
    "polars texts": lambda frame: as_polars(frame, pl.String),
    "polars open": lambda frame: as_polars(frame, pl.Categorical),
    "polars enum": lambda frame: as_polars(frame, pl.Enum(WARDS)),
    "polars other enum": lambda frame: as_polars(frame, pl.Enum(["x", *sorted(WARDS)])),
}


def released(model):
    return [*model.coef_.tolist(), model.intercept_]


# --- the design -----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_features_are_the_dummies_of_pandas(form):
    frame, _ = table(50)
    given = FORMS[form](frame)
    columns = frame_columns(given, LEVELS)
    numbers = frame[["age", "smoker"]].to_numpy(float)
    assert columns.feature_names == tuple(NAMES)
    np.testing.assert_array_equal(columns.encoded(given, numbers), by_hand(frame))
    as_sparse = columns.encoded_sparse(given, sp.coo_array(numbers))
    np.testing.assert_array_equal(as_sparse.toarray(), by_hand(frame))


FIELDS = [
    {"name": "age", "type": "number", "constraints": {"minimum": 0, "maximum": 100}},
    {"name": "ward", "type": "string", "constraints": {"enum": WARDS}},
    {"name": "smoker", "type": "boolean"},
    {"name": "cost", "type": "number", "constraints": {"minimum": -50, "maximum": 100}},
]


@pytest.mark.parametrize("kind", [PrivateOLS, PrivateLasso])
def test_a_schema_means_what_categories_mean(kind):
    frame, y = table(6000)
    schema = TableSchema.from_dict({"fields": FIELDS, "dpscreen": {"target": "cost"}})
    declared = SCALES | {"feature_bounds": schema.feature_bounds}
    read = kind(**declared).fit(schema.encode(frame.assign(cost=y)))
    told = kind(**SETTING, categories=LEVELS).fit(frame, y)
    assert list(read.feature_names_out_) == list(told.feature_names_out_) == NAMES
    assert released(read) == released(told)
    for notes in (read.described(schema=schema.to_dict()), told.released()):
        text = explanation_of(notes)
        other = " and those left out: ward with B or D." if kind is PrivateOLS else ": ward with B."
        assert f"Levels are compared with the first declared one{other}" in text
        assert text.count("A cell that is missing") == 1


@pytest.mark.parametrize(
    ("block", "told"),
    [
        ({"target": "y"}, "Rows without a target are left out."),
        ({"target": "y", "fill": {"y": 3.0}}, "A missing target counts as its fill"),
        ({"target": "y", "fill": {"y": True}}, "A missing target counts as its fill"),
    ],
)
def test_what_a_missing_target_counts_as_is_told(block, told):
    (text,) = about_missing({"dpscreen": block}, {})
    assert told in text
    assert list(about_missing(None, {})) == []


@pytest.mark.parametrize(("kind", "more"), EVERY)
def test_a_frame_releases_what_its_encoded_array_does(kind, more):
    frame, y = table()
    array = np.ascontiguousarray(by_hand(frame))  # products of rows laid out alike, to the bit
    pairs = [(0, 100), *[(0, 1)] * 4]
    expected = kind(**SCALES, **more, feature_bounds=pairs).fit(array, y)
    found = kind(**SETTING, **more, categories=LEVELS).fit(frame, y)
    assert released(found) == released(expected)
    assert found.predict(frame).tolist() == expected.predict(array).tolist()
    assert found.feature_names_out_.tolist() == NAMES
    assert found.feature_names_in_.tolist() == list(frame)
    assert found.n_features_in_ == 3
    assert found.coef_.shape == (5,)


def test_a_coefficient_is_the_effect_against_the_reference():
    frame, y = table(6000)
    model = peers.AdaSSP(**SETTING | {"epsilon": 500.0}, standardize=False, categories=LEVELS)
    design = np.column_stack((np.ones(len(y)), by_hand(frame).drop(columns="ward=D")))
    ols = np.linalg.lstsq(design, y.to_numpy(), rcond=None)[0]
    found = dict(zip(NAMES, model.fit(frame, y).coef_, strict=True))
    assert found["ward=A"] == pytest.approx(ols[2], abs=0.5)
    assert found["ward=C"] == pytest.approx(ols[3], abs=0.5)
    assert found["smoker"] == pytest.approx(ols[4], abs=0.5)


def test_intervals_of_pandas_are_levels():
    frame, y = table()
    edges = [0, 30, 50, 100]
    frame = frame.assign(age=pd.cut(frame["age"], edges))
    with pytest.warns(LearntLevelsWarning, match="'age'"):
        model = PrivateLasso(**SCALES, categories=LEVELS).fit(frame, y)
    names = ["age=(30, 50]", "age=(50, 100]", *NAMES[1:]]
    assert model.feature_names_out_.tolist() == names
    codes = frame["age"].cat.codes.to_numpy()
    array = np.column_stack((codes == 1, codes == 2, by_hand(table()[0])[NAMES[1:]]))
    expected = PrivateLasso(**SCALES, feature_bounds=(0, 1)).fit(array, y)
    assert released(model) == released(expected)


# --- bounds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bounds",
    [
        (0, 100),
        [(0, 100)],
        [(0, 100), *[(0, 1)] * 4],
        {"age": (0, 100), "smoker": (0, 1)},
        {"age": (0, 100), "ward=A": (0, 1)},
    ],
    ids=str,
)
def test_bounds_are_for_numbers(bounds):
    frame, y = table()
    expected = DPFrankWolfe(**SETTING, **WALK, categories=LEVELS).fit(frame, y)
    model = DPFrankWolfe(**SETTING | {"feature_bounds": bounds}, **WALK, categories=LEVELS)
    assert released(model.fit(frame, y)) == released(expected)
    assert model._public_bounds()[0].tolist() == [[0, 100], *[[0, 1]] * 4]


def test_truths_and_levels_alone_need_no_bounds():
    frame, y = table()
    model = PrivateLasso(**SCALES, categories=LEVELS).fit(frame[["ward", "smoker"]], y)
    assert model.feature_names_out_.tolist() == NAMES[1:]


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (None, "feature_bounds must be given"),
        ({"age": (0, 100), "smoker": (0, 2)}, r"have the bounds \(0, 1\)"),
        ([(0, 100), *[(-1, 1)] * 4], r"have the bounds \(0, 1\)"),
        ({"age": (0, 100), "ward": (0, 1)}, r"unknown \['ward'\]"),
        ({"smoker": (0, 1)}, r"missing \['age'\]"),
        ([(0, 100)] * 3, "each of the 1 features"),
    ],
)
def test_wrong_bounds_are_named(bounds, message):
    frame, y = table(40)
    model = PrivateLasso(**SETTING | {"feature_bounds": bounds}, categories=LEVELS)
    with pytest.raises(ValueError, match=message):
        model.fit(frame, y)
    assert not hasattr(model, "columns_")


# --- one more row ---------------------------------------------------------------------------------

COLUMNS = {"words": ["x", "a"], "codes": [0, 1, 2.5], "truths": [False, True], "mixed": ["1", "x"]}
CELLS = st.sampled_from(
    [
        *(0, 1, 2, 7, 2**60, 0.0, -0.0, 1.0, 2.5, math.nan, math.inf, True, False, None),
        *("a", "x", " a ", "", "0", "1.0", "true", "nan", "\ud800", Decimal("2.5"), 1j, b"a"),
        *(np.float32(2.5), np.str_("x"), pd.NA, (1,), 10**400),
    ]
)
WAYS = {
    "pandas": lambda cells: pd.DataFrame({"x": pd.Series(cells)}),
    "objects": lambda cells: pd.DataFrame({"x": pd.Series(cells, dtype=object)}),
    "category": lambda cells: pd.DataFrame({"x": pd.Series(cells, dtype="category")}),
    "polars": lambda cells: pl.DataFrame({"x": pl.Series(cells, dtype=pl.Object)}),
}


def built(way, cells):
    """Return a frame; None where the library itself cannot build one."""
    try:
        return WAYS[way](cells)
    except (Exception, pl.exceptions.PanicException):
        return None


@pytest.mark.parametrize("way", WAYS)
@given(st.sampled_from(sorted(COLUMNS)), st.lists(CELLS, min_size=1, max_size=6), CELLS)
def test_one_more_row_moves_no_other(way, kind, cells, one):
    few, more = built(way, cells), built(way, [*cells, one])
    if few is None or more is None:
        return
    columns = frame_columns(few, {"x": COLUMNS[kind]})
    assert columns == frame_columns(more, {"x": COLUMNS[kind]})
    before = columns.encoded(few, np.empty((len(cells), 0)))
    after = columns.encoded(more, np.empty((len(cells) + 1, 0)))
    np.testing.assert_array_equal(before, after[:-1])
    assert set(np.unique(after)) <= {0.0, 1.0}
    assert (after.sum(axis=1) <= 1).all()


# --- sparse frames --------------------------------------------------------------------------------


def sparse_table():
    frame, y = table()
    zeros = np.where(frame["age"] > 60, frame["age"], 0.0)
    ages = pd.arrays.SparseArray(zeros, fill_value=0.0)
    truths = pd.arrays.SparseArray(frame["smoker"].to_numpy())
    return frame.assign(age=ages, smoker=truths), by_hand(frame.assign(age=zeros)), y


@pytest.mark.parametrize("kind", [PrivateLasso, RNMScreen])
def test_a_sparse_frame_releases_what_its_encoded_matrix_does(kind):
    frame, encoded, y = sparse_table()
    more = {} if kind is PrivateLasso else WALK
    pairs = [(0, 100), *[(0, 1)] * 4]
    expected = kind(**SCALES, **more, feature_bounds=pairs).fit(sp.csr_array(encoded), y)
    found = kind(**SETTING, **more, categories=LEVELS).fit(frame, y)
    assert released(found) == released(expected)
    assert "sparse" in str(found.privacy_)
    assert found.feature_names_in_.tolist() == list(frame)
    dense = pd.DataFrame({name: np.asarray(frame[name]) for name in frame})
    np.testing.assert_allclose(found.predict(frame), found.predict(dense), rtol=1e-12)


# --- what is told ---------------------------------------------------------------------------------


def test_a_type_that_lists_its_levels_declares_them():
    frame, y = table()
    expected = PrivateLasso(**SETTING, categories=LEVELS).fit(frame, y)
    with pytest.warns(LearntLevelsWarning, match="'ward'") as caught:
        model = PrivateLasso(**SETTING).fit(closed(frame), y)
    assert caught[-1].filename == __file__
    assert not any(repr(ward) in str(one.message) for ward in WARDS for one in caught)
    enum = PrivateLasso(**SETTING).fit(as_polars(frame, pl.Enum(WARDS)), y)  # without a warning
    assert released(model) == released(enum) == released(expected)
    assert "the levels of ward: B, the reference, and A, C and D" in model.privacy_.public


# --- the model file -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [PrivateLasso, DPFrankWolfe])
def test_a_loaded_model_predicts_from_a_frame(kind, tmp_path):
    frame, y = table()
    more = {} if kind is PrivateLasso else WALK
    model = kind(**SETTING, **more, categories=LEVELS).fit(frame, y)
    model.save(tmp_path / "model.json")
    again = dpscreen.load(tmp_path / "model.json")
    for form in FORMS.values():
        assert again.predict(form(frame)).tolist() == model.predict(frame).tolist()
    assert again.feature_names_in_.tolist() == list(frame)
    assert again.feature_names_out_.tolist() == NAMES
    assert again.n_features_in_ == 3
    assert str(again.summary()) == str(model.summary())
    with (
        pytest.raises(ValueError, match="data frame"),
        pytest.warns(UserWarning, match="valid feature names"),
    ):
        again.predict(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(by_hand(frame))


@pytest.mark.parametrize(
    "wrong",
    [
        {"ward": ["B", "C", "A", "D"]},
        {"other": ["a", "b"]},
        {"ward": ["B"]},
        {"ward": ["B", "A", "A"]},
        {"ward": ["B", 1]},
        {},
    ],
    ids=str,
)
def test_categories_in_a_file_must_give_its_features(wrong, tmp_path):
    frame, y = table()
    model = PrivateLasso(**SETTING, categories=LEVELS).fit(frame, y)
    found = to_dict(model.released())
    found["model"]["categories"] = wrong
    (tmp_path / "model.json").write_text(json.dumps(found))
    with pytest.raises(ModelFileProblem, match="categories"):
        dpscreen.load(tmp_path / "model.json")


def test_a_part_that_cannot_be_encoded_comes_back_without_columns():
    """It runs on a worker of a cluster, whose log would show what is raised."""
    frame, _ = table(20)
    columns = frame_columns(frame, LEVELS)
    assert list(_read_part(frame, columns.read_part, NAMES)) == NAMES
    spoilt = _read_part(frame.assign(age="Zebedee"), columns.read_part, NAMES)
    assert spoilt.shape == (20, 0)


# --- bad input ------------------------------------------------------------------------------------

SECRET = "Zebedee-8675309"


def bad_frames():
    frame, _ = table(30)
    secret = frame.assign(ward=SECRET)
    learnt = secret.astype({"ward": "category"})
    return {
        "text": (secret, None, "column ward"),
        "objects": (secret.astype({"ward": object}), None, "column ward"),
        "polars text": (as_polars(secret, pl.String), None, "column ward"),
        "open polars": (as_polars(secret, pl.Categorical), None, "categories="),
        "truths as objects": (frame.astype({"smoker": object}), LEVELS, "column smoker"),
        "one level": (learnt, None, "column 'ward' must list two levels"),
        "no such column": (frame, {"wards": WARDS}, "no column 'wards'"),
        "text elsewhere": (secret.assign(b=SECRET), LEVELS, "column b"),
        "missing number": (frame.assign(age=[np.nan, *frame["age"][1:]]), LEVELS, "NaN"),
        "missing truth": (
            frame.assign(smoker=pd.array([None, *frame["smoker"][1:]], dtype="boolean")),
            LEVELS,
            "NaN",
        ),
        "an array": (by_hand(frame).to_numpy(), LEVELS, "need a data frame"),
        "same names": (frame.assign(**{"ward=A": 1.0}), LEVELS, "the same"),
        "numbered columns": (
            closed(frame).set_axis([0, 1, 2], axis=1),
            None,
            "names of columns that are texts",
        ),
        "no mapping": (frame, WARDS, "must map"),
        "numbers as names": (frame, {1: WARDS}, "must map"),
        "one level declared": (frame, {"ward": ["B"]}, r"categories\['ward'\] must list"),
        "text for a list": (frame, {"ward": "BACD"}, "must list"),
        "a set": (frame, {"ward": set(WARDS)}, "must list"),
        "a level twice": (frame, {"ward": ["B", "A", " A"]}, "no value twice"),
        "a value twice": (frame, {"ward": ["B", 1, True]}, "no value twice"),
        "an empty level": (frame, {"ward": ["B", ""]}, "none of them empty"),
        "a missing level": (frame, {"ward": ["B", None]}, "must list"),
        "not a number": (frame, {"ward": [1.0, math.nan]}, "must list"),
        "half a character": (frame, {"ward": ["B", "\ud800"]}, "must list"),
    }


@pytest.mark.filterwarnings("ignore::dpscreen.models.categories.LearntLevelsWarning")
@pytest.mark.parametrize("kind", [PrivateLasso, RNMScreen])
@pytest.mark.parametrize("case", bad_frames())
def test_bad_frames_are_refused_without_a_cell(case, kind, tmp_path):
    frame, categories, message = bad_frames()[case]
    more = {} if kind is PrivateLasso else WALK
    model = kind(**SCALES, **more, feature_bounds=(0, 100), categories=categories)
    ledger = dpscreen.PrivacyLedger.create(
        tmp_path / "ledger", dataset="wards", epsilon=50, delta=1e-3
    )
    with pytest.raises(ValueError, match=message) as caught:
        model.fit(frame, np.arange(30.0), ledger=ledger)
    told = "".join(traceback.format_exception(caught.value))
    assert SECRET not in str(caught.value)
    assert SECRET not in told
    assert not [name for name in vars(model) if name.endswith("_")]


def test_notes_on_bounds_name_the_feature_that_stands_behind_a_category():
    frame, y = table(4000)
    late = frame.assign(visits=500 - np.random.default_rng(5).poisson(0.05, len(frame)))
    model = PrivateLasso(**SCALES, feature_bounds={"age": (0, 100), "visits": (0, 500)})
    with pytest.warns(dpscreen.models.base.BoundsWarning, match="visits"):
        model.set_params(categories=LEVELS).fit(late, y)
    assert model.bounds_notes_ == (BoundsNote("visits", 0, 500, "upper"),)


@pytest.mark.parametrize("cell", [None, "Z", "a", "", 7])
def test_a_cell_without_a_level_counts_as_the_reference_and_only_predict_says_so(cell):
    """Rows to predict for are not protected; those of a fit are."""
    frame, y = table()
    odd = frame.assign(ward=pd.Series([cell] * 3 + frame["ward"].tolist()[3:], dtype=object))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = PrivateLasso(**SETTING, categories=LEVELS).fit(odd, y)
    assert not [one for one in told if "levels" in str(one.message)]
    with pytest.warns(UserWarning, match=r"'ward': 3 of 3 cells .* as 'B', the reference"):
        found = model.predict(odd[:3])
    assert found.tolist() == model.predict(frame[:3].assign(ward="B")).tolist()


def test_weekdays_and_months_are_compared_with_the_first():
    schema = {"fields": [{"name": "in", "type": "date"}, {"name": "out", "type": "date"}]}
    told = about_levels(["in", "in=Tuesday", "out=February", "out=Monday"], schema, {})
    assert list(told) == [
        "in stands for days since the first.",
        "Levels are compared with the first declared one: in with Monday and out with January.",
    ]
