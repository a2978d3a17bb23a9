"""Formulas: the columns that statsmodels would make, bounds that enclose, and what is refused."""

import json

import numpy as np
import pandas as pd
import patsy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpscreen import PrivateLasso, PrivateLogit, PrivateOLS, load, scan
from dpscreen.models.page import render_model_page
from dpscreen.tables.arithmetic import Constant, Feature, Function, Operation, Power
from dpscreen.tables.reading import read_features, read_rows
from dpscreen.tables.schema import SchemaProblem, TableSchema, load_schema
from tools.command import invoke

BOUNDS = {"y": (1, 1000), "age": (18, 90), "bmi": (10, 60), "weekly hours": (0, 80)}
SCHEMA = {
    "fields": [
        *(
            {"name": name, "type": "number", "constraints": {"minimum": low, "maximum": high}}
            for name, (low, high) in BOUNDS.items()
        ),
        {"name": "smoker", "type": "boolean"},
        {"name": "ward", "type": "string", "constraints": {"enum": ["A", "B", "C"]}},
    ],
    "dpscreen": {"target": "y"},
}
WHOLE = (
    "y ~ age + I(age**2) + smoker*bmi + ward + age:bmi + ward:smoker + log(bmi) + "
    "bs(`weekly hours`, knots=[20, 40])"
)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(3)
    n = 3000
    found = pd.DataFrame({name: rng.uniform(*pair, n) for name, pair in BOUNDS.items()})
    found["smoker"] = rng.random(n) < 0.3
    found["ward"] = rng.choice(["A", "B", "C"], n)
    found["y"] = np.clip(200 + 5 * found.age + 0.1 * (found.age - 54) ** 2, 1, 1000)
    return found


def declared(formula, **more):
    return TableSchema.from_dict(SCHEMA | {"dpscreen": {"formula": formula, **more}})


def encoded(frame, formula):
    return pd.DataFrame(
        declared(formula).encode(frame).X, columns=list(declared(formula).feature_names)
    )


# --- columns --------------------------------------------------------------------------------------


def test_columns_span_what_patsy_makes_of_the_same_formula(frame):
    found = encoded(frame, WHOLE)
    quoted = WHOLE.replace("`weekly hours`", "hours")
    bounds = "[20, 40], lower_bound=0, upper_bound=80"
    there = patsy.dmatrix(
        quoted.partition("~")[2].replace("log", "np.log").replace("[20, 40]", bounds),
        frame.rename(columns={"weekly hours": "hours"}),
        return_type="dataframe",
    )
    here = np.column_stack([np.ones(len(found)), found])
    assert here.shape[1] == there.shape[1]
    gap = here - there.to_numpy() @ np.linalg.lstsq(there.to_numpy(), here, rcond=None)[0]
    assert np.abs(gap).max() < 1e-6 * np.abs(here).max()
    basis = [f"bs(weekly hours, knots=[20, 40])[{k}]" for k in range(1, 6)]
    theirs = [one for one in there if one.startswith("bs(")]
    np.testing.assert_allclose(found[basis], there[theirs], atol=1e-12)


def test_powers_and_products_are_centred_where_lower_terms_are_there(frame):
    age, bmi = frame.age, frame.bmi
    full = encoded(frame, "y ~ age*bmi + I(age**2) + poly(bmi, 2, raw=True)")
    np.testing.assert_allclose(full["(age - 54):(bmi - 35)"], (age - 54) * (bmi - 35), atol=1e-9)
    np.testing.assert_allclose(full["I((age - 54) ** 2)"], (age - 54) ** 2)
    np.testing.assert_allclose(full["poly(bmi, 2, raw=True)[2]"], (bmi - 35) ** 2)
    np.testing.assert_array_equal(full["age"], age)
    alone = encoded(frame, "y ~ I(age**2) + age:bmi + I(bmi**3) + bmi")
    np.testing.assert_allclose(alone["I(age ** 2)"], age**2)
    np.testing.assert_allclose(alone["(age - 54):bmi"], (age - 54) * bmi)
    np.testing.assert_allclose(alone["I(bmi ** 3)"], bmi**3)


def test_levels_are_coded_as_in_r(frame):
    assert list(encoded(frame, "y ~ ward:smoker")) == [f"ward={one}:smoker" for one in "ABC"]
    assert list(encoded(frame, "y ~ ward*smoker"))[-2:] == ["ward=B:smoker", "ward=C:smoker"]
    assert list(encoded(frame, "y ~ C(ward, Treatment('B'))")) == ["ward=A", "ward=C"]


def test_a_formula_of_all_columns_changes_nothing(frame):
    plain, dotted = TableSchema.from_dict(SCHEMA), declared("y ~ .")
    assert plain.feature_names == dotted.feature_names
    np.testing.assert_array_equal(plain.feature_bounds, dotted.feature_bounds)
    np.testing.assert_array_equal(plain.encode(frame).X, dotted.encode(frame).X)


# --- bounds ---------------------------------------------------------------------------------------

LEAVES = st.sampled_from([Feature("a"), Feature("b"), Constant(-2.5), Constant(0.1), Constant(3.0)])
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(
            Operation,
            st.sampled_from(["+", "-", "*", "minimum", "maximum", "<", "<="]),
            inner,
            inner,
        ),
        st.builds(Power, inner, st.integers(2, 4)),
        st.builds(lambda one: Function("log", Operation("+", Power(one, 2), Constant(0.5))), inner),
        st.builds(
            lambda a, b: Operation("/", a, Operation("+", Power(b, 2), Constant(1.0))), inner, inner
        ),
    ),
    max_leaves=8,
)


@given(
    EXPRESSIONS,
    st.tuples(st.floats(-50, 50), st.floats(0.01, 100)),
    st.tuples(st.floats(-1, 1), st.floats(0.01, 3)),
    st.integers(0, 2**32 - 1),
)
def test_no_value_leaves_its_enclosure(expression, first, second, seed):
    bounds = {"a": (first[0], sum(first)), "b": (second[0], sum(second))}
    low, high = expression.enclosure(bounds)
    rng = np.random.default_rng(seed)
    rows = {
        name: np.concatenate([ends, ends[::-1], rng.uniform(*ends, 500)])
        for name, ends in bounds.items()
    }
    values = expression.values(rows)
    assert np.all((low <= values) & (values <= high))


def test_enclosures_are_tight_where_a_variable_occurs_twice(frame):
    schema = declared(
        "y ~ I(bmi - bmi**2) + I(age * (100 - age)) + I((age - 20)**2) + bs(age, knots=[40, 60])"
    )
    bounds = dict(zip(schema.feature_names, schema.feature_bounds, strict=True))
    np.testing.assert_allclose(bounds["I(bmi - bmi ** 2)"], (-3540, -90), atol=0.1)
    np.testing.assert_allclose(bounds["I(age * (100 - age))"], (900, 2500), atol=2)
    assert bounds["I((age - 20) ** 2)"].tolist() == [0, 4900]
    values = encoded(frame, "y ~ bs(age, knots=[40, 60])")
    for name in values:
        assert bounds[name][0] == 0
        assert bounds[name][1] - values[name].max() < 0.02


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("y ~ scale(age)", "numbers that you choose"),
        ("y ~ center(age)", "I\\(x - 50\\)"),
        ("y ~ poly(age, 2)", "raw=True"),
        ("y ~ bs(age, df=4)", "knots that you choose"),
        ("y ~ bs(age, knots=[5])", "between 18 and 90"),
        ("y ~ C(age)", "Declare them in the schema"),
        ("y ~ C(ward, Sum)", "cov_params"),
        ("y ~ lag(age, 1)", "other rows"),
        ("y ~ log(age - 18)", "above 0, and age is declared from 18 to 90"),
        ("y ~ I(1 / (age - 50))", "denominator may be 0"),
        ("y ~ agee", "did you mean 'age'"),
        ("y ~ age - 1", "fit_intercept=False"),
        ("y ~ I(age * 0)", "is constant, or varies too much"),
        ("y ~ age + y", "names the target"),
        ("exp(y) ~ age", "left-hand side"),
        ("y ~ __import__('os').system('true')", "dpscreen.formula"),
        ("y ~ age.real", "not supported"),
        ("age + bmi", "must begin with the target"),
    ],
)
def test_what_learns_or_is_undefined_is_refused_with_an_alternative(formula, words):
    with pytest.raises(SchemaProblem, match=words):
        declared(formula).check()


# --- models ---------------------------------------------------------------------------------------

SETTING = {"epsilon": 5.0, "delta": 1e-6, "random_state": 1}


@pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning")
def test_one_fit_wherever_the_rows_are_and_predictions_from_raw_frames(frame, tmp_path):
    dask = pytest.importorskip("dask.dataframe")
    formula = "y ~ age + I(age**2) + smoker + log(bmi)"
    model = PrivateOLS.from_formula(formula, SCHEMA, **SETTING).fit(frame)
    frame.to_parquet(tmp_path / "rows.parquet")
    for rows in (
        scan(tmp_path / "rows.parquet", model.schema),
        read_rows(tmp_path / "rows.parquet", model.schema),
        dask.from_pandas(frame, npartitions=3),
    ):
        other = PrivateOLS.from_formula(formula, SCHEMA, **SETTING).fit(rows)
        np.testing.assert_array_equal(other.coef_, model.coef_)
    model.save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    new = frame.drop(columns="y").head(50)
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    assert abs(model.predict(new) - frame.y.head(50)).mean() < 30
    low, high = model.conf_int().loc["I((age - 54) ** 2)"]
    assert low < 0.1 < high


def test_a_classifier_takes_its_classes_from_the_schema(frame):
    formula = "smoker ~ age + bmi"
    model = PrivateLogit.from_formula(formula, SCHEMA, epsilon=5, delta=1e-6).fit(frame)
    assert set(model.predict(frame.head(20))) <= {True, False}
    with pytest.raises(ValueError, match="two outcomes"):
        PrivateLogit.from_formula("y ~ age", SCHEMA, epsilon=5, delta=1e-6)
    logs = PrivateLasso.from_formula("log(y) ~ age", SCHEMA, epsilon=5, delta=1e-6).fit(frame)
    found = logs.predict(frame)  # in the units of the table
    assert found.max() <= 1000
    assert found.min() > np.log(1000)


def test_curves_cover_the_truth_and_are_on_the_page(frame, tmp_path):
    formula = "y ~ age + I(age**2) + smoker + bs(bmi, knots=[30])"
    setting = {"epsilon": 20.0, "delta": 1e-6}
    model = PrivateOLS.from_formula(formula, SCHEMA, **setting).fit(frame)
    found = model.partial_effect("age", n_points=25)
    age = found.index.to_numpy()
    truth = 5 * (age - 54) + 0.1 * (age - 54) ** 2
    wide = model.partial_effect("age", n_points=25, alpha=1e-6)
    assert ((wide.lower <= truth) & (truth <= wide.upper)).all()
    assert found.loc[54].tolist() == [0, 0, 0]
    step = model.effect("age", 18, 54).summary_frame().iloc[0]
    np.testing.assert_allclose(found.iloc[0], -step[["coef", "high", "low"]].to_numpy(float))
    new = frame.head(2).assign(age=[30.0, 54.0], bmi=35.0, smoker=False)
    drop = model.predict(new)
    np.testing.assert_allclose(found.loc[30.0, "estimate"], drop[0] - drop[1])
    model.save(tmp_path / "m.json")
    page = render_model_page(load(tmp_path / "m.json"))
    assert page.count('id="curves"') == 1
    assert "age: least at" in page
    assert "bmi: least at" in page
    sparse = PrivateLasso.from_formula(formula, SCHEMA, **setting).fit(frame)
    assert sparse.partial_effect("age").lower.isna().all()
    assert "There is no band." in render_model_page(sparse)
    with pytest.raises(ValueError, match="there is no number"):
        model.partial_effect("agee")


@pytest.mark.parametrize("terms", ["age + I(age**2)", "age*bmi", "poly(age, 2, raw=True)"])
def test_centred_terms_need_an_intercept(frame, terms):
    setting = SETTING | {"fit_intercept": False}
    with pytest.raises(ValueError, match="another model"):
        PrivateOLS.from_formula(f"y ~ {terms}", SCHEMA, **setting)
    PrivateOLS.from_formula("y ~ I(age**2) + ward*smoker", SCHEMA, **setting)


@pytest.mark.parametrize(("command", "more"), [("plan", []), ("compare", ["--repetitions", "2"])])
def test_plans_and_comparisons_count_the_terms(command, more, tmp_path, monkeypatch):
    monkeypatch.setattr("dpscreen.planning.power.affordable_repetitions", lambda *_, **__: 4)
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    given = ["--rows", "2000", "--json", "--formula", "y ~ age*bmi"]
    budget = ["--epsilon", "3", "--delta", "1e-5", *more]
    done = invoke(command, *given, *budget, "--schema", tmp_path / "schema.json")
    assert done.exit_code == 0, done.output
    assert '"n_features": 3' in done.stdout
    refused = invoke(command, *given, *budget, "--features", "3")
    assert "--formula needs --schema" in refused.output


def test_formulas_in_a_schema_file_and_on_the_command_line(frame, tmp_path):
    frame.to_csv(tmp_path / "rows.csv", index=False)
    columns = "".join(f'"{name}" = {{bounds = [{a}, {b}]}}\n' for name, (a, b) in BOUNDS.items())
    columns += 'smoker = {type = "boolean"}\nward = {categories = ["A", "B", "C"]}\n'
    (tmp_path / "schema.toml").write_text(f'formula = "y ~ age + ward"\n[columns]\n{columns}')
    assert load_schema(tmp_path / "schema.toml").feature_names == ("age", "ward=B", "ward=C")
    where = [str(tmp_path / "rows.csv"), "--schema", str(tmp_path / "schema.toml")]
    budget = ["--epsilon", "3", "--delta", "1e-6", "--model", "ols"]
    terms = ["--formula", "y ~ age + I(age**2)", "-o", f"{tmp_path}/m.json"]
    done = invoke("fit", *where, *budget, *terms)
    assert done.exit_code == 0, done.output
    model = load(tmp_path / "m.json")
    assert model.feature_names_out_.tolist() == ["age", "I((age - 54) ** 2)"]
    there = read_features(tmp_path / "rows.csv", TableSchema.from_dict(model.schema))
    np.testing.assert_allclose(there @ model.coef_ + model.intercept_, model.predict(frame))
    refused = invoke("fit", *where, *budget, "--formula", "y ~ scale(age)", "--dry-run")
    assert "numbers that you choose" in refused.stderr
