"""The `dpscreen` command and its manners.

Data goes to stdout, messages to stderr. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 budget
refused. Subcommands are imported only when called, so that `dpscreen --help` answers at once.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module

import click

from dpscreen import __version__
from dpscreen._core.words import meant

COMMANDS = {
    "demo": "Run published, proven and non-private methods side by side.",
    "schema": "Declare the columns of a table before any row is read.",
    "check": "Check a table against its schema (for the curator only).",
    "simulate": "Write dummy data that fit a schema.",
    "fit": "Fit a private model to a table.",
    "studio": "Do all of this in the browser, step by step.",
    "show": "Show or export a model: table, privacy statement, SQL, page.",
    "predict": "Apply a model to a table.",
    "compare": "Compare methods and budgets on simulated rows.",
    "contest": "Rank all private methods on public tables.",
    "plan": "Simulate what a private fit would detect.",
    "reproduce": "Reproduce every table, figure and claim of the paper.",
    "errata": "List corrections to the paper.",
    "datasets": "List and download the paper's data sets.",
    "audit": "Try to refute the privacy claims by experiment.",
    "ledger": "Keep one budget for a data set, shared by all its users.",
}
"""The commands, each in a module of its name, in the order in which they are best read."""


class LazyGroup(click.Group):
    """A group whose commands are imported when called, and that guesses what a typo meant."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Name the commands."""
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        """Import a command."""
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"dpscreen.cli.{name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, or say which one may have been meant, here or in the group it names."""
        _guess(ctx, args[0], COMMANDS)
        name, command, rest = super().resolve_command(ctx, args)
        if isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
            _guess(ctx, rest[0], command.list_commands(ctx), f"{name} ")
        return name, command, rest

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; what ends it early becomes a sentence and an exit code."""
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, click.Abort):
            spent = ctx.meta.get("dpscreen.spent", "Nothing was spent.")
            failure = click.ClickException(f"Stopped. {spent}")
        except (click.ClickException, click.exceptions.Exit):
            raise
        except Exception as error:
            from dpscreen.cli.console import failure_of

            found = failure_of(error)
            if found is None:
                raise
            failure = found
        raise failure

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _guess(ctx: click.Context, given: str, known: Collection[str], group: str = "") -> None:
    """Fail if a word is not known but one like it is."""
    close = meant(given, known)
    if given not in known and close:
        ctx.fail(f"No such command '{group}{given}'. Did you mean '{group}{close}'?")


SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True}
"""What all commands inherit."""


@click.group(cls=LazyGroup, context_settings=SETTINGS)
@click.version_option(__version__, package_name="dpscreen", prog_name="dpscreen")
def dpscreen() -> None:
    """Regression under differential privacy.

    \b
    Try:
      dpscreen demo
      dpscreen schema ask data.csv
      dpscreen plan --rows 5000 --features 40 --epsilon 1
      dpscreen fit data.csv --schema schema.toml --epsilon 1 --delta 1e-6 \\
          -o model.json
      dpscreen show model.json

    \b
    To complete commands with the Tab key, add this to your shell start-up file:
      bash   eval "$(_DPSCREEN_COMPLETE=bash_source dpscreen)"
      zsh    eval "$(_DPSCREEN_COMPLETE=zsh_source dpscreen)"
      fish   _DPSCREEN_COMPLETE=fish_source dpscreen | source
    """
