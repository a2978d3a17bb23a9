"""The summary: sorted, escaped, and nothing in it that was not released."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from fitted_models import KINDS, fitted

from dpscreen import PrivateLogit, PrivateOLS
from dpscreen._core.words import plain
from dpscreen.models.explain import explanation_of
from dpscreen.models.release import marks_of, summary_of

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
    assert ("1 instead of 0" in explanation_of(release)) == (step == "0→1")
    assert ("of a share" in explanation_of(release)) == (declared is None)


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
            assert re.fullmatch(r"[a-z]+|–|0→1|\+1yr|[+-]?[\d.]+(e-?\d+)?", one), row


def test_a_sign_that_is_not_reliable_is_marked():
    """By an interval that holds 0; without intervals, by what is detected above the noise."""
    release = replace(fitted("lasso").released(), standing_out=(0,), coefficients=np.arange(1, 7.0))
    marks, told = marks_of(release)
    assert (set(marks), told) == ({1, 2, 3, 4, 5}, "a: sign not reliable")
    table = fitted("ols").released()
    wide = table.table.covariance * 1e6
    marks, told = marks_of(
        replace(table, inference=(unsure := replace(table.table, covariance=wide)).inference())
    )
    assert unsure.given[:-1].all()
    assert (list(marks.values()), told) == (["a"] * 6, "a: sign not reliable")


def test_effects_of_dates_are_per_year_and_other_meanings_have_letters():
    release = fitted("lasso").released()
    name, other = release.names[:2]
    schema = {
        "fields": [{"name": name, "type": "date"}],
        "dpscreen": {"transform": {other: "log1p"}},
    }
    release = replace(release, schema=schema, coefficients=np.ones(6), standing_out=range(6))
    first = next(row for row in summary_of(release).rows if row.feature == plain(name))
    assert (first.step, first.effect, first.step_words) == (365.25, 365.25, "+1yr")
    assert marks_of(release) == ({0: "a", 1: "b"}, "a: coefficient per day; b: of its log1p")


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
