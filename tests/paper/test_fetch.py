import gzip
import socket
import sys
from pathlib import Path

import numpy as np
import pytest
import requests
from workbooks import damaged, sheet_of, zipped

from dpscreen.paper.data import UnknownDataset, dataset, fetch, load
from dpscreen.paper.data.fetch import residential
from dpscreen.paper.data.store import (
    Archive,
    CorruptDataset,
    DownloadFailed,
    Frame,
    content_hash,
    read_csv,
)

FRAME = Frame(("a", "b", "t"), np.array([[1.0, 0.25, 3.0], [2.0, 0.0, 5.5]]))
TEXT = b"1,0.25,3\n2,0.0,5.5\n"
CASES = {
    "uci-abalone": (zipped({"tiny.data": b"M,0.25,3\nF,0.0,5.5\n"}), "tiny.data"),
    "uci-communities": (
        zipped({"in/tiny.data": b"8,?,?,Lakewoodcity,1,1,0.25,3\n9,?,?,X,1,2,0,5.5\n"}),
        "tiny.data",
    ),
    "uci-blogfeedback": (zipped({"B.zip": zipped({"tiny.csv": TEXT})}), "tiny.csv"),
    "libsvm": (b"3 1:1 2:0.25\n5.5 1:2\n", None),
}
URL = "https://archive.invalid/static/tiny"


def tiny(make_dataset, converter="uci-blogfeedback", frame=FRAME, file="tiny.csv"):
    return make_dataset({file: frame}, Archive(URL, converter, CASES[converter][1]))


def left_behind(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


@pytest.mark.parametrize("converter", CASES)
@pytest.mark.parametrize("file", ["tiny.csv", "tiny.csv.gz"])
def test_a_fetched_set_can_be_loaded(site, cache, make_dataset, converter, file):
    site.bodies["/static/tiny"] = CASES[converter][0]
    entry = tiny(make_dataset, converter, file=file)
    assert fetch(entry, base_url=site.base_url) == (cache / file,)
    table = load(entry)
    np.testing.assert_array_equal(np.column_stack([table.X, table.y]), FRAME.values)
    assert left_behind(cache) == [cache / file]


def test_a_workbook_gives_both_files(site, tmp_path, make_dataset):
    book = sheet_of([["DATE", "V-1", "V-9", "V-10"], [80, 1.5, 2, 3], [81, 4, 5, 6]])
    frames = {
        "sale.csv": Frame(("V-1", "V-9"), np.array([[1.5, 2.0], [4.0, 5.0]])),
        "cost.csv": Frame(("V-1", "V-10"), np.array([[1.5, 3.0], [4.0, 6.0]])),
    }
    site.bodies["/static/tiny"] = zipped({"folder/Book.xlsx": book})
    entry = make_dataset(frames, Archive(URL, "uci-residential", "Book.xlsx"))
    paths = fetch(entry, base_url=site.base_url, into=tmp_path / "new" / "place")
    assert [path.name for path in paths] == ["sale.csv", "cost.csv"]
    for path in paths:
        assert content_hash(read_csv(path)) == content_hash(frames[path.name])


def test_a_real_entry_asks_for_its_archive_s_path(site, cache):
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


def test_without_a_mirror_the_archive_itself_is_asked(site, cache, make_dataset):
    site.bodies["/static/tiny"] = CASES["libsvm"][0]
    archive = Archive(f"{site.base_url}/static/tiny", "libsvm", None)
    assert fetch(make_dataset({"tiny.csv": FRAME}, archive)) == (cache / "tiny.csv",)


def test_progress_is_reported(site, cache, make_dataset):
    frame = Frame(("a", "b", "t"), np.arange(90_000.0).reshape(-1, 3))
    body = "\n".join(f"{t!r} 1:{a!r} 2:{b!r}" for a, b, t in frame.values.tolist()).encode()
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


def test_a_wrong_address_is_one_sentence(site, cache, make_dataset):
    with pytest.raises(DownloadFailed, match="answered 404 Not Found for http://127"):
        fetch(tiny(make_dataset), base_url=site.base_url)
    assert left_behind(cache) == []


@pytest.mark.parametrize("converter", ["uci-blogfeedback", "libsvm"])
def test_a_truncated_body_is_one_sentence(site, cache, make_dataset, converter):
    site.bodies["/static/tiny"] = CASES[converter][0]
    site.held_back = 4
    with pytest.raises(DownloadFailed, match="broke off before its end"):
        fetch(tiny(make_dataset, converter), base_url=site.base_url)
    assert left_behind(cache) == []


def test_a_refused_connection_is_one_sentence(site, cache, make_dataset):
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(DownloadFailed, match=f"no connection to {address}"):
            fetch(tiny(make_dataset), base_url=f"http://{address}")
    assert left_behind(cache) == []


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (requests.Timeout(), "did not answer in time"),
        (requests.TooManyRedirects("Exceeded 30 redirects."), r"failed: Exceeded 30 redirects\.$"),
    ],
)
def test_an_archive_that_does_not_deliver_is_one_sentence(
    cache, make_dataset, monkeypatch, reason, told
):
    def get(*_asked, **_settings):
        raise reason

    monkeypatch.setattr(requests, "get", get)
    with pytest.raises(DownloadFailed, match=told):
        fetch(tiny(make_dataset))


def test_other_content_is_not_kept(site, cache, make_dataset):
    site.bodies["/static/tiny"] = zipped({"tiny.csv": TEXT.replace(b"0.25", b"0.26")})
    with pytest.raises(DownloadFailed, match="content hash is not the catalogue's") as caught:
        fetch(tiny(make_dataset), base_url=site.base_url)
    assert isinstance(caught.value, CorruptDataset)
    assert left_behind(cache) == []


@pytest.mark.parametrize(
    "body",
    [b"<html>moved</html>", zipped({"other.csv": TEXT}), zipped({"tiny.csv": b"a,b\n"}), b""],
    ids=["page", "other member", "no numbers", "empty"],
)
def test_another_archive_is_not_kept(site, cache, make_dataset, body):
    site.bodies["/static/tiny"] = body
    with pytest.raises(CorruptDataset, match=r"is not the Tiny archive.*nothing was kept"):
        fetch(tiny(make_dataset), base_url=site.base_url)
    assert left_behind(cache) == []


@pytest.mark.parametrize(
    "book",
    [
        b"not a workbook",
        zipped({"a.txt": b"a"}),
        damaged(sheet_of([["V-1", "V-9"], [1, 2]]), "xl/worksheets/sheet1.xml"),
        damaged(sheet_of([["V-1", "V-9"], [1, 2]]), "xl/workbook.xml"),
        sheet_of([["V-1", "V-9"], [1, 2]], name="Old"),
    ],
    ids=["no zip", "another zip", "half a sheet", "half a list of sheets", "no such sheet"],
)
def test_another_workbook_is_not_kept(site, cache, make_dataset, book):
    site.bodies["/static/tiny"] = zipped({"Book.xlsx": book})
    entry = make_dataset({"tiny.csv": FRAME}, Archive(URL, "uci-residential", "Book.xlsx"))
    with pytest.raises(CorruptDataset, match="is not the Tiny archive"):
        fetch(entry, base_url=site.base_url)
    assert left_behind(cache) == []


def test_a_workbook_needs_an_extra_which_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(DownloadFailed, match=r"dpscreen\[paper\]"):
        residential(sheet_of([["V-1", "V-9"], [1, 2]]), ("V-1",))


def test_a_download_needs_an_extra_which_is_named(cache, make_dataset, monkeypatch):
    monkeypatch.setitem(sys.modules, "requests", None)
    with pytest.raises(DownloadFailed, match=r"dpscreen\[paper\]"):
        fetch(tiny(make_dataset))


def test_a_damaged_zip_is_not_kept(site, cache, make_dataset):
    body = bytearray(zipped({"tiny.csv": TEXT * 50}))
    body[40:50] = bytes(10)
    site.bodies["/static/tiny"] = bytes(body)
    with pytest.raises(CorruptDataset, match="is not the Tiny archive"):
        fetch(tiny(make_dataset), base_url=site.base_url)
    assert left_behind(cache) == []


def test_a_good_copy_survives_a_bad_download(site, cache, make_dataset):
    entry = tiny(make_dataset)
    site.bodies["/static/tiny"] = CASES["uci-blogfeedback"][0]
    fetch(entry, base_url=site.base_url)
    site.bodies["/static/tiny"] = zipped({"tiny.csv": b"1,2,3\n"})
    with pytest.raises(CorruptDataset):
        fetch(entry, base_url=site.base_url)
    load(entry)


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
