"""Every command teaches by --help, on a screen of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from dpscreen import __version__
from dpscreen.cli.app import dpscreen


def commands(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield what to type for each command, groups and their commands alike."""
    yield words
    with click.Context(group) as context:
        for name in group.list_commands(context):
            found = group.get_command(context, name)
            if isinstance(found, click.Group):
                yield from commands(found, (*words, name))
            else:
                yield (*words, name)


@pytest.mark.parametrize("words", list(commands(dpscreen)), ids=" ".join)
def test_help_fits_80_columns_and_shows_an_example(words):
    long, short = (
        CliRunner().invoke(dpscreen, [*words, name], terminal_width=80) for name in ("--help", "-h")
    )
    assert long.exit_code == 0, long.output
    assert long.stdout == short.stdout
    lines = long.stdout.splitlines()
    assert len(lines) > 5 or words[0] == "datasets"
    assert max(map(len, lines)) <= 80
    parts = words[0] == "datasets" and len(words) > 1 if words else False  # the group has them
    assert parts or f"  dpscreen {' '.join(words) or 'demo'}" in long.stdout


def test_version():
    assert __version__ in CliRunner().invoke(dpscreen, ["--version"]).stdout
