"""Numbers as a model's page writes them."""

from __future__ import annotations


def figure(value: float) -> str:
    """Return four digits, with a true minus sign."""
    return f"{value:.4g}".replace("-", "−")


def percent(share: float) -> str:
    """Return a share as whole per cent; what is small but not nothing as < 1 %."""
    if 0 < share < 0.005:
        return "< 1 %"
    return "> 999 %" if share > 9.995 else f"{100 * share:.0f} %"


def p_value(value: float) -> str:
    """Return three decimals, or that it is smaller."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
