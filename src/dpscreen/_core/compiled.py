"""Compiled loops, and the threads that they share: they release Python's lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any


def compiled(function: Callable[..., Any]) -> Any:
    """Compile, and keep the result on disk where there is a place to keep it."""
    import numba  # slow to import: only when a loop is needed

    try:
        return numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:  # neither the installation nor the user's cache can be written to
        return numba.njit(nogil=True)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile into every loop that calls the function."""
    import numba

    return numba.njit(inline="always")(function)


def threads() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def pool() -> ThreadPoolExecutor:
    """Return the one pool of this process."""
    return ThreadPoolExecutor(max_workers=threads(), thread_name_prefix="dpscreen")


if hasattr(os, "register_at_fork"):
    # The threads of a parent do not live on in a forked child.
    os.register_at_fork(after_in_child=pool.cache_clear)
