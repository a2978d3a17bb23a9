"""A fitted model as a page shows it: its summary, with what turns coefficients into effects.

Coefficients are in the users' units and cannot be compared with each other. An effect can: it is
the coefficient times half the width of the feature's bounds, so how far the prediction moves, in
the target's units, when the feature goes from the middle of its bounds to their upper end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpscreen.estimators._summary import SummaryRow


@dataclass(frozen=True)
class FeatureLine:
    """One selected feature, largest effect first."""

    row: SummaryRow

    @property
    def name(self) -> str:
        """Return the feature's name, as it is."""
        return self.row.feature

    @property
    def interval(self) -> tuple[float, float, float] | None:
        """Return low end, refit and high end of the interval as effects; None if there is none."""
        if self.row.low is None or self.row.refit is None or self.row.high is None:
            return None
        half_width = self.row.effect / self.row.coefficient
        return self.row.low * half_width, self.row.refit * half_width, self.row.high * half_width


@dataclass(frozen=True)
class ModelView:
    """The selected features and what may be said about them; released values only."""

    method: str
    target: str
    n_features: int
    intercept: float
    lines: tuple[FeatureLine, ...]
    notes: tuple[str, ...]
    has_intervals: bool
    has_p_values: bool


def view(model: Any, *, target: str) -> ModelView:
    """Return what is released of a fitted model."""
    summary = model.summary()
    return ModelView(
        method=summary.title.partition(":")[0],
        target=target,
        n_features=int(model.n_features_in_),
        intercept=summary.intercept,
        lines=tuple(FeatureLine(row) for row in summary.rows),
        notes=summary.notes,
        has_intervals=summary.has_intervals,
        has_p_values=summary.has_p_values,
    )
