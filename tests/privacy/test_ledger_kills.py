"""Killed at every system call, a ledger keeps what was confirmed, under each of its names."""

import json
import shutil
from pathlib import Path

import pytest

from dpscreen.privacy.ledger import PrivacyLedger
from tools.ledgers import make_ledger, python, said_by
from tools.mounts import may_mount, mounted

HERE = Path(__file__).parent
EVERY = pytest.mark.parametrize(
    "every", [(), pytest.param(("all",), marks=pytest.mark.slow)], ids=["changes", "calls"]
)
POSSIBLE = "import sys; from tools.kills import may_trace; sys.exit(0 if may_trace() else 1)"


@pytest.fixture(autouse=True, scope="module")
def _tracing():
    if python("-c", POSSIBLE).returncode:
        pytest.skip("no process may be traced here")


def counted(case, folder, *every, before=()):
    return json.loads(said_by(HERE / "ledger_kills.py", case, folder, *every, before=before))


@EVERY
def test_confirmed_bookings_stay_when_the_directory_is_reached_by_a_link(tmp_path, every):
    found = counted("booking", tmp_path, *every)
    assert found["lost"] == 0
    assert found["kills"] > 10
    assert found["journals"] > 5
    assert found["kills"] <= found["booked"] <= 2 * found["kills"] + 1


@pytest.mark.skipif(not may_mount(), reason="nothing may be mounted here")
@EVERY
def test_confirmed_bookings_stay_when_the_directory_is_mounted_elsewhere(tmp_path, every):
    one = make_ledger(tmp_path / "a.ledger").path
    (tmp_path / "b.ledger").mkdir()
    found = counted("booking", tmp_path, *every, before=mounted(one, tmp_path / "b.ledger"))
    assert found["lost"] == 0
    assert found["journals"] > 5


def test_a_database_with_two_names_loses_bookings_so_it_is_refused(tmp_path):
    # The defect that the directory is there for: nobody checks, and the same kills find it.
    found = counted("hard_link", tmp_path)
    assert found["refused"]
    assert found["lost"] > 0


@EVERY
def test_a_ledger_is_made_whole_or_refused(tmp_path, every):
    found = counted("creation", tmp_path, *every)
    assert {state for state in found if "there=False" in state} <= {"there=False whole=False"}
    assert found["there=True whole=False"] > 5
    assert found["there=True whole=True"] > 0


@EVERY
def test_rolling_a_journal_back_may_be_interrupted(tmp_path, every):
    assert counted("recovery", tmp_path, *every)["kills"] > 1


@pytest.mark.skipif(not may_mount(), reason="nothing may be mounted here")
def test_a_journal_that_cannot_be_rolled_back_is_not_passed_over(tmp_path):
    # On a disk that is read-only here, what the killed booking wrote must not be taken for booked.
    counted("hot_journal", tmp_path)
    code = "import sys; from dpscreen import PrivacyLedger; PrivacyLedger(sys.argv[1])"
    path = tmp_path / "a.ledger"
    done = python("-c", code, path, before=mounted(path, path, "ro"))
    assert "LedgerProblem" in done.stderr
    assert len(PrivacyLedger(path).entries()) == 1
    shutil.rmtree(path)
