"""The command line: parse, call, print."""

import gc
import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from typing import Any


def main() -> None:
    """Run the `dpscreen` command."""
    # A seventh of a short command went into looking for garbage among what imports leave for good.
    gc.set_threshold(100_000, 50, 50)
    if sys.argv[1:2] != ["studio"]:  # before Python 3.12.3 threads may not share a late module
        sys.meta_path.insert(0, _WhenUsed)
    from dpscreen.cli.app import dpscreen

    dpscreen()


class _WhenUsed:
    """Finds `scipy.stats`, a quarter of a dry run: scikit-learn needs it for one function."""

    @staticmethod
    def find_spec(name: str, path: Any = None, _target: object = None) -> ModuleSpec | None:
        """Return how to run the module when it is used; None leaves others to other finders."""
        spec = PathFinder.find_spec(name, path) if name == "scipy.stats" else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec
