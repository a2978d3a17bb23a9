"""What fits is booked, exactly; what does not is refused and says what remains."""

import copy
import csv
import io
import json
import os
import pickle
import re
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpscreen import __version__
from dpscreen.privacy import ZCDP, Budget, BudgetExceeded
from dpscreen.privacy import ledger as ledgers
from dpscreen.privacy.ledger import BudgetRefused, PrivacyLedger, WrongUnit
from dpscreen.privacy.ledger.export import affordable_epsilon, as_csv, as_json, document
from dpscreen.privacy.ledger.records import (
    FINEST_UNIT,
    LONGEST_SUM,
    Account,
    Chain,
    Damaged,
    Reservation,
    bookable,
    one_line,
    os_user,
)
from tools.ledgers import in_threads, make_ledger

TINY = ZCDP(Fraction(1, 10**60))


@pytest.fixture
def ledger(tmp_path):
    return make_ledger(tmp_path / "budget.ledger")


def account(**changes):
    asked = {"dataset": "survey", "declared": {}, "note": "", "who": "owner"} | changes
    return Account.open(Budget(2, 1e-6), **asked)


def test_a_new_ledger_grants_what_was_declared(tmp_path):
    ledger = make_ledger(
        tmp_path / "budget.ledger", note="for two years", declared={"unit": "one row"}
    )
    assert ledger.budget == Budget(2, 1e-6)
    assert ledger.total == ledger.remaining == ZCDP.within(Budget(2, 1e-6))
    assert ledger.spent == ZCDP.free()
    assert ledger.entries() == ()
    assert (ledger.dataset, ledger.note, ledger.declared) == (
        "survey",
        "for two years",
        {"unit": "one row"},
    )
    assert ledger.fingerprint == ledger.document()["fingerprint"]
    assert sorted(tmp_path.iterdir()) == [ledger.path]
    assert {file.name for file in ledger.path.iterdir()} == {"ledger.db", "lock"}  # at rest


def test_the_fingerprint_is_of_the_declaration_alone():
    same = account(declared={"a": "1", "b": "2"}).fingerprint
    assert account(declared={"b": "2", "a": "1"}, note="x", who="y").fingerprint == same
    others = [account(declared={"a": "1"}), account(declared={"a": "12", "b": ""})]
    others += [account(declared={"a": "1", "b": "2"}, dataset="survey2")]
    assert len({same, *(other.fingerprint for other in others)}) == 4


def test_a_reservation_says_who_what_and_when(ledger):
    cost = ledger.total / 3
    booked = ledger.reserve(cost, purpose="income model", detail="DP-FW, 30 steps")
    assert (booked.number, booked.cost, booked.purpose) == (1, cost, "income model")
    assert (booked.library, booked.detail) == (__version__, "DP-FW, 30 steps")
    assert abs(datetime.now(UTC) - datetime.fromisoformat(booked.at)) < timedelta(minutes=5)
    assert ledger.reserve(cost, purpose="again", who="Ada").who == "Ada"
    assert ledger.entries()[0] == booked
    assert ledger.head == ledger.entries()[-1].hash


def test_the_user_is_not_taken_from_the_environment(ledger, monkeypatch):
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "somebody-else")
    if os.name == "posix":
        assert ledger.reserve(TINY, purpose="test").who != "somebody-else"


@pytest.mark.parametrize(("name", "who"), [("ada", "ada"), ("", "unknown")])
def test_a_system_without_a_list_of_users_says_who_it_is_in_the_environment(monkeypatch, name, who):
    monkeypatch.setitem(sys.modules, "pwd", None)
    monkeypatch.setenv("USERNAME", name)
    assert os_user() == who


def test_a_booking_waits_for_the_disk(ledger):
    with closing(ledger._file._connect()) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


@given(st.integers(1, 12), st.floats(0.01, 20), st.sampled_from([1e-3, 1e-6, 1e-9]))
@settings(max_examples=12)
def test_n_shares_of_the_total_fit_exactly_and_no_more(tmp_path_factory, count, epsilon, delta):
    path = tmp_path_factory.mktemp("ledger") / "budget.ledger"
    ledger = make_ledger(path, epsilon=epsilon, delta=delta)
    for _ in range(count):
        ledger.reserve(ledger.total / count, purpose="share")
    assert ledger.spent == ledger.total
    assert ledger.remaining == ZCDP.free()
    with pytest.raises(BudgetRefused):
        ledger.reserve(TINY, purpose="one more")
    assert len(PrivacyLedger(path).entries()) == count


@given(st.lists(st.fractions(0, 1, max_denominator=10**30), max_size=100))
@settings(max_examples=50)
@example([Fraction(1, 10**30 - k) for k in range(100)])  # a sum too long to be booked as it is
def test_a_sum_stays_short_and_never_books_too_little(costs):
    spent = asked = ZCDP.free()
    for cost in map(ZCDP, costs):
        booked = bookable(spent, cost)
        assert cost <= booked <= cost + ZCDP(Fraction(1, FINEST_UNIT))
        spent, asked = spent + booked, asked + cost
    assert spent >= asked
    assert spent.rho.denominator.bit_length() <= LONGEST_SUM + 257


def test_a_refusal_names_what_remains_and_books_nothing(ledger):
    ledger.reserve(ledger.total / 2, purpose="half")
    with pytest.raises(BudgetRefused) as refused:
        ledger.reserve(ledger.total, purpose="too much")
    assert isinstance(refused.value, BudgetExceeded)
    assert refused.value.remaining == ledger.total / 2
    for part in ("rho=0.0881527", "rho=0.0440763 remains", "epsilon=1.37494", "delta=1e-06"):
        assert part in str(refused.value)
    assert len(ledger.entries()) == 1
    again = pickle.loads(pickle.dumps(refused.value))
    assert (str(again), again.remaining) == (str(refused.value), refused.value.remaining)
    ledger.reserve(ZCDP.within(Budget(refused.value.epsilon, 1e-6)), purpose="as told")


@given(st.floats(0.001, 50), st.sampled_from([1e-2, 1e-5, 1e-12]), st.fractions("1/1000000000", 1))
@settings(max_examples=60)
def test_the_epsilon_that_is_said_to_remain_fits(epsilon, delta, share):
    remaining = ZCDP.within(Budget(epsilon, delta)) * share
    told = affordable_epsilon(remaining, delta)
    assert 0 <= told <= epsilon * (1 + 1e-8)
    if told:
        assert ZCDP.within(Budget(told, delta)) <= remaining
        more = told * (1 + 1e-4)
        assert ZCDP.within(Budget(more, delta)) > remaining


@pytest.mark.parametrize(
    ("cost", "purpose", "problem"),
    [
        *((cost, "test", "ZCDP") for cost in (0.1, 1, None, Fraction(1, 3), "1", True)),
        (ZCDP.free(), "test", "cost something"),
        (TINY, 1, "purpose must be text; got int"),
    ],
)
def test_a_reservation_needs_a_cost_and_a_purpose(ledger, cost, purpose, problem):
    with pytest.raises((TypeError, ValueError), match=problem):
        ledger.reserve(cost, purpose=purpose)
    assert ledger.entries() == ()


@pytest.mark.parametrize(
    "changes",
    [
        *({"epsilon": one} for one in (0, -1, float("nan"), float("inf"))),
        *({"delta": one} for one in (0, 1)),
        *({"dataset": f"a{one}b"} for one in ("\x1b[2J", "\x00", "\ud800")),
        *({"timeout": one} for one in (-1, float("nan"))),
        {"dataset": ""},
        {"note": "=1+1"},
        {"note": "x" * 2001},
        {"declared": {"": "x"}},
    ],
)
def test_a_ledger_that_cannot_be_leaves_no_file(tmp_path, changes):
    with pytest.raises(ValueError, match="must"):
        make_ledger(tmp_path / "budget.ledger", **changes)
    assert list(tmp_path.iterdir()) == []


@given(st.text(max_size=60))
def test_texts_are_one_printable_line_or_refused(text):
    try:
        line = one_line("purpose", text)
    except ValueError:
        return
    assert line == " ".join(text.split())
    assert line.isprintable()
    assert line[0] not in "=+-@"


signs = st.sampled_from(" ,;\"'\\/=") | st.characters(exclude_categories=("C", "Z"))
lines = st.text(signs, max_size=40).map(lambda text: " ".join(f"x{text}".split()))


@given(st.lists(st.tuples(lines, lines, lines), max_size=5))
@settings(max_examples=40)
def test_exports_parse_back(texts):
    owner = account(declared={"unit": "one, \"two\"; 'three'"})
    chain, entries = Chain.of(owner), []
    for purpose, who, detail in texts:
        asked = Reservation.ask(owner.total / 7, purpose=purpose, who=who, detail=detail)
        entries.append(chain.sealed(asked))
        chain = chain.then(entries[-1])
    ledger = document(owner, entries, chain.hash)
    assert json.loads(as_json(ledger)) == ledger
    rows = list(csv.DictReader(io.StringIO(as_csv(ledger), newline="")))
    assert [
        (int(row["number"]), Fraction(row["rho_exact"]), row["purpose"], row["who"], row["detail"])
        for row in rows
    ] == [(e.number, e.cost.rho, e.purpose, e.who, e.detail) for e in entries]
    assert [row["hash"] for row in rows] == [entry.hash for entry in entries]
    parts = [Fraction(ledger[name]["rho_exact"]) for name in ("spent", "remaining", "total")]
    assert parts[0] + parts[1] == parts[2]
    assert ledger["spent"]["rho"] >= parts[0]
    assert ledger["remaining"]["rho"] <= parts[1]


# --- one kind of unit -----------------------------------------------------------------------------

ROWS, FIVE = "one row", "one unit (at most 5 rows)"
PEOPLE = "one value of the column 'id' (at most 2 rows)"
HOMES = "one value of the column 'home' (at most 2 rows)"


@pytest.mark.parametrize(
    ("known", "second", "fits"),
    [
        (ROWS, ROWS, True),
        (ROWS, FIVE, False),
        (ROWS, PEOPLE, False),
        (FIVE, ROWS, False),
        (FIVE, FIVE.replace("5", "3"), True),
        (FIVE, PEOPLE, True),
        (PEOPLE, FIVE, True),
        (PEOPLE, PEOPLE.replace("2 rows", "1 row"), True),
        (PEOPLE, HOMES, False),
        (PEOPLE, ROWS, False),
        ("", PEOPLE, True),
        (PEOPLE, "", True),
        ("Rows", ROWS, True),
        ("one household", ROWS, False),
        ("one household", FIVE, True),
        ("one household", PEOPLE, True),
    ],
)
@pytest.mark.parametrize("declared", [False, True])
def test_a_ledger_counts_for_one_unit_that_was_declared_or_booked(
    tmp_path, known, second, fits, declared
):
    ledger = make_ledger(tmp_path / "budget.ledger", declared={"unit": known} if declared else {})
    if not declared:
        ledger.reserve(ledger.total / 4, purpose="one", unit=known)
    spent = ledger.spent
    assert ledger.unit == known
    if fits:
        ledger.check_unit(second)
        assert ledger.reserve(ledger.total / 4, purpose="two", unit=second).unit == second
        return
    for book in (ledger, PrivacyLedger(ledger.path)):
        with pytest.raises(WrongUnit, match=f"counts for {re.escape(repr(known))}"):
            book.reserve(ledger.total / 4, purpose="two", unit=second)
        with pytest.raises(WrongUnit, match="nothing was booked"):
            book.check_unit(second)
    assert ledger.spent == spent


def test_the_column_that_was_booked_makes_a_declared_unit_definite(tmp_path):
    ledger = make_ledger(tmp_path / "budget.ledger", declared={"unit": "one household"})
    for unit in (FIVE, HOMES):
        ledger.reserve(ledger.total / 4, purpose="one", unit=unit)
    with pytest.raises(WrongUnit, match="'home'"):
        ledger.reserve(ledger.total / 4, purpose="three", unit=PEOPLE)


def test_units_are_listed_and_need_not_be_told(ledger):
    ledger.reserve(ledger.total / 4, purpose="one", detail="of no unit")
    ledger.reserve(ledger.total / 4, purpose="two", detail="PrivateLasso", unit=PEOPLE)
    rows = list(csv.DictReader(io.StringIO(ledger.export("csv"), newline="")))
    lines = ledger.document()["reservations"]
    assert [row["unit"] for row in rows] == [line["unit"] for line in lines] == ["", PEOPLE]
    assert rows[1]["detail"] == f"PrivateLasso [unit: {PEOPLE}]"


def test_a_chain_for_two_kinds_of_unit_is_damaged(ledger):
    entry = ledger.reserve(ledger.total / 4, purpose="one", unit=ROWS)
    chain = Chain(entry.number, entry.hash, unit=PEOPLE)
    other = chain.sealed(Reservation.ask(entry.cost, purpose="two", who="a", detail="", unit=ROWS))
    with pytest.raises(Damaged, match="for another unit"):
        chain.then(other)


@pytest.mark.parametrize("unit", ["=1+1", "@x", " ", "a\x1b[2J"])
def test_units_are_text_that_no_spreadsheet_computes(ledger, unit):
    with pytest.raises(ValueError, match="must"):
        ledger.reserve(ledger.total / 4, purpose="one", unit=unit)
    entry = ledger.reserve(ledger.total / 4, purpose="two", detail="[unit: =1+1]")
    assert entry.unit == ""
    with pytest.raises(ValueError, match="must not hold"):
        ledger.reserve(ledger.total / 4, purpose="one", detail="a [unit: b]", unit=ROWS)


def test_copies_and_pickles_are_the_same_ledger(ledger):
    ledger.reserve(ledger.total / 4, purpose="a secret purpose")
    for twin in (copy.deepcopy(ledger), pickle.loads(pickle.dumps(ledger))):
        twin.reserve(ledger.total / 4, purpose="twin")
    assert ledger.spent == ledger.total * Fraction(3, 4)
    assert b"secret" not in pickle.dumps(ledger)  # a saved model does not carry the history


def test_threads_share_a_ledger(ledger):
    refused = []

    def work(_):
        for _ in range(5):
            try:
                ledger.reserve(ledger.total / 12, purpose="thread")
            except BudgetRefused as error:
                refused.append(error)

    in_threads(work, 4)
    assert len(refused) == 8
    assert ledger.spent == ledger.total
    assert [entry.number for entry in ledger.entries()] == list(range(1, 13))


def test_two_objects_see_each_other(ledger):
    other = PrivacyLedger(ledger.path)
    ledger.reserve(ledger.total / 2, purpose="here")
    assert other.remaining == ledger.total / 2
    other.reserve(ledger.total / 2, purpose="there")
    with pytest.raises(BudgetRefused):
        ledger.reserve(TINY, purpose="too late")


def test_the_seam_takes_a_ledger_a_path_or_nothing(ledger):
    ledgers.reserve(None, ledger.total, purpose="nothing")
    ledgers.reserve(ledger, ledger.total / 4, purpose="object")
    ledgers.reserve(ledger.path, ledger.total / 4, purpose="path")
    ledgers.reserve(str(ledger.path), ledger.total / 4, purpose="text")
    assert [entry.purpose for entry in ledger.entries()] == ["object", "path", "text"]
    with pytest.raises(BudgetExceeded):
        ledgers.reserve(ledger, ledger.total, purpose="too much")
