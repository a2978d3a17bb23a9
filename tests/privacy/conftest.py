"""A ledger with three reservations, and copies of it."""

import shutil

import pytest

from dpscreen.privacy.ledger import PrivacyLedger
from tools.ledgers import make_ledger


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return a ledger that stays whole; its copies are broken."""
    return make_ledger(tmp_path_factory.mktemp("whole") / "budget.ledger", 3)


@pytest.fixture
def ledger(tmp_path, whole):
    return PrivacyLedger(shutil.copytree(whole.path, tmp_path / "budget.ledger"))
