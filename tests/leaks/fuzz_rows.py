"""Strategies for rows, targets and public parameters, and a noise source that counts its words."""

from __future__ import annotations

from contextlib import contextmanager
from unittest import mock

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dpscreen import ADPScreen, DPFrankWolfe, PrivateLasso, PrivateOLS, RNMScreen
from dpscreen.privacy import Accountant, SeededNoise

CLASSIC = (DPFrankWolfe, RNMScreen, ADPScreen)
EVERY_CLASS = (*CLASSIC, PrivateLasso, PrivateOLS)

IGNORED = (
    "ignore::dpscreen.BoundsWarning",
    "ignore::dpscreen.PublishedCalibrationWarning",
    "ignore::dpscreen.SeededNoiseWarning",
    "ignore::dpscreen.WeakDeltaWarning",
    "ignore:X does not have valid feature names",
)


class CountingNoise(SeededNoise):
    """Seeded noise that knows how many words were used: not how many were made in advance."""

    def __init__(self, seed):
        super().__init__(seed)
        self.used = 0

    def words(self, count):
        self.used += count
        return super().words(count)

    def word(self):
        before = self.used
        word = super().word()
        self.used = before + 1
        return word


@contextmanager
def words_per_release():
    """Yield a list that receives, for every release, how many words of noise it used."""
    used = []
    release = Accountant.release

    def counted(self, *args, **options):
        before = self.noise.used
        released = release(self, *args, **options)
        used.append(self.noise.used - before)
        return released

    with mock.patch.object(Accountant, "release", counted):
        yield used


# --- rows -----------------------------------------------------------------------------------------

EDGES = (0.0, -0.0, 5e-324, -2.3e-308, 1.0, -1.0, 1e308, -1.7976931348623157e308, 1e-200, 0.1)
FLOATS = st.sampled_from(EDGES) | st.floats(allow_nan=False, allow_infinity=False)
CELLS = {
    "float64": FLOATS,
    "float32": st.floats(allow_nan=False, allow_infinity=False, width=32),
    "float16": st.floats(allow_nan=False, allow_infinity=False, width=16),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint8": st.integers(0, 255),
    "bool": st.booleans(),
}
LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "strided": lambda a: np.repeat(a, 2, axis=0)[::2],
    "reversed": lambda a: a[::-1].copy()[::-1],
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "objects": lambda a: a.astype(object),
    "list": lambda a: a.tolist(),
    "frame": lambda a: pd.DataFrame(a, columns=[f"x{j}" for j in range(a.shape[1])]),
}
FILLS = ("free", "constant", "duplicate columns")


@st.composite
def rows(draw, *, n_rows=None, n_features=None):
    """Draw X in any layout and numeric type, and y, all finite."""
    n = draw(st.integers(1, 12)) if n_rows is None else n_rows
    d = draw(st.integers(1, 4)) if n_features is None else n_features
    kind = draw(st.sampled_from(["float64", *CELLS]))
    shape = {"free": (n, d), "constant": (1, 1), "duplicate columns": (n, 1)}
    cells = draw(
        arrays.arrays(kind, shape[draw(st.sampled_from(FILLS))], elements=CELLS[kind], fill=None)
    )
    X = LAYOUTS[draw(st.sampled_from(list(LAYOUTS)))](np.broadcast_to(cells, (n, d)).copy())
    if isinstance(X, np.ndarray):
        X.flags.writeable = draw(st.booleans())
    target = draw(st.sampled_from(["float64", "float32", "int64", "bool"]))
    return X, draw(arrays.arrays(target, n, elements=CELLS[target], fill=None))


def clipped(X, y, params):
    """Return the rows as a fit may see them: inside the public bounds."""
    low, high = np.asarray(params["feature_bounds"], dtype=np.float64).T
    X = np.clip(np.asarray(X, dtype=np.float64), low, high)
    return X, np.clip(np.asarray(y, dtype=np.float64), *params["target_bounds"])


# --- parameters -----------------------------------------------------------------------------------


def size(low, high):
    """Draw a positive number whose decimal exponent lies between two."""
    return st.floats(low, high).map(lambda exponent: 10.0**exponent)


@st.composite
def pair(draw, *, reach):
    """Draw public bounds of any width up to 10^±reach, around zero or far from it."""
    half = draw(size(-reach, reach))
    # Not farther than leaves the two ends apart.
    middle = draw(st.sampled_from([0.0, 1.0, -1.0, -1e3, 1e12])) * half
    low, high = middle - half, middle + half
    return low, high


@st.composite
def classic_params(draw, kind, n_features, *, reach=59):
    """Draw valid parameters of one of the three estimators of the paper."""
    published = draw(st.booleans())
    params = {
        "radius": draw(size(-reach, reach)),
        "n_iter": draw(st.integers(1, 5)),
        "calibration": "published" if published else "proven",
        "start": draw(st.sampled_from([None, "zero", "random"])),
        **draw(common_params(n_features, reach=reach)),
    }
    if kind is DPFrankWolfe and not published:
        params["clip"] = draw(st.none() | size(-reach, reach))
    if kind is not DPFrankWolfe:
        params["screening_share"] = draw(st.floats(1e-3, 0.999))
        params["screening_delta_share"] = draw(st.floats(1e-3, 0.999))
    if kind is ADPScreen:
        params["screen_at"] = draw(st.sampled_from(["all", "last", 1, [1]]))
    return params


@st.composite
def lasso_params(draw, n_features, *, reach=59):
    """Draw valid parameters of PrivateLasso; those known to fail are in `test_extreme_numbers`."""
    params = draw(common_params(n_features, reach=reach))
    solver = draw(st.sampled_from(["auto", "stagewise", "frank-wolfe"]))
    n_rows = draw(st.none() | st.integers(1, 10**9))
    some = st.integers(1, 8)  # a budget for a thousand million rows pays for 10^5 steps
    return params | {
        "solver": solver,
        "standardize": draw(st.sampled_from([True, False, "auto"])),
        "radius": draw(st.none() | size(-reach, reach)),
        "n_iter": draw(some if n_rows and n_rows > 10**6 else st.none() | some),
        "clip": draw(st.none() | size(-59, 59)),
        "row_norm": draw(st.none() | size(-3, 3)),
        "max_features": draw(st.none() | st.integers(1, 5)),
        "n_rows": n_rows,
    }


@st.composite
def ols_params(draw, n_features, *, reach=59):
    """Draw valid parameters of PrivateOLS."""
    return draw(common_params(n_features, reach=reach)) | {
        "quality": draw(st.booleans()),
        "n_rows": draw(st.integers(10**6, 10**9)),  # a count of so few rows is refused
    }


@st.composite
def common_params(draw, n_features, *, reach):
    """Draw budget and bounds."""
    return {
        "epsilon": draw(size(-3, 3)),
        "delta": draw(size(-12, -0.302)),
        "feature_bounds": [draw(pair(reach=reach)) for _ in range(n_features)],
        "target_bounds": draw(pair(reach=reach)),
        "fit_intercept": draw(st.booleans()),
    }


def params_of(kind, n_features):
    """Draw valid parameters of any private estimator."""
    if kind is PrivateLasso:
        return lasso_params(n_features)
    if kind is PrivateOLS:
        return ols_params(n_features)
    return classic_params(kind, n_features)
