from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpscreen.paper.data import MissingDataset, available, load, names, search_path, store
from dpscreen.paper.data.store import CorruptDataset, Frame, TargetColumns, write_csv


def test_places_are_tried_in_order(cache, monkeypatch, tmp_path, make_dataset, tiny_frame):
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
    np.testing.assert_array_equal(table.X, tiny_frame.values[:, :-1])
    assert table.X.flags.c_contiguous
    assert (table.name, table.feature_names, table.target_name) == ("tiny", ("a", "b"), "t")


def test_a_missing_set_says_how_to_get_it(cache, make_dataset, tiny_frame):
    tiny = make_dataset({"tiny.csv": tiny_frame})
    with pytest.raises(MissingDataset, match=r"cannot be fetched.*set DPSCREEN_DATA") as caught:
        load(tiny)
    assert str(cache) in str(caught.value)


def test_a_missing_set_of_an_archive_names_the_command(cache):
    with pytest.raises(MissingDataset, match="`dpscreen datasets fetch housing`, or set DPSCREEN"):
        load("housing")
    assert available() == {}


def test_changed_content_is_refused(cache, make_dataset, tiny_frame):
    changed = tiny_frame.values.copy()
    changed[0, 0] = np.nextafter(1.0, 2.0)
    write_csv(Frame(tiny_frame.columns, changed), cache / "tiny.csv")
    with pytest.raises(CorruptDataset, match=r"tiny\.csv does not hold the Tiny data"):
        load(make_dataset({"tiny.csv": tiny_frame}))


def test_targets_combine_files_that_must_agree(cache, make_dataset):
    first = Frame(("a", "p"), np.array([[1.0, 5.0], [2.0, 7.0]]))
    second = Frame(("a", "q"), np.array([[1.0, 4.0], [2.0, 9.0]]))
    other = Frame(("a", "q"), np.array([[1.0, 4.0], [3.0, 9.0]]))
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
    [
        ("win32", "AppData/Local/dpscreen/dpscreen/Cache"),
        ("darwin", "Library/Caches/dpscreen"),
    ],
)
def test_downloads_go_where_the_system_wants_them(monkeypatch, system, place):
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    with monkeypatch.context() as patch:
        patch.setattr("sys.platform", system)
        found = store.cache_directory()
    assert found == Path.home() / place
