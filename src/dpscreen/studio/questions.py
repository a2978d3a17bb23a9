"""The models that can be asked for: one entry each."""

from __future__ import annotations

from dataclasses import dataclass

from dpscreen.solvers.family import BINOMIAL, GAUSSIAN, Family


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
    offers_intervals: bool = False
    table: bool = False


SELECTION, TABLE = GAUSSIAN.selection, GAUSSIAN.table
OUTCOMES, ODDS = BINOMIAL.selection, BINOMIAL.table
CHOICES = (
    ModelChoice(
        GAUSSIAN,
        SELECTION,
        "PrivateLasso",
        "Sparse linear model",
        "Finds the few features that matter, of many, and predicts a number from them.",
        "; those that matter explain half of the target's variance together.",
        offers_intervals=True,
    ),
    ModelChoice(
        GAUSSIAN,
        TABLE,
        "PrivateOLS",
        "Regression table",
        "A coefficient with its interval for every feature: nothing is selected.",
        "; the features explain half of the target's variance together.",
        table=True,
    ),
    ModelChoice(
        BINOMIAL,
        OUTCOMES,
        "PrivateLogisticLasso",
        "Binary outcome",
        "Predicts how likely a yes is: the target is a column of yes and no.",
        ", with a yes in {rate} of rows; one standard deviation of a feature that matters "
        "multiplies the odds by 1.6.",
        offers_intervals=True,
    ),
    ModelChoice(
        BINOMIAL,
        ODDS,
        "PrivateLogit",
        "Odds ratios of a yes",
        "An odds ratio with its interval for every feature: the target is a column of yes and no.",
        ", with a yes in {rate} of rows; one standard deviation of all features together "
        "multiplies the odds by 2.7.",
        table=True,
    ),
)


def choice_of(method: str) -> ModelChoice:
    """Return the choice of a method; the first for a word that is none."""
    return next((one for one in CHOICES if one.method == method), CHOICES[0])
