"""What all tests share: how hypothesis runs, whose noise is drawn, where data may be looked for."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from dpscreen.privacy import noise
from tools.keys import NamedKeys

# Two shared cores: a slow example says nothing. `fixed` tries the same examples, and draws the same
# noise, on every machine; what `free` finds is written down as an @example.
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "fixed")
settings.register_profile("fixed", deadline=None, derandomize=True, database=None)
settings.register_profile("free", deadline=None)
settings.load_profile(PROFILE)
KEYS = NamedKeys()


def pytest_sessionstart() -> None:
    """Key secret noise by the names of tests."""
    if PROFILE == "fixed":
        noise.os = KEYS


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let the noise of a test be its own."""
    KEYS.begin(item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef, request: pytest.FixtureRequest
) -> Iterator[object]:
    """Let the noise of a fixture that tests share not depend on which of them comes first."""
    name = f"{fixturedef.baseid}::{fixturedef.argname}[{request.param_index}]"
    with nullcontext() if fixturedef.scope == "function" else KEYS.within(name):
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that ask for the paper's data; begin with those of no room: they are long.

    At the end one of two workers would wait for the other.
    """
    for item in items:
        if "data_folder" in getattr(item, "fixturenames", ()):
            item.add_marker("real_data")
    items.sort(key=lambda item: item.path.parent != Path(__file__).parent)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Return the folder of the paper's data sets, which only DPSCREEN_DATA can name."""
    stated = os.environ.get("DPSCREEN_DATA")
    if not stated:
        pytest.skip("DPSCREEN_DATA names no folder with the paper's data sets")
    return Path(stated)


@pytest.fixture(autouse=True, scope="session")
def _empty_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hide what the user has downloaded."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def _data_where_marked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide DPSCREEN_DATA from every other test."""
    if "real_data" not in request.keywords:
        monkeypatch.delenv("DPSCREEN_DATA", raising=False)


@pytest.fixture
def rows():
    rng = np.random.default_rng(7)
    X = rng.uniform(-1, 1, size=(400, 6))
    return X, 2 * X[:, 0] - X[:, 3] + rng.normal(0, 0.1, size=400)


@pytest.fixture
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a thread in the place of a study's worker processes, for what does not depend on them."""
    monkeypatch.setattr("dpscreen.paper.runner._worker_pool", ThreadPoolExecutor)
