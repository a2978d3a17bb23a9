"""Linear algebra has one thread inside a fit: the same numbers, and no core waits for another."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from dpscreen import PrivateLasso, PrivateLogisticLasso, PrivateOLS
from dpscreen.planning import power
from dpscreen.planning.setting import Setting

FIT = """
import warnings
import numpy as np
from dpscreen import PrivateLasso
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (20_000, 40))
y = X @ rng.normal(size=40) + rng.normal(size=20_000)
setting = {"feature_bounds": (-1, 1), "target_bounds": (-30, 30), "epsilon": 3, "delta": 1e-6}
model = PrivateLasso(**setting, random_state=0).fit(X, y)
print(model.solver_, model.coef_.tobytes().hex())
"""


def in_use() -> set[int]:
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        yield
        assert in_use() == {2}  # nothing that was inside keeps them


@pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning")
@pytest.mark.parametrize("kind", [PrivateLasso, PrivateOLS, PrivateLogisticLasso])
def test_a_fit_solves_with_one_thread(kind, monkeypatch):
    seen, real = [], np.linalg.eigh

    def watched(matrix):
        seen.append(in_use())
        return real(matrix)

    monkeypatch.setattr(np.linalg, "eigh", watched)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3_000, 4))
    y = X.sum(axis=1) + rng.normal(size=3_000)
    setting = {"feature_bounds": (-1, 1), "epsilon": 3, "delta": 1e-6, "random_state": 0}
    if kind is PrivateLogisticLasso:
        kind(**setting).fit(X, y > 0)
    else:
        kind(**setting, target_bounds=(-8, 8)).fit(X, y)
    assert seen
    assert set().union(*seen) == {1}


def test_a_simulation_solves_with_one_thread(monkeypatch):
    seen, real = [], power.simulated_table

    def watched(*args):
        seen.append(in_use())
        return real(*args)

    monkeypatch.setattr(power, "simulated_table", watched)
    setting = Setting(440, 10, 3.0, 1e-4, n_effects=2)
    power.simulated_power(setting, [0.2], repetitions=2, seed=0)
    assert seen == [{1}, {1}]


def test_coefficients_do_not_depend_on_the_number_of_threads():
    def fitted(threads: str) -> str:
        env = os.environ | {"OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        done = subprocess.run(
            [sys.executable, "-c", FIT], env=env, capture_output=True, text=True, check=True
        )
        return done.stdout

    one = fitted("1")
    assert one.startswith("dense ")
    assert fitted("2") == one
