"""The catalogue, files of numbers and their content hash, and where they are searched for."""

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from dpscreen.paper.data import (
    MissingDataset,
    UnknownDataset,
    available,
    dataset,
    load,
    names,
    search_path,
    store,
)
from dpscreen.paper.data.store import (
    CorruptDataset,
    TargetColumns,
    content_hash,
    read_csv,
    write_csv,
)

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


def values_of(elements):
    return arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=elements)


ANY, NUMBERS = values_of(st.floats()), values_of(st.floats(allow_infinity=False))


def framed(values, names=None):
    return pd.DataFrame(values, columns=names or [f'c "{j}", x' for j in range(values.shape[1])])


# --- the catalogue ------------------------------------------------------------------------------


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


def test_profit_is_sales_less_cost(data_folder):
    profit, sales, cost = (load("residential", target=name) for name in ("profit", "sales", "cost"))
    np.testing.assert_array_equal(profit.y, sales.y - cost.y)
    np.testing.assert_array_equal(profit.X, cost.X)


def test_an_unknown_name_is_answered_with_what_exists():
    with pytest.raises(UnknownDataset, match="'iris'; known are abalone, housing"):
        dataset("iris")
    with pytest.raises(UnknownDataset, match="offers profit, sales, cost"):
        load("residential", target="rent")


# --- the content hash ---------------------------------------------------------------------------


@given(ANY)
def test_the_hash_ignores_layout_and_the_signs_of_zero_and_nan(values):
    expected = content_hash(framed(values))
    assert content_hash(framed(np.asfortranarray(values))) == expected
    assert content_hash(framed(np.where(values == 0, -values, values))) == expected
    assert content_hash(framed(np.where(np.isnan(values), -values, values))) == expected


@given(ANY, st.data())
def test_the_hash_changes_with_one_bit(values, data):
    place = tuple(data.draw(st.integers(0, size - 1)) for size in values.shape)
    changed = values.copy()
    changed[place] = np.nextafter(values[place], 0.5)
    if changed[place] == values[place] or np.isnan(values[place]):
        changed[place] = 7.25
    assert content_hash(framed(changed)) != content_hash(framed(values))


def test_the_hash_covers_names_shape_and_every_block():
    values = np.zeros((5000, 3))
    changed = values.copy()
    changed[-1, -1] = 1
    others = [
        framed(values, ["a", "b", "d"]),
        framed(values, ["ab", "", "c"]),
        framed(values[:-1], ["a", "b", "c"]),
        framed(changed, ["a", "b", "c"]),
    ]
    assert content_hash(framed(values, ["a", "b", "c"])) not in map(content_hash, others)


def test_the_hash_is_fixed_for_all_time():
    # Every hash in the catalogue rests on this definition.
    frame = framed(np.array([[1.0, np.nan], [-0.0, 0.1]]), ["a", "b"])
    assert content_hash(frame) == "cc1cc1efae744e3b38399a7d7d4a273de79d535f481f551e85ae16adaace5700"


# --- files --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("csv")


@settings(max_examples=60)
@given(values=NUMBERS, suffix=st.sampled_from([".csv", ".csv.gz"]))
def test_what_is_written_is_read_back_to_the_last_bit(folder, values, suffix):
    frame = framed(np.column_stack([values, values]))
    path = folder / f"frame{suffix}"
    write_csv(frame, path)
    assert content_hash(read_csv(path)) == content_hash(frame)
    before = path.read_bytes()
    write_csv(frame, path)
    assert path.read_bytes() == before
    assert [file.name for file in folder.iterdir() if file.name.startswith(".")] == []


WHOLE = gzip.compress(b"a,b\n" + b"1,2\n" * 5000, mtime=0)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.csv", b""),
        ("word.csv", b"a,b\n1,x\n"),
        ("long row.csv", b"a,b\n1,2,3\n"),
        ("other NA.csv", b"a,b\n1,NA\n"),
        ("same name.csv", b"a,a\n1,2\n"),
        ("open quote.csv", b'a,b\n"1,2\n'),
        ("cut.csv.gz", WHOLE[:-12]),
        ("start.csv.gz", WHOLE[:20]),
        ("plain.csv.gz", b"not gzip"),
        ("changed.csv.gz", WHOLE[:-30] + b"x" * 30),
    ],
)
def test_a_damaged_file_is_named(folder, name, content):
    (folder / name).write_bytes(content)
    with pytest.raises(CorruptDataset, match=f"{name} is damaged"):
        read_csv(folder / name)


# --- where they lie -----------------------------------------------------------------------------


def test_directories_are_tried_in_order(cache, monkeypatch, tmp_path, make_dataset, tiny_frame):
    tiny = make_dataset({"tiny.csv": tiny_frame})
    stated = tmp_path / "stated"
    assert search_path() == (cache,)
    monkeypatch.setenv("DPSCREEN_DATA", str(stated))
    assert search_path() == (stated, cache)

    write_csv(tiny_frame, cache / "tiny.csv")
    assert load(tiny).y.tolist() == [3.0, 1e-7]
    stated.mkdir()  # the stated copy is preferred: its damage shows
    (stated / "tiny.csv").write_text("a,b,t\n1,2,3\n")
    with pytest.raises(CorruptDataset, match=str(stated)):
        load(tiny)
    write_csv(tiny_frame, stated / "tiny.csv")
    load(tiny)


@pytest.mark.parametrize("stored", ["tiny.csv", "tiny.csv.gz", "extra/tiny.csv.gz"])
@pytest.mark.parametrize("listed", ["tiny.csv", "tiny.csv.gz"])
def test_compression_and_the_extra_folder_do_not_matter(
    cache, make_dataset, tiny_frame, listed, stored
):
    write_csv(tiny_frame, cache / stored)
    table = load(make_dataset({listed: tiny_frame}))
    np.testing.assert_array_equal(table.X, tiny_frame.iloc[:, :-1])
    assert table.X.flags.c_contiguous
    assert (table.name, table.feature_names, table.target_name) == ("tiny", ("a", "b"), "t")


def test_a_missing_set_says_how_to_get_it(cache, make_dataset, tiny_frame):
    tiny = make_dataset({"tiny.csv": tiny_frame})
    with pytest.raises(MissingDataset, match=r"cannot be fetched.*set DPSCREEN_DATA") as caught:
        load(tiny)
    assert str(cache) in str(caught.value)
    with pytest.raises(MissingDataset, match="`dpscreen datasets fetch housing`, or set DPSCREEN"):
        load("housing")
    assert available() == {}


def test_changed_content_is_refused(cache, make_dataset, tiny_frame):
    changed = tiny_frame.copy()
    changed.iloc[0, 0] = np.nextafter(1.0, 2.0)
    write_csv(changed, cache / "tiny.csv")
    with pytest.raises(CorruptDataset, match=r"tiny\.csv does not hold the Tiny data"):
        load(make_dataset({"tiny.csv": tiny_frame}))


def test_targets_combine_files_that_must_agree(cache, make_dataset):
    first = pd.DataFrame({"a": [1.0, 2.0], "p": [5.0, 7.0]})
    second = pd.DataFrame({"a": [1.0, 2.0], "q": [4.0, 9.0]})
    other = pd.DataFrame({"a": [1.0, 3.0], "q": [4.0, 9.0]})
    gain = (TargetColumns("gain", (("p", 1.0), ("q", -1.0))),)
    write_csv(first, cache / "p.csv")
    write_csv(second, cache / "q.csv")
    table = load(replace(make_dataset({"p.csv": first, "q.csv": second}), targets=gain))
    assert table.y.tolist() == [1.0, -2.0]
    write_csv(other, cache / "q.csv")
    with pytest.raises(CorruptDataset, match="do not agree on the features"):
        load(replace(make_dataset({"p.csv": first, "q.csv": other}), targets=gain))


def test_available_lists_what_is_present(data_folder):
    present = available()
    assert tuple(present) == names()
    assert len(present["residential"]) == 2
    assert all(path.is_file() for paths in present.values() for path in paths)


@pytest.mark.parametrize(
    ("system", "place"),
    [("win32", "AppData/Local/dpscreen/dpscreen/Cache"), ("darwin", "Library/Caches/dpscreen")],
)
def test_downloads_go_where_the_system_wants_them(monkeypatch, system, place):
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    with monkeypatch.context() as patch:
        patch.setattr("sys.platform", system)
        found = store.cache_directory()
    assert found == Path.home() / place
