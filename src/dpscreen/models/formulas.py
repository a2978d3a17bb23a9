"""A model as other software runs it: a formula in SQL, R or Excel, scikit-learn's own steps, ONNX.

Each clips features to their bounds, as `predict` does, and gives the same numbers up to the last
few bits. Features that the model does not use are left out. Names are quoted, so that none can
end the formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpscreen._core.arrays import AnyArray, Array
from dpscreen._core.words import letters, outcome, plain
from dpscreen.models.categories import FrameColumns, about_columns, declared_in
from dpscreen.models.release import Release

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

COLUMNS_OF_A_SHEET = 16_384
LONGEST_EXCEL = 8_192


class NoFormula(ValueError):
    """A model that a language cannot hold, and why."""


def _doubled(mark: str) -> Callable[[str], str]:
    """Return what quotes a text by a mark, which is written twice inside."""
    return lambda text: mark + text.replace(mark, 2 * mark) + mark


def _escaped(mark: str) -> Callable[[str], str]:
    """Return what quotes a text by a mark, before which a backslash stands inside."""
    return lambda text: mark + text.replace("\\", "\\\\").replace(mark, f"\\{mark}") + mark


def _sql_name(name: str) -> str:
    if "\0" in name:
        raise NoFormula("SQL has no name that holds a zero byte.")
    return _doubled('"')(name)


@dataclass(frozen=True)
class Language:
    """How a language writes things, {} standing for what they are made of.

    A clip is made of a value and two ends; `is_level`, 1 or 0, of a column and a text; `filled` of
    a column and what cells count as, missing ones and others. Without `name` columns are cells.
    """

    clip: str
    filled: str
    chance: str
    is_level: str
    text: Callable[[str], str]
    name: Callable[[str], str] | None = None
    whole: str = "{}"
    between: str = "\n  "
    comment: str = ""


LANGUAGES = {
    "sql": Language(  # CASE: not every dialect has LEAST, and MIN may be something else
        clip="CASE WHEN {0} < {1} THEN {1} WHEN {0} > {2} THEN {2} ELSE {0} END",
        filled="COALESCE({2}, {1})",
        chance="1 / (1 + EXP(-({})))",
        is_level="CASE WHEN {} = {} THEN 1 ELSE 0 END",
        name=_sql_name,
        text=_doubled("'"),
        comment="--",
    ),
    "r": Language(  # in brackets, without which it would end with its first line
        clip="pmin(pmax({0}, {1}), {2})",
        filled="ifelse(is.na({0}), {1}, {2})",
        chance="plogis({})",
        is_level="({} %in% {})",
        name=_escaped("`"),
        text=_escaped('"'),
        whole="({})",
        comment="#",
    ),
    "excel": Language(  # EXACT: = would not tell a from A; MAX passes over TRUE and texts, 0+ not
        clip="MIN(MAX(0+{0},{1}),{2})",
        filled='IF({0}="",{1},{2})',  # else an empty cell would count as 0
        chance="1/(1+EXP(-({})))",
        is_level="IF(EXACT({},{}),1,0)",
        text=_doubled('"'),
        whole="={}",
        between=" ",
    ),
}


def formula_of(release: Release, language: str) -> str:
    """Return a model as a formula of a language: sql, r or excel."""
    form, cells = LANGUAGES[language], cells_of(release)
    total = form.between.join(_terms(release, form, form.name or cells.__getitem__))
    text = form.whole.format(total if release.classes is None else form.chance.format(total))
    if form.name is None and (len(cells) > COLUMNS_OF_A_SHEET or len(text) > LONGEST_EXCEL):
        raise NoFormula("the model is too large for one cell of Excel. Use SQL or R.")
    return text


def _terms(release: Release, form: Language, name: Callable[[str], str]) -> Iterator[str]:
    """Yield the intercept and what each feature adds, in the order of the features."""
    yield number(release.intercept)
    levels, fills = levels_of(release), fills_of(release)
    for j, coefficient in enumerate(release.coefficients.tolist()):
        if coefficient:
            column, level = levels.get(release.names[j], (release.names[j], None))
            told, ends = (cell := name(column)), release.feature_bounds[j].tolist()
            if release.clips_features and level is None:
                told = form.clip.format(cell, *map(number, ends))
            if (fill := fills.get(column)) is not None:  # it may lie beyond released bounds
                text = (
                    number(np.clip(float(fill), *ends).item()) if level is None else form.text(fill)
                )
                told = form.filled.format(cell, text, told)
            if level is not None:
                told = form.is_level.format(told, form.text(level))
            yield f"+ {number(coefficient)} * {told}"


def levels_of(release: Release) -> dict[str, tuple[str, str]]:
    """Return column and level of features such as ward=B, declared in the model or its schema."""
    return {
        f"{column}={level}": (column, level)
        for column, levels in declared_in(release.schema, release.categories).items()
        for level in levels
    }


def fills_of(release: Release) -> dict[str, str]:
    """Return what a missing cell of a column counts as, where the model has a whole schema."""
    import pyarrow as pa

    from dpscreen.tables.declaration import SchemaProblem
    from dpscreen.tables.schema import TableSchema

    try:
        schema = TableSchema.from_dict(release.schema or {})
        schema.check()
    except SchemaProblem:
        return {}
    nothing = pa.table({column: pa.nulls(1, pa.string()) for column in schema.columns})
    row, levels = schema.encode_features(nothing)[0].tolist(), levels_of(release)
    features = zip(schema.feature_names, row, strict=True)
    told = ((name, value) for name, value in features if value or name not in levels)
    return dict(levels.get(name, (name, str(value))) for name, value in told)


def columns_of(release: Release) -> list[str]:
    """Return the columns that features are made of, in their order; a category is one."""
    levels = levels_of(release)
    return list(dict.fromkeys(levels[one][0] if one in levels else one for one in release.names))


def cells_of(release: Release) -> dict[str, str]:
    """Return the cell of each column of a sheet: A2 for the first."""
    return {name: f"{letters(j).upper()}2" for j, name in enumerate(columns_of(release))}


def number(value: float) -> str:
    """Write a number so that it reads back exactly, in brackets if it is negative."""
    text = repr(value)
    return f"({text})" if value < 0 or math.copysign(1, value) < 0 else text


def comments_of(release: Release, language: str) -> Iterator[str]:
    """Yield what a reader of the formula should know, a line each."""
    sign = LANGUAGES[language].comment
    target = release.target or "the target"
    what = f"prediction of {target}"
    if release.classes is not None:
        what = f"chance that {target} is {outcome(release.classes[1])}"
    told = [f"{release.estimator}: {what}"]
    if release.zero_one.any():
        told.append("What is true or false counts as 1 or 0.")
    if release.clips_features:
        told.append("Features are clipped to the bounds with which the model was fitted.")
    told += about_cells(release)
    if language == "excel":
        cells = (f"{cell} {name}" for name, cell in cells_of(release).items())
        told.append("Cells: " + ", ".join(cells))
    yield from (f"{sign} {plain(line)}".strip() for line in told)


def about_cells(release: Release) -> Iterator[str]:
    """Yield what stands for a column of a table, where it is not what its cells hold."""
    if release.schema is None:
        return
    yield from about_columns(release.names, release.schema)
    known = "count as they did in the fit; so must those that cannot be read."
    before = "must be filled before: by the schema's fill, or the middle of the bounds."
    yield f"Missing cells {known if fills_of(release) else before}"


# --- scikit-learn ---------------------------------------------------------------------------------


def pipeline_of(release: Release) -> Pipeline:
    """Return a fitted pipeline; of a model with categories, it takes their frame."""
    from sklearn.pipeline import Pipeline

    if not release.categories:
        steps = _steps(release)
        if release.named:
            steps[0][1].feature_names_in_ = np.array(release.names, dtype=object)
        return Pipeline(steps)
    columns = release.columns
    order = [release.names.index(name) for name in _sorted_features(columns)]
    steps = _steps(replace(release, coefficients=release.coefficients[order]))  # levels are 0 or 1
    return Pipeline([("levels", _encoder(columns)), *steps])


def _steps(release: Release) -> list[tuple[str, Any]]:
    """Return a scaler that clips to the bounds, and a line or a logistic one."""
    low, high = release.feature_bounds.T
    widths, line = high - low, _line(release)
    if not release.clips_features:
        return [("model", line)]
    line.coef_ = line.coef_ * widths
    line.intercept_ = line.intercept_ + release.coefficients @ low
    return [("clip", _scaler(low, widths)), ("model", line)]


def _encoder(columns: FrameColumns) -> Any:
    """Return what makes features of a frame, fitted to declared levels in place of rows."""
    import pandas as pd
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import OneHotEncoder

    parts: list[tuple[str, Any, list[str]]] = []
    made = pd.DataFrame({name: [0.0] for name in columns.names})
    for place, name in enumerate(columns.names):
        one: Any = "passthrough"
        if name in columns.levels:
            of = _values(columns.levels[name])
            one = OneHotEncoder(categories=[np.sort(of)], drop=of[:1], handle_unknown="ignore")
            made[name] = of[:1]
        parts.append((f"column {place}", one, [name]))
    return ColumnTransformer(parts, sparse_threshold=0).fit(made)


def _sorted_features(columns: FrameColumns) -> Iterator[str]:
    """Yield the features with the levels of each category sorted, as the encoder needs numbers."""
    for name in columns.names:
        levels = columns.levels.get(name)
        if levels is None:
            yield name
        else:
            yield from (f"{name}={levels[1 + j]}" for j in np.argsort(_values(levels)[1:]))


def _values(levels: Sequence[str]) -> AnyArray:
    """Return levels as numbers, if all of them are, else as texts."""
    try:
        return np.array(levels, dtype=np.float64)
    except ValueError:
        return np.array(levels, dtype=np.object_)


def _scaler(low: Array, widths: Array) -> Any:
    """Return a scaler from the bounds to [0, 1] that clips, as if it had been fitted."""
    from sklearn.preprocessing import MinMaxScaler

    scaler = MinMaxScaler(clip=True)
    scaler.scale_, scaler.min_ = 1 / widths, -low / widths
    scaler.data_min_, scaler.data_max_, scaler.data_range_ = low, low + widths, widths
    scaler.n_features_in_, scaler.n_samples_seen_ = len(low), 0
    return scaler


def _line(release: Release) -> Any:
    from sklearn.linear_model import LinearRegression, LogisticRegression

    coefficients = release.coefficients.copy()
    if release.classes is None:
        line = LinearRegression()
        line.coef_, line.intercept_ = coefficients, release.intercept
    else:
        line = LogisticRegression()
        line.coef_, line.intercept_ = coefficients[None, :], np.array([release.intercept])
        line.classes_ = np.array(release.classes)
    line.n_features_in_ = len(coefficients)
    return line


# --- ONNX -----------------------------------------------------------------------------------------


def onnx_of(release: Release) -> bytes:
    """Return scikit-learn's steps as an ONNX model, by the field's own converter."""
    try:
        from skl2onnx import to_onnx
        from skl2onnx.common.data_types import DoubleTensorType
    except ImportError:
        raise ImportError("ONNX needs a converter: pip install 'dpscreen[onnx]'.") from None
    from sklearn.pipeline import Pipeline

    table = DoubleTensorType([None, release.n_features])
    options = None if release.classes is None else {"zipmap": False}  # chances as a table
    made = to_onnx(Pipeline(_steps(release)), initial_types=[("features", table)], options=options)
    return bytes(made.SerializeToString())
