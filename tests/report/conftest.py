import pytest
from study_rows import made_up_rows

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
