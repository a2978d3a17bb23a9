import pytest
from model_pages import LEDGER, SCHEMA, fitted, quick
from study_rows import made_up_rows

from dpscreen.report.model_page import write_model_page
from dpscreen.report.study import Report, write_report


@pytest.fixture(scope="session")
def rows():
    return made_up_rows()


@pytest.fixture(scope="session")
def report(rows):
    return Report(rows)


@pytest.fixture(scope="session")
def written(report, tmp_path_factory):
    """Return a directory that holds the whole report."""
    directory = tmp_path_factory.mktemp("study")
    write_report(report, directory)
    return directory


@pytest.fixture(scope="session")
def expected():
    """Return what could be expected of the model."""
    return quick()


@pytest.fixture(scope="session")
def split_model():
    """Return a model with intervals, whose names try to break a page."""
    return fitted(inference="split")


@pytest.fixture(scope="session")
def model_page(split_model, expected, tmp_path_factory):
    """Return the page of that model."""
    path = tmp_path_factory.mktemp("model") / "report.html"
    return write_model_page(split_model, path, schema=SCHEMA, ledger=LEDGER, expected=expected)
