"""The command line: parse, call, print."""


def main() -> None:
    """Run the `dpscreen` command."""
    from dpscreen.cli.app import dpscreen

    dpscreen()
