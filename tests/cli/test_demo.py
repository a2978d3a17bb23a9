"""The command line, as a real process."""

from __future__ import annotations

import pytest

from dpscreen import __version__
from tools.command import dpscreen, here


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    return folder, dpscreen("demo", cwd=folder)


def test_demo_shows_four_methods_and_their_statements(demo):
    _, done = demo
    assert done.returncode == 0, done.stderr
    for method in ("RNM-Screen, published", "RNM-Screen, proven", "DP-FW, proven", "optimum"):
        assert method in done.stdout
    for metric in ("TPR", "FPR", "F1", "density", "MSE"):
        assert metric in done.stdout
    assert done.stdout.count("Treated as public") == 3
    assert done.stdout.count("NOT PRIVATE AS STATED") == 1
    assert "\x1b" not in done.stdout


def test_demo_writes_a_picture_and_messages_go_to_stderr(demo):
    folder, done = demo
    assert (folder / "dpscreen-demo.png").read_bytes().startswith(b"\x89PNG")
    assert "dpscreen-demo.png" in done.stderr
    assert "dpscreen-demo.png" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["dmo"], "Did you mean 'demo'?"),
        (["frobnicate"], "No such command"),
        (["demo", "--plot", "x.gif"], "--plot"),
        (["demo", "--plot", "nowhere/at/all.png"], "no directory"),
        (["demo", "--data", "real"], "--data"),
    ],
)
def test_wrong_usage_exits_with_2_and_says_why(arguments, told, tmp_path):
    done = here(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_version_and_help():
    assert __version__ in dpscreen("--version").stdout
    told = here("--help").stdout
    assert "demo" in told
    assert "Examples:" in here("demo", "-h").stdout
