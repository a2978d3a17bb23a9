"""`dpscreen reproduce` as a real process."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tools.command import dpscreen, failed, here


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


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["tabel1"], 2, "did you mean 'table1'? known are table1, figure1"),
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
