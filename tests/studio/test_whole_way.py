"""The whole way without any script: what is asked, what is read, and what comes out."""

import base64
import hashlib
import json
import shlex
from fractions import Fraction

import pytest

from dpscreen import PrivacyLedger, load
from dpscreen.cli.studio import _session as open_session
from dpscreen.privacy import ZCDP, Budget
from dpscreen.studio import releasing, steps
from dpscreen.studio.app import _rendered
from dpscreen.studio.draft import Draft
from dpscreen.studio.server import framed
from dpscreen.studio.shelf import ReleaseRecord
from tools.command import dpscreen, invoke, succeeded
from tools.studio import (
    DECLARED,
    NAMES,
    SECRET,
    declare_columns,
    posted,
    studio,
    ticket_of,
    words,
    write_table,
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return a studio in which a release was made, by forms alone."""
    place = tmp_path_factory.mktemp("way")
    with studio(write_table(place / "survey.csv")) as running:
        page = running.up_to_release()
        running.ticket = ticket_of(page)
        running.post("release", ticket=running.ticket, dataset="survey")
        running.wait("progress?part=1", "The release is finished.")
        yield running


def test_the_release_is_booked_once_and_whole(finished):
    ledger = PrivacyLedger(finished.folder / "budget.ledger")
    (entry,) = ledger.entries()
    assert finished.ticket in entry.detail
    assert ledger.document()["spent"]["epsilon"] == pytest.approx(1, abs=1e-5)
    found = {path.name for path in (finished.folder / "release-001").iterdir()}
    assert found - {"page.html"} == {*("model.json", "schema.json", "command.txt", "release.json")}
    assert not list(finished.folder.glob(".*.tmp"))
    model = load(finished.folder / "release-001/model.json")
    assert model.privacy_.holds
    assert model.privacy_.epsilon == 1


def test_a_used_ticket_leads_to_the_result_and_spends_nothing(finished):
    again = finished.send("release", ticket=finished.ticket, dataset="survey")
    assert again.headers["location"] == "progress"
    assert 'data-go="result"' in finished.get("progress?part=1").text
    assert len(PrivacyLedger(finished.folder / "budget.ledger").entries()) == 1


def test_downloads_are_what_lies_on_the_shelf(finished):
    for name in ("model.json", "schema.json", "command.txt"):
        answer = finished.get(f"download?file={name}&number=1")
        assert answer.text == (finished.folder / "release-001" / name).read_text()
        assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
    ledger = ("../budget.ledger/ledger.db", "..%2Fbudget.ledger%2Fledger.db")
    for name in ("release.json", *ledger, "", "/etc/hostname"):
        assert finished.get(f"download?file={name}").status == 404


@pytest.mark.slow
def test_the_page_is_made_when_it_is_looked_at(finished):
    finished.wait("result", "<iframe", 170)
    kept = (finished.folder / "release-001/page.html").read_text()
    assert finished.get("download?file=page.html&number=1").text == kept
    policy = finished.get("result/page?number=1").headers["content-security-policy"]
    assert "unsafe-inline" not in policy
    assert policy.count("sha256-") > 3


def test_the_frame_allows_its_own_styles_and_nothing_else():
    page = framed('<style>p > a { color: red }</style><p style="fill: &quot;x&quot;">')
    policy = page.headers["content-security-policy"]
    for style in ("p > a { color: red }", 'fill: "x"'):
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "unsafe-inline" not in policy
    assert policy.endswith("; sandbox allow-same-origin")


@pytest.mark.slow
def test_the_command_does_the_same(finished, tmp_path):
    for name in ("command.txt", "schema.json"):
        (tmp_path / name).write_text(finished.get(f"download?file={name}").text)
    write_table(tmp_path / "survey.csv")
    PrivacyLedger.create(tmp_path / "budget.ledger", dataset="survey", epsilon=3, delta=1e-6)
    start, *words_ = (tmp_path / "command.txt").read_text().split()
    assert start == "dpscreen"
    done = dpscreen(*words_[: words_.index("--report")], cwd=tmp_path)
    succeeded(done, "of 3 features")
    made = json.loads((tmp_path / "model.json").read_text())
    ours = json.loads((finished.folder / "release-001/model.json").read_text())
    assert made["schema"] == ours["schema"]
    assert made["statement"]["rho"] == ours["statement"]["rho"]


@pytest.mark.parametrize(
    ("method", "target", "unit"),
    [
        ("private-lasso", "cost", "patient_id"),
        ("private-ols", "cost", None),
        ("private-logistic", "sex", "patient_id"),
        ("private-logit", "sex", None),
    ],
)
def test_commands_of_every_model_fit_and_book_what_was_declared(
    tmp_path, monkeypatch, method, target, unit
):
    monkeypatch.chdir(tmp_path)
    table = write_table(tmp_path / "survey.csv", 900)
    names = [one for one in NAMES[1:] if one != target]
    draft = Draft.of(table, tmp_path / "schema.json")
    declare_columns(draft)
    draft.put(0, "text")
    draft.ask(target, names, unit or "", "3")
    draft.save(tmp_path / "schema.json")
    ledger = PrivacyLedger.create("budget.ledger", dataset="survey", epsilon=3, delta=1e-6)
    made = ReleaseRecord("t", "", table.name, target, method, 1.0, 1e-6, 900, None, "budget.ledger")
    start, *given = shlex.split(made.command())
    done = invoke(*given[: given.index("--report")], "--force")
    assert (start, done.exit_code) == ("dpscreen", 0), done.output
    entry = ledger.entries()[-1]
    booked = sum((one.cost.rho for one in ledger.entries()), start=Fraction(0))
    assert booked == ZCDP.within(Budget(1.0, 1e-6)).rho
    statement = load("model.json").privacy_
    assert statement.holds
    assert statement.rows_per_unit == (3 if unit else 1)
    assert (unit or "row") in str(entry.unit)


def test_planted_secrets_are_nowhere(finished):
    files = [path for path in finished.folder.rglob("*") if path.is_file()]
    kept = "".join(path.read_bytes().decode("latin-1") for path in files)
    for message in (finished.everything(), kept):
        assert SECRET not in message
        assert "8675309" not in message
    assert str(finished.folder.parent) not in finished.everything()
    assert "Traceback" not in finished.everything()


def test_what_was_declared_serves_the_command_line(finished):
    table = finished.folder.with_name("survey.csv")
    checked = invoke("schema", "check", finished.folder / "schema.json", "--data", table)
    assert checked.exit_code == 0, checked.output


def test_another_release_is_compared_and_a_smaller_budget_refused(finished):
    page = finished.get("release")
    wrong = finished.post("release", ticket=ticket_of(page), dataset="Survey")
    assert wrong.status == 422
    assert "not the data set" in words(wrong)
    too_much = finished.post("budget", action="spend", epsilon="2.9", delta="1e-6")
    assert too_much.status == 422
    assert "does not cover" in words(too_much)
    finished.send("budget", action="spend", epsilon="0.5", delta="1e-6")
    stale = finished.post("release", ticket=ticket_of(page), dataset="survey")
    assert "another tab" in words(stale)
    page = finished.get("release")
    finished.post("release", ticket=ticket_of(page), dataset="survey")
    shown = words(finished.wait("progress", "Compared with earlier releases"))
    assert "Release 2" in shown
    assert "Effect of age" in shown


# --- before anything is read ----------------------------------------------------------------------


def test_up_to_the_release_rows_may_be_unreadable(tmp_path):
    """Whoever looked at a row would stumble: it holds no text, and has another number of cells."""
    table = tmp_path / "survey.csv"
    table.write_bytes(",".join(NAMES).encode() + b"\n" + bytes(range(128, 256)) * 50 + b"\n\0,,\n")
    session, said = open_session(table, None, None), []

    def ask(step, *fields, **more):
        answer = _rendered(session, step(session, posted(*fields, **more)))
        said.append(answer.body.decode())
        return answer.headers.get("location")

    places = [("place", str(k)) for k in range(len(NAMES))]
    assert ask(steps.table, *places, *DECLARED.items(), ("action", "next")) == "question"
    features = [("feature", str(k)) for k in range(4)]
    assert ask(steps.question, *features, ("target", "3"), ("rows", "")) == "budget"
    assert ask(steps.budget, action="grant", dataset="survey", epsilon="3", delta="1e-6")
    assert ask(steps.budget, action="spend", epsilon="1", delta="1e-6") == "dry-run"
    ask(releasing.release)
    ticket = session.ticket()
    assert ask(releasing.release, ticket=ticket, dataset="survey") == "progress"
    session.run.wait(120)
    ask(releasing.progress)
    session.close()
    assert "Nothing was booked" in said[-1]
    assert str(tmp_path) not in "".join(said)
    assert "Traceback" not in "".join(said)
    assert not list((tmp_path / "survey-studio").glob("release-*"))
