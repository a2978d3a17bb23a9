"""Comparing a uniform number with exp(−x) exactly, by revealing only the digits that are needed.

Both sides are enclosed: the uniform by the binary digits drawn so far, the exponential by decimal
arithmetic of growing precision. Digits are added until the enclosures part, which happens with
probability one; there is no cap after which a guess would be made.
"""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction

from dpscreen.privacy.noise import Noise


def below_exponential(digits: int, n_digits: int, x: Fraction, noise: Noise) -> bool:
    """Whether U < exp(−x), for a uniform U that begins with the given binary digits.

    `digits` / 2^`n_digits` ≤ U < (`digits` + 1) / 2^`n_digits` is what is known of U so far; more
    is drawn from the noise if that does not decide. `digits` may exceed 2^`n_digits`: U is then
    uniform on a longer interval.
    """
    precision = 25
    while True:
        if x >= n_digits > 0:
            # Then exp(−x) < 2^−n_digits, and a huge exponential need not be written out.
            if digits:
                return False
            digits, n_digits = noise.word(), n_digits + 64
            continue
        low, high = exponential_enclosure(x, precision)
        if digits + 1 <= low * 2**n_digits:
            return True
        if digits >= high * 2**n_digits:
            return False
        digits, n_digits = digits << 64 | noise.word(), n_digits + 64
        precision *= 2


def exponential_enclosure(x: Fraction, precision: int) -> tuple[Fraction, Fraction]:
    """Return numbers on either side of exp(−x), about `precision` decimal digits apart.

    `Decimal.exp` is correctly rounded, so one unit in the last place, on top of the rounding of x,
    encloses the truth.
    """
    if x == 0:
        return Fraction(1), Fraction(1)
    context = Context(prec=precision, Emin=-(10**15), Emax=10**15)
    quotient = context.divide(Decimal(-x.numerator), Decimal(x.denominator))
    below = context.next_minus(context.exp(context.next_minus(quotient)))
    above = context.next_plus(context.exp(context.next_plus(quotient)))
    return Fraction(below), Fraction(above)
