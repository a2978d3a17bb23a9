"""The models that can be asked for: a sparse one and a table for each family of outcomes."""

from __future__ import annotations

from dataclasses import dataclass

from dpscreen.solvers.family import BINOMIAL, GAUSSIAN, POISSON, Family


@dataclass(frozen=True)
class ModelChoice:
    """A model in words. `supposed` says what is simulated; a `table` has intervals of all."""

    family: Family
    title: str
    words: str
    supposed: str
    table: bool = False

    @property
    def method(self) -> str:
        """Return its name on the command line and in `planning.methods`."""
        return self.family.table if self.table else self.family.selection

    @property
    def estimator(self) -> str:
        """Return the name of its class."""
        return self.family.words.table if self.table else self.family.words.sparse


CHOICES = (
    ModelChoice(
        GAUSSIAN,
        "Sparse linear model",
        "Selects the few features that matter among many, and predicts a number from them.",
        "; those that matter together explain half of the target's variance.",
    ),
    ModelChoice(
        GAUSSIAN,
        "Regression table",
        "A coefficient with its interval for every feature: nothing is selected.",
        "; the features together explain half of the target's variance.",
        table=True,
    ),
    ModelChoice(
        BINOMIAL,
        "Sparse model of a binary outcome",
        "Selects features and predicts the probability of a yes: the target is binary.",
        ", with a yes in {rate} of rows; one standard deviation of a feature that matters "
        "multiplies the odds by 1.6.",
    ),
    ModelChoice(
        BINOMIAL,
        "Table of odds ratios",
        "An odds ratio with its interval for every feature: the target is binary.",
        ", with a yes in {rate} of rows; one standard deviation of all features together "
        "multiplies the odds by 2.7.",
        table=True,
    ),
    ModelChoice(
        POISSON,
        "Sparse model of a count, cost or duration",
        "Selects features and predicts the mean of a number that is not negative.",
        ", counts with a mean of 1; one standard deviation of a feature that matters multiplies "
        "the mean by 1.2.",
    ),
    ModelChoice(
        POISSON,
        "Table of rate ratios",
        "A rate ratio with its interval for every feature: the target is a count, a cost or a "
        "duration.",
        ", counts with a mean of 1; one standard deviation of all features together multiplies "
        "the mean by 1.6.",
        table=True,
    ),
)
_BY_METHOD = {one.method: one for one in CHOICES}


def choice_of(method: str) -> ModelChoice:
    """Return the choice of a method; the first for a word that is none."""
    return _BY_METHOD.get(method, CHOICES[0])
