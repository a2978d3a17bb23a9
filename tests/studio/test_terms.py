"""Terms of a formula, and coefficients of interest: added, refused, saved and fitted."""

import json
import shlex

import pytest

from dpscreen import load
from dpscreen.studio import work
from dpscreen.studio.draft import Draft
from dpscreen.studio.shelf import ReleaseRecord
from dpscreen.studio.work import ReleaseOrder
from dpscreen.tables.declaration import SchemaProblem
from tools.studio import write_table


@pytest.fixture
def session(tmp_path, ready):
    found = ready(write_table(tmp_path / "survey.csv", 6000), tmp_path / "shelf")
    found.draft.method = "private-ols"
    return found


def add(draft, kind, first, second="", knots=""):
    return str(draft.add_term(kind, first, second, knots=knots))


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("square", ""), "Choose a column first"),
        (("interaction", "age", "age"), "Choose two different columns"),
        (("interaction", "age", "cost"), "'cost' is the target"),
        (("logarithm", "age"), "log needs values above 0, and age is declared from 0 to 120"),
        (("spline", "age", "", "20, many"), "A spline needs knots"),
        (("spline", "age", "", ""), "A spline needs knots"),
        (("spline", "age", "", "20, 400"), "increasing numbers between 0 and 120"),
    ],
)
def test_what_cannot_be_a_term_is_refused_in_words(session, asked, words):
    before = session.draft.formula
    assert words in add(session.draft, *asked)
    assert (session.draft.terms, session.draft.formula) == ([], before)


def test_a_term_stands_in_the_formula_once(session):
    draft = session.draft
    assert add(draft, "square", "age") == ""
    assert "is in the formula already" in add(draft, "square", "age")
    draft.remove_term(0)
    assert draft.formula == "cost ~ age + sex + score"
    assert add(draft, "spline", "score", knots="3;6 4") == ""
    assert draft.formula == "cost ~ age + sex + bs(score, knots=[3, 4, 6])"
    draft.remove_term(0)  # its column is a feature again
    assert draft.formula == "cost ~ age + sex + score"


def test_transforms_are_written_into_the_formula_and_knots_are_of_the_column(session):
    draft = session.draft
    draft.put_more(3, "log1p", "")
    draft.put_more(4, "sqrt", "")
    assert add(draft, "spline", "score", knots="5") == ""
    assert add(draft, "square", "score") == ""
    assert draft.formula == (
        "sqrt(cost) ~ age + sex + log1p(score) + bs(score, knots=[5]) + I(score ** 2)"
    )
    assert draft.problems() == []
    draft.save(session.shelf.schema_file)
    again = Draft.of(session.table, session.shelf.schema_file)
    assert again.formula == (
        "sqrt(cost) ~ age + sex + log1p(score) + bs(score, knots=[5]) + I(score ** 2)"
    )
    assert again.features == ["age", "sex"]


def test_names_that_are_no_identifiers_stand_in_backticks(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("blood pressure,class,y\n")
    draft = Draft.of(table, tmp_path / "none")
    for place in range(3):
        draft.put(place, "number", "1", "9")
    draft.ask("y", ["blood pressure", "class"], "", "")
    assert add(draft, "logarithm", "blood pressure") == ""
    assert add(draft, "interaction", "blood pressure", "class") == ""
    assert draft.formula == (
        "y ~ `blood pressure` + `class` + log(`blood pressure`) + `blood pressure`:`class`"
    )
    draft.method, draft.named["interest"] = "private-ols", {"log(`blood pressure`)"}
    assert draft.settings == {"interest": ["log(blood pressure)"]}


def test_a_formula_that_cannot_be_read_is_refused_at_the_start(session):
    session.draft.save(session.shelf.schema_file)
    saved = json.loads(session.shelf.schema_file.read_text())
    del saved["dpscreen"]["features"]
    saved["dpscreen"]["formula"] = "cost ~ scale("
    session.shelf.schema_file.write_text(json.dumps(saved))
    with pytest.raises(SchemaProblem, match="formula"):
        Draft.of(session.table, session.shelf.schema_file)


def test_terms_and_coefficients_of_interest_reach_the_model_and_its_command(session):
    draft, shelf = session.draft, session.shelf
    add(draft, "interaction", "age", "sex")
    draft.named |= {"interest": {"sex", "age:sex"}, "required": {"score"}}
    chosen = {"interest": ["sex=m", "(age - 60):sex=m"], "required": ["score"]}
    assert draft.settings == chosen
    before = draft.fingerprint
    draft.named["required"] = set()
    assert draft.fingerprint != before
    draft.named["required"] = {"score"}
    order = session.order(session.granted)
    assert "adjusted for" in work.dry_run_page(order, 6000)
    release = ReleaseOrder(
        order, session.table, session.state, shelf.folder, shelf.ledger, "0" * 16
    )
    assert work._outcome(release, lambda _: None)[0] == "done"
    (kept,) = shelf.releases()
    assert kept.record.settings == chosen
    words = shlex.split(kept.record.command())
    assert [words[k + 1] for k, one in enumerate(words) if one == "--interest"] == chosen[
        "interest"
    ]
    model = load(kept.folder / "model.json")
    assert model.released().schema["dpscreen"]["formula"] == draft.formula
    given = model.released().table.given
    assert [name for name, one in zip(model.feature_names_out_, given, strict=False) if one] == (
        chosen["interest"]
    )
    draft.method = "private-lasso"
    assert draft.settings == {}  # of tables alone
    old = vars(kept.record).copy()
    del old["settings"]  # as it was written before there were any
    assert "--interest" not in ReleaseRecord(**old).command()
