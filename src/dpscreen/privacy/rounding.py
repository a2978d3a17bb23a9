"""Bounds in few digits, rounded to the side on which they still hold."""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

SMALLEST = 1e-300
"""What underflows is still not nothing."""


def rounded(number: Fraction | float, *, digits: int, direction: str) -> float:
    """Return the number to so many digits, rounded in a direction that `decimal` knows."""
    ratio = Fraction(number)
    context = Context(prec=digits, rounding=direction)
    return float(context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))


def rounded_up(bound: float, *, digits: int) -> str:
    """Write an upper bound so that what is read is one too; 0.01 stays 0.01."""
    written = Fraction(repr(float(max(bound, SMALLEST))))
    shown = rounded(written, digits=digits, direction=ROUND_CEILING)
    return f"{shown:.{digits}g}"


def percent_at_most(share: float) -> str:
    """Write an upper bound on a probability in percent, with as many digits as tell it from 1."""
    value = 100 * Decimal(repr(float(share)))
    rest = min(value, 100 - value)
    places = max(1, 1 - rest.adjusted()) if rest > 0 else 1
    step = Decimal(1).scaleb(-min(places, 6))
    shown = f"{value.quantize(step, rounding=ROUND_CEILING):f}"
    return shown.rstrip("0").rstrip(".") + " %"
