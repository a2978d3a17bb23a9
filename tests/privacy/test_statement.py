"""What a fit promises can be read, cannot be changed, and holds no array."""

import json
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpscreen import __version__
from dpscreen._core.words import percent_at_most, rounded_up
from dpscreen.privacy import (
    ZCDP,
    Accountant,
    Budget,
    LaplaceNoisyMax,
    NoisyMax,
    PrivacyStatement,
    SecureNoise,
    SeededNoise,
    ThresholdedNoisyMin,
)
from dpscreen.privacy.budget import ROW, Unit
from dpscreen.privacy.statement import IN_HALVES

BUDGET = Budget(2.0, 1e-6)
PUBLIC = ("the bounds", "the columns")
TERMS = {"unit", "composition", "preprocessing", "tuning", "trust_model", "timing", "library"}
"""What NIST SP 800-226 asks for, in plain values."""


def proven(noise, count=4, *, budget=BUDGET, unit=ROW, **more):
    limit = ZCDP.within(budget)
    accountant = Accountant(noise, limit=limit, unit=unit)
    selection = NoisyMax.of_cost(limit / (count * unit.rows_per_unit**2), sensitivity=1.5)
    for _ in range(count):
        accountant.release(selection, np.zeros(3, dtype=np.int64), purpose="a step")
    return PrivacyStatement.of(budget, accountant, public=PUBLIC, **more)


def published(noise):
    accountant = Accountant(noise, limit=None)
    accountant.release(LaplaceNoisyMax(1.0, 0.01), np.zeros(3), purpose="a step")
    accountant.release(ThresholdedNoisyMin(1.0, 0.01), np.zeros(3), purpose="screening")
    return PrivacyStatement.of(BUDGET, accountant, public=PUBLIC, errata=("E1", "E2"))


STATEMENTS = {
    "proven": proven(SecureNoise()),
    "proven, seeded": proven(SeededNoise(1)),
    "published": published(SecureNoise()),
    "published, seeded": published(SeededNoise(1)),
}
each = pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)


def words(text):
    return " ".join(str(text).split())


def test_only_a_proven_release_with_secure_noise_holds():
    assert [name for name, statement in STATEMENTS.items() if statement.holds] == ["proven"]


@each
def test_the_text_states_the_promise_its_terms_and_whether_it_holds(statement):
    assert ("NOT PRIVATE" in str(statement)) == (not statement.holds)
    assert str(statement).startswith("NOT PRIVATE") == (not statement.holds)
    assert max(len(line) for line in str(statement).splitlines()) <= 140
    assert "None" not in str(statement)
    text = words(statement)
    for part in ("epsilon = 2, delta = 1e-06", "adding or removing one row", "Not covered:"):
        assert part in text
    assert "the bounds; the columns." in text
    assert statement.noise in text
    for name in TERMS - {"unit"}:
        assert getattr(statement, name) in text
    assert f"dpscreen {__version__}" in text
    assert "a curator sees the rows" in text


@each
def test_only_a_proven_statement_has_a_cost_and_a_published_one_names_its_errata(statement):
    text, costs = words(statement), [record.rho for record in statement.mechanisms]
    if statement.calibration == "published":
        assert "errata E1, E2" in text
        assert "no cost is claimed" in statement.composition
        assert "rho" not in text
        assert (statement.rho, costs) == (None, [None, None])
        return
    rho = ZCDP.within(BUDGET)
    assert float(rho) * (1 - 1e-9) <= statement.rho <= float(rho)
    assert f"rho = {statement.rho:.6g}" in text
    assert costs == pytest.approx([float(rho)])


def leaves(value):
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


@each
def test_a_statement_holds_plain_values_only(statement):
    # No array, and nothing that could carry one: no accountant, mechanism or noise source.
    assert {type(leaf) for leaf in leaves(asdict(statement))} <= {float, int, str, bool, type(None)}
    assert hash(statement) == hash(replace(statement))


# --- as JSON --------------------------------------------------------------------------------------


@each
def test_a_statement_survives_json(statement):
    plain = json.loads(json.dumps(statement.to_dict(), allow_nan=False))
    assert plain["holds"] == statement.holds
    assert set(plain) > TERMS
    again = PrivacyStatement.from_dict(plain)
    assert again == statement
    assert str(again) == str(statement)


CONTRADICTIONS = [
    ("holds", "proven, seeded", {"holds": True}),
    ("holds", "proven, seeded", {"holds": True, "secure_noise": True}),
    ("holds", "proven, seeded", {"holds": True, "secure_noise": True, "noise": "SEEDED"}),
    ("holds", "proven", {"holds": False}),
    ("no-costs", "published", {"holds": True, "calibration": "proven"}),
    ("published-cost", "published", {"rho": 0.1}),
    ("epsilon", "proven", {"epsilon": 1.0}),
    ("epsilon", "proven", {"delta": 1e-9}),
    ("sum", "proven", {"rho": 0.01}),
    ("sum", "proven", {"mechanisms": []}),
    ("unprintable", "proven", {"unit": "a\x1b[2J"}),
    ("rows-per-unit", "proven", {"rows_per_unit": 2}),
    ("neighbours", "proven", {"unit": "one person"}),
    ("neighbours", "proven", {"neighbours": "adding or removing one cell"}),
    ("neighbours", "published", {"neighbours": "adding or removing one cell"}),
    ("neighbours", "proven", {"rows_disclosed": True}),
]
WITHOUT_PROOF = [
    ("no-proof", {"name": "noisy max"}),
    ("no-proof", {"name": "Gaussian vector"}),
    ("mechanism-cost", {"scale": 0.0}),
    ("mechanism-cost", {"scale": 1.0}),  # less noise than the cost allows
    ("mechanism-cost", {"sensitivity": 0.0}),
    ("mechanism-cost", {"sensitivity": 1e-200, "scale": 1e200}),
    ("halves", {"purpose": "first half: a step"}),
]


def fault_of(found):
    """Return the code of what is wrong with a statement from a file."""
    with pytest.raises(ValueError, match=r"rho|cost|statement") as raised:
        PrivacyStatement.from_dict(found)
    return raised.value.args[0].code.removeprefix("statement.")


@pytest.mark.parametrize(("fault", "kind", "changed"), CONTRADICTIONS)
def test_a_statement_that_contradicts_itself_is_refused(fault, kind, changed):
    assert fault_of(STATEMENTS[kind].to_dict() | changed) == fault


@pytest.mark.parametrize(("fault", "changed"), WITHOUT_PROOF)
def test_a_mechanism_that_no_proof_covers_is_refused(fault, changed):
    found = STATEMENTS["proven"].to_dict()
    found["mechanisms"][0] |= changed
    assert fault_of(found) == fault


def test_halves_cost_the_larger_sum_only_where_coins_split_the_rows():
    found = STATEMENTS["proven"].to_dict()
    (record,) = found["mechanisms"]
    halves = [record | {"purpose": f"{one} half: a step"} for one in ("first", "second")]
    assert fault_of(found | {"mechanisms": halves}) == "halves"
    split = PrivacyStatement.from_dict(found | {"mechanisms": halves, "composition": IN_HALVES})
    assert split.rho == STATEMENTS["proven"].rho
    assert split.holds


# --- a number of rows that is disclosed -----------------------------------------------------------


def counted(unit=ROW):
    return proven(SecureNoise(), 1, budget=Budget(1.0, 1e-6), unit=unit, rows_disclosed=True)


def test_a_disclosed_number_of_rows_is_said_with_what_it_gives_away():
    statement = counted()
    assert statement.changing_epsilon == pytest.approx(2.1117, abs=1e-4)
    text = words(statement)
    assert "one row, with the disclosed number of rows held fixed, as are all other" in text
    assert "whoever knows all the others can infer by counting whether a row is in the data" in text
    assert "for changing one row, epsilon = 2.12, delta = 1e-06." in text  # rounded up
    again = PrivacyStatement.from_dict(json.loads(json.dumps(statement.to_dict())))
    assert again == statement
    assert again.rows_disclosed
    for silent in STATEMENTS.values():
        assert not silent.disclosure
        assert "disclosed" not in str(silent)


@pytest.mark.parametrize("k", [1, 4])
def test_units_of_a_column_say_what_was_left_out_and_what_is_disclosed(k):
    statement = counted(Unit(k, column="id"))
    assert statement.surplus_left_out
    assert not statement.of_rows
    text = words(statement)
    assert f"of each value of the column 'id' at most {k} row" in text
    assert "rows without one left out" in text
    assert "whether a unit is there, and with how many rows" in text
    assert "rows, not people" not in text
    assert PrivacyStatement.from_dict(statement.to_dict()) == statement
    assert not counted(Unit(k)).surplus_left_out


# --- bounds are rounded up ------------------------------------------------------------------------


@given(st.floats(1e-290, 1e6), st.integers(1, 6), st.floats(0, 1))
@example(0.0, 2, 1 - 1e-12)
def test_what_is_printed_is_a_bound(bound, digits, share):
    shown, written = Fraction(rounded_up(bound, digits=digits)), Fraction(repr(bound))
    assert shown > 0
    assert (
        written <= shown <= max(written * (1 + Fraction(1, 10 ** (digits - 1))), Fraction("1e-300"))
    )
    shown = Fraction(percent_at_most(share).removesuffix(" %")) / 100
    assert Fraction(repr(share)) <= shown <= 1
    assert shown - Fraction(share) <= Fraction(1, 1000)


@pytest.mark.parametrize("k", [1, 2, 10])
def test_units_are_stated_with_their_sensitivity_and_cost(k):
    statement = proven(SecureNoise(), 1, unit=Unit(k))
    (record,) = statement.mechanisms
    assert record.sensitivity == k * 1.5
    assert record.rho == pytest.approx(float(ZCDP.within(BUDGET)))
    assert statement.neighbours == f"adding or removing {statement.unit}"
    assert PrivacyStatement.from_dict(statement.to_dict()) == statement
    assert ("rows, not people" in words(statement)) == (k == 1)


def test_the_documented_statement_is_the_one_that_is_printed():
    from dpscreen import DPFrankWolfe

    model = DPFrankWolfe(
        radius=3,
        n_iter=30,
        epsilon=1,
        delta=1e-6,
        clip=1,
        feature_bounds=(-1, 1),
        target_bounds=(-4, 4),
    )
    model.fit(np.zeros((50, 10)), np.zeros(50))
    page = Path(__file__).parents[2] / "docs/for-a-privacy-board.md"
    assert f"```text\n{model.privacy_}\n```" in page.read_text(encoding="utf-8")
