"""`dpscreen datasets`, in part as a real process against a server on this machine."""

import json

import pytest

from dpscreen.paper.data import CATALOGUE
from tools.command import dpscreen, failed, here
from tools.server import serving


@pytest.fixture
def alone(tmp_path):
    """The variables of a process with an empty cache."""
    return {"XDG_CACHE_HOME": str(tmp_path), "NO_PROXY": "127.0.0.1", "DPSCREEN_DATA": ""}


def test_list_shows_sizes_where_a_set_is_and_how_to_get_it(alone, tmp_path):
    done = dpscreen("datasets", "list", **alone)
    assert done.returncode == 0, done.stderr
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert lines["blogfeedback"].split()[1:3] == ["52397", "280"]
    assert "dpscreen datasets fetch abalone" in lines["abalone"]
    assert "\x1b" not in done.stdout
    place = tmp_path / "[mine]"
    place.mkdir()
    (place / "pyrim.csv").touch()
    alone["DPSCREEN_DATA"] = str(place)
    assert str(place / "pyrim.csv") in here("datasets", "list", **alone).stdout
    found = json.loads(here("datasets", "list", "--json", **alone).stdout)
    files = {entry["name"]: entry["files"] for entry in found}
    assert files == {name: [] for name in CATALOGUE} | {"pyrim": [str(place / "pyrim.csv")]}
    assert here("datasets", "path", **alone).stdout.split() == [
        str(place),
        str(tmp_path / "dpscreen"),
    ]


def test_nothing_is_fetched_when_all_is_here(alone, tmp_path):
    for name in [file.name for entry in CATALOGUE.values() for file in entry.files]:
        (tmp_path / name).touch()
    done = here("datasets", "fetch", **alone | {"DPSCREEN_DATA": str(tmp_path)})
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "Every data set is here.\n"


def test_a_download_is_reported_with_its_place(alone, monkeypatch):
    def download(entry, *, base_url, progress):
        progress(0.5)
        return (f"{base_url}/{entry.name}.csv",)

    monkeypatch.setattr("dpscreen.paper.data.fetch", download)
    done = here("datasets", "fetch", "housing", "--base-url", "here", **alone)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == ["Fetching Housing ...", "housing: here/housing.csv"]


def test_a_failure_is_one_sentence_and_the_others_are_still_tried(alone, tmp_path):
    failed(here("datasets", "fetch", "abalon"), 2, "did you mean 'abalone'?")
    with serving() as site:
        site.bodies["/~cjlin/libsvmtools/datasets/regression/housing"] = b"1 1:2\n"
        asked = ("abalone", "housing", "--base-url", site.base_url)
        done = dpscreen("datasets", "fetch", *asked, **alone)
    failed(done, 1, stdout="")
    errors = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 2
    assert "404" in errors[0]
    assert "nothing was kept" in errors[1]
    assert not (tmp_path / "dpscreen").exists()
