"""What solvers share: one budget and its shares, the task, and numbers released for one value."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpscreen._core.arrays import Array, Integers, Mask, clamp
from dpscreen.families import GAUSSIAN, Family
from dpscreen.privacy import (
    ZCDP,
    Accountant,
    Budget,
    DiscreteGaussian,
    Noise,
)
from dpscreen.privacy.budget import Unit
from dpscreen.rows.lattice import ExactDesign, ExactPoint
from dpscreen.rows.sums import LEVELS
from dpscreen.solvers import rules
from dpscreen.solvers.rules import Regime

COUNTS = "the number of rows", "the number of units"
"""What is counted first: rows, or units whose rows count together."""

FINE = 2**10
"""Into how many units one row's largest change of a sum is divided before noise is added.
Conventional."""


@dataclass(frozen=True)
class Spending:
    """One accountant, its limit, and the numbers that say how much it buys.

    The limit is for one unit. What is handed out are costs for one row, of which a unit with k rows
    pays k² times as much (Lemma 18). A share of the limit may be `reserved` for later. The number
    of rows is known but for `count_noise`.
    """

    accountant: Accountant
    limit: ZCDP
    regime: Regime
    reserved: float = 0.0
    count_noise: float = 0.0

    @classmethod
    def of(
        cls,
        budget: Budget,
        unit: Unit,
        noise: Noise,
        *,
        n_rows: int | None,
        n_features: int,
        averaged: bool = False,
    ) -> Spending:
        """Return the whole budget for one unit; the rules see what of it one row may cost.

        Where the number of rows is not public, it has to be `counted` first. Where units are
        `averaged`, each is a row to the rules, and its rows are not counted.
        """
        accountant = Accountant(noise, limit=ZCDP.within(budget), unit=unit, averaged=averaged)
        limit = ZCDP.within(budget)
        rho = float(limit / accountant.rows_per_unit**2)
        regime = Regime(n_rows or rules.LEAST_ROWS, n_features, rho)
        return cls(accountant, limit, regime, count_noise=rules.ROUND * regime.n_rows)

    def counted(
        self, n_rows: int, admit: Callable[[Spending, ZCDP], None] | None = None
    ) -> Spending:
        """Release a noisy count of the rows, for all rules to use; again if that is too coarse.

        In between `admit` is called with what is known by then and the cost of a second count. It
        may raise, and the first count is all that was released (docs/theory/marginals.md,
        Lemma 22).
        """

        def released(
            share: float, weight: float = 1.0, before: float = 0.0
        ) -> tuple[float, Spending]:
            """Release the number of rows, which a row moves by one, and weigh in another count."""
            cost, purpose = self.share(share), COUNTS[self.accountant.averaged]
            count, noise = self.release_sum(n_rows, most=1, bound=1.0, cost=cost, purpose=purpose)
            many = (1 - weight) * before + weight * count
            regime = replace(self.regime, n_rows=max(rules.LEAST_ROWS, round(many)))
            return many, replace(self, regime=regime, count_noise=noise * math.sqrt(weight))

        first, found = released(rules.COUNT_SHARE)
        # A second count takes the noise to a tenth of the rows.
        again = clamp(found.regime.need / 2 - rules.COUNT_SHARE, 0.0, 0.03)
        if admit is not None:
            admit(found, self.share(again))
        return released(again, again / (again + rules.COUNT_SHARE), first)[1] if again else found

    @property
    def remaining(self) -> ZCDP:
        """Return what has not been spent or reserved, for one row."""
        reserved = self.limit * Fraction(self.reserved)
        left = ZCDP(self.limit.rho - reserved.rho - self.accountant.spent.rho)
        return left / self.accountant.rows_per_unit**2

    def share(self, share: float) -> ZCDP:
        """Return a share of the whole budget, for one row."""
        return self.limit * Fraction(share) / self.accountant.rows_per_unit**2

    def release_sum(
        self, total: int, *, most: int, bound: float, cost: ZCDP, purpose: str
    ) -> tuple[float, float]:
        """Release a sum of integers of at most `most` in size, and its noise's standard deviation.

        Both are returned in units in which `most` is `bound`. The sum is first floored to whole
        numbers of most/2^10, which one row still moves by at most 2^10 (docs/theory/mechanisms.md,
        Lemma 13).
        """
        unit = bound / FINE
        assert unit * FINE == bound, "a bound this small has no exact unit"
        mechanism = DiscreteGaussian.of_cost(cost, sensitivity=bound, unit=unit)
        coarse = np.array([FINE * total // most], dtype=np.int64)
        noisy = self.accountant.release(mechanism, coarse, purpose=purpose)
        return float(noisy[0]), mechanism.scale


@dataclass(frozen=True)
class Choices:
    """What the user fixed; None, or "auto", leaves it to the rules.

    The feature `offset`, if there is one, has the coefficient 1 in the user's units
    (docs/theory/engine.md, Lemma 93).
    """

    radius: float | None = None
    n_iter: int | None = None
    clip: float | None = None
    row_norm: float | None = None
    max_features: int | None = None
    intercept: bool = True
    standardize: bool | str = "auto"
    n_rows: int | None = None
    quality: bool = False
    offset: int | None = None


@dataclass(frozen=True)
class Task:
    """What a solver may use: rows behind a spending, and public or released numbers.

    `deviation` is the target's, `spread` the features' on the lattice. The last column of the
    design is the constant, if there is an intercept. `at_ends` are the features whose rows share
    one value, and the end of the declared bounds at which that is. With a `point_mass` most rows
    share one value of the target; `asymmetry` is the part of its squares that one side has more.
    `narrowed` says that features are clipped to less than their declared bounds. `residual` is the
    standard deviation of outcomes, where `deviation` is that of predictors. `offset_weight` is that
    of the offset on the lattice. `keep` holds weights that are released already, for a fit that
    fails numerically later.
    """

    spending: Spending
    design: ExactDesign
    deviation: float
    spread: float
    choices: Choices
    at_ends: tuple[tuple[int, str], ...] = ()
    point_mass: bool = False
    asymmetry: float = 0.0
    narrowed: bool = False
    family: Family = GAUSSIAN
    start: float = 0.0
    marginals: Any = None
    residual: float | None = None
    offset_weight: float = 0.0
    keep: Callable[[Solution], None] = lambda _: None

    @property
    def residual_scale(self) -> float:
        """Return the largest standard deviation of residuals: the target's, where it is in units.

        That of predictors, `deviation`, is another one where the link is not the identity.
        """
        return self.deviation if self.residual is None else self.residual

    def start_point(
        self, grain: float, design: ExactDesign | None = None, constant: float | None = None
    ) -> ExactPoint:
        """Return the point of no features but an offset, whose constant is where marginals say."""
        point = (design or self.design).start(grain)
        if self.choices.offset is not None:
            point.shift(np.array([self.choices.offset]), np.array([self.offset_weight]))
        if self.choices.intercept:
            start = self.start if constant is None else constant
            point.shift(np.array([self.n_features]), np.array([start]))
        return point

    @property
    def candidates(self) -> Integers:
        """Return the features that may be selected: all but an offset."""
        return np.flatnonzero(np.arange(self.n_features) != self.choices.offset)

    @property
    def regime(self) -> rules.Regime:
        """Return the numbers that rules rest on."""
        return self.spending.regime

    @property
    def n_features(self) -> int:
        """Return the number of features, without the constant."""
        return self.regime.n_features

    @property
    def n_steps(self) -> int:
        """Return T."""
        return self.choices.n_iter or rules.n_steps(self.regime)

    @property
    def path_steps(self) -> int:
        """Return T of a path: fewer where features are limited and a refit follows."""
        limit = self.choices.max_features if self.choices.radius is None else None
        return self.choices.n_iter or rules.path_steps(self.regime, limit)

    def first_step(self, n_iter: int) -> float:
        """Return η₀: what the rules say, or what makes the steps add up to the radius."""
        if self.choices.radius is not None:
            return 2 * self.choices.radius / (n_iter + 1)
        return rules.first_step(
            self.regime, deviation=self.deviation, spread=self.spread, n_iter=n_iter
        )

    def clip(self, deviation: float) -> float:
        """Return the clip: the user's, or a multiple of the residuals' median size.

        It is never above the bound of the loss: that would add noise and nothing else. Where there
        is a bound it is half of that (docs/theory/selection.md, Lemma 33).
        """
        bound, factor = self.design.loss.bound, rules.clip_factor(self.regime)
        widest = bound if self.choices.clip else bound / 2
        return min(self.choices.clip or factor * deviation / rules.GAUSSIAN, widest)


@dataclass(frozen=True, eq=False)
class Path:
    """What was chosen at each step, and how far the step went, in units of the mapped features.

    `n_candidates` features were offered at the first step; all of them, if that is None.
    """

    features: Integers
    signs: Integers
    steps: Array
    n_candidates: int | None = None

    def __len__(self) -> int:
        return len(self.steps)

    def weights(self, n_features: int) -> Array:
        """Return the sum of all steps."""
        moves = self.signs * self.steps
        return np.bincount(self.features, moves, minlength=n_features).astype(np.float64)


@dataclass(frozen=True)
class Solution:
    """Released weights, the constant last if there is one, and how they came about.

    `q_values` are the least false-discovery rates at which each feature would be selected; without
    them all features with a weight are.
    """

    weights: Array
    n_iter: int
    path: Path | None
    deviation: float
    q_values: Array | None = None

    def selected(self, n_features: int) -> Mask:
        """Return the features that are selected at a false-discovery rate of `MOST_FALSE`."""
        nonzero = self.weights[:n_features] != 0
        detected = True if self.q_values is None else self.q_values <= MOST_FALSE
        return np.asarray(nonzero & detected)


MOST_FALSE = 0.1
"""The false-discovery rate at which features are selected (conventional)."""

SCALE_CLIP, DEAREST_SCALE = 2.5, 0.015
"""Where residuals are clipped for their mean size, in their standard deviations; and the largest
share of what is left for one estimate of their scale (tuned)."""

SCALE_NOISE, CHEAPEST_SCALE, LEAST_SCALE = 0.05, 0.001, 0.02
"""The noise of a released residual scale, in parts of it; the least share of what is left for it;
and the least scale, in standard deviations of the target (conventional)."""


def scale_cost(task: Task, budget: ZCDP) -> ZCDP:
    """Return what one estimate of the residuals' scale costs; nothing where noise would hide it.

    Nor where the clip does not follow it: it is the user's, or residuals are bounded.
    """
    if not task.family.has_scale or task.point_mass or task.choices.clip:
        return ZCDP.free()
    change = SCALE_CLIP / (SCALE_NOISE * task.regime.n_rows)
    share = max(change**2 / 2 / max(float(budget), 1e-300), CHEAPEST_SCALE)
    return budget * Fraction(share) if share <= DEAREST_SCALE else ZCDP.free()


def release_scale(task: Task, point: ExactPoint, scale: float, cost: ZCDP) -> float:
    """Release the residuals' standard deviation, from their mean size; it is only ever lowered.

    One row moves the sum of the clipped sizes by at most the clip. Their noise is added, because a
    clip that is too small does more harm than one that is too large (docs/theory/mechanisms.md,
    Lemma 13).
    """
    if not cost.rho:
        return scale
    clip = SCALE_CLIP * scale
    noisy, noise = task.spending.release_sum(
        int(point.residual_counts(clip) @ np.arange(LEVELS + 1)),
        most=LEVELS,
        bound=1.0,
        cost=cost,
        purpose="scale of the residuals",
    )
    found = math.sqrt(math.pi / 2) * clip * (noisy + noise) / task.regime.n_rows
    return min(scale, max(found, LEAST_SCALE * task.residual_scale))


def intercept_move(task: Task, point: ExactPoint, clip: float, cost: ZCDP) -> float:
    """Release how far to move the intercept: −Σψ_c(r) over n times the mean curvature.

    One row moves the sum by at most c (docs/theory/mechanisms.md, Lemma 1).
    """
    clip = min(clip, task.design.loss.bound)
    noisy, noise = task.spending.release_sum(
        point.residual_total(clip), most=LEVELS, bound=clip, cost=cost, purpose="the intercept"
    )
    curvature = task.regime.n_rows * task.family.mean_curvature(task.start, 0.0)
    # The expected share of noise is taken off (James and Stein).
    shrunk = noisy * max(0.0, 1 - (noise / noisy) ** 2) if noisy else 0.0
    return clamp(-shrunk / curvature, -clip, clip)
