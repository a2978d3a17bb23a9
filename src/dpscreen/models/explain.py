"""`model.explain()`: paragraphs for anyone who has to decide, every number in them computed.

The text is the template `explain.txt`, whose paragraphs pages and formulas show, too.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from dpscreen._core.pictures import environment
from dpscreen._core.words import (
    PER_CENT,
    YEAR,
    how_many,
    listed,
    markdown,
    number,
    percent_at_most,
    plain,
    prose,
    rounded_up,
)
from dpscreen.families.quality import NOISE
from dpscreen.models.release import Release
from dpscreen.models.summary import (
    about_effects,
    about_failure,
    about_predictions,
    prediction_of_all,
)
from dpscreen.privacy.budget import posterior

MOST_FEATURES, MOST_DIGITS = 3, 6
PARAGRAPHS = ("warning", "findings"), ("reading",), ("protection",), ("limits",)


def explanation_of(release: Release) -> str:
    """Return findings, how to read the numbers, protection, and what is not protected."""
    found = ((one for name in names for one in sentences(release, name)) for names in PARAGRAPHS)
    return "\n\n".join(filter(None, map(" ".join, found)))


def sentences(release: Release, paragraph: str, **more: Any) -> list[str]:
    """Return the sentences of a paragraph of the text."""
    shown = {
        "release": release,
        "statement": release.statement,
        "words": release.family.words,
        "scale": release.scale_of_effects,
        "failure": " ".join(about_failure(release)),
        "constant": prediction_of_all(release),
        "largest": release.chosen[:MOST_FEATURES],
        "span": _span(release),
        "effects_are": about_effects(release),
        "predictions": about_predictions(release),
        "notes": release.bounds_notes or (),
        **more,
    }
    text = getattr(texts().get_template("explain.txt").make_module(shown), paragraph)()
    return [line.strip() for line in text.split("\n") if line.strip()]


@cache
def texts() -> Any:
    """Return where the templates of texts are, with the words that they use."""
    settings = environment("dpscreen.models").overlay(autoescape=False)
    settings.filters |= {
        "how_many": how_many,
        "listed": listed,
        "md": markdown,
        "name_in": lambda j, release: plain(release.names[j]),
        "number": number,
        "percent_at_most": percent_at_most,
        "plain": plain,
        "prose": prose,
        "rounded_up": rounded_up,
    }
    settings.globals |= {
        "chance_of_failure": chance_of_failure,
        "posterior": posterior,
        "noise": NOISE,
        "per_cent": PER_CENT,
        "year": YEAR,
    }
    return settings


def _span(release: Release) -> str:
    """Return the interval of the largest effect, where it is of that very estimate."""
    if release.table is None or not release.chosen:
        return ""
    j = release.chosen[0]
    found, step = release.intervals[j], float(release.steps[j])
    text = release.scale_of_effects.text
    for digits in range(3, MOST_DIGITS + 1):
        low, high = (text(one * step, digits=digits) for one in (found.low, found.high))
        if low != high:
            break
    return f" (95 % interval {low} to {high})"


def chance_of_failure(epsilon: float, rho: float) -> float:
    """Return a bound on the probability of a release whose privacy loss is above ε (Lemma 19)."""
    if not epsilon > rho > 0:
        return 1.0
    deviations = (epsilon - rho) / (2 * math.sqrt(rho))
    return math.exp(-deviations * deviations)
