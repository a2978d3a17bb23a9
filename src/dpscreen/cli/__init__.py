"""The command line: parse, call, print."""


def main() -> None:
    """Run the `dpscreen` command."""
    import gc

    # A seventh of a short command went into looking for garbage among what imports leave for good.
    gc.set_threshold(100_000, 50, 50)
    from dpscreen.cli.app import dpscreen

    dpscreen()
