"""The models that can be asked for: one entry each, offered where its method is there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class ModelChoice:
    """A model in words, and what it is called elsewhere.

    `method` is its name on the command line and in `planning.methods`, `estimator` its class.
    """

    method: str
    estimator: str
    title: str
    words: str
    offers_intervals: bool = False
    needs_rows: bool = False


CHOICES = (
    ModelChoice(
        "private-lasso",
        "PrivateLasso",
        "Sparse linear model",
        "Finds the few features that matter, of many, and predicts a number from them.",
        offers_intervals=True,
    ),
    ModelChoice(
        "private-ols",
        "PrivateOLS",
        "Regression table",
        "A coefficient with its interval for every feature: nothing is selected.",
    ),
    ModelChoice(
        "private-logistic",
        "PrivateLogistic",
        "Yes or no",
        "Predicts how likely a yes is: the target is a column of yes and no.",
    ),
)


@cache
def offered() -> tuple[ModelChoice, ...]:
    """Return the choices whose method this version can fit."""
    from dpscreen.planning.methods import METHODS

    return tuple(one for one in CHOICES if one.method in METHODS)


def choice_of(method: str) -> ModelChoice:
    """Return the choice of a method; the first for a word that is none."""
    return next((one for one in CHOICES if one.method == method), CHOICES[0])
