"""`dpscreen fit`: from a table to files, and everything that must not happen on the way."""

import errno
import json
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

import dpscreen
from dpscreen.cli import fit as fit_module
from dpscreen.planning import methods
from dpscreen.privacy import ZCDP, Budget
from dpscreen.privacy.ledger import PrivacyLedger
from dpscreen.tables import reading
from dpscreen.tables.reading import read_rows
from dpscreen.tables.schema import load_schema
from tools.command import dpscreen as run
from tools.command import failed, invoke, succeeded

QUICK = """
from dpscreen.planning import plan
plan.SECONDS = 0.1  # of simulations, which need not be good
"""
BUDGET = ("--epsilon", 1, "--delta", "1e-6")
SECRET = "731.4159"
HEADER = "age,smoker,patient,cost\n"
COMPLETE = {
    "fields": [
        {"name": "age", "type": "number", "constraints": {"minimum": 0, "maximum": 120}},
        {"name": "smoker", "type": "string", "constraints": {"enum": ["yes", "no"]}},
        {"name": "patient", "type": "string"},
        {"name": "cost", "type": "number", "constraints": {"minimum": 0, "maximum": 1000}},
    ],
    "dpscreen": {"target": "cost", "features": ["age", "smoker"]},
}


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """Make simulations in this process short."""
    monkeypatch.setattr("dpscreen.planning.plan.SECONDS", 0.1)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Go to a directory with a table, its schema and a ledger."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    age, smoker = rng.uniform(20, 80, 500), rng.choice(["yes", "no"], 500)
    cost = 5 * age + 200 * (smoker == "yes") + rng.normal(0, 30, 500)
    rows = zip(age, smoker, range(500), cost, strict=True)
    lines = [f"{a:.2f},{s},p{i // 2},{c:.2f}\n" for a, s, i, c in rows]
    lines[7] = f"{SECRET},yes,secret-patient,{SECRET}\n"
    (tmp_path / "data.csv").write_text(HEADER + "".join(lines))
    write_schema(tmp_path)
    PrivacyLedger.create(tmp_path / "budget.ledger", dataset="stays", epsilon=1.5, delta=1e-6)
    return tmp_path


def write_schema(place, name="schema.json", **block):
    schema = COMPLETE | {"dpscreen": COMPLETE["dpscreen"] | block}
    (place / name).write_text(json.dumps(schema))


def fit(*arguments):
    """Run the command in this process, which is quicker."""
    full = ("data.csv", "--schema", "schema.json", *BUDGET, *arguments)
    return invoke("fit", *full)


def spent(place) -> float:
    return float(PrivacyLedger(place / "budget.ledger").spent)


def untouched(place) -> bool:
    """Whether nothing was written and nothing spent."""
    inputs = {"data.csv", "schema.json", "budget.ledger"}
    return {one.name for one in place.iterdir()} <= inputs and spent(place) == 0


# --- a real fit -----------------------------------------------------------------------------------


def test_coefficients_of_interest_are_named(place):
    done = fit("-o", "model.json", "--interest", "age")
    assert done.exit_code == 2
    assert "interest belongs to private-ols" in done.output
    done = fit("-o", "model.json", "--model", "ols", "--interest", "smoker", "--required", "age")
    assert done.exit_code == 0, done.output
    table = dpscreen.load(place / "model.json").table_
    assert [table.names[j] for j in table.nuisance] == ["age"]


def test_a_model_a_summary_and_a_page(place):
    done = run(
        *("fit", "data.csv", "--schema", "schema.json", *BUDGET, "--ledger", "budget.ledger"),
        *("--json", "-o", "model.json", "--report", "report.html"),
        *("--purpose", "the yearly report"),
        cwd=place,
        before=QUICK,
    )
    assert done.returncode == 0, done.stderr
    output = json.loads(done.stdout)
    assert output["statement"]["holds"]
    assert {row["feature"] for row in output["features"]} <= {"age", "smoker=no"}
    assert "Model written to model.json" in done.stderr
    assert "Page written to report.html" in done.stderr

    model = dpscreen.load(place / "model.json")
    assert list(model.feature_names_in_) == ["age", "smoker=no"]
    assert model.schema["dpscreen"]["target"] == "cost"
    assert model.n_rows_ == pytest.approx(500, abs=200)

    page = (place / "report.html").read_text(encoding="utf-8")
    assert "A private model of <bdi>cost</bdi>" in page
    (booked,) = PrivacyLedger(place / "budget.ledger").entries()
    assert booked.purpose == "the yearly report"
    assert (booked.detail, booked.unit) == ("PrivateLasso [unit: one row]", "one row")
    assert f"ρ {PrivacyLedger(place / 'budget.ledger').document()['remaining']['rho']:g}" in page

    for text in (done.stdout, done.stderr, page, (place / "model.json").read_text()):
        assert SECRET not in text
        assert "secret-patient" not in text
    assert not [one.name for one in place.iterdir() if one.name.startswith(".")]


@pytest.mark.parametrize(
    ("method", "fitted_by"),
    [
        ("dp-fw", "DPFrankWolfe"),
        ("rnm-screen", "RNMScreen"),
        ("adp-screen", "ADPScreen"),
        ("free-screen", "FreeScreen"),
    ],
)
def test_methods_by_name_count_the_rows_with_noise_unless_told(place, method, fitted_by):
    succeeded(fit("--model", method, "-o", "model.json", "--ledger", "budget.ledger"))
    assert len(PrivacyLedger(place / "budget.ledger").entries()) == 1
    model = dpscreen.load("model.json")
    assert model.fitted_by_ == fitted_by
    assert list(model.feature_names_in_) == ["age", "smoker=no"]
    assert model.privacy_.holds
    assert model.privacy_.mechanisms[0].purpose == "the number of rows"
    second = fit("--model", method, "--rows-public", 500, "-o", "second.json")
    assert second.exit_code == 0, second.stderr
    assert dpscreen.load("second.json").n_rows_ == 500


def test_settings_of_the_papers_methods_reach_the_fit(place):
    asked = ("--radius", 40, "--iterations", 12, "--clip", 3, "--screening-share", 0.1)
    succeeded(fit("--model", "rnm-screen", *asked, "--screen-at", 5, "-o", "model.json"))
    step, screening = dpscreen.load("model.json").privacy_.mechanisms
    assert (step.count, step.sensitivity, screening.count) == (12, 3.0, 2)
    assert screening.rho / (step.rho + screening.rho) == pytest.approx(0.1)
    for wrong in (("--screen-at", "sometimes"), ("--screen-at", "0"), ("--screening-share", 1)):
        assert fit("--model", "rnm-screen", *wrong, "-o", "x.json").exit_code == 2
    other = fit("--model", "lasso", "--screen-at", "last", "-o", "x.json")
    failed(other, 2, "screen_at belongs to rnm-screen and adp-screen")


@pytest.mark.parametrize("method", ["dp-fw", "rnm-screen", "adp-screen"])
def test_a_published_fit_says_everywhere_that_it_is_not_private(place, method):
    asked = ("--model", method, "--calibration", "published", "--iterations", 20)
    dry = fit(*asked, "--dry-run")
    assert "NOT PRIVATE AS STATED" in dry.stdout
    assert "Costs:" not in dry.stdout
    done = succeeded(fit(*asked, "-o", "model.json", "--report", "page.html"))
    assert "does not hold (errata E1" in done.stderr
    assert "NOT PRIVATE" in done.stdout
    assert "NOT PRIVATE" in (place / "page.html").read_text(encoding="utf-8")
    assert not dpscreen.load("model.json").privacy_.holds
    booked = fit(*asked, "-o", "other.json", "--ledger", "budget.db")
    failed(booked, 2, "no true cost to book")


def test_a_unit_is_named_in_the_statement(place):
    write_schema(place, unit="patient", rows_per_unit=2)
    done = succeeded(fit("-o", "model.json", "--rows-public", 500, "--ledger", "budget.ledger"))
    (booked,) = PrivacyLedger(place / "budget.ledger").entries()
    assert booked.unit == "one value of the column 'patient' (at most 2 rows)"
    statement = dpscreen.load("model.json").privacy_
    assert statement.rows_per_unit == 2
    assert "'patient' (at most 2 rows)" in statement.neighbours
    assert "rows without one left out" in statement.preprocessing
    assert "disclosed" not in done.stderr
    assert not statement.rows_disclosed


@pytest.mark.parametrize("extra", [(), ("--inference", "split"), ("--model", "dp-fw")])
def test_a_table_beyond_memory_is_streamed_to_the_same_model(place, monkeypatch, extra):
    seeded = partial(methods.FitRequest, random_state=1)
    monkeypatch.setattr(methods, "FitRequest", seeded)  # noise that can be compared
    write_schema(place, unit="patient", rows_per_unit=1)
    arguments = ("--rows-public", 250, "--no-check", *extra)
    here = fit(*arguments, "-o", "here.json")
    monkeypatch.setattr(reading, "available_memory", lambda: 1000)
    there = fit(*arguments, "-o", "there.json")
    assert (here.exit_code, there.exit_code) == (0, 0), there.stderr
    models = [dpscreen.load(name) for name in ("here.json", "there.json")]
    assert models[0].coef_.any()
    assert models[0].coef_.tolist() == models[1].coef_.tolist()
    assert models[0].intercept_ == models[1].intercept_
    assert list(models[0].feature_names_in_) == list(models[1].feature_names_in_)


@pytest.mark.parametrize("block", [{}, {"unit": "patient", "rows_per_unit": 1}])
def test_the_command_states_what_the_fit_in_python_states(place, block):
    write_schema(place, **block)
    assert fit("-o", "model.json", "--rows-public", 500, "--no-check").exit_code == 0
    schema = load_schema("schema.json")
    model = dpscreen.PrivateLasso(
        **{"epsilon": 1, "delta": 1e-6, "n_rows": 500},
        feature_bounds=schema.feature_bounds,
        target_bounds=schema.target_bounds,
    ).fit(read_rows("data.csv", schema))
    # All but what follows from released numbers.
    both = (dpscreen.load("model.json").privacy_, model.privacy_)
    said = [replace(one, mechanisms=(), rho=0.0) for one in both]
    assert said[0] == said[1]
    assert said[0].of_rows == (not block)


@pytest.mark.parametrize(
    "block",
    [{}, {"unit": "patient", "rows_per_unit": 1}, {"unit": "patient", "rows_per_unit": 2}],
)
def test_the_number_of_rows_is_paid_for_and_not_disclosed(place, block):
    write_schema(place, **block)
    assert "the true number is not disclosed" in " ".join(fit("--dry-run").stdout.split())
    succeeded(fit("-o", "model.json", "--no-check"))
    model = dpscreen.load("model.json")
    assert not model.privacy_.rows_disclosed
    assert "the number of rows" in {one.purpose for one in model.privacy_.mechanisms}
    assert "need only count" not in model.explain()


def test_a_ledger_for_rows_takes_no_fit_for_patients(place):
    assert fit("-o", "first.json", "--ledger", "budget.ledger").exit_code == 0
    before = spent(place)
    write_schema(place, unit="patient", rows_per_unit=2)
    for arguments in (("-o", "model.json"), ("--dry-run",)):
        done = fit(*arguments, "--ledger", "budget.ledger")
        failed(done, 1, "counts for 'one row', and this cost is for")
    assert spent(place) == before
    assert not (place / "model.json").exists()


# --- dry run --------------------------------------------------------------------------------------


@pytest.fixture
def garbage(place):
    """Leave nothing that could be read after the names of the columns."""
    (place / "data.csv").write_bytes(HEADER.encode() + b"\xff\xfe\x00" + SECRET.encode() * 9)
    return place


def test_a_dry_run_reads_no_cell_and_spends_nothing(garbage):
    outputs = ("--ledger", "budget.ledger", "-o", "model.json", "--report", "report.html")
    done = fit("--dry-run", "--rows-public", 500, *outputs)
    words = ("nothing is spent", "private-lasso", "one row", "rho 0.02436", "stays has")
    succeeded(done, *words, "Newton rounds over all features")
    assert SECRET not in done.output
    assert untouched(garbage)


def test_a_dry_run_loads_no_slow_library_that_it_does_not_need(garbage):
    slow = {"scipy.stats._stats_py", "matplotlib"}
    message = f"print('loaded:', {slow} & {{*sys.modules}})"
    seen = f"import atexit, sys; atexit.register(lambda: {message})"
    options = ("data.csv", "--schema", "schema.json", *BUDGET, "--rows-public", 500, "--dry-run")
    done = succeeded(run("fit", *options, before=seen, cwd=garbage))
    assert re.search(r"Power: .* 0\.4: \d+ ± \d+ %", " ".join(done.stdout.split()))
    assert done.stdout.splitlines()[-1] == "loaded: set()"


@pytest.mark.parametrize(
    ("arguments", "words", "absent"),
    [
        (("--delta", "0.01"), "Warning: delta is at least 1/n", "nothing else"),
        ((), "Dry run: no row was read", "delta is at least 1/n"),
        (("--model", "dp-fw"), "--method dp-fw simulates dp-fw", "power"),  # of another method
        (("--model", "free-screen"), "No command simulates free-screen.", "power"),
        (("--model", "ols", "--rows-public", "9"), "The fit would be refused", "times as wide"),
    ],
)
def test_a_dry_run_says_what_its_fit_would(garbage, arguments, words, absent):
    done = succeeded(fit("--dry-run", "--rows-public", 500, *arguments))
    message = " ".join(done.output.split())
    assert words in message
    assert absent not in message
    assert untouched(garbage)


def test_a_dry_run_tells_whether_a_split_will_give_intervals(garbage):
    for rows, message in ((60, "none: there are too few rows"), (50_000, "features at most")):
        split = ("--inference", "split", "--rows-public", rows)
        assert message in json.loads(fit("--dry-run", "--json", *split).stdout)["intervals"]
    assert "Intervals: of " in fit("--dry-run", *split).stdout
    assert "Intervals:" not in fit("--dry-run", "--rows-public", 500).stdout


def test_a_dry_run_as_json_without_a_number_of_rows(garbage):
    done = succeeded(fit("--dry-run", "--json", "--max-features", 2))
    output = json.loads(done.stdout)
    assert output["settings"]["max_features"] == 2
    assert (output["expected"], output["ledger"], output["would_write"]) == (None, None, [])
    assert "Give --rows-public" in fit("--dry-run").stdout
    assert untouched(garbage)


def test_the_real_run_on_garbage_fails_and_repeats_nothing(garbage):
    done = fit("-o", "model.json", "--ledger", "budget.ledger")
    assert done.exit_code == 1
    assert SECRET not in done.output
    assert untouched(garbage)


# --- refusals -------------------------------------------------------------------------------------


ALL = ("--ledger", "budget.ledger", "-o", "model.json", "--report", "report.html")


def unfilled(schema):
    del schema["fields"][0]["constraints"]


def with_another_column(schema):
    schema["fields"].append({"name": "ward", "type": "string"})


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
@pytest.mark.parametrize(
    ("change", "arguments", "code", "words"),
    [
        (unfilled, (), 1, ("The schema cannot be used yet", "'age'")),
        (with_another_column, (), 1, ("'ward'",)),
        (lambda _: None, ("--epsilon", 3), 3, ("has epsilon 1.5 left at the same delta",)),
    ],
)
def test_what_cannot_be_fitted_is_refused_before_any_row(
    garbage, dry, change, arguments, code, words
):
    schema = json.loads((garbage / "schema.json").read_text())
    change(schema)
    (garbage / "schema.json").write_text(json.dumps(schema))
    failed(fit(*arguments, *ALL, *dry), code, *words)
    assert untouched(garbage)


def test_a_budget_that_is_gone_when_it_is_needed_is_refused(place, monkeypatch):
    monkeypatch.setattr(fit_module, "check_budget", lambda ready: None)
    done = fit("--epsilon", 3, "-o", "model.json", "--ledger", "budget.ledger")
    assert done.exit_code == 3
    assert untouched(place)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "Give -o"),
        (("-o", "data.csv", "--force"), 2, "would replace another file"),
        (("-o", "schema.json", "--force"), 2, "would replace another file"),
        (("-o", "a.json", "--report", "./a.json"), 2, "would replace another file"),
        (("-o", "budget.ledger/x", "--ledger", "budget.ledger"), 2, "would replace another file"),
        (("-o", "nowhere/a.json"), 2, "there is no directory nowhere"),
        (("-o", "."), 2, "is a directory"),
        (("-o", "a.json", "--ledger", "none.db"), 1, "none.db"),
        (("-o", "a.json", "--inference", "split", "--model", "dp-fw"), 2, "inference"),
        (("-o", "a.json", "--model", "logistic"), 2, "requires a binary outcome"),
        (("-o", "a.json", "--model", "ols", "--inference", "split"), 2, "belongs to private-lasso"),
        (("-o", "a.json", "--author", "a" * 501), 2, "500 characters"),
        (("-o", "a.json", "--ledger", "budget.ledger", "--purpose", "=1+1"), 2, "--purpose"),
        (("-o", "a.json", "--delta", 1), 2, "--delta"),
        (("-o", "a.json", "--model", "laso"), 2, "lasso"),
    ],
)
def test_wrong_usage_leaves_no_file(place, arguments, code, message):
    failed(fit(*arguments), code, message, stdout="")
    assert untouched(place)


def test_a_place_that_cannot_be_written_to_is_told_before_any_row(garbage, monkeypatch):
    def refuse(**_settings):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("tempfile.NamedTemporaryFile", refuse)
    done = fit("-o", "model.json", "--ledger", "budget.ledger")
    failed(done, 1, "Cannot write model.json: Read-only file system.")
    assert untouched(garbage)


def test_a_table_of_no_rows_is_refused(place):
    (place / "data.csv").write_text(HEADER)
    failed(fit("-o", "model.json", "--ledger", "budget.ledger"), 1, "No row of the table counts")
    assert untouched(place)


def test_what_exists_is_replaced_only_by_force(place):
    (place / "model.json").write_text("mine")
    failed(fit("-o", "model.json", "--ledger", "budget.ledger"), 1, "exists already")
    assert (place / "model.json").read_text() == "mine"
    assert spent(place) == 0
    assert fit("-o", "model.json", "--force").exit_code == 0
    assert dpscreen.load(place / "model.json").n_rows_ == pytest.approx(500, abs=200)


# --- when something breaks after the budget is spent ----------------------------------------------


def full_disk(*_arguments, **_settings):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_the_model_is_safe_when_the_page_fails(place, monkeypatch):
    monkeypatch.setattr("dpscreen.planning.model_page.write_model_page", full_disk)
    done = fit("-o", "model.json", "--report", "report.html")
    failed(done, 1, "The model is in model.json, but the page could not be written")
    assert dpscreen.load(place / "model.json").n_rows_ == pytest.approx(500, abs=200)
    assert not (place / "report.html").exists()


def test_the_model_is_printed_when_the_disk_is_full(place, monkeypatch):
    monkeypatch.setattr("dpscreen.models.file.write_bytes", full_disk)
    done = failed(fit("-o", "model.json", "--ledger", "budget.ledger"), 1, "was printed instead")
    (place / "rescued.json").write_text(done.stdout)
    assert dpscreen.load(place / "rescued.json").schema["dpscreen"]["target"] == "cost"
    assert not (place / "model.json").exists()


@pytest.mark.parametrize("kind", [RuntimeError, MemoryError, KeyboardInterrupt])
def test_a_fit_that_breaks_says_so_and_repeats_nothing(place, monkeypatch, kind):
    def breaks(self, rows, *, ledger, check):
        ledger.reserve(PrivacyLedger("budget.ledger").total / 2, purpose="PrivateLasso")
        raise kind(f"cell {SECRET}")

    monkeypatch.setattr("dpscreen.models.PrivateLasso.fit", breaks)
    done = fit("-o", "model.json", "--ledger", "budget.ledger")
    assert done.exit_code == 1
    message = "Stopped." if kind is KeyboardInterrupt else f"The fit failed ({kind.__name__})"
    assert message in done.stderr
    assert "keeps what was booked" in done.stderr
    assert SECRET not in done.output
    assert not (place / "model.json").exists()


# --- completion -----------------------------------------------------------------------------------


def test_the_shell_completes_commands():
    request = {"COMP_WORDS": "dpscreen fi", "COMP_CWORD": "1"}
    assert run(_DPSCREEN_COMPLETE="bash_complete", **request).stdout == "plain,fit\n"


# --- outcomes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["boolean", "two levels"])
def test_a_target_of_two_outcomes_leads_to_a_model_of_chances(kind, place):
    fields = [dict(one) for one in COMPLETE["fields"][:2]]
    if kind == "boolean":
        fields[1] = {
            "name": "smoker", "type": "boolean", "trueValues": ["yes"], "falseValues": ["no"],
        }  # fmt: skip
    fields += [{"name": "patient", "type": "string"}, COMPLETE["fields"][3]]
    block = {"target": "smoker", "features": ["age", "cost"]}
    (place / "schema.json").write_text(json.dumps({"fields": fields, "dpscreen": block}))
    data = (place / "data.csv").read_text().splitlines()
    data[3] = "30,,p1,400"  # a missing outcome
    (place / "data.csv").write_text("\n".join(data))
    planned = fit("--dry-run", "--rows-public", 500)
    succeeded(planned, "private-logistic")
    found = fit("-o", "model.json", "--epsilon", 20, "--report", "page.html")
    succeeded(found, "PrivateLogisticLasso")
    odds = "yes against no" if kind == "boolean" else "no against yes"  # the second of two levels
    assert odds in " ".join(found.output.split())
    assert SECRET not in found.output + (place / "model.json").read_text()
    assert SECRET not in (place / "page.html").read_text()
    predicted = invoke("predict", "model.json", "data.csv")
    lines = predicted.output.split()
    assert lines[0] == "probability"
    assert all(0 <= float(line) <= 1 for line in lines[1:])
    assert invoke("show", "model.json").exit_code == 0


# --- other questions ------------------------------------------------------------------------------


UNIT = {"minimum": 0, "maximum": 1}


@pytest.fixture
def wide(tmp_path, monkeypatch):
    """Go to a directory with a larger table, and two schemas: of a number, and of a truth."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    age = rng.uniform(20, 80, 5000)
    cost = 5 * age + rng.normal(0, 30, 5000)
    others = rng.uniform(0, 1, (5000, 3)).round(3).tolist()
    rows = zip(age, cost, cost > 250, others, strict=True)
    lines = (
        f"{a:.2f},{c:.2f},{str(high).lower()},{','.join(map(str, other))}\n"
        for a, c, high, other in rows
    )
    (tmp_path / "data.csv").write_text("age,cost,high,u,v,w\n" + "".join(lines))
    fields = [
        *({"name": name, "type": "number", "constraints": UNIT} for name in "uvw"),
        {"name": "age", "type": "number", "constraints": {"minimum": 0, "maximum": 120}},
        {"name": "cost", "type": "number", "constraints": {"minimum": 0, "maximum": 1000}},
        {"name": "high", "type": "boolean"},
    ]
    for target in ("cost", "high"):
        block = {"target": target, "features": ["age", "u", "v", "w"]}
        text = json.dumps({"fields": fields, "dpscreen": block})
        (tmp_path / f"{target}.json").write_text(text)
    return tmp_path


def fit_wide(schema, *arguments):
    return invoke("fit", "data.csv", "--schema", schema, *BUDGET, *arguments)


def test_a_regression_table(wide):
    done = fit_wide("cost.json", "--model", "ols", "--rows-public", 5000, "--dry-run")
    assert "times as wide as those of least squares" in " ".join(done.stdout.split())
    given = ("--author", "A. B.", "--date", "2026-01-31", "--purpose", "the report")
    done = succeeded(fit_wide("cost.json", "--model", "ols", "-o", "table.json", *given))
    assert done.stdout.startswith("PrivateOLS of cost: 4 features, about ")
    assert "[0.025" in done.stdout
    model = dpscreen.load(wide / "table.json")
    about = {"author": "A. B.", "date": "2026-01-31", "purpose": "the report"}
    assert model.released().about == about
    assert model.table_.conf_int().loc["age"].between(4, 6).all()


@pytest.mark.parametrize(("schema", "model"), [("cost.json", "ols"), ("high.json", "logit")])
def test_a_refused_table_is_predicted_and_charged_for_its_count_alone(wide, schema, model):
    ledger = PrivacyLedger.create(wide / "b.db", dataset="d", epsilon=1, delta=1e-6)
    asked = ("--model", model, "--epsilon", 0.02, "--delta", "1e-6", "--ledger", "b.db")
    base = ("fit", "data.csv", "--schema", schema, *asked)
    done = invoke(*base, "--rows-public", 5000, "--dry-run", "--json")
    expected = json.loads(done.stdout)["expected"]
    assert expected["refused"]
    assert expected["finding"].startswith("The fit would be refused: a table of 4 features")
    message = " ".join(invoke(*base, "--rows-public", 5000, "--dry-run").stdout.split())
    assert "Costs: a noisy count at most, as the fit would be refused" in message
    message = " ".join(invoke(*base, "--dry-run").stdout.split())
    assert "is refused after the noisy count, and only the count is charged" in message
    done = invoke(*base, "-o", "table.json")
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: A table of 4 features is not possible with about ")
    assert "Only the number of rows was released and charged" in done.stderr
    assert "The ledger keeps" not in done.stderr
    assert not (wide / "table.json").exists()
    (entry,) = ledger.entries()
    assert entry.cost < ZCDP.within(Budget(0.02, 1e-6)) / 50
    shown = invoke("ledger", "show", "b.db").stdout
    assert f"by private-{model}" in shown


def test_a_split_of_outcomes(wide):
    table = pd.read_csv("data.csv")  # odds of 180 for a deviation of age had no end in a quarter
    table["high"] = table["cost"] + np.random.default_rng(0).normal(0, 100, len(table)) > 250
    table.to_csv("data.csv", index=False)
    asked = ("fit", "data.csv", "--schema", "high.json", "--epsilon", 8, "--delta", "1e-6")
    asked += ("--model", "logistic", "--inference", "split", "--rows-public", 5000)
    done = succeeded(invoke(*asked, "-o", "yes.json", "--report", "page.html"))
    message = " ".join(done.stdout.split())
    assert "refit [0.025 0.975]" in message
    assert "on rows held out" in message
    found = dpscreen.load(wide / "yes.json").inference_
    assert found.available
    assert found.intervals[0].name == "age"
    assert "95 % interval" in (wide / "page.html").read_text(encoding="utf-8")
    dry, whole = (
        json.loads(fit_wide("high.json", *more, "--dry-run", "--json").stdout)["expected"]
        for more in (asked[8:], ("--model", "logistic", "--rows-public", 5000))
    )
    assert dry["finding"] != whole["finding"]  # half of the rows choose


@pytest.mark.parametrize(
    ("schema", "model", "planned", "printed"),
    [
        ("cost.json", "lasso", "R² is", "of 4 features used"),
        ("cost.json", "ols", "least", "[0.025"),
        ("high.json", "logistic", "AUC is", "odds ratio"),
        ("high.json", "logit", "logistic", "[0.025"),
    ],
)
def test_what_is_printed_fits_a_terminal(wide, schema, model, planned, printed):
    dry = fit_wide(schema, "--model", model, "--rows-public", 5000, "--dry-run")
    done = fit_wide(schema, "--model", model, "-o", "model.json")
    for shown in (dry, done, invoke("show", "model.json")):
        assert max(map(len, shown.stdout.splitlines())) < 80, shown.stdout
    assert (planned in dry.stdout, printed in done.stdout) == (True, True)
    rare = "where one of the two is rare" in " ".join(dry.stdout.split())
    assert rare == (schema == "high.json")
