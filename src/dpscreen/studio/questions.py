"""The models that can be asked for: one entry each."""

from __future__ import annotations

from dataclasses import dataclass

from dpscreen.solvers.family import BINOMIAL, GAUSSIAN, POISSON, Family


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
        "Selects the few features that matter among many, and predicts a number from them.",
        "; those that matter together explain half of the target's variance.",
        offers_intervals=True,
    ),
    ModelChoice(
        GAUSSIAN,
        TABLE,
        "PrivateOLS",
        "Regression table",
        "A coefficient with its interval for every feature: nothing is selected.",
        "; the features together explain half of the target's variance.",
        table=True,
    ),
    ModelChoice(
        BINOMIAL,
        OUTCOMES,
        "PrivateLogisticLasso",
        "Sparse model of a binary outcome",
        "Selects features and predicts the probability of a yes: the target is binary.",
        ", with a yes in {rate} of rows; one standard deviation of a feature that matters "
        "multiplies the odds by 1.6.",
        offers_intervals=True,
    ),
    ModelChoice(
        BINOMIAL,
        ODDS,
        "PrivateLogit",
        "Table of odds ratios",
        "An odds ratio with its interval for every feature: the target is binary.",
        ", with a yes in {rate} of rows; one standard deviation of all features together "
        "multiplies the odds by 2.7.",
        table=True,
    ),
    ModelChoice(
        POISSON,
        POISSON.selection,
        "PrivatePoissonLasso",
        "Count, cost or duration",
        "Predicts the mean of a number that is not negative, from the few features that matter.",
        ", counts with a mean of 1; one standard deviation of a feature that matters multiplies "
        "the mean by 1.2.",
        offers_intervals=True,
    ),
    ModelChoice(
        POISSON,
        POISSON.table,
        "PrivatePoisson",
        "Rate ratios of a count or cost",
        "A rate ratio with its interval for every feature: the target is a number from 0 on.",
        ", counts with a mean of 1; one standard deviation of all features together multiplies "
        "the mean by 1.6.",
        table=True,
    ),
)


def choice_of(method: str) -> ModelChoice:
    """Return the choice of a method; the first for a word that is none."""
    return next((one for one in CHOICES if one.method == method), CHOICES[0])
