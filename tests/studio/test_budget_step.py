"""What a budget buys, as the page shows it: of every model what that model gives."""

import time

import pytest

from dpscreen.families import BINOMIAL, FAMILIES, GAUSSIAN
from dpscreen.planning.curve import EPSILONS, BudgetCurve, BudgetPoint
from dpscreen.planning.setting import Setting
from dpscreen.studio.charts import panels
from dpscreen.studio.questions import CHOICES
from dpscreen.studio.releasing import release
from dpscreen.studio.runs import Simulations
from dpscreen.studio.steps import budget, live, question
from dpscreen.studio.views import Go, StepRequest
from tools.studio import declare_columns, page_of, posted, session_of, write_table

SELECTION, TABLE = GAUSSIAN.sparse.method, GAUSSIAN.table.method
OUTCOMES, ODDS = BINOMIAL.sparse.method, BINOMIAL.table.method


def setting_of(n_rows, n_features, method=SELECTION, **more):
    choice = CHOICES[method]
    family = choice.family.name
    return Setting(n_rows, n_features, 1.0, 1e-6, family=family, table=choice.table, **more)


def curve_of(method, values, **more):
    n_effects = 0 if method in (TABLE, ODDS) else 5
    points = (BudgetPoint(one, values, {}, n_effects, 0.77) for one in (0.1, 1.0))
    return BudgetCurve(setting_of(6000, 7, method, **more), tuple(points))


SELECTED = {"r2": 0.4, "found": 4.2}


@pytest.mark.parametrize(
    ("curve", "message"),
    [
        (curve_of(SELECTION, SELECTED), ["R² on new rows", "0.40", "of 5 that matter", "4.2"]),
        (
            curve_of(SELECTION, SELECTED | {"width": 2.0}, split=True),
            ["R² on new rows", "of 5 that matter", "without privacy", "2.0 ×", "from 1 500 of the"],
        ),
        (curve_of(SELECTION, SELECTED, split=True), ["the rows are too few for intervals"]),
        (
            curve_of(OUTCOMES, SELECTED | {"auc": 0.7, "width": 2.0}, split=True),
            ["AUC on new rows", "without privacy", "2.0 ×"],
        ),
        (
            curve_of(TABLE, {"width": 1.5, "needed": 900.0}),
            ["1.5 ×", "from 2 700 of the 6 000"],
        ),
        (
            curve_of(TABLE, {"needed": 9120.0}),
            ["none", "The table would be empty", "about 9 100 rows are needed"],
        ),
        (curve_of(TABLE, {"needed": 900.0}), ["none", "simulating their width takes too long"]),
        (curve_of(ODDS, {"needed": 9120.0}), ["none", "The table would be empty"]),
        (
            curve_of(OUTCOMES, {"auc": 0.71, "found": 3.0}),
            ["AUC on new rows", "0.71", "At most 0.77", "3.0", "of 95 % of the features"],
        ),
    ],
)
def test_every_model_shows_what_it_gives(curve, message):
    text = " ".join(f"{one.title} {one.value} {one.words}" for one in panels(curve, 0.5))
    for word in message:
        assert word in text.replace("\u202f", " ").replace("\xa0", " ")
    assert ("R²" in text) == (curve.setting.method == SELECTION)
    assert ("AUC" in text) == (curve.setting.method == OUTCOMES)


def test_before_there_is_a_point_nothing_is_drawn():
    assert panels(BudgetCurve(setting_of(600, 4)), 1.0) == []


def test_models_on_offer_can_be_fitted_and_simulated():
    from dpscreen.planning.methods import METHODS

    found = {one.method: one.estimator for one in CHOICES.values()}
    assert list(found) == [
        m for one in FAMILIES.values() for m in (one.sparse.method, one.table.method)
    ]
    assert found == {method: METHODS[method].__name__ for method in found}


def test_each_model_is_simulated_in_the_process_of_its_own():
    simulations = Simulations()
    try:
        for choice in CHOICES.values():
            setting, end = setting_of(600, 4, choice.method), time.monotonic() + 120
            while not (found := simulations.curve(setting)[0]).points:
                assert time.monotonic() < end
                time.sleep(0.02)
            assert EPSILONS[0] in {one.epsilon for one in found.points}
            assert panels(found, 0.7)
    finally:
        simulations.close()


# --- the question behind it -----------------------------------------------------------------------


@pytest.fixture
def session(tmp_path):
    found = session_of(write_table(tmp_path / "survey.csv", 20), tmp_path / "place")
    found.simulations.start = lambda: None
    declare_columns(found.draft)
    found.draft.put(0, "text")
    yield found
    found.close()


TWO_ROWS = {"unit": "0", "rows_per_unit": "2"}


def asks(session, feature=("0", "1", "2"), **fields):
    form = {"target": "3", "rows": "600"} | fields
    return question(session, posted(*(("feature", one) for one in feature), **form))


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"target": ""}, "schema.no-target"),
        ({"feature": []}, "schema.features-empty"),
        ({"model": OUTCOMES}, "studio.target-not-binary"),
        ({"model": ODDS}, "studio.target-not-binary"),
        ({"model": OUTCOMES, "target": "1", "rate": "120"}, "studio.rate-not-a-share"),
        ({"model": SELECTION, "intervals": SELECTION} | TWO_ROWS, "studio.intervals-need-one-row"),
        (
            {"model": OUTCOMES, "target": "1", "intervals": OUTCOMES} | TWO_ROWS,
            "studio.intervals-need-one-row",
        ),
        ({"rows": "many"}, "studio.rows-not-a-number"),
    ],
)
def test_what_no_model_can_do_is_told_at_the_question(session, fields, code):
    assert code in [one.code for one in asks(session, **fields).content["problems"]]


@pytest.mark.parametrize(
    ("epsilon", "delta", "message"),
    [
        ("1e308", "1e-6", "Epsilon must be at most 10000"),
        ("0", "1e-6", "Epsilon must be a positive, finite number"),
        ("1", "1", "Delta must lie strictly between 0 and 1"),
        ("1", "", "must be numbers"),
    ],
)
@pytest.mark.parametrize("action", ["grant", ""])
def test_no_budget_that_hides_nothing_is_granted_or_spent(session, epsilon, delta, message, action):
    asks(session)
    if not action:
        session.grant("survey", 3.0, 1e-6)
    typed = {"epsilon": epsilon, "delta": delta, "dataset": "survey", "action": action}
    shown = budget(session, posted(**typed))
    assert message in " ".join(shown.content["problems"])
    assert session.draft.epsilon == 1.0
    assert (session.ledger is None) == bool(action)


def test_the_share_of_yes_is_simulated_with(session):
    assert asks(session, model=OUTCOMES, target="1", rate="12,5") == Go("budget")
    assert session.draft.in_words == "probability that sex is m, from 2 features"
    setting = session.setting(1e-6)
    assert (setting.method, setting.rate, setting.n_rows) == (OUTCOMES, 0.125, 600)
    session.grant("survey", 3.0, 1e-6)
    session.simulations.curve = lambda asked: (
        curve_of(OUTCOMES, {"auc": 0.71, "found": 3.0}),
        4,
    )
    shown = page_of(session, live(session, StepRequest({"epsilon": "0.5"})))
    for word in ("AUC on new rows", "a yes in 12 %", "4 points are still", "62.3 %"):
        assert word in shown


def test_the_release_repeats_what_is_to_be_expected_and_simulates_nothing(session):
    asks(session, model=TABLE)
    session.grant("survey", 3.0, 1e-6)
    assert release(session, StepRequest()).content["expected"] == []
    curve = curve_of(TABLE, {"needed": 9120.0})
    session.simulations.curve = lambda case, ask: (curve, 0)
    ((_title, message),) = release(session, StepRequest()).content["expected"]
    assert message.startswith("The table would be empty at this budget")
    assert "The table would be empty" in page_of(session, release(session, StepRequest()))
