import pytest
from workbooks import workbook

from dpscreen.data.xlsx import column_number, read_sheet


def test_text_numbers_gaps_and_inline_strings():
    cells = (
        '<row r="1"><c r="A1" t="s"><v>1</v></c><c r="C1"><v>963.80999999999995</v></c></row>'
        '<row r="2"><c r="B2" t="inlineStr"><is><t>in</t><t>line</t></is></c>'
        '<c r="C2" t="str"><f>A1</f><v>sum</v></c><c r="D2"/></row>'
        "<row><c><v>1e3</v></c><c><v>-2</v></c></row>"
    )
    rows = read_sheet(workbook("Data", cells, strings=["zero", "one"]), "Data")
    assert rows == [["one", None, 963.81], [None, "inline", "sum", None], [1000.0, -2.0]]


def test_the_sheet_is_found_by_its_name():
    with pytest.raises(ValueError, match="no sheet 'Data'"):
        read_sheet(workbook("Notes", ""), "Data")


def test_damaged_parts_are_named():
    with pytest.raises(ValueError, match=r"sheet1\.xml is absent or damaged"):
        read_sheet(workbook("Data", "<row>"), "Data")


@pytest.mark.parametrize(
    ("reference", "number"), [("A1", 0), ("Z9", 25), ("AA1", 26), ("AB77", 27), ("DE3", 108)]
)
def test_columns_are_counted_in_letters(reference, number):
    assert column_number(reference) == number


def test_a_bad_reference_is_refused():
    with pytest.raises(ValueError, match="'12' is not a cell reference"):
        column_number("12")
