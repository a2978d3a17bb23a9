"""`dpscreen reproduce` as a real process."""

import errno
import io
import json
import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from rich.console import Console

from dpscreen.audit import audit
from dpscreen.cli import reproduce as command
from dpscreen.paper.claims import check_claims
from dpscreen.paper.grid import Note, flat_grid
from dpscreen.paper.runner import Progress
from tools.command import command_line, dpscreen, here


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
    assert 'id="theorem2"' in (made / "index.html").read_text(encoding="utf-8")
    assert "d = 600" in (made / "tables" / "theorem2.md").read_text(encoding="utf-8")
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
    told = json.loads(done.stdout)
    assert told["cells"]["run"] == told["narrower_count"]["run"] == 0
    assert told["claims"]["theorem-2-many-iterations"] == "does not hold"


@pytest.fixture
def _in_this_process(monkeypatch):
    """Put a thread in the place of worker processes, for what does not depend on them."""
    monkeypatch.setattr("dpscreen.paper.runner._worker_pool", ThreadPoolExecutor)


@pytest.mark.usefixtures("_in_this_process")
def test_damaged_results_are_set_aside_and_the_rest_is_kept(small, tmp_path):
    stored = (small[0] / "dpscreen-study" / "results.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "out").mkdir()
    damaged = [*stored[:2], "garbage\n", *stored[3:]]
    (tmp_path / "out" / "results.jsonl").write_text("".join(damaged))
    asked = ("theorem2", "--trials", "1", "--jobs", "1", "--out", "out")
    done = reproduce(*asked, cwd=tmp_path, run=here)
    assert done.returncode == 0, done.stderr
    assert "damaged" in done.stderr
    assert "results.jsonl.corrupt" in done.stderr
    assert (tmp_path / "out" / "results.jsonl.corrupt").read_text() == "".join(damaged)
    kept = (tmp_path / "out" / "results.jsonl").read_text().splitlines(keepends=True)
    assert len(kept) == 6
    assert set(kept) >= {*stored[:2], *stored[3:]}
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "damaged" in page
    assert str(tmp_path) not in page


@pytest.mark.usefixtures("_in_this_process")
def test_missing_data_is_said_and_the_rest_goes_on(tmp_path):
    asked = ("table2", "theorem2", "--trials", "1", "--jobs", "1", "--out", "out")
    done = reproduce(*asked, cwd=tmp_path, run=here)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Left out:") == 8
    assert "dpscreen datasets fetch abalone" in done.stderr
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "dpscreen datasets fetch abalone" in page
    assert str(tmp_path) not in page
    assert "d = 600" in page


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
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "run the same command to go on" in told
    assert "Traceback" not in told
    stored = rows.read_bytes()
    asked = ("theorem2", "--trials", "1", "--jobs", "1", "--out", "out")
    done = reproduce(*asked, cwd=tmp_path, run=here)
    assert done.returncode == 0
    assert rows.read_bytes().startswith(stored[: stored.rindex(b"\n") + 1])


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["tabel1"], 2, "did you mean 'table1'? known are table1, figure1"),
        (["--trials", "0"], 2, "--trials"),
        (["theorem2", "--out", "in the way"], 1, "Cannot write"),
        (["--redraw", "--out", "nowhere"], 1, "no results in nowhere"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(tmp_path, arguments, code, told):
    (tmp_path / "in the way").write_text("a file")
    done = reproduce(*arguments, cwd=tmp_path, run=here)
    assert done.returncode == code
    assert told in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in the way"]


# --- in this process: what takes a terminal, a whole study or a disk that refuses -----------------


def test_a_bar_shows_what_is_under_way_and_the_time_left():
    log = Console(file=io.StringIO(), force_terminal=True, width=100)
    with command._bar(log) as report:
        report(Progress(1, 4, "table 1: housing, trial 2", 90.0))
    shown = log.file.getvalue()
    for part in ("1/4", "about", "left", "table 1: housing, trial 2"):
        assert part in shown


def test_lines_say_how_long_it_takes(monkeypatch, capsys):
    monkeypatch.setattr(command, "SECONDS_BETWEEN_LINES", 0)
    with command._lines() as report:
        for done, left in ((0, None), (1, 90.0), (2, 0.0)):
            report(Progress(done, 2, "", left))
        report(Progress(0, 0, "", None))
    first, between, *rest = capsys.readouterr().err.splitlines()
    assert first == "2 trials to run"
    assert between.startswith("1 of 2 trials done, about ")
    assert rest == ["2 of 2 trials done", "Nothing is left to run"]


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


def test_a_disk_that_refuses_is_told(tmp_path):
    with (
        pytest.raises(click.ClickException, match=r"^Cannot write to out: No space left"),
        command._clear_errors(Path("out")),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_tables_are_shown_with_notes_claims_and_the_count(capsys):
    note = Note("a", "A printed number is off.", ("Here it is 0.2.",), True)
    grid = replace(flat_grid("table1", "Table 1", "data | F1", [("housing", "0.1")]), notes=(note,))
    summary = flat_grid("summary", "Summary", "of | is", [("cells", "7")])
    shown = SimpleNamespace(
        grids={"table1": grid, "summary": summary},
        claims=check_claims(()),
        summary=SimpleNamespace(matching=6, run=7),
        narrow=SimpleNamespace(matching=3, run=4),
    )
    command._show(shown, ("table1", "claim-55"), as_json=False)
    told = capsys.readouterr().out
    for part in ("Table 1", "≠ a  A printed number is off.", "     Here it is 0.2.", "not run."):
        assert part in told
    last = "6 of 7 cells come out as printed; in the narrower count, 3 of 4.\n"
    assert told.endswith(last)


def test_help_teaches_by_example(tmp_path):
    told = reproduce("-h", cwd=tmp_path, run=here).stdout
    assert "Examples:" in told
    assert "dpscreen reproduce table1 figure1 --trials 5" in told
    assert "more-iterations" in told
