"""Numbers for readers: in tables, on pages and in sentences."""

from __future__ import annotations

import math

NOTHING = "–"


def number(value: float, *, digits: int = 6) -> str:
    """Return a number as plain text has it."""
    return f"{value:.{digits}g}"


def figure(value: float) -> str:
    """Return four digits, with a true minus sign, as pages have it."""
    return number(value, digits=4).replace("-", "−")


def decimals(value: float | None) -> str:
    """Return three decimals, as the paper prints; of large ones four digits, none as a dash."""
    if value is None or math.isnan(value):
        return NOTHING
    text = f"{value:.3f}" if abs(value) < 1000 else f"{value:.4g}"
    return text.replace("-", "−") if value < 0 else text


def percent(share: float) -> str:
    """Return a probability in percent, with as many digits as tell it from 0 and from 1."""
    rest = 100 * min(share, 1 - share)
    if rest < 1e-6:
        return "more than 99.9999 %" if share > 0.5 else "less than 0.0001 %"
    digits = 0 if rest >= 10 else math.ceil(-math.log10(rest)) + 1
    shown = f"{100 * share:.{digits}f}"
    return (shown.rstrip("0").rstrip(".") if "." in shown else shown) + " %"


def whole_percent(share: float) -> str:
    """Return a share as whole per cent; what is small but not nothing as < 1 %."""
    if 0 < share < 0.005:
        return "< 1 %"
    return "> 999 %" if share > 9.995 else f"{100 * share:.0f} %"


def p_value(value: float) -> str:
    """Return three decimals, or that it is smaller."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def duration(seconds: float) -> str:
    """Return "40 s", "3 min" or "1 h 20 min"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def span(values: list[int]) -> str:
    """Return "20", or "2 to 20" where they differ."""
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"
