"""What a family of outcomes is: each kind of outcome is one `Family`, and only that knows its kind.

Whatever depends on whether an outcome is continuous, binary or a count is a field or a method here.
Solvers, models, plans, pages and commands ask the family that they were given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen._core.words import EffectScale
from dpscreen.families.quality import Called, Measured, QualityReleases, Ranges
from dpscreen.rows.lattice import ExactDesign
from dpscreen.rows.loss import SATURATED, Loss
from dpscreen.rows.source import PublicUnits

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(41)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@dataclass(frozen=True)
class DeclaredTarget:
    """What follows from whether a target is a number within bounds, or one of two classes.

    `parameter` of an estimator declares it, `predicts` is the method that predicts its mean, and
    `column` the name of what that predicts. `range_words` says what it may be, `bounds` to what the
    rows of intervals are clipped, and `clipped` to what predictions are, in no sentence or one.
    """

    n_classes: int
    parameter: str
    predicts: str
    column: str
    range_words: str
    bounds: str
    clipped: tuple[str, ...]


NUMBER = DeclaredTarget(
    0,
    parameter="target_bounds",
    predicts="predict",
    column="prediction",
    range_words="lies between {low} and {high}",
    bounds="to feature_bounds_ and target_bounds_",
    clipped=("Predictions are clipped to the declared bounds of the target.",),
)
CLASSES = DeclaredTarget(
    2,
    parameter="classes",
    predicts="predict_proba",
    column="probability",
    range_words="is {classes[1]} or {classes[0]}",
    bounds="to feature_bounds_",
    clipped=(),
)


@dataclass(frozen=True)
class FamilyModel:
    """One of the two models of a family: its name as a method, and its estimator.

    For the studio: its title, what it does, and the end of the sentence that says what is
    simulated.
    """

    method: str
    estimator: str
    title: str
    words: str
    supposed: str


@dataclass(frozen=True)
class Words:
    """What summaries, cards, pages and exports call the parts of a model of this family.

    Sentences may have the fields {target}, {units}, {first} and {second}: the target and its units,
    and the two classes where there are classes.

    `regression` and `plain` are what the model, and its estimate without privacy, are called.
    `effects` is how effects are shown, `effects_are` explains them, and `multiplied` is what a
    ratio multiplies. `predictor` is what a coefficient is a change of, and `increment` the same of
    one row. `sampling` completes the meaning of intervals. `predicted` says what a model predicts,
    `asked` the same of a model to be fitted, and `constant` writes what one without features does,
    given the mean. `unfit` is said where a target cannot be modelled, and `default` where its model
    is taken, or suggested, without being named.
    """

    regression: str
    plain: str
    effects: EffectScale
    effects_are: str
    multiplied: str
    predictor: str
    sampling: str
    predicted: str
    asked: str
    constant: Callable[[float], str]
    increment: str = ""
    unfit: str = ""
    default: str = ""

    @property
    def effect_axis(self) -> str:
        """Return what an effect is where fits are simulated, in the words of an axis."""
        of_one = f"{self.increment} for one standard deviation"
        return of_one if self.increment else "standardised coefficient"


@dataclass(frozen=True)
class SimulatedFamily:
    """How plans and contests simulate outcomes of a family and score fits to them.

    `outcomes` are drawn from linear predictors, standard normal noise and the standard deviation of
    residuals, so that all effects share their draws; families with a residual scale get it, too,
    and have a total variance of 1. `score` scores predictors on outcomes; `worst` is the least
    score that counts. `spreads` are standard deviations of predictors that plans of tables suppose,
    the usual one first. `contested` turns what a contest's design expects of each row into
    predictors, residual standard deviation and bounds of the target. `caution` says which data have
    wider intervals, or none. `without_privacy` builds scikit-learn's model from the largest
    sampling error to expect of a coefficient, if that is known; contests rank tables of the same
    `division`.

    `effects` are sizes of effect to plan for, and `usual_effect` the usual one; without them they
    follow from variances. `rate` is the mean of outcomes that is supposed unless it is given, None
    where it does not matter, `rate_words` writes it, and `rate_caution` says what it means.
    """

    outcomes: Callable[[Array, Array, float], Array]
    score: Callable[[Array, Array], float]
    worst: float
    spreads: tuple[float, ...]
    contested: Callable[[Array], tuple[Array, float, tuple[float, float]]]
    caution: str
    without_privacy: Callable[[float | None], Any]
    division: str
    effects: tuple[float, ...] = ()
    usual_effect: float | None = None
    rate: float | None = None
    rate_words: str = ""
    rate_caution: str = ""


@dataclass(frozen=True)
class Family:
    """A kind of outcome: its link, its residual with a bound, and its curvature.

    `loss` holds the residual of a row, its largest size `loss.bound` and the largest curvature.
    `link` and `inverse_link` map the mean of an outcome to the linear predictor and back;
    `variance` is the variance function of the mean, the curvature of the loss in the predictor.
    `inverse` names the inverse link as exports know it: "expit", "exp", or "" for the identity.

    Residuals have a scale of their own, to be estimated, if the family `has_scale`; else they are
    bounded. Beyond ± `saturated` the mean hardly changes. Outcomes are fitted as parts of their
    largest declared value where that is said (`in_parts`).

    `quality_type` holds the measures of quality and releases them; `metric` is what scores
    predictions of given rows, in scikit-learn, and its parameters. `sparse` and `table` are the
    models that select features and that give a regression table.

    The others follow: `n_classes` is 0 where the target is a number; the curvature of a `quadratic`
    loss is the same everywhere; `linear` predictors are in the target's units; `measure` is how the
    first measure of quality is called. Only some model files have the `file_fields`. Simulated fits
    take `simulated_cost` times as long as one with a quadratic loss, and are scored on `test_rows`.
    """

    name: str
    loss: Loss
    link: Callable[[Array], Array]
    inverse_link: Callable[[Array], Array]
    variance: Callable[[Array], Array]
    inverse: str
    target: DeclaredTarget
    has_scale: bool
    quality_type: type[Measured]
    sparse: FamilyModel
    table: FamilyModel
    words: Words
    simulation: SimulatedFamily
    saturated: float = SATURATED
    in_parts: bool = False
    metric: tuple[str, Mapping[str, Any]] = field(default=("r2_score", {}))
    n_classes: int = field(init=False)
    quadratic: bool = field(init=False)
    linear: bool = field(init=False)
    measure: Called = field(init=False)
    file_fields: tuple[str, ...] = field(init=False)
    simulated_cost: float = field(init=False)
    test_rows: int = field(init=False)

    def __post_init__(self) -> None:
        quadratic, own = self.loss.quadratic, self.quality_type.file_field
        vars(self).update(
            n_classes=self.target.n_classes,
            quadratic=quadratic,
            linear=self.has_scale and quadratic,
            measure=self.quality_type.measures[0],
            file_fields=("classes",) * (self.target.n_classes > 0) + (own,) * (own != "quality"),
            simulated_cost=1.0 if quadratic else 8.0,
            test_rows=500 if quadratic else 4000,
        )

    def __reduce__(self) -> tuple[Callable[[str], Family], tuple[str]]:
        """Pickle by name: functions stay here."""
        return family_named, (self.name,)

    # --- what a target must be ---

    def fits(self, classes: Collection[object] | None, low: float = 0.0) -> bool:
        """Whether a declared target can be modelled: it has the classes that the family needs.

        And its lower bound is not negative where outcomes are not.
        """
        enough = not self.n_classes or len(set(classes or ())) == self.n_classes
        return enough and (low >= 0 or not self.in_parts)

    def target_units(self, high: float) -> tuple[float, float | None]:
        """Return what fits take for the unit of a target with that upper bound, with its predictor.

        That is 1, and no matter, but where outcomes are fitted as parts of their largest.
        """
        return (high, float(self.link(np.array(high)))) if self.in_parts else (1.0, None)

    def predictor_bounds(self, target_bounds: Array) -> tuple[float, float] | None:
        """Return the ends to which predictors are clipped; None where no mean is impossible."""
        if self.n_classes:
            return None
        low, high = self.link(target_bounds).tolist()
        return low, high

    # --- the loss ---

    def dispersion(self, scale: float, curvature: float = 1.0) -> float:
        """Return the variance of a residual over the variance function, whose mean is given."""
        return scale**2 / curvature if self.has_scale else 1.0

    def information(self, predictor: float) -> float:
        """Return the information of an outcome at a predictor, as a share of the largest."""
        return float(self.variance(self.inverse_link(np.array(predictor)))) / self.loss.curvature

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

    def mean_curvature(self, mean: float, variance: float) -> float:
        """Return the mean of the curvature over rows whose predictors are normal."""
        ends = -self.saturated, self.saturated
        predictors = np.clip(mean + math.sqrt(variance) * _NODES, *ends)
        return float(_WEIGHTS @ self.variance(self.inverse_link(predictors)))

    # --- quality ---

    def release_quality(
        self,
        releases: QualityReleases,
        design: ExactDesign,
        units: PublicUnits,
        weights: Array,
        scales: tuple[float, float, float],
        null: float,
        *,
        in_sample: bool,
    ) -> Any:
        """Release how good weights are on the rows of a design, as the family's `quality_type`.

        `scales` are the standard deviations of residuals, target and predictors; `null` is the
        predictor of a model without features (docs/theory/quality.md, Lemmas 24, 34, 45 and 92).
        """
        residuals, target, predictors = scales
        if not self.linear:
            residuals, target = predictors, residuals if self.has_scale else 1.0
        low, high = (end - units.target_centre for end in units.target_ends)
        ranges = Ranges(
            (low, high),
            units.effect_ranges(weights),
            residuals,
            target_scale=target,
            null=null,
            unit=units.target_unit,
        )
        largest = float(np.abs(weights).max(initial=0.0))
        return self.quality_type.release_measures(
            releases,
            design.at(weights, scale=max(target, largest)),
            design.start(1.0),
            ranges,
            in_sample=in_sample,
        )

    # --- simulations ---

    def simulated_score(
        self, predicted: Array, truth: Array, outcomes: Array, variance: float
    ) -> float:
        """Return the score of predictors, given the true ones, outcomes and residual variance.

        R² is that for a target of variance 1, in expectation over its residuals.
        """
        if self.quadratic:
            return 1 - float(np.mean((truth - predicted) ** 2)) - variance
        return self.simulation.score(predicted, outcomes)

    def simulated_bounds(self, width: float, mean: float | None) -> tuple[float, float]:
        """Return bounds of the target, so many standard deviations wide, given the mean."""
        if self.in_parts:
            return 0.0, 4 * width * max(mean or 1.0, 1.0)
        return -width, width

    def simulated_dispersion(self, explained: float) -> float:
        """Return the dispersion where predictors have this variance, and scaled outcomes 1."""
        return 1 - explained if self.linear else 1.0

    def unexplained(self, mean: float, explained: float) -> float:
        """Return the variance of working residuals, over rows whose predictors are normal."""
        return self.simulated_dispersion(explained) / self.mean_curvature(mean, explained)

    def supposes(self, rate: float) -> bool:
        """Whether a mean of outcomes can be supposed in plans: one that the link can have."""
        with np.errstate(all="ignore"):
            return self.simulation.rate is not None and bool(
                rate > 0 and np.isfinite(self.link(np.array(rate)))
            )

    def intercept_for(self, mean: float, variance: float) -> float:
        """Return the intercept at which outcomes have the mean, where predictors are normal."""
        from scipy.optimize import brentq  # slow to import, and most callers need none

        around = math.sqrt(variance) * _NODES

        def excess(intercept: float) -> float:
            return float(_WEIGHTS @ self.inverse_link(intercept + around)) - mean

        end = 60 + 10 * math.sqrt(variance)
        return float(brentq(excess, -end, end))


FAMILIES: dict[str, Family] = {}
"""The families by name; the package fills it."""


def family_named(name: str) -> Family:
    """Return the family of a name."""
    return FAMILIES[name]
