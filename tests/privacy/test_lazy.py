"""A uniform number is compared with exp(−x) exactly, whatever x and whatever the digits.

Enclosures are compared with 200-digit arithmetic. Frequencies are tested with a false-alarm rate of
1e-6, and a probability 5 % off is rejected.
"""

import decimal
from fractions import Fraction

import mpmath
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from dpscreen.privacy import SeededNoise
from dpscreen.privacy.sampling import below_exponential, exponential_enclosure
from tools.noise import Script

ALARM = 1e-6
whole = st.integers(1, 10**12)
ordinary = st.builds(Fraction, whole, whole).filter(lambda x: x < 20_000)
tiny = st.builds(lambda p, e: Fraction(p, 10**e), whole, st.integers(13, 120))
large = st.builds(lambda p, q: 100 + Fraction(p, q), st.integers(1, 19_000), whole)
exponents = ordinary | tiny | large


def exponential(x):
    """Return exp(−x) to 200 digits, as a fraction."""
    with mpmath.workdps(200):
        power = mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator)
        return Fraction(int(power.man_exp[0])) * Fraction(2) ** power.man_exp[1]


def leading_digits(x, n_digits):
    """Return the whole part of exp(−x)·2^n."""
    return exponential(x) * 2**n_digits // 1


# --- enclosures ------------------------------------------------------------------------------


@given(exponents, st.sampled_from([25, 50, 100]))
@example(Fraction(1), 25)
@example(Fraction(10**5), 25)
@example(Fraction(1, 10**100), 25)  # exp(−x) rounds to 1: the lower end must be below it
@example(Fraction(99999999999999999999999995, 10**25), 25)  # the quotient rounds to a power of ten
@example(Fraction(10**30 + 1, 3 * 10**28), 25)
def test_the_truth_lies_between(x, precision):
    low, high = exponential_enclosure(x, precision)
    truth = exponential(x)
    assert low < truth < high
    # x is off by two units in the last place at most, and so is the exponential
    assert high - low <= truth * 4 * (10 + 10 * x) * Fraction(1, 10 ** (precision - 1))


def test_the_rounding_that_a_program_sets_for_its_own_decimals_does_not_matter():
    x, expected = Fraction(22, 7), exponential_enclosure(Fraction(22, 7), 25)
    with decimal.localcontext() as context:
        context.prec, context.rounding = 3, decimal.ROUND_UP
        assert exponential_enclosure(x, 25) == expected


# --- decisions -------------------------------------------------------------------------------


@given(exponents.filter(lambda x: x < 30), st.integers(0, 60))
@example(Fraction(1), 52)
@example(Fraction(1, 10**100), 40)
def test_digits_beside_the_threshold_are_decided_at_once(x, n_digits):
    edge = leading_digits(x, n_digits)
    if edge > 0 and edge < exponential(x) * 2**n_digits * (1 - Fraction(1, 10**22)):
        assert below_exponential(edge - 1, n_digits, x, Script())
    if edge + 1 > exponential(x) * 2**n_digits * (1 + Fraction(1, 10**22)):
        assert not below_exponential(edge + 1, n_digits, x, Script())
    assert not below_exponential(3 * 2**n_digits, n_digits, x, Script())


@given(exponents, st.integers(0, 60))
@example(Fraction(1, 10**120), 40)
def test_one_and_more_is_never_below(x, n_digits):
    # exp(−x) may be so close to 1 that its enclosure reaches beyond; then words are drawn until not
    assert not below_exponential(2**n_digits, n_digits, x, Script([0] * 5))


@given(ordinary.filter(lambda x: x < 30), st.integers(0, 60), st.integers(1, 4))
@example(Fraction(1), 52, 4)
def test_digits_on_the_threshold_are_decided_by_as_many_words_as_it_takes(x, n_digits, n_words):
    # The words repeat the threshold's own digits and part from them, by one, in the last word.
    digits = leading_digits(x, n_digits + 64 * n_words)
    words = [digits >> 64 * i & 2**64 - 1 for i in reversed(range(n_words))]
    for step, expected in ((-1, True), (1, False)):
        last = words[-1] + step
        if 0 <= last < 2**64:
            script = Script([*words[:-1], last])
            assert below_exponential(digits >> 64 * n_words, n_digits, x, script) is expected
            assert script.left == []


def test_what_is_hopeless_or_certain_needs_no_words():
    for digits in (0, 1, 2**40 - 1):
        assert below_exponential(digits, 40, Fraction(0), Script())
    for x in (3000, 10**12):  # exp(−x) as a fraction would fill the memory
        assert not below_exponential(1, 40, Fraction(x), Script())
    # and only while all digits are zero: exp(−3000) ≈ 2^−4328
    assert not below_exponential(0, 40, Fraction(3000), Script([0, 0, 1]))
    assert not below_exponential(0, 40, Fraction(10**12), Script([0, 7]))


# --- coins -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_digits", [0, 3, 64])
@pytest.mark.parametrize("x", [Fraction(1, 10), Fraction(1)])
def test_a_coin_has_its_probability_and_one_5_percent_off_is_detected(x, n_digits):
    tosses, noise = (40_000 if x == 1 else 8_000), SeededNoise(f"{n_digits} digits {x}")
    heads = sum(
        below_exponential(noise.below(2**n_digits), n_digits, x, noise) for _ in range(tosses)
    )
    probability = float(exponential(x))
    assert stats.binomtest(heads, tosses, probability).pvalue > ALARM
    assert stats.binomtest(heads, tosses, 0.95 * probability).pvalue < ALARM
    assert stats.binomtest(heads, tosses, min(1, 1.05 * probability)).pvalue < ALARM
