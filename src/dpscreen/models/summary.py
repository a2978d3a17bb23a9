"""`model.summary()`, the one description of a result: cards, pages, pictures and JSON show it, too.

Below a table stand footnotes and at most four lines; `explain()` has the whole text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from dpscreen._core.words import (
    LINEAR,
    NOTHING,
    PER_CENT,
    WIDTH,
    EffectScale,
    PrintedTable,
    cell,
    how_many,
    letters,
    number,
    plain,
    prose,
    short_name,
    some,
    step_words,
    with_marks,
)
from dpscreen.models.categories import about_levels, about_missing, declared_numbers
from dpscreen.models.contrasts import number_cells
from dpscreen.models.delivery import fallback_words
from dpscreen.models.regression_table import SHARE, RegressionTable
from dpscreen.models.release import Release, promise_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class SummaryRow:
    """One selected feature, in the user's units.

    Coefficients cannot be compared with each other. An effect can: it is the coefficient times
    `step`, a step of the feature, so how far the prediction moves with that step, in units of the
    target as it was fitted: of its logarithm, if that is declared. `zero_one` says that the step
    is from 0 to 1.
    """

    feature: str
    coefficient: float
    step: float
    effect: float
    zero_one: bool
    refit: float | None = None
    standard_error: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def step_words(self) -> str:
        """Return the step as tables have it."""
        return step_words(self.step, self.zero_one)

    def interval(self, step: float = 1.0) -> tuple[float, float, float] | None:
        """Return low end, refit and high end for a step; None if there is no interval."""
        if self.low is None or self.refit is None or self.high is None:
            return None
        return self.low * step, self.refit * step, self.high * step


@dataclass(frozen=True, repr=False)
class Summary(PrintedTable):
    """A regression table as statisticians know it, or the selected features of another model.

    Print it, or use `frame`, a pandas data frame. `rows` are the selected features, the largest
    effect first, and `marks` their footnote letters, by place.
    """

    release: Release
    title: str
    rows: tuple[SummaryRow, ...]
    notes: tuple[str, ...]
    marks: Mapping[int, str]

    @property
    def has_intervals(self) -> bool:
        """Whether any feature has an interval."""
        return bool(self.release.intervals)

    @property
    def scale(self) -> EffectScale:
        """Return how effects are shown."""
        return self.release.scale_of_effects

    def shown_interval(self, row: SummaryRow) -> tuple[float, float, float] | None:
        """Return low end, refit and high end as tables have them: of coefficients, or ratios."""
        scale = self.scale
        found = row.interval(row.step if scale.ratio else 1.0)
        if found is None or not scale.ratio:
            return found
        low, refit, high = map(scale.shown, found)
        return low, refit, high

    @property
    def frame(self) -> pd.DataFrame:
        """Return the table as a data frame: a row for each coefficient, or selected feature."""
        import pandas as pd

        release, scale = self.release, self.scale
        if release.table is not None:
            return self._coefficients(release.table)
        columns = [
            one.name for one in fields(SummaryRow) if one.name not in ("feature", "zero_one")
        ]
        values = [[getattr(row, name) for name in columns] for row in self.rows]
        index = pd.Index([row.feature for row in self.rows], dtype="object", name="feature")
        found = pd.DataFrame(values, index, columns, dtype="float64")
        if scale != LINEAR:
            found.insert(1, scale.column, found["effect"].map(scale.shown))
        return found

    def _coefficients(self, table: RegressionTable) -> pd.DataFrame:
        scale = self.scale
        found = table.frame()
        found["step"] = np.append(self.release.steps, [np.nan] * (len(found) - table.n_features))
        shown = {"": "coef"} | ({"_low": "low", "_high": "high"} if scale.ratio else {})
        for ending, column in shown.items():
            found[scale.column + ending] = (found["step"] * found[column]).map(scale.shown)
        return found

    def _cells(self) -> list[list[str]]:
        """Return the table as text, headings first and the constant last."""
        release, scale = self.release, self.scale
        if release.table is not None:
            return self._coefficient_cells(release.table)
        cells = [["feature", "coefficient", "step", scale.column_heading]]
        cells[0] += ["refit", "[0.025", "0.975]"] if self.has_intervals else []
        for row in self.rows:
            effect = cell(scale.shown(row.effect), digits=4)
            cells.append([short_name(row.feature), cell(row.coefficient), row.step_words, effect])
            if self.has_intervals:
                shown = self.shown_interval(row)
                low, refit, high = (
                    [cell(one, digits=4) for one in shown] if shown else [NOTHING] * 3
                )
                cells[-1] += [refit, low, high]
        cells.append(["(intercept)", cell(release.intercept)] + [""] * (len(cells[0]) - 2))
        return with_marks(cells, [*(self.marks.get(j, "") for j in release.selected), ""])

    def _coefficient_cells(self, table: RegressionTable) -> list[list[str]]:
        release, scale, frame = self.release, self.scale, self.frame
        ends, effect = ["[0.025", "0.975]"], ["step", scale.column_heading]
        head = ["", "coef", "std err", "t", "P>|t|", *([] if scale.ratio else ends), *effect]
        cells, marks = [[*head, *(ends if scale.ratio else [])]], []
        for j, name in enumerate(table.names):
            if j < table.n_features and not self.has_intervals:
                continue  # one reason is for all
            numbers, (low, high, _, *effects) = frame.iloc[j, :4], frame.iloc[j, 4:]
            shown = number_cells(*numbers, *([] if scale.ratio else [low, high]), *effects)
            moved = shown[-len(effects) :]
            if j < table.n_features:
                moved = [step_words(release.steps[j], release.zero_one[j]), *moved]
            else:
                moved = [""] * (1 + len(moved))
            cells.append([short_name(name), *shown[: -len(effects)], *moved])
            marks.append(self.marks.get(j, ""))
        return with_marks(cells, marks)


ESTIMATES = "coefficient", "standard_error", "low", "high"


def summary_of(release: Release) -> Summary:
    """Return the summary of a model."""
    numbers = (release.estimates, release.steps, release.effects)
    rows = []
    for j in release.selected:
        coefficient, step, effect = (float(one[j]) for one in numbers)
        interval = [getattr(release.intervals.get(j), name, None) for name in ESTIMATES]
        name, zero_one = plain(release.names[j]), bool(release.zero_one[j])
        rows.append(SummaryRow(name, coefficient, step, effect, zero_one, *interval))
    title, (marks, letters_are) = plain(release.estimator), marks_of(release)
    if release.target is not None:
        title = f"{title} of {short_name(release.target)}"
    if release.table is None:
        title += f": {len(rows)} of {release.n_features} features used"
    else:
        counted = "" if release.n_rows is None else f", {release.n_rows_words}"
        title += f": {how_many(release.n_features, 'feature')}{counted}"
    return Summary(release, title, tuple(rows), tuple(_lines_below(release, letters_are)), marks)


# --- how to read it -------------------------------------------------------------------------------

PERCENT = "Effect: of the step on {}, in per cent."


def about_effects(release: Release, longest: int | None = None) -> str:
    """Say what an effect is, or an odds ratio."""
    if release.scale_of_effects == PER_CENT:
        return PERCENT.format(release.changed)
    return release.words(release.family.words.effects_are, longest=longest)


def prediction_of_all(release: Release) -> str:
    """Return what a model without features predicts, in words: a number, or a probability."""
    mean = float(release.family.inverse_link(np.array(release.intercept)))
    scale, told = release.scale_of_target, release.family.words.constant(mean)
    return told if scale is None else f"{told} for {scale}"


def about_failure(release: Release) -> Iterator[str]:
    """Say that the fit failed numerically, if it did, and what the model is then."""
    if release.fallback is not None:
        yield fallback_words(release.fallback)


def about_predictions(release: Release) -> Iterator[str]:
    """Say what predictions are clipped to, what cells count as, and what has no interval."""
    declared, table = (release.schema, release.categories), release.table
    yield from release.family.target.clipped
    yield from about_levels(release.names, *declared, () if table is None else table.left_out)
    yield from about_missing(*declared)
    # One reason for all features is given with the meaning of intervals.
    if table and (len(set(table.reasons.values())) > 1 or len(table.reasons) < table.n_features):
        numbers = None if release.schema is None else declared_numbers(release.schema)
        alike: dict[str, list[str]] = {}
        for j, reason in table.reasons.items():
            is_truth = numbers is not None and table.names[j] not in numbers
            words = prose(reason) + SHARE * (j in table.binary_bounds and not is_truth)
            alike.setdefault(words, []).append(plain(table.names[j]))
        yield from (f"{some(names)}: {words}" for words, names in alike.items())


# --- below the table: footnotes and four lines ----------------------------------------------------

UNRELIABLE = "sign not reliable"
NO_INTERVAL, ONE_VALUE = "no interval", "most rows share one value"
ADJUSTED_FOR = "adjusted for, not estimated"
CLIPPED = "clipped residuals may move it by half a standard error or more"


def marks_of(release: Release, where: str = "") -> tuple[dict[int, str], str]:
    """Return footnote letters by feature, and the line that explains them, in full if it is short.

    In brief, cautions that differ in their reasons alone share a letter, and `where` says where the
    reasons are.
    """
    shown = release.selected
    if release.table is not None:
        shown = list(range(release.n_features if release.intervals else 0))
    cautions = {j: list(_cautions(release, j)) for j in shown}
    full = _lettered({j: [one for _, one in found] for j, found in cautions.items()})
    brief = _lettered({j: [one for one, _ in found] for j, found in cautions.items()})
    if len(full[1]) < max(WIDTH, len(brief[1]) + len(where)):
        return full
    return brief if brief == full else (brief[0], brief[1] + where)


def _lettered(cautions: Mapping[int, Sequence[str]]) -> tuple[dict[int, str], str]:
    """Return the letters of each feature, and what they stand for."""
    texts = list(dict.fromkeys(one for found in cautions.values() for one in found))
    letter = {text: letters(place) for place, text in enumerate(texts)}
    marks = {
        j: "".join(letter[one] for one in sorted(dict.fromkeys(found), key=texts.index))
        for j, found in cautions.items()
        if found
    }
    return marks, "; ".join(f"{letter[text]}: {text}" for text in texts)


def _cautions(release: Release, j: int) -> Iterator[tuple[str, str]]:
    """Yield what changes the meaning of a feature's coefficient, in brief and in full."""
    table, name = release.table, release.names[j]
    if not sign_is_reliable(release, j):
        yield UNRELIABLE, UNRELIABLE
    if release.intervals and j not in release.intervals:
        why = NO_INTERVAL if table is None else table.reasons.get(j, NO_INTERVAL)
        if table is not None and j in table.nuisance:
            yield ADJUSTED_FOR, ADJUSTED_FOR
        else:
            yield NO_INTERVAL, prose(why).rstrip(".")
    if table is not None and table.is_clip_biased(j):
        yield "clipping bias", CLIPPED
    word = release.transform_of(name)
    if word != "none":
        yield (f"on the {word} scale",) * 2
    if name in declared_numbers(release.schema, "date"):
        yield ("coefficient per day",) * 2
    if any(note.column == plain(name) for note in release.bounds_notes or ()):
        yield ONE_VALUE, ONE_VALUE


def sign_is_reliable(release: Release, j: int) -> bool:
    """Whether an interval excludes 0; without intervals, whether the feature is above the noise.

    What has no interval beside others that have one is marked for that.
    """
    found = release.intervals.get(j)
    if found is not None:
        agrees = release.estimates[j] * found.coefficient > 0
        return found.low * found.high > 0 and agrees
    return bool(release.intervals) or release.above_noise is None or j in release.above_noise


def _lines_below(release: Release, marks: str) -> Iterator[str]:
    """Yield at most four lines: failure or footnotes, how to read, quality, privacy."""
    target = any(note.column is None for note in release.bounds_notes or ())
    lines = [marks] * bool(marks) + [f"target: {ONE_VALUE}"] * target
    if release.table is not None and not release.fit_intercept:
        lines.append(f"no constant: predictions add {number(release.intercept, digits=5)}")
    what = "units" if release.of_units else "rows"
    if release.table is not None and release.table.is_shiftable:
        lines.append(f"smallest detectable group: {release.table.undetected:.0f} {what}")
    if release.table is not None and release.intervals and release.table.shortened >= 1:
        lines.append(f"high leverage: {release.table.shortened:.0f} {what}")
    told = [*about_failure(release)] + [f"{'; '.join(lines)}."] * bool(lines)
    if told:
        yield " ".join(told)
    yield _how_to_read(release)
    if release.quality is not None:
        scale = release.scale_of_target
        yield release.quality.line if scale is None else f"On {scale}: {release.quality.line}"
    yield promise_of(release.statement, brief=True)


def _how_to_read(release: Release) -> str:
    table, effects = release.table, about_effects(release, 20)
    if not release.selected:
        what = "coefficient is identifiable" if table else "effect is above the noise"
        return f"No {what} at this budget. Predicts {prediction_of_all(release)} for every row."
    if release.intervals:
        return f"{effects} 95 % intervals{': of the refit' if not table else ', not simultaneous'}."
    if table is not None and release.inference is not None:
        return prose(release.inference.wording)
    return f"{effects} No intervals; explain() says why."
