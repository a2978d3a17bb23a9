"""The catalogue, the content hash, where files are searched for, and downloads."""

import gzip
import io
import socket
import sys
import zipfile
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from dpscreen.paper.data import CATALOGUE, available, dataset, fetch, load, search_path
from dpscreen.paper.data.fetch import convert
from dpscreen.paper.data.store import content_hash
from dpscreen.tables.declaration import DataError

NAN = np.nan
DATES = ("START YEAR", "START QUARTER", "COMPLETION YEAR", "COMPLETION QUARTER")
URL = "https://archive.invalid/static/tiny"
TEXT = b"1,0.25,3\n2,0.0,5.5\n"
BY_NAME = pytest.mark.parametrize("name", CATALOGUE)
TARGET_MEANS = {
    "abalone": 9.93368,
    "housing": 22.5328,
    "bodyfat": 1.05557,
    "pyrim": 0.659338,
    "triazines": 0.651871,
    "residential": 1387.43 - 232.648,
    "communities": 0.237979,
    "blogfeedback": 6.76472,
}


def framed(values, names=None):
    return pd.DataFrame(values, columns=names or [f'c "{j}", x' for j in range(values.shape[1])])


FRAME = framed(np.array([[1.0, 0.25, 3.0], [2.0, 0.0, 5.5]]), ["a", "b", "t"])


def refused(code, call, *arguments, **options):
    """Check that the call is refused with this message, and return it."""
    with pytest.raises(DataError) as raised:
        call(*arguments, **options)
    assert raised.value.args[0].code == code
    return raised.value.args[0]


def put(frame, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_csv(path, index=False)


# --- the catalogue ------------------------------------------------------------------------------


@BY_NAME
def test_entries_are_consistent(name):
    entry = dataset(name)
    assert len(entry.features) == len(set(entry.features)) == entry.n_features
    assert all(len(file.content_hash) == 64 for file in entry.files)


@BY_NAME
def test_every_set_loads_as_described(name, data_folder):
    entry, table = dataset(name), load(name)
    assert table.X.shape == (entry.n_rows, entry.n_features)
    assert table.X.flags.c_contiguous
    assert table.y.shape == (entry.n_rows,)
    assert table.y.mean() == pytest.approx(TARGET_MEANS[name], rel=1e-5)
    assert np.isnan(table.X).any() == (name == "communities")
    assert len(available()[name]) == len(entry.files)


# --- the content hash ---------------------------------------------------------------------------

ANY = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.floats())


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


# --- files, and where they lie --------------------------------------------------------------------

WHOLE = gzip.compress(b"a,b,t\n" + b"1,2,3\n" * 5000, mtime=0)


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("tiny.csv", b"", "damaged"),
        ("tiny.csv", b"a,b,t\n1,x,3\n", "damaged"),
        ("tiny.csv", b"a,b,t\n1,2,3,4\n", "damaged"),
        ("tiny.csv", b"a,b,t\n1,0.25,3\n2,0.1,5.5\n", "changed"),
        ("tiny.csv", b"a,a,t\n1,0.25,3\n2,0,5.5\n", "changed"),
        ("tiny.csv.gz", WHOLE[:-12], "damaged"),
        ("tiny.csv.gz", b"not gzip", "damaged"),
        ("tiny.csv.gz", WHOLE[:-30] + b"x" * 30, "damaged"),
    ],
)
def test_a_damaged_or_changed_file_is_named(cache, make_dataset, name, content, code):
    cache.mkdir(parents=True)
    (cache / name).write_bytes(content)
    assert refused(f"dataset.{code}", load, tiny(make_dataset)).fields["path"] == cache / name


def test_directories_are_tried_in_order(cache, monkeypatch, tmp_path, make_dataset):
    stated = tmp_path / "stated"
    assert search_path() == (cache,)
    monkeypatch.setenv("DPSCREEN_DATA", str(stated))
    assert search_path() == (stated, cache)
    put(FRAME, cache / "tiny.csv")
    assert load(tiny(make_dataset)).y.tolist() == [3.0, 5.5]
    put(FRAME + 1, stated / "tiny.csv.gz")  # the stated copy is preferred: its damage shows
    refused("dataset.changed", load, tiny(make_dataset))


def test_a_missing_set_says_how_to_get_it(cache):
    found = refused("dataset.missing", load, "housing")
    assert "`dpscreen datasets fetch housing`, or set DPSCREEN_DATA to a directory" in found
    assert found.fields["places"] == str(cache)
    assert available() == {}
    assert refused("name.unknown", load, "iris").fields["known"] == tuple(CATALOGUE)


def test_targets_combine_files_that_must_agree(cache, make_dataset):
    cost, other = FRAME.rename(columns={"t": "u"}), FRAME.rename(columns={"t": "u"}) * 2
    put(FRAME, cache / "p.csv")
    put(cost, cache / "q.csv")
    table = load(make_dataset({"p.csv": FRAME, "q.csv": cost}, weights=(1.0, -2.0)))
    assert table.y.tolist() == [-3.0, -5.5]
    put(other, cache / "q.csv")
    refused("dataset.features-differ", load, make_dataset({"p.csv": FRAME, "q.csv": other}))


# --- the formats of archives ----------------------------------------------------------------------


def zipped(files):
    """A zip archive of these files, by path."""
    payload = io.BytesIO()
    with zipfile.ZipFile(payload, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, body in files.items():
            archive.writestr(path, body)
    return payload.getvalue()


def sheet_of(rows, name="Data"):
    """A workbook whose one sheet has these rows of text, numbers and gaps (None)."""
    book = openpyxl.Workbook()
    book.active.title = name
    for row in rows:
        book.active.append(row)
    payload = io.BytesIO()
    book.save(payload)
    return payload.getvalue()


def damaged(workbook, part):
    """The workbook with one of its parts broken off."""
    with zipfile.ZipFile(io.BytesIO(workbook)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files[part] = files[part][: len(files[part]) // 2]
    return zipped(files)


CASES = {
    "csv": (zipped({"B.zip": zipped({"tiny.csv": TEXT})}), {"member": "tiny.csv"}),
    "codes": (
        zipped({"tiny.data": b"M,0.25,3\nF,0.0,5.5\n"}),
        {"member": "tiny.data", "codes": "MFI"},
    ),
    "dropped": (
        zipped({"in/tiny.data": b"8,?,Lakewoodcity,1,0.25,3\n9,?,X,2,0,5.5\n"}),
        {"member": "tiny.data", "dropped": "state county name"},
    ),
    "libsvm": (b"3 1:1 2:0.25\n5.5 1:2\n", {"format": "libsvm"}),
}


def tiny(make_dataset, case="csv", file="tiny.csv"):
    return make_dataset({file: FRAME}, **CASES[case][1])


def left_behind(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


def test_a_question_mark_is_missing_and_letters_are_numbered(make_dataset):
    columns = ("Sex", "police", "Rings")
    entry = make_dataset({"x.csv": framed(np.zeros((3, 3)), list(columns))}, codes="MFI")
    (frame,) = convert(b"M,0.455,15\nF,?,9\nI,-2e-3,7\n", entry).values()
    np.testing.assert_array_equal(frame, [[1, 0.455, 15], [2, NAN, 9], [3, -0.002, 7]])


def test_residential_names_lags_drops_dates_and_gives_both_files():
    lagged = [f"V-{k}" for k in range(11, 30)] * 5
    header = [*DATES, *(f"V-{k}" for k in range(1, 9)), *lagged, " V-9 ", "V-10"]
    titles = ["PROJECT DATES", None, "VARIABLES"]
    book = sheet_of([titles, header, [*range(len(header) - 1), None], [None]])
    payload = zipped({"folder/Residential-Building-Data-Set.xlsx": book})
    sales, cost = convert(payload, dataset("residential")).values()
    np.testing.assert_array_equal(sales, [np.arange(4.0, 108.0)])
    np.testing.assert_array_equal(cost, [[*np.arange(4.0, 107.0), NAN]])


@pytest.mark.parametrize("name", ["housing", "bodyfat", "pyrim", "triazines"])
def test_libsvm_text_of_the_checked_copy_converts_to_it(name, data_folder):
    table = load(name)
    rows = zip(table.X.tolist(), table.y.tolist(), strict=True)
    text = "\n".join(
        " ".join([repr(label), *(f"{j}:{v!r}" for j, v in enumerate(row, 1) if v)])
        for row, label in rows
    )
    (frame,) = convert(text.encode(), dataset(name)).values()
    np.testing.assert_array_equal(frame, np.column_stack([table.X, table.y]))


# --- downloads ----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("file", ["tiny.csv", "tiny.csv.gz"])
def test_a_fetched_set_can_be_loaded(site, cache, make_dataset, case, file):
    site.bodies["/static/tiny"] = CASES[case][0]
    entry = tiny(make_dataset, case, file)
    assert fetch(entry, base_url=site.base_url) == (cache / file,)
    table = load(entry)
    np.testing.assert_array_equal(np.column_stack([table.X, table.y]), FRAME)
    assert left_behind(cache) == [cache / file]


def test_a_real_entry_asks_for_its_archives_path(site, cache):
    found = refused("dataset.not-downloaded", fetch, "residential", base_url=f"{site.base_url}/m/")
    assert site.asked == ["/m/static/public/437/residential+building+data+set.zip"]
    assert "404" in found


def test_the_checked_copy_passes_through_the_whole_path(site, cache, data_folder):
    text = gzip.decompress((data_folder / "blogfeedback.csv.gz").read_bytes())
    body = zipped({"blogData_train.csv": text.partition(b"\n")[2]})
    site.bodies["/static/public/304/blogfeedback.zip"] = body
    calls = []
    fetch("blogfeedback", base_url=site.base_url, progress=calls.append)
    assert available()["blogfeedback"]
    assert calls == sorted(calls)
    assert len(calls) > 5
    assert calls[-1] == 1


def test_a_truncated_body_is_not_kept(site, cache, make_dataset):
    site.bodies["/static/tiny"] = CASES["libsvm"][0]
    site.held_back = 4
    entry = tiny(make_dataset, "libsvm")
    refused("dataset.cut-short", fetch, entry, base_url=site.base_url)
    assert left_behind(cache) == []


def test_a_refused_connection_and_a_wrong_address_are_one_sentence(cache, make_dataset):
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        for address in (f"http://127.0.0.1:{taken.getsockname()[1]}", "no scheme"):
            entry = tiny(make_dataset)
            found = refused("dataset.not-downloaded", fetch, entry, base_url=address)
            assert found.fields["url"].startswith(address)


DAMAGED_ZIP = bytearray(zipped({"tiny.csv": TEXT * 50}))
DAMAGED_ZIP[40:50] = bytes(10)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"<html>moved</html>", "not-the-archive"),
        (zipped({"other.csv": TEXT}), "not-the-archive"),
        (zipped({"tiny.csv": b"a,b\n"}), "not-the-archive"),
        (bytes(DAMAGED_ZIP), "not-the-archive"),
        (b"", "not-the-archive"),
        (zipped({"tiny.csv": TEXT.replace(b"0.25", b"0.26")}), "other-content"),
    ],
    ids=["page", "other member", "no numbers", "damaged", "empty", "other content"],
)
def test_another_archive_is_not_kept(site, cache, make_dataset, body, code):
    entry = tiny(make_dataset)
    for good_copy in (False, True):  # which a bad download leaves alone
        if good_copy:
            site.bodies["/static/tiny"] = CASES["csv"][0]
            fetch(entry, base_url=site.base_url)
        site.bodies["/static/tiny"] = body
        refused(f"dataset.{code}", fetch, entry, base_url=site.base_url)
        assert bool(left_behind(cache)) == good_copy
    load(entry)


SHEET = [["V-1", "V-9"], [1, 2]]


@pytest.mark.parametrize(
    "book",
    [
        b"not a workbook",
        zipped({"a.txt": b"a"}),
        damaged(sheet_of(SHEET), "xl/worksheets/sheet1.xml"),
        damaged(sheet_of(SHEET), "xl/workbook.xml"),
        sheet_of(SHEET, name="Old"),
        sheet_of([["a", "b"], [1, 2]]),
        sheet_of(SHEET),
    ],
    ids=["no zip", "another zip", "half a sheet", "half a list", "no sheet", "no head", "no V-2"],
)
def test_another_workbook_is_not_kept(site, cache, make_dataset, book):
    site.bodies["/static/tiny"] = book
    frame = FRAME.set_axis(["V-1", "V-2", "V-9"], axis=1)
    entry = make_dataset({"tiny.csv": frame}, format="workbook")
    refused("dataset.not-the-archive", fetch, entry, base_url=site.base_url)
    assert left_behind(cache) == []


def test_an_extra_that_is_needed_is_named(make_dataset, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    entry = make_dataset({"x.csv": FRAME}, format="workbook")
    assert "dpscreen[paper]" in refused("dataset.workbook", convert, sheet_of(SHEET), entry)


def test_a_place_that_cannot_be_written_is_one_sentence(site, cache, make_dataset):
    site.bodies["/static/tiny"] = CASES["csv"][0]
    cache.parent.mkdir()
    cache.write_text("in the way")
    refused("dataset.not-written", fetch, tiny(make_dataset), base_url=site.base_url)
