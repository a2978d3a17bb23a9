"""Checks of parameters and rows. Errors name the parameter and never repeat a data value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

from dpscreen._core.arrays import Array, Mask
from dpscreen._core.messages import message
from dpscreen._core.words import did_you_mean
from dpscreen.privacy.budget import ALL_ROWS

T = TypeVar("T")


def positive(name: str, value: Any) -> float:
    """Return a positive, finite parameter as float."""
    number = _real(name, value)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(message("parameter.positive", name=name, given=value))
    return number


def optional(check: Callable[[str, Any], T], name: str, value: Any) -> T | None:
    """Return a parameter that may be left out: None, or what the check makes of it."""
    return None if value is None else check(name, value)


MOST_STEPS = 20_000
"""With more, whole-number weights from a random start could outgrow 64 bits."""
LEAST, MOST = 1e-60, 1e60
"""What radius, clips, norms and half-widths lie between: then no square and no ratio overflows."""
MOST_ROWS = 10**9
"""More than exact sums hold; with far more, rules would ask for noise or steps that overflow."""
MOST_ROWS_PER_UNIT = ALL_ROWS - 1
"""With more, the noise would exceed the range that float64 can resolve."""


def size(name: str, value: Any) -> float:
    """Return a positive parameter with which float64 can compute."""
    number = positive(name, value)
    if not LEAST <= number <= MOST:
        raise ValueError(message("parameter.size", name=name, least=LEAST, most=MOST, given=value))
    return number


def share(name: str, value: Any) -> float:
    """Return a parameter that lies strictly between 0 and 1."""
    number = _real(name, value)
    if not 0 < number < 1:
        raise ValueError(message("parameter.share", name=name, given=value))
    return number


def whole(name: str, value: Any, most: int | None = None) -> int:
    """Return a whole number of at least one."""
    if value is None:
        raise ValueError(message("parameter.missing", name=name))
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise TypeError(_wrong_type(name, "a whole number", value))
    if value < 1:
        raise ValueError(message("parameter.least", name=name, given=value))
    number = int(value)
    if most is not None and number > most:
        raise ValueError(message("parameter.most", name=name, most=most, given=value))
    return number


steps = partial(whole, most=MOST_STEPS)
"""A number of steps for which the 64 bits of exact sums suffice."""

declared_rows = partial(whole, most=MOST_ROWS)
"""A number of rows on which rules can rest."""


def rows_per_unit(value: Any) -> int:
    """Return k, the most rows that one unit has; 1 by default."""
    return 1 if value is None else whole("rows_per_unit", value, MOST_ROWS_PER_UNIT)


def choice(name: str, value: Any, options: tuple[str | None, ...]) -> Any:
    """Return a parameter that must be one of a few words."""
    if not any(value is option or value == option for option in options):
        known = ", ".join(map(repr, options))
        raise ValueError(message("parameter.choice", name=name, known=known, given=value))
    return value


def flag(name: str, value: Any) -> bool:
    """Return a yes-or-no parameter."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(_wrong_type(name, "True or False", value))
    return bool(value)


def schedule(name: str, value: Any, n_iter: int | None) -> Callable[[int], frozenset[int]]:
    """Return the iterations meant by "all", "last", every k-th (a number), or a list of them.

    Their number may follow later (None), from a rule: every k-th of fewer than k iterations is then
    the last, and a list is refused.
    """
    if isinstance(value, str):
        choice(name, value, ("all", "last"))
        return lambda n: frozenset(range(1, n + 1) if value == "all" else (n,))
    several = isinstance(value, Iterable)
    if several and n_iter is None:
        raise ValueError(message("parameter.iterations-unknown", name=name))
    listed = frozenset(whole(name, one) for one in (value if several else (value,)))
    if n_iter is not None and not (listed and max(listed) <= n_iter):
        raise ValueError(message("parameter.iterations", name=name, n_iter=n_iter))
    if several:
        return lambda _: listed
    (every,) = listed
    return lambda n: frozenset(range(min(every, n), n + 1, min(every, n)))


def _real(name: str, value: Any) -> float:
    if value is None:
        raise ValueError(message("parameter.no-default", name=name))
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(_wrong_type(name, "a number", value))
    return float(value)


def _wrong_type(name: str, wanted: str, value: Any) -> str:
    return message("parameter.type", name=name, wanted=wanted, given=type(value).__name__)


def declared_bounds(
    feature_bounds: Any, target_bounds: Any, names: Iterable[str] | None, zero_one: Mask
) -> tuple[Array, Array]:
    """Return (d × 2 feature bounds, the target's two bounds), each an increasing, finite pair.

    `zero_one` says of each feature whether its kind says (0, 1), so that nobody need declare it.
    """
    if isinstance(feature_bounds, Mapping):
        feature_bounds = _by_name(feature_bounds, names, zero_one)
    feature = np.tile((0.0, 1.0), (len(zero_one), 1))
    if feature_bounds is not None or not zero_one.all():
        pairs, n_numbers = _pairs("feature_bounds", feature_bounds), np.count_nonzero(~zero_one)
        if pairs.shape == feature.shape:  # one for each feature
            if (pairs[zero_one] != (0, 1)).any():
                raise ValueError(message("bounds.of-levels"))
            feature = pairs
        elif pairs.shape in ((2,), (n_numbers, 2)):  # one for all numbers, or each of them
            feature[~zero_one] = pairs
        else:
            raise ValueError(message("bounds.shape", n=n_numbers, shape=str(pairs.shape)))
    target = _pairs("target_bounds", target_bounds)
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
    """Return a pair for each feature; those of truths and levels may be left out."""
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


def names(name: str, value: Any) -> tuple[str, ...]:
    """Return names of coefficients: one, or a list of them; none for None."""
    given = (value,) if isinstance(value, str) else () if value is None else value
    if not isinstance(given, Sequence) or not all(isinstance(one, str) for one in given):
        raise TypeError(message("parameter.names", name=name))
    return tuple(given)
