from __future__ import annotations

import numpy as np
import pytest

from dpscreen import ADPScreen, DPFrankWolfe, RNMScreen


@pytest.fixture(params=[DPFrankWolfe, RNMScreen, ADPScreen], ids=lambda kind: kind.__name__)
def private_class(request):
    return request.param


@pytest.fixture(params=["proven", "published"])
def calibration(request):
    return request.param


@pytest.fixture
def rows():
    rng = np.random.default_rng(7)
    X = rng.uniform(-1, 1, size=(400, 6))
    return X, 2 * X[:, 0] - X[:, 3] + rng.normal(0, 0.1, size=400)
