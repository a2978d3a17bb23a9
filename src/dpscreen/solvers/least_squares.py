"""Least squares with all features, for PrivateOLS: sums with noise in a frame that suits them.

Noise is alike in all directions, and columns are not: so their Gram matrix is released a few times,
each time of combinations that the one before showed to vary alike. In the last frame Newton steps
follow, on influences ‖u‖·|r| that are clipped where a released histogram says, and the middle of
the sandwich (docs/inference.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpscreen._core.arrays import Array, Integers
from dpscreen.privacy import ZCDP, Accountant
from dpscreen.privacy.accountant import release_gram, release_histograms, release_sums
from dpscreen.rows.lattice import UNITS, ExactPoint
from dpscreen.rows.mixed import (
    MixedRows,
    capped_middle,
    capped_products,
    length_counts,
    long_count,
    size_counts,
)
from dpscreen.rows.source import PublicUnits
from dpscreen.solvers import ols_rules
from dpscreen.solvers.influences import (
    InfluenceClip,
    LongestRows,
    OneSided,
    Sizes,
    influence_clip,
)
from dpscreen.solvers.placing import is_yes_no
from dpscreen.solvers.regression import (
    EvenFrame,
    Inverse,
    LeftOut,
    Middle,
    NewtonStep,
    Pooled,
    SolutionBelief,
    Uncertainty,
    Walked,
    pooled,
    private_errors,
    told_apart,
    uncertainty,
)
from dpscreen.solvers.rules import clamp
from dpscreen.solvers.wide import WideTask

MOST_GRAINS = 2.0**36
GRAINS_PER_DEVIATION = 2.0**20
N_CELLS = 28
"""How many half octaves of influences are told apart."""

BEYOND = 8.0
"""How far beyond the clip of a step the histogram before the next one reaches."""

FAR, WIDER = 6, 3
"""How many half octaves that is, and how many of them make one cell."""

SHORT_ROWS = 0.5
"""Rows of this part of the mean length and less have their residuals clipped alike."""


@dataclass(frozen=True, eq=False)
class TableRelease:
    """Released weights, one for each column of the lattice, and how well they are known.

    `uncertainty` is of the columns' coefficients in the user's units, the constant last if there is
    one. The deviations are of residuals, and of the target from its centre.
    """

    weights: Array
    uncertainty: Uncertainty
    left_out: tuple[LeftOut, ...]
    deviation: float
    target_deviation: float
    long_rows: float


def regress(wide: WideTask, columns: Integers | None = None) -> TableRelease:
    """Release a regression on some columns, or all features, for what is left."""
    return Releases(wide, *columns_for(wide, columns)).regression()


def columns_for(
    wide: WideTask, columns: Integers | None
) -> tuple[Integers, ols_rules.TableSize, ZCDP]:
    """Return the columns of a table, its size, and what is left for it.

    They are those that are given, the constant last if it is one, and what is left out is told by
    its place among them; or all.
    """
    task, budget = wide.task, wide.task.spending.remaining
    chosen = np.arange(task.design.n_features) if columns is None else columns
    return chosen, ols_rules.TableSize(task.regime.n_rows, len(chosen), float(budget)), budget


@dataclass(frozen=True, eq=False)
class Releases:
    """What one regression releases: frame, steps and middle, out of its budget."""

    wide: WideTask
    columns: Integers
    size: ols_rules.TableSize
    budget: ZCDP

    def regression(self) -> TableRelease:
        """Release all, and put it together."""
        frame = self.release_frame()
        inverse = told_apart(frame, self.n_features, self._cells_in_scales())
        point = self.wide.task.design.start(self._grain)
        walk = NewtonWalk(self, frame, inverse, point)
        longer = replace(walk, frame=frame.reaching(ols_rules.REACH))
        taken = walk.steps(longer)
        inverse, estimate, one_sided = self._answer(longer.frame, inverse, *taken)
        clip, weights = taken[2], frame.matrix.T @ inverse.matrix
        walk.move_to(estimate.theta, one_sided.lost(weights, estimate.variance))
        middle = longer.release_middle(clip.tight)
        residual = clip.tight / frame.longest
        walked = Walked(longer.frame, inverse, estimate, middle, one_sided, residual)
        return TableRelease(
            point.weights,
            self._known(walked, clip.deviation),
            inverse.left_out,
            *self._deviations(walked, clip.deviation),
            walk.release_long(),
        )

    def _answer(
        self,
        frame: EvenFrame,
        inverse: Inverse,
        steps: list[NewtonStep],
        pull: NewtonStep,
        clip: InfluenceClip,
        sizes: Sizes,
    ) -> tuple[Inverse, Pooled, OneSided]:
        """Return what steps answer, and what clips cut off, without features that noise drowns."""
        damping = inverse.damping(self.size.n_rows, frame)
        estimate = pooled(steps[-2:], inverse, frame, (sizes, clip.part), damping)
        moment = frame.gram @ inverse.matrix @ pull.sum_at(estimate.theta, frame.gram)
        one_sided = OneSided(moment, pull.noise, sizes.cut_off(pull.clip), estimate.cut_off)
        per_scale, n_features = self._cells_in_scales(), self.n_features
        errors = private_errors(estimate, frame, inverse, per_scale, one_sided)[:n_features]
        deviation = max(self.wide.task.deviation, clip.deviation)
        if errors.max(initial=0.0) <= deviation / 2:
            return inverse, estimate, one_sided
        fewer = inverse.without(int(np.argmax(errors)), frame)
        return self._answer(frame, fewer, steps, pull, clip, sizes)

    def share(self, share: float) -> ZCDP:
        """Return a share of the regression's budget."""
        return self.budget * Fraction(share)

    @property
    def step_costs(self) -> list[ZCDP]:
        """Return what each step may cost, once the frame is there."""
        after = (ols_rules.MIDDLE_SHARE, ols_rules.LONG_SHARE, ols_rules.ONE_SIDED_SHARE)
        later = sum(map(Fraction, after)) + sum(map(Fraction, self.size.size_shares))
        left = ZCDP(self.wide.task.spending.remaining.rho - (self.budget * later).rho)
        return [left * part for part in ols_rules.NEWTON_PARTS]

    @property
    def n_features(self) -> int:
        """Return how many of the columns are features: the constant is the last, if any."""
        return int(np.count_nonzero(self.columns < self.wide.task.n_features))

    def _deviations(self, walked: Walked, residuals: float) -> tuple[float, float]:
        """Return those of residuals and target: what the line explains, and what it leaves."""
        theta = walked.estimate.theta
        explained = max(float(theta @ walked.frame.gram @ theta), 0.0) / self.size.n_rows
        return residuals, math.hypot(residuals, math.sqrt(explained))

    @property
    def _grain(self) -> float:
        return self.wide.task.deviation / GRAINS_PER_DEVIATION

    def release_frame(self, most: float = math.inf, room: float = ols_rules.LAST_ROOM) -> EvenFrame:
        """Release Gram matrices, each of what the one before showed to vary alike.

        There are fewer where all directions stand out already. Directions that few rows tell vary
        less, so that these rows are no longer than others (docs/inference.md, Lemmas 26 and 36).
        No row counts as longer than `most`; in the last one there is `room` for longer ones than
        are seen: few rows may be all that tells a direction, and noise hides them.
        """
        rules, even = self.size, np.diag(self._cells_in_scales())
        spread = np.append(self.wide.left, 1.0)[self.columns]
        levels = np.append(is_yes_no(self.wide.units.feature_bounds), False)[self.columns]
        even *= spread[:, None]
        for _ in range(ols_rules.LOOKS):
            look = self._look(even, rules.look_share, self._room(even, spread, most), "a look")
            spread = look.seen_spread(rules.n_rows, spread, levels)
            even = look.evened(rules.n_rows, spread)
            if look.resolved(rules.n_rows, spread):
                break
        longest = min(self._longest(even), most)
        blur = ols_rules.GRAM_BLUR * float(spread.min()) ** 2
        norm = min(room * longest, rules.row_norm(rules.gram_share, blur))
        frame = self._look(even, rules.gram_share, norm, "the whole")
        longest = min(longest, frame.row_norm, self.size.longest)
        return replace(frame, spread=spread, longest=longest)

    def _room(self, even: Array, spread: Array, longest: float) -> float:
        """Return how long rows may be in a look: as long as they are, if the blur allows it."""
        blur = ols_rules.LOOK_BLUR * float(spread.min()) ** 2
        most = self.size.row_norm(self.size.look_share, blur)
        return min(ols_rules.ROOM * min(self._longest(even), longest), most)

    def _longest(self, even: Array) -> float:
        """Release about how long the longest rows are: a row is in one cell.

        Rows need no more room than that, which would only add noise, however many rows there are
        (docs/private-lasso.md, Lemma 22).
        """
        most = ols_rules.FARTHEST * math.sqrt(len(even))
        rows = MixedRows.near(self.columns, even / most)
        point = self.wide.task.design.start(self._grain)
        counts = point.row_total(length_counts, self.wide.task.deviation, rows, N_CELLS)
        noisy, noise = release_histograms(
            self.wide.task.spending.accountant,
            counts[None, :],
            cost=self.share(ols_rules.LENGTH_SHARE),
            purpose="lengths of rows",
        )
        edges = most * 2.0 ** (np.arange(-N_CELLS, 1) / 2)
        seen = Sizes(edges, noisy[0], noise, self.size.n_rows).last_edge
        return max(seen, math.sqrt(len(even) * ols_rules.SHORTEST) / ols_rules.ROOM)

    def _cells_in_scales(self) -> Array:
        """Return how many scales of its column a whole cell is; of a constant, one."""
        per_cell = self.wide.units.feature_half_widths / self.wide.scales
        return np.append(per_cell, 1.0)[self.columns]

    def _look(self, even: Array, share: float, norm: float, what: str) -> EvenFrame:
        norm = max(norm, math.sqrt(ols_rules.SHORTEST * len(even)))
        rows = MixedRows.near(self.columns, even / norm)
        gram, noise = release_gram(
            self.wide.task.spending.accountant,
            self.wide.task.design.short_gram(rows),
            units_per_one=UNITS,
            cost=self.share(share),
            purpose=f"features squared: {what}",
        )
        return EvenFrame(rows, norm, norm**2 * gram, norm**2 * noise, np.ones(len(even)), norm)

    def _known(self, walked: Walked, deviation: float) -> Uncertainty:
        """Return what is known of all coefficients in the user's units."""
        users = self.users(walked.frame)
        squares = np.maximum(((users @ walked.inverse.matrix) * users).sum(axis=1), 0.0)
        return replace(uncertainty(walked, users), plain=deviation * np.sqrt(squares))

    def users(self, frame: EvenFrame) -> Array:
        """Return the matrix from a frame's parameters to coefficients, in the user's units."""
        return np.asarray(users_units(self.wide.units, self.columns) @ frame.matrix.T)


def users_units(units: PublicUnits, columns: Integers) -> Array:
    """Return the matrix from weights of columns, the constant last, to the user's units."""
    features, matrix = columns[columns < len(units.feature_bounds)], np.eye(len(columns))
    widths, d = units.feature_half_widths[features], len(features)
    matrix[np.arange(d), np.arange(d)] = 1 / widths
    matrix[d:, :d] = -units.feature_centres[features] / widths
    return matrix


@dataclass(frozen=True, eq=False)
class NewtonWalk:
    """A point on its way to the least squares, and what is asked of the rows there."""

    releases: Releases
    frame: EvenFrame
    inverse: Inverse
    point: ExactPoint

    def steps(
        self, longer: NewtonWalk
    ) -> tuple[list[NewtonStep], NewtonStep, InfluenceClip, Sizes]:
        """Take all steps; before each, a histogram tells where influences are clipped.

        The last one is that of a walk of `longer` rows. Before it the sum with a lower clip is
        released: where it pulls one way along a feature, all that is cut off is taken to. It is
        returned, and the last clip and histogram.
        """
        size, task = self.releases.size, self.releases.wide.task
        reach = self.releases.wide.units.target_bound
        residual = min(reach, ols_rules.LONGEST_RESIDUAL * task.deviation)
        top, theta = residual * self.frame.row_norm, np.zeros(size.n_columns)
        costs, taken = self.releases.step_costs, list[NewtonStep]()
        believed = SolutionBelief.before(self.inverse, size.n_rows * task.deviation**2)
        plan = (ols_rules.RESIDUALS_KEPT, size.size_shares)
        for kept, share, cost in zip(*plan, costs, strict=True):
            last = len(taken) == len(costs) - 1
            walk = longer if last else self
            far = FAR if taken else 0
            sizes = walk.release_sizes(top, residual, self.releases.share(share), far)
            # Beside a heap all that a clip cuts off lies on one side.
            clip = self._clip(sizes, kept, cost, 1.0 if task.heaped else ols_rules.ONE_SIDED)
            if last:
                pull = walk.release_pull(clip.lower, theta)
                if self._pulls(pull, taken[-1].noise, clip.deviation):
                    clip = self._clip(sizes, kept, cost, 1.0)
            used = clip.clip if len(taken) >= len(costs) - 2 else clip.tight
            moment, noise = walk.release_moment(used, cost)
            taken.append(NewtonStep(theta, moment, noise, used))
            theta = believed.after(theta + self.inverse.matrix @ moment, noise)
            self.move_to(theta)
            top = BEYOND * clip.tight
            residual = self._residual_clip(top)
        return taken, pull, clip, sizes

    def _clip(self, sizes: Sizes, kept: float, cost: ZCDP, part: float) -> InfluenceClip:
        task, longest = self.releases.wide.task, LongestRows(self.frame.longest, kept)
        place = (self.frame.mean_length, float(cost), longest, task.deviation)
        return influence_clip(sizes, *place, heaped=task.heaped, part=part)

    def _pulls(self, pull: NewtonStep, noise: float, deviation: float) -> bool:
        """Whether influences pull one way along a feature: the constant's way biases no slope.

        In the sum are also the noise of the step before it, and sampling's.
        """
        features = self.releases.users(self.frame)[: self.releases.n_features]
        directions = features @ self.inverse.matrix
        directions = directions[directions.any(axis=1)]
        sampling = self.releases.size.n_rows * deviation**2 * self.frame.spread**2
        return pull.pulls(directions, directions**2 @ (pull.noise**2 + noise**2 + sampling))

    def _residual_clip(self, influence: float) -> float:
        """Return where residuals are clipped whatever their row, so that short rows stay whole."""
        return influence / (SHORT_ROWS * self.frame.mean_length)

    def _cap(self, influence: float, residual: float) -> float:
        return influence / (residual * self.frame.row_norm)

    def release_sizes(self, top: float, residual: float, cost: ZCDP, far: int) -> Sizes:
        """Release how many influences are of which size: a row is in one cell.

        Of so many half octaves that are `far` out, where rows are few, some make one cell
        (docs/private-lasso.md, Lemma 22).
        """
        counts = self.point.row_total(
            size_counts, residual, self.frame.rows, self._cap(top, residual), N_CELLS
        )
        edges = top * 2.0 ** (np.arange(-N_CELLS, 1) / 2)
        first = np.array([*range(N_CELLS + 1 - far), *range(N_CELLS + 1 - far, N_CELLS + 2, WIDER)])
        noisy, noise = release_histograms(
            self._accountant,
            np.add.reduceat(counts, first)[None, :],
            cost=cost,
            purpose="sizes of influences",
        )
        return Sizes(edges[first[1:] - 1], noisy[0], noise, self.releases.size.n_rows)

    def release_moment(
        self, influence: float, cost: ZCDP, what: str = "in units of the clips"
    ) -> tuple[Array, float]:
        """Release −Σψu, which one row moves by at most the clip of its influence.

        (docs/inference.md, Lemma 25)
        """
        residual = self._residual_clip(influence)
        cap = self._cap(influence, residual)
        sums = self.point.row_total(capped_products, residual, self.frame.rows, cap)
        noisy, noise = release_sums(
            self._accountant,
            sums,
            units_per_one=UNITS,
            change=cap,
            cost=cost,
            purpose=f"residuals times features, {what}",
        )
        size = residual * self.frame.row_norm
        return -size * noisy, size * noise

    def release_pull(self, lower: float, theta: Array) -> NewtonStep:
        """Release Σψu with a lower clip, which tells whether influences pull one way.

        (docs/inference.md, Lemmas 25 and 38)
        """
        cost = self.releases.share(ols_rules.ONE_SIDED_SHARE)
        return NewtonStep(theta, *self.release_moment(lower, cost, "with a lower clip"), lower)

    def release_middle(self, influence: float) -> Middle:
        """Release ΣΨΨᵀ of influences Ψ = ψu (docs/inference.md, Lemmas 25 and 26)."""
        residual = self._residual_clip(influence)
        cap = self._cap(influence, residual)
        matrix, noise = release_gram(
            self._accountant,
            self.point.row_total(capped_middle, residual, self.frame.rows, cap),
            units_per_one=UNITS,
            cost=self.releases.share(ols_rules.MIDDLE_SHARE),
            purpose="the same squared",
        )
        return Middle(influence**2 * matrix, influence**2 * noise)

    def release_long(self) -> float:
        """Release how many rows were shortened and lie far out; none, if noise explains it.

        (docs/private-lasso.md, Lemma 13)
        """
        residual = self.releases.wide.task.deviation
        times = ols_rules.FAR_OUT * self.frame.mean_length / self.frame.row_norm
        count = self.point.row_total(long_count, residual, self.frame.rows.smaller(times))
        noisy, noise = self.releases.wide.task.spending.release_sum(
            int(count[0]),
            most=1,
            bound=1.0,
            cost=self.releases.share(ols_rules.LONG_SHARE),
            purpose="the number of rows that were shortened",
        )
        return noisy if noisy > 2 * noise else 0.0

    def move_to(self, theta: Array, put_back: float | Array = 0.0) -> None:
        """Move the point's weights there, and by what is put back, by whole numbers of grains."""
        weights, columns = self.frame.matrix.T @ theta + put_back, self.releases.columns
        moves = (weights - self.point.weights[columns]) / self.point.scale
        for column, move in zip(columns.tolist(), moves.tolist(), strict=True):
            self.point.add(column, round(clamp(move, -MOST_GRAINS, MOST_GRAINS)))

    @property
    def _accountant(self) -> Accountant:
        return self.releases.wide.task.spending.accountant
