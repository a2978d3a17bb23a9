"""The kinds of outcome that can be fitted: each is one `Family`, and only a family knows its kind.

Whatever depends on whether an outcome is continuous or binary is a field or a method here. Solvers,
models, plans, pages and commands ask the family that they were given and never test which it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Container, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

from dpscreen._core.arrays import Array
from dpscreen._core.words import LINEAR, ODDS, RATES, EffectScale, number, whole_percent
from dpscreen.rows.loss import EXPONENTIAL, FADED, LOGISTIC, SATURATED, SQUARED, Loss
from dpscreen.solvers.results import OutcomeQuality, Quality, RateQuality

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(41)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


# --- simulated outcomes, for plans and comparisons ------------------------------------------------


@dataclass(frozen=True)
class SimulatedFamily:
    """How plans simulate outcomes of a family, score fits to them, and name what they report.

    Outcomes are drawn from linear predictors and standard normal noise, so that all effects share
    their draws; families with a residual scale get it, too, and have a total variance of 1.
    """

    outcomes: Callable[[Array, Array, float], Array]
    """Outcomes of predictors, standard normal noise, and the standard deviation of residuals."""

    quality: Callable[[Array, Array, Array, float], float]
    """The score of predictors, given the true ones, new outcomes and the residual variance."""

    score: Callable[[Array, Array], float]
    """The score of predictors on outcomes of a real table."""

    worst: float
    """The least score that counts."""

    test_rows: int
    cost: float
    """How many rows a simulated fit is scored on, and its time relative to a Gaussian fit's."""

    spreads: tuple[float, ...]
    """Standard deviations of predictors that plans of tables suppose, the usual one first."""

    levels: bool
    rows_by_rule: bool
    """Whether tables are simulated with levels among their features; and whether the rule of
    refusal alone says with how many rows there are intervals, so that none need be tried."""

    searched: bool
    """Whether thinned tables are exact enough to search for the rows or ε that an effect needs."""

    bounds: Callable[[float, float | None], tuple[float, float]]
    """Bounds of the target, so many standard deviations wide, given the mean of outcomes."""

    contested: Callable[[Array], tuple[Array, float, tuple[float, float]]]
    """Predictors, residual standard deviation and bounds of the target of a contest's design, from
    what the design expects of each row."""

    caution: str
    """Which data have wider intervals, or none."""

    effect_unit: str = ""
    effects: tuple[float, ...] = ()
    usual_effect: float | None = None
    """Sizes of effect to plan for, and the usual one; without them they follow from variances."""

    rate_words: str = ""
    """The mean of outcomes in words, where it matters."""


def _r2(predicted: Array, outcomes: Array) -> float:
    error = float(np.mean((outcomes - predicted) ** 2))
    return max(-0.5, 1 - error / float(np.var(outcomes)))


def _simulated_r2(predicted: Array, truth: Array, _: Array, variance: float) -> float:
    """Return R² for a target of variance 1, in expectation over its residuals."""
    return 1 - float(np.mean((truth - predicted) ** 2)) - variance


def _auc(predicted: Array, outcomes: Array) -> float:
    """Return how often a row of the second class is ranked above one of the first; ½: no signal."""
    from scipy.stats import rankdata  # slow to import: half a second

    positive = float(outcomes.sum())
    if not 0 < positive < len(outcomes):
        return 0.5
    above = rankdata(predicted)[outcomes == 1].sum() - positive * (positive + 1) / 2
    return float(above / (positive * (len(outcomes) - positive)))


def _even_bounds(width: float, _: float | None) -> tuple[float, float]:
    return -width, width


def _as_much_noise(expected: Array) -> tuple[Array, float, tuple[float, float]]:
    deviation = float(expected.std())
    most = 8 * math.sqrt(2) * deviation
    return expected, deviation, (-most, most)


def _clear_classes(expected: Array) -> tuple[Array, float, tuple[float, float]]:
    return 1.5 * (expected - expected.mean()) / expected.std() - 0.5, 1.0, (0.0, 1.0)


LEAST_MEAN = 1e-300
"""Means below this are taken for it: a mean of nothing has no logarithm. Conventional."""


def _log(means: Array) -> Array:
    return np.log(np.maximum(means, LEAST_MEAN))


def _exp(predictors: Array) -> Array:
    return np.exp(np.minimum(predictors, 700.0))


def poisson_deviance(outcomes: Array, means: Array) -> Array:
    """Return 2(y ln(y/μ) − y + μ) of every row."""
    from scipy.special import xlogy

    means = np.maximum(means, LEAST_MEAN)
    return np.asarray(2 * (xlogy(outcomes, outcomes / means) - outcomes + means))


def deviance_explained(predicted: Array, outcomes: Array) -> float:
    """Return the part of the deviance from the mean that predictors explain; −0.5 at least."""
    whole = float(poisson_deviance(outcomes, np.full(len(outcomes), outcomes.mean())).sum())
    left = float(poisson_deviance(outcomes, _exp(predicted)).sum())
    return max(-0.5, 1 - left / whole) if whole else 0.0


def _counts(predictors: Array, noise: Array, _: float) -> Array:
    from scipy.stats import poisson  # slow to import

    return np.asarray(poisson.ppf(ndtr(noise), _exp(predictors)), dtype=np.float64)


def _counts_of_three(expected: Array) -> tuple[Array, float, tuple[float, float]]:
    return 0.7 * (expected - expected.mean()) / expected.std() + 0.85, 1.0, (0.0, 100.0)


_CONTINUOUS = SimulatedFamily(
    outcomes=lambda predictors, noise, deviation: predictors + deviation * noise,
    quality=_simulated_r2,
    score=_r2,
    worst=-0.5,
    test_rows=500,
    cost=1.0,
    spreads=(math.sqrt(0.5),),
    levels=False,
    rows_by_rule=True,
    searched=True,
    bounds=_even_bounds,
    contested=_as_much_noise,
    caution="Normal features are supposed: rare levels and heavy tails have wider ones, or none.",
)
_BINARY = SimulatedFamily(
    outcomes=lambda predictors, noise, _: (ndtr(noise) < expit(predictors)).astype(np.float64),
    quality=lambda predicted, _truth, outcomes, _variance: _auc(predicted, outcomes),
    score=_auc,
    worst=0.5,
    test_rows=4000,
    cost=8.0,
    spreads=(1.0, 3.0),
    levels=True,
    rows_by_rule=False,
    searched=False,
    bounds=_even_bounds,
    contested=_clear_classes,
    caution="The surer outcomes are, and the rarer levels, the fewer have an interval.",
    effect_unit=" log-odds for one standard deviation",
    effects=(0.05, 0.1, 0.2, 0.3, 0.5, 0.8),
    usual_effect=0.5,
    rate_words="{:.0%} yes",
)


_NON_NEGATIVE = SimulatedFamily(
    outcomes=_counts,
    quality=lambda predicted, _truth, outcomes, _variance: deviance_explained(predicted, outcomes),
    score=deviance_explained,
    worst=-0.5,
    test_rows=4000,
    cost=8.0,
    spreads=(0.5, 1.0),
    levels=True,
    rows_by_rule=False,
    searched=False,
    bounds=lambda width, mean: (0.0, 4 * width * max(mean or 1.0, 1.0)),
    contested=_counts_of_three,
    caution="Counts without over-dispersion are supposed: with it, intervals are wider.",
    effect_unit=" log-rate for one standard deviation",
    effects=(0.02, 0.05, 0.1, 0.2, 0.3, 0.5),
    usual_effect=0.2,
    rate_words="a mean of {:.3g}",
)


# --- families -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Words:
    """What summaries, cards, pages and exports call the parts of a model of this family.

    Sentences may have the fields {target}, {units}, {first} and {second}: the target and its units,
    and the two classes where there are classes.

    `sparse` and `table` are the estimators of this family that select features and that give a
    regression table; `regression` and `plain` are what the model, and its estimate without privacy,
    are called elsewhere. `effects` is how effects are shown, `effects_are` explains them, and
    `multiplied` is what a ratio multiplies. `predictor` is what a coefficient is a change of.
    `bounds` and `sampling` complete the meaning of intervals. `clipped` says to what predictions
    are clipped, in no sentence or one. `measure` is the first measure of quality. `constant` writes
    what a model without features predicts, given the mean. `simulated_effect` and `effect_axis` say
    what an effect is where fits are simulated.
    """

    sparse: str
    table: str
    regression: str
    plain: str
    effects: EffectScale
    effects_are: str
    multiplied: str
    predictor: str
    bounds: str
    sampling: str
    clipped: tuple[str, ...]
    measure: str
    predicted: str
    constant: Callable[[float], str]
    simulated_effect: str
    effect_axis: str


@dataclass(frozen=True)
class Family:
    """A kind of outcome: its link, its residual with a bound, and its curvature.

    `loss` holds the residual of a row, its largest size `loss.bound` and the largest curvature.
    `link` and `inverse_link` map the mean of an outcome to the linear predictor and back;
    `variance` is the variance function of the mean, the curvature of the loss in the predictor.

    `inverse` names the inverse link as exports know it: "expit", "exp", or "" for the identity.
    The target is one of `n_classes` declared classes; 0 where it is a number. Where `fills_target`,
    a missing target may count as the middle of its bounds.
    `measures` are the measures of quality, each with the stem of its interval's fields, and
    `charts` names the pictures that a page draws of the quality.
    `file_fields` are the fields that only model files of this family have, `quality_field` is the
    one that holds the quality.
    `residual_scale` is the standard deviation of a residual where that is known beforehand, and
    `drift` the squared relative change of the curvature that a score may be off by.
    Outcomes are fitted as parts of their largest declared value where that is said (`in_parts`).
    Beyond ± `saturated` the mean hardly changes.
    """

    name: str
    loss: Loss
    link_name: str
    link: Callable[[Array], Array]
    inverse_link: Callable[[Array], Array]
    variance: Callable[[Array], Array]
    residual_scale: float | None
    drift: float
    inverse: str
    n_classes: int
    fills_target: bool
    measures: tuple[tuple[str, str], ...]
    charts: tuple[str, ...]
    quality_field: str
    file_fields: tuple[str, ...]
    words: Words
    simulation: SimulatedFamily

    def __reduce__(self) -> tuple[Callable[[str], Family], tuple[str]]:
        """Pickle by name: functions stay here."""
        return family_named, (self.name,)

    # --- for commands and the studio ---
    # Methods that select features and that fit a table of all; the value of the first measure of
    # quality without information; the parameter that declares the target, what is said where it
    # cannot be modelled; what a target may be,
    # what a model predicts, and what is said where its default model is taken, in words; the method
    # that predicts the mean, and the name of its column; the mean of outcomes that is supposed
    # unless it is given, None where it does not matter, and what is said of it.
    selection: str
    table: str
    no_information: float
    no_information_words: str
    target_parameter: str
    unfit_words: str
    range_words: str
    predicted_words: str
    default_words: str
    predicts: str
    prediction_column: str
    supposed_rate: float | None
    supposed_words: str

    # --- for quality and tables ---
    # The measures of quality, from residuals or from counts of predictors by class.
    quality_type: type[Quality | OutcomeQuality | RateQuality]

    metric: str = "r2_score"
    power: Mapping[str, Any] = field(default_factory=dict)
    # What scores predictions of given rows, in scikit-learn, and its parameters.
    in_parts: bool = False
    saturated: float = SATURATED

    def fits(self, classes: Collection[object] | None, low: float = 0.0) -> bool:
        """Whether a declared target can be modelled: it has the classes that the family needs.

        And its lower bound is not negative where outcomes are not.
        """
        enough = not self.n_classes or len(set(classes or ())) == self.n_classes
        return enough and (low >= 0 or not self.in_parts)

    def supposes(self, rate: float) -> bool:
        """Whether a mean of outcomes can be supposed in plans: one that the link can have."""
        with np.errstate(all="ignore"):
            return self.supposed_rate is not None and bool(
                rate > 0 and np.isfinite(self.link(np.array(rate)))
            )

    def with_rate(self, rate: float | None) -> Family:
        """Return the family that is meant where a mean of outcomes is supposed; else this one."""
        if rate is None or self.supposed_rate is not None:
            return self
        return next(one for one in FAMILIES.values() if one.supposed_rate is not None)

    def predictor_bounds(self, target_bounds: Array) -> tuple[float, float] | None:
        """Return the ends to which predictors are clipped; None where no mean is impossible."""
        if self.n_classes:
            return None
        low, high = self.link(target_bounds).tolist()
        return low, high

    @property
    def quality(self) -> str:
        """Return the name of the first measure of quality."""
        return self.measures[0][0]

    @property
    def has_scale(self) -> bool:
        """Whether residuals have a scale of their own, to be estimated; else they are bounded."""
        return self.residual_scale is None

    def dispersion(self, scale: float, curvature: float = 1.0) -> float:
        """Return the variance of a residual over the variance function, whose mean is given."""
        return scale**2 / curvature if self.has_scale else 1.0

    def information(self, predictor: float) -> float:
        """Return the information of an outcome at a predictor, as a share of the largest."""
        return float(self.variance(self.inverse_link(np.array(predictor)))) / self.loss.curvature

    def quality_scales(
        self, residuals: float, target: float, predictors: float
    ) -> tuple[float, float]:
        """Return the scale of what quality is measured of, and that of the target, or of residuals.

        That is of residuals where predictors are in their units, else of predictors.
        """
        if self.has_scale and self.quadratic:
            return residuals, target
        return predictors, residuals if self.has_scale else 1.0

    def unclipped(self, clip: float) -> float:
        """Return by how much clipped scores are flatter, for a clip in standard deviations.

        That is the share of normal residuals inside it; bounded ones are hardly clipped.
        """
        return math.erf(clip / math.sqrt(2)) if self.has_scale else 1.0

    def damping(self, move: float) -> float:
        """Return the part of a move to make that changes predictors by so much, in the mean square.

        A quadratic loss is the same everywhere. Others are curved by up to e^|m| times as much, or
        as little, at a distance of m, and a move of ln(1 + m) is safe.
        """
        return 1.0 if self.quadratic or move < 1e-6 else math.log1p(move) / move

    def simulated_dispersion(self, explained: float) -> float:
        """Return the dispersion where predictors have this variance, and scaled outcomes 1."""
        return 1 - explained if self.has_scale and self.quadratic else 1.0

    def unexplained(self, mean: float, explained: float) -> float:
        """Return the variance of working residuals, over rows whose predictors are normal."""
        return self.simulated_dispersion(explained) / self.mean_curvature(mean, explained)

    @property
    def quadratic(self) -> bool:
        """Whether the curvature of the loss is the same everywhere."""
        return self.loss.quadratic

    @property
    def releases_meat(self) -> bool:
        """Whether the meat of the sandwich covariance is released; else it is the curvature."""
        return self.has_scale

    @property
    def releases_curvature(self) -> bool:
        """Whether the curvature is released; else it is the Gram matrix."""
        return not self.quadratic

    def target_units(self, high: float) -> tuple[float, float | None]:
        """Return what fits take for the unit of a target with that upper bound, with its predictor.

        That is 1, and no matter, but where outcomes are fitted as parts of their largest.
        """
        return (high, float(self.link(np.array(high)))) if self.in_parts else (1.0, None)

    def target_deviation(self, residuals: float, explained: float) -> float:
        """Return the target's standard deviation, where predictors are in its units; else 1."""
        return math.hypot(residuals, explained) if self.has_scale and self.quadratic else 1.0

    @property
    def averages_units(self) -> bool:
        """Whether a table counts units, whatever their rows: then its meat is of their means."""
        return self.quadratic

    def mean_curvature(self, mean: float, variance: float) -> float:
        """Return the mean of the curvature over rows whose predictors are normal."""
        ends = -self.saturated, self.saturated
        predictors = np.clip(mean + math.sqrt(variance) * _NODES, *ends)
        return float(_WEIGHTS @ self.variance(self.inverse_link(predictors)))

    def intercept_for(self, mean: float, variance: float) -> float:
        """Return the intercept at which outcomes have the mean, where predictors are normal."""
        from scipy.optimize import brentq  # slow to import, and most callers need none

        around = math.sqrt(variance) * _NODES

        def excess(intercept: float) -> float:
            return float(_WEIGHTS @ self.inverse_link(intercept + around)) - mean

        end = 60 + 10 * math.sqrt(variance)
        return float(brentq(excess, -end, end))


def _identity(values: Array) -> Array:
    return values


def _log_odds(means: Array) -> Array:
    return np.log(means) - np.log1p(-means)


GAUSSIAN = Family(
    name="gaussian",
    loss=SQUARED,
    link_name="identity",
    link=_identity,
    inverse_link=_identity,
    variance=np.ones_like,
    residual_scale=None,
    drift=0.0,
    inverse="",
    n_classes=0,
    fills_target=True,
    measures=(("r2", "r2"), ("typical_error", "error")),
    charts=(),
    quality_field="quality",
    file_fields=(),
    words=Words(
        sparse="PrivateLasso",
        table="PrivateOLS",
        regression="linear regression",
        plain="least squares",
        effects=LINEAR,
        effects_are="Effect: of the step, in {units}.",
        multiplied="the prediction",
        predictor="",
        bounds="to feature_bounds_ and target_bounds_",
        sampling="with unequal variances",
        clipped=("Predictions are clipped to the declared bounds of the target.",),
        measure="R²",
        predicted="prediction of {target}",
        constant=lambda mean: number(mean, digits=4),
        simulated_effect="a coefficient when features and target have variance 1",
        effect_axis="standardised coefficient",
    ),
    simulation=_CONTINUOUS,
    selection="private-lasso",
    table="private-ols",
    no_information=0.0,
    no_information_words="",
    target_parameter="target_bounds",
    unfit_words="",
    range_words="lies between {low} and {high}",
    predicted_words="{target}",
    default_words="",
    predicts="predict",
    prediction_column="prediction",
    supposed_rate=None,
    supposed_words="",
    quality_type=Quality,
)
"""Continuous outcomes: the linear predictor is the mean."""

BINOMIAL = Family(
    name="binomial",
    loss=LOGISTIC,
    link_name="logit",
    link=_log_odds,
    inverse_link=expit,
    variance=lambda means: means * (1 - means),
    residual_scale=0.5,
    drift=0.25,
    inverse="expit",
    n_classes=2,
    fills_target=False,
    measures=(("auc", "auc"), ("deviance", "deviance")),
    charts=("reliability", "roc"),
    quality_field="outcome_quality",
    file_fields=("classes", "outcome_quality"),
    words=Words(
        sparse="PrivateLogisticLasso",
        table="PrivateLogit",
        regression="logistic regression",
        plain="logistic regression",
        effects=ODDS,
        effects_are="Odds ratio: of the step, for {second} against {first}.",
        multiplied="the odds",
        predictor="log-odds",
        bounds="to feature_bounds_",
        sampling="as far as probabilities are those of that model",
        clipped=(),
        measure="AUC",
        predicted="probability that {target} is {second}",
        constant=lambda mean: f"a probability of {whole_percent(mean)}",
        simulated_effect="what one standard deviation of a feature adds to the log-odds",
        effect_axis="log-odds for one standard deviation",
    ),
    simulation=_BINARY,
    selection="private-logistic",
    table="private-logit",
    no_information=0.5,
    no_information_words=" 0.5 is a coin's.",
    target_parameter="classes",
    unfit_words="the target is a number, and a logistic model requires a binary outcome: declare "
    "the column as boolean, or with two levels.",
    range_words="is {classes[1]} or {classes[0]}",
    predicted_words="probability that {target} is {second},",
    default_words="The target {target!r} has two outcomes, so their probabilities are modelled "
    "(--model logistic).",
    predicts="predict_proba",
    prediction_column="probability",
    supposed_rate=0.5,
    supposed_words=" That is if half are a yes: where one of the two is rare, less is found, as "
    "dpscreen plan --rate shows.",
    quality_type=OutcomeQuality,
)
"""Binary outcomes: the linear predictor is the log-odds of the second class."""

POISSON = Family(
    name="poisson",
    loss=EXPONENTIAL,
    link_name="log",
    link=_log,
    inverse_link=_exp,
    variance=lambda means: means,
    residual_scale=None,
    drift=0.25,
    inverse="exp",
    n_classes=0,
    fills_target=True,
    measures=(("deviance_explained", "explained"),),
    charts=("calibration",),
    quality_field="rate_quality",
    file_fields=("rate_quality",),
    words=Words(
        sparse="PrivatePoissonLasso",
        table="PrivatePoisson",
        regression="Poisson regression",
        plain="quasi-Poisson regression",
        effects=RATES,
        effects_are="Rate ratio: of the mean, for the step.",
        multiplied="the mean",
        predictor="log-means",
        bounds="to feature_bounds_ and target_bounds_",
        sampling="with any variance",
        clipped=("Predictions are clipped to the declared bounds of the target.",),
        measure="deviance explained",
        predicted="mean of {target}",
        constant=lambda mean: f"a mean of {number(mean, digits=4)}",
        simulated_effect="what one standard deviation of a feature adds to the log-mean",
        effect_axis="log-mean for one standard deviation",
    ),
    simulation=_NON_NEGATIVE,
    selection="private-poisson-lasso",
    table="private-poisson",
    no_information=0.0,
    no_information_words="",
    target_parameter="target_bounds",
    unfit_words="the target may be negative by its declared bounds, and a Poisson model requires "
    "one that is not: declare a minimum of 0 or above.",
    range_words="lies between {low} and {high}",
    predicted_words="the mean of {target}",
    default_words="The target {target!r} is not negative: if it is a count, a cost or a duration, "
    "--model poisson (or poisson-lasso) models the logarithm of its mean.",
    predicts="predict",
    prediction_column="prediction",
    supposed_rate=1.0,
    supposed_words=" That is with a mean of 1: of rarer counts less is found, as dpscreen plan "
    "--rate shows.",
    quality_type=RateQuality,
    metric="d2_tweedie_score",
    power={"power": 1},
    in_parts=True,
    saturated=FADED,
)
"""Counts and other outcomes that are not negative: the linear predictor is the log of the mean."""

FAMILIES = {family.name: family for family in (GAUSSIAN, BINOMIAL, POISSON)}


def family_named(name: str) -> Family:
    """Return the family of a name."""
    return FAMILIES[name]


def family_of_fields(fields: Container[str]) -> Family:
    """Return the family of a model file: the one whose own fields it has."""
    own = (one for one in FAMILIES.values() if one.file_fields)
    return next((one for one in own if one.file_fields[0] in fields), GAUSSIAN)


def family_of(classes: object) -> Family:
    """Return the family of a declared target: its two classes, or None where it is a number."""
    return GAUSSIAN if classes is None else BINOMIAL


def proposal_of(classes: object, low: float) -> str:
    """Return what is said of a target, before a fit, that another family than its default suits."""
    return POISSON.default_words if classes is None and low == 0 else ""


def family_of_method(method: str) -> Family:
    """Return the family whose selection or table a method is."""
    return next(one for one in FAMILIES.values() if method in (one.selection, one.table))
