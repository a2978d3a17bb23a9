"""The models that can be asked for: one entry each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ModelChoice:
    """A model in words, and what it is called elsewhere.

    `method` is its name on the command line and in `planning.methods`, `estimator` its class.
    `outcomes` tells that its target is a yes or no, `table` that all coefficients have intervals.
    """

    method: str
    estimator: str
    title: str
    words: str
    offers_intervals: bool = False
    outcomes: bool = False
    table: bool = False


SELECTION, TABLE = "private-lasso", "private-ols"
OUTCOMES, ODDS = "private-logistic", "private-logit"
CHOICES = (
    ModelChoice(
        SELECTION,
        "PrivateLasso",
        "Sparse linear model",
        "Finds the few features that matter, of many, and predicts a number from them.",
        offers_intervals=True,
    ),
    ModelChoice(
        TABLE,
        "PrivateOLS",
        "Regression table",
        "A coefficient with its interval for every feature: nothing is selected.",
        table=True,
    ),
    ModelChoice(
        OUTCOMES,
        "PrivateLogistic",
        "Yes or no",
        "Predicts how likely a yes is: the target is a column of yes and no.",
        offers_intervals=True,
        outcomes=True,
    ),
    ModelChoice(
        ODDS,
        "PrivateLogit",
        "Odds ratios of a yes",
        "An odds ratio with its interval for every feature: the target is a column of yes and no.",
        outcomes=True,
        table=True,
    ),
)


def choice_of(method: str) -> ModelChoice:
    """Return the choice of a method; the first for a word that is none."""
    return next((one for one in CHOICES if one.method == method), CHOICES[0])
