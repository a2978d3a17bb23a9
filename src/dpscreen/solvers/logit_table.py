"""A table of log-odds with all features, for PrivateLogit: the frame of least squares, curved.

Combinations of columns that vary alike are those of PrivateOLS, and so is what released sums tell
of coefficients (`least_squares`, `regression`). Nothing is clipped but long rows, as residuals lie
in [−1, 1]. A few cheap steps lead near the answer; there the curvature is released, which says what
can be told apart, and Newton steps follow (docs/yes-no.md, Lemma 49).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpscreen._core.arrays import Array, Integers, Mask
from dpscreen.privacy import ZCDP
from dpscreen.privacy.accountant import release_gram, release_sums
from dpscreen.rows.lattice import UNITS
from dpscreen.rows.loss import LOGISTIC
from dpscreen.rows.mixed import capped_products
from dpscreen.rows.source import RowSource
from dpscreen.solvers import ols_rules
from dpscreen.solvers.base import Choices, Spending
from dpscreen.solvers.belief import lifted
from dpscreen.solvers.influences import OneSided, Sizes
from dpscreen.solvers.least_squares import (
    NewtonWalk,
    Releases,
    TableRelease,
    columns_for,
    users_units,
)
from dpscreen.solvers.logistic import LOG_ODDS, OUTCOME_BOUNDS, OutcomeShare
from dpscreen.solvers.outcome_walk import (
    SEEN,
    Levels,
    Squares,
    WeightBelief,
    columns_of_levels,
    farther_end,
    mean_curvature,
    safe_part,
    unsure_spread,
)
from dpscreen.solvers.placing import Places, is_binary, release_places
from dpscreen.solvers.regression import (
    EvenFrame,
    Inverse,
    LeftOut,
    Middle,
    NewtonStep,
    Pooled,
    Uncertainty,
    Walked,
    pooled,
    told_apart,
)
from dpscreen.solvers.target import PlacedTarget
from dpscreen.solvers.wide import WideTask, widened

SEARCH_STEPS, SEARCH_PART = 16, Fraction(15, 100)
"""How many steps lead near the answer, and what they cost of what the frame leaves."""

CURVED_PART = Fraction(35, 100)
"""What the curvature there costs."""

CLEAR = 2.8
"""How many times what can be told apart it is meant to be where it is released."""

MOST_ERROR = 0.4
"""How far privacy noise may move log-odds, in the root mean square over rows, each as much as its
outcome is unsure: beyond, steps end too early, and intervals are too short."""

SETTLED = 3.5
"""How many deviations of their noise the last two answers may be apart."""

SIDES = 1.96
"""How many deviations of all noise sums may be off, for an effect to have an end."""

LEAST_EVENTS = 10.0
"""How many outcomes that are not sure a level must have."""

STALE = 0.5
"""How far log-odds may move once the curvature was released: it is off by up to e^m there."""

LAST_PARTS = tuple(Fraction(part, 10) for part in (2, 3, 5))
"""How the last steps divide the rest."""


def odds_rule(variance: float = LOGISTIC.curvature) -> ols_rules.TableRule:
    """Return which tables are possible if outcomes vary by so much, in the mean, at most.

    That is p(1 − p) of the released share of outcomes; before it is known, a quarter. The curvature
    has to be identifiable, and noise of the score must not move log-odds too far
    (docs/inference.md, Lemma 60).
    """
    before = ols_rules.LOOK_SHARES[1] + 2 * ols_rules.LENGTH_SHARE + ols_rules.GRAM_SHARES[1]
    left = ols_rules.PLACED * (1 - before - ols_rules.MIDDLE_SHARE - ols_rules.LONG_SHARE)
    smaller = variance / LOGISTIC.curvature
    last = left * float((1 - SEARCH_PART - CURVED_PART) * sum(LAST_PARTS[-2:]))
    return ols_rules.TableRule(
        left * float(CURVED_PART) * smaller**2,
        math.sqrt(ols_rules.SHORTEST / (2 * last)) / (variance * MOST_ERROR),
    )


@dataclass(frozen=True, eq=False)
class OddsRelease(TableRelease):
    """A table of log-odds; `drowned` tells that no interval of it would be honest.

    Nor is one if it is `endless`: numbers tell outcomes so well that rows leave open how well.

    `unsettled` are features that the last step still moved by more than noise explains, `held`
    those that stay where the search led, as their outcomes are too sure for a step to be told, and
    `untold` those that are left out for it.
    """

    drowned: bool = False
    endless: bool = False
    unsettled: tuple[int, ...] = ()
    held: tuple[int, ...] = ()
    untold: tuple[int, ...] = ()

    @property
    def beside(self) -> list[int]:
        """Return what is in the model, but without an interval."""
        return sorted({*self.unsettled, *self.held} - {one.feature for one in self.left_out})


def place_for_odds(
    spending: Spending, rows: RowSource, feature_bounds: Array, choices: Choices
) -> WideTask:
    """Release the marginals of the features, with wide clipping ranges."""
    found = release_places(spending, rows, feature_bounds, choices)
    places = Places.unplaced(feature_bounds) if found is None else found
    where = (places, PlacedTarget(0.0, LOG_ODDS), OUTCOME_BOUNDS)
    every = np.arange(len(feature_bounds))
    return widened(spending, rows, where, choices, every, LOGISTIC)


def log_odds_table(
    share: OutcomeShare, wide: WideTask, columns: Integers | None = None
) -> OddsRelease:
    """Release a table on some columns, or all features, for what is left (`columns_for`).

    The constant starts where a released share of outcomes says, of whatever rows.
    """
    return OddsReleases(wide, *columns_for(wide, columns), share).table()


def _flattened_frame(curved: EvenFrame, flatter: Array) -> EvenFrame:
    """Return a frame whose Gram matrix is flatter, and whose noise is as much smaller."""
    size = float(np.trace(flatter)) / len(flatter)
    return replace(curved, gram=flatter @ curved.gram @ flatter.T, noise=size**2 * curved.noise)


@dataclass(frozen=True, eq=False)
class OddsReleases(Releases):
    """What one table of log-odds releases, in the frame that least squares would have."""

    outcomes: OutcomeShare

    def table(self) -> OddsRelease:
        """Release all, and put it together."""
        walk, left = self._set_out()
        frame = walk.frame
        theta, belief = walk.search(self._start(frame), left * SEARCH_PART)
        walk.move_to(first := walk.clearer(theta, left * CURVED_PART))
        curved = walk.release_curvature(left * CURVED_PART)
        lucky = self._not_expected(replace(curved, gram=walk.expected(first)))
        rest = left * (1 - SEARCH_PART - CURVED_PART)
        inverse = told_apart(curved, self.n_features, self._cells_in_scales())
        flat = told_apart(frame, self.n_features, self._cells_in_scales())
        held = self._held(inverse, curved, flat)
        walk = replace(walk, inverse=inverse)
        kept = self._kept(frame, inverse, held)
        begun = self._without(inverse, curved, theta, kept)
        steps, flatter = walk.last_steps(begun, rest, first)
        inverse, curved = flattened(inverse, flatter), _flattened_frame(curved, flatter)
        walked, long = self._ended(walk, steps[-2:], inverse, curved)
        farther, drowned = walk.farther(walked), walk.drowns(walked)
        known = self._counting_curvature(self._known(walked, 1.0), walked, frame, long, farther)
        known = self._counting_held(known, walked, kept, belief)
        left_out, untold = _why_gone(walked.inverse, flat, held)
        return OddsRelease(
            walk.point.weights,
            replace(known, covariance=0 * known.covariance) if drowned else known,
            left_out,
            LOG_ODDS,
            1.0,
            walk.release_long(),
            drowned=drowned,
            unsettled=self._unsettled(walked, steps, frame, lucky),
            endless=math.isinf(farther),
            held=held,
            untold=untold,
        )

    def _set_out(self) -> tuple[OddsWalk, ZCDP]:
        """Release the frame; return a walk in it, and what it may cost."""
        # Noise of all sums grows with the room, as no influence is clipped.
        frame = self.release_frame(self.size.longest, ols_rules.ROOM)
        frame = replace(frame, gram=lifted(frame.gram, frame.noise))  # a step must lead somewhere
        later = self.share(ols_rules.MIDDLE_SHARE).rho + self.share(ols_rules.LONG_SHARE).rho
        unknown, task = Inverse(np.zeros_like(frame.gram), ()), self.wide.task
        walk = OddsWalk(self, frame, unknown, task.design.start(self._grain))
        return walk, ZCDP(task.spending.remaining.rho - later)

    def _ended(
        self, walk: OddsWalk, steps: Sequence[OddsStep], inverse: Inverse, curved: EvenFrame
    ) -> tuple[Walked, LongPull]:
        """Release the curvature where two steps end, solve with it, and go there.

        As the variance of an outcome is p(1 − p), it is the middle of the sandwich, too.
        """
        walk.move_to(answered(steps, inverse, curved)[0].theta)
        now = curved_anew(curved, walk.release_curvature(self.share(ols_rules.MIDDLE_SHARE)))
        inverse = solving_anew(inverse, now)
        estimate, long = answered(steps, inverse, now)
        walk.move_to(estimate.theta)
        nothing = OneSided(np.zeros(len(now.gram)), 0.0, 0.0, 0.0)
        middle = Middle(now.gram, now.noise)
        return Walked(now, inverse, estimate, middle, nothing, math.inf), long

    def _counting_curvature(
        self,
        known: Uncertainty,
        walked: Walked,
        frame: EvenFrame,
        long: LongPull,
        farther: float,
    ) -> Uncertainty:
        """Count that the curvature has noise, and that it is another one farther on.

        The error of a variance is that of the curvature where it is sampling's, and twice that
        where it is noise of sums. Where log-odds went by m from where the last sums were released,
        over all rows or with a feature, these may be off by the m-th part of the way. What long
        rows changed may be more, or less; and numbers that tell much end `farther` than a line says
        (docs/yes-no.md, Lemma 49).
        """
        inverse, way = walked.inverse.matrix, walked.estimate.way
        users = self.users(walked.frame)
        directions = users @ inverse
        squares = np.maximum((directions**2).sum(axis=1), 1e-300)
        moved, all_rows = np.abs(users @ way), float(way @ frame.gram @ way) / self.size.n_rows
        of_feature = self._one_step * moved
        left = np.maximum(math.sqrt(max(all_rows, 0.0)), of_feature) * moved
        left = np.hypot(left, long.doubt(users, squares))
        old = np.maximum(np.diag(known.covariance), 1e-300)
        sampling, _ = walked.middle.along(directions, walked.frame.spread)
        lengths = np.sqrt(((directions @ inverse) ** 2).sum(axis=1) / squares)
        off = walked.middle.noise * lengths * (2 - squares * sampling / old)
        numbers = np.append(~is_binary(self.wide.units.feature_bounds), False)[self.columns]
        wider = np.sqrt(1 + left**2 / old)
        wider[numbers] *= farther if math.isfinite(farther) else 1.0
        return replace(
            known,
            covariance=known.covariance * np.outer(wider, wider),
            freedom=np.maximum(2 / np.maximum(off, 1e-3) ** 2, ols_rules.LEAST_FREEDOM),
        )

    def _counting_held(
        self, known: Uncertainty, walked: Walked, kept: Array, belief: WeightBelief
    ) -> Uncertainty:
        """Count that what is held may be elsewhere: others take over what it lacks."""
        curvature = lifted(walked.frame.gram, walked.frame.noise)
        doubt = belief.doubt(curvature, self.size.n_rows)
        moves = kept - walked.inverse.matrix @ walked.frame.gram @ kept
        moved = self.users(walked.frame) @ moves
        taken_over = moved @ doubt @ moved.T
        return replace(known, covariance=known.covariance + (taken_over + taken_over.T) / 2)

    @property
    def _one_step(self) -> Array:
        """Return a step of each feature: from no to yes, or its deviation; of a constant, none."""
        steps = np.where(is_binary(self.wide.units.feature_bounds), 1.0, self.wide.scales)
        return np.append(steps, 0.0)[self.columns]

    @property
    def _binary(self) -> Mask:
        """Return which of the features are of 0 and 1."""
        return is_binary(self.wide.units.feature_bounds[self.columns[: self.n_features]])

    def _not_expected(self, curved: EvenFrame) -> list[int]:
        """Return the features that the curvature was not expected to tell apart.

        If it does, that is its noise, which makes effects too small (docs/yes-no.md, Lemma 49).
        """
        expected = told_apart(curved, self.n_features, self._cells_in_scales())
        return [one.feature for one in expected.left_out]

    def _unsettled(
        self, walked: Walked, steps: Sequence[NewtonStep], frame: EvenFrame, lucky: list[int]
    ) -> tuple[int, ...]:
        """Return the features of which two answers differ by more than their noise.

        Or of which log-odds moved far beyond it, by a deviation or from no to yes, since the last
        sums were taken: all of them, if that is so over all rows. Or levels of which nearly all
        rows have one outcome: their log-odds go on and on. Or those that were `lucky`.
        """
        users, estimate = self.users(walked.frame), walked.estimate
        noises = math.hypot(*(step.noise for step in steps[-2:])) * walked.inverse.matrix
        errors = np.sqrt(((users @ noises) ** 2).sum(axis=1))
        one = self._one_step
        clear = np.abs(users @ estimate.last) > SETTLED * errors
        clear |= one * (np.abs(users @ estimate.way) - errors) > STALE
        ways = np.column_stack((estimate.way, noises))
        squares = np.maximum(((frame.gram @ ways) * ways).sum(axis=0), 0.0) / self.size.n_rows
        clear |= math.sqrt(squares[0]) - math.sqrt(squares[1:].sum()) > STALE
        moved = one * np.abs(users @ (estimate.theta - steps[0].start))
        clear[: self.n_features] |= self._too_few_events(walked.frame, moved)
        clear[lucky] = True
        return tuple(np.flatnonzero(clear[: self.n_features]).tolist())

    def _too_few_events(self, curved: EvenFrame, moved: Array) -> Mask:
        """Return the levels of which Σp(1 − p), over their rows or all others, is hardly seen.

        So many outcomes a level has, about, that are not sure: with fewer than ten nobody's
        intervals hold. They were counted where the search had led, and each is e^|m| times less
        sure of a level whose log-odds moved by m since.
        """
        d, units = self.n_features, self.wide.units
        if len(self.columns) == d or not d:
            return np.zeros(d, dtype=bool)
        back = np.linalg.inv(curved.matrix)
        features = self.columns[:d]
        holding = units.feature_half_widths[features, None] * back[:d]
        holding += units.feature_centres[features, None] * back[d]
        events, noises = _events(curved, np.stack((holding, back[d] - holding)), back[d])
        few = (np.exp(-moved[:d]) * (events - 2 * noises) < LEAST_EVENTS).any(axis=0)
        return np.asarray(few & self._binary)

    def _start(self, frame: EvenFrame) -> Array:
        """Return where the constant is what the share says."""
        weights = np.where(self.columns < self.wide.task.n_features, 0.0, self.outcomes.log_odds)
        return np.asarray(np.linalg.solve(frame.matrix.T, weights))

    def _held(self, inverse: Inverse, curved: EvenFrame, flat: Inverse) -> tuple[int, ...]:
        """Return the levels that all rows tell apart, but not those whose outcome is unsure.

        Without them the model would be another one, as they may tell outcomes nearly for sure; and
        where exactly they are matters little to others, as none is like them. One that is like
        others where outcomes are unsure is held if hardly a row of it is. Numbers are where no
        feature is told from others: rows far out, which sums shorten, would say where else they
        belong. If not even the number of unsure outcomes is seen, the search saw nothing.
        """
        every = np.linalg.inv(curved.matrix)[-1]
        events, noise = _events(curved, every, every)
        if len(self.columns) > self.n_features and events <= SEEN * noise:
            return ()
        hidden = {one.feature for one in flat.left_out}
        sure = self._too_few_events(curved, np.zeros(self.n_features))
        alone = self._binary | (len(inverse.left_out) == self.n_features)
        gone = (one for one in inverse.left_out if one.feature not in hidden)
        stays = (
            one for one in gone if (alone[one.feature] and not one.partners) or sure[one.feature]
        )
        return tuple(one.feature for one in stays)

    def _kept(self, frame: EvenFrame, inverse: Inverse, held: tuple[int, ...]) -> Array:
        """Return what makes of the search's answer the part that is held.

        First those that are left out give to those that stay what they tell alike, as all rows see
        it: of columns that are one, any of them may have had the whole effect, or its opposite.
        """
        gone = {one.feature for one in inverse.left_out} - set(held)
        places = np.arange(len(frame.gram))
        ways = np.linalg.inv(frame.matrix.T)[:, stays := ~np.isin(places, list(gone))]
        there = np.isin(places, held)
        if held and not inverse.matrix.any():
            there |= places >= self.n_features
        given = np.linalg.solve(ways.T @ frame.gram @ ways, ways.T @ frame.gram)
        return np.asarray(ways @ (there[stays, None] * given))

    def _without(self, inverse: Inverse, curved: EvenFrame, theta: Array, kept: Array) -> Array:
        """Return what is next to these weights, as rows see it, without what is left out.

        What is held is where all rows see it.
        """
        if not inverse.matrix.any() and not kept.any():
            return self._start(curved)
        held = kept @ theta
        return np.asarray(held + inverse.matrix @ curved.gram @ (theta - held))


def stretch(gram: Array, way: Array, by: float) -> Array:
    """Return S, with which SHSᵀ is H, but b² times as curved along a way."""
    pulled = gram @ way
    square = float(way @ pulled)
    shadow = np.outer(pulled, way) / square if square else 0.0
    return np.asarray(np.eye(len(way)) + (by - 1) * shadow)


def flattened(inverse: Inverse, flatter: Array) -> Inverse:
    """Return what solves with SHSᵀ in place of H."""
    back = np.linalg.inv(flatter)
    return replace(inverse, matrix=back.T @ inverse.matrix @ back)


def curved_anew(before: EvenFrame, now: EvenFrame) -> EvenFrame:
    """Return the curvature where steps ended, drawn to what is known of it as far as noise goes.

    Two matrices that noise alone tells apart are pooled; beyond, the last counts (James, Stein).
    """
    noises, k = np.square([before.noise, now.noise]), len(now.gram)
    off, pool = now.gram - before.gram, float(noises[0] / noises.sum())
    chance = k * (k + 1) / 2 * float(noises.sum()) / max(float((off**2).sum()), 1e-300)
    part = pool + (1 - pool) * max(0.0, 1 - chance)
    noise = math.sqrt(float(np.square([1 - part, part]) @ noises))
    return replace(now, gram=before.gram + part * off, noise=noise)


def solving_anew(inverse: Inverse, frame: EvenFrame) -> Inverse:
    """Return what solves with another matrix, the same features being left out."""
    sizes, vectors = np.linalg.eigh(inverse.matrix)
    basis = vectors[:, sizes > 1e-9 * max(float(sizes[-1]), 1e-300)]
    values, turned = np.linalg.eigh(basis.T @ frame.gram @ basis)
    ways = basis @ turned
    return replace(inverse, matrix=ways / np.maximum(values, frame.noise) @ ways.T)


def answered(
    steps: Sequence[OddsStep], inverse: Inverse, frame: EvenFrame
) -> tuple[Pooled, LongPull]:
    """Return what two steps answer together, and what long rows have in it."""
    estimate = pooled(steps, inverse, frame, (NOTHING_CUT, 0.0), np.eye(len(frame.gram)))
    long = LongPull.told(steps, estimate, inverse)
    return long.added_to(estimate), long


def _why_gone(
    inverse: Inverse, flat: Inverse, held: tuple[int, ...]
) -> tuple[tuple[LeftOut, ...], tuple[int, ...]]:
    """Return what is left out and like which others, and what only the curvature hides."""
    hidden = {one.feature: one for one in flat.left_out}
    gone = [one for one in inverse.left_out if one.feature not in held]
    unlike = {one.feature for one in gone if not one.partners}
    left_out = (hidden.get(j, one) if (j := one.feature) in unlike else one for one in gone)
    return tuple(left_out), tuple(sorted(unlike - hidden.keys()))


def _events(curved: EvenFrame, rows: Array, constant: Array) -> tuple[Array, Array]:
    """Return Σp(1 − p) over rows of which a combination of columns is 1, else 0; and its noise."""
    noises = curved.noise * np.linalg.norm(rows, axis=-1) * np.linalg.norm(constant)
    return rows @ curved.gram @ constant, noises


@dataclass(frozen=True, eq=False)
class OddsStep(NewtonStep):
    """A step, and the noisy sum of what it leaves out of long rows."""

    rest: Array


@dataclass(frozen=True, eq=False)
class LongPull:
    """How far long rows move the answer, and noise in that, as a sum (docs/yes-no.md, Lemma 53)."""

    way: Array
    variance: float

    @classmethod
    def told(cls, steps: Sequence[OddsStep], estimate: Pooled, inverse: Inverse) -> LongPull:
        """Return what is believed of it: the less, the less sums stand out (James, Stein 1961)."""
        rest = (1 - estimate.part) * steps[0].rest + estimate.part * steps[1].rest
        noise = len(rest) * estimate.variance
        kept = max(0.0, 1 - noise / max(float(rest @ rest), 1e-300))
        return cls(kept * inverse.matrix @ rest, kept**2 * estimate.variance)

    def added_to(self, estimate: Pooled) -> Pooled:
        """Return the estimate in which long rows count."""
        theta, ways = estimate.theta + self.way, estimate.ways + self.way
        return replace(estimate, theta=theta, ways=ways, variance=estimate.variance + self.variance)

    def doubt(self, users: Array, squares: Array) -> Array:
        """Return how far off coefficients may be: none to twice of what is seen beyond noise."""
        seen = (users @ self.way) ** 2 - 2 * self.variance * squares
        return np.sqrt(np.maximum(seen, 0.0) / 3)


NOTHING_CUT = Sizes(np.ones(2), np.zeros(3), 1.0, 1)
"""Influences of which none is clipped."""


@dataclass(frozen=True, eq=False)
class OddsWalk(NewtonWalk):
    """A point on its way to the likeliest log-odds, and what is asked of the rows there."""

    def search(self, theta: Array, cost: ZCDP) -> tuple[Array, WeightBelief]:
        """Take cheap steps towards the answer, each to what all sums so far make believe."""
        n_rows = self.releases.size.n_rows
        belief = WeightBelief(self.frame.gram, np.zeros(0), self._levels)
        for _ in range(SEARCH_STEPS):
            self.move_to(theta + belief.weights)
            sums, _, noise = self.release_sums(cost / SEARCH_STEPS)
            belief.see(sums, noise)
            there = theta + belief.weights
            belief.move(self.expected(there), n_rows)
        self.move_to(theta + belief.weights)
        return np.asarray(theta + belief.weights), belief

    def expected(self, theta: Array) -> Array:
        """Return what Σp(1 − p)uuᵀ is about there, if the log-odds that numbers tell are normal."""
        now, along, levels = self.log_odds(theta), self.numbers(theta), self._levels
        flat = levels.curvature(Squares(self.frame.gram, 0.0), levels.unsure(theta, *now))[0]
        flatter = stretch(self.frame.gram, along, math.sqrt(self.flatness(along, theta, now)))
        return np.asarray(flatter @ flat @ flatter.T)

    def clearer(self, theta: Array, cost: ZCDP) -> Array:
        """Return where the curvature is meant to be seen: numbers may tell less than there.

        Where they decide outcomes hardly a row is unsure, and noise hides how the loss is curved.
        Nearer to the start it is seen, and how much flatter it is farther on is known about.
        """
        along, k = self.numbers(theta), len(theta)
        noise = LOGISTIC.curvature * self.frame.row_norm**2 / math.sqrt(2 * float(cost))
        least = CLEAR * max(ols_rules.TOLD_APART, math.sqrt(2 * k)) * noise * float(along @ along)
        back = (theta - (1 - part) * along for part in np.geomspace(1, 1 / 64, 25))
        seen = (at for at in back if along @ self.expected(at) @ along >= least)
        return next(seen, theta)

    def farther(self, walked: Walked) -> float:
        """Return how many times farther than a line says numbers may tell log-odds; inf: no end."""
        theta, n_rows = walked.estimate.theta, self.releases.size.n_rows
        along, curved = self.numbers(theta), walked.frame
        noises = float(along @ (curved.gram + walked.estimate.private(curved)) @ along)
        square = max(float(along @ self.frame.gram @ along), 0.0) / n_rows
        reach = SIDES * math.sqrt(max(noises, 0.0)) / n_rows
        return farther_end(self.log_odds(theta)[0], square, reach)

    def drowns(self, walked: Walked) -> bool:
        """Whether privacy noise moves log-odds too far, in the root mean square of unsure rows."""
        unsure = self.releases.size.n_rows * self.mean_curvature(walked.estimate.theta)
        trace = max(float(np.trace(walked.inverse.matrix)), 0.0)
        return math.sqrt(walked.estimate.variance * trace / unsure) > MOST_ERROR

    def mean_curvature(self, theta: Array) -> float:
        """Return the mean of p(1 − p) there, if log-odds are normal."""
        return mean_curvature(*self.log_odds(theta))

    def numbers(self, theta: Array) -> Array:
        """Return the part of the way that is of numbers, without what is left out."""
        releases = self.releases
        there = ~columns_of_levels(releases.wide.units)[releases.columns]
        there &= releases.columns < releases.wide.task.n_features
        there[[one.feature for one in self.inverse.left_out]] = False
        weights = np.where(there, self.frame.matrix.T @ theta, 0.0)
        return np.asarray(np.linalg.solve(self.frame.matrix.T, weights))

    def flatness(self, way: Array, theta: Array, log_odds: tuple[float, float]) -> float:
        """Return by which part less the loss is curved along a way of numbers, if they are normal.

        Levels are not: each has the mean of p(1 − p) of its own rows.
        """
        pulled, squares = self.frame.gram @ way, self.releases.size.n_rows * log_odds[1]
        sizes = float(way @ pulled) * squares
        alike = min(float(pulled @ self.numbers(theta)) ** 2 / sizes, 1.0) if sizes else 0.0
        return 1 - alike * (1 - unsure_spread(*log_odds))

    def log_odds(self, theta: Array) -> tuple[float, float]:
        """Return about the mean of log-odds there, and their variance."""
        constant = float(self.point.weights[self.releases.wide.task.n_features :].sum())
        square = float(theta @ self.frame.gram @ theta) / self.releases.size.n_rows
        return constant, max(square - constant**2, 0.0)

    @property
    def _levels(self) -> Levels:
        releases = self.releases
        to_users = users_units(releases.wide.units, releases.columns) @ self.frame.matrix.T
        binary = columns_of_levels(releases.wide.units)[releases.columns]
        return Levels.of(self.frame.gram, self.frame.noise, to_users, binary)

    def release_curvature(self, cost: ZCDP) -> EvenFrame:
        """Release Σp(1 − p)uuᵀ (docs/yes-no.md, Lemma 32)."""
        gram, noise = release_gram(
            self._accountant,
            self.point.curved_gram(self.frame.rows),
            units_per_one=UNITS,
            cost=cost,
            purpose="features squared, times the variance of outcomes",
        )
        size = LOGISTIC.curvature * self.frame.row_norm**2
        return replace(self.frame, gram=size * gram, noise=size * noise)

    def last_steps(self, theta: Array, cost: ZCDP, first: Array) -> tuple[list[OddsStep], Array]:
        """Take Newton steps with that curvature; none moves log-odds by more than Lemma 41 says.

        And return S: where the last one begins, the matrix is about SHSᵀ, not H as at first, where
        it was released.
        """
        taken, flatter, levels = list[OddsStep](), np.eye(len(theta)), self._levels
        before = self.log_odds(first)
        self.move_to(theta)
        for part in LAST_PARTS:
            moment, rest, noise = self.release_sums(cost * part)
            taken.append(OddsStep(theta, moment, noise, 0.0, rest))
            now, along = self.log_odds(theta), self.numbers(theta)
            less = self.flatness(along, theta, now) / self.flatness(along, first, before)
            flatter = math.sqrt(mean_curvature(*now) / mean_curvature(*before)) * stretch(
                self.frame.gram, along, math.sqrt(less)
            )
            way = flattened(self.inverse, flatter).matrix @ moment
            if len(taken) < len(LAST_PARTS):
                size = levels.largest_move(way, self.frame.gram, self.releases.size.n_rows)
                theta = theta + safe_part(size) * way
                self.move_to(theta)
        return taken, flatter

    def release_sums(self, cost: ZCDP) -> tuple[Array, Array, float]:
        """Release −Σru and its rest, which one row moves by ν in all (docs/yes-no.md, Lemma 53)."""
        parts = (self.frame.rows, replace(self.frame.rows, weighing="rest"))
        both = [self.point.row_total(capped_products, LOGISTIC.bound, part, 1.0) for part in parts]
        noisy, noise = release_sums(
            self._accountant,
            np.concatenate(both),
            units_per_one=UNITS,
            change=1.0,
            cost=cost,
            purpose="residuals times features, in units of the clips",
        )
        sums, rest = np.split(-self.frame.row_norm * noisy, 2)
        return sums, rest, self.frame.row_norm * noise
