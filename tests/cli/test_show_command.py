"""`dpscreen show`."""

from __future__ import annotations

import json
import sys
from functools import partial

import numpy as np
import pytest

import dpscreen
from tools.command import failed, here, invoke, succeeded

SETTING = {"epsilon": 1.0, "delta": 1e-6, "feature_bounds": (0, 1), "target_bounds": (-5, 5)}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    home = tmp_path_factory.mktemp("models")
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (3000, 4))
    y = 4 * X[:, 0] - 2 + rng.normal(0, 0.1, 3000)
    dpscreen.PrivateLasso(**SETTING).fit(X, y).save(home / "model.json")
    with pytest.warns(dpscreen.SeededNoiseWarning):
        dpscreen.PrivateLasso(**SETTING, random_state=1).fit(X, y).save(home / "seeded.json")
    (home / "broken.json").write_text('{"format": "dpscreen-model", "version": 1')
    return home


show = partial(invoke, "show")


def test_a_model_on_the_shell(files):
    done = here("show", "model.json", cwd=files)
    succeeded(done, "of 4 features used", "Composition: ", stderr="")
    assert "\x1b" not in done.stdout


def test_as_json(files):
    done = succeeded(show(files / "model.json", "--json"), stderr="")
    output = json.loads(done.stdout)
    assert output["statement"]["holds"] is True
    assert output["features"][0]["feature"] == "x0"
    assert "noise_p_value" not in output["features"][0]


def test_for_a_manager_a_card_and_the_registry(files):
    done = show(files / "model.json", "--explain")
    assert "can become at most 73.2 % sure" in " ".join(done.stdout.split())
    assert max(map(len, done.stdout.splitlines())) <= 88
    assert show(files / "model.json", "--card").stdout.startswith("# Model card: PrivateLasso\n")
    done = show(files / "model.json", "--registry", "--tier", 2)
    succeeded(done, "To be filled in by you: url_slug")
    assert json.loads(done.stdout)["tier"] == 2


def test_a_model_that_is_not_private(files):
    done = succeeded(show(files / "seeded.json", "--explain"))
    assert done.stdout.startswith("THIS MODEL IS NOT PRIVATE")
    assert "does not hold" in done.stderr
    failed(show(files / "seeded.json", "--registry"), 1, "nothing to register", stdout="")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("broken.json",), 1, "not JSON, or not all of it"),
        (("modle.json",), 1, "Did you mean"),
        (("nowhere/model.json",), 1, "No such file"),
        ((".",), 1, "not a file"),
        ((), 2, "MODEL"),
        (("model.json", "--json", "--card"), 2, "Give one of"),
        (("model.json", "--jsn"), 2, "--json"),
        (("model.json", "--registry", "--tier", "4"), 2, "--tier"),
    ],
)
def test_failures_in_one_sentence(files, monkeypatch, arguments, code, message):
    monkeypatch.chdir(files)
    failed(show(*arguments), code, message, stdout="")


def test_a_page_from_a_model_file(files, monkeypatch):
    monkeypatch.chdir(files)
    monkeypatch.setattr("dpscreen.planning.plan.SECONDS", 0.05)
    done = succeeded(show("model.json", "--report", "page.html"), stdout="")
    assert "Page written to page.html" in done.stderr
    assert "A private model of" in (files / "page.html").read_text(encoding="utf-8")
    done = show("model.json", "--report", "page.html")
    assert (done.exit_code, "--force" in done.stderr) == (1, True)


@pytest.mark.parametrize("language", ["sql", "r", "excel"])
def test_a_formula(files, language):
    done = succeeded(show(files / "model.json", "--formula", language))
    assert dpscreen.load(files / "model.json").to_formula(language) in done.stdout
    assert "clipped to the bounds" in done.stdout + done.stderr


def test_sql_of_a_dialect(files):
    done = show(files / "model.json", "--formula", "sql", "--dialect", "bigquery")
    assert (done.exit_code, "AS FLOAT64" in done.stdout) == (0, True)
    done = show(files / "model.json", "--formula", "sql", "--dialect", "bigquerry")
    assert (done.exit_code, "Did you mean" in done.stderr) == (1, True)
    done = show(files / "model.json", "--formula", "r", "--dialect", "bigquery")
    assert (done.exit_code, "--formula sql" in done.stderr) == (2, True)


@pytest.mark.parametrize("language", ["sql", "r", "excel"])
def test_what_is_not_private_is_exported_by_force_and_marked(files, language):
    done = show(files / "seeded.json", "--formula", language)
    assert (done.exit_code, done.stdout, "NOT PRIVATE" in done.stderr) == (1, "", True)
    done = show(files / "seeded.json", "--formula", language, "--force")
    assert (done.exit_code, "NOT PRIVATE" in done.stdout) == (0, True)
    done = show(files / "seeded.json", "--onnx", files / "seeded.onnx")
    assert (done.exit_code, (files / "seeded.onnx").exists()) == (1, False)


def test_an_onnx_model(files, monkeypatch):
    done = show(files / "model.json", "--onnx", files / "model.onnx")
    written = (files / "model.onnx").read_bytes()
    assert (done.exit_code, written) == (0, dpscreen.load(files / "model.json").to_onnx())
    monkeypatch.setitem(sys.modules, "onnx", None)
    done = show(files / "model.json", "--onnx", files / "model.onnx", "--force")
    assert (done.exit_code, "pip install 'dpscreen[onnx]'" in done.stderr) == (1, True)


def test_two_models_beside_each_other(files):
    done = succeeded(show(files / "model.json", files / "seeded.json"))
    assert "model" in done.stdout.splitlines()[0]
    assert "they cost epsilon 1.45 at delta 1e-06 together" in done.stdout.replace("1.451", "1.45")
    output = json.loads(show(files / "model.json", files / "seeded.json", "--json").stdout)
    assert output["facts"]["promise holds"] == ["yes", "NO"]
    done = show(files / "model.json", files / "seeded.json", "--card")
    assert (done.exit_code, "is for one model" in done.stderr) == (2, True)
