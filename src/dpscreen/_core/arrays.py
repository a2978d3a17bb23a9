"""The kinds of arrays, each under one name; compiled loops over them, and the threads they share.

The loops release Python's lock, so the one pool of this process keeps all cores busy.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Numbers as the user's data and coefficients are."""

Integers = NDArray[np.int64]
"""Whole numbers: counts, exact sums, places of rows and features."""

Narrow = NDArray[np.int16]
"""Cells on a lattice, of at most 14 bits, and residuals in levels."""

Indices = NDArray[np.uint32]
"""Places of a sparse matrix's cells: numba checks a signed index for counting from the end."""

Words = NDArray[np.uint64]
"""64 bits each: random words, hashes, and where the rows of a sparse matrix start."""

Mask = NDArray[np.bool_]
"""One boolean for each row or feature."""

Objects = NDArray[np.object_]
"""Python's own values, such as texts."""

AnyArray = NDArray[Any]
"""An array of whatever kind."""


# --- compiled loops -------------------------------------------------------------------------------


def clamp(value: float, low: float, high: float) -> float:
    """Return the value, or the end of the interval that it is beyond."""
    return min(max(value, low), high)


def compiled(function: Callable[..., Any]) -> Any:
    """Compile, and keep the result on disk where there is a place to keep it."""
    import numba

    try:
        return numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:  # neither the installation nor the user's cache can be written to
        return numba.njit(nogil=True)(function)


class Loops:
    """The compiled loops of a module, which is slow to load: only when the first is needed."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(import_module(self._module), name)
        setattr(self, name, found)  # the next call finds it without looking for the module
        return found


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
