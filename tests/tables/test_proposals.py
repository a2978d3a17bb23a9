"""What a name says about its column, and that nothing but the name is asked."""

from __future__ import annotations

import doctest
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpscreen.tables import asking, proposals
from dpscreen.tables.columns import KINDS
from dpscreen.tables.proposals import name_rules, propose
from dpscreen.tables.schema import toml_schema

YEAR, SHARE, PERCENT = (0, 120), (0, 1), (0, 100)


@pytest.mark.parametrize(
    ("name", "kind", "bounds", "sure"),
    [
        ("age", "number", YEAR, True),
        ("âge", "number", YEAR, True),
        ("age_group", "category", None, False),
        ("share_of_women", "number", SHARE, True),
        ("debt_ratio", "number", (0, 100), False),
        ("TrainingTimesLastYear", "integer", (0, 100), False),
        ("lunch_pct", "number", PERCENT, True),
        ("price_change_pct", "number", (-100, 100), False),
        ("weight_kg", "number", (0, 300), True),
        ("height_cm", "number", (30, 250), True),
        ("BMI", "number", (10, 80), True),
        ("log_triglycerides", "number", None, False),
        ("cholesterol_by_hdl", "number", None, False),
        ("body temperature (°C)", "number", (30, 45), True),
        ("hour", "integer", (0, 24), True),
        ("year built", "integer", (1900, 2100), False),
        ("sq m", "unknown", None, False),
        ("number_of_visits", "integer", (0, 50), False),
        ("is_member", "boolean", None, True),
        ("yrs_married", "number", None, False),
        ("income_eur", "number", None, False),
        ("total_day_minutes", "number", None, False),
        ("birth_date", "date", ("1900-01-01", "2030-12-31"), True),
        ("patient_id", "id", None, True),
        ("model_type_index", "unknown", None, False),
        ("", "unknown", None, False),
    ],
)
def test_names_that_people_use(name, kind, bounds, sure):
    found = propose(name)
    assert (found.kind, found.bounds, found.sure) == (kind, bounds, sure)
    assert found.why.endswith(".")
    assert len(found.why) < 80


def test_units_of_measurement_are_told():
    names = ("age", "weight_kg", "glucose (mg/dL)", "cholesterol_mmol_l", "pay_usd", "x")
    told = [one.measured_in for one in map(propose, names)]
    assert told == ["years", "kg", "mg/dl", "mmol/l", "USD", ""]


@given(st.text(max_size=60))
def test_any_name_has_a_proposal_that_a_schema_takes(name):
    found = propose(name)
    assert found.kind in {"id", "skip", "unknown", "category", *KINDS}
    column = toml_schema({"columns": {name: found.settings}}).field(name)
    assert column.faults == ()
    assert bool(found.settings) == (not [*column.needs(as_target=False), *column.problems()])


def example(form: str) -> str:
    """Return words that a form is met by."""
    first = re.sub(r"\(([^|)]*)[^)]*\)", r"\1", form)  # of what stands in brackets
    return first.strip("^").replace("*", "q").replace("[0-9]+", "0")


def test_every_rule_can_be_reached():
    rules = name_rules()
    examples = [
        (example(form), rule.holds.measured_in, rule)
        for rule in rules
        for form in rule.names.split()[:1]
    ]
    reached = [
        next(one for one in rules if one.fits(words, unit if rule.spelled else ""))
        for words, unit, rule in examples
    ]
    assert reached == list(rules)


@pytest.mark.parametrize("module", [proposals, asking])
def test_the_examples_of_a_module_hold(module):
    assert doctest.testmod(module).failed == 0
