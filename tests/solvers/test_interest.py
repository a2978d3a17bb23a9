"""Coefficients of interest and required features of regression tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpscreen import PrivateLogit, PrivateOLS, PrivatePoisson, load
from dpscreen.rows.lattice import LatticeDesign
from dpscreen.rows.mixed import MixedRows, capped_products
from dpscreen.rows.sums import LEVELS

pytestmark = [
    pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::dpscreen.BoundsWarning"),
]

SETTING = {
    "epsilon": 1.0,
    "delta": 1e-6,
    "feature_bounds": [(0, 1), (0, 1), *[(-10, 10)] * 5],
    "quality": False,
}


def observed(seed, n=6000):
    """Return a treatment of 0.2, nearly all of the 2 % with a condition being treated."""
    rng = np.random.default_rng([seed, 3])
    condition = rng.random(n) < 0.02
    treated = rng.random(n) < np.where(condition, 0.9, 0.4)
    X = np.column_stack((treated, condition, rng.normal(size=(n, 5)))).astype(float)
    return X, X @ [0.2, 3.0, 0.5, -0.5, 0.3, 0.0, 0.2], rng


def test_no_row_moves_few_combinations_by_more_than_one():
    """Two combinations of three columns, brute force over rows that are left out."""
    rng = np.random.default_rng(0)
    cells = rng.choice([-LEVELS, -5000, -1, 0, 1, 9000, LEVELS], size=(3, 40)).astype(np.int16)
    y, rows = rng.normal(size=40) * 9, MixedRows.near(np.arange(3), rng.normal(size=(2, 3)))

    def asked(kept):
        design = LatticeDesign(cells[:, kept], y[kept])
        return (
            design.start(1.0).row_total(capped_products, 3.0, rows, 0.6) / LEVELS**2,
            design.short_gram(rows) / LEVELS**2,
        )

    whole, moved = asked(np.arange(40)), []
    for gone in range(40):
        less = asked(np.delete(np.arange(40), gone))
        moved.append([np.linalg.norm(a - b) for a, b in zip(whole, less, strict=True)])
    score, gram = np.max(moved, axis=0)
    assert 0.55 < score <= 0.6
    assert 0.99 < gram <= 1


def test_lemma_97_errors_of_others_count_only_as_products():
    """One step from any start, with a matrix that is off: what is left is D·E·(θ − θ*)."""
    rng = np.random.default_rng(1)
    U = rng.normal(size=(300, 4)) @ rng.normal(size=(4, 4))
    y, users = rng.normal(size=300), rng.normal(size=(2, 4))
    whole, best = U.T @ U, np.linalg.lstsq(U, y)[0]
    start = best + rng.normal(size=4)
    noise = np.triu(rng.normal(size=(20_000, 4, 4)) * np.sqrt((1 + np.eye(4)) / 2))
    noise = noise + np.triu(noise, 1).transpose(0, 2, 1)
    directions = users @ np.linalg.inv(whole)
    step = users @ start + directions @ (U.T @ (y - U @ start))
    np.testing.assert_allclose(step, users @ best)  # no noise, no error, whatever the start
    off = start - best
    errors = np.einsum("kp,npq,q->nk", directions, noise, off)
    squares = (directions**2).sum(1) * (off @ off) + (directions @ off) ** 2
    np.testing.assert_allclose(errors.var(axis=0), squares / 2, rtol=0.05)
    turned = whole + noise[0]
    there = users @ np.linalg.inv(turned)
    step = users @ start + there @ (U.T @ (y - U @ start))
    np.testing.assert_allclose(step - users @ best, there @ noise[0] @ off)


def numbers(seed):
    X, mean, rng = observed(seed)
    return X, mean + rng.normal(size=len(X)), 0.2


def outcomes(seed):
    X, _, rng = observed(seed, n=8000)
    log_odds = X @ [0.5, 1, 0.5, -0.5, 0.3, 0, 0.2] - 1
    return X, (rng.random(len(X)) < 1 / (1 + np.exp(-log_odds))).astype(int), 0.5


def counts(seed, n=8000):
    """Return counts, and a column of exposure before that of the treatment."""
    rng = np.random.default_rng([seed, 5])
    Z, exposure = rng.normal(size=(n, 6)), rng.uniform(-1, 1, n)
    treated = (rng.logistic(size=n) < Z[:, 0]).astype(float)
    X = np.column_stack((exposure, treated, Z))
    return X, rng.poisson(np.exp(X @ [1, 0.3, 0.2, -0.2, 0.1, 0, 0.1, 0])), 0.3


EXPOSED = {"feature_bounds": [(-1, 1), (0, 1), *[(-10, 10)] * 6], "offset": 0}


@pytest.mark.parametrize(
    ("kind", "drawn", "name", "options"),
    [
        (PrivateOLS, numbers, "x0", {"target_bounds": (-100, 100)}),
        (PrivateLogit, outcomes, "x0", {}),
        (PrivatePoisson, counts, "x1", EXPOSED | {"target_bounds": (0, 100)}),
    ],
)
def test_interest_gets_narrower_intervals_that_cover(kind, drawn, name, options):
    """Twelve fits: errors are smaller, and at least ten intervals cover, 95 % being expected."""
    covers, errors = [], []
    for seed in range(12):
        X, y, truth = drawn(seed)
        setting = SETTING | options | {"random_state": f"i{seed}"}
        of_all, found = kind(**setting).fit(X, y), kind(interest=[name], **setting).fit(X, y)
        errors.append((found.bse[name], of_all.bse[name]))
        low, high = found.conf_int().loc[name]
        covers.append(low <= truth <= high)
        others = set(range(X.shape[1])) - {int(name[1:])}
        offset = {options["offset"]} if "offset" in options else set()
        assert set(found.table_.reasons) == others
        assert found.table_.nuisance == others - offset
        assert not set(found.table_.left_out)  # all are adjusted for
        assert all(np.ravel(found.coef_)[j] == pytest.approx(1, abs=1e-5) for j in offset)
    assert sum(covers) >= 10
    narrower, wider = np.median(errors, axis=0)  # one of twenty matrices has twice the noise
    assert narrower < 0.92 * wider


def test_with_a_large_budget_interest_is_least_squares():
    X, mean, rng = observed(1, n=20_000)
    y = mean + rng.normal(size=len(X))
    setting = SETTING | {"target_bounds": (-100, 100), "random_state": 1, "epsilon": 500.0}
    model = PrivateOLS(interest=["x1", "x0"], **setting).fit(X, y)
    A = np.column_stack((X, np.ones(len(X))))
    best, *_ = np.linalg.lstsq(A, y, rcond=None)
    inverse, residuals = np.linalg.inv(A.T @ A), y - A @ best
    robust = (inverse @ (A.T * residuals**2) @ A @ inverse)[:2, :2]
    errors = np.sqrt(np.diag(robust))
    assert (np.abs(model.params[:2] - best[:2]) < 0.2 * errors).all()
    np.testing.assert_allclose(model.bse[:2], errors, rtol=0.15)
    covariance = model.cov_params().to_numpy()[:2, :2]
    assert covariance[0, 1] == pytest.approx(robust[0, 1], abs=0.2 * errors.prod())
    assert model.t_test("x1 - x0 = 0").effect == pytest.approx(best[1] - best[0], abs=0.05)


def test_what_is_required_is_never_dropped():
    """Two columns that are one: a required one stays; of two required ones neither is dropped."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(4000, 3))
    X = np.column_stack((X, X[:, 0]))
    setting = SETTING | {"target_bounds": (-50, 50), "feature_bounds": (-10, 10)}
    y = X @ [1.0, 0.5, 0.0, 0.0] + rng.normal(size=4000)

    def left_out(**options):
        model = PrivateOLS(**setting | options, random_state=4).fit(X, y)
        return model, set(model.table_.left_out)

    assert left_out()[1] == {"x3"}
    model, names = left_out(required=["x3"])
    assert names == {"x0"}
    assert model.params["x3"] == pytest.approx(1, abs=0.2)
    model, names = left_out(required=["x3", "x0"])
    assert not names
    low, high = model.conf_int().loc[["x0", "x3"]].to_numpy().T
    assert not (high - low < 0.5).any()  # neither is claimed to be known
    assert model.bse["x1"] < 0.1


def test_names_are_checked_before_anything_is_charged(tmp_path):
    X, mean, _ = observed(1, n=200)
    setting = SETTING | {"target_bounds": (-100, 100)}
    for wrong in ({"interest": ["x9"]}, {"required": ["dose"]}):
        with pytest.raises(ValueError, match="there is no feature"):
            PrivateOLS(**setting | wrong).fit(X, mean, ledger=_Untouched())
    with pytest.raises(TypeError, match="interest must be a list of names"):
        PrivateOLS(**setting | {"interest": 3}).check_parameters()


class _Untouched:
    def reserve(self, cost, *, purpose):
        raise AssertionError("something was booked")


def test_nuisance_is_marked_and_travels_with_the_file(tmp_path):
    X, mean, rng = observed(2)
    ward = np.array(["A", "B", "C"])[rng.integers(3, size=len(X))]
    frame = pd.DataFrame(X[:, [0, 2, 3]], columns=["treated", "age", "dose"]).assign(ward=ward)
    bounds = {"treated": (0, 1), "age": (-10, 10), "dose": (-10, 10)}
    setting = SETTING | {"feature_bounds": bounds, "categories": {"ward": ["A", "B", "C"]}}
    model = PrivateOLS(
        interest=["treated", "ward"], target_bounds=(-100, 100), random_state=1, **setting
    ).fit(frame, mean)
    given = model.table_.given
    assert [name for name, one in zip(model.table_.names, given, strict=True) if one] == [
        *("treated", "ward=B", "ward=C")
    ]
    assert "adjusted for, not estimated" in str(model.summary())
    assert "age and dose: adjusted for" in model.explain()
    assert model.holm().notna().sum() == 3
    smallest = model.pvalues.min()
    assert model.holm().min() == pytest.approx(min(1, 3 * smallest))  # of three hypotheses
    model.save(tmp_path / "m.json")
    again = load(tmp_path / "m.json")
    assert again.table_.nuisance == model.table_.nuisance == {1, 2}
    assert str(again.summary()) == str(model.summary())
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
