"""The page of a model, as text: complete, escaped, small, and made of released values alone."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_pages import HOSTILE, LEDGER, SCHEMA, SECTIONS, fitted, quick, table
from scipy.special import expit

import dpscreen
from dpscreen import PrivateLogisticLasso
from dpscreen._core.words import figure, shortened
from dpscreen.families import BINOMIAL, OutcomeQuality
from dpscreen.models.page import MOST_BYTES, in_powers, render_model_page
from dpscreen.models.page.outcomes import COUNTS, probability_cells, quality_charts
from dpscreen.planning import model_page as model_page_module
from dpscreen.planning.model_page import expected_of, expected_of_model
from dpscreen.planning.setting import Setting
from dpscreen.privacy.budget import Unit
from tools.pages import Page


@pytest.fixture(scope="module")
def page(model_page):
    return Page(model_page.read_text(encoding="utf-8"))


def test_every_section_is_there_and_links_lead_somewhere(page):
    folded = [attrs for tag, attrs in page.tags if tag == "details"]
    assert [attrs["id"] for attrs in folded] == list(SECTIONS)
    assert not any("open" in attrs for attrs in folded)
    links = [attrs["href"] for tag, attrs in page.tags if tag == "a"]
    assert links[0] == "#content"
    assert all(link.startswith("#") and link[1:] in page.ids for link in links)


def test_nothing_of_a_name_becomes_markup(page):
    assert not {"script", "img", "iframe", "b-x"} & {tag for tag, _ in page.tags}
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on")]
    assert "<script>alert('x')</script>" in page.words
    assert "$\\frac{a}{b}$ {{ 7*7 }} & more" in page.words
    assert "cost <i>of</i> stay" in page.words
    assert "survey <b>2024</b>" in page.words


def test_nothing_is_loaded_from_anywhere(page):
    page.check_alone()
    policy = [attrs["content"] for tag, attrs in page.tags if "http-equiv" in attrs and tag]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]


def test_the_numbers_are_those_of_the_model(split_model, page):
    row = next(one for one in split_model.summary().rows if one.refit is not None)
    for value in (row.coefficient, row.refit, row.low, row.high, row.effect):
        assert figure(value).replace("\u202f", " ") in page.words
    assert split_model.inference_.wording in page.words
    statement = split_model.privacy_
    for text in (statement.composition, statement.trust_model, statement.timing, statement.noise):
        assert text in page.words
    assert all(record.purpose in page.words for record in statement.mechanisms)
    assert "ε 1.68 at δ 1e-06 (ρ 0.0637966)" in page.words


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("delta = 1e-06 for", "delta = 10⁻⁶ for"),
        ("3.2e-05.", "3.2\u00a0·\u00a010⁻⁵."),
        ("0.0001, x1e-06, 1e-06y, 1.5e+07", None),
    ],
)
def test_small_numbers_are_written_as_people_do(text, message):
    assert in_powers(text) == (message or text)


def test_a_seeded_model_is_marked_as_not_private_and_a_secure_one_is_not(page, expected):
    assert "Not private: the noise came from a seed" in page.words
    X, y = table()
    model = dpscreen.PrivateLasso(
        epsilon=1, delta=1e-6, feature_bounds=(0, 120), target_bounds=(0, 3000)
    ).fit(X, y)
    words = Page(render_model_page(model, expected=expected)).words
    assert "Not private" not in words
    assert "can become at most 73.2 % sure" in words
    assert "disclosed" not in words
    assert "not fitted with inference='split'" in words
    assert "made without a ledger" in words


def test_a_published_model_is_marked():
    X, y = table(300)
    with pytest.warns(dpscreen.PublishedCalibrationWarning):
        model = dpscreen.DPFrankWolfe(
            **{"radius": 50, "n_iter": 20, "epsilon": 1, "delta": 1e-6, "calibration": "published"},
            **{"feature_bounds": (0, 120), "target_bounds": (0, 3000)},
        ).fit(X, y)
    words = Page(render_model_page(model)).words
    assert "Not private as stated" in words
    assert "plans do not simulate fits by this method" in words
    assert "DPFrankWolfe has none" in words


def test_too_few_rows_are_told_at_the_top():
    text = render_model_page(fitted(epsilon=0.1), expected=quick(40, epsilon=0.1))
    assert "Do not rely on this model" in text[: text.index("<main")]


def test_a_model_without_features_or_intervals_has_a_page(expected):
    model = fitted(500, inference="split")
    assert not model.inference_.available
    assert model.inference_.wording in Page(render_model_page(model, expected=expected)).words
    model = copy.deepcopy(fitted())
    model.coef_[:] = 0
    words = Page(render_model_page(model, expected=expected)).words
    assert "All coefficients of the model are 0. That does not show that a feature" in words


def test_the_page_needs_no_more_than_the_model_file_holds(
    split_model, model_page, expected, tmp_path
):
    """Whatever is not in the file, which is all that was released, is not on the page."""
    split_model.save(tmp_path / "model.json", schema=SCHEMA)
    loaded = dpscreen.load(tmp_path / "model.json")
    again = render_model_page(loaded, ledger=LEDGER, expected=expected)
    assert again == model_page.read_text(encoding="utf-8")


def test_it_stays_small_with_many_features_and_long_names(tmp_path):
    names = tuple(f"{'<&>' * 400}{j}" for j in range(600))
    X, y = table(700, names)
    with pytest.warns(dpscreen.SeededNoiseWarning):
        model = dpscreen.DPFrankWolfe(
            **{"radius": 3000, "n_iter": 1200, "epsilon": 1, "delta": 1e-6, "random_state": 1},
            **{"feature_bounds": (0, 120), "target_bounds": (0, 90_000)},
        ).fit(X, y)
    assert np.count_nonzero(model.coef_) > 300
    path = dpscreen.write_model_page(model, tmp_path / "report.html")
    assert path.stat().st_size < MOST_BYTES
    assert "more, with smaller effects, are in the model file" in path.read_text(encoding="utf-8")


def test_rows_of_a_unit_and_halves_are_simulated(expected):
    assert quick(split=True).n_rows == 400
    model = fitted(rows_per_unit=3)
    several = quick(rows_per_unit=3)
    assert [row.epsilon for row in several.what_if] == [row.epsilon for row in expected.what_if]
    one_row = quick(epsilon=Setting(2, 1, 1.0, 1e-6, rows_per_unit=3).one_row)
    powers = [[row.power for row in one.rows] for one in (several, one_row, expected)]
    assert powers[0] == powers[1] != powers[2]
    words = Page(render_model_page(model, expected=several)).words
    assert "Every unit has at most 3 rows: the preparation of the rows ensured this" in words
    assert "left out" not in words


@pytest.mark.parametrize(
    ("k", "message"), [(1, "at most 1 row was used"), (3, "at most 3 rows were")]
)
def test_rows_are_said_to_be_left_out_where_a_column_told_units_apart(expected, k, message):
    model = fitted(rows_per_unit=k)
    model.privacy_ = replace(model.privacy_, unit=str(Unit(k, column="id")))
    words = Page(render_model_page(model, expected=expected)).words
    assert message in words
    assert "surplus rows, and rows without a value, were left out" in words
    assert "Every person has at most one row" not in words


def test_shares_of_yes_have_the_noise_of_their_counts_in_a_split_too():
    X, _ = table(6000, HOSTILE[:2])
    y = np.random.default_rng(0).logistic(size=len(X)) < (X.iloc[:, 0] - X.iloc[:, 1]) / 10
    common = {"epsilon": 2, "delta": 1e-6, "feature_bounds": (0, 120), "classes": (False, True)}
    with pytest.warns(UserWarning, match="random_state"):
        model = PrivateLogisticLasso(**common, inference="split", random_state=0).fit(X, y)
    release = model.released()
    (counts,) = (one for one in release.statement.mechanisms if one.purpose.endswith(COUNTS))
    alone = replace(release.statement, mechanisms=(replace(counts, purpose=COUNTS),))
    plain = quality_charts(replace(release, statement=alone))
    assert quality_charts(release)[0].words == plain[0].words


def test_a_group_of_probabilities_is_told_as_such_and_its_end_is_not_half_way_to_certainty():
    """It was drawn at 81 % where no row can have more than 71 %, as if the model were off."""
    edges = tuple(expit(np.arange(-1.0, 0.6, 0.5)).tolist())
    no, yes = (900.0, 700.0, 500.0, 400.0, 380.0), (200.0, 250.0, 280.0, 330.0, 640.0)
    quality = OutcomeQuality(0.7, 0.69, 0.71, 1.0, 0.9, 1.1, 1.3, True, edges, no, yes)
    first, *_, last = probability_cells(quality, 3.0)
    assert (first.low, last.high) == (0, 1)
    assert last.middle == pytest.approx(expit(0.75))
    assert last.off == 0  # 63 % of those with 62 % and more
    assert probability_cells(replace(quality, edges=edges[:1], no=no[:2], yes=yes[:2]), 3.0)


# --- files and names ------------------------------------------------------------------------------


def test_a_page_that_fails_leaves_what_was_there(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("before")
    with pytest.raises(AttributeError):
        dpscreen.write_model_page(object(), path, expected=None)
    assert path.read_text() == "before"
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]


@given(st.text(), st.integers(2, 40))
def test_a_shortened_name_is_one_line_within_its_width(text, cells):
    short = shortened(text, cells)
    assert len(short) <= max(cells, len("(no name)"))
    assert short.isprintable()
    assert short.strip()


def test_towers_of_accents_are_taken_down_and_usual_ones_kept():
    assert shortened("Z" + "\u0301" * 400 + "b", 60) == "Z" + "\u0301" * 3 + "b"
    assert shortened("naïve e\u0301", 60) == "naïve e\u0301"


def test_a_page_has_tables_enough_for_each_size_of_effect():
    expected = expected_of(Setting(1500, 7, 3.0, 1e-6))
    assert expected.n_effects == 1  # so each table says yes or no, and four would say little
    assert min(row.repetitions for row in expected.rows) >= 8
    page = render_model_page(fitted(800), expected=expected)
    assert "7 features, of which 1 has an effect, and the budget" in page


def test_a_page_of_binary_outcomes_is_told_sizes_and_other_budgets():
    shares = []
    setting = Setting(3000, 6, 1.0, 1e-6, rate=0.3, family="binomial")
    found = expected_of(setting, repetitions=2, progress=shares.append)
    assert found.rate == 0.3
    assert tuple(row.effect for row in found.rows) == BINOMIAL.simulation.effects
    assert [row.epsilon for row in found.what_if] == [0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0]
    powers = [row.power for row in found.what_if]
    assert powers == sorted(powers)
    assert powers[0] < powers[-1]
    here = next(row for row in found.rows if row.effect == found.what_if_effect)
    assert here.power in powers
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert found.useful
    few = expected_of(replace(setting, n_rows=40, epsilon=0.1), repetitions=2)
    assert not few.useful
    assert "do not expect a useful model" in few.advice


def test_a_limit_of_features_is_simulated_and_what_plans_do_not_fit_is_not(monkeypatch):
    assert expected_of_model(fitted(800, solver="frank-wolfe")) is None
    seen = []
    monkeypatch.setattr(model_page_module, "expected_of", lambda asked, **_: seen.append(asked))
    expected_of_model(fitted(800, max_features=3))
    assert seen[0].max_features == 3
