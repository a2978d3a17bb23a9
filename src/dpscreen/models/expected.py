"""What can be expected of a private fit, as values: simulated by `planning`, drawn on a page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PowerRow:
    """What to expect of features of one size; each `_se` is a Monte-Carlo standard error.

    `power` is the share of true features found, `false_positives` the number of others found.
    `best_r2` is what the true coefficients would explain.
    """

    effect: float
    power: float
    power_se: float
    false_positives: float
    false_positives_se: float
    r2: float
    r2_se: float
    best_r2: float
    repetitions: int


@dataclass(frozen=True)
class WhatIf:
    """What to expect at one ε. Errors are shares of the explainable variance."""

    epsilon: float
    power: float
    power_se: float
    privacy_error: float
    sampling_error: float
    error_se: float

    @property
    def captured(self) -> float:
        """Return the share of the explainable variance that the model captures, at least 0."""
        return max(0.0, 1 - self.privacy_error - self.sampling_error)


@dataclass(frozen=True)
class Expected:
    """What could be expected of a fit, from public numbers alone.

    `finding` and `advice` say it in words; `useful` is whether anything can be found. `rows` are
    sizes of effect, `what_if` other ε. `split` tells that one half of the rows selects, which is
    then what was simulated.
    """

    n_rows: int
    n_features: int
    n_effects: int
    finding: str
    advice: str
    useful: bool
    power_wanted: float
    rows: tuple[PowerRow, ...]
    what_if: tuple[WhatIf, ...]
    split: bool = False
