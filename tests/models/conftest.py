from __future__ import annotations

from pathlib import Path

import pytest

from dpscreen import ADPScreen, DPFrankWolfe, RNMScreen

IGNORED = ("SeededNoise", "WeakDelta", "Bounds", "PublishedCalibration")
"""Warnings of fits that tests make on purpose; those that test one ask for it."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            for kind in IGNORED:
                ignore = pytest.mark.filterwarnings(f"ignore::dpscreen.{kind}Warning")
                item.add_marker(ignore, append=False)


@pytest.fixture(params=[DPFrankWolfe, RNMScreen, ADPScreen], ids=lambda kind: kind.__name__)
def private_class(request):
    return request.param


@pytest.fixture(params=["proven", "published"])
def calibration(request):
    return request.param
