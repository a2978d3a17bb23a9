"""Small data sets, a private search path, and an HTTP server that can misbehave."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from study_rows import made_up_rows

from dpscreen.paper.data import Dataset, store
from dpscreen.paper.data.store import Archive, DataFile, Frame, TargetColumns, content_hash
from dpscreen.paper.report import Report, write_report


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

    def make(frames: dict[str, Frame], archive: Archive | None = None) -> Dataset:
        first = next(iter(frames.values()))
        return Dataset(
            name="tiny",
            title="Tiny",
            n_rows=len(first.values),
            n_features=len(first.columns) - 1,
            features=first.columns[:-1],
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
def tiny_frame() -> Frame:
    return Frame(("a", "b", "t"), np.array([[1.0, 0.1, 3.0], [np.nan, -2.5, 1e-7]]))


@dataclass
class Site:
    """What the server answers: bodies by path, and how many bytes to hold back."""

    base_url: str
    bodies: dict[str, bytes] = field(default_factory=dict)
    held_back: int = 0
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def site(cache: Path) -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked.append(self.path)
            body = served.bodies.get(self.path)
            if body is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) - served.held_back])

        def log_message(self, *_: object) -> None:
            """Keep the test output quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served = Site(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield served
        server.shutdown()
        thread.join()


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
