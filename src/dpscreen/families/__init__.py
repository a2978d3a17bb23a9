"""The families of outcomes that can be fitted, each in a module of its own, and how one is found.

A further family is a module here, and is named in `FAMILIES`, in order of preference.
"""

from __future__ import annotations

from collections.abc import Container

from dpscreen.families.base import FAMILIES, Family
from dpscreen.families.binomial import BINOMIAL, OutcomeQuality
from dpscreen.families.gaussian import GAUSSIAN, Quality
from dpscreen.families.poisson import POISSON, RateQuality

FAMILIES.update((family.name, family) for family in (GAUSSIAN, BINOMIAL, POISSON))

__all__ = [
    "BINOMIAL",
    "FAMILIES",
    "GAUSSIAN",
    "POISSON",
    "Family",
    "OutcomeQuality",
    "Quality",
    "RateQuality",
    "default_words_of",
    "family_of",
    "family_of_fields",
    "family_of_method",
]


def _suited(classes: object) -> list[Family]:
    """Return the families of a declared target: its two classes, or None where it is a number."""
    return [one for one in FAMILIES.values() if bool(one.n_classes) == (classes is not None)]


def family_of(classes: object) -> Family:
    """Return the family that is fitted to a declared target unless another one is named."""
    return _suited(classes)[0]


def default_words_of(classes: object, low: float) -> str:
    """Return what is said of a target with that lower bound where no model was named, if anything.

    That is which one is taken, or which other one may suit it.
    """
    suited = (one for one in _suited(classes) if low == 0 or not one.in_parts)
    return next((one.words.default for one in suited if one.words.default), "")


def family_of_fields(fields: Container[str]) -> Family:
    """Return the family of a model file: the one whose own fields it has."""
    own = (one for one in FAMILIES.values() if one.file_fields and one.file_fields[0] in fields)
    return next(own, GAUSSIAN)


def family_of_method(method: str) -> Family:
    """Return the family whose sparse model or table a method is."""
    found = (one for one in FAMILIES.values() if method in (one.sparse.method, one.table.method))
    return next(found)
