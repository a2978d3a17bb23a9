"""Checks of parameters and rows. Errors name the parameter and never repeat a data value."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array, Mask
from dpscreen._core.messages import message
from dpscreen._core.words import did_you_mean
from dpscreen.privacy.budget import ALL_ROWS

MOST_STEPS = 20_000
"""With more, whole-number weights from a random start could outgrow 64 bits."""
LEAST, MOST = 1e-60, 1e60
"""What radius, clips, norms and half-widths lie between: then no square and no ratio overflows."""
MOST_ROWS = 10**9
"""More than exact sums hold; with far more, rules would ask for noise or steps that overflow."""
MOST_ROWS_PER_UNIT = ALL_ROWS - 1
"""With more, the noise would exceed the range that float64 can resolve."""


@dataclass(frozen=True)
class Rule:
    """What a parameter may be: one of `words`, or of a kind and from `least` to `most`.

    A number beyond these is refused with the message `code`. Where there may be `several`, it is
    one, or a list of them.
    """

    kind: Any = None
    code: str = ""
    least: float = -math.inf
    most: float = math.inf
    words: tuple[Any, ...] = ()
    several: bool = False


ABOVE_0, BELOW_1 = math.nextafter(0, 1), math.nextafter(1, 0)
POSITIVE = Rule(Real, "positive", ABOVE_0, math.nextafter(math.inf, 0))
SHARE = Rule(Real, "share", ABOVE_0, BELOW_1)
SIZE = Rule(Real, "size", LEAST, MOST)
COUNT = Rule(Integral, "least", 1)
FLAG = Rule(bool)
NAMES = Rule(str, several=True)
KINDS: dict[Any, tuple[str, Callable[[Any], Any]]] = {
    Real: ("a number", float),
    Integral: ("a whole number", int),
    bool: ("True or False", bool),
    str: ("a list of names of coefficients", str),
}

RULES = {
    "epsilon": POSITIVE,
    "delta": SHARE,
    "radius": SIZE,
    "clip": SIZE,
    "row_norm": SIZE,
    "n_iter": Rule(Integral, "between", 1, MOST_STEPS),
    "max_features": COUNT,
    "n_rows": Rule(Integral, "between", 1, MOST_ROWS),
    "rows_per_unit": Rule(Integral, "between", 1, MOST_ROWS_PER_UNIT),
    "fit_intercept": FLAG,
    "quality": FLAG,
    "standardize": Rule(bool, words=("auto",)),
    "inference": Rule(words=("split",)),
    "interest": NAMES,
    "required": NAMES,
    "calibration": Rule(words=("proven", "published")),
    "start": Rule(words=("zero", "random")),
    "screening": Rule(words=("published", "safe")),
    "screening_share": SHARE,
    "screening_delta_share": SHARE,
    "screen_at": Rule(Integral, "least", 1, words=("all", "last"), several=True),
    "n_features": COUNT,
    "n_effects": COUNT,
    "effects": POSITIVE,
    "power": SHARE,
    "repetitions": COUNT,
}
"""Rules of parameters, by name; a model may have others (`_rules`)."""

NEEDED = ("epsilon", "delta")
"""Parameters for which no default is right."""


def checked_parameters(model: Any) -> dict[str, Any]:
    """Return the parameters of a model that have a rule; None stays where it is the default."""
    found, rules = {}, RULES | model._rules
    for name, rule in rules.items():
        if hasattr(type(model), name):
            value, default = getattr(model, name), getattr(type(model), name)
            left_out = value is None and default is None and name not in NEEDED
            found[name] = None if left_out else checked(name, value, rule)
    return found


def checked(name: str, value: Any, rule: Rule | None = None) -> Any:
    """Return a parameter as its rule has it: a float, int, bool or word, or a tuple of them."""
    rule = rule or RULES[name]
    if isinstance(value, Hashable) and value in rule.words:
        return value
    if rule.several and isinstance(value, Iterable) and not isinstance(value, str):
        return tuple(checked(name, one, rule) for one in value)
    if rule.kind is None or (isinstance(value, str) and rule.words):
        known = ", ".join(map(repr, rule.words))
        raise ValueError(message("parameter.choice", name=name, known=known, given=value))
    if value is None:
        raise ValueError(message("parameter.missing", name=name))
    flag, (wanted, made) = isinstance(value, bool | np.bool_), KINDS[rule.kind]
    if flag != (rule.kind is bool) or not (flag or isinstance(value, rule.kind)):
        given = type(value).__name__
        raise TypeError(message("parameter.type", name=name, wanted=wanted, given=given))
    if rule.code and not rule.least <= value <= rule.most:
        limits = {"least": rule.least, "most": rule.most}
        raise ValueError(message(f"parameter.{rule.code}", name=name, given=value, **limits))
    return made(value)


def declared_bounds(
    feature_bounds: Any, target_bounds: Any, names: Iterable[str] | None, zero_one: Mask
) -> tuple[Array, Array]:
    """Return (d × 2 feature bounds, the target's two bounds), each an increasing, finite pair.

    `zero_one` says of each feature whether its kind says (0, 1), so that nobody need declare it.
    """
    if isinstance(feature_bounds, Mapping):
        feature_bounds = _by_name(feature_bounds, names, zero_one)
    feature = np.tile((0.0, 1.0), (len(zero_one), 1))
    if feature_bounds is None and zero_one.all():
        feature_bounds = feature
    pairs, target = _pairs("feature_bounds", feature_bounds), _pairs("target_bounds", target_bounds)
    n_numbers = np.count_nonzero(~zero_one)
    if pairs.shape == feature.shape:  # one for each feature
        if (pairs[zero_one] != (0, 1)).any():
            raise ValueError(message("bounds.of-levels"))
        feature = pairs
    elif pairs.shape in ((2,), (n_numbers, 2)):  # one for all numbers, or each of them
        feature[~zero_one] = pairs
    else:
        raise ValueError(message("bounds.shape", n=n_numbers, shape=str(pairs.shape)))
    if target.shape != (2,):
        raise ValueError(message("bounds.target"))
    of_whom = [""] * len(feature) if names is None else [f" of {str(name)!r}" for name in names]
    for name, pairs, columns in (
        ("feature_bounds", feature, of_whom),
        ("target_bounds", target[None], [""]),
    ):
        with np.errstate(all="ignore"):  # what is not finite is refused before its width matters
            half = pairs[:, 1] / 2 - pairs[:, 0] / 2
        for good, demand in (
            (np.isfinite(pairs).all(axis=1), "be finite"),
            (half > 0, "have low < high"),
            ((half >= LEAST) & (half <= MOST), f"be between {2 * LEAST:g} and {2 * MOST:g} wide"),
        ):
            if not good.all():
                whose = columns[int(np.argmin(good))]
                raise ValueError(message("bounds.pair", name=name, whose=whose, demand=demand))
    return feature, target


def _by_name(given: Mapping[Any, Any], names: Iterable[str] | None, zero_one: Mask) -> list[Any]:
    """Return a pair for each feature; those of booleans and levels may be left out."""
    if names is None:
        raise ValueError(message("bounds.no-names"))
    names = list(names)
    usual = {name: (0.0, 1.0) for name, known in zip(names, zero_one, strict=True) if known}
    missing = [name for name in names if name not in given and name not in usual]
    unknown = [name for name in given if name not in names]
    if missing or unknown:
        guess = did_you_mean(str(unknown[0]), map(str, names)) if unknown else ""
        fields = {"missing": str(missing), "unknown": str(unknown), "guess": guess}
        raise ValueError(message("bounds.names", **fields))
    return [given[name] if name in given else usual[name] for name in names]


def _pairs(name: str, given: Any) -> Array:
    if given is None:
        raise ValueError(message("bounds.missing", name=name))
    try:
        return np.asarray(given, dtype=np.float64)
    except (ValueError, TypeError):
        raise ValueError(message("bounds.no-pairs", name=name)) from None
