"""Whatever finite numbers rows and parameters hold, a fit ends and every release has its noise.

Rows count only as clipped, and neighbouring rows meet the same warnings and errors, in the same
order. Parameters with which float64 cannot compute are refused for their own sake: whatever the
rows, before noise is drawn and before anything is booked.
"""

from __future__ import annotations

import warnings
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from replays import QUIET

from dpscreen import (
    ADPScreen,
    BoundsWarning,
    DPFrankWolfe,
    PrivacyLedger,
    PrivateLasso,
    PrivateOLS,
    RNMScreen,
)
from dpscreen.privacy import ZCDP, Accountant, Budget
from tools.noise import CountingNoise

pytestmark = QUIET
CLASSIC, OURS = (DPFrankWolfe, RNMScreen, ADPScreen), (PrivateLasso, PrivateOLS)
many = settings(max_examples=20, suppress_health_check=list(HealthCheck))
each_class = pytest.mark.parametrize("kind", CLASSIC + OURS, ids=lambda kind: kind.__name__)

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


@st.composite
def rows(draw):
    """Draw X in any layout and numeric type, free, constant or of equal columns; and y."""
    n, d, kind = draw(st.integers(1, 12)), draw(st.integers(1, 4)), draw(st.sampled_from([*CELLS]))
    shape = draw(st.sampled_from([(n, d), (1, 1), (n, 1)]))
    cells = draw(arrays.arrays(kind, shape, elements=CELLS[kind], fill=None))
    X = LAYOUTS[draw(st.sampled_from([*LAYOUTS]))](np.broadcast_to(cells, (n, d)).copy())
    if isinstance(X, np.ndarray):
        X.flags.writeable = draw(st.booleans())
    # Truths in a frame have bounds (0, 1), and others are refused.
    assume("bool" not in map(str, getattr(X, "dtypes", ())))
    target = draw(st.sampled_from(["float64", "float32", "int64", "bool"]))
    return X, draw(arrays.arrays(target, n, elements=CELLS[target], fill=None))


# --- parameters -----------------------------------------------------------------------------------


def size(low, high):
    """Draw a positive number whose decimal exponent lies between two."""
    return st.floats(low, high).map(lambda exponent: 10.0**exponent)


@st.composite
def ends(draw):
    """Draw public bounds of any width, around zero or as far as leaves the two ends apart."""
    half = draw(size(-59, 59))
    middle = draw(st.sampled_from([0.0, 1.0, -1.0, -1e3, 1e12])) * half
    return middle - half, middle + half


ANY_SIZE, SHARE, FEW = size(-59, 59), st.floats(1e-3, 0.999), st.integers(1, 8)
PROVEN, PUBLISHED = ({"calibration": st.just(one)} for one in ("proven", "published"))
STEPS = {
    **{"radius": ANY_SIZE, "n_iter": st.integers(1, 5)},
    "start": st.sampled_from([None, "zero", "random"]),
}
SCREENING = STEPS | {"screening_share": SHARE, "screening_delta_share": SHARE}
WHEN = {"screen_at": st.sampled_from(["all", "last", 1, [1]])}
LASSO = {
    "solver": st.sampled_from(["auto", "stagewise", "frank-wolfe"]),
    "standardize": st.sampled_from([True, False, "auto"]),
    "radius": st.none() | ANY_SIZE,
    "clip": st.none() | ANY_SIZE,
    "row_norm": st.none() | size(-3, 3),
    "max_features": st.none() | st.integers(1, 5),
}
OPTIONS = {
    DPFrankWolfe: [STEPS | PUBLISHED, STEPS | PROVEN | {"clip": st.none() | ANY_SIZE}],
    RNMScreen: [SCREENING | PUBLISHED, SCREENING | PROVEN],
    ADPScreen: [SCREENING | WHEN | PUBLISHED, SCREENING | WHEN | PROVEN],
    PrivateLasso: [
        LASSO | {"n_rows": st.none() | st.integers(1, 10**6), "n_iter": st.none() | FEW},
        # A budget for a thousand million rows pays for 10^5 steps.
        LASSO | {"n_rows": st.integers(10**6, 10**9), "n_iter": FEW},
    ],
    # A count of fewer rows is refused.
    PrivateOLS: [{"quality": st.booleans(), "n_rows": st.integers(10**6, 10**9)}],
}


def params_of(kind, n_features):
    """Draw valid parameters of an estimator."""
    common = {
        "epsilon": size(-3, 3),
        "delta": size(-12, -0.302),
        "feature_bounds": st.lists(ends(), min_size=n_features, max_size=n_features),
        "target_bounds": ends(),
        "fit_intercept": st.booleans(),
    }
    return st.one_of(*(st.fixed_dictionaries(common | own) for own in OPTIONS[kind]))


# --- any rows -------------------------------------------------------------------------------------


def fitted(kind, params, X, y):
    """Fit, and return the model and how many words of noise every release used."""
    used, release = [], Accountant.release

    def counted(self, *args, **options):
        before = self.noise.used
        released = release(self, *args, **options)
        used.append(self.noise.used - before)
        return released

    with mock.patch.object(Accountant, "release", counted):
        return kind(**params, random_state=CountingNoise(1)).fit(X, y), used


def clipped(X, y, features, target):
    """Return the rows as a fit may see them: inside the bounds."""
    X = np.clip(np.asarray(X, dtype=np.float64), *np.asarray(features, dtype=np.float64).T)
    return X, np.clip(np.asarray(y, dtype=np.float64), *target)


def widest(model, params):
    """Return the hull of public and released bounds, which may be wider."""
    public = np.asarray(params["feature_bounds"]), np.asarray(params["target_bounds"])
    released = (model.feature_bounds_, model.target_bounds_) if isinstance(model, OURS) else public
    return (
        np.stack((np.minimum(a, b)[..., 0], np.maximum(a, b)[..., 1]), axis=-1)
        for a, b in zip(public, released, strict=True)
    )


def expected_releases(model):
    if isinstance(model, ADPScreen):
        return model.n_iter_ + (model.n_iter_ if model.screen_at in ("all", 1) else 1)
    return model.n_iter_ * (2 if isinstance(model, RNMScreen) else 1)


@each_class
@given(st.data())
@many
def test_a_fit_ends_with_noise_and_the_whole_budget_and_sees_clipped_rows_only(kind, data):
    X, y = data.draw(rows(), label="rows")
    params = data.draw(params_of(kind, np.shape(X)[1]), label="params")
    model, used = fitted(kind, params, X, y)
    seen = clipped(X, y, *widest(model, params))
    assert model.coef_.shape == (np.shape(X)[1],)
    bounds = getattr(model, "feature_bounds_", params["feature_bounds"])
    inside, _ = clipped(*seen, bounds, params["target_bounds"])
    for found in (model.coef_, model.intercept_, model.predict(inside)):
        assert np.isfinite(found).all()
    assert min(used) >= 1
    assert sum(record.count for record in model.privacy_.mechanisms) == len(used)
    assert all(record.scale > 0 for record in model.privacy_.mechanisms)
    assert kind in OURS or len(used) == expected_releases(model)
    if model.privacy_.calibration == "proven":
        granted = ZCDP.within(Budget(params["epsilon"], params["delta"]))
        assert float(granted) * (1 - 1e-9) <= model.privacy_.rho <= float(granted)
    assert not model.privacy_.holds  # seeded noise never holds
    again, _ = fitted(kind, params, *seen)
    # A -0.0 in the rows makes no other release than 0.0, so equality of numbers is asked for.
    assert np.array_equal(again.coef_, model.coef_)
    assert (again.intercept_, again.privacy_) == (model.intercept_, model.privacy_)


# --- neighbours -----------------------------------------------------------------------------------


def events(kind, params, X, y):
    """Return the types of all that a fit and a prediction warn of or raise, in order."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        raised = []
        try:
            model, _ = fitted(kind, params, X, y)
            model.predict(np.zeros((1, X.shape[1])))
        except Exception as problem:
            raised = [type(problem)]
    # Of bounds released numbers tell, which neighbours move (test_other_rows.py).
    return [one.category for one in caught if one.category is not BoundsWarning] + raised


@each_class
@given(st.data())
@settings(parent=many, max_examples=30)
def test_neighbours_warn_and_fail_alike(kind, data):
    """Rows of which one was added, removed or changed; parameters that are valid, or one not."""
    n, d = data.draw(st.integers(2, 9)), data.draw(st.integers(1, 3))
    one = data.draw(arrays.arrays(np.float64, (n, d + 1), elements=FLOATS))
    row, place = data.draw(arrays.arrays(np.float64, d + 1, elements=FLOATS)), n // 2
    removed = np.delete(one, place, axis=0)
    changed = np.insert(removed, place, row, axis=0)
    other = data.draw(st.sampled_from([np.insert(one, place, row, axis=0), removed, changed]))
    params = data.draw(params_of(kind, d), label="params")
    params["delta"] = min(params["delta"], 1e-6)  # far below 1/n: the one comparison with n
    if data.draw(st.booleans()):
        name = data.draw(st.sampled_from(sorted(params)))
        params[name] = data.draw(st.sampled_from([None, -1, "x", np.nan, (1, 0), [], object()]))
    met = [events(kind, params, table[:, :-1], table[:, -1]) for table in (one, other)]
    assert met[0] == met[1]


# --- parameters at the ends of float64 ------------------------------------------------------------

BASE = {"epsilon": 1.0, "delta": 1e-6, "feature_bounds": (-1, 1), "target_bounds": (-1, 1)}
WALK = BASE | {"radius": 1.0, "n_iter": 3}
WIDEST, NARROW = (-1.7e308, 1.7e308), (0.0, 1e-320)
EXTREMES = {
    "coefficients overflow": (DPFrankWolfe, WALK | {"feature_bounds": NARROW}),
    "a narrow feature": (RNMScreen, WALK | {"feature_bounds": (0, 1e-300), "radius": 1e20}),
    "a wide target": (DPFrankWolfe, WALK | {"target_bounds": WIDEST}),
    "a narrow target": (DPFrankWolfe, WALK | {"target_bounds": NARROW, "radius": 1e-310}),
    "a tiny clip": (DPFrankWolfe, WALK | {"clip": 1e-300}),
    "a huge radius": (RNMScreen, WALK | {"radius": 1e200}),
    "a huge radius, all scores": (ADPScreen, WALK | {"radius": 1e200}),
    "a tiny radius": (RNMScreen, WALK | {"radius": 1e-230, "target_bounds": (-1e200, 1e200)}),
    "a tiny budget": (RNMScreen, WALK | {"epsilon": 1e-9, "delta": 1e-12}),
    "a tiny budget, all scores": (ADPScreen, WALK | {"epsilon": 1e-6, "delta": 1e-12}),
    "lasso, narrow target": (PrivateLasso, BASE | {"target_bounds": (0, 1e-304)}),
    "lasso, wide target": (PrivateLasso, BASE | {"target_bounds": WIDEST}),
    "lasso, narrow feature": (
        PrivateLasso,
        BASE | {"feature_bounds": (0, 1e-300), "target_bounds": (-1e20, 1e20)},
    ),
    "lasso, long rows": (PrivateLasso, BASE | {"row_norm": 1e60}),
    "lasso, as many rows as atoms": (PrivateLasso, BASE | {"n_rows": 10**80}),
    "lasso, more rows than noise can be for": (PrivateLasso, BASE | {"n_rows": 10**15}),
    "a table of too many rows": (PrivateOLS, BASE | {"n_rows": 10**16}),
    "lasso, huge clip": (PrivateLasso, BASE | {"clip": 1e30}),
}


def some_rows(fill=None):
    if fill is not None:
        return np.full((6, 2), fill), np.full(6, fill)
    rng = np.random.default_rng(3)
    return rng.uniform(-1, 1, size=(50, 3)), rng.choice([-1e308, 1e308], size=50)


def refusal(model, *given, **more):
    """Fit with warnings shown, as users do; return what was refused, None if it was fitted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(*given, **more)
        except ValueError as problem:
            assert model.random_state.used == 0
            return str(problem)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_)
    return None


@pytest.mark.parametrize("name", EXTREMES)
def test_extreme_parameters_fit_or_are_refused_before_noise_and_booking(name, tmp_path):
    """With the same end for all rows."""
    kind, params = EXTREMES[name]
    met = set()
    for fill in (None, 0.0, -1e308):
        ledger = PrivacyLedger.create(tmp_path / f"{fill}.db", dataset="d", epsilon=2, delta=1e-6)
        model = kind(**params, random_state=CountingNoise(1))
        end = refusal(model, *some_rows(fill), ledger=ledger)
        assert len(ledger.entries()) == (end is None)
        met.add(end)
    assert len(met) == 1
    if kind in CLASSIC and "clip" not in params:
        model = kind(**params, calibration="published", random_state=CountingNoise(1))
        refusal(model, *some_rows())


@pytest.mark.parametrize("size", [1e200, 1e260])
def test_no_size_switches_the_published_noise_off(size):
    params = WALK | {"radius": size, "target_bounds": (-size, size), "n_iter": 1}
    chosen = set()
    for seed in range(30):
        model = DPFrankWolfe(
            **params, calibration="published", start="zero", random_state=CountingNoise(seed)
        )
        if refusal(model, *some_rows()) is None:
            chosen.add((*np.sign(model.coef_).tolist(),))
    assert len(chosen) != 1
