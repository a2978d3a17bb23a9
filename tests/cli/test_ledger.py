"""`dpscreen ledger`."""

import csv
import io
import json
from fractions import Fraction
from functools import partial

import pytest

from dpscreen.privacy.ledger import PrivacyLedger
from tools.command import failed, here, succeeded
from tools.ledgers import database

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
    done = succeeded(here("ledger", "create", "budget.ledger", *GRANT, *declared, cwd=tmp_path))
    assert done.stdout == ""
    assert "survey 2024 written to budget.ledger: epsilon 2 at delta 1e-06" in done.stderr
    ledger = PrivacyLedger(tmp_path / "budget.ledger")
    assert ledger.declared == {"unit": "one row", "version": "a=b"}
    assert ledger.note == "for two years"


def test_create_refuses_to_overwrite(ledger):
    before = database(ledger).read_bytes()
    failed(dpscreen_ledger("create", ledger.path, *GRANT), 1, "never overwritten")
    assert database(ledger).read_bytes() == before


def test_show_is_plain_off_a_terminal(ledger):
    done = succeeded(dpscreen_ledger("show", ledger.path), stderr="")
    assert "\x1b" not in done.stdout
    lines = done.stdout.splitlines()
    assert "remaining:   rho 0.0440763 (epsilon 1.37494 at delta 1e-06)" in lines
    (ada,) = (line for line in lines if "Ada" in line)
    assert ada.split()[0] == "1"
    assert "income [bold]model[/bold], first try" in ada
    (emmy,) = (line for line in lines if "Emmy" in line)  # however long, one line
    assert "größe " + "x" * 120 in emmy
    assert ledger.head in done.stdout


def test_show_an_unused_ledger(tmp_path):
    given = {"note": "for two years", "declared": {"unit": "one row"}}
    PrivacyLedger.create(
        tmp_path / "budget.ledger", dataset="survey", epsilon=2, delta=1e-6, **given
    )
    shown = dpscreen_ledger("show", "budget.ledger", cwd=tmp_path).stdout
    assert "Nothing is booked yet." in shown
    assert "declared:    unit = one row\nnote:        for two years\n" in shown


def test_json_and_csv_parse_back(ledger):
    assert json.loads(dpscreen_ledger("show", ledger.path, "--json").stdout) == ledger.document()
    done = dpscreen_ledger("export", ledger.path)
    assert done.stderr == ""
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [(row["who"], row["purpose"], Fraction(row["rho_exact"])) for row in rows] == [
        (entry.who, entry.purpose, entry.cost.rho) for entry in ledger.entries()
    ]


def test_since_wants_an_earlier_hash(ledger):
    assert dpscreen_ledger("show", ledger.path, "--since", ledger.head).returncode == 0
    failed(dpscreen_ledger("show", ledger.path, "--since", "0" * 64), 1, "older copy", stdout="")


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
    done = failed(dpscreen_ledger(verb, name, cwd=tmp_path), 1, message, stdout="")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "none.db").exists()
