"""Files that something else wrote to: one clear error, never another traceback, never free budget.

What a flipped byte or a cut does to opening a ledger is in tests/privacy; here a broken ledger is
reserved from, by a fit and by an object that had it open.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from replays import QUIET
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from dpscreen import DPFrankWolfe, PrivacyLedger
from dpscreen.audit import AuditFileProblem, load_findings, save_findings
from dpscreen.audit.audit import Finding
from dpscreen.paper.results import ResultStore, StudyError, TrialRow, to_line
from dpscreen.privacy import ZCDP, Budget
from dpscreen.privacy.accountant import BudgetExceeded
from dpscreen.privacy.ledger.file import LedgerProblem
from tools.ledgers import database
from tools.noise import CountingNoise

pytestmark = QUIET
many = settings(max_examples=40, suppress_health_check=list(HealthCheck))

# --- bytes ----------------------------------------------------------------------------------------


@st.composite
def damage(draw, image):
    """Draw what could become of a file's bytes."""
    places = st.integers(0, len(image))
    first, last = sorted((draw(places), draw(places)))
    part, piece = image[first:last], draw(st.binary(max_size=64))
    page = 4096 * draw(st.integers(0, max(0, len(image) // 4096 - 1)))
    kinds = {
        "overwritten": image[:first] + piece + image[first + len(piece) :],
        "inserted": image[:first] + piece + image[first:],
        "deleted": image[:first] + image[last:],
        "repeated": image[:last] + part + image[last:],
        "zeroed": image[:first] + bytes(len(part)) + image[last:],
        "page lost": image[:page] + image[page + 4096 :],
        "page zeroed": image[:page] + bytes(4096) + image[page + 4096 :],
        "turned round": image[:first] + part[::-1] + image[last:],
        "untouched": image,
    }
    return kinds[draw(st.sampled_from(sorted(kinds)))]


# --- the ledger -----------------------------------------------------------------------------------

COST = ZCDP.within(Budget(0.5, 1e-6))
ROWS = np.linspace(-1, 1, 24).reshape(8, 3), np.linspace(-1, 1, 8)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("ledger") / "whole.ledger"
    ledger = PrivacyLedger.create(path, dataset="survey", epsilon=2, delta=1e-6)
    for number in range(3):
        ledger.reserve(COST, purpose=f"model {number}")
    return ledger


def model():
    bounds = {"feature_bounds": (-1, 1), "target_bounds": (-1, 1)}
    noise = CountingNoise(1)
    return DPFrankWolfe(radius=1, n_iter=2, epsilon=0.5, delta=1e-6, random_state=noise, **bounds)


def assert_booked_or_refused(path, whole, ledger):
    """Fit with the ledger: either it is booked beside all that was, or there is no model."""
    fitted = model()
    try:
        fitted.fit(*ROWS, ledger=ledger)
    except (LedgerProblem, BudgetExceeded):
        assert fitted.random_state.used == 0
        with pytest.raises(NotFittedError):
            check_is_fitted(fitted)
        return
    *before, last = PrivacyLedger(path).entries()
    assert tuple(before) == whole.entries()
    assert last.cost == COST


@contextmanager
def copied(whole, image):
    """Copy the ledger, with this for its database."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(shutil.copytree(whole.path, Path(folder) / "broken.ledger"))
        database(path).write_bytes(image)
        yield path


@given(data=st.data())
@many
def test_a_fit_with_a_damaged_ledger_is_booked_or_refused(whole, data):
    with copied(whole, data.draw(damage(database(whole).read_bytes()))) as path:
        assert_booked_or_refused(path, whole, path)


@given(data=st.data())
@many
def test_a_ledger_damaged_while_it_is_open_is_booked_or_refused(whole, data):
    image = database(whole).read_bytes()
    with copied(whole, image) as path:
        ledger = PrivacyLedger(path)
        database(path).write_bytes(data.draw(damage(image)))
        assert_booked_or_refused(path, whole, ledger)


def test_a_page_written_twice_gives_nothing_back(whole):
    # The account, whose row has the number 0, lies where the reservations are looked for, and the
    # reservations where SQLite keeps the last number given.
    image = database(whole).read_bytes()
    for page in range(0, len(image), 4096):
        with copied(whole, image[:page] + image[page : page + 4096] + image[page:]) as path:
            assert_booked_or_refused(path, whole, path)


JOURNAL = bytes.fromhex("d9d505f920a163d7")


@given(data=st.data())
@settings(parent=many, max_examples=40)
def test_a_strange_journal_beside_a_ledger_gives_nothing_back(whole, data):
    header = JOURNAL + b"".join(
        data.draw(st.integers(0, most)).to_bytes(4, "big")
        for most in (2**32 - 1, 2**32 - 1, 8, 512, 4096)
    )
    page = data.draw(st.integers(0, 9)).to_bytes(4, "big") + bytes(4096) + bytes(4)
    with copied(whole, database(whole).read_bytes()) as path:
        journal = data.draw(st.binary(max_size=200) | st.just(header.ljust(512, b"\0") + page))
        (path / "ledger.db-journal").write_bytes(journal)
        assert_booked_or_refused(path, whole, path)


# --- JSON -----------------------------------------------------------------------------------------


FINDING = Finding("a", "A case", 1.0, 1e-6, 0.5, 0.999, 500, True)


@pytest.fixture(scope="module")
def audit_image(tmp_path_factory):
    return save_findings([FINDING, FINDING], tmp_path_factory.mktemp("audit")).read_bytes()


def read_audit(content):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "audit.json").write_bytes(content)
        try:
            return load_findings(Path(folder))
        except AuditFileProblem:
            return ()


@given(data=st.data())
@settings(parent=many, max_examples=150)
def test_damaged_findings_are_told(audit_image, data):
    read_audit(data.draw(damage(audit_image)))


# --- results --------------------------------------------------------------------------------------


def trial(number):
    return TrialRow(
        suite="paper",
        data="linear",
        method="rnm-screen",
        trial=number,
        seed=f"seed {number}",
        metrics={"mse": 1.5, "f1": float("nan")},
        series={"path": [1.0, 2.0]},
        settings={"radius": 5, "note": "Grüße"},
        versions={"numpy": "2"},
        fingerprint="0123456789abcdef",
        seconds=0.25,
    )


LINES = [to_line(trial(number)) for number in range(4)]
IMAGE = "".join(line + "\n" for line in LINES).encode()


def open_twice(content):
    """Open a results file twice, and write to it; return the rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.jsonl"
        path.write_bytes(content)
        store = ResultStore(folder)
        try:
            loaded = store.open()
            again = store.open()
        except StudyError:
            return ()
        assert again == loaded
        store.append(trial(9))
        assert to_line(store.read().rows[-1]) == to_line(trial(9))
        return loaded.rows


@given(st.data())
@settings(parent=many, max_examples=120)
def test_damaged_results_are_left_out_and_no_row_is_made_up(data):
    written = {line: None for line in LINES}
    for row in open_twice(data.draw(damage(IMAGE))):
        assert to_line(row) in written
