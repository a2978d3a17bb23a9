"""From an archive's original file to our frames: pure functions from bytes to numbers.

Each converter is told the columns, features first and then every target, and returns them as one
frame; it raises ValueError where the bytes are not what it expects.
"""

import io
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from dpscreen.data.catalogue import ConverterName, Dataset
from dpscreen.data.columns import COMMUNITIES_NOT_PREDICTIVE
from dpscreen.data.content import Frame
from dpscreen.data.csvfile import parse_numbers
from dpscreen.data.errors import DownloadFailed

Converter = Callable[[bytes, Sequence[str]], Frame]
Cell = str | float | None


def convert(payload: bytes, entry: Dataset) -> dict[str, Frame]:
    """The data set's files, by name, from what its archive delivers."""
    if entry.archive is None:
        raise ValueError(f"{entry.title} has no archive to convert from")
    if entry.archive.member is not None:
        payload = zip_member(payload, entry.archive.member)
    columns = (*entry.features, *(file.target for file in entry.files))
    whole = CONVERTERS[entry.archive.converter](payload, columns)
    return {file.name: whole.select((*entry.features, file.target)) for file in entry.files}


def zip_member(payload: bytes, name: str) -> bytes:
    """The file of that name, in whatever folder or inner zip of the archive it lies."""
    try:
        found = _search_zip(payload, name)
    except zipfile.BadZipFile as reason:
        raise ValueError("it is not a whole zip file") from reason
    if found is None:
        raise ValueError(f"it does not contain {name}")
    return found


def abalone(payload: bytes, columns: Sequence[str]) -> Frame:
    """UCI's abalone.data, the letter in front coded as LIBSVM does: M = 1, F = 2, I = 3."""
    codes = {b"M": b"1", b"F": b"2", b"I": b"3"}
    coded = re.sub(rb"(?m)^([MFI])(?=,)", lambda sex: codes[sex[1]], payload)
    return parse_numbers(io.BytesIO(coded), columns)


def communities(payload: bytes, columns: Sequence[str]) -> Frame:
    """UCI's communities.data: `?` is missing, the five columns that do not predict are dropped."""
    published = (*COMMUNITIES_NOT_PREDICTIVE, *columns)
    return parse_numbers(io.BytesIO(payload), published, keep=columns, missing="?")


def blogfeedback(payload: bytes, columns: Sequence[str]) -> Frame:
    """UCI's blogData_train.csv, bare numbers with the target last."""
    return parse_numbers(io.BytesIO(payload), columns)


def libsvm(payload: bytes, columns: Sequence[str]) -> Frame:
    """LIBSVM's text, `label index:value ...` with indices from 1; what is left out is zero."""
    from sklearn.datasets import load_svmlight_file

    features, labels = load_svmlight_file(
        io.BytesIO(payload), n_features=len(columns) - 1, zero_based=False
    )
    return Frame(tuple(columns), np.column_stack([features.toarray(), labels]))


def residential(payload: bytes, columns: Sequence[str]) -> Frame:
    """Sheet `Data` of UCI's workbook: the columns headed V-..., so none of the date columns.

    V-11 to V-29 appear once per time lag, and are named after it.
    """
    rows = _sheet(payload, "Data")
    header = _residential_header(rows)
    places = _lagged_names(rows[header])
    records = [row for row in rows[header + 1 :] if any(cell is not None for cell in row)]
    values = [[_number(row, place) for place in places.values()] for row in records]
    return Frame(tuple(places), np.array(values).reshape(-1, len(places))).select(columns)


CONVERTERS: Mapping[ConverterName, Converter] = {
    "uci-abalone": abalone,
    "uci-communities": communities,
    "uci-blogfeedback": blogfeedback,
    "uci-residential": residential,
    "libsvm": libsvm,
}


def _search_zip(payload: bytes, name: str) -> bytes | None:
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        paths = archive.namelist()
        for path in paths:
            if path.rsplit("/", 1)[-1] == name:
                return archive.read(path)
        inner = (archive.read(path) for path in paths if path.lower().endswith(".zip"))
        return next((found for zipped in inner if (found := _search_zip(zipped, name))), None)


def _sheet(workbook: bytes, name: str) -> list[tuple[Cell, ...]]:
    try:
        import openpyxl
    except ImportError:
        raise DownloadFailed(
            "this archive is a workbook; to read it, `pip install 'dpscreen[paper]'`"
        ) from None
    try:
        book = openpyxl.load_workbook(io.BytesIO(workbook), read_only=True, data_only=True)
        return list(book[name].iter_rows(values_only=True))
    except (LookupError, SyntaxError, zipfile.BadZipFile) as reason:  # XML's errors are of syntax
        raise ValueError(f"it is not a whole workbook with a sheet {name!r}") from reason


def _residential_header(rows: Sequence[Sequence[Cell]]) -> int:
    for place, row in enumerate(rows):
        if {"V-1", "V-9"} <= {cell.strip() for cell in row if isinstance(cell, str)}:
            return place
    raise ValueError("the sheet has no row of headings V-1, V-2, ...")


def _lagged_names(header: Sequence[Cell]) -> dict[str, int]:
    seen: Counter[int] = Counter()
    names = {}
    for place, cell in enumerate(header):
        heading = re.fullmatch(r"\s*V-(\d+)\s*", cell) if isinstance(cell, str) else None
        if heading is None:
            continue
        variable = int(heading[1])
        seen[variable] += 1
        names[f"V-{variable}" + (f"_lag{seen[variable]}" if variable > 10 else "")] = place
    return names


def _number(row: Sequence[Cell], place: int) -> float:
    cell = row[place] if place < len(row) else None
    return np.nan if cell is None else float(cell)
