"""Every command teaches by --help, on a screen of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

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
    done = CliRunner().invoke(dpscreen, [*words, "--help"], terminal_width=80)
    assert done.exit_code == 0, done.output
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "dpscreen" in done.stdout
    assert f"  dpscreen {words[0] if words else 'demo'}" in done.stdout or words[0] == "datasets"
