"""Numbers for readers: three decimals, as the paper prints, and a mean with its error."""

from __future__ import annotations

import math

from dpscreen.study.compare import Estimate

NOTHING = "–"


def number(value: float | None) -> str:
    """Return the value to three decimals; large ones to four digits, none as a dash."""
    if value is None or math.isnan(value):
        return NOTHING
    text = f"{value:.3f}" if abs(value) < 1000 else f"{value:.4g}"
    return text.replace("-", "−") if value < 0 else text


def mean_and_error(found: Estimate | None) -> str:
    """Return "mean ± standard error"; the mean alone where there is no spread to speak of."""
    if found is None:
        return NOTHING
    if found.standard_error == 0:
        return number(found.mean)
    return f"{number(found.mean)} ± {number(found.standard_error)}"


def duration(seconds: float) -> str:
    """Return "40 s", "3 min" or "1 h 20 min"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def count(amount: int, noun: str) -> str:
    """Return "1 row", "2 rows"."""
    return f"{amount} {noun}" if amount == 1 else f"{amount} {noun}s"


def span(values: list[int]) -> str:
    """Return "20", or "2 to 20" where they differ."""
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"
