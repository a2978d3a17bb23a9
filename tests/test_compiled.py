"""Compiled loops work where nothing can be kept on disk."""

from __future__ import annotations

from types import SimpleNamespace

import numba
import pytest

from dpscreen.privacy import _kernels as privacy_kernels
from dpscreen.regression import _kernels as regression_kernels


@pytest.mark.parametrize("kernels", [privacy_kernels, regression_kernels])
def test_no_place_for_a_cache_is_no_obstacle(kernels, monkeypatch):
    real = numba.njit

    def nowhere(*, nogil, cache=False):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return real(nogil=nogil)

    monkeypatch.setattr(kernels, "numba", SimpleNamespace(njit=nowhere))
    assert kernels.compiled(lambda x: x + 1)(2) == 3
