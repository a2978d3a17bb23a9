"""The models that can be asked for: two of each family."""

from __future__ import annotations

from dataclasses import dataclass

from dpscreen.families import BINOMIAL, FAMILIES, GAUSSIAN, Family


@dataclass(frozen=True)
class ModelChoice:
    """A model in words, and what it is called elsewhere.

    `method` is its name on the command line and in `planning.methods`, `estimator` its class.
    `supposed` says what is simulated. In a `table` all coefficients have intervals.
    """

    family: Family
    method: str
    estimator: str
    title: str
    words: str
    supposed: str
    table: bool

    @property
    def offers_intervals(self) -> bool:
        """Whether half of the rows can be kept for intervals of selected features."""
        return not self.table


SELECTION, TABLE = GAUSSIAN.sparse.method, GAUSSIAN.table.method
OUTCOMES, ODDS = BINOMIAL.sparse.method, BINOMIAL.table.method
CHOICES = tuple(
    ModelChoice(family, **vars(model), table=model is family.table)
    for family in FAMILIES.values()
    for model in (family.sparse, family.table)
)


def choice_of(method: str) -> ModelChoice:
    """Return the choice of a method; the first for a word that is none."""
    return next((one for one in CHOICES if one.method == method), CHOICES[0])
