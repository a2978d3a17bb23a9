import pytest
from model_pages import LEDGER, SCHEMA, fitted, quick

from dpscreen import write_model_page


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
