"""`dpscreen reproduce` as a real process."""

import json
import os
import signal
import subprocess
import time

import pytest

from dpscreen.audit import audit
from dpscreen.cli import reproduce as command
from tools.command import command_line, dpscreen, failed, here


def alone(tmp_path):
    """Return the variables of a process that finds no data."""
    return {"OPENBLAS_NUM_THREADS": "1", "DPSCREEN_DATA": str(tmp_path / "no data")}


def reproduce(*arguments, cwd, run=dpscreen):
    return run("reproduce", *arguments, cwd=cwd, **alone(cwd))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Return a folder with a study of one item, and what the command said."""
    folder = tmp_path_factory.mktemp("reproduce")
    done = reproduce("theorem2", "--trials", "1", "--jobs", "1", cwd=folder)
    return folder, done


def test_it_computes_writes_and_says_where(small):
    folder, done = small
    assert done.returncode == 0, done.stderr
    assert "Page: dpscreen-study/index.html" in done.stderr
    assert "trials done" in done.stderr
    assert "Theorem 2" in done.stdout
    assert "Table 5" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr
    made = folder / "dpscreen-study"
    page = (made / "index.html").read_text(encoding="utf-8")
    assert 'id="theorem2"' in page
    assert "d = 600" in page
    assert (made / "results.jsonl").read_text().count("\n") == 6


def test_redrawing_computes_nothing_and_gives_the_same(small):
    folder, _ = small
    made = folder / "dpscreen-study"
    page, rows = made / "index.html", made / "results.jsonl"
    before, stored = page.read_bytes(), rows.read_bytes()
    page.unlink()
    done = reproduce("--redraw", "--json", cwd=folder, run=here)
    assert done.returncode == 0, done.stderr
    assert rows.read_bytes() == stored
    assert page.read_bytes() == before
    output = json.loads(done.stdout)
    assert output["cells"]["run"] == output["narrower_count"]["run"] == 0
    assert output["claims"]["theorem-2-many-iterations"] == "does not hold"


@pytest.mark.usefixtures("_in_this_process")
def test_missing_data_is_said_and_the_rest_goes_on(tmp_path):
    asked = ("table2", "theorem2", "--trials", "1", "--jobs", "1", "--out", "out")
    done = reproduce(*asked, cwd=tmp_path, run=here)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Left out:") == 8
    assert "dpscreen datasets fetch abalone" in done.stderr
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "not on this machine: abalone," in page.lower()
    assert str(tmp_path) not in page


@pytest.mark.usefixtures("_in_this_process")
def test_stopping_says_how_to_go_on(tmp_path):
    rows = tmp_path / "out" / "results.jsonl"
    # A file that is just being opened when the signal comes is not closed by anybody.
    quiet = "import warnings; warnings.simplefilter('ignore', ResourceWarning)"
    asked = ("reproduce", "theorem2", "--trials", 500, "--jobs", 1, "--out", "out")
    process = subprocess.Popen(
        command_line(*asked, before=quiet),
        cwd=tmp_path,
        env=os.environ | alone(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not (rows.exists() and rows.read_bytes().count(b"\n") > 2):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "run the same command to go on" in message
    assert "Traceback" not in message
    stored = rows.read_bytes()
    asked = ("theorem2", "--trials", "1", "--jobs", "1", "--out", "out")
    done = reproduce(*asked, cwd=tmp_path, run=here)
    assert done.returncode == 0
    assert rows.read_bytes().startswith(stored[: stored.rindex(b"\n") + 1])


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["tabel1"], 2, "did you mean 'table1'?"),
        (["--trials", "0"], 2, "--trials"),
        (["theorem2", "--out", "in the way"], 1, "Cannot write"),
        (["--redraw", "--out", "nowhere"], 1, "no results in nowhere"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(tmp_path, arguments, code, message):
    (tmp_path / "in the way").write_text("a file")
    done = reproduce(*arguments, cwd=tmp_path, run=here)
    failed(done, code, message, stdout="")
    assert [path.name for path in tmp_path.iterdir()] == ["in the way"]


# --- in this process: what takes a terminal, a whole study or a disk that refuses -----------------


def test_damaged_findings_are_told_and_left_out(tmp_path, capsys):
    (tmp_path / "audit.json").write_text("garbage")
    assert command._findings(tmp_path) == ()
    assert "not a file of findings" in capsys.readouterr().err


def test_what_the_paper_claims_is_audited_once_and_only_for_the_whole_study(tmp_path, monkeypatch):
    asked = []

    def quick(names, **settings):
        asked.extend(names)
        return audit(["published-noisy-max"], runs=400, **settings)

    monkeypatch.setattr(command, "audit", quick)
    assert command._findings(tmp_path) == ()
    first = command._findings(tmp_path, audited=True)
    assert asked == ["published-dp-fw", "published-screening", "published-noisy-max"]
    assert command._findings(tmp_path, audited=True) == command._findings(tmp_path) == first
    assert len(asked) == 3
