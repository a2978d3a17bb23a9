"""The composition formulas of the paper: what "published" calibration divides its budget by.

They are kept to the letter. Proven methods compose in zCDP instead (`zcdp`), which at the paper's
setting leaves each step four times the ε of `advanced_share` (docs/privacy.md, Lemma 5).
"""

from __future__ import annotations

import math

from dpscreen.privacy.budget import Budget


def advanced_share(budget: Budget, *, count: int) -> float:
    """Return the ε of each of `count` pure steps: ε / √(8 T ln(1/δ)) (Algorithm 2, line 2)."""
    return budget.epsilon / math.sqrt(8 * count * math.log(1 / budget.delta))


def advanced_share_approximate(budget: Budget, *, count: int) -> Budget:
    """Return the (ε, δ) of each of `count` approximate steps (Algorithm 1, lines 3 and 4)."""
    delta = budget.delta / (count + 1)
    return Budget(budget.epsilon / (2 * math.sqrt(2 * count * math.log(1 / delta))), delta)


def gaussian_sigma(step: Budget, *, sensitivity: float) -> float:
    """Return the classical σ = Δ₂ √(2 ln(1.25/δ)) / ε (Algorithm 1, line 5)."""
    return sensitivity * math.sqrt(2 * math.log(1.25 / step.delta)) / step.epsilon
