"""The whole way without any script: what is asked, what is read, and what comes out."""

import csv
import json
import subprocess
import sys

import pytest

from dpscreen import PrivacyLedger, load
from tools.command import dpscreen
from tools.studio import NAMES, SECRET, studio, ticket_of, words, write_table


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return a studio in which a release was made, by forms alone."""
    place = tmp_path_factory.mktemp("way")
    with studio(write_table(place / "survey.csv")) as running:
        page = running.up_to_release()
        running.first = running.post("release", ticket=ticket_of(page), dataset="survey")
        running.ticket = ticket_of(page)
        running.wait("progress", "Downloads")
        yield running


def test_the_release_is_booked_once_and_whole(finished):
    ledger = PrivacyLedger(finished.folder / "ledger.db")
    (entry,) = ledger.entries()
    assert finished.ticket in entry.detail
    assert ledger.document()["spent"]["epsilon"] == pytest.approx(1, abs=1e-5)
    found = {path.name for path in (finished.folder / "release-001").iterdir()}
    assert found - {"page.html"} == {
        *("model.json", "schema.json", "command.txt", "script.py", "release.json")
    }
    assert not list(finished.folder.glob(".*.tmp"))
    model = load(finished.folder / "release-001/model.json")
    assert model.privacy_.holds
    assert model.privacy_.epsilon == 1


def test_a_used_ticket_leads_to_the_result_and_spends_nothing(finished):
    again = finished.post("release", ticket=finished.ticket, dataset="survey")
    assert again.step == "result"
    assert len(PrivacyLedger(finished.folder / "ledger.db").entries()) == 1


def test_downloads_are_what_lies_on_the_shelf(finished):
    finished.wait("result", "<iframe", 170)  # the page is made when it is looked at
    for name in ("model.json", "page.html", "schema.json", "command.txt", "script.py"):
        answer = finished.get(f"download?file={name}&number=1")
        assert answer.text == (finished.folder / "release-001" / name).read_text()
        assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
    for name in ("release.json", "../ledger.db", "..%2Fledger.db", "", "/etc/hostname"):
        assert finished.get(f"download?file={name}").status == 404


def test_the_frame_allows_its_own_styles_and_nothing_else(finished):
    policy = finished.get("result/page?number=1").headers["content-security-policy"]
    assert "unsafe-inline" not in policy
    assert "sandbox" in policy
    assert policy.count("sha256-") > 3


@pytest.mark.parametrize("kind", ["command", "script"])
def test_command_and_script_do_the_same(finished, tmp_path, kind):
    for name in ("command.txt", "script.py", "schema.json"):
        (tmp_path / name).write_text(finished.get(f"download?file={name}").text)
    write_table(tmp_path / "survey.csv")
    PrivacyLedger.create(tmp_path / "ledger.db", dataset="survey", epsilon=3, delta=1e-6)
    if kind == "command":
        start, *words_ = (tmp_path / "command.txt").read_text().split()
        assert start == "dpscreen"
        done = dpscreen(*words_[: words_.index("--report")], cwd=tmp_path)
    else:
        short = (
            "from dpscreen.planning import plan, what_if\nplan.SECONDS = what_if.SECONDS = 0.01\n"
        )
        code = short + (tmp_path / "script.py").read_text()
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    assert "of 4 features" in done.stdout
    made = json.loads((tmp_path / "model.json").read_text())
    ours = json.loads((finished.folder / "release-001/model.json").read_text())
    assert made["schema"] == ours["schema"]
    assert made["statement"]["rho"] == ours["statement"]["rho"]


def test_planted_secrets_are_nowhere(finished):
    files = [path for path in finished.folder.rglob("*") if path.is_file()]
    kept = "".join(path.read_bytes().decode("latin-1") for path in files)
    for told in (finished.everything(), kept):
        assert SECRET not in told
        assert "8675309" not in told
    assert str(finished.folder.parent) not in finished.everything()
    assert "Traceback" not in finished.everything()


def test_another_release_is_compared_and_a_smaller_budget_refused(finished):
    page = finished.get("release")
    wrong = finished.post("release", ticket=ticket_of(page), dataset="Survey")
    assert wrong.status == 422
    assert "not the data set" in words(wrong)
    too_much = finished.post("budget", action="spend", epsilon="2.9", delta="1e-6")
    assert too_much.status == 422
    assert "does not cover" in words(too_much)
    finished.post("budget", action="spend", epsilon="0.5", delta="1e-6")
    stale = finished.post("release", ticket=ticket_of(page), dataset="survey")
    assert "another tab" in words(stale)
    page = finished.get("release")
    finished.post("release", ticket=ticket_of(page), dataset="survey")
    shown = words(finished.wait("progress", "Beside earlier releases"))
    assert "Release 2" in shown
    assert "Effect of age" in shown


# --- before anything is read ----------------------------------------------------------------------


def test_up_to_the_release_rows_may_be_unreadable(tmp_path):
    """Whoever looked at a row would stumble: it holds no text, and has another number of cells."""
    table = tmp_path / "survey.csv"
    table.write_bytes(",".join(NAMES).encode() + b"\n" + bytes(range(128, 256)) * 50 + b"\n\0,,\n")
    with studio(table) as running:
        page = running.up_to_release()
        assert page.step == "release"
        assert running.wait("dry-run", "<iframe").step == "dry-run"
        running.post("release", ticket=ticket_of(page), dataset="survey")
        ended = running.wait("progress", 'id="ended"')
        assert "Nothing was booked" in words(ended)
        assert str(tmp_path) not in running.everything()
        assert "Traceback" not in running.everything()
        assert not list(running.folder.glob("release-*"))


def test_a_table_that_changes_between_steps_is_noticed(tmp_path):
    table = write_table(tmp_path / "survey.csv", 50)
    with studio(table) as running:
        page = running.up_to_release()
        write_table(table, 51)
        refused = running.post("release", ticket=ticket_of(page), dataset="survey")
        assert refused.status == 422
        assert "it changed since" in words(refused)
        assert not PrivacyLedger(running.folder / "ledger.db").entries()


def test_what_was_declared_is_there_after_a_restart_and_on_the_command_line(tmp_path):
    table = write_table(tmp_path / "survey.csv", 50)
    with studio(table) as running:
        running.enter()
        running.declare()
        running.question(unit="", intervals="on")
    checked = dpscreen("schema", "check", running.folder / "schema.json", "--data", table)
    assert checked.returncode == 0, checked.stdout
    with studio(table) as again:
        again.enter()
        assert again.get("budget").step == "budget"
        assert 'value="20000"' in again.get("table").text


def test_two_thousand_columns(tmp_path):
    names = [f"x{k:04d}" for k in range(1999)] + ["<b>y & z</b>"]
    table = tmp_path / "wide.csv"
    with table.open("w") as file:
        csv.writer(file).writerow(names)
        csv.writer(file).writerow(["1"] * 2000)
    with studio(table) as running:
        running.enter()
        page = running.get("table")
        assert page.text.count('name="place"') == 100
        assert "Page 1 of 20" in words(page)
        every = {"action": "all", "all-kind": "number", "all-low": "0", "all-high": "9"}
        assert "2000 of 2000 columns are used" in words(running.post("table", **every))
        assert "y &amp; z" in running.get("table?find=y").text
        question = running.post("table", action="next")
        assert question.step == "question"
        assert question.text.count('name="feature"') == 2000
        features = [("feature", str(k)) for k in range(1500)]
        budget = running.post("question", *features, ("target", "1999"), ("rows", ""))
        assert budget.step == "budget"
        saved = json.loads((running.folder / "schema.json").read_text())
        assert len(saved["dpscreen"]["features"]) == 1500
