"""`dpscreen datasets` as a real process, against a server on this machine."""

from functools import partial

import pytest

from dpscreen.paper.data.store import read_csv
from tools.command import dpscreen
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
