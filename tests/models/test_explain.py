"""The paragraph for a manager: computed, and honest about what it does not cover."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from fitted_models import KINDS, fitted
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpscreen._core.words import percent_at_most, rounded_up
from dpscreen.models.explain import chance_of_failure, posterior
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


@given(st.floats(1e-4, 3), st.floats(1e-9, 1e-3), st.floats(0, 1))
def test_changing_a_row_moves_the_gaussian_mechanism_twice_as_far(rho, delta, prior):
    # Mean 2ρ·2 and variance 2·4ρ: a change of two sensitivities, the worst case of 4ρ-zCDP.
    epsilon = ZCDP(Fraction(4 * rho)).epsilon(delta)
    shift = 2 * math.sqrt(2 * rho)  # in units of the noise, one row moves by √(2ρ)
    true = stats.norm.sf((epsilon - shift**2 / 2) / shift)
    assert true <= chance_of_failure(epsilon, 4 * rho)
    assert posterior(prior, epsilon) <= 1
