"""`model.explain()`: a paragraph for anyone who has to decide, every number in it computed."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpscreen._core.words import (
    PER_CENT,
    YEAR,
    how_many,
    number,
    percent,
    percent_at_most,
    plain,
    prose,
    rounded_up,
)
from dpscreen.families.measures import NOISE
from dpscreen.models.release import Release
from dpscreen.models.summary import (
    about_constant,
    about_failure,
    prediction_of_all,
    reading_of,
)
from dpscreen.privacy import PrivacyStatement
from dpscreen.privacy.budget import posterior

MOST_FEATURES, MOST_DIGITS = 3, 6
PRIORS = (0.01, 0.1)


def explanation_of(release: Release) -> str:
    """Return findings, how to read the numbers, protection, and what is not protected."""
    statement = release.statement
    warning = []
    if statement.calibration == "published":
        warning = [
            "THIS MODEL IS NOT PRIVATE AS STATED: it uses the published calibration, whose "
            f"epsilon = {statement.epsilon:g} does not hold; do not release it."
        ]
    elif not statement.holds:
        warning = [
            "THIS MODEL IS NOT PRIVATE: its noise came from a seed, and whoever knows the seed can "
            "remove it; do not release it, but fit again without random_state."
        ]
    found = ([*warning, *_findings(release)], reading_of(release), protection_of(statement))
    paragraphs = (*(" ".join(one) for one in found), limits_of(statement))
    return "\n\n".join(one for one in paragraphs if one)


def result_of(release: Release) -> str:
    """Return the result in one sentence."""
    if release.fallback is not None or not release.selected:
        return " ".join(_findings(release))
    if not release.chosen:
        return _none_clear(release)
    target, largest = plain(release.target or "the target"), _effect(release, release.chosen[0])
    many = f"{len(release.chosen)} of {how_many(release.n_features, 'feature')}"
    verb = "has an effect" if len(release.chosen) == 1 else "have effects"
    standardised = "standardised " if release.table is not None else ""
    which = (
        f"The largest {standardised}effect of these" if len(release.chosen) > 1 else "Its effect"
    )
    return f"{many} {verb} of reliable sign on {target}. {which}: {largest}{_span(release)}."


def _span(release: Release) -> str:
    """Return the interval of the largest effect, where it is of that very estimate."""
    j, scale = release.chosen[0], release.scale_of_effects
    if release.table is None:
        return ""
    found, step = release.intervals[j], float(release.steps[j])
    for digits in range(3, MOST_DIGITS + 1):
        low, high = (scale.text(one * step, digits=digits) for one in (found.low, found.high))
        if low != high:
            break
    return f" (95 % interval {low} to {high})"


def chance_of_failure(epsilon: float, rho: float) -> float:
    """Return a bound on the probability of a release whose privacy loss is above ε (Lemma 19)."""
    if not epsilon > rho > 0:
        return 1.0
    deviations = (epsilon - rho) / (2 * math.sqrt(rho))
    return math.exp(-deviations * deviations)


def _findings(release: Release) -> Iterator[str]:
    selected = release.selected
    yield from about_failure(release)
    if release.fallback is not None and not selected:
        yield f"It predicts {prediction_of_all(release)} for everyone."
        return
    if not selected:
        yield about_constant(release)
    else:
        yield from _used(release, len(selected))


def _used(release: Release, n_used: int) -> Iterator[str]:
    target = plain(release.target or "the target")
    features = how_many(release.n_features, "feature")
    yield f"The model predicts {target} from {n_used} of {features}."
    largest = release.chosen[:MOST_FEATURES]
    if not largest:
        yield _none_clear(release)
        return
    effect = "effect" if len(largest) == 1 else "effects"
    which = "" if release.above_noise is None else " detected above the noise"
    if release.table is not None:
        effect, which = f"standardised {effect}", " whose intervals exclude no effect"
    told = "; ".join(_effect(release, j) for j in largest)
    yield f"The largest {effect}{which}: {told}."
    if release.why_no_intervals is not None:
        yield "How exact these numbers are is not known, because the model has no intervals."
        measure = release.first_measure
        if measure is not None and measure.reason == NOISE:
            yield "Privacy noise is too large to say how good the model is: effects may be noise."


def _none_clear(release: Release) -> str:
    """Say that no effect is clear; of what was not tested, that it was not."""
    if release.table is None:
        return "None of them is detected above the noise at this budget: their numbers say little."
    if not release.intervals:
        return "None of them has an interval at this budget: their effects were not tested."
    return "No interval excludes 0 at this budget: effects within the intervals remain possible."


def _effect(release: Release, j: int) -> str:
    name, effect = plain(release.names[j]), float(release.effects[j])
    size = float(release.steps[j])
    change = f"an increase of {'a year' if size == YEAR else number(size)} in {name}"
    if release.zero_one[j]:
        change = f"a change from 0 to 1 in {name}"
    scale = release.scale_of_effects
    if scale.ratio:
        ratio = scale.text(effect, digits=3)
        return f"{change} multiplies {release.family.words.multiplied} by {ratio}"
    way, size = "raises" if effect > 0 else "lowers", abs(scale.shown(effect))
    what = release.changed if scale == PER_CENT else "the prediction"
    return f"{change} {way} {what} by {number(size, digits=3)}{scale.sign}"


def protection_of(statement: PrivacyStatement) -> Iterator[str]:
    """Say what somebody can learn from the model about one row or unit (Lemma 19)."""
    rho = statement.rho
    if rho is None:
        return
    pair = f"With epsilon = {statement.epsilon:g} and delta = {statement.delta:.4g}"
    changing = statement.changing_epsilon
    if not statement.rows_disclosed or changing is None:
        yield from _surety(
            f"{pair}, someone 50 % sure beforehand that {_whose(statement)} is in the data",
            statement,
            (statement.epsilon, rho),
        )
        return
    many = "" if statement.of_rows else ", and with how many rows,"
    yield (  # who knows all others need only count (Lemma 19)
        f"The number of rows is disclosed, so whether {_whose(statement)} is in the data{many} is "
        "NOT hidden from someone who knows all the others: they need only count. What it holds is "
        "protected."
    )
    yield from _surety(
        f"{pair} for adding or removing it, so epsilon = {rounded_up(changing, digits=3)} for "
        "changing it, someone 50 % sure beforehand that it holds this and not that",
        statement,
        (changing, 4 * rho),
    )


def _surety(somebody: str, statement: PrivacyStatement, cost: tuple[float, float]) -> Iterator[str]:
    """Say how sure somebody can become at (ε, ρ), and how often that fails (Lemma 19)."""
    would = "can" if statement.holds else "could, had the noise been secret,"
    others = ", ".join(
        f"from {percent(prior)} at most to {percent_at_most(posterior(prior, cost[0]))}"
        for prior in PRIORS
    )
    yield (
        f"{somebody} {would} become at most {percent_at_most(posterior(0.5, cost[0]))} sure "
        "by seeing the model, even if they know all the rest of the data "
        f"({others}; figures rounded up)."
    )
    chance = chance_of_failure(*cost)
    if chance >= 0.01:
        yield "At so large an epsilon or delta this bound may often fail, and means little."
        return
    yield (
        f"That holds except with probability {rounded_up(chance, digits=2)} at most; delta bounds "
        "what those rare cases amount to on average."
    )


def _whose(statement: PrivacyStatement) -> str:
    return "a row" if statement.of_rows else prose(statement.unit)


def _several(statement: PrivacyStatement) -> str:
    """Say who has more in the data than the promise is for."""
    if statement.of_rows:
        return "people with more than one row, as the promise is for a row"
    if statement.surplus_left_out:
        return "people with more than one value in the column that identifies units"
    return (
        f"units with more than {statement.rows_per_unit} rows, which the fit does not look for, "
        "as it does not know whose row is whose"
    )


def limits_of(statement: PrivacyStatement) -> str:
    """Say what is not protected."""
    counted = "whether a row is there, as it can be counted; " if statement.rows_disclosed else ""
    return (
        "NOT protected: what the model shows about people in general, which holds for anyone like "
        "them, whether or not their rows were used; what is treated as public, including the names "
        f"of columns and their bounds; {counted}{_several(statement)}; choices made by looking at "
        "the data; running time; and the rows themselves, which the curator holds. Other releases "
        "from the same rows reveal more: keep one ledger for all of them."
    )
