"""The paragraph for a manager: computed, and honest about what it does not cover."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from fitted_models import KINDS, LASSO, fitted, table
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpscreen import PrivateLasso
from dpscreen._core.words import percent_at_most, rounded_up
from dpscreen.models.explain import chance_of_failure, explanation_of, posterior
from dpscreen.privacy import ZCDP

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


@given(st.floats(1e-4, 2), st.floats(0.01, 20))
def test_the_chance_of_failure_covers_the_gaussian_mechanism(rho, above):
    # Its privacy loss is normal with mean ρ and variance 2ρ: the worst case of ρ-zCDP.
    epsilon = rho + above
    true = stats.norm.sf((epsilon - rho) / math.sqrt(2 * rho))
    assert true <= chance_of_failure(epsilon, rho) <= 1


@pytest.mark.parametrize("kind", KINDS)
def test_every_model_explains_itself_in_a_few_paragraphs(kind):
    text, statement = fitted(kind).explain(), fitted(kind).privacy_
    assert 3 <= len(text.split("\n\n")) <= 4
    assert "NOT protected: " in text
    assert text.startswith("THIS MODEL IS NOT PRIVATE") == (not statement.holds)
    if statement.rho is None:
        assert "become at most" not in text
        return
    counted = statement.rows_disclosed
    epsilon = statement.changing_epsilon if counted else statement.epsilon
    assert f"become at most {percent_at_most(posterior(0.5, epsilon))} sure" in text
    chance = chance_of_failure(epsilon, statement.rho * (4 if counted else 1))
    assert f"except with probability {rounded_up(chance, digits=2)} at most" in text
    assert ("The number of rows is disclosed" in text) == counted
    assert ("they need only count" in text) == counted


def test_the_numbers_in_it_are_those_of_the_model():
    X, y = table()
    model = PrivateLasso(**LASSO | {"epsilon": 1.0}, n_rows=2000).fit(X, y)
    text = model.explain()
    assert "someone 50 % sure beforehand that a row is in the data can become" in text
    assert "at most 73.2 % sure" in text
    assert "from 1 % at most to 2.7 %, from 10 % at most to 23.2 %" in text
    assert "except with probability 5.8e-05 at most" in text
    assert "disclosed" not in text
    first = model.summary().rows[0]
    way = "raises" if first.effect > 0 else "lowers"
    change = "a change from 0 to 1" if first.zero_one else f"an increase of {first.step:g}"
    assert f"{change} in {first.feature} {way} the prediction by {abs(first.effect):.3g}" in text


def disclosing(release):
    """Return the release as if it told the number of rows, as Frank-Wolfe does."""
    return replace(release, statement=replace(release.statement, rows_disclosed=True))


def test_who_knows_all_other_rows_and_their_number_knows_who_is_there():
    # The promise for a row that comes or goes says nothing here; that for a changed row does.
    X, y = table()
    release = PrivateLasso(**LASSO | {"epsilon": 1.0}).fit(X, y).released()
    text = explanation_of(disclosing(release))
    assert "beforehand that a row is in the data" not in text
    assert "a row is in the data is NOT hidden from someone who knows all the others" in text
    assert "so epsilon = 2.12 for changing it" in text
    assert "sure beforehand that it holds this and not that can become at most 89.3 % sure" in text
    assert "except with probability 3.1e-05 at most" in text
    assert "whether a row is there, as it can be counted;" in text


@given(st.floats(1e-4, 3), st.floats(1e-9, 1e-3), st.floats(0, 1))
def test_changing_a_row_moves_the_gaussian_mechanism_twice_as_far(rho, delta, prior):
    # Mean 2ρ·2 and variance 2·4ρ: a change of two sensitivities, the worst case of 4ρ-zCDP.
    epsilon = ZCDP(Fraction(4 * rho)).epsilon(delta)
    shift = 2 * math.sqrt(2 * rho)  # in units of the noise, one row moves by √(2ρ)
    true = stats.norm.sf((epsilon - shift**2 / 2) / shift)
    assert true <= chance_of_failure(epsilon, 4 * rho)
    assert posterior(prior, epsilon) <= 1


def test_no_feature_and_a_meaningless_budget():
    release = fitted("lasso").released()
    nothing = explanation_of(replace(release, coefficients=np.zeros(6), intercept=4.25))
    assert "All coefficients of the model are 0. That does not show that a feature" in nothing
    assert "predicts 4.25 for every row" in nothing
    loose = replace(release.statement, epsilon=40.0, rho=30.0, rows_disclosed=False)
    assert "means little" in explanation_of(replace(release, statement=loose))
