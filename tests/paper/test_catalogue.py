import numpy as np
import pytest

from dpscreen.paper.data import CATALOGUE, UnknownDataset, dataset, load, names

BY_NAME = pytest.mark.parametrize("name", names())

TARGET_MEANS = {
    "abalone": 9.93368,
    "housing": 22.5328,
    "bodyfat": 1.05557,
    "pyrim": 0.659338,
    "triazines": 0.651871,
    "residential": 1387.43 - 232.648,
    "communities": 0.237979,
    "blogfeedback": 6.76472,
    "riboflavin": -7.15943,
}


def test_names_follow_the_paper_s_tables():
    assert names() == tuple(TARGET_MEANS)
    assert [entry.name for entry in CATALOGUE if entry.from_libsvm] == list(names()[:5])


@BY_NAME
def test_entries_are_consistent(name):
    entry = dataset(name)
    assert len(entry.features) in (0, entry.n_features)
    assert len(set(entry.features)) == len(entry.features)
    columns = {file.target for file in entry.files}
    assert all(column in columns for target in entry.targets for column, _ in target.terms)
    assert all(len(file.content_hash) == 64 for file in entry.files)


@BY_NAME
def test_every_set_loads_as_described(name, data_folder):
    entry, table = dataset(name), load(name)
    assert table.X.shape == (entry.n_rows, entry.n_features)
    assert table.y.shape == (entry.n_rows,)
    assert entry.features in ((), table.feature_names)
    assert table.y.mean() == pytest.approx(TARGET_MEANS[name], rel=1e-5)
    assert np.isnan(table.X).any() == (entry.missing != "none")
    assert table.target_name == entry.targets[0].name


def test_communities_keeps_its_missing_values(data_folder):
    X = load("communities").X
    assert np.isnan(X).sum() == 36851
    assert np.isnan(X).any(axis=0).sum() == 23


def test_profit_is_sales_less_cost(data_folder):
    profit, sales, cost = (load("residential", target=name) for name in ("profit", "sales", "cost"))
    np.testing.assert_array_equal(profit.y, sales.y - cost.y)
    np.testing.assert_array_equal(profit.X, cost.X)


def test_unknown_names_are_told_what_exists():
    with pytest.raises(UnknownDataset, match="'iris'; known are abalone, housing"):
        dataset("iris")
    with pytest.raises(UnknownDataset, match="offers profit, sales, cost"):
        load("residential", target="rent")
