"""Binary outcomes: the linear predictor is the log-odds of the second class.

AUC and deviance are released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, ndtr

from dpscreen._core.arrays import Array, clamp
from dpscreen._core.words import EffectScale, exponential, whole_percent
from dpscreen.families.base import CLASSES, Family, FamilyModel, SimulatedFamily, Words
from dpscreen.families.quality import (
    CONSTANT,
    NOISE,
    NORMAL_975,
    WIDEST_FACTOR,
    Called,
    Measure,
    Measured,
    QualityReleases,
    Ranges,
)
from dpscreen.rows import fits
from dpscreen.rows.fits import LARGEST_LOG_ODDS, N_LEVELS, PER_UNIT
from dpscreen.rows.lattice import ExactPoint
from dpscreen.rows.loss import LOGISTIC
from dpscreen.rows.sums import LEVELS, whole_sum

# --- quality: AUC and deviance, from counts of log-odds by class ----------------------------------

_HALF = np.array([0.1, 0.2, 0.32, 0.46, 0.62, 0.8, 1.05, 1.4, 1.9, 2.6, 3.6])
EDGES = np.concatenate((-_HALF[::-1], [0.0], _HALF))
"""Between which log-odds rows are counted, from those of all rows together, in standard deviations:
close in the middle, because rows whose features are skewed lie close there. Conventional."""

NARROWEST, WIDEST = 0.1, 2.0
"""Least and largest standard deviation of log-odds that cells are made for. Conventional."""

COUNTS = "probabilities by outcome"
"""The purpose of the counts, in the statement."""

TABLE_PART = Fraction(3, 4)
"""Of the cost, for the counts; the rest is for the deviance. Tuned."""

LEAST_CLASS, WIDEST_AUC = 4.0, 0.4
"""The rows of each class for an AUC, in standard deviations of their noise; and the widest interval
of one that is known. Conventional."""


@dataclass(frozen=True)
class OutcomeQuality(Measured):
    """AUC and deviance of a model on the rows of the fit, each with a 95 % interval.

    AUC is the share of pairs of rows of both classes that the fitted probability orders correctly,
    ties counting half; the deviance is −2 log-likelihood over the number of rows. `null_deviance`
    is that of a model that knows the share of outcomes alone, which was released before. `edges`
    are probabilities between which fitted ones were counted; `no` and `yes` are noisy counts of
    rows of the two classes, from below the first edge to above the last: a reliability plot and an
    ROC curve can be drawn from them. A measure that is not known is NaN, and `auc_reason` or
    `deviance_reason` says why: "noise", "undetected rows" or "constant"; else that is None.
    """

    measures: ClassVar[tuple[Called, ...]] = (
        Called("auc", "auc", "AUC"),
        Called("deviance", "deviance", "deviance"),
    )
    columns = {"edges": 0, "no": 1, "yes": 1}  # noqa: RUF012
    file_field = "outcome_quality"
    charts = ("reliability", "roc")
    no_information = (0.5, " 0.5 is a coin's.")

    auc: float
    auc_low: float
    auc_high: float
    deviance: float
    deviance_low: float
    deviance_high: float
    null_deviance: float
    in_sample: bool
    edges: tuple[float, ...]
    no: tuple[float, ...]
    yes: tuple[float, ...]
    auc_reason: str | None = None
    deviance_reason: str | None = None

    @property
    def _poor(self) -> list[str]:
        return ["AUC"] * (self.auc <= 0.5) + ["deviance"] * (self.deviance >= self.null_deviance)

    @property
    def line(self) -> str:
        """Return the measures in one line, after a warning if a constant is as good."""
        worse = f"No better than a constant by its {' and '.join(self._poor)}: "
        return worse * bool(self._poor) + super().line

    def __str__(self) -> str:
        worse = f" By its {' and '.join(self._poor)} the model is no better than a constant."
        return super().__str__() + worse * bool(self._poor)

    @property
    def mean_outcome(self) -> float | None:
        """Return the released share of the second class, where it is above the noise."""
        if self.auc_reason is not None:
            return None
        no, yes = (sum(max(0.0, one) for one in counts) for counts in (self.no, self.yes))
        return yes / (no + yes)

    def _compared(self) -> str:
        known = self.deviance_reason is None
        return f" a row, {self.null_deviance:.3f} without features" * known

    @classmethod
    def release_measures(
        cls,
        releases: QualityReleases,
        point: ExactPoint,
        _target: ExactPoint,
        ranges: Ranges,
        *,
        in_sample: bool,
    ) -> OutcomeQuality:
        """Release how many rows of each class have log-odds in which cell, and the deviance.

        The deviance is Σ ln(1 + e^∓η), clipped at what a row inside the outermost cells has at
        most. Only rows of the second class in the first cell, and of the first class in the last
        one, are clipped: their released counts bound what that may hide (docs/theory/quality.md,
        Lemma 34).
        """
        (low, high), null = ranges.effects.sum(axis=0).tolist(), ranges.null
        places = null + clamp(ranges.scale, NARROWEST, WIDEST) * EDGES
        if not ranges.scale:
            places = low + EDGES - _HALF[0] / 2  # a constant, in the middle of one cell
        counts = point.fit_total(fits.log_odds_counts).reshape(2, N_LEVELS)
        # Counts by cell.
        inside = np.clip(places, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS) + LARGEST_LOG_ODDS
        starts = np.rint(inside * PER_UNIT).astype(np.int64)
        below = np.cumsum(np.pad(counts, ((0, 0), (1, 0))), axis=1)
        cells = np.diff(below[:, np.concatenate(([0], starts, [N_LEVELS]))], axis=1).ravel()
        table = releases.histogram(cells, places, TABLE_PART, COUNTS)
        # By released weights some cells can hold no row: noise alone.
        edges = np.concatenate(([-math.inf], places, [math.inf]))
        possible = (edges[1:] >= low - 0.01) & (edges[:-1] <= high + 0.01)
        no, yes = table.counts.reshape(2, -1) * possible
        auc = _auc(no, yes, table.noise) if low < high else Measure(reason=CONSTANT)
        # The deviance, over 2 and the clip.
        levels = np.arange(N_LEVELS) / PER_UNIT - LARGEST_LOG_ODDS
        clip = float(np.logaddexp(0, max(places[-1], -places[0])))
        losses = np.logaddexp(0, np.stack((levels, -levels)))
        whole = np.rint(np.minimum(losses / clip, 1.0) * LEVELS).astype(np.int64)
        total, n_rows = whole_sum((counts * whole).ravel()), whole_sum(counts.ravel())
        found = releases.total(total, n_rows, LEVELS, 1 - TABLE_PART, "the deviance")
        most, far = np.logaddexp(0, np.array([high, -low])), np.zeros(table.counts.size)
        far[[len(places), len(places) + 1]] = np.maximum(most - clip, 0.0) / clip
        rounding = 1 / (2 * PER_UNIT * clip) + 1 / (2 * LEVELS)
        half = releases.mean(found, [table.weighted(far)], WIDEST_FACTOR, rounding)
        value, least, largest = (2 * clip * one for one in half[:3])
        deviance = half if half.reason else Measure(value, least, largest)
        return cls(
            **cls.fields(auc, deviance),
            null_deviance=2 * float(np.logaddexp(0, null) - null * expit(null)),
            in_sample=in_sample,
            edges=tuple(expit(places).tolist()),
            no=tuple(no.tolist()),
            yes=tuple(yes.tolist()),
        )


def _auc(no: Array, yes: Array, noise: float) -> Measure:
    """Return the AUC of counts by cell, in order, or why it is not known.

    Pairs within one cell count as wrong at the lower end, as right at the upper one, and as ties
    between; noise is carried through to first order, and the product of both classes' noise.
    """
    n_no, n_yes = float(no.sum()), float(yes.sum())
    if min(n_no, n_yes) < LEAST_CLASS * noise * math.sqrt(len(no)):
        return Measure(reason=NOISE)
    ends = []
    for ties, side in ((0.5, 0.0), (0.0, -NORMAL_975), (1.0, NORMAL_975)):
        below, above = np.cumsum(no) - (1 - ties) * no, n_yes - np.cumsum(yes) + ties * yes
        area = float(below @ yes) / (n_no * n_yes)
        slopes = np.concatenate((below / n_no - area, above / n_yes - area))
        first = float(np.linalg.norm(slopes * np.repeat((1 / n_yes, 1 / n_no), len(no))))
        second = noise * len(no) / (math.sqrt(2) * n_no * n_yes)
        ends.append(clamp(area + side * noise * math.hypot(first, second), 0.0, 1.0))
    if ends[2] - ends[1] > WIDEST_AUC:
        return Measure(reason=NOISE)
    return Measure(clamp(*ends), ends[1], ends[2])


# --- the family -----------------------------------------------------------------------------------


def _simulated_auc(predicted: Array, outcomes: Array) -> float:
    """Return how often a row of the second class is ranked above one of the first; ½: no signal."""
    from scipy.stats import rankdata  # slow to import: half a second

    positive = float(outcomes.sum())
    if not 0 < positive < len(outcomes):
        return 0.5
    above = rankdata(predicted)[outcomes == 1].sum() - positive * (positive + 1) / 2
    return float(above / (positive * (len(outcomes) - positive)))


def _contested(expected: Array) -> tuple[Array, float, tuple[float, float]]:
    return 1.5 * (expected - expected.mean()) / expected.std() - 0.5, 1.0, (0.0, 1.0)


def _without_privacy(_error: float | None) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=0.1, max_iter=500)


BINOMIAL = Family(
    name="binomial",
    loss=LOGISTIC,
    link=lambda means: np.log(means) - np.log1p(-means),
    inverse_link=expit,
    variance=lambda means: means * (1 - means),
    inverse="expit",
    target=CLASSES,
    has_scale=False,
    quality_type=OutcomeQuality,
    sparse=FamilyModel(
        "private-logistic",
        "PrivateLogisticLasso",
        "Sparse model of a binary outcome",
        "Selects features and predicts the probability of a yes: the target is binary.",
        ", with a yes in {rate} of rows; one standard deviation of a feature that matters "
        "multiplies the odds by 1.6.",
    ),
    table=FamilyModel(
        "private-logit",
        "PrivateLogit",
        "Table of odds ratios",
        "An odds ratio with its interval for every feature: the target is binary.",
        ", with a yes in {rate} of rows; one standard deviation of all features together "
        "multiplies the odds by 2.7.",
    ),
    words=Words(
        regression="logistic regression",
        plain="logistic regression",
        effects=EffectScale("odds ratio", exponential, column="odds_ratio", ratio=True),
        effects_are="Odds ratio: of the step, for {second} against {first}.",
        multiplied="the odds",
        predictor="log-odds",
        increment="log-odds",
        sampling="as that model implies it",
        predicted="probability that {target} is {second}",
        asked="probability that {target} is {second},",
        constant=lambda mean: f"a probability of {whole_percent(mean)}",
        unfit="the target is a number, and a logistic model requires a binary outcome: declare "
        "the column as boolean, or with two levels.",
        default="The target {target!r} has two outcomes, so their probabilities are modelled "
        "(--model logistic).",
    ),
    simulation=SimulatedFamily(
        outcomes=lambda predictors, noise, _: (ndtr(noise) < expit(predictors)).astype(np.float64),
        score=_simulated_auc,
        worst=0.5,
        spreads=(1.0, 3.0),
        contested=_contested,
        caution="The surer outcomes are, and the rarer levels, the fewer have an interval.",
        without_privacy=_without_privacy,
        division="outcomes",
        effects=(0.05, 0.1, 0.2, 0.3, 0.5, 0.8),
        usual_effect=0.5,
        rate=0.5,
        rate_words="{:.0%} yes",
        rate_caution=" That is if half are a yes: where one of the two is rare, less is found, as "
        "dpscreen plan --rate shows.",
    ),
)
"""Binary outcomes: the linear predictor is the log-odds of the second class."""
