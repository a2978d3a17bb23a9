"""Compiled loops work where nothing can be kept on disk."""

from __future__ import annotations

import numba

from dpscreen._core.arrays import compiled


def test_no_place_for_a_cache_is_no_obstacle(monkeypatch):
    real = numba.njit

    def nowhere(*, nogil, cache=False):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return real(nogil=nogil)

    real(lambda: 0)()  # so that numba has loaded what it loads when it first compiles
    monkeypatch.setattr(numba, "njit", nowhere)
    assert compiled(lambda x: x + 1)(2) == 3
