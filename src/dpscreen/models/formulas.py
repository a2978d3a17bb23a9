"""A model as other software runs it: a formula in SQL, R or Excel, scikit-learn's own steps, ONNX.

Each clips features to their bounds, as `predict` does, and gives the same numbers up to the last
few bits. Features that the model does not use are left out. Names are quoted, so that none can
end the formula.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpscreen._core.arrays import AnyArray, Array
from dpscreen._core.words import plain
from dpscreen.models.categories import FrameColumns, declared_fields, declared_in
from dpscreen.models.release import Release

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

COLUMNS_OF_A_SHEET = 16_384
LONGEST_EXCEL = 8_192


class NoFormula(ValueError):
    """A model that a language cannot hold, and why."""


class Formula(ABC):
    """How a language writes numbers, names, clips, truths and chances."""

    line: ClassVar[str] = "\n  "

    def of(self, release: Release) -> str:
        """Return the formula of a model: of a chance, if it is one of outcomes."""
        total = self.line.join(self._terms(release))
        return total if release.classes is None else self.chance(total)

    def _terms(self, release: Release) -> Iterator[str]:
        """Yield the intercept and what each feature adds, in the order of the features."""
        yield number(release.intercept)
        levels = levels_of(release)
        for j, coefficient in enumerate(release.coefficients.tolist()):
            if coefficient:
                level = levels.get(release.names[j])
                yield f"+ {number(coefficient)} * {self._feature(release, j, level)}"

    def _feature(self, release: Release, j: int, level: tuple[str, str] | None) -> str:
        if level is not None:
            return self.is_level(self.name(level[0]), level[1])
        low, high = (number(end) for end in release.feature_bounds[j].tolist())
        told = self.column(release, j)
        return self.clipped(told, low, high) if release.clips_features else told

    def column(self, release: Release, j: int) -> str:
        """Write what stands for a feature."""
        return self.name(release.names[j])

    @abstractmethod
    def name(self, name: str) -> str:
        """Write the name of a column."""

    @abstractmethod
    def clipped(self, name: str, low: str, high: str) -> str:
        """Write a value that is held between two ends."""

    @abstractmethod
    def is_level(self, name: str, level: str) -> str:
        """Write 1 where a column has that level, else 0."""

    @abstractmethod
    def chance(self, log_odds: str) -> str:
        """Write the chance that has these log-odds."""


def levels_of(release: Release) -> dict[str, tuple[str, str]]:
    """Return column and level of features such as ward=B, declared in the model or its schema."""
    return {
        f"{column}={level}": (column, level)
        for column, levels in declared_in(release.schema, release.categories).items()
        for level in levels
    }


def number(value: float) -> str:
    """Write a number so that it reads back exactly, in brackets if it is negative."""
    text = repr(value)
    return f"({text})" if value < 0 or math.copysign(1, value) < 0 else text


class Sql(Formula):
    """Standard SQL: CASE for clips, names in double quotes."""

    def name(self, name: str) -> str:
        """Quote a name."""
        if "\0" in name:
            raise NoFormula("SQL has no name that holds a zero byte.")
        return '"' + name.replace('"', '""') + '"'

    def clipped(self, name: str, low: str, high: str) -> str:
        """Write CASE: not every dialect has LEAST, and MIN may be something else."""
        below, above = f"WHEN {name} < {low} THEN {low}", f"WHEN {name} > {high} THEN {high}"
        return f"CASE {below} {above} ELSE {name} END"

    def is_level(self, name: str, level: str) -> str:
        """Compare with a quoted text."""
        text = "'" + level.replace("'", "''") + "'"
        return f"CASE WHEN {name} = {text} THEN 1 ELSE 0 END"

    def chance(self, log_odds: str) -> str:
        """Write the logistic function; beyond 700 an exponential overflows."""
        return f"1 / (1 + EXP(-({log_odds})))"


class RLanguage(Formula):
    """R: pmin and pmax, so that whole columns are predicted; names in backticks."""

    def name(self, name: str) -> str:
        """Quote a name."""
        return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"

    def clipped(self, name: str, low: str, high: str) -> str:
        """Write pmin and pmax."""
        return f"pmin(pmax({name}, {low}), {high})"

    def is_level(self, name: str, level: str) -> str:
        """Compare with a quoted text."""
        text = level.replace("\\", "\\\\").replace('"', '\\"')
        return f'({name} == "{text}")'

    def of(self, release: Release) -> str:
        """Return the formula in brackets: without them it would end with its first line."""
        return f"({super().of(release)})"

    def chance(self, log_odds: str) -> str:
        """Write the logistic function as R calls it."""
        return f"plogis({log_odds})"


class Excel(Formula):
    """Excel, English names of functions: features in the first row's columns, in their order."""

    line = " "

    def of(self, release: Release) -> str:
        """Return what goes into a cell of row 2, features being in A2, B2 and so on."""
        if set(release.names) & set(levels_of(release)):
            raise NoFormula(
                "Excel's formula needs a column for each feature: this model has categories. Use "
                "SQL or R."
            )
        text = f"={super().of(release)}"
        if release.n_features > COLUMNS_OF_A_SHEET or len(text) > LONGEST_EXCEL:
            raise NoFormula("the model is too large for one cell of Excel. Use SQL or R.")
        return text

    def column(self, _release: Release, j: int) -> str:
        """Return the cell of a feature: A2 for the first."""
        return f"{column_letters(j)}2"

    def name(self, name: str) -> str:
        """Return the name: of a cell, that is what it is called."""
        return name

    def clipped(self, name: str, low: str, high: str) -> str:
        """Write MIN and MAX."""
        return f"MIN(MAX({name},{low}),{high})"

    def is_level(self, name: str, level: str) -> str:
        """Compare with a quoted text."""
        text = level.replace('"', '""')
        return f'IF({name}="{text}",1,0)'

    def chance(self, log_odds: str) -> str:
        """Write the logistic function."""
        return f"1/(1+EXP(-({log_odds})))"


def column_letters(place: int) -> str:
    """Return what a sheet calls a column: 0 is A, 26 is AA."""
    letters = ""
    while place >= 0:
        letters = chr(ord("A") + place % 26) + letters
        place = place // 26 - 1
    return letters


LANGUAGES: dict[str, Formula] = {"sql": Sql(), "r": RLanguage(), "excel": Excel()}


def formula_of(release: Release, language: str) -> str:
    """Return a model as a formula of a language: sql, r or excel."""
    return LANGUAGES[language].of(release)


def comments_of(release: Release, language: str) -> Iterator[str]:
    """Yield what a reader of the formula should know, a line each."""
    sign = {"sql": "--", "r": "#", "excel": ""}[language]
    target = release.target or "the target"
    what = f"prediction of {target}"
    if release.classes is not None:
        what = f"chance that {target} is {release.classes[1]}"
    told = [f"{release.estimator}: {what}"]
    if release.zero_one.any():
        told.append("What is true or false counts as 1 or 0.")
    if release.clips_features:
        told.append("Features are clipped to the bounds with which the model was fitted.")
    told += about_cells(release)
    if language == "excel":
        cells = (f"{column_letters(j)}2 {name}" for j, name in enumerate(release.names))
        told.append("Cells: " + ", ".join(cells))
    yield from (f"{sign} {plain(line)}".strip() for line in told)


def about_cells(release: Release) -> Iterator[str]:
    """Yield what stands for a column of a table, where it is not what its cells hold."""
    if release.schema is None:
        return
    block = release.schema.get("dpscreen")
    transforms = block.get("transform") if isinstance(block, Mapping) else None
    if isinstance(transforms, Mapping):
        changed = [name for name in release.names if transforms.get(name, "none") != "none"]
        yield from (f"{name} stands for {transforms[name]}({name})." for name in changed)
    for one in declared_fields(release.schema):
        if one.get("type") == "date" and one.get("name") in release.names:
            limits = one.get("constraints")
            first = limits.get("minimum") if isinstance(limits, Mapping) else "the first"
            yield f"{one['name']} stands for days since {one.get('since', first)}."
    yield "Missing cells must be filled before: by the schema's fill, or the middle of the bounds."


# --- scikit-learn ---------------------------------------------------------------------------------


def pipeline_of(release: Release) -> Pipeline:
    """Return a fitted pipeline; of a model with categories, it takes their frame."""
    from sklearn.pipeline import Pipeline

    if not release.categories:
        return Pipeline(_steps(release))
    columns = release.columns
    order = [release.names.index(name) for name in _sorted_features(columns)]
    steps = _steps(replace(release, coefficients=release.coefficients[order]))  # levels are 0 or 1
    return Pipeline([("levels", _encoder(columns)), *steps])


def _steps(release: Release) -> list[tuple[str, Any]]:
    """Return a scaler that clips to the bounds, and a line or a logistic one."""
    low, high = release.feature_bounds.T
    widths = high - low
    line = _line(release)
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
