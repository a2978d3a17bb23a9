"""What the commands say when something is not right: plain, short, and about what was spent."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time

import numpy as np
import pytest

from dpscreen import PrivacyLedger
from tools.command import command_line, failed, invoke

SCHEMA = """
target = "y"
[columns]
x = {bounds = [0, 1]}
y = {bounds = [0, 1]}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).random(4177)
    lines = "".join(f"{one:.3f},{one:.3f}\n" for one in x)
    (tmp_path / "data.csv").write_text(f"x,y\n{lines}")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    return tmp_path


FIT = ("fit", "data.csv", "--schema", "schema.toml", "-o", "model.json")


@pytest.mark.parametrize(
    "words",
    [
        ("plan", "--rows", "100", "--features", "2"),
        ("plan", "--rows", "100", "--features", "2", "--model", "ols"),
        ("plan", "--rows", "100", "--features", "2", "--model", "logit"),
        ("plan", "--features", "2", "--effect", "0.5"),
        ("compare", "--rows", "100", "--features", "2"),
        ("contest", "--simulated"),
        (*FIT, "--delta", "1e-6"),
        ("ledger", "create", "new.db", "--dataset", "d", "--delta", "1e-6"),
    ],
    ids=" ".join,
)
def test_no_command_takes_an_epsilon_that_hides_nothing(folder, words):
    for epsilon in ("10001", "1e308"):
        done = invoke(*words, "--epsilon", epsilon)
        assert done.exit_code in (1, 2)
        assert "epsilon must be at most 10000" in done.output
    assert not (folder / "new.db").exists()


# --- stopped --------------------------------------------------------------------------------------


def test_a_stopped_command_says_that_nothing_was_spent(monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("dpscreen.tables.schema.load_schema", stop)
    done = invoke("simulate", "--schema", "schema.toml")
    assert (done.exit_code, done.output) == (1, "Error: Stopped. Nothing was spent.\n")


def test_a_fit_that_is_stopped_after_it_is_saved_says_so(folder, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("dpscreen.cli.fit._described", stop)
    done = invoke(*FIT, "--epsilon", "1", "--delta", "1e-6")
    failed(done, 1, "Stopped. The budget of the fit is spent, and the model is in model.json.")


@pytest.mark.parametrize("ledger", [False, True])
def test_ctrl_c_during_a_fit_tells_what_is_booked(folder, ledger):
    PrivacyLedger.create("l.db", dataset="d", epsilon=5, delta=1e-6)
    wait = (
        "import time, dpscreen.models.private_lasso as m\n"
        "from dpscreen.privacy.accountant import Accountant\n"
        "Accountant.release = lambda *_, **__: (print('waiting', flush=True), time.sleep(60))\n"
    )
    booked = ("--ledger", "l.db") if ledger else ()
    given = command_line(*FIT, "--epsilon", 1, "--delta", 1e-6, *booked, before=wait)
    with subprocess.Popen(
        given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", env=os.environ
    ) as process:
        assert process.stdout.readline() == "waiting\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        message = process.communicate(timeout=60)[1]
    spent = PrivacyLedger("l.db").spent.rho
    assert process.returncode == 1
    if ledger:
        assert "Stopped. The ledger keeps what was booked, epsilon 1 at delta 1e-06," in message
        assert spent > 0
    else:
        assert "Stopped. Nothing was released, so nothing is spent." in message
    assert not (folder / "model.json").exists()


# --- budgets and rows -----------------------------------------------------------------------------


def test_a_ledger_refuses_in_the_units_asked_for(folder):
    ledger = PrivacyLedger.create("l.db", dataset="d", epsilon=1, delta=1e-4)
    done = invoke(*FIT, "--epsilon", "2", "--delta", "1e-6", "--ledger", "l.db")
    failed(done, 3, "asks for epsilon 2 at delta 1e-06, and the ledger has epsilon")
    left = float(done.output.partition("ledger has epsilon ")[2].split()[0])
    assert "left at the same delta" in done.output
    assert invoke(*FIT, "--epsilon", left, "--delta", "1e-6", "--ledger", "l.db").exit_code == 0
    with pytest.raises(RuntimeError, match=r"epsilon=.* does not fit: of epsilon=1 for 'd'"):
        ledger.reserve(ledger.total, purpose="more")


@pytest.mark.parametrize("n_rows", [40, 100, 5000])
def test_a_warning_of_few_rows_depends_on_the_declared_number_alone(folder, n_rows):
    table = (folder / "data.csv").read_text().splitlines(keepends=True)
    warned = set()
    for true_rows in (40, 4177):
        (folder / "data.csv").write_text("".join(table[: true_rows + 1]))
        done = invoke(*FIT, "--epsilon", "1", "--delta", "1e-6", "--rows-public", n_rows, "--force")
        assert done.exit_code == 0
        warned.add("no useful model can be expected" in done.output)
        assert not re.search(r"(?<![\d.])4177(?!\d)", done.output)  # digits of noise may hold it
    assert warned == {n_rows < 50}
