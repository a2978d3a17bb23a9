"""A fit can be followed: it does not run through more files than a reader can hold in mind."""

import sys

import pytest

from tools import trace_files


@pytest.mark.parametrize("fit", list(trace_files.FITS))
def test_a_fit_runs_through_few_files(fit):
    found = trace_files.files_run(trace_files.FITS[fit])
    assert len(found) <= trace_files.MOST[fit], found


def test_a_file_counts_if_one_of_its_functions_is_called():
    from dpscreen.privacy.budget import Budget
    from dpscreen.privacy.noise import SeededNoise

    assert trace_files.files_run(lambda: Budget(1.0, 1e-6)) == ["privacy/budget.py"]
    both = trace_files.files_run(lambda: (Budget(1.0, 1e-6), SeededNoise(3)))
    assert both == ["privacy/budget.py", "privacy/noise.py"]
    assert trace_files.files_run(lambda: sum([1, 2])) == []


def test_who_watches_before_watches_after():
    before = sys.getprofile()
    trace_files.files_run(lambda: None)
    assert sys.getprofile() is before
