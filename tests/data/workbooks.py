"""Hand-made .xlsx workbooks with one sheet."""

import io
import zipfile
from xml.sax.saxutils import escape

MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"


def zipped(files):
    """A zip archive of these files, by path."""
    payload = io.BytesIO()
    with zipfile.ZipFile(payload, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, body in files.items():
            archive.writestr(path, body)
    return payload.getvalue()


def workbook(sheet, cells, strings=()):
    """A workbook whose one sheet holds the row elements given."""
    items = "".join(f"<si><t>{escape(text)}</t></si>" for text in strings)
    return zipped(
        {
            "xl/workbook.xml": f'<workbook {MAIN} xmlns:r="{OFFICE}"><sheets>'
            f'<sheet name="{sheet}" sheetId="1" r:id="rId7"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}">'
            '<Relationship Id="rId1" Target="styles.xml"/>'
            '<Relationship Id="rId7" Target="worksheets/sheet1.xml"/></Relationships>',
            "xl/worksheets/sheet1.xml": f"<worksheet {MAIN}><sheetData>{cells}</sheetData>"
            "</worksheet>",
            "xl/sharedStrings.xml": f"<sst {MAIN}>{items}</sst>",
        }
    )


def sheet_of(rows):
    """A workbook `Data` with these rows of text, numbers and gaps (None)."""
    strings = sorted({cell for row in rows for cell in row if isinstance(cell, str)})

    def element(cell):
        if cell is None:
            return "<c/>"
        if isinstance(cell, str):
            return f'<c t="s"><v>{strings.index(cell)}</v></c>'
        return f"<c><v>{cell:.17g}</v></c>"

    cells = "".join(f"<row>{''.join(map(element, row))}</row>" for row in rows)
    return workbook("Data", cells, strings)
