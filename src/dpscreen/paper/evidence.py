"""Where the paper's mathematics and its explanation of RNM-Screen are put to the test.

A control that zeroes coordinates at random, and Theorem 2 by simulation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dpscreen.paper.agreement import STANDARD_ERRORS, Estimate, RowIndex, mean_of
from dpscreen.paper.experiments import PROCESS
from dpscreen.paper.results import TrialRow
from dpscreen.paper.suites import SYNTHETIC

# --- RNM-Screen against zeroing at random -------------------------------------------------------


@dataclass(frozen=True)
class ControlComparison:
    """RNM-Screen beside uniform zeroing on the same rows, trial by trial (erratum E7)."""

    data: str
    metric: str
    screened: Estimate
    control: Estimate
    difference: float
    standard_error: float

    @property
    def agrees(self) -> bool:
        """Whether the difference is within two of its standard errors."""
        return abs(self.difference) <= STANDARD_ERRORS * self.standard_error


def compare_control(rows: Iterable[TrialRow]) -> tuple[ControlComparison, ...]:
    """Compare on both synthetic sets."""
    index = RowIndex(rows)
    pairs = ((data, metric) for data in SYNTHETIC for metric in ("f1", "tpr", "fpr", "density"))
    found = (_control(index, data, metric) for data, metric in pairs)
    return tuple(comparison for comparison in found if comparison)


def _control(index: RowIndex, data: str, metric: str) -> ControlComparison | None:
    ours = index.values("synthetic", data, "rnm-screen", metric)
    control = index.values("synthetic", data, "uniform-zeroing", metric)
    both = sorted(set(ours) & set(control))
    difference = mean_of(ours[t] - control[t] for t in both)
    screened, zeroed = mean_of(ours[t] for t in both), mean_of(control[t] for t in both)
    if difference is None or screened is None or zeroed is None:
        return None
    gap, error = difference.mean, difference.standard_error
    return ControlComparison(data, metric, screened, zeroed, gap, error)


# --- Theorem 2 ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Theorem2Comparison:
    """Simulated nonzeros beside the corrected and the printed expression."""

    n_features: int
    n_iter: int
    simulated: Estimate
    corrected: float
    published: float
    corrected_limit: float
    published_limit: float

    @property
    def relative_error(self) -> float:
        """How far the simulation is from the corrected expression."""
        return self.simulated.mean / self.corrected - 1

    @property
    def relative_error_published(self) -> float:
        """How far the simulation is from the printed expression."""
        return self.simulated.mean / self.published - 1

    @property
    def settled(self) -> bool:
        """Whether T is large enough for the limit to be what it should show."""
        return self.corrected > 0.999 * self.corrected_limit

    @property
    def agrees(self) -> bool:
        """Whether the simulation is within 2 % of the corrected expression."""
        return abs(self.relative_error) <= 0.02


def compare_theorem2(rows: Iterable[TrialRow]) -> tuple[Theorem2Comparison, ...]:
    """Compare every setting that was simulated."""
    index = RowIndex(rows)
    return tuple(_theorem2(index, data) for data in index.data_sets("theorem2"))


def _theorem2(index: RowIndex, data: str) -> Theorem2Comparison:
    row = index.rows("theorem2", data, PROCESS)[0]
    simulated = index.estimate("theorem2", data, PROCESS, "nonzeros")
    assert simulated is not None, "a row of the process has its nonzeros"
    names = ("corrected", "published", "corrected_limit", "published_limit")
    expected = {name: row.metrics[name] for name in names}
    return Theorem2Comparison(
        row.settings["n_features"], row.settings["n_iter"], simulated, **expected
    )
