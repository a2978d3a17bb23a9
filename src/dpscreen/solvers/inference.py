"""Intervals: what they are, and those of selected features, where one half of the rows selects.

A secret coin sends each row to one half, so one row touches one half only and each half may spend
the whole budget (docs/private-lasso.md, Lemma 16). The second half is the regression table of
PrivateOLS, or of PrivateLogit for outcomes, on the features that the first half chose
(docs/inference.md, docs/yes-no.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from dpscreen._core.arrays import Array, Integers
from dpscreen._core.words import how_many, some
from dpscreen.privacy import ZCDP, Accountant, MechanismRecord, PrivacyStatement
from dpscreen.rows.source import PublicUnits, RowSource
from dpscreen.solvers import rules
from dpscreen.solvers.base import Choices, Spending
from dpscreen.solvers.least_squares import TableRelease
from dpscreen.solvers.logit_table import OddsRelease
from dpscreen.solvers.ols_rules import TableSize
from dpscreen.solvers.placing import Places
from dpscreen.solvers.regression import LeftOut
from dpscreen.solvers.target import PlacedTarget
from dpscreen.solvers.wide import WideTask, widened

LEAST_SIGNAL = 80
"""The M below which no intervals are given."""

MOST_FEATURES = 20
ROWS_PER_FEATURE = 20
NOISE_PER_FEATURE = 50
"""How large (n/2)√(2ρ) has to be for each feature."""

REGRESSION_PART = 0.9
"""The part of a half's budget that is left for the regression, at least."""

NOTED_BIAS = 0.5
"""From which part of a standard error on the bias of clips is told."""

MEANING = (
    "95 % per coefficient, not simultaneous, for the linear model {model}, on rows clipped "
    "{bounds}; counting sampling {sampling}, and every privacy noise; not a causal "
    "effect."
)

UNEQUAL, OF_CHANCES = "with unequal variances", "as far as chances are those of that model"

PARALLEL = (
    "that a secret coin of its own sent each row to one of two halves; one row touches one half "
    "only, so costs add within a half, and rho has the larger of the two sums, not their total, "
    "beside what all rows were asked before "
    "(docs/private-lasso.md, Lemma 16)"
)


@dataclass(frozen=True)
class FeatureInterval:
    """One coefficient in the user's units, with its standard error and 95 % interval."""

    feature: int
    name: str
    coefficient: float
    standard_error: float
    low: float
    high: float

    @classmethod
    def of(
        cls, feature: int, name: str, coefficient: float, error: float, reach: float
    ) -> FeatureInterval:
        """Return the interval that reaches so far to either side."""
        return cls(feature, name, coefficient, error, coefficient - reach, coefficient + reach)


@dataclass(frozen=True)
class Inference:
    """Intervals with what they mean, or the reason why there are none. Released values only."""

    available: bool
    wording: str
    intervals: tuple[FeatureInterval, ...] = ()

    def __str__(self) -> str:
        lines = (
            f"{row.name}: {row.coefficient:.6g} (s.e. {row.standard_error:.3g}), "
            f"{row.low:.6g} to {row.high:.6g}"
            for row in self.intervals
        )
        return "\n".join((*lines, self.wording))


def not_available(reason: str) -> Inference:
    """Return the refusal, in plain words."""
    return Inference(False, f"Intervals are not available: {reason}")


def why_left_out(one: LeftOut, names: Sequence[str]) -> str:
    """Say why there is no interval of a feature."""
    if one.drowned:
        return (
            "not identifiable at this budget: the privacy noise of its coefficient exceeds the "
            "largest effect that it can have; dropped."
        )
    if not one.varies:
        return (
            "not identifiable at this budget: its variance is not detected above the privacy "
            "noise; dropped."
        )
    partners = [names[j] for j in one.partners if j < len(names)]
    of = some(partners) if partners else "a combination of other features"
    return f"not identifiable at this budget: not separable from {of}; dropped."


DROWNED = (
    "privacy noise moves log-odds too far at this budget for an interval to be honest: it takes "
    "more rows, fewer features, or a larger epsilon."
)
UNSEEN = (
    "privacy noise hides how far outcomes vary with the features: too few rows have the rarer "
    "outcome, or outcomes are nearly decided by the features, so that hardly any is uncertain. It "
    "takes more rows, or a larger epsilon."
)
DECIDED = (
    "as far as privacy noise lets see, hardly any row that tells this feature has an uncertain "
    "outcome: too few have the rarer one, or outcomes are nearly decided by it, so that its odds "
    "ratio has no end that these rows could tell; "
)
HELD = DECIDED + "it stays in the model."
UNTOLD = DECIDED + "dropped."
ENDLESS = (
    "an effect is too strong for this many rows at this epsilon: outcomes are nearly decided by "
    "the features, and privacy noise hides where their odds end. It takes more rows, or a larger "
    "epsilon."
)
TRIED = (
    "Intervals were sought for {}, those with the largest coefficients in the first half; other "
    "coefficients serve the predictions."
)
UNSETTLED = (
    "privacy noise hides how large the odds ratio is: where steps ended the estimate still moved, "
    "or too few of the rows that tell it may have either outcome."
)


def why_no_odds(found: OddsRelease, left_out: Mapping[int, str], n_features: int) -> dict[int, str]:
    """Say by feature why its odds ratio has no interval; why some are `left_out` is known."""
    still = {one.feature for one in found.left_out if not one.varies} - {*found.untold}
    nowhere = len(found.left_out) + len(found.held) == n_features
    for no_table, why in ((found.drowned, DROWNED), (found.endless, ENDLESS), (nowhere, UNSEEN)):
        if no_table:
            return {j: left_out[j] if j in still else why for j in range(n_features)}
    without = dict.fromkeys(found.unsettled, UNSETTLED) | dict.fromkeys(found.held, HELD)
    return without | dict(left_out) | dict.fromkeys(found.untold, UNTOLD)


def differences(
    shortened: float, clip_bias: Array, errors: Array, usual: str = "least squares"
) -> Iterator[str]:
    """Yield in which ways the usual estimate, on the same rows, may differ."""
    if shortened >= 1:
        yield (
            f"About {shortened:.0f} rows lie far out and count for less; where the truth "
            f"is no line, plain {usual}, which follows them, may differ."
        )
    if (clip_bias > NOTED_BIAS * errors).any():
        yield (
            f"Large residuals are clipped, mostly on one side: plain {usual} may differ by half "
            "a standard error or more. The standard errors include that."
        )


# --- the split ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SplitHalf:
    """Some of the rows, and the spending that pays for what is released about them."""

    spending: Spending
    rows: RowSource

    def reserving(self, share: float) -> SplitHalf:
        """Return the same half with a share of its limit kept for later."""
        return replace(self, spending=replace(self.spending, reserved=share))


def n_listed(regime: rules.Regime, telling: float = 1.0) -> int:
    """Return q, how many features get intervals at most, from the regime of all rows.

    Of a row's outcome a part may be `telling`, where one that is unsure would tell 1.
    """
    half = regime.n_rows // 2
    by_noise = telling * half * math.sqrt(2 * regime.rho) / NOISE_PER_FEATURE
    listed = int(min(MOST_FEATURES, by_noise, telling * half / ROWS_PER_FEATURE))
    while listed and not TableSize(half, listed + 1, REGRESSION_PART * regime.rho).resolvable:
        listed -= 1
    return listed


def refusal(regime: rules.Regime) -> str | None:
    """Return why there can be no intervals, from public numbers; None if there can be."""
    instead = "The model was fitted on all rows, without a split."
    if regime.signal < LEAST_SIGNAL:
        return f"there are too few rows for so many features at this budget. {instead}"
    if n_listed(regime) < 1:
        return f"half of the rows cannot carry one coefficient at this budget. {instead}"
    return None


def split(spending: Spending, rows: RowSource) -> tuple[SplitHalf, SplitHalf]:
    """Return two halves by secret coins, each with all that is left and the nominal n/2."""
    noise, unit = spending.accountant.noise, spending.accountant.unit
    limit = spending.remaining
    heads = noise.coins(rows.n_rows)
    n_rows = spending.regime.n_rows
    regime = replace(spending.regime, n_rows=max(1, n_rows // 2))
    doubt = math.hypot(spending.count_noise, math.sqrt(n_rows)) / 2  # coins are noise too
    first, second = (
        SplitHalf(
            Spending(Accountant(noise, limit=limit, unit=unit), limit, regime, count_noise=doubt),
            rows.where(side),
        )
        for side in (heads, ~heads)
    )
    return first, second


def parallel_cost(whole: Spending, first: Spending, second: Spending) -> ZCDP:
    """Return what all rows were asked, and the larger cost of the two halves (Lemma 16)."""
    halves = (first.accountant.spent.rho, second.accountant.spent.rho)
    return ZCDP(whole.accountant.spent.rho + max(halves))


def parallel_statement(
    rho: float, whole: PrivacyStatement, first: PrivacyStatement, second: PrivacyStatement
) -> PrivacyStatement:
    """Return one statement, at `rho`, for what all rows and then two halves were asked."""
    halves = (*_named("first half", first), *_named("second half", second))
    return replace(
        first,
        rho=rho,
        mechanisms=(*whole.mechanisms, *halves),
        public=(*first.public, PARALLEL),
    )


def _named(half: str, statement: PrivacyStatement) -> list[MechanismRecord]:
    return [replace(record, purpose=f"{half}: {record.purpose}") for record in statement.mechanisms]


# --- the second half ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Selected:
    """What the first half released: the model, and where target and features lie.

    `weights` are zero for features that do not stand out; `n_used` have a coefficient.
    """

    weights: Array
    units: PublicUnits
    deviation: float
    spread: float
    n_used: int = 0

    def columns(self, most: int) -> Integers:
        """Return the features with the largest weights, then the constant if there is one."""
        d = len(self.units.feature_bounds)
        order = np.argsort(-np.abs(self.weights[:d]), kind="stable")[:most]
        chosen = np.sort(order[self.weights[order] != 0])
        return np.append(chosen, d) if self.units.constant and chosen.size else chosen

    def places(self, declared: Array) -> Places:
        """Return where the first half found the features, in bounds as wide as declared."""
        scales = self.spread * self.units.feature_half_widths
        return replace(Places.unplaced(declared), centres=self.units.feature_centres, scales=scales)


@dataclass(frozen=True)
class SecondTable:
    """What is asked of the second half: a table on some columns, of which rows tell such a part."""

    release: Callable[[WideTask, Integers], TableRelease]
    telling: float = 1.0


def infer(
    half: SplitHalf,
    selected: Selected,
    declared: Array,
    choices: Choices,
    names: Sequence[str],
    table: SecondTable,
) -> Inference:
    """Release intervals for the features that the first half weighs most.

    `declared` are the public bounds of the features: they are clipped to nothing narrower.
    """
    regime, units = half.spending.regime, selected.units
    most = n_listed(replace(regime, n_rows=2 * regime.n_rows), table.telling)
    if not most:
        return not_available("too few rows have the rarer outcome for one coefficient.")
    chosen = selected.columns(most)
    if not chosen.size:
        return not_available("the first half selected no feature at this budget.")
    target = PlacedTarget(units.target_centre, selected.deviation)
    where = (selected.places(declared), target, units.target_bounds)
    wide = widened(half.spending, half.rows, where, choices, chosen, units.loss)
    found = _intervals(wide, table.release(wide, chosen), chosen, names)
    tried = int(np.count_nonzero(chosen < len(units.feature_bounds)))
    if tried >= selected.n_used:
        return found
    return replace(found, wording=f"{found.wording} {TRIED.format(how_many(tried, 'feature'))}")


def _intervals(
    wide: WideTask, found: TableRelease, chosen: Integers, names: Sequence[str]
) -> Inference:
    features = chosen[chosen < wide.task.n_features]
    called, known = [names[j] for j in features], found.uncertainty
    gone = {one.feature: why_left_out(one, called) for one in found.left_out}
    if isinstance(found, OddsRelease):
        gone = why_no_odds(found, gone, len(called))
    reasons = _told_together(gone, called)
    given = [place for place in range(len(called)) if place not in gone]
    if not given:
        return not_available(" ".join(reasons))
    errors = np.sqrt(np.diag(known.covariance))
    coefficients = wide.units.in_users_units(found.weights)[0][features]
    numbers = (coefficients, errors, stdtrit(known.freedom, 0.975) * errors)
    model, usual = _model(found, called)
    constant = "and a constant" if wide.units.constant else "without a constant"
    told = MEANING.format(
        model=f"{model}, {constant}",
        bounds="to the declared bounds",
        sampling=OF_CHANCES if isinstance(found, OddsRelease) else UNEQUAL,
    )
    differing = differences(found.long_rows, known.bias[given], errors[given], usual)
    return Inference(
        True,
        " ".join((told, *reasons, *differing)),
        tuple(
            FeatureInterval.of(int(features[k]), called[k], *(float(one[k]) for one in numbers))
            for k in given
        ),
    )


def _model(found: TableRelease, names: Sequence[str]) -> tuple[str, str]:
    """Return in words of which features a table is a model, and what usually estimates it."""
    if not isinstance(found, OddsRelease):
        return "of the features with an interval alone", "least squares"
    beside = [names[place] for place in found.beside]
    others = f" and of {some(beside)}" if beside else " alone"
    return f"of log-odds of the features with an interval{others}", "logistic regression"


def _told_together(reasons: Mapping[int, str], names: Sequence[str]) -> Iterator[str]:
    """Yield why features have no interval, those with one reason together."""
    for why in dict.fromkeys(reasons[place] for place in sorted(reasons)):
        yield f"{some([names[place] for place in sorted(reasons) if reasons[place] == why])}: {why}"
