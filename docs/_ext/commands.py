"""The directive `commands`: what every `dpscreen` command says of itself under `--help`."""

from __future__ import annotations

from collections.abc import Iterator

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from dpscreen.cli.app import dpscreen

WIDTH = 88


def help_texts(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the name and the help of a command and of all below it."""
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from help_texts(below, _context(below, name, context))


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    settings = command.context_settings
    return click.Context(command, info_name=name, parent=parent, terminal_width=WIDTH, **settings)


class Commands(SphinxDirective):
    """One section for each command."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        texts = help_texts(dpscreen, _context(dpscreen, "dpscreen", None))
        return [self._section(name, text) for name, text in texts]

    def _section(self, name: str, text: str) -> nodes.section:
        section = nodes.section(ids=[name.replace(" ", "-")], names=[name])
        section += nodes.title(text=name)
        section += nodes.literal_block(text, text, language="text")
        return section


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
