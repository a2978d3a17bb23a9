"""Small data sets, a private search path, and an HTTP server that can misbehave."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
from study_rows import made_up_rows

from dpscreen.paper.data import Dataset, store
from dpscreen.paper.data.store import Archive, DataFile, TargetColumns, content_hash
from dpscreen.paper.report import Report, write_report
from tools.server import Site, serving


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache and working directory, and no DPSCREEN_DATA."""
    monkeypatch.delenv(store.ENVIRONMENT_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    return store.cache_directory()


@pytest.fixture
def make_dataset() -> Callable[..., Dataset]:
    """A catalogue entry that stands for exactly the frames given."""

    def make(frames: dict[str, pd.DataFrame], archive: Archive | None = None) -> Dataset:
        first = next(iter(frames.values()))
        return Dataset(
            name="tiny",
            title="Tiny",
            n_rows=len(first),
            n_features=len(first.columns) - 1,
            features=tuple(first.columns[:-1]),
            files=tuple(
                DataFile(name, frame.columns[-1], content_hash(frame))
                for name, frame in frames.items()
            ),
            targets=tuple(
                TargetColumns(frame.columns[-1], ((frame.columns[-1], 1.0),))
                for frame in frames.values()
            ),
            origin="made for a test",
            licence="none",
            archive=archive,
        )

    return make


@pytest.fixture
def tiny_frame() -> pd.DataFrame:
    return pd.DataFrame({"a": [1.0, None], "b": [0.1, -2.5], "t": [3.0, 1e-7]})


@pytest.fixture
def site(cache: Path) -> Iterator[Site]:
    with serving() as site:
        yield site


@pytest.fixture(scope="session")
def rows():
    return made_up_rows()


@pytest.fixture(scope="session")
def report(rows):
    return Report(rows)


@pytest.fixture(scope="session")
def written(report, tmp_path_factory):
    """Return a directory that holds the whole report."""
    directory = tmp_path_factory.mktemp("study")
    write_report(report, directory)
    return directory
