"""Small .xlsx workbooks with one sheet, and zip archives."""

import io
import zipfile

import openpyxl


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
