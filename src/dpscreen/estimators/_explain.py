"""`model.explain()`: a paragraph for whoever has to decide, every number in it computed."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpscreen.estimators._release import Release
from dpscreen.estimators._text import number, percent, plain, prose
from dpscreen.privacy import PrivacyStatement
from dpscreen.privacy.statement import ROW

MOST_FEATURES = 3
PRIORS = (0.01, 0.1)


def explanation_of(release: Release) -> str:
    """Return what the model says, how private it is, and what is not protected."""
    return " ".join(_sentences(release))


def posterior(prior: float, epsilon: float) -> float:
    """Return how sure one can become: odds grow by at most e^ε (docs/privacy.md, Lemma 19)."""
    if prior in (0.0, 1.0):
        return prior
    log_odds = math.log(prior) - math.log1p(-prior) + epsilon
    return 1 / (1 + math.exp(-log_odds)) if log_odds > -700 else 0.0


def chance_of_failure(epsilon: float, rho: float) -> float:
    """Return a bound on the chance of a release whose privacy loss is above ε (Lemma 19)."""
    if not epsilon > rho > 0:
        return 1.0
    deviations = (epsilon - rho) / (2 * math.sqrt(rho))
    return math.exp(-deviations * deviations)


def _sentences(release: Release) -> Iterator[str]:
    statement = release.statement
    if not statement.holds:
        yield _warning(statement)
    yield from _findings(release)
    if statement.rho is not None:
        yield from _protection(statement, statement.rho)
    yield from _limits(statement)


def _warning(statement: PrivacyStatement) -> str:
    if statement.calibration == "published":
        return (
            "THIS MODEL IS NOT PRIVATE AS STATED: it uses the published calibration, whose "
            f"epsilon = {statement.epsilon:g} does not hold; do not release it."
        )
    return (
        "THIS MODEL IS NOT PRIVATE: its noise came from a seed, and whoever knows the seed can "
        "take it off; do not release it, but fit again without random_state."
    )


def _findings(release: Release) -> Iterator[str]:
    selected = release.selected
    if not selected:
        yield (
            f"The model found no feature, of {release.n_features}, that stands out of the privacy "
            f"noise; it predicts {number(release.intercept, digits=4)} for everyone."
        )
        return
    yield (
        f"The model predicts the target from {len(selected)} of {release.n_features} "
        f"{'feature' if release.n_features == 1 else 'features'}."
    )
    largest = selected[:MOST_FEATURES]
    told = "; ".join(_effect(release, j) for j in largest)
    yield f"The largest {'effect is' if len(largest) == 1 else 'effects are'}: {told}."
    if release.why_no_intervals is not None:
        yield "How exact these numbers are is not known, because the model has no intervals."


def _effect(release: Release, j: int) -> str:
    low, high = (number(float(end), digits=4) for end in release.feature_bounds[j])
    change = 2 * float(release.effects[j])
    way = "rises" if change > 0 else "falls"
    size = number(abs(change), digits=3)
    return f"{plain(release.names[j])} (from {low} to {high} the prediction {way} by {size})"


def _protection(statement: PrivacyStatement, rho: float) -> Iterator[str]:
    sure = percent(posterior(0.5, statement.epsilon))
    would = "can" if statement.holds else "could, had the noise been secret,"
    yield (
        f"With epsilon = {statement.epsilon:g} and delta = {statement.delta:.4g}, someone 50 % "
        f"sure beforehand that {_whose(statement)} in the data {would} become at most {sure} sure "
        "by seeing the model, even if they know all the rest of the data "
        f"({_other_priors(statement.epsilon)}; figures rounded)."
    )
    chance = chance_of_failure(statement.epsilon, rho)
    if chance >= 0.01:
        yield "At so large an epsilon or delta this bound may often fail, and means little."
        return
    yield (
        f"That holds except with probability {number(chance, digits=2)} at most; delta bounds "
        "what those rare cases amount to on average."
    )


def _whose(statement: PrivacyStatement) -> str:
    return "a row is" if statement.unit == ROW else f"{prose(statement.unit)} is"


def _other_priors(epsilon: float) -> str:
    return ", ".join(
        f"from {percent(prior)} at most to {percent(posterior(prior, epsilon))}" for prior in PRIORS
    )


def _limits(statement: PrivacyStatement) -> Iterator[str]:
    several = (
        "people with more than one row, as the promise is for a row; "
        if statement.unit == ROW
        else f"units with more than {statement.rows_per_unit} rows; "
    )
    yield (
        "NOT protected: what the model shows about people in general, which applies to those who "
        "are like them whether or not their rows were used; what is treated as public, the names "
        f"of columns and their bounds among it; {several}choices made by looking at the data; "
        "running time; and the rows themselves, which the curator holds. Other releases from the "
        "same rows add to what can be learnt: keep one ledger for all of them."
    )
