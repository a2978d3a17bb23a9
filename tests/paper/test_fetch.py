"""Downloads against a server on this machine, and each archive's format."""

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
import requests

from dpscreen.paper.data import UnknownDataset, dataset, fetch, load
from dpscreen.paper.data.fetch import (
    abalone,
    communities,
    convert,
    libsvm,
    residential,
)
from dpscreen.paper.data.store import (
    Archive,
    CorruptDataset,
    DownloadFailed,
    content_hash,
    read_csv,
)

NAN = np.nan
DATES = ("START YEAR", "START QUARTER", "COMPLETION YEAR", "COMPLETION QUARTER")
URL = "https://archive.invalid/static/tiny"
FRAME = pd.DataFrame({"a": [1.0, 2.0], "b": [0.25, 0.0], "t": [3.0, 5.5]})
TEXT = b"1,0.25,3\n2,0.0,5.5\n"


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
    "uci-abalone": (zipped({"tiny.data": b"M,0.25,3\nF,0.0,5.5\n"}), "tiny.data"),
    "uci-communities": (
        zipped({"in/tiny.data": b"8,?,?,Lakewoodcity,1,1,0.25,3\n9,?,?,X,1,2,0,5.5\n"}),
        "tiny.data",
    ),
    "uci-blogfeedback": (zipped({"B.zip": zipped({"tiny.csv": TEXT})}), "tiny.csv"),
    "libsvm": (b"3 1:1 2:0.25\n5.5 1:2\n", None),
}


def tiny(make_dataset, converter="uci-blogfeedback", frame=FRAME, file="tiny.csv"):
    return make_dataset({file: frame}, Archive(URL, converter, CASES[converter][1]))


def left_behind(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


# --- converters ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("converter", "text", "columns", "expected"),
    [
        (abalone, b"M,0.455,15\nF,0.53,9\nI,0.33,7\n", ("Sex", "Length", "Rings"),
         [[1, 0.455, 15], [2, 0.53, 9], [3, 0.33, 7]]),
        (communities, b"8,?,?,Lakewoodcity,1,0.19,?,0.2\n53,5,81440,Tukwila,1,0,0.16,0.67\n",
         ("population", "police", "crime"), [[0.19, NAN, 0.2], [0, 0.16, 0.67]]),
        (libsvm, b"24 1:0.00632 3:-2.31 \n-1.5e-1 2:7\n", ("a", "b", "c", "label"),
         [[0.00632, 0, -2.31, 24], [0, 7, 0, -0.15]]),
    ],
)  # fmt: skip
def test_text_is_converted(converter, text, columns, expected):
    frame = converter(text, columns)
    assert tuple(frame.columns) == columns
    np.testing.assert_array_equal(frame, expected)


def test_residential_names_lags_and_drops_dates():
    header = [*DATES, "V-1", "V-8", "V-11", "V-12", "V-11", "V-12", " V-9 ", "V-10"]
    titles = ["PROJECT DATES", None, None, None, "VARIABLES"]
    rows = [titles, header, [81, 1, 85, 1, 1, 1200, 6713, 56.2, 0.1, None, 2200, 410], [None]]
    columns = ("V-1", "V-8", "V-11_lag1", "V-12_lag1", "V-11_lag2", "V-12_lag2", "V-9", "V-10")
    frame = residential(sheet_of(rows), columns)
    assert tuple(frame.columns) == columns
    np.testing.assert_array_equal(frame, [[1, 1200, 6713, 56.2, 0.1, NAN, 2200, 410]])


def test_residential_gives_the_catalogues_columns():
    lagged = [f"V-{k}" for k in range(11, 30)] * 5
    header = [*DATES, *(f"V-{k}" for k in range(1, 9)), *lagged, "V-9", "V-10"]
    columns = (*dataset("residential").features, "V-9", "V-10")
    frame = residential(sheet_of([header, list(range(len(header)))]), columns)
    np.testing.assert_array_equal(frame, [np.arange(4.0, 109.0)])


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


@pytest.mark.parametrize("converter", CASES)
@pytest.mark.parametrize("file", ["tiny.csv", "tiny.csv.gz"])
def test_a_fetched_set_can_be_loaded(site, cache, make_dataset, converter, file):
    site.bodies["/static/tiny"] = CASES[converter][0]
    entry = tiny(make_dataset, converter, file=file)
    assert fetch(entry, base_url=site.base_url) == (cache / file,)
    table = load(entry)
    np.testing.assert_array_equal(np.column_stack([table.X, table.y]), FRAME)
    assert left_behind(cache) == [cache / file]


def test_a_workbook_gives_both_files(site, tmp_path, make_dataset):
    book = sheet_of([["DATE", "V-1", "V-9", "V-10"], [80, 1.5, 2, 3], [81, 4, 5, 6]])
    frames = {
        "sale.csv": pd.DataFrame({"V-1": [1.5, 4.0], "V-9": [2.0, 5.0]}),
        "cost.csv": pd.DataFrame({"V-1": [1.5, 4.0], "V-10": [3.0, 6.0]}),
    }
    site.bodies["/static/tiny"] = zipped({"folder/Book.xlsx": book})
    entry = make_dataset(frames, Archive(URL, "uci-residential", "Book.xlsx"))
    paths = fetch(entry, base_url=site.base_url, into=tmp_path / "new" / "place")
    assert [path.name for path in paths] == ["sale.csv", "cost.csv"]
    for path in paths:
        assert content_hash(read_csv(path)) == content_hash(frames[path.name])


def test_a_real_entry_asks_for_its_archives_path(site, cache):
    with pytest.raises(DownloadFailed, match="404"):
        fetch("residential", base_url=site.base_url + "/mirror/")
    assert site.asked == ["/mirror/static/public/437/residential+building+data+set.zip"]
    with pytest.raises(DownloadFailed, match="404"):
        fetch("housing", base_url=site.base_url)
    assert site.asked[1] == "/~cjlin/libsvmtools/datasets/regression/housing"


def test_the_checked_copy_passes_through_the_whole_path(site, cache, data_folder):
    entry = dataset("blogfeedback")
    text = gzip.decompress((data_folder / "blogfeedback.csv.gz").read_bytes())
    body = zipped({"blogData_train.csv": text.partition(b"\n")[2]})
    site.bodies["/static/public/304/blogfeedback.zip"] = body
    (path,) = fetch("blogfeedback", base_url=site.base_url)
    assert content_hash(read_csv(path)) == entry.files[0].content_hash


def test_progress_is_reported(site, cache, make_dataset):
    frame = pd.DataFrame(np.arange(90_000.0).reshape(-1, 3), columns=list("abt"))
    rows = frame.to_numpy().tolist()
    body = "\n".join(f"{t!r} 1:{a!r} 2:{b!r}" for a, b, t in rows).encode()
    site.bodies["/static/tiny"] = body
    calls = []
    fetch(
        tiny(make_dataset, "libsvm", frame),
        base_url=site.base_url,
        progress=lambda done, total: calls.append((done, total)),
    )
    received = [done for done, _ in calls]
    assert received == sorted(received)
    assert len(received) > 5
    assert calls[-1] == (len(body), len(body))


def test_a_truncated_body_is_one_sentence(site, cache, make_dataset):
    site.bodies["/static/tiny"] = CASES["libsvm"][0]
    site.held_back = 4
    with pytest.raises(DownloadFailed, match="broke off before its end"):
        fetch(tiny(make_dataset, "libsvm"), base_url=site.base_url)
    assert left_behind(cache) == []


def test_a_refused_connection_is_one_sentence(site, cache, make_dataset):
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(DownloadFailed, match=f"no connection to {address}"):
            fetch(tiny(make_dataset), base_url=f"http://{address}")


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        (requests.Timeout(), "did not answer in time"),
        (requests.TooManyRedirects("Exceeded 30 redirects."), r"failed: Exceeded 30 redirects\.$"),
    ],
)
def test_an_archive_that_does_not_deliver_is_one_sentence(
    cache, make_dataset, monkeypatch, reason, message
):
    def get(*_asked, **_settings):
        raise reason

    monkeypatch.setattr(requests, "get", get)
    with pytest.raises(DownloadFailed, match=message):
        fetch(tiny(make_dataset))


DAMAGED_ZIP = bytearray(zipped({"tiny.csv": TEXT * 50}))
DAMAGED_ZIP[40:50] = bytes(10)
SHEET = [["V-1", "V-9"], [1, 2]]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>moved</html>", "is not the Tiny archive"),
        (zipped({"other.csv": TEXT}), "is not the Tiny archive"),
        (zipped({"tiny.csv": b"a,b\n"}), "is not the Tiny archive"),
        (bytes(DAMAGED_ZIP), "is not the Tiny archive"),
        (b"", "is not the Tiny archive"),
        (zipped({"tiny.csv": TEXT.replace(b"0.25", b"0.26")}), "hash is not the catalogue's"),
    ],
    ids=["page", "other member", "no numbers", "damaged", "empty", "other content"],
)
def test_another_archive_is_not_kept(site, cache, make_dataset, body, message):
    entry = tiny(make_dataset)
    for good_copy in (False, True):  # which a bad download leaves alone
        if good_copy:
            site.bodies["/static/tiny"] = CASES["uci-blogfeedback"][0]
            fetch(entry, base_url=site.base_url)
        site.bodies["/static/tiny"] = body
        with pytest.raises(CorruptDataset, match=rf"{message}.*nothing was kept") as caught:
            fetch(entry, base_url=site.base_url)
        assert isinstance(caught.value, DownloadFailed)
        assert bool(left_behind(cache)) == good_copy
    load(entry)


@pytest.mark.parametrize(
    "book",
    [
        b"not a workbook",
        zipped({"a.txt": b"a"}),
        damaged(sheet_of(SHEET), "xl/worksheets/sheet1.xml"),
        damaged(sheet_of(SHEET), "xl/workbook.xml"),
        sheet_of(SHEET, name="Old"),
        sheet_of([["a", "b"], [1, 2]]),
        sheet_of([["V-1", "V-9"], [1, 2]]),
    ],
    ids=["no zip", "another zip", "half a sheet", "half a list", "no sheet", "no head", "no V-2"],
)
def test_another_workbook_is_not_kept(site, cache, make_dataset, book):
    site.bodies["/static/tiny"] = zipped({"Book.xlsx": book})
    frame = FRAME.set_axis(["V-1", "V-2", "V-9"], axis=1)
    entry = make_dataset({"tiny.csv": frame}, Archive(URL, "uci-residential", "Book.xlsx"))
    with pytest.raises(CorruptDataset, match="is not the Tiny archive"):
        fetch(entry, base_url=site.base_url)
    assert left_behind(cache) == []


def test_an_extra_that_is_needed_is_named(cache, make_dataset, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(DownloadFailed, match=r"dpscreen\[paper\]"):
        residential(sheet_of([["V-1", "V-9"], [1, 2]]), ("V-1",))
    monkeypatch.setitem(sys.modules, "requests", None)
    with pytest.raises(DownloadFailed, match=r"dpscreen\[paper\]"):
        fetch(tiny(make_dataset))


def test_a_place_that_cannot_be_written_is_one_sentence(site, tmp_path, make_dataset):
    site.bodies["/static/tiny"] = CASES["uci-blogfeedback"][0]
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DownloadFailed, match="could not be written to"):
        fetch(tiny(make_dataset), base_url=site.base_url, into=tmp_path / "file")


def test_sets_without_an_archive_say_so():
    with pytest.raises(DownloadFailed, match="Riboflavin cannot be fetched: R package hdi"):
        fetch("riboflavin")
    with pytest.raises(UnknownDataset, match="known are"):
        fetch("iris")
