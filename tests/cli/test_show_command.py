"""`dpscreen show`, as a real process and in this one."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import dpscreen
from tools.command import dpscreen as run
from tools.command import failed, invoke, succeeded

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
    done = run("show", "model.json", cwd=files)
    succeeded(done, "of 4 features used", "Composition: ", stderr="")
    assert "\x1b" not in done.stdout


def test_a_model_that_is_not_private(files):
    done = show(files / "seeded.json", "--explain")
    assert done.exit_code == 0
    assert done.stdout.startswith("THIS MODEL IS NOT PRIVATE")
    assert "does not hold" in done.stderr
    done = show(files / "seeded.json", "--registry")
    failed(done, 1, "nothing to register", stdout="")


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
    done = show(*arguments)
    failed(done, code, message, stdout="")


def test_a_page_from_a_model_file(files, monkeypatch):
    monkeypatch.chdir(files)
    monkeypatch.setattr("dpscreen.planning.plan.SECONDS", 0.05)
    done = show("model.json", "--report", "page.html")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "Page written to page.html" in done.stderr
    assert "A private model of" in (files / "page.html").read_text(encoding="utf-8")
    done = show("model.json", "--report", "page.html")
    assert (done.exit_code, "--force" in done.stderr) == (1, True)


@pytest.mark.parametrize("language", ["sql", "r", "excel"])
def test_what_is_not_private_is_exported_by_force_and_marked(files, language):
    done = show(files / "seeded.json", "--formula", language)
    assert (done.exit_code, done.stdout, "NOT PRIVATE" in done.stderr) == (1, "", True)
    done = show(files / "seeded.json", "--formula", language, "--force")
    assert (done.exit_code, "NOT PRIVATE" in done.stdout) == (0, True)
    done = show(files / "seeded.json", "--onnx", files / "seeded.onnx")
    assert (done.exit_code, (files / "seeded.onnx").exists()) == (1, False)
