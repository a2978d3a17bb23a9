"""What a user may hand to `fit`, made into private rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils.validation import validate_data

from dpscreen._core.arrays import Array, Integers
from dpscreen._core.messages import message
from dpscreen.models.categories import (
    FrameColumns,
    frame_columns,
    is_frame,
    is_number,
    is_truth,
    not_numbers,
    read_lazily,
)
from dpscreen.models.outcomes import as_outcomes, declared_classes, strangers
from dpscreen.privacy.budget import ALL_ROWS, ROW, Unit
from dpscreen.rows.lattice import MOST_ROWS
from dpscreen.rows.source import ArrayRows, RowSource
from dpscreen.rows.sparse import SparseRows, without_duplicates
from dpscreen.rows.spool import Spool
from dpscreen.rows.streamed import MappedArrays, StreamedRows
from dpscreen.tables.arrow import frames_of, is_in_memory, is_stream
from dpscreen.tables.check import RowsCheck, RowsReport
from dpscreen.tables.reading import EncodedRows, available_memory
from dpscreen.tables.scan import ScannedRows, rows_of
from dpscreen.tables.schema import TableSchema

STREAMED_BYTES = 2**28
"""From this size on, an array that is mapped from disk is left there."""


_SPARSE: dict[str, Any] = {"accept_sparse": ("csr", "csc", "coo"), "dtype": "numeric"}


def unit_of_rows(X: Any, told: int | None, schema: TableSchema | None = None) -> Unit:
    """Return the unit that a fit is for: what the rows say, or else the user's, or a row.

    Rows that are not read yet are those of the schema, if there is one.

    A number that contradicts the rows is refused. Looks at no row.
    """
    carried = getattr(X, "unit", None)  # of a frame, this may be a column
    if schema is not None:
        read = isinstance(X, StreamedRows | EncodedRows)
        if read and carried != schema.privacy_unit:
            raise ValueError(message("unit.another-schema"))
        carried = schema.privacy_unit
    if not isinstance(carried, Unit):
        return ROW if told is None else Unit(told)
    if told not in (None, carried.rows_per_unit):
        raise ValueError(message("unit.contradicted", given=told, unit=str(carried)))
    return carried


def take_ids(
    estimator: BaseEstimator, X: Any, unit: Any, schema: TableSchema | None
) -> tuple[Any, Integers, Unit]:
    """Return the rows without their column of ids, the ids, and the unit.

    Ids are whole numbers, −1 where there is none.
    """
    if not estimator.averages_units:
        raise ValueError(message("unit.rows-count", model=type(estimator).__name__))
    if estimator.rows_per_unit is not None:
        raise ValueError(message("unit.number-and-ids"))
    if schema is not None or isinstance(X, StreamedRows | EncodedRows):
        raise ValueError(message("unit.of-schema"))
    if is_stream(X):
        raise ValueError(message("unit.no-ids"))
    column = unit if isinstance(unit, str) else None
    if column is not None:
        if not is_frame(X) or _is_dask(X) or column not in X.columns:
            raise ValueError(message("unit.no-column"))
        X, unit = X.drop(columns=column), X[column]
    from pandas import factorize

    ids = aligned(unit, X)
    if not isinstance(ids, np.ndarray):
        # NumPy reads all ids of a list as one kind: a missing one would make floats of large
        # numbers, which floats cannot distinguish.
        cells = ids.astype(object) if hasattr(ids, "astype") else [*ids]
        ids = np.array(cells, dtype=object)
    if ids.ndim != 1:
        raise ValueError(message("unit.length"))
    codes = factorize(ids)[0].astype(np.int64)
    codes[[_is_no_id(one) for one in ids.tolist()]] = -1
    return X, codes, Unit(ALL_ROWS, column)


def _is_no_id(one: Any) -> bool:
    """Whether it is an empty text, or a number so large that floats cannot distinguish it.

    pandas makes floats of numbers if one is missing, so that one row would merge others' ids.
    """
    if isinstance(one, str):
        return not one
    return isinstance(one, int | float) and abs(one) >= 2**53


def aligned(y: Any, X: Any) -> Any:
    """Return y, or refuse a series of pandas whose rows have other labels than those of a frame."""
    pandas = all(type(one).__module__.split(".")[0] == "pandas" for one in (X, y))
    if pandas and len(X) == len(y) and not X.index.equals(y.index):
        raise ValueError(message("input.other-index"))
    return y


def private_rows(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    ids: Integers | None = None,
    most_unreadable: float | None = None,
) -> RowSource:
    """Return X and y as private rows, or say what is wrong without quoting them.

    Targets that have classes are 0 and 1. With ids, the rows of a unit are together. Rows that a
    schema reads here are checked, unless nobody says how many cells may be unreadable at most:
    `FormatFault` says what does not fit.
    """
    y, schema = aligned(y, X), estimator.table_schema
    if estimator.family.n_classes:
        estimator.classes_ = declared_classes(estimator.classes)
        if schema is not None:
            own = declared_classes(schema.classes)
            if list(estimator.classes) not in ([0, 1], own.tolist()):
                raise ValueError(message("classes.of-schema"))
            estimator.classes_ = own
        y = y if isinstance(y, str) else as_outcomes(y, estimator.classes_)
    rows = (_rows if schema is None else _rows_of_schema)(estimator, X, y, most_unreadable)
    if rows.n_rows > MOST_ROWS:
        raise ValueError(message("input.too-many", most=MOST_ROWS))
    if estimator.family.n_classes and rows.target_total(strangers)[0]:
        rows.close()  # nobody else will: a cluster would keep them
        raise ValueError(message("classes.not-declared"))
    if ids is None:
        return rows
    if not isinstance(rows, ArrayRows):
        raise ValueError(message("unit.no-ids"))
    if len(ids) != rows.n_rows:
        raise ValueError(message("unit.length"))
    kept = ids >= 0
    if not kept.any():
        raise ValueError(message("input.none-counts"))
    return rows.where(kept).owned(ids[kept])


def _stop_at_faults(report: RowsReport | None) -> None:
    if report is not None:
        report.stop(message("input.checked"))


def _rows_of_schema(
    estimator: BaseEstimator, X: Any, y: Any, most_unreadable: float | None
) -> RowSource:
    """Return the rows of a raw table, as the schema of the estimator reads them.

    Those on a cluster, and those that are encoded already, are not checked.
    """
    schema = estimator.schema_
    if y is not None:
        raise ValueError(message("input.target-in-schema"))
    if _is_dask(X) and is_frame(X):
        return _dask_rows_of_schema(estimator, X)
    if is_stream(X):
        counts = None if most_unreadable is None else RowsCheck(schema)
        X = rows_of(X, schema, counts)
        if counts is not None and most_unreadable is not None:
            _stop_at_faults(counts.report(most_unreadable))
    elif is_in_memory(X):
        if most_unreadable is not None:
            _stop_at_faults(schema.check(X, most_unreadable=most_unreadable))
        X = schema.encode(X)
    elif not isinstance(X, StreamedRows | EncodedRows):
        raise ValueError(message("input.no-names"))
    names = X.reader.feature_names if isinstance(X, StreamedRows) else X.feature_names
    if names != schema.feature_names:
        raise ValueError(message("input.other-features"))
    return _schema_rows(estimator, X, None, most_unreadable)


def _rows(estimator: BaseEstimator, X: Any, y: Any, most_unreadable: float | None) -> RowSource:
    if isinstance(X, StreamedRows | EncodedRows):
        return _schema_rows(estimator, X, y, most_unreadable)
    if isinstance(X, np.ndarray):
        if estimator.categories:
            raise ValueError(message("categories.need-a-frame"))
        if (
            isinstance(X, np.memmap)  # a large table of numbers, with a target beside it
            and X.ndim == 2
            and X.dtype.kind in "iuf"
            and X.nbytes >= STREAMED_BYTES
            and isinstance(y, np.ndarray)
            and y.dtype.kind in "biuf"
            and y.shape == (len(X),)
        ):
            return _named(estimator, StreamedRows(MappedArrays(X, y)), None)
        return ArrayRows(*_quietly(estimator, X, y=y, y_numeric=True))
    if is_stream(X):
        with closing(frames_of(X)) as frames:
            return _spooled(estimator, frames, y)
    columns = frame_columns(X, estimator.categories)
    if columns is not None:
        estimator.columns_ = columns
    if is_sparse(X, columns) and getattr(estimator, "_takes_sparse", False):
        rows, target = _quietly(estimator, _matrix(estimator, X), y=y, y_numeric=True, **_SPARSE)
        _quietly(estimator, X, skip_check_array=True)
        # Malformed indices are found here, before anything is booked.
        return SparseRows(without_duplicates(rows), target)
    if _is_dask(X):
        return _dask_rows(estimator, X, y)
    return ArrayRows(*rows_and_target(estimator, X, y))


def _schema_rows(
    estimator: BaseEstimator,
    X: StreamedRows | EncodedRows,
    y: Any,
    most_unreadable: float | None,
) -> RowSource:
    """Return rows that a schema read."""
    if y is not None:
        raise ValueError(message("input.target-in-file"))
    if isinstance(X, ScannedRows) and most_unreadable is not None:
        _stop_at_faults(X.check(most_unreadable))
    if estimator.categories is not None:
        raise ValueError(message("categories.of-schema"))
    estimator.missing_as_ = None  # they may have missing cells, which get a value
    unit = getattr(X, "unit", None)
    together = estimator.averages_units and unit is not None and unit.rows_per_unit > 1
    if isinstance(X, StreamedRows):
        rows = X.grouped() if together and X.n_rows else X
        return _named(estimator, rows, X.reader.feature_names)
    if not len(X):
        raise ValueError(message("input.none-counts"))
    features, target, names = X.named_arrays()
    found = ArrayRows(*rows_and_target(estimator, features, target))
    if not together:
        return _named(estimator, found, names)
    assert X.keys is not None, "all rows were read together"
    return _named(estimator, found.owned(X.keys), names)


def _spooled(estimator: BaseEstimator, frames: Iterator[Any], y: Any) -> RowSource:
    """Return the rows of a source that exports Arrow, whose columns but the target are features."""
    first = next(frames, None)
    if not isinstance(y, str) or first is None or y not in first.columns:
        raise ValueError(message("input.stream-target"))
    estimator.columns_ = frame_columns(first.drop(columns=y), estimator.categories)
    if estimator.columns_ is None:
        del estimator.columns_

    def arrays(frame: Any) -> tuple[Array, Array]:
        target = frame[y]
        if estimator.family.n_classes:
            target = as_outcomes(target, estimator.classes_)
        return rows_and_target(estimator, frame.drop(columns=y), target)

    features, target = arrays(first)
    parts = chain([(features, target)], map(arrays, frames))
    spool = Spool(parts, features.shape[1], None, in_memory=available_memory() // 4)
    return ArrayRows(*spool.arrays()) if spool.fits_memory else StreamedRows(spool)


def _dask_rows(estimator: BaseEstimator, X: Any, y: Any) -> RowSource:
    from dpscreen.rows.cluster import cluster_rows

    columns = _with_levels(estimator)
    if columns is None:
        return _named(estimator, *cluster_rows(X, y))
    rows, _ = cluster_rows(read_lazily(X, columns.read_part, columns.feature_names), y)
    _named(estimator, rows, columns.names)
    estimator.n_features_in_ = len(columns.names)
    return rows


def _is_dask(X: Any) -> bool:
    return type(X).__module__.split(".")[0].startswith("dask")


def _dask_rows_of_schema(estimator: BaseEstimator, X: Any) -> RowSource:
    """Return the rows of a raw Dask frame, read by the schema where its partitions are."""
    from dpscreen.rows.cluster import cluster_rows

    schema = estimator.schema_
    if schema.unit is not None:
        raise ValueError(message("unit.in-partitions"))
    names = schema.feature_names
    read = read_lazily(X, partial(_features_and_target, schema=schema), [*names, _TARGET])
    rows, _ = cluster_rows(read[list(names)], read[_TARGET])
    return _named(estimator, rows, names)


_TARGET = "\0 target"
"""A name that no column of a schema has."""


def _features_and_target(part: Any, schema: TableSchema) -> Array:
    rows = schema.encode(part)
    return np.column_stack((rows.X, rows.y))


def _with_levels(estimator: BaseEstimator) -> FrameColumns | None:
    """Return the columns that the model is for, if some are categories: then rows are encoded."""
    columns: FrameColumns | None = getattr(estimator, "columns_", None)
    return columns if columns is not None and columns.levels else None


def is_sparse(X: Any, columns: FrameColumns | None = None) -> bool:
    """Whether X is a scipy matrix or array, or a frame of sparse columns beside its categories."""
    if sparse.issparse(X):
        return True
    if not is_frame(X):
        return False
    levels = () if columns is None else columns.levels
    dtypes = [one for name, one in zip(X.columns, X.dtypes, strict=True) if name not in levels]
    return bool(dtypes) and all(hasattr(dtype, "fill_value") for dtype in dtypes)


def _named(estimator: BaseEstimator, rows: RowSource, names: tuple[str, ...] | None) -> RowSource:
    """Set on the estimator what columns there are, as scikit-learn's own check would."""
    estimator.n_features_in_ = rows.n_features
    if names is not None:
        estimator.feature_names_in_ = np.asarray(names, dtype=object)
    if not rows.n_rows:
        raise ValueError(message("input.none"))
    return rows


# What scikit-learn may say of an input without quoting it, and what we add. Anything else is
# replaced: its messages may hold a cell or a whole array.
_RESHAPE = (
    "Reshape your data: array.reshape(-1, 1) for one feature, array.reshape(1, -1) for one row."
)
_FILL = (
    "Fill it by a rule that does not look at the data, such as a value that you choose beforehand. "
    "Which column it is in is not reported here, as that would reveal more of the rows; in a data "
    "frame, X.isna().any() shows it."
)
_LEAVE_OUT = "A row may be left out for its own target, or filled by a rule chosen beforehand."
_HARMLESS = {
    r"Input X contains (?:NaN|infinity or a value too large for dtype\('float64'\))": _FILL,
    r"Input y contains (?:NaN|infinity or a value too large for dtype\('float64'\))": _LEAVE_OUT,
    r"Expected 2D array, got (?:1D|scalar) array instead": _RESHAPE,
    r"Expected 2D input, got input with shape \([\d, ]*\)": _RESHAPE,
    r"Found array with dim \d+, while dim <= 2 is required": "",
    r"Found array with \d+ (?:sample|feature)\(s\) \(shape=\([\d, ]*\)\) while a minimum of \d+ "
    r"is required": "",
    r"Found input variables with inconsistent numbers of samples: \[[\d, ]*\]": "",
    r"X has \d+ features, but \w+ is expecting \d+ features as input": "",
    r"y should be a 1d array, got an array of shape \([\d, ]*\) instead": "",
    r"(?:This )?\w+(?: estimator)? requires y to be passed, but the target y is None": "",
    r"Complex data not supported": "",
    r"(?:float\(\) )?argument must be a string or a (?:real )?number": "",
    r"Sparse data was passed(?: for [Xy])?, but dense data is required": "Use .toarray().",
}
_NAMES_OF_COLUMNS = "The feature names should match those that were passed during fit"


def rows_and_target(estimator: BaseEstimator, X: Any, y: Any) -> tuple[Array, Array]:
    """Return X and y as finite float64 arrays, or say what is wrong without quoting them."""
    columns = _with_levels(estimator)
    if columns is None:
        rows, target = _quietly(estimator, X, y=y, y_numeric=True)
        return rows, target
    rows, target = _quietly(estimator, _encoded(columns, X), y=y, y_numeric=True)
    _quietly(estimator, X, skip_check_array=True)  # the names and the number of the columns
    return rows, target


def scored_rows(estimator: BaseEstimator, X: Any, y: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Return the targets of rows to score, which rows have one, and their weights.

    Without y, the targets are those of the raw table, by the schema of the model; 0 and 1 of
    classes.
    """
    schema = estimator.table_schema
    if y is not None:
        return y, slice(None), weight
    if schema is None or not (is_frame(X) or is_in_memory(X)):
        raise ValueError(message("input.no-target"))
    target = schema.encode_target(X.compute() if _is_dask(X) else X)
    kept = ~np.isnan(target)
    return target[kept], kept, None if weight is None else np.asarray(weight)[kept]


def rows_alone(estimator: BaseEstimator, X: Any) -> Array:
    """Return the rows to predict for, checked like those of the fit.

    Of a source that exports Arrow, the columns of the fit are read.
    """
    schema = estimator.table_schema
    if schema is not None and (is_frame(X) or is_in_memory(X) or is_stream(X)):
        import pandas as pd

        table = X.compute() if _is_dask(X) else X
        names = list(estimator.feature_names_in_)
        X = pd.DataFrame(schema.encode_features(table, names), columns=names)
    if is_stream(X):
        fitted = [*getattr(estimator, "feature_names_in_", ())] or None
        parts = [rows_alone(estimator, frame) for frame in frames_of(X, fitted)]
        return np.concatenate(parts) if parts else np.empty((0, estimator.n_features_in_))
    columns = _with_levels(estimator)
    if columns is None:
        found = np.array(_quietly(estimator, X, reset=False), dtype=np.float64)
        if hasattr(estimator, "missing_as_"):
            np.copyto(found, estimator.missing_as_, where=np.isnan(found))
        return found
    frame = X.compute() if hasattr(X, "compute") else X  # Dask's, of which no names are found
    if is_frame(frame) and set(columns.levels) <= set(frame.columns):
        columns.warn_of_strangers(frame)
    return _encoded(columns, _quietly(estimator, frame, reset=False, skip_check_array=True))


def _encoded(columns: FrameColumns, X: Any) -> Array:
    """Return the features of a frame with categories, or say what is wrong without quoting it."""
    given = columns.of_numbers(X)
    numbers = np.empty((len(X), 0))
    if len(given.columns):
        _refuse_text(given, None)
        look = partial(check_array, given, dtype=np.float64, input_name="X")
        numbers = _without_quoting(look, given)
    return columns.encoded(X, numbers)


def _quietly(estimator: BaseEstimator, X: Any, **options: Any) -> Any:
    if not options.get("skip_check_array"):
        _refuse_text(X, options.get("y"))
    options.setdefault("dtype", np.float64)
    if hasattr(estimator, "missing_as_"):
        options.setdefault("ensure_all_finite", "allow-nan")
    found = _without_quoting(partial(validate_data, estimator, X, **options), X)
    if "y" not in options:
        return found
    rows, y = found
    if y.dtype.kind not in "biuf":
        raise ValueError(not_numbers("y", target=True))
    target = np.asarray(y, dtype=np.float64)  # what was an object may be NaN now
    _without_quoting(partial(assert_all_finite, target, input_name="y"), X)
    return rows, target


def _without_quoting(look: Callable[[], Any], X: Any) -> Any:
    try:
        with np.errstate(all="ignore"):  # sums of huge values overflow while they are looked over
            return look()
    except Warning:
        raise
    except Exception as problem:  # whatever it is, its text must not get out
        kind = TypeError if isinstance(problem, TypeError) else ValueError
        told = _without_values(str(problem), X)
    # Raised out here so that the original is not even attached.
    raise kind(told)


def _refuse_text(X: Any, y: Any) -> None:
    """Refuse text by its type, whether or not this text would pass for numbers."""
    # Plain objects may be numbers, and are looked at one by one, later.
    if is_frame(X):
        columns = _columns_but(lambda one: str(one).lower() == "object" or is_number(one), X)
        if columns:
            raise ValueError(not_numbers(columns))
    for name, values in (("X", X), ("y", y)):
        if getattr(getattr(values, "dtype", None), "kind", "") in ("U", "S"):
            raise ValueError(not_numbers(name, target=name == "y"))


def _without_values(text: str, X: Any) -> str:
    if text.startswith(_NAMES_OF_COLUMNS):
        return text  # column names are public, and the list of them is what helps
    for pattern, advice in _HARMLESS.items():
        found = re.match(pattern, text)
        if found:
            return f"{found.group()}. {advice}".rstrip()
    columns = _columns_but(is_number, X) if is_frame(X) else ""
    return not_numbers(columns or "X and y", target=not columns)


def _columns_but(fits: Callable[[Any], bool], X: Any) -> str:
    """Name the columns of a data frame whose type does not fit: names are public."""
    names = [str(name) for name, one in zip(X.columns, X.dtypes, strict=True) if not fits(one)]
    return f"X, column {', '.join(names)}," if names else ""


def sparse_alone(estimator: BaseEstimator, X: Any) -> Any:
    """Return the sparse rows to predict for, by rows and without duplicates."""
    _quietly(estimator, X, reset=False, skip_check_array=True)
    matrix = _matrix(estimator, X)
    return without_duplicates(_without_quoting(lambda: check_array(matrix, **_SPARSE), X))


def _matrix(estimator: BaseEstimator, X: Any) -> Any:
    """Return a sparse data frame as a scipy matrix, its categories encoded; a matrix as it is."""
    if sparse.issparse(X):
        return X
    columns = _with_levels(estimator)
    frame = X if columns is None else columns.of_numbers(X)
    if any(dtype.fill_value != 0 for dtype in frame.dtypes):
        raise ValueError(message("input.sparse-fill"))
    if any(map(is_truth, frame.dtypes)):
        import pandas as pd

        frame = frame.astype(pd.SparseDtype(np.float64, 0))
    matrix = frame.sparse.to_coo()
    return matrix if columns is None else columns.encoded_sparse(X, matrix)
