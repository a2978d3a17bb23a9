"""What the solvers of PrivateLasso share: the task, private selection, scale and intercept."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpscreen._core.arrays import Array, Integers
from dpscreen.estimators import _private_lasso_rules as rules
from dpscreen.estimators._private_lasso_bounds import release_deviation
from dpscreen.estimators._private_lasso_purse import Purse
from dpscreen.privacy import ZCDP, SignedNoisyMax, sensitivity
from dpscreen.regression import Vertex
from dpscreen.regression.lattice import LEVELS, UNITS, ExactDesign, ExactPoint
from dpscreen.regression.stagewise import Path


@dataclass(frozen=True)
class Choices:
    """What the user fixed; None leaves it to the rules."""

    radius: float | None = None
    n_iter: int | None = None
    clip: float | None = None
    row_norm: float | None = None
    max_features: int | None = None
    intercept: bool = True


@dataclass(frozen=True)
class Task:
    """What a solver may use: rows behind a purse, and public or released numbers.

    `deviation` is the target's, `spread` the features' root mean square. The last column of the
    design is the constant, if there is an intercept.
    """

    purse: Purse
    design: ExactDesign
    deviation: float
    spread: float
    choices: Choices

    @property
    def regime(self) -> rules.Regime:
        """Return the public numbers."""
        return self.purse.regime

    @property
    def n_features(self) -> int:
        """Return the number of features, without the constant."""
        return self.regime.n_features

    @property
    def n_steps(self) -> int:
        """Return T."""
        return self.choices.n_iter or rules.n_steps(self.regime)

    def first_step(self, n_iter: int) -> float:
        """Return η₀: what the rules say, or what makes the steps add up to the radius."""
        if self.choices.radius is not None:
            return 2 * self.choices.radius / (n_iter + 1)
        return rules.first_step(
            self.regime, deviation=self.deviation, spread=self.spread, n_iter=n_iter
        )

    def clip(self, deviation: float) -> float:
        """Return the clip: the user's, or a multiple of the residuals' median size."""
        factor = rules.clip_factor(self.regime)
        return self.choices.clip or factor * deviation / rules.GAUSSIAN

    def smallest_weight(self, deviation: float) -> float:
        """Return the size below which a final weight is dropped."""
        return rules.smallest_weight(self.regime, deviation=deviation, spread=self.spread)


@dataclass(frozen=True)
class Solution:
    """Released weights, the constant last if there is one, and how they came about."""

    weights: Array
    n_iter: int
    path: Path | None
    deviation: float


class Entrants:
    """Which candidates may be chosen: all, until `limit` features have entered (Lemma 7).

    From `n_features` on a candidate is no feature: the constant is never shut out.
    """

    def __init__(self, n_candidates: int, n_features: int, limit: int | None) -> None:
        self._entered: set[int] = set()
        self._constants = list(range(n_features, n_candidates))
        self._limit = n_features if limit is None else limit
        self.allowed = np.arange(n_candidates)

    def enter(self, candidate: int) -> None:
        """Count a feature that was chosen; the last one admitted closes the door."""
        if candidate in self._constants:
            return
        self._entered.add(candidate)
        if len(self._entered) == self._limit:
            self.allowed = np.array(sorted(self._entered) + self._constants)


class Selector:
    """Chooses a signed candidate by noisy max over clipped sums (Lemmas 1, 2 and 8).

    Cells are clipped to ±reach for the choice alone; the point moves along whole columns.
    """

    def __init__(
        self, purse: Purse, entrants: Entrants, cost: ZCDP, *, purpose: str, reach: float = 1.0
    ) -> None:
        self._accountant = purse.accountant
        self._reach = int(rules.clamp(reach * LEVELS, 1, LEVELS))
        self._entrants = entrants
        self._cost = cost
        self._purpose = purpose

    def clip_at(self, clip: float) -> None:
        """Clip residuals there from now on; the noise follows."""
        self.clip = clip
        change = sensitivity.clipped_gradient(clip=clip, reach=self._reach / LEVELS)
        self._mechanism = SignedNoisyMax.of_cost(self._cost, sensitivity=change, unit=clip / UNITS)

    def choose(self, point: ExactPoint) -> Vertex:
        """Release the candidate and the sign of the next step."""
        allowed = self._entrants.allowed
        scores = point.signed_scores(self.clip, allowed, self._reach)
        place, sign = self._accountant.release(self._mechanism, scores, purpose=self._purpose)
        candidate = int(allowed[place])
        self._entrants.enter(candidate)
        return Vertex(candidate, -sign)  # a step against the gradient


def rescaled(task: Task, point: ExactPoint, deviation: float, cost: ZCDP) -> float:
    """Release the residuals' deviation, from the median of |r|; it is only ever lowered."""
    top = math.sqrt(2) * deviation / rules.GAUSSIAN
    return min(release_residual_deviation(task.purse, point, top=top, cost=cost), deviation)


def release_residual_deviation(purse: Purse, point: ExactPoint, *, top: float, cost: ZCDP) -> float:
    """Release the residuals' deviation, from the median of |r| up to `top`."""
    counts = point.residual_counts(top)
    sizes = np.arange(LEVELS + 1) * (top / LEVELS)

    def in_cells(edges: Array) -> Integers:
        below = np.concatenate(([0], np.cumsum(counts)))
        return np.diff(below[np.searchsorted(sizes, edges)])

    return release_deviation(purse, in_cells, top=top, cost=cost, purpose="the residuals' scale")


def intercept_move(task: Task, point: ExactPoint, clip: float, cost: ZCDP) -> float:
    """Release how far to move the intercept: −Σψ_c(r)/n, which one row moves by c/n (Lemma 1)."""
    noisy, noise = task.purse.release_sum(
        point.residual_total(clip), most=LEVELS, bound=clip, cost=cost, purpose="the intercept"
    )
    return rules.clamp(-rules.shrunk(noisy, noise) / task.regime.n_rows, -clip, clip)
