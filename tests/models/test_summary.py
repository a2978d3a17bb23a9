"""The summary: sorted, escaped, and nothing in it that was not released."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from fitted_models import KINDS, fitted
from sklearn.exceptions import NotFittedError

from dpscreen import PrivateLasso, PrivateLogit, PrivateOLS, load
from dpscreen._core.words import figure, markdown, number, percent, plain
from dpscreen.models.explain import explanation_of
from dpscreen.models.summary import marks_of, summary_of

every = pytest.mark.parametrize("kind", [one for one in KINDS if not one.startswith("ols")])


def words(text):
    return " ".join(str(text).split())


@every
def test_selected_features_by_size_and_how_many_were_offered(kind):
    model = fitted(kind)
    frame = model.summary().frame
    sizes = np.abs(model.coef_) * model.released().steps
    assert list(frame["effect"].abs()) == sorted(frame["effect"].abs(), reverse=True)
    np.testing.assert_allclose(sorted(frame["effect"].abs()), sorted(sizes[sizes > 0]))
    by_name = dict(zip(model.feature_names_in_, model.coef_, strict=True))
    assert dict(frame["coefficient"]) == {name: c for name, c in by_name.items() if c != 0}
    assert f"{len(frame)} of 6 features used" in str(model.summary())
    assert repr(model.summary()) == str(model.summary())


def declaring(bounds):
    """Return a release of features with such declared bounds, to which no row was clipped."""
    return replace(fitted("lasso").released(), declared_bounds=bounds)


@pytest.mark.parametrize(
    ("bounds", "step"),
    [
        ((0, 1), 1),  # levels and shares: from none to all
        ((1, 2), 1),  # whole ends: at least 1
        ((1, 5), 1),
        ((0, 120), 10),
        ((0, 1e6), 100_000),
        ((-0.05, 0.05), 0.01),
        ((18.2, 61.3), 5),
        ((1e-9, 5e-9), 5e-10),
    ],
)
def test_a_typical_step_is_a_round_number_near_a_tenth_of_the_bounds(bounds, step):
    release = declaring(np.array([bounds] * 6))
    assert release.steps.tolist() == [step] * 6
    np.testing.assert_array_equal(release.effects, release.coefficients * step)
    assert summary_of(release).rows[0].zero_one == (bounds == (0, 1))


def test_a_step_of_what_a_schema_calls_whole_is_at_least_1():
    """Bounds of a count may be no whole numbers: an adult more was half of one."""
    release = declaring(np.array([(0, 4.7)] * 6))
    assert release.steps.tolist() == [0.5] * 6
    for kind, step in (("number", 0.5), ("integer", 1.0)):
        fields = [{"name": name, "type": kind} for name in release.names]
        assert replace(release, schema={"fields": fields}).steps.tolist() == [step] * 6


@pytest.mark.parametrize(
    ("declared", "step"),
    [
        ({"type": "number"}, "+0.1"),  # a share
        ({"type": "integer"}, "0→1"),
        ({"type": "boolean"}, "0→1"),
        ({"type": "number", "constraints": {"enum": [0, 1]}}, "0→1"),
        (None, "0→1"),
    ],
)
def test_a_schema_tells_shares_from_truths(declared, step):
    release = declaring(np.array([(0, 1)] * 6))
    if declared is not None:
        fields = [{"name": name} | declared for name in release.names]
        release = replace(release, schema={"fields": [*fields, 7]})
    assert summary_of(release).rows[0].step_words == step
    assert ("a change from 0 to 1 in" in explanation_of(release)) == (step == "0→1")
    assert ("of a share" in explanation_of(release)) == (declared is None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1950.0, "1 950"),
        (0.00010756, "0.00010756"),
        (-1234567.8, "-1 234 570"),
        (0.1, "0.1"),
        (0.0, "0"),
        (100000.0, "100 000"),
        (1e-12, "1e-12"),
        (3e17, "3e+17"),
        (-0.0000123, "-0.0000123"),
        (float("inf"), "inf"),
    ],
)
def test_numbers_as_people_write_them(value, text):
    assert number(value).replace("\u00a0", " ") == text
    assert figure(value, digits=6) == text.replace(" ", "\u202f").replace("-", "−")


def test_what_people_say_of_a_model_is_kept_and_shown(tmp_path):
    about = {"target": "cost\nof stay", "author": "A. B.", "date": "2026-01-31", "purpose": "*x*"}
    fitted("lasso").save(tmp_path / "model.json", about=about)
    model = load(tmp_path / "model.json")
    assert model.released().about == about | {"target": "cost of stay"}
    assert str(model.summary()).startswith("PrivateLasso of cost of stay: ")
    assert "The model predicts cost of stay from" in model.explain()
    assert "* Author: A. B.\n* Date: 2026-01-31\n* Purpose: \\*x\\*" in model.to_model_card()
    for wrong in ({"colour": "red"}, {"author": "a" * 501}):
        with pytest.raises(ValueError, match="about"):
            fitted("lasso").save(tmp_path / "other.json", about=wrong)


def test_intervals_are_those_of_the_inference():
    model = fitted("split")
    frame = model.summary().frame
    assert model.inference_.available
    for one in model.inference_.intervals:
        row = frame.loc[one.name]
        assert (row["refit"], row["low"], row["high"]) == (one.coefficient, one.low, one.high)
        assert row["standard_error"] == one.standard_error
    assert "[0.025" in str(model.summary())


@pytest.mark.parametrize("kind", KINDS)
def test_four_lines_below_a_table_of_numbers_that_paste(kind):
    text = str(fitted(kind).summary())
    rule = text.splitlines()[1]
    table, below = text.split(f"{rule}\n")[1:]
    assert len(below.splitlines()) <= 4
    for row in table.splitlines()[2:]:
        for one in row.split()[1:]:
            assert re.fullmatch(r"[a-z]+|–|0→1|\+1\xa0year|[+-]?[\d.]+(e-?\d+)?", one), row


def test_a_sign_that_is_not_reliable_is_marked():
    """By an interval that holds 0; without intervals, by what is detected above the noise."""
    release = replace(fitted("lasso").released(), above_noise=(0,), coefficients=np.arange(1, 7.0))
    marks, told = marks_of(release)
    assert (set(marks), told) == ({1, 2, 3, 4, 5}, "a: sign not reliable")
    table = fitted("ols").released()
    wide, none = table.table.covariance * 1e6, np.zeros_like(table.table.clip_bias)
    unsure = replace(table.table, covariance=wide, clip_bias=none)
    marks, told = marks_of(replace(table, table=unsure, inference=unsure.inference()))
    assert unsure.given[:-1].all()
    assert (list(marks.values()), told) == (["a"] * 6, "a: sign not reliable")


def test_effects_of_dates_are_per_year_and_other_meanings_have_letters():
    release = fitted("lasso").released()
    name, other = release.names[:2]
    schema = {
        "fields": [{"name": name, "type": "date"}],
        "dpscreen": {"transform": {other: "log1p"}},
    }
    release = replace(release, schema=schema, coefficients=np.ones(6), above_noise=range(6))
    first = next(row for row in summary_of(release).rows if row.feature == plain(name))
    assert (first.step, first.effect, first.step_words) == (365.25, 365.25, "+1\xa0year")
    assert marks_of(release) == ({0: "a", 1: "b"}, "a: coefficient per day; b: on the log1p scale")


def test_html_is_escaped():
    html = fitted("lasso").summary()._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert html.count("<tr>") == len(fitted("lasso").summary().rows) + 2


def test_names_cannot_move_the_cursor_or_break_a_line():
    release = fitted("lasso").released()
    evil = ("\x1b[2Jage", "a\nb", "‮abc", "x" * 5000, "<script>", "é")
    summary = summary_of(replace(release, names=evil, coefficients=np.ones(6)))
    text = str(summary)
    assert "\x1b" not in text
    assert "‮" not in text
    assert max(map(len, text.splitlines())) < 120
    assert "\\x1b[2Jage" in text
    assert "é" in text


def test_before_a_fit():
    for ask in ("summary", "explain", "to_model_card", "to_registry_entry"):
        with pytest.raises(NotFittedError):
            getattr(PrivateLasso(), ask)()
    with pytest.raises(NotFittedError):
        PrivateLasso().save("nowhere.json")


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0.5, "50 %"),
        (0.7310585, "73 %"),
        (0.0267, "2.7 %"),
        (0.99995, "99.995 %"),
        (0.01, "1 %"),
        (1.0, "more than 99.9999 %"),
        (0.0, "less than 0.0001 %"),
    ],
)
def test_percent(share, shown):
    assert percent(share) == shown


def test_text_is_made_safe():
    assert plain("a\tb\x00") == "a\\tb\\x00"
    assert markdown("a|b*c_<i>\n# d") == "a\\|b\\*c\\_&lt;i&gt; \\# d"


@pytest.mark.parametrize("kind", [PrivateOLS, PrivateLogit])
def test_estimates_beside_intervals_are_those_of_the_table(kind):
    """Beside a near copy the predicting model shares an effect; the table gives it to the first."""
    rng, n = np.random.default_rng(0), 30_000
    age = rng.uniform(20, 80, n)
    rows = pd.DataFrame({"age": age, "twin": age + rng.normal(0, 5e-4, n)})
    y = 0.05 * (age - 50) + rng.logistic(size=n)
    bounds = {"age": (0, 100), "twin": (0, 100)}
    more = {"target_bounds": (-20, 20)} if kind is PrivateOLS else {}
    model = kind(epsilon=1, delta=1e-6, feature_bounds=bounds, random_state=1, **more)
    model.fit(rows, y if more else (y > 0).astype(int))
    assert np.ravel(model.coef_)[0] != pytest.approx(model.params["age"], rel=0.01)
    (shown,) = [row for row in summary_of(model.released()).rows if row.feature == "age"]
    assert shown.coefficient == shown.refit == pytest.approx(model.params["age"])
    assert shown.low < shown.coefficient < shown.high
