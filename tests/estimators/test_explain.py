"""The paragraph for a manager: computed, and honest about what it does not cover."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from fitted_models import KINDS, LASSO, fitted, table
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpscreen import PrivateLasso
from dpscreen.estimators._explain import chance_of_failure, explanation_of, posterior
from dpscreen.estimators._text import percent

shares = st.floats(1e-6, 1 - 1e-6)


@given(shares, st.floats(0, 30))
def test_the_posterior_is_bayes_with_the_largest_ratio(prior, epsilon):
    ratio = math.exp(epsilon)
    expected = ratio * prior / (ratio * prior + 1 - prior)
    assert posterior(prior, epsilon) == pytest.approx(expected, rel=1e-9)


@given(shares, shares, st.floats(0, 5), st.floats(0, 5))
def test_no_likelihood_ratio_within_the_promise_passes_it(prior, other, epsilon, part):
    loss = epsilon * min(part, 1.0)
    assert posterior(prior, loss) <= posterior(prior, epsilon) * (1 + 1e-12)
    low, high = sorted((prior, other))
    assert posterior(low, epsilon) <= posterior(high, epsilon) * (1 + 1e-12)


def test_the_example_of_every_text_book():
    assert posterior(0.5, 1.0) == pytest.approx(0.7311, abs=1e-4)
    assert posterior(0.0, 1.0) == 0
    assert posterior(1.0, 1.0) == 1
    assert posterior(0.5, 1e6) == 1


@given(st.floats(1e-4, 2), st.floats(0.01, 20))
def test_the_chance_of_failure_covers_the_gaussian_mechanism(rho, above):
    # Its privacy loss is normal with mean ρ and variance 2ρ: the worst case of ρ-zCDP.
    epsilon = rho + above
    true = stats.norm.sf((epsilon - rho) / math.sqrt(2 * rho))
    assert true <= chance_of_failure(epsilon, rho) <= 1


def test_the_chance_of_failure_is_not_vacuous_and_never_overflows():
    assert chance_of_failure(1.0, 0.024356) == pytest.approx(5.7e-5, rel=0.02)
    assert chance_of_failure(0.5, 0.5) == 1
    assert chance_of_failure(1e300, 1e-3) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_every_model_explains_itself_in_one_paragraph(kind):
    text, statement = fitted(kind).explain(), fitted(kind).privacy_
    assert "\n" not in text
    assert "NOT protected: " in text
    assert text.startswith("THIS MODEL IS NOT PRIVATE") == (not statement.holds)
    sure = posterior(0.5, statement.epsilon)
    assert (f"become at most {percent(sure)} sure" in text) == (kind != "published")


def test_the_numbers_in_it_are_those_of_the_model():
    X, y = table()
    model = PrivateLasso(**LASSO | {"epsilon": 1.0}).fit(X, y)
    text = model.explain()
    assert "someone 50 % sure beforehand that a row is in the data can become" in text
    assert "at most 73 % sure" in text
    assert "from 1 % at most to 2.7 %, from 10 % at most to 23 %" in text
    chance = chance_of_failure(1.0, model.privacy_.rho)
    assert f"except with probability {chance:.2g} at most" in text
    first = model.summary().rows[0]
    assert f"{first.feature} (from " in text
    assert f"rises by {2 * first.effect:.3g})" in text


def test_units_are_named():
    text = fitted("units").explain()
    assert "that one unit (at most 3 rows) is in the data" in text
    assert "units with more than 3 rows" in text
    assert "people with more than one row" not in text


def test_seeded_and_published_models_claim_nothing():
    assert "could, had the noise been secret, become" in fitted("seeded").explain()
    assert "sure by" not in fitted("published").explain()


def test_no_feature_and_a_meaningless_budget():
    release = fitted("lasso")._released()
    nothing = explanation_of(replace(release, coefficients=np.zeros(6), intercept=4.25))
    assert "found no feature, of 6," in nothing
    assert "predicts 4.25 for everyone" in nothing
    loose = replace(release.statement, epsilon=40.0, rho=30.0)
    assert "means little" in explanation_of(replace(release, statement=loose))
