"""`dpscreen compare`."""

import json
from functools import partial

from tools.command import here, succeeded

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
    done = succeeded(here("compare", *SMALL, "--epsilon", 1, "--plot", "compare.png", cwd=tmp_path))
    for name in ("private-lasso", "dp-fw", "rnm-screen", "lasso", "none"):
        assert name in done.stdout
    assert "nothing is charged" in " ".join(done.stdout.split())
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
    output = json.loads(done.stdout)
    assert output["n_features"] == 3  # two of them are levels, against a third
    assert output["rows_per_unit"] == 3
    found = [(one["method"], one["epsilon"]) for one in output["outcomes"]]
    assert found == [("dp-fw", 1), ("dp-fw", 2), ("lasso", None)]


def test_a_target_of_two_levels_leads_to_models_of_outcomes(tmp_path):
    fields = [SCHEMA["fields"][0], {"name": "ill", "type": "boolean"}]
    schema = {"fields": fields, "dpscreen": {"target": "ill", "features": ["age"]}}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    asked = ("--rows", 300, "--repetitions", 2, "--epsilon", 5)
    done = dpscreen_compare(*asked, "--schema", "schema.json", "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    output = json.loads(done.stdout)["outcomes"]
    names = ["private-logistic", "noisy-descent", "outcome-fw", "class-means", "logistic"]
    assert [one["method"] for one in output] == names
    rare = ("--features", 2, "--rate", 0.2, "--plot", "compare.svg")
    done = dpscreen_compare(*asked, *rare, cwd=tmp_path)
    assert (tmp_path / "compare.svg").stat().st_size > 0
    assert "20% yes" in " ".join(done.stdout.split())
    assert "held-out AUC" in done.stdout
