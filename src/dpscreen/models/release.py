"""What a fitted private model has released, in one place, and `model.summary()` of it.

The summary, the explanation, the model card, the registry's entry and the model file are all made
from this, so none of them can hold anything else.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen._core.words import how_many, number, plain, prose
from dpscreen.models.categories import FrameColumns
from dpscreen.models.regression_table import RegressionSummary, RegressionTable
from dpscreen.privacy import PrivacyStatement
from dpscreen.solvers.base import Path, noise_p_values
from dpscreen.solvers.inference import FeatureInterval, Inference
from dpscreen.solvers.outcome_quality import OutcomeQuality
from dpscreen.solvers.quality import Quality

if TYPE_CHECKING:
    import pandas as pd

OFFERS_INTERVALS = "PrivateLasso"
SOME_HAVE = (
    *("n_rows", "solver", "scale", "path", "inference", "quality", "bounds_notes"),
    "table",
)


@dataclass(frozen=True, eq=False)
class Release:
    """A fitted model: released and public values only.

    `named` tells whether the columns had names; else they are x0, x1, … `clips_features` tells
    whether predictions clip features to their bounds. `categories` has the levels of those columns
    of which features such as ward=B were made, the reference first. `schema` describes the data
    set, and is none of this module's business. `classes` are those of outcomes, of the second of
    which the log-odds are modelled; None if the target is a number.
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
    quality: Quality | OutcomeQuality | None = None
    bounds_notes: tuple[str, ...] | None = None
    table: RegressionTable | None = None
    schema: Mapping[str, Any] | None = None
    classes: tuple[Any, Any] | None = None

    @property
    def n_features(self) -> int:
        """Return how many features were offered."""
        return len(self.names)

    @property
    def columns(self) -> FrameColumns:
        """Return the columns of a frame that the features are made of."""
        columns = FrameColumns.of_features(self.names, self.categories)
        if columns is None:
            raise ValueError("the features are not those that the categories give.")
        return columns

    @property
    def effects(self) -> Array:
        """Return coefficients times half the width of the features' bounds: comparable sizes."""
        low, high = self.feature_bounds.T
        return np.asarray(self.coefficients * (high / 2 - low / 2))

    @property
    def selected(self) -> list[int]:
        """Return the features that the model uses, the largest effect first."""
        order = np.argsort(-np.abs(self.effects), kind="stable")
        return [int(j) for j in order if self.coefficients[j] != 0]

    @property
    def intervals(self) -> dict[int, FeatureInterval]:
        """Return the intervals by feature."""
        found = () if self.inference is None else self.inference.intervals
        return {interval.feature: interval for interval in found}

    @property
    def noise_p_values(self) -> Array | None:
        """Return the noise p-values; None where there is no path to compute them from."""
        if self.path is None:
            return None
        constants = int(self.solver == "frank-wolfe" and self.fit_intercept)
        return noise_p_values(
            self.path,
            n_features=self.n_features,
            n_constants=constants,
            limit=self.max_features,
        )

    @property
    def why_no_intervals(self) -> str | None:
        """Return why there are no intervals, in one sentence; None if there are."""
        if self.inference is not None:
            return None if self.inference.available else self.inference.wording
        if self.classes is not None:
            return f"There are no intervals: {self.estimator} has none."
        if self.estimator != OFFERS_INTERVALS:
            return (
                f"There are no intervals: {self.estimator} has none; PrivateLasso with "
                "inference='split' gives them."
            )
        return (
            "There are no intervals: the model was not fitted with inference='split', and for "
            "coefficients that are shrunken, noisy and selected the usual ones would be wrong."
        )


def release_of(model: Any, public_bounds: tuple[Array, Array]) -> Release:
    """Return what a fitted estimator holds; bounds that it did not release are the public ones."""
    columns, classes = getattr(model, "columns_", None), getattr(model, "classes_", None)
    return Release(
        estimator=type(model).__name__,
        names=tuple(map(str, model.feature_names_out_)),
        named=hasattr(model, "feature_names_in_"),
        coefficients=np.array(model.coef_, dtype=np.float64).ravel(),
        intercept=float(np.ravel(model.intercept_)[0]),
        feature_bounds=np.array(getattr(model, "feature_bounds_", public_bounds[0])),
        target_bounds=np.array(getattr(model, "target_bounds_", public_bounds[1])),
        clips_features=hasattr(model, "feature_bounds_"),
        fit_intercept=bool(model.fit_intercept),
        n_iter=int(model.n_iter_),
        statement=model.privacy_,
        max_features=getattr(model, "max_features", None),
        categories={} if columns is None else dict(columns.levels),
        classes=None if classes is None else tuple(classes.tolist()),
        **{name: getattr(model, f"{name}_", None) for name in SOME_HAVE},
    )


# --- the table that statsmodels users know --------------------------------------------------------

WIDTH = 88
LONGEST_NAME = 32

REFIT = (
    "The coefficient predicts. The refit is estimated on the other half of the rows and is what "
    "the interval is for: "
)


@dataclass(frozen=True)
class SummaryRow:
    """One selected feature, in the user's units.

    Coefficients cannot be compared with each other. An effect can: it is the coefficient times half
    the width of the feature's bounds, so how far the prediction moves, in the target's units, when
    the feature goes from the middle of its bounds to their upper end.
    """

    feature: str
    coefficient: float
    effect: float
    refit: float | None
    standard_error: float | None
    low: float | None
    high: float | None

    @property
    def odds_ratio(self) -> float:
        """Return e^coefficient: by what the odds are multiplied for one unit more, of outcomes."""
        return math.exp(self.coefficient) if self.coefficient < 709 else math.inf

    @property
    def effect_interval(self) -> tuple[float, float, float] | None:
        """Return low end, refit and high end of the interval as effects; None if there is none."""
        if self.low is None or self.refit is None or self.high is None:
            return None
        half_width = self.effect / self.coefficient
        return self.low * half_width, self.refit * half_width, self.high * half_width


@dataclass(frozen=True, repr=False)
class Summary:
    """The selected features, largest effect first, with what may be said about them.

    Print it, or use `frame`, a pandas data frame. In a notebook it shows itself as a table.
    """

    title: str
    rows: tuple[SummaryRow, ...]
    intercept: float
    notes: tuple[str, ...]
    has_intervals: bool
    has_odds: bool = False

    @property
    def frame(self) -> pd.DataFrame:
        """Return the rows as a data frame, one for each selected feature."""
        import pandas as pd

        columns = [name for name in SummaryRow.__dataclass_fields__ if name != "feature"]
        values = {
            name: pd.Series([getattr(row, name) for row in self.rows], dtype="float64")
            for name in columns
        }
        found = pd.DataFrame(values)
        if self.has_odds:
            found.insert(1, "odds_ratio", [row.odds_ratio for row in self.rows])
        found.index = pd.Index([row.feature for row in self.rows], dtype="object", name="feature")
        return found

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head, *body = self._cells()
        shown = "".join(_html_row(cells, "td") for cells in body)
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return (
            f"<table><caption>{escape(self.title)}</caption><thead>{_html_row(head, 'th')}</thead>"
            f"<tbody>{shown}</tbody></table>{notes}"
        )

    def _lines(self) -> Iterator[str]:
        cells = self._cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        across = max(sum(widths) + 2 * (len(widths) - 1), len(self.title))
        head, *body, last = (_aligned(row, widths) for row in cells)
        yield self.title
        yield "=" * across
        yield head
        yield "-" * across
        yield from body
        yield last
        yield "=" * across
        for note in self.notes:
            yield textwrap.fill(note, WIDTH)

    def _cells(self) -> list[list[str]]:
        """Return the table as text: headings, features, and the intercept last."""
        head = ["feature", "coefficient", *(["odds ratio"] if self.has_odds else [])]
        head += ["refit", "[0.025", "0.975]"] if self.has_intervals else []
        last = ["(intercept)", number(self.intercept)] + [""] * (len(head) - 2)
        return [head, *(self._row(row) for row in self.rows), last]

    def _row(self, row: SummaryRow) -> list[str]:
        cells = [_shortened(row.feature), number(row.coefficient)]
        cells += [f"{row.odds_ratio:.4g}"] if self.has_odds else []
        if self.has_intervals:
            cells += [_optional(value) for value in (row.refit, row.low, row.high)]
        return cells


def summary_of(release: Release) -> Summary:
    """Return the summary of a model."""
    intervals = release.intervals
    rows = []
    for j in release.selected:
        found = intervals.get(j)
        rows.append(
            SummaryRow(
                plain(release.names[j]),
                float(release.coefficients[j]),
                float(release.effects[j]),
                *_estimates(found),
            )
        )
    return Summary(
        title=f"{plain(release.estimator)}: {len(rows)} of {release.n_features} features selected",
        rows=tuple(rows),
        intercept=release.intercept,
        notes=tuple(_notes(release, len(rows))),
        has_intervals=bool(intervals),
        has_odds=release.classes is not None,
    )


def regression_summary_of(release: Release, table: RegressionTable) -> RegressionSummary:
    """Return the regression table of a model that has one."""
    rows = "" if release.n_rows is None else f", about {release.n_rows:,} rows as released"
    features = how_many(table.n_features, "feature")
    return RegressionSummary(
        f"{plain(release.estimator)}: {features}{rows}",
        table,
        tuple(_table_notes(release, table)),
    )


def _table_notes(release: Release, table: RegressionTable) -> Iterator[str]:
    for j, reason in table.reasons.items():
        yield f"{plain(table.names[j])}: {prose(reason)}"
        if len(table.reasons) == table.n_features:
            break  # the same holds for all
    if release.inference is not None:
        yield prose(release.inference.wording)
    if release.quality is not None:
        yield f"How good it is, by its own account: {release.quality}"
    yield from (f"Bounds: {prose(note)}." for note in release.bounds_notes or ())
    yield promise(release)


def _estimates(found: Any) -> tuple[float | None, float | None, float | None, float | None]:
    if found is None:
        return None, None, None, None
    return found.coefficient, found.standard_error, found.low, found.high


def _notes(release: Release, shown: int) -> Iterator[str]:
    left = release.n_features - shown
    if left:
        yield f"{left} other {'feature has' if left == 1 else 'features have'} coefficient 0."
    if release.classes is not None:
        first, second = (plain(str(one)) for one in release.classes)
        yield (
            f"Odds are those of {second} against {first}; an odds ratio is what they are "
            "multiplied by for one unit more of the feature."
        )
    if release.clips_features:
        yield "Features are clipped to feature_bounds_ before the coefficients apply."
    if release.why_no_intervals is not None:
        yield prose(release.why_no_intervals)
    elif release.inference is not None:
        yield ("" if release.table else REFIT) + prose(release.inference.wording)
    if release.quality is not None:
        yield f"How good it is, by its own account: {release.quality}"
    yield from (f"Bounds: {prose(note)}." for note in release.bounds_notes or ())
    yield promise(release)


def promise(release: Release) -> str:
    """Return the privacy statement in one line."""
    statement = release.statement
    pair = f"epsilon = {statement.epsilon:g}, delta = {statement.delta:.4g}"
    if not statement.holds:
        why = (
            "the published calibration does not keep its promise"
            if statement.calibration == "published"
            else statement.weakness
        )
        return f"NOT PRIVATE: {why} (stated: {pair})."
    told = f"Privacy: {pair} for {prose(statement.neighbours)}, rho = {statement.rho:.6g}."
    return f"{told} {statement.disclosure}".rstrip()


def _optional(value: float | None) -> str:
    return "" if value is None else number(value, digits=4)


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def _aligned(cells: list[str], widths: list[int]) -> str:
    first, *rest = (
        cell.rjust(width) if place else cell.ljust(width)
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join((first, *rest)).rstrip()


def _html_row(cells: list[str], kind: str) -> str:
    return "<tr>" + "".join(f"<{kind}>{escape(cell)}</{kind}>" for cell in cells) + "</tr>"
