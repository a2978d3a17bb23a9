import numpy as np
import pytest
from workbooks import sheet_of, zipped

from dpscreen.paper.data import dataset, load
from dpscreen.paper.data.fetch import (
    CONVERTERS,
    abalone,
    blogfeedback,
    communities,
    convert,
    libsvm,
    residential,
    zip_member,
)
from dpscreen.paper.data.store import Archive, Frame

NAN = np.nan
DATES = ("START YEAR", "START QUARTER", "COMPLETION YEAR", "COMPLETION QUARTER")


def test_every_archive_has_a_converter():
    archives = [dataset(name).archive for name in ("abalone", "housing", "residential")]
    assert all(archive.converter in CONVERTERS for archive in archives)


def test_what_has_no_archive_is_not_converted():
    with pytest.raises(ValueError, match="Riboflavin has no archive"):
        convert(b"", dataset("riboflavin"))


def test_abalone_codes_sex_as_libsvm_does():
    frame = abalone(b"M,0.455,15\nF,0.53,9\nI,0.33,7\n", ("Sex", "Length", "Rings"))
    np.testing.assert_array_equal(frame.values, [[1, 0.455, 15], [2, 0.53, 9], [3, 0.33, 7]])


def test_abalone_refuses_another_letter():
    with pytest.raises(ValueError, match="X"):
        abalone(b"X,0.455,15\n", ("Sex", "Length", "Rings"))


def test_communities_drops_five_columns_and_keeps_gaps():
    text = b"8,?,?,Lakewoodcity,1,0.19,?,0.2\n53,5,81440,Tukwila,1,0,0.16,0.67\n"
    frame = communities(text, ("population", "police", "crime"))
    assert frame.columns == ("population", "police", "crime")
    np.testing.assert_array_equal(frame.values, [[0.19, NAN, 0.2], [0, 0.16, 0.67]])


def test_blogfeedback_is_bare_numbers():
    frame = blogfeedback(b"40.30467,0.0,1\n2,3,4.0\n", ("x1", "x2", "target"))
    np.testing.assert_array_equal(frame.values, [[40.30467, 0, 1], [2, 3, 4]])


def test_libsvm_fills_in_zeros_and_puts_the_label_last():
    frame = libsvm(b"24 1:0.00632 3:-2.31 \n-1.5e-1 2:7\n", ("a", "b", "c", "label"))
    np.testing.assert_array_equal(frame.values, [[0.00632, 0, -2.31, 24], [0, 7, 0, -0.15]])


@pytest.mark.parametrize("text", [b"1 4:2\n", b"1 0:2\n", b"<html>\n", b"1 1:x\n"])
def test_libsvm_refuses_what_does_not_fit(text):
    with pytest.raises(ValueError):  # noqa: PT011 - the message is scikit-learn's
        libsvm(text, ("a", "b", "c", "label"))


def test_residential_names_lags_and_drops_dates():
    header = [*DATES, "V-1", "V-8", "V-11", "V-12", "V-11", "V-12", " V-9 ", "V-10"]
    titles = ["PROJECT DATES", None, None, None, "VARIABLES"]
    rows = [titles, header, [81, 1, 85, 1, 1, 1200, 6713, 56.2, 0.1, None, 2200, 410], [None]]
    columns = ("V-1", "V-8", "V-11_lag1", "V-12_lag1", "V-11_lag2", "V-12_lag2", "V-9", "V-10")
    frame = residential(sheet_of(rows), columns)
    assert frame.columns == columns
    np.testing.assert_array_equal(frame.values, [[1, 1200, 6713, 56.2, 0.1, NAN, 2200, 410]])


def test_residential_gives_the_catalogue_s_columns():
    lagged = [f"V-{k}" for k in range(11, 30)] * 5
    header = [*DATES, *(f"V-{k}" for k in range(1, 9)), *lagged, "V-9", "V-10"]
    columns = (*dataset("residential").features, "V-9", "V-10")
    frame = residential(sheet_of([header, list(range(len(header)))]), columns)
    np.testing.assert_array_equal(frame.values, [np.arange(4.0, 109.0)])


def test_residential_needs_its_headings():
    with pytest.raises(ValueError, match="no row of headings"):
        residential(sheet_of([["a", "b"], [1, 2]]), ("V-1",))
    with pytest.raises(ValueError, match="no column 'V-2'"):
        residential(sheet_of([["V-1", "V-9"], [1, 2]]), ("V-1", "V-2", "V-9"))


def test_members_are_found_in_folders_and_inner_zips():
    inner = zipped({"deep/data.csv": b"inner"})
    assert zip_member(zipped({"a/b/data.csv": b"outer"}), "data.csv") == b"outer"
    assert zip_member(zipped({"x.txt": b"", "in.zip": inner}), "data.csv") == b"inner"
    with pytest.raises(ValueError, match=r"does not contain data\.csv"):
        zip_member(zipped({"x.txt": b""}), "data.csv")
    with pytest.raises(ValueError, match="not a whole zip"):
        zip_member(inner[:-30], "data.csv")


def test_each_file_gets_the_features_and_its_own_target(make_dataset):
    frames = {
        "p.csv": Frame(("a", "p"), np.array([[1.0, 2.0]])),
        "q.csv": Frame(("a", "q"), np.array([[1.0, 3.0]])),
    }
    archive = Archive("http://host/x.zip", "uci-blogfeedback", "x.csv")
    converted = convert(zipped({"x.csv": b"1,2,3\n"}), make_dataset(frames, archive))
    assert {name: frame.columns for name, frame in converted.items()} == {
        "p.csv": ("a", "p"),
        "q.csv": ("a", "q"),
    }
    np.testing.assert_array_equal(converted["q.csv"].values, frames["q.csv"].values)


def as_libsvm(table):
    rows = zip(table.X.tolist(), table.y.tolist(), strict=True)
    return "\n".join(
        " ".join([repr(label), *(f"{j}:{v!r}" for j, v in enumerate(row, 1) if v)])
        for row, label in rows
    ).encode()


@pytest.mark.parametrize("name", ["housing", "bodyfat", "pyrim", "triazines"])
def test_libsvm_text_of_the_checked_copy_converts_to_it(name, data_folder):
    table = load(name)
    (frame,) = convert(as_libsvm(table), dataset(name)).values()
    np.testing.assert_array_equal(frame.values, np.column_stack([table.X, table.y]))
