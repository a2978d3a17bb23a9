"""`dpscreen compare`, as a real process and in this one."""

import json
from functools import partial

import pytest

from tools.command import dpscreen, here, invoke

SMALL = ("--rows", 500, "--features", 8, "--repetitions", 2)
SCHEMA = {
    "fields": [
        {"name": "age", "type": "number", "constraints": {"minimum": 0, "maximum": 120}},
        {"name": "smoker", "type": "string", "constraints": {"enum": ["yes", "no", "was"]}},
        {"name": "patient", "type": "string"},
        {"name": "cost", "type": "number", "constraints": {"minimum": 0, "maximum": 1000}},
    ],
    "dpscreen": {
        **{"target": "cost", "features": ["age", "smoker"]},
        **{"unit": "patient", "rows_per_unit": 3},
    },
}


dpscreen_compare = partial(here, "compare")


def test_a_table_with_its_picture(tmp_path):
    done = dpscreen("compare", *SMALL, "--epsilon", 1, "--plot", "compare.png", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for name in ("private-lasso", "dp-fw", "rnm-screen", "lasso", "none"):
        assert name in done.stdout
    assert "nothing is spent" in " ".join(done.stdout.split())
    assert "\x1b" not in done.stdout
    assert done.stderr == "Picture written to compare.png\n"
    assert (tmp_path / "compare.png").read_bytes().startswith(b"\x89PNG")


def test_json_of_a_schema_and_its_unit(tmp_path):
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    done = dpscreen_compare(
        *("--rows", 500, "--schema", "schema.json", "--repetitions", 2, "--json"),
        *("--method", "dp-fw", "--method", "lasso", "--epsilon", 2, "--epsilon", 1),
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["n_features"] == 3  # two of them are levels, against a third
    assert told["rows_per_unit"] == 3
    found = [(one["method"], one["epsilon"]) for one in told["outcomes"]]
    assert found == [("dp-fw", 1), ("dp-fw", 2), ("lasso", None)]


def test_a_target_of_two_levels_leads_to_models_of_outcomes(tmp_path):
    fields = [SCHEMA["fields"][0], {"name": "ill", "type": "boolean"}]
    schema = {"fields": fields, "dpscreen": {"target": "ill", "features": ["age"]}}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    asked = ("--rows", 300, "--repetitions", 2, "--epsilon", 5)
    done = dpscreen_compare(*asked, "--schema", "schema.json", "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)["outcomes"]
    names = ["private-logistic", "noisy-descent", "outcome-fw", "class-means", "logistic"]
    assert [one["method"] for one in told] == names
    done = dpscreen_compare(*asked, "--features", 2, "--rate", 0.2, cwd=tmp_path)
    assert "20% yes" in " ".join(done.stdout.split())
    assert "held-out AUC" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--rows", 500), "Give --features or --schema"),
        (("--rows", 500, "--features", 5, "--schema", "s.json"), "one of them"),
        ((*SMALL, "--epsilon", 0), "--epsilon"),
        ((*SMALL, "--method", "ridge"), "--method"),
        ((*SMALL, "--method", "lasso", "--rate", 0.5), "another kind of target"),
        ((*SMALL, "--method", "class-means"), "another kind of target"),
        ((*SMALL, "--rate", 0.5, "--plot", "p.png"), "targets that are numbers"),
        ((*SMALL, "--n-effects", 9), "n_effects must be at most 8"),
        ((*SMALL, "--effect", 0.9, "--n-effects", 2), "would explain more than"),
        ((*SMALL, "--plot", "a.docx"), "must end in .png"),
        ((*SMALL, "--plot", "nowhere/a.png"), "there is no directory nowhere"),
        ((*SMALL, "--epsilon", "1e-300", "--delta", "1e-300"), "too small"),
        ((*SMALL, *[x for k in range(1, 17) for x in ("--epsilon", k)]), "at most 15"),
    ],
)
def test_wrong_usage_is_told_in_one_sentence(arguments, told):
    done = invoke("compare", *arguments)
    assert done.exit_code == 2
    assert told in done.stderr
    assert done.stdout == ""


def test_a_schema_that_is_not_filled_in_is_refused(tmp_path):
    empty = {"fields": [{"name": "age", "type": "number"}], "dpscreen": {"target": "age"}}
    (tmp_path / "schema.json").write_text(json.dumps(empty))
    done = dpscreen_compare("--rows", 500, "--schema", "schema.json", cwd=tmp_path)
    assert done.returncode == 1
    assert "The schema cannot be used yet" in done.stderr
