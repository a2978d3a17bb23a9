"""The numbers of every method under seeded noise are those that were recorded, to the last bit.

What BLAS or libm round differently on other machines is compared with a tolerance, unless the
environment has GOLDEN=exact: so run it before and after a change on one machine. A change that is
meant is recorded by `python tests/golden/record.py`.
"""

import copy
import functools
import math
import os

import golden_cases as cases
import numpy as np
import pytest
import scipy.sparse
from golden_values import differences, read_golden

pytestmark = [
    pytest.mark.filterwarnings("ignore::dpscreen.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::dpscreen.PublishedCalibrationWarning"),
]
GOLDEN = read_golden()
EXACT = os.environ.get("GOLDEN") == "exact"

# LAPACK solves for the weights (AdaSSP, SIS, OLS, outcomes), or gradients are sums of floats.
ROUNDED_CASES = ("AdaSSP", "PrivateSIS", "PrivateOLS", "outcomes", "FrankWolfeLasso", "published")
# Rows are drawn from normals, or means and errors of predictions are taken.
ROUNDED_COMMANDS = ("simulate", "compare", "plan", "reproduce")
# A product with the features' centres (BLAS), LAPACK, and logarithms (libm) after the release.
ROUNDED_VALUES = ("intercept", "inference", "predictions", "told", "loaded")


def rounded(name: str, where: str) -> bool:
    """Whether another machine may round this value differently."""
    if EXACT:
        return False
    in_case = any(word in name for word in (*ROUNDED_CASES, *ROUNDED_COMMANDS))
    return in_case or any(word in where for word in ROUNDED_VALUES)


def unlike(found: dict, name: str) -> list[str]:
    """Return where numbers differ from those recorded under this name."""
    return sorted(differences(found, GOLDEN[name], rounded=functools.partial(rounded, name)))


def test_every_case_is_recorded():
    assert set(GOLDEN) == set(cases.CASES)


@pytest.mark.parametrize("name", cases.CASES)
def test_numbers_are_those_recorded(name, tmp_path):
    assert unlike(cases.CASES[name](tmp_path), name) == []


@pytest.mark.parametrize("place", cases.PLACES, ids=lambda place: place.__name__)
@pytest.mark.parametrize("name", cases.TABLE_MODELS)
def test_rows_in_any_place_give_the_model_of_the_array(name, place, tmp_path):
    assert unlike(cases.table_fit(name, place, tmp_path), f"table: {name}") == []


@pytest.fixture(scope="module")
def client():
    pytest.importorskip("distributed")
    with cases.cluster() as one:
        yield one


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::UserWarning:distributed"
)
@pytest.mark.parametrize("name", ["PrivateLasso", "split", "RNMScreen", "AdaSSP", "PrivateOLS"])
def test_a_cluster_gives_the_model_of_the_array(name, client, tmp_path):
    found = cases.table_fit(name, cases.in_a_dask_array, tmp_path)
    assert unlike(found, f"table: {name}") == []


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csc_array, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("name", cases.SPARSE_MODELS)
def test_sparse_rows_give_the_model_of_dense_ones(name, kind, tmp_path):
    assert unlike(cases.sparse_fit(name, kind, tmp_path), f"sparse: {name}") == []


# --- that a change would be noticed ---------------------------------------------------------------


def nudged(value):
    """Return the value with its first number changed by the last bit, or by one."""
    if isinstance(value, dict):
        first = next(iter(value))
        return value | {first: nudged(value[first])}
    if isinstance(value, list):
        return [nudged(value[0]), *value[1:]]
    if isinstance(value, str) and "0x" in value:
        return math.nextafter(float.fromhex(value), math.inf).hex()
    return not value if isinstance(value, bool) else value + 1


@pytest.mark.parametrize("name", ["PrivateLasso: split", "RNMScreen: defaults", "table: NoisyIHT"])
def test_a_changed_last_bit_is_noticed_where_sums_are_exact(name):
    assert unlike(copy.deepcopy(GOLDEN[name]), name) == []
    for key, value in GOLDEN[name].items():
        if key != "solver_" and not rounded(name, key):
            assert len(unlike(GOLDEN[name] | {key: nudged(value)}, name)) == 1, key


@pytest.mark.parametrize("name", ["AdaSSP: defaults", "FrankWolfeLasso: safe, intercept"])
def test_where_machines_round_a_change_by_a_millionth_is_noticed(name):
    coef = [float.fromhex(value) for value in GOLDEN[name]["coef_"]]
    moved = [(value * (1 + 1e-6)).hex() for value in coef]
    assert len(unlike(GOLDEN[name] | {"coef_": moved}, name)) == np.count_nonzero(coef) > 0


def test_another_seed_and_another_row_are_noticed(tmp_path):
    X, y = cases.data.dense_rows()
    model = cases.PrivateLasso(**cases.BOUNDS | cases.BUDGET)
    name = "PrivateLasso: defaults"
    assert unlike(cases.released(model.fit(X[1:], y[1:])), name)
    assert unlike(cases.released(model.set_params(random_state=8).fit(X, y)), name)
    assert not unlike(cases.released(model.set_params(random_state=7).fit(X, y)), name)


def test_a_value_that_is_gone_is_noticed():
    name = "PrivateLasso: defaults"
    left = {key: value for key, value in GOLDEN[name].items() if key != "scale_"}
    assert unlike(left, name) == [f".scale_: 'absent' instead of {_shown(GOLDEN[name]['scale_'])}"]


def _shown(value: str) -> str:
    return f"{float.fromhex(value)!r} ({value})"
