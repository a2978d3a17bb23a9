"""The threads that compiled loops share: they release Python's lock."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache


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
