"""The numbers of every method under seeded noise are those that were recorded, to the last bit.

What BLAS or libm round differently on other machines is compared with a tolerance, unless the
environment has GOLDEN=exact: so run it before and after a change on one machine. A change that is
meant is recorded by `python tests/golden/record.py`.
"""

import functools
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


def test_another_seed_and_another_row_are_noticed(tmp_path):
    X, y = cases.data.dense_rows()
    model = cases.PrivateLasso(**cases.BOUNDS | cases.BUDGET)
    name = "PrivateLasso: defaults"
    assert unlike(cases.released(model.fit(X[1:], y[1:])), name)
    assert unlike(cases.released(model.set_params(random_state=8).fit(X, y)), name)
    assert not unlike(cases.released(model.set_params(random_state=7).fit(X, y)), name)
