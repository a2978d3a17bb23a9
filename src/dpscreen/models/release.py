"""What a fitted private model has released, in one place.

The summary, the explanation, the model card, the registry's entry and the model file are all made
from this, so none of them can hold anything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array, Mask
from dpscreen._core.messages import message
from dpscreen._core.words import (
    LINEAR,
    PER_CENT,
    WIDTH,
    YEAR,
    EffectScale,
    nice_step,
    number,
    outcome,
    plain,
    prose,
    shortened,
)
from dpscreen.families import GAUSSIAN, Family
from dpscreen.families.quality import Measure, Measured
from dpscreen.models.categories import FrameColumns, declared_block, declared_numbers
from dpscreen.models.delivery import BoundsNote
from dpscreen.models.intervals import FeatureInterval, Inference
from dpscreen.models.regression_table import RegressionTable
from dpscreen.privacy import PrivacyStatement
from dpscreen.solvers.base import COUNTS, Path
from dpscreen.tables.formula import FormulaProblem, formula_target

SOME_HAVE = (
    *("n_rows", "solver", "scale", "path", "inference", "quality", "bounds_notes"),
    *("table", "fallback", "missing_as"),
)


@dataclass(frozen=True, eq=False)
class Release:
    """A fitted model: released and public values only.

    `named` says whether the columns had names; else they are x0, x1, … `clips_features` says
    whether predictions clip features to their bounds. `categories` has the levels of those columns
    of which features such as ward=B were made, the reference first. `schema` describes the data
    set; only the target's name is read off it. `classes` are declared where the family has classes.
    `above_noise` are the features detected above the noise, where others have a coefficient too;
    None where none has. `about` is what people said of the model: target, author, date and purpose.
    `declared_bounds` are the public bounds of the features, if rows were clipped to others.
    `fallback` is the stage at which a fit failed numerically; None if it did not. `missing_as` is
    what a missing cell of each feature counts as: its released centre.
    """

    estimator: str
    names: tuple[str, ...]
    named: bool
    coefficients: Array
    intercept: float
    feature_bounds: Array
    target_bounds: Array
    clips_features: bool
    fit_intercept: bool
    n_iter: int
    statement: PrivacyStatement
    n_rows: int | None = None
    solver: str | None = None
    scale: float | None = None
    path: Path | None = None
    max_features: int | None = None
    inference: Inference | None = None
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    quality: Measured | None = None
    bounds_notes: tuple[BoundsNote, ...] | None = None
    table: RegressionTable | None = None
    schema: Mapping[str, Any] | None = None
    classes: tuple[Any, Any] | None = None
    above_noise: tuple[int, ...] | None = None
    about: Mapping[str, str] = field(default_factory=dict)
    declared_bounds: Array | None = None
    fallback: str | None = None
    missing_as: Array | None = None
    family: Family = GAUSSIAN

    @property
    def target(self) -> str | None:
        """Return what the target is called, transformed if it is; None if nobody said."""
        name, transform = self.declared_target
        declared = name if transform == "none" else f"{transform}({name})"
        return self.about.get("target") or declared

    @cached_property
    def declared_target(self) -> tuple[str | None, str]:
        """Return what the schema calls the target, and its transform; None without one."""
        block = declared_block(self.schema)
        name, formula = block.get("target"), block.get("formula")
        if isinstance(formula, str):
            with suppress(FormulaProblem):
                return formula_target(formula)
        if not isinstance(name, str):
            return None, "none"
        return name, self.transform_of(name)

    def transform_of(self, column: str) -> str:
        """Return the transform that the schema declares for a column; "none" without one."""
        transforms = declared_block(self.schema).get("transform")
        return str(transforms.get(column, "none")) if isinstance(transforms, Mapping) else "none"

    @property
    def n_rows_words(self) -> str | None:
        """Return the number of rows that rules used, and where it is from; None without one."""
        if self.n_rows is None:
            return None
        many = f"{number(self.n_rows, digits=12)} {'units' if self.of_units else 'rows'}"
        counted = any(one.purpose in COUNTS for one in self.statement.mechanisms)
        return f"about {many} (a noisy count)" if counted else f"{many} (declared)"

    @property
    def of_units(self) -> bool:
        """Whether units count in a table, and not their rows."""
        return self.table is not None and self.statement.rows_per_unit > 1

    @property
    def n_features(self) -> int:
        """Return how many features were offered."""
        return len(self.names)

    @property
    def columns(self) -> FrameColumns:
        """Return the columns of a frame that the features are made of."""
        columns = FrameColumns.of_features(self.names, self.categories)
        if columns is None:
            raise ValueError(message("model-file.categories"))
        return columns

    @cached_property
    def steps(self) -> Array:
        """Return a step of every feature: a round number in its own units, the same in every fit.

        It is near a tenth of the width of the declared bounds; at least 1 where a schema says that
        they are whole numbers, or these bounds are, as those of grades; but not for what a schema
        declares as a number between 0 and 1, as shares are. Of a date it is a year.
        """
        low, high = self.public_bounds.T
        steps = np.array([nice_step(size) for size in (high / 10 - low / 10).tolist()])
        integers = np.isin(self.names, list(declared_numbers(self.schema, "integer")))
        whole = integers | (low == np.round(low)) & (high == np.round(high))
        shares = self._within_zero_one & ~self.zero_one
        dates = np.isin(self.names, list(declared_numbers(self.schema, "date")))
        return np.where(dates, YEAR, np.where(whole & ~shares, np.maximum(steps, 1.0), steps))

    @cached_property
    def zero_one(self) -> Mask:
        """Return which features are 0 or 1 by bounds or schema; shares too without one."""
        numbers = declared_numbers(self.schema)
        return self._within_zero_one & ~np.isin(self.names, list(numbers))

    @property
    def _within_zero_one(self) -> Mask:
        return np.asarray((self.public_bounds == (0, 1)).all(axis=1))

    @property
    def public_bounds(self) -> Array:
        """Return the declared bounds of the features."""
        return self.feature_bounds if self.declared_bounds is None else self.declared_bounds

    @property
    def centres(self) -> Array:
        """Return what missing cells count as; without released centres, the middle of bounds."""
        low, high = self.public_bounds.T
        return low / 2 + high / 2 if self.missing_as is None else self.missing_as

    @property
    def scale_of_effects(self) -> EffectScale:
        """Return how effects are shown: per cent of a target that is declared as a logarithm."""
        scale = self.family.words.effects
        logarithm = self.declared_target[1] in LOGARITHMS
        return PER_CENT if logarithm and scale == LINEAR else scale

    def words(self, sentence: str, *, target: str = "", longest: int | None = None) -> str:
        """Return a sentence of the family with the target, its units and the classes in it."""
        classes = [outcome(label) for label in self.classes or ("", "")]
        if longest is not None:
            classes = [shortened(label, longest) for label in classes]
        scale = self.scale_of_target
        units = "the target's units" if scale is None else f"units of {scale}"
        return sentence.format(target=target, units=units, first=classes[0], second=classes[1])

    @property
    def changed(self) -> str:
        """Return what effects are changes of: the target, or what its logarithm was taken of."""
        name, transform = self.declared_target
        return LOGARITHMS.get(transform, "{}").format(plain(name or "the target"))

    @property
    def scale_of_target(self) -> str | None:
        """Return what a transformed target is predicted as, such as log(cost); None for others."""
        name, transform = self.declared_target
        return None if transform == "none" else plain(f"{transform}({name})")

    @cached_property
    def estimates(self) -> Array:
        """Return the coefficients to report: those of intervals, in a regression table.

        The predicting model may differ, where other features are not identifiable.
        """
        found = np.array(self.coefficients)
        if self.table is not None:
            given = list(self.intervals)
            found[given] = self.table.coefficients[given]
        return found

    @property
    def effects(self) -> Array:
        """Return by how much a step of each feature moves the prediction: comparable."""
        return np.asarray(self.estimates * self.steps)

    @property
    def typical(self) -> Array:
        """Return a standard deviation of every feature where it is released, else its step."""
        return self.steps if self.table is None else self.table.scales

    @cached_property
    def selected(self) -> list[int]:
        """Return the features that the model uses, the largest standardised effect first."""
        sizes = np.abs(self.estimates * self.typical)
        if self.table is not None:  # the table's own first; others only predict
            sizes = np.where(self.table.given[: self.n_features], sizes, -1 / (1 + sizes))
        return [int(j) for j in np.argsort(-sizes, kind="stable") if self.coefficients[j] != 0]

    @property
    def chosen(self) -> list[int]:
        """Return those of them that are above the noise; of a table, by their intervals."""
        if self.table is not None:
            clear = {j for j, one in self.intervals.items() if one.low * one.high > 0}
        elif self.above_noise is None:
            return self.selected
        else:
            clear = set(self.above_noise)
        return [j for j in self.selected if j in clear]

    @property
    def headline(self) -> tuple[str, str]:
        """Return the name and value of the one measure of how good the model is; "" without one."""
        found = self.first_measure
        if found is None:
            return "", ""
        scale, measure = self.scale_of_target, self.family.measure.label
        name = measure if scale is None else f"{measure} of {scale}"
        if found.reason is not None:
            return name, "not known"
        return name, f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"

    @property
    def first_measure(self) -> Measure | None:
        """Return the measure of quality that headlines show; None without a quality."""
        return None if self.quality is None else Measure.of(self.quality, self.family.measure)

    @cached_property
    def intervals(self) -> dict[int, FeatureInterval]:
        """Return the intervals by feature."""
        found = () if self.inference is None else self.inference.intervals
        return {interval.feature: interval for interval in found}


ABOUT = ("target", "author", "date", "purpose")


def checked_about(about: Mapping[str, Any]) -> dict[str, str]:
    """Return what people say of a model, on one line each; refuse what is not known."""
    strangers = tuple(name for name in about if name not in ABOUT)
    if strangers:
        raise ValueError(message("about.unknown", known=ABOUT, names=strangers))
    told = {name: prose(str(about[name])) for name in ABOUT if about.get(name)}
    if any(len(text) > LONGEST_ABOUT for text in told.values()):
        raise ValueError(message("about.long", most=LONGEST_ABOUT))
    return told


def about_facts(release: Release) -> list[tuple[str, str]]:
    """Return what was said of the model and its rows, as names and texts; what is not, is not."""
    told = {"Target": release.target} | {
        name.capitalize(): release.about.get(name) for name in ABOUT[1:]
    }
    told["Units" if release.of_units else "Rows"] = release.n_rows_words
    return [(name, text) for name, text in told.items() if text]


LONGEST_ABOUT = 500

LOGARITHMS = {"log": "{}", "log1p": "1 + {}"}
"""Transforms of a target whose changes are ratios, and of what."""


def release_of(model: Any, public_bounds: tuple[Array, Array], *, fit_intercept: bool) -> Release:
    """Return what a fitted estimator holds; bounds that it did not release are the public ones."""
    columns, classes = getattr(model, "columns_", None), getattr(model, "classes_", None)
    declared = public_bounds[0]
    clips = getattr(model, "feature_bounds_", declared)
    some_have: Any = {name: getattr(model, f"{name}_", None) for name in SOME_HAVE}
    used = np.ravel(model.coef_) != 0
    clear = getattr(model, "selected_", used) & used
    return Release(
        estimator=type(model).__name__,
        names=tuple(map(str, model.feature_names_out_)),
        named=hasattr(model, "feature_names_in_"),
        coefficients=np.array(model.coef_, dtype=np.float64).ravel(),
        intercept=float(np.ravel(model.intercept_)[0]),
        feature_bounds=np.array(clips),
        target_bounds=np.array(getattr(model, "target_bounds_", public_bounds[1])),
        clips_features=hasattr(model, "feature_bounds_"),
        fit_intercept=fit_intercept,
        n_iter=int(model.n_iter_),
        statement=model.privacy_,
        max_features=getattr(model, "max_features", None),
        categories={} if columns is None else dict(columns.levels),
        classes=None if classes is None else tuple(classes.tolist()),
        above_noise=tuple(np.flatnonzero(clear).tolist()) if (used & ~clear).any() else None,
        declared_bounds=None if np.array_equal(clips, declared) else np.array(declared),
        family=model.family,
        schema=None if model.table_schema is None else model.table_schema.to_dict(),
        **some_have,
    )


# --- what travels with a model --------------------------------------------------------------------


def promise_of(statement: PrivacyStatement, *, brief: bool = False) -> str:
    """Return a privacy statement in one line, marked if it does not hold."""
    pair = f"epsilon = {statement.epsilon:g}, delta = {statement.delta:.4g}"
    if not statement.holds:
        why = (
            "the published calibration does not keep its promise"
            if statement.calibration == "published"
            else statement.weakness
        )
        return f"NOT PRIVATE: {why} (stated: {pair})."
    told = f"Privacy: {pair} for {prose(statement.neighbours)}."
    if not brief:
        return f"{told} {statement.disclosure}".rstrip()
    told = told if len(told) < WIDTH else f"Privacy: {pair} for {prose(statement.brief_unit)}."
    return f"{told} The row count is disclosed." if statement.rows_disclosed else told


class NotPrivate(ValueError):
    """A model whose guarantee does not hold, and that was not exported by force."""


def statement_for(release: Release, *, force: bool = False) -> dict[str, Any]:
    """Return what travels with an export: a line of text, and the statement in plain values.

    Other software shows the statement as a comment or a property only, so a model whose guarantee
    does not hold is refused with `NotPrivate`, unless `force` is True; then the mark travels along.
    File, card, page and pickle hold the whole statement, and are not refused.
    """
    told = prose(promise_of(release.statement))
    if not (release.statement.holds or force):
        raise NotPrivate(message("export.not-private", promise=told))
    return {"privacy": told, "statement": release.statement.to_dict()}
