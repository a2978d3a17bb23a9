"""Cells of one sheet of an .xlsx workbook, with the standard library only.

A workbook is a zip of XML files (ECMA-376). Only what a plain sheet of text and numbers needs is
read: no formulas (their stored results are), no dates, no styles.
"""

import io
import re
import zipfile
from xml.etree import ElementTree

Cell = str | float | None

_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_DOCUMENT = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_PACKAGE = "{http://schemas.openxmlformats.org/package/2006/relationships}"


def read_sheet(workbook: bytes, sheet: str) -> list[list[Cell]]:
    """The rows of the sheet, each padded with None where cells were left out."""
    with zipfile.ZipFile(io.BytesIO(workbook)) as archive:
        strings = _shared_strings(archive)
        root = _xml(archive, _sheet_path(archive, sheet))
    return [_row(row, strings) for row in root.iter(f"{_MAIN}row")]


def column_number(reference: str) -> int:
    """The zero-based column of a cell reference: A1 is 0, AB7 is 27."""
    letters = re.match(r"[A-Z]+", reference)
    if letters is None:
        raise ValueError(f"{reference!r} is not a cell reference")
    number = 0
    for letter in letters.group():
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def _xml(archive: zipfile.ZipFile, path: str) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(archive.read(path))
    except (KeyError, ElementTree.ParseError) as reason:
        raise ValueError(f"the workbook's part {path} is absent or damaged") from reason


def _sheet_path(archive: zipfile.ZipFile, sheet: str) -> str:
    identifiers = {
        entry.get("name"): entry.get(f"{_DOCUMENT}id")
        for entry in _xml(archive, "xl/workbook.xml").iter(f"{_MAIN}sheet")
    }
    if sheet not in identifiers:
        raise ValueError(f"the workbook has no sheet {sheet!r}")
    for relation in _xml(archive, "xl/_rels/workbook.xml.rels").iter(f"{_PACKAGE}Relationship"):
        if relation.get("Id") == identifiers[sheet]:
            target = relation.get("Target", "")
            return target[1:] if target.startswith("/") else f"xl/{target}"
    raise ValueError(f"the workbook does not say where its sheet {sheet!r} is")


def _shared_strings(archive: zipfile.ZipFile) -> list[str]:
    if "xl/sharedStrings.xml" not in archive.namelist():
        return []
    return [_text(item) for item in _xml(archive, "xl/sharedStrings.xml").iter(f"{_MAIN}si")]


def _text(element: ElementTree.Element) -> str:
    return "".join(part.text or "" for part in element.iter(f"{_MAIN}t"))


def _row(row: ElementTree.Element, strings: list[str]) -> list[Cell]:
    cells: list[Cell] = []
    for cell in row.iter(f"{_MAIN}c"):
        reference = cell.get("r")
        place = len(cells) if reference is None else column_number(reference)
        cells.extend([None] * (place - len(cells)))
        cells.append(_value(cell, strings))
    return cells


def _value(cell: ElementTree.Element, strings: list[str]) -> Cell:
    kind = cell.get("t", "n")
    if kind == "inlineStr":
        return _text(cell)
    stored = cell.findtext(f"{_MAIN}v")
    if stored is None:
        return None
    if kind == "s":
        return strings[int(stored)]
    return float(stored) if kind == "n" else stored
