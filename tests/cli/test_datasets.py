"""`dpscreen datasets` as a real process, against a server on this machine."""

import json
from functools import partial

import pytest

from dpscreen.paper.data import CATALOGUE
from dpscreen.paper.data.store import read_csv
from tools.command import dpscreen, failed, invoke
from tools.server import serving


@pytest.fixture
def datasets(tmp_path):
    """Return a function that runs the command with an empty cache."""

    alone = {"XDG_CACHE_HOME": str(tmp_path), "NO_PROXY": "127.0.0.1", "DPSCREEN_DATA": ""}
    return partial(dpscreen, "datasets", cwd=tmp_path, **alone)


@pytest.fixture
def site():
    with serving() as site:
        yield site.base_url, site.bodies


def test_list_shows_sizes_and_how_to_get_what_is_missing(datasets):
    done = datasets("list")
    assert done.returncode == 0, done.stderr
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert lines["blogfeedback"].split()[1:3] == ["52397", "280"]
    assert "dpscreen datasets fetch abalone" in lines["abalone"]
    assert "cannot be fetched" in lines["riboflavin"]
    assert "\x1b" not in done.stdout


def test_list_shows_where_a_set_was_found(datasets, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "pyrim.csv").write_text("")
    done = datasets("list", "--json", DPSCREEN_DATA=str(tmp_path / "mine"))
    found = {entry["name"]: entry for entry in json.loads(done.stdout)}
    assert found["pyrim"]["files"] == [str(tmp_path / "mine" / "pyrim.csv")]
    assert found["pyrim"]["rows"] == 74
    assert found["abalone"]["files"] == []
    assert found["abalone"]["fetchable"]
    assert not found["riboflavin"]["fetchable"]


def test_nothing_is_fetched_when_all_is_here(tmp_path, monkeypatch):
    for name in [file.name for entry in CATALOGUE for file in entry.files]:
        (tmp_path / name).touch()
    monkeypatch.setenv("DPSCREEN_DATA", str(tmp_path))
    done = invoke("datasets", "fetch")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "Every data set that can be fetched is here.\n"
    assert str(tmp_path / "housing.csv") in invoke("datasets", "list").stdout


def test_a_download_is_told_with_its_place(monkeypatch):
    def download(entry, *, base_url, progress):
        progress(5, 10)
        return (f"{base_url}/{entry.name}.csv",)

    monkeypatch.setattr("dpscreen.paper.data.fetch", download)
    done = invoke("datasets", "fetch", "housing", "--base-url", "here")
    assert done.exit_code == 0, done.stderr
    assert done.stderr.splitlines() == ["Fetching Housing ...", "housing: here/housing.csv"]


def test_path_prints_the_places_in_order(datasets, tmp_path):
    done = datasets("path", DPSCREEN_DATA="/here")
    assert done.stdout.splitlines() == ["/here", str(tmp_path / "dpscreen")]


def test_fetch_keeps_a_right_download(datasets, site, tmp_path, data_folder):
    address, bodies = site
    frame = read_csv(data_folder / "housing.csv")
    lines = (
        f"{y!r} " + " ".join(f"{j}:{x!r}" for j, x in enumerate(row, start=1))
        for *row, y in frame.values.tolist()
    )
    bodies["/~cjlin/libsvmtools/datasets/regression/housing"] = "\n".join(lines).encode()
    done = datasets("fetch", "housing", "--base-url", address)
    assert done.returncode == 0, done.stderr
    assert "Fetching Housing" in done.stderr
    assert done.stdout == ""
    assert (tmp_path / "dpscreen" / "housing.csv").is_file()
    assert str(tmp_path / "dpscreen" / "housing.csv") in datasets("list").stdout


def test_a_failure_is_one_sentence_and_the_others_are_still_tried(datasets, site, tmp_path):
    address, bodies = site
    bodies["/~cjlin/libsvmtools/datasets/regression/housing"] = b"1 1:2\n"
    done = datasets("fetch", "abalone", "housing", "--base-url", address)
    assert done.returncode == 1
    errors = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 2
    assert "answered 404" in errors[0]
    assert "nothing was kept" in errors[1]
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "dpscreen").exists()


def test_no_connection_and_no_archive(datasets):
    done = datasets("fetch", "riboflavin", "pyrim", "--base-url", "http://127.0.0.1:9")
    failed(done, 1, "Riboflavin cannot be fetched", "No connection to 127.0.0.1:9")
