"""Small data sets, a private search path, and an HTTP server that can misbehave."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from study_rows import made_up_rows

from dpscreen.paper.data import Dataset, store
from dpscreen.paper.data.store import Archive, DataFile, content_hash
from dpscreen.paper.report import Report, write_report
from tools.server import Site, serving


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache, and no DPSCREEN_DATA."""
    monkeypatch.delenv(store.ENVIRONMENT_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return store.cache_directory()


@pytest.fixture
def make_dataset() -> Callable[..., Dataset]:
    """A catalogue entry that stands for exactly the frames given."""

    def make(frames, *, weights=None, format="csv", **archive) -> Dataset:
        first, weights = next(iter(frames.values())), weights or [1.0] * len(frames)
        files = tuple(
            DataFile(name, frame.columns[-1], content_hash(frame), weight)
            for (name, frame), weight in zip(frames.items(), weights, strict=True)
        )
        return Dataset(
            name="tiny",
            title="Tiny",
            n_rows=len(first),
            n_features=len(first.columns) - 1,
            features=tuple(first.columns[:-1]),
            files=files,
            origin="made for a test",
            licence="none",
            archive=Archive("https://archive.invalid/static/tiny", format, **archive),
        )

    return make


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
