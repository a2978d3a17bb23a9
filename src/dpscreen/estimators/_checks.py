"""Checks of parameters and rows. Errors name the parameter and never repeat a data value."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils.validation import validate_data

from dpscreen._core.arrays import Array

# What scikit-learn may say of an input without quoting it, and what we add. Anything else is
# replaced: its messages may hold a cell or a whole array.
_RESHAPE = (
    "Reshape your data: array.reshape(-1, 1) for one feature, array.reshape(1, -1) for one row."
)
_FILL = "Fill it by a rule that does not look at the data."
_HARMLESS = {
    r"Input [Xy] contains NaN": _FILL,
    r"Input [Xy] contains infinity or a value too large for dtype\('float64'\)": _FILL,
    r"Expected 2D array, got (?:1D|scalar) array instead": _RESHAPE,
    r"Expected 2D input, got input with shape \([\d, ]*\)": _RESHAPE,
    r"Found array with dim \d+, while dim <= 2 is required": "",
    r"Found array with \d+ (?:sample|feature)\(s\) \(shape=\([\d, ]*\)\) while a minimum of \d+ "
    r"is required": "",
    r"Found input variables with inconsistent numbers of samples: \[[\d, ]*\]": "",
    r"X has \d+ features, but \w+ is expecting \d+ features as input": "",
    r"y should be a 1d array, got an array of shape \([\d, ]*\) instead": "",
    r"(?:This )?\w+(?: estimator)? requires y to be passed, but the target y is None": "",
    r"Complex data not supported": "",
    r"(?:float\(\) )?argument must be a string or a (?:real )?number": "",
    r"Sparse data was passed(?: for [Xy])?, but dense data is required": "Use .toarray().",
}
_NAMES_OF_COLUMNS = "The feature names should match those that were passed during fit"
_NOT_NUMBERS = (
    "{where} must hold numbers only: found text or other objects. Encode categories as numbers "
    "first, by levels that are declared, not learnt."
)


def positive(name: str, value: Any) -> float:
    """Return a positive, finite parameter as float."""
    number = _real(name, value)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be a positive, finite number; got {value!r}.")
    return number


MOST_STEPS = 20_000
"""With more, whole-number weights from a random start could outgrow 64 bits."""
LEAST, MOST = 1e-60, 1e60
"""What radius, clips, norms and half-widths lie between: then no square and no ratio overflows."""


def size(name: str, value: Any) -> float:
    """Return a positive parameter with which float64 can compute."""
    number = positive(name, value)
    if not LEAST <= number <= MOST:
        raise ValueError(f"{name} must lie between {LEAST:g} and {MOST:g}; got {value!r}.")
    return number


def share(name: str, value: Any) -> float:
    """Return a parameter that lies strictly between 0 and 1."""
    number = _real(name, value)
    if not 0 < number < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1; got {value!r}.")
    return number


def whole(name: str, value: Any) -> int:
    """Return a whole number of at least one."""
    if value is None:
        raise ValueError(f"{name} must be given.")
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number; got {type(value).__name__}.")
    if value < 1:
        raise ValueError(f"{name} must be at least 1; got {value!r}.")
    return int(value)


def steps(name: str, value: Any) -> int:
    """Return a number of steps for which exact sums have room."""
    number = whole(name, value)
    if number > MOST_STEPS:
        raise ValueError(f"{name} must be at most {MOST_STEPS}; got {value!r}.")
    return number


MOST_ROWS_PER_UNIT = 2**20
"""With more, noise would drown anything that float64 can tell apart."""


def rows_per_unit(value: Any) -> int:
    """Return k, the most rows that one unit has; 1 if nothing is told."""
    number = 1 if value is None else whole("rows_per_unit", value)
    if number > MOST_ROWS_PER_UNIT:
        raise ValueError(f"rows_per_unit must be at most {MOST_ROWS_PER_UNIT}; got {value!r}.")
    return number


def choice(name: str, value: Any, options: tuple[str | None, ...]) -> Any:
    """Return a parameter that must be one of a few words."""
    if not any(value is option or value == option for option in options):
        known = ", ".join(repr(option) for option in options)
        raise ValueError(f"{name} must be one of {known}; got {value!r}.")
    return value


def flag(name: str, value: Any) -> bool:
    """Return a yes-or-no parameter."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False; got {type(value).__name__}.")
    return bool(value)


def iterations(name: str, value: Any, n_iter: int) -> frozenset[int]:
    """Return the iterations meant by "all", "last", every k-th (a number), or a list of them."""
    if isinstance(value, str):
        choice(name, value, ("all", "last"))
        return frozenset(range(1, n_iter + 1) if value == "all" else (n_iter,))
    if not isinstance(value, Iterable):
        every = whole(name, value)
        chosen = frozenset(range(every, n_iter + 1, every))
    else:
        chosen = frozenset(whole(name, one) for one in value)
    if not chosen or max(chosen) > n_iter:
        raise ValueError(f"{name} must name iterations between 1 and n_iter={n_iter}.")
    return chosen


def _real(name: str, value: Any) -> float:
    if value is None:
        raise ValueError(f"{name} must be given: no default is right for every data set.")
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number; got {type(value).__name__}.")
    return float(value)


@contextmanager
def refit(estimator: BaseEstimator) -> Iterator[None]:
    """Begin a fit with nothing left of an earlier one, and leave nothing of one that fails."""
    _forget(estimator)
    try:
        yield
    except BaseException:
        _forget(estimator)
        raise


def _forget(estimator: BaseEstimator) -> None:
    for name in [name for name in vars(estimator) if name.endswith("_") and name[0] != "_"]:
        delattr(estimator, name)


def rows_and_target(estimator: BaseEstimator, X: Any, y: Any) -> tuple[Array, Array]:
    """Return X and y as finite float64 arrays, or say what is wrong without quoting them."""
    X, y = _quietly(estimator, X, y=y, y_numeric=True)
    return X, y


def rows_alone(estimator: BaseEstimator, X: Any) -> Array:
    """Return the rows to predict for, checked like those of the fit."""
    return np.asarray(_quietly(estimator, X, reset=False), dtype=np.float64)


_SPARSE: dict[str, Any] = {"accept_sparse": ("csr", "csc", "coo"), "dtype": "numeric"}


def sparse_rows_and_target(
    estimator: BaseEstimator, X: Any, matrix: Any, y: Any
) -> tuple[Any, Array]:
    """Return a scipy matrix and y, checked; `X` is what has the names of its columns, if any."""
    matrix, y = _quietly(estimator, matrix, y=y, y_numeric=True, **_SPARSE)
    _quietly(estimator, X, skip_check_array=True)
    return matrix, y


def sparse_rows_alone(estimator: BaseEstimator, X: Any, matrix: Any) -> Any:
    """Return a scipy matrix of rows to predict for; `X` is what has the names of its columns."""
    _quietly(estimator, X, reset=False, skip_check_array=True)
    return _without_quoting(lambda: check_array(matrix, **_SPARSE), X)


def _quietly(estimator: BaseEstimator, X: Any, **options: Any) -> Any:
    _refuse_text(X, options.get("y"))
    options.setdefault("dtype", np.float64)

    def look() -> Any:
        found = validate_data(estimator, X, **options)
        return found if "y" not in options else (found[0], _target(found[1]))

    return _without_quoting(look, X)


def _without_quoting(look: Callable[[], Any], X: Any) -> Any:
    try:
        with np.errstate(all="ignore"):  # sums of huge values overflow while they are looked over
            return look()
    except Warning:
        raise
    except Exception as problem:  # whatever it is, its text must not get out
        kind = TypeError if isinstance(problem, TypeError) else ValueError
        message = _without_values(str(problem), X)
    # Raised out here so that the original is not even attached.
    raise kind(message)


def _target(y: Any) -> Array:
    """Return the target as float64, looked over once more: what was an object may be NaN now."""
    if y.dtype.kind not in "biuf":
        raise ValueError("text or dates")
    numbers = np.asarray(y, dtype=np.float64)
    assert_all_finite(numbers, input_name="y")
    return numbers


def _refuse_text(X: Any, y: Any) -> None:
    """Refuse text by its type, whether or not this text would pass for numbers."""
    columns = _columns_but(_numeric_or_object, X)
    if columns:
        raise ValueError(_NOT_NUMBERS.format(where=columns))
    for name, values in (("X", X), ("y", y)):
        if getattr(getattr(values, "dtype", None), "kind", "") in ("U", "S"):
            raise ValueError(_NOT_NUMBERS.format(where=name))


def _without_values(message: str, X: Any) -> str:
    if message.startswith(_NAMES_OF_COLUMNS):
        return message  # column names are public, and the list of them is what helps
    for pattern, advice in _HARMLESS.items():
        found = re.match(pattern, message)
        if found:
            return f"{found.group()}. {advice}".rstrip()
    return _NOT_NUMBERS.format(where=_columns_but(_numeric, X) or "X and y")


def _columns_but(fits: Callable[[Any], bool], X: Any) -> str:
    """Name the columns of a data frame whose type does not fit: names are public."""
    dtypes = getattr(X, "dtypes", None)
    columns = getattr(X, "columns", None)
    if dtypes is None or columns is None:
        return ""
    names = [str(name) for name, dtype in zip(columns, dtypes, strict=True) if not fits(dtype)]
    return f"X, column {', '.join(names)}," if names else ""


def _numeric(dtype: Any) -> bool:
    """Whether a numpy, pandas or polars type holds numbers."""
    if str(dtype).lower().startswith("bool"):
        return True
    kind = getattr(dtype, "kind", None)
    return kind in "iuf" if kind else bool(getattr(dtype, "is_numeric", lambda: False)())


def _numeric_or_object(dtype: Any) -> bool:
    """Whether a type may hold numbers: plain objects are looked at one by one, later."""
    return str(dtype).lower() == "object" or _numeric(dtype)


def bounds(
    feature_bounds: Any, target_bounds: Any, names: Iterable[str] | None, n_features: int
) -> tuple[Array, Array]:
    """Return (d × 2 feature bounds, the target's two bounds), each an increasing, finite pair."""
    feature = _feature_pairs(feature_bounds, names, n_features)
    target = _pairs("target_bounds", target_bounds)
    if target.shape != (2,):
        raise ValueError("target_bounds must be one pair (low, high).")
    return _increasing("feature_bounds", feature), _increasing("target_bounds", target)


def _feature_pairs(given: Any, names: Iterable[str] | None, n_features: int) -> Array:
    if isinstance(given, Mapping):
        given = _by_name(given, names)
    pairs = _pairs("feature_bounds", given)
    if pairs.shape == (2,):
        return np.tile(pairs, (n_features, 1))
    if pairs.shape != (n_features, 2):
        raise ValueError(
            f"feature_bounds must be one pair (low, high) or one pair for each of the "
            f"{n_features} features; got shape {pairs.shape}."
        )
    return pairs


def _by_name(given: Mapping[Any, Any], names: Iterable[str] | None) -> list[Any]:
    if names is None:
        raise ValueError("feature_bounds by name need a data frame with column names.")
    names = list(names)
    missing = [name for name in names if name not in given]
    unknown = [name for name in given if name not in names]
    if missing or unknown:
        raise ValueError(
            f"feature_bounds must name every column once: missing {missing}, unknown {unknown}."
        )
    return [given[name] for name in names]


def _pairs(name: str, given: Any) -> Array:
    if given is None:
        raise ValueError(
            f"{name} must be given: bounds are a public statement about what values are possible, "
            f"and are never learnt from the data."
        )
    try:
        return np.asarray(given, dtype=np.float64)
    except (ValueError, TypeError):
        raise ValueError(f"{name} must hold pairs of numbers (low, high).") from None


def _increasing(name: str, pairs: Array) -> Array:
    low, high = pairs[..., 0], pairs[..., 1]
    if not np.isfinite(pairs).all():
        raise ValueError(f"{name} must be finite.")
    if not ((high > low) & (high / 2 - low / 2 > 0)).all():
        raise ValueError(f"{name} must have low < high in every pair.")
    half = high / 2 - low / 2
    if not ((half >= LEAST) & (half <= MOST)).all():
        raise ValueError(f"{name} must be between {2 * LEAST:g} and {2 * MOST:g} wide.")
    return pairs
