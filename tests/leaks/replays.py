"""Every estimator with its options, rows of any kind, and all that a fit shows, for replays."""

from __future__ import annotations

import io
import json
import logging
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from listening import listening
from sklearn.base import clone

from dpscreen import (
    ADPScreen,
    DPFrankWolfe,
    FreeScreen,
    PrivateLasso,
    PrivateLogisticLasso,
    PrivateLogit,
    PrivateOLS,
    PrivatePoisson,
    PrivatePoissonLasso,
    RNMScreen,
)
from dpscreen.models import peers
from dpscreen.models.page import render_model_page
from dpscreen.privacy import (
    DiscreteGaussian,
    GaussianVector,
    LaplaceNoisyMax,
    NoisyMax,
    SecureNoise,
    SignedNoisyMax,
    ThresholdedNoisyMin,
    named_seed,
)
from dpscreen.privacy.replay import moves, record, replay
from dpscreen.privacy.sampling import Signed

QUIET = [
    pytest.mark.filterwarnings(f"ignore::dpscreen.{name}Warning")
    for name in ("SeededNoise", "WeakDelta", "Bounds", "PublishedCalibration")
]
QUIET.append(pytest.mark.filterwarnings("ignore:X does not have valid feature names"))
logging.getLogger("numba").setLevel(logging.WARNING)  # it logs while it compiles, once

# --- estimators and their options -----------------------------------------------------------------

PUBLIC = {
    "epsilon": 2.0,
    "delta": 1e-6,
    "feature_bounds": (-3, 2),
    "target_bounds": (-4, 6),
    "random_state": 7,
}
WALK = {"radius": 3.0, "n_iter": 6}
LOOSE = {"feature_bounds": (-1e4, 3e4), "target_bounds": (-1e5, 2e4)}
EVEN = {"feature_bounds": (-3, 3), "target_bounds": (-5, 5)}
MANY_ROWS = {"n_rows": 6_000}

LASSO = {
    "defaults": {},
    "frank-wolfe": {"solver": "frank-wolfe"},
    "frank-wolfe, max_features, no intercept": {
        **{"solver": "frank-wolfe", "max_features": 1, "fit_intercept": False}
    },
    "auto with a row norm": {"row_norm": 0.5, **MANY_ROWS},
    "auto with a row norm, 60 features": {"row_norm": 2.0, "n_rows": 100, "epsilon": 10.0},
    "standardized": {"standardize": True},
    "not standardized, no intercept": {"standardize": False, "fit_intercept": False},
    "even bounds": EVEN | {"n_rows": 50},
    "even bounds, few rows": EVEN | {"epsilon": 0.5},
    "loose bounds": LOOSE,
    "loose bounds, many rows": LOOSE | MANY_ROWS,
    "a pair of bounds each": {"feature_bounds": [(-1, 1), (0, 1), (-50, 3)]},
    "max_features": {"max_features": 1, **MANY_ROWS},
    "stagewise, max_features": {"solver": "stagewise", "max_features": 1, **MANY_ROWS},
    "all choices": {"radius": 2.0, "n_iter": 9, "clip": 0.5},
    "all choices, no intercept": {
        **{"radius": 2.0, "n_iter": 40, "fit_intercept": False, "standardize": False},
        **{"epsilon": 0.5},
    },
    "n_rows, small": {"n_rows": 50},
    "n_rows, large": {"n_rows": 10**6},
    "without quality": {"quality": False},
    "all choices, without quality": {"radius": 2.0, "n_iter": 9, "clip": 0.5, "quality": False},
    "large budget, without quality": {"epsilon": 300.0, "quality": False, "standardize": False},
    "split": {"inference": "split", **MANY_ROWS},
    "split, standardized, no intercept": {
        **{"inference": "split", "standardize": True, "fit_intercept": False, "epsilon": 40.0}
    },
    "split, frank-wolfe": {"inference": "split", "solver": "frank-wolfe", **MANY_ROWS},
    "split, large budget": {"inference": "split", "epsilon": 300.0},
    "split, refused": {"inference": "split", "epsilon": 0.05},
    "rows_per_unit": {"rows_per_unit": 3},
    "small budget": {"epsilon": 0.05},
    "large budget": {"epsilon": 300.0},
    "stagewise, large budget": {"solver": "stagewise", "epsilon": 300.0},
    "split, stagewise": {"inference": "split", "solver": "stagewise", **MANY_ROWS},
    "loose bounds, large budget": {**LOOSE, "epsilon": 300.0},
}
SCREENED = {
    "defaults": {},
    "screened": {"n_iter": 12},
    "screened, 60 features": {"n_iter": 12, "standardize": False, "epsilon": 300.0},
    "screened, no intercept": {"n_iter": 20, "fit_intercept": False, "quality": False},
    "screened, rows_per_unit": {"n_iter": 12, "rows_per_unit": 3},
    "split": {"inference": "split", "n_iter": 12, **MANY_ROWS},
}
WALKS = {
    "defaults": {},
    "no intercept, tiny radius": {"fit_intercept": False, "radius": 0.01},
    "random start, large radius": {"start": "random", "radius": 500.0},
    "rows_per_unit": {"rows_per_unit": 3, "epsilon": 20.0},
    "published": {"calibration": "published"},
    "by rule": {"radius": None, "n_iter": None},
    "by rule, no clip": {"radius": None, "n_iter": None, "clip": math.inf, "n_rows": 6_000},
}
CLIPS = {"clip": {"clip": 0.2}, "clip, rows_per_unit": {"clip": 50.0, "rows_per_unit": 2}}
SCREENS = {"larger share": {"screening_share": 0.5}}
WHEN = {"at the last": {"screen_at": "last"}, "at listed": {"screen_at": [2, 5]}}
SCALING = {
    "defaults": {},
    "row_norm": {"row_norm": 0.9},
    "standardized, loose bounds": {**LOOSE, "standardize": True},
    "not standardized, no intercept": {"standardize": False, "fit_intercept": False},
    "n_rows": MANY_ROWS,
}
OLS = {
    "defaults": {},
    "many rows": MANY_ROWS,
    "loose bounds, large budget": {**LOOSE, "epsilon": 300.0},
    "no intercept, without quality": {"fit_intercept": False, "quality": False, "epsilon": 40.0},
    "small budget": {"epsilon": 0.05},
    "interest": {"interest": ["x0"], "required": ["x1"], "epsilon": 40.0},
}
OUTCOMES = {
    "defaults": {},
    "all features at once": {"n_rows": 500},
    "many rows": MANY_ROWS,
    "even bounds": {"feature_bounds": (-3, 3)},
    "loose bounds": {"feature_bounds": (-1e4, 3e4)},
    "max_features, no intercept": {"max_features": 1, "fit_intercept": False, "epsilon": 40.0},
    "not standardized, without quality": {"standardize": False, "quality": False},
    "rows_per_unit": {"rows_per_unit": 3},
    "large budget": {"epsilon": 300.0},
    "split": {"inference": "split", **MANY_ROWS},
    "split, no intercept": {"inference": "split", "fit_intercept": False, "epsilon": 40.0},
    "split, path, large budget": {"inference": "split", "n_iter": 9, "epsilon": 300.0},
    "split, refused": {"inference": "split", "epsilon": 0.05},
}


COUNTS = {"target_bounds": (0, 6)}
RATES = {
    "defaults": COUNTS,
    "many rows": COUNTS | MANY_ROWS,
    "loose bounds, large budget": {
        **{"feature_bounds": LOOSE["feature_bounds"], "target_bounds": (0, 2e4)},
        "epsilon": 300.0,
    },
    "an offset": COUNTS | {"offset": 1, "epsilon": 40.0},
    "an offset, interest": COUNTS
    | {"offset": 1, "interest": ["x2"], "required": ["x0"], "epsilon": 40.0},
    "no intercept, without quality": COUNTS
    | {"fit_intercept": False, "quality": False, "epsilon": 40.0},
    "small budget": COUNTS | {"epsilon": 0.05},
}
SPARSE_RATES = {
    "defaults": COUNTS,
    "all features at once": COUNTS | {"n_rows": 500},
    "large budget": COUNTS | {"epsilon": 300.0},
    "an offset, max_features": COUNTS | {"offset": 1, "max_features": 1, "epsilon": 40.0},
    "split, large budget": COUNTS | {"inference": "split", "epsilon": 300.0},
}


class OfSigns(PrivateLogisticLasso):
    """`PrivateLogisticLasso` of the targets' signs, so that rows of any style have outcomes."""

    def fit(self, X: Any, y: Any = None, **more: Any) -> Any:
        return super().fit(X, np.where(np.isfinite(y), y > 0, y), **more)


class EveryTable(PrivateOLS):
    """`PrivateOLS` that refuses no table: all that it releases is attacked, on few rows."""

    def _refuse(self, *_: Any) -> None:
        """Refuse nothing; what is refused is attacked in tests/models/test_refused_table.py."""


class OddsOfSigns(PrivateLogit):
    """`PrivateLogit` of the targets' signs, which refuses no table, either."""

    _refuse = EveryTable._refuse

    def fit(self, X: Any, y: Any = None, **more: Any) -> Any:
        return super().fit(X, np.where(np.isfinite(y), y > 0, y), **more)


class EveryRates(PrivatePoisson):
    """`PrivatePoisson` that refuses no table."""

    _refuse = EveryTable._refuse


OfSigns.__name__ = PrivateLogisticLasso.__name__  # which model files know
OddsOfSigns.__name__ = PrivateLogit.__name__
EveryTable.__name__ = PrivateOLS.__name__
EveryRates.__name__ = PrivatePoisson.__name__


@dataclass(frozen=True)
class Case:
    """An estimator with one setting of its options."""

    estimator: Callable[..., Any]
    options: Mapping[str, Any]
    name: str

    def model(self, **more: Any) -> Any:
        """Return a new, unfitted model."""
        given = PUBLIC | dict(self.options) | more
        taken = set(self.estimator().get_params())
        return self.estimator(**{name: one for name, one in given.items() if name in taken})

    def rows(self, style: str, seed: int, n: int) -> tuple[Any, Any]:
        """Return rows of a style, with as many features as the case is for."""
        return styled_rows(style, seed, n, 60 if "60 features" in self.name else FEATURES)

    @property
    def rows_per_unit(self) -> int:
        """Return k."""
        return int(self.options.get("rows_per_unit", 1))

    @property
    def published(self) -> bool:
        """Whether the number of rows is disclosed, and no cost claimed."""
        return self.options.get("calibration") == "published"

    @property
    def splits(self) -> bool:
        """Whether coins split the rows."""
        return self.options.get("inference") == "split" and "refused" not in self.name

    @property
    def takes_sparse(self) -> bool:
        """Whether sparse rows can be fitted."""
        return bool(self.model().__sklearn_tags__().input_tags.sparse)

    def __str__(self) -> str:
        return self.name


ESTIMATORS: tuple[tuple[Callable[..., Any], dict[str, Any], dict[str, dict[str, Any]]], ...] = (
    # A new estimator is one line here: what it needs always, and its options.
    (PrivateLasso, {}, LASSO),
    (FreeScreen, {}, SCREENED),
    (EveryTable, {}, OLS),
    (OfSigns, {}, OUTCOMES),
    (OddsOfSigns, {}, OLS),
    (EveryRates, {}, RATES),
    (PrivatePoissonLasso, {}, SPARSE_RATES),
    (DPFrankWolfe, WALK, WALKS | CLIPS),
    (RNMScreen, WALK, WALKS | SCREENS | WHEN),
    (ADPScreen, WALK | {"screen_at": "all"}, WALKS | SCREENS | WHEN),
    *((getattr(peers, name), {}, SCALING) for name in peers.__all__),
)
CASES = [
    Case(estimator, needed | options, f"{estimator.__name__}: {name}")
    for estimator, needed, settings in ESTIMATORS
    for name, options in settings.items()
]
DEFAULTS = [case for case in CASES if case.name.endswith((": defaults", ": split"))]

# --- rows -----------------------------------------------------------------------------------------

FEATURES = 3
TINY = (0.0, -0.0, 5e-324, -5e-324, -2.3e-308, 1e-200, 0.1)
HUGE = (1e308, -1.7976931348623157e308, -(2.0**63), 2.0**63 - 1024, 2.0**53 + 1)
EDGES = np.array([*TINY, *HUGE, 1.0, -1.0, -3.0, 2.0, np.nextafter(2, 3), 4.0, 6.0])
STYLES: dict[str, Callable[[np.random.Generator, int, int], Any]] = {
    "normal": lambda rng, n, d: rng.normal(size=(n, d)),
    "uniform and wide": lambda rng, n, d: rng.uniform(-9, 9, size=(n, d)),
    "signs": lambda rng, n, d: rng.choice([-1.0, 1.0], size=(n, d)),
    "zeros and ones": lambda rng, n, d: rng.integers(0, 2, size=(n, d)).astype(float),
    "mostly zero": lambda rng, n, d: rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.1),
    "one row again and again": lambda rng, n, d: np.tile(rng.normal(size=(1, d)), (n, 1)),
    "one column again and again": lambda rng, n, d: rng.normal(size=(n, 1)) * np.ones((1, d)),
    "constant": lambda rng, n, d: np.full((n, d), rng.choice(EDGES)),
    "edges": lambda rng, n, d: rng.choice(EDGES, size=(n, d)),
    "far away": lambda rng, n, d: 1e4 + rng.normal(size=(n, d)),
}


def styled_rows(style: str, seed: int, n: int, d: int = FEATURES) -> tuple[Any, Any]:
    """Return rows of one style, and a target of their style or made of them."""
    rng = np.random.default_rng(seed)
    cells = STYLES[style](rng, n, d + 1)
    X, y = cells[:, :d], cells[:, d]
    return X, (y if seed % 2 else X[:, 0] / 2 - X[:, -1] / 4)


def chosen(name: str, kinds: Any, sizes: Sequence[int]) -> tuple[str, int, int]:
    """Return a kind of rows, a seed and a number, the same for the same name."""
    rng = np.random.default_rng(named_seed(name))
    return str(rng.choice(sorted(kinds))), int(rng.integers(2**32)), int(rng.choice(sizes))


def examples(count: int) -> settings:
    """Return how many examples are tried, however slow they are."""
    return settings(max_examples=count, suppress_health_check=list(HealthCheck))


def rows_to_add(rng: np.random.Generator, X: Any, y: Any, count: int) -> Any:
    """Return rows with their targets: edges, copies of others, all alike, or as large as can be."""
    added = rng.choice(EDGES, size=(count, X.shape[1] + 1))
    match rng.integers(4):
        case 0:
            return rng.choice([-1e300, 1e300], size=added.shape)
        case 1:
            return np.column_stack((X, y))[rng.integers(len(X), size=count)]
        case 2:  # so that nothing cancels
            return np.repeat(added[:1], count, axis=0)
    return added


@dataclass(frozen=True)
class Neighbours:
    """Rows, the same rows and up to k more, and the coins of all of them."""

    fewer: tuple[Any, Any]
    more: tuple[Any, Any]
    coins_of_fewer: Any
    coins_of_more: Any

    @classmethod
    def of(cls, rows: tuple[Any, Any], seed: int, *, at_most: int = 1) -> Neighbours:
        """Add rows of any kind anywhere: edges, copies of others, or as large as can be."""
        rng = np.random.default_rng(seed)
        added = rows_to_add(rng, *rows, int(rng.integers(1, at_most + 1)))
        (X, y), count = rows, len(added)
        at = rng.integers(len(X) + 1, size=count)
        coins = rng.random(len(X)) < rng.choice([0.0, 0.5, 1.0])
        more = np.insert(X, at, added[:, :-1], axis=0), np.insert(y, at, added[:, -1])
        return cls(rows, more, coins, np.insert(coins, at, rng.random(count) < 0.5))

    def swapped(self) -> Neighbours:
        """Return the same pair, rows being removed."""
        return Neighbours(self.more, self.fewer, self.coins_of_more, self.coins_of_fewer)


def moves_between(model: Any, tables: Any, *, coins: Any = (None, None), steer: Any = None) -> Any:
    """Fit two tables under one transcript, and return how far every input moved."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with record(coins=coins[0], steer=steer) as before:
            clone(model).fit(*tables[0], check=False)
        with replay(before, coins=coins[1]) as after:
            clone(model).fit(*tables[1], check=False)
    return moves(before, after)


def moved_too_far(case: Case, pair: Neighbours, steer: Any, wrap: Any = None) -> list[str]:
    """Name the inputs that neighbouring rows move beyond what is booked.

    Of rows that coins split, those of one half alone may move.
    """
    tables = [(wrap(X) if wrap else X, y) for X, y in (pair.fewer, pair.more)]
    coins = [pair.coins_of_fewer], [pair.coins_of_more]
    found = moves_between(case.model(), tables, coins=coins, steer=steer)
    counted = {move.account for move in found if move.purpose == "the number of rows"}
    touched = {move.account for move in found if move.part and case.splits} - counted
    both = ["both halves moved"] if len(touched) > 1 else []
    return both + [f"{move.purpose}: {move.part}" for move in found if not move.within]


def wild(seed: int, share: float) -> Callable[[str, Any, int], Any] | None:
    """Return who forces releases that noise would not make in a lifetime, in a share of cases."""
    rng = np.random.default_rng(seed)

    def steer(_purpose: str, mechanism: Any, size: int) -> Any:
        if rng.random() >= share:
            return None
        match mechanism:
            case NoisyMax() | LaplaceNoisyMax() | ThresholdedNoisyMin():
                return int(rng.integers(size))
            case SignedNoisyMax():
                return Signed(int(rng.integers(size)), int(rng.choice([-1, 1])))
            case DiscreteGaussian() | GaussianVector():
                unit = getattr(mechanism, "unit", 2.0**-10)
                return np.rint(rng.normal(size=size) * 10 ** rng.uniform(-2, 6)) * unit
        raise TypeError(f"nothing is known to force on {mechanism.name}")

    return steer if share else None


# --- all that a fit shows -------------------------------------------------------------------------


def shown_by_fit(model: Any, *rows: Any, words: bool = True, **options: Any) -> dict[str, Any]:
    """Fit, and return all that anybody can see of it, with or without what is made of its file.

    Rows are not checked first: that a check stops is for the curator alone.
    """
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed), listening(ending=()) as told:
        model.fit(*rows, check=False, **options)
    seen = {f"attribute {name}": bytes_of(value) for name, value in vars(model).items()}
    said = words_of(model) if words else {}
    return {"printed": printed.getvalue(), "told": told, "file": file_of(model), **seen, **said}


def words_of(model: Any) -> dict[str, Any]:
    """Return all that a fitted model says of itself."""
    statement = replace(model.privacy_, secure_noise=True, noise=SecureNoise.description)
    model = copy(model)
    model.privacy_ = statement  # as if nobody had watched: so it would be handed out
    summary, tiers = model.summary(), (1, 2, 3) if statement.holds else ()
    names = getattr(model, "feature_names_in_", None)
    probe = np.linspace(-5, 5, 3 * model.n_features_in_).reshape(3, -1)
    return {
        "summary": (str(summary), summary._repr_html_(), summary.frame.to_csv()),
        "explain": model.explain(),
        "card": model.to_model_card(),
        "registry": [json.dumps(model.to_registry_entry(tier=tier)) for tier in tiers],
        "statement": (str(model.privacy_), json.dumps(model.privacy_.to_dict())),
        "page": render_model_page(model),
        "predictions": "" if names is not None else bytes_of(model.predict(probe)),
    }


def file_of(model: Any) -> bytes:
    """Return the model file."""
    from dpscreen.models.file import encoded

    return encoded(model.released())


def bytes_of(value: Any) -> Any:
    """Return a value as bytes and texts that are equal only if nothing can tell it from another.

    0.0 and −0.0 differ here, and so do types; what is not known is refused, not passed over.
    """
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.dtype.str, value.shape, value.tobytes()
    if value is None or isinstance(value, bool | int | str | np.generic):
        return type(value).__name__, repr(value)
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, Mapping):
        return [(bytes_of(key), bytes_of(one)) for key, one in value.items()]
    if isinstance(value, tuple | list | np.ndarray):
        return type(value).__name__, [bytes_of(one) for one in value]
    if isinstance(value, frozenset):
        return type(value).__name__, sorted(map(repr, value))
    if is_dataclass(value):
        told = {one.name: bytes_of(getattr(value, one.name)) for one in fields(value)}
        return type(value).__name__, told
    raise TypeError(f"a {type(value).__name__} is not known here")


def lines_of(ledger: Any) -> dict[str, Any]:
    """Return all that a ledger tells, but for the time."""
    told = ledger.document()
    del told["created"], told["head"]
    for line in told["reservations"]:
        del line["at"], line["hash"]
    return told


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Name what two fits show differently."""
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))
