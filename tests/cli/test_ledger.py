"""`dpscreen ledger`, as a real process and in this one."""

import json
from functools import partial

import pytest

from dpscreen.privacy.ledger import PrivacyLedger
from tools.command import dpscreen, failed, here
from tools.ledgers import as_single_file, database

GRANT = ("--dataset", "survey 2024", "--epsilon", "2", "--delta", "1e-6")


dpscreen_ledger = partial(here, "ledger")


@pytest.fixture
def ledger(tmp_path):
    ledger = PrivacyLedger.create(
        tmp_path / "budget.ledger", dataset="survey 2024", epsilon=2, delta=1e-6
    )
    ledger.reserve(ledger.total / 4, purpose="income [bold]model[/bold], first try", who="Ada")
    ledger.reserve(ledger.total / 4, purpose="größe " + "x" * 120, who="Emmy")
    return ledger


def test_create_tells_on_stderr_and_makes_a_ledger(tmp_path):
    declared = ("--declare", "unit=one row", "--declare", "version=a=b", "--note", "for two years")
    done = dpscreen("ledger", "create", "budget.ledger", *GRANT, *declared, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "survey 2024 written to budget.ledger: epsilon 2 at delta 1e-06" in done.stderr
    ledger = PrivacyLedger(tmp_path / "budget.ledger")
    assert ledger.declared == {"unit": "one row", "version": "a=b"}
    assert ledger.note == "for two years"
    done = dpscreen_ledger("create", "other.ledger", *GRANT, "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["total"]["epsilon"] == 2


def test_create_refuses_to_overwrite(ledger):
    before = database(ledger).read_bytes()
    done = dpscreen_ledger("create", ledger.path, *GRANT)
    failed(done, 1, "never overwritten")
    assert database(ledger).read_bytes() == before


@pytest.mark.parametrize(
    ("verb", "name", "message"),
    [
        ("show", "text.db", "not a directory"),
        ("show", ".", "not a whole ledger"),
        ("export", "none.db", "does not exist"),
    ],
)
def test_a_file_that_is_no_ledger_exits_with_1_and_one_sentence(tmp_path, verb, name, message):
    (tmp_path / "text.db").write_text("not a ledger\n" * 100)
    done = dpscreen_ledger(verb, name, cwd=tmp_path)
    failed(done, 1, message, stdout="")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "none.db").exists()


def test_import_moves_a_single_file_into_a_directory_once(ledger, tmp_path):
    as_single_file(ledger, tmp_path / "old.db")
    done = dpscreen_ledger("import", "old.db", "new.ledger", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert "survey 2024 imported into new.ledger: 2 booked" in done.stderr
    assert PrivacyLedger(tmp_path / "new.ledger", since=ledger.head).entries() == ledger.entries()
    again = dpscreen_ledger("import", "old.db", "newer.ledger", cwd=tmp_path)
    failed(again, 1, "cannot be imported again", stdout="")
    assert not (tmp_path / "newer.ledger").exists()
