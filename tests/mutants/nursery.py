"""Runs tests again and again, each time in a child of a process that has loaded what takes long.

It reads one JSON object a line: `command` are pytest's arguments, `environment` what to set. It
answers with pytest's status. Nothing of dpscreen is loaded here: that is what differs.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from importlib import import_module

LOADED = (
    *("numpy", "scipy.sparse", "scipy.special", "scipy.stats", "pandas", "numba", "rich.table"),
    *("sklearn.base", "sklearn.utils.validation", "pyarrow.compute", "cryptography.hazmat"),
)
MOST_SECONDS = 600


def tested(command: list[str], environment: dict[str, str]) -> int:
    """Run pytest in a child, and return its status; a negative one if it had to be ended."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.setpgid(0, 0)
    signal.alarm(MOST_SECONDS)
    os.environ.update(environment)
    sys.modules["numba"].config.CACHE_DIR = environment["NUMBA_CACHE_DIR"]
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    sys.path[1:1] = environment["PYTHONPATH"].split(os.pathsep)
    import pytest

    os._exit(pytest.main(command))


def main() -> None:
    """Answer until there are no more questions."""
    for module in LOADED:
        import_module(module)
    for line in sys.stdin:
        print(tested(**json.loads(line)), flush=True)


if __name__ == "__main__":
    main()
