from __future__ import annotations

import pytest

from dpscreen import ADPScreen, DPFrankWolfe, RNMScreen


@pytest.fixture(params=[DPFrankWolfe, RNMScreen, ADPScreen], ids=lambda kind: kind.__name__)
def private_class(request):
    return request.param


@pytest.fixture(params=["proven", "published"])
def calibration(request):
    return request.param
