"""A regression table for outcomes, as a study: `python -m benchmarks logit`.

What PrivateOLS does, with the logistic loss: its frame of combinations that vary alike, Newton
steps from the released share, the Gram matrix of curved rows (docs/yes-no.md, Lemma 32) before the
last two, and the middle of the sandwich. Nothing is clipped but long rows: residuals lie in
[−1, 1]. There is no model of this yet; what is printed is how often its intervals hold the truth.

`DPSCREEN_TRIALS` sets the repetitions (100).
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import t as student

from benchmarks.timing import report
from dpscreen.privacy import ZCDP, Budget, SeededNoise
from dpscreen.privacy.accountant import release_gram, release_sums
from dpscreen.privacy.budget import Unit
from dpscreen.rows.lattice import UNITS
from dpscreen.rows.loss import LOGISTIC
from dpscreen.rows.mixed import capped_middle, capped_products
from dpscreen.rows.source import ArrayRows, PublicUnits
from dpscreen.solvers import least_squares, ols_rules
from dpscreen.solvers.base import Choices, Spending, Task
from dpscreen.solvers.least_squares import NewtonWalk, Releases, WideTask, users_units
from dpscreen.solvers.logistic import LOG_ODDS, OUTCOME_BOUNDS, release_share
from dpscreen.solvers.placing import Places, release_places
from dpscreen.solvers.regression import (
    Inverse,
    Middle,
    NewtonStep,
    pooled,
    told_apart,
    uncertainty,
)

N_ROWS, EPSILONS = 20_000, (1.0, 5.0)
CURVED_SHARE = Fraction(1, 5)
"""What the Gram matrix of curved rows costs, as a share of what is left once rows are placed."""

KINDS = ("plain", "correlated", "rare", "strong", "skewed")
BOUNDS = np.array([(-10, 10), (0, 120), (-20, 40), (-10, 10), (0, 1), (0, 1)], dtype=np.float64)


@dataclass(frozen=True)
class LogitTable:
    """Coefficients, the constant last, their intervals, and how wide against those of sampling."""

    coefficients: Any
    low: Any
    high: Any
    wider: Any


def placed(X: Any, y: Any, epsilon: float, seed: str) -> tuple[WideTask, Any]:
    """Return rows on the lattice, clipped far out only, and the released share."""
    rows, choices = ArrayRows(X, y), Choices()
    spending = Spending.of(
        Budget(epsilon, 1e-6), Unit(), SeededNoise(seed), n_rows=None, n_features=X.shape[1]
    ).counted(len(X))
    share = release_share(spending, rows)
    places = release_places(spending, rows, BOUNDS, choices) or Places.unplaced(BOUNDS)
    clips = least_squares._far_out(places)
    reach = np.maximum(clips[:, 1] - places.centres, places.centres - clips[:, 0])
    units = PublicUnits(
        clips,
        OUTCOME_BOUNDS,
        constant=True,
        loss=LOGISTIC,
        features_at=np.stack((places.centres, reach), axis=1),
        target_at=0.0,
        nearest=True,
    )
    task = Task(spending, rows.lattice(units), LOG_ODDS, 1.0, choices)
    return WideTask(task, units, places.scales), share


def fitted(X: Any, y: Any, epsilon: float, seed: str) -> LogitTable:
    """Release a table of all coefficients."""
    wide, share = placed(X, y, epsilon, seed)
    spending, budget = wide.task.spending, wide.task.spending.remaining
    columns = np.arange(wide.task.design.n_features)
    size = ols_rules.TableSize(wide.task.regime.n_rows, len(columns), float(budget))
    releases = Releases(wide, columns, size, budget)
    frame = releases.release_frame()
    flat = told_apart(frame, len(columns) - 1, size.n_rows, releases._cells_in_scales())
    walk = NewtonWalk(releases, frame, flat, wide.task.design.start(LOG_ODDS / 2**20))
    start = np.append(np.zeros(len(columns) - 1), share.log_odds)
    theta, norm = np.linalg.solve(frame.matrix.T, start), frame.row_norm
    walk.move_to(theta)
    curved_cost, middle_cost = budget * CURVED_SHARE, releases.share(ols_rules.MIDDLE_SHARE)
    left = ZCDP(spending.remaining.rho - curved_cost.rho - middle_cost.rho)
    inverse, curved_noise = Inverse(flat.matrix / share.variance, flat.left_out), 0.0
    steps = list[NewtonStep]()
    for part in ols_rules.NEWTON_PARTS:
        if len(steps) == len(ols_rules.NEWTON_PARTS) - 2:
            gram, noise = release_gram(
                spending.accountant,
                walk.point.curved_gram(frame.rows),
                units_per_one=UNITS,
                cost=curved_cost,
                purpose="curved rows squared",
            )
            inverse = Inverse(np.linalg.inv(norm**2 / 4 * gram), flat.left_out)
            curved_noise = norm**2 / 4 * noise
        sums, noise = release_sums(
            spending.accountant,
            walk.point.row_total(capped_products, 1.0, frame.rows, 1.0),
            units_per_one=UNITS,
            change=1.0,
            cost=left * part,
            purpose="residuals times features",
        )
        steps.append(NewtonStep(theta, -norm * sums, norm * noise, 0.0))
        theta = theta + inverse.matrix @ steps[-1].moment
        walk.move_to(theta)
    estimate = pooled(steps[-2:], inverse, curved_noise)
    walk.move_to(estimate.theta)
    matrix, noise = release_gram(
        spending.accountant,
        walk.point.row_total(capped_middle, 1.0, frame.rows, 1.0),
        units_per_one=UNITS,
        cost=middle_cost,
        purpose="the same squared",
    )
    middle = Middle(norm**2 * matrix, norm**2 * noise)
    to_users = users_units(wide.units) @ frame.matrix.T
    known = uncertainty(estimate, inverse, middle, curved_noise, to_users)
    found = np.append(*wide.units.in_users_units(walk.point.weights))
    errors = np.sqrt(np.diag(known.covariance))
    half = student.ppf(0.975, known.freedom) * errors
    plain = np.sqrt(np.diag(to_users @ inverse.matrix @ to_users.T))
    return LogitTable(found, found - half, found + half, errors / plain)


def simulated(kind: str, seed: int) -> tuple[Any, Any, Any]:
    """Return rows with four numbers and a category of three levels, outcomes, and the truth."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(N_ROWS, 4)) * [1, 10, 3, 1] + [0, 50, 1, 0]
    level = rng.choice(3, size=N_ROWS, p=[0.6, 0.3, 0.1])
    X = np.column_stack((numbers, level == 1, level == 2)).astype(np.float64)
    if kind == "correlated":
        X[:, 3] = 0.7 * X[:, 0] + 0.7 * X[:, 3]
    if kind == "skewed":
        X[:, 2] = np.exp(rng.normal(size=N_ROWS))
    truth = np.array([0.5, 0.03, -0.2, 0, 0.6, -0.8, -4.8 if kind == "rare" else -1.8])
    if kind == "strong":
        truth = np.append(3 * truth[:-1], -5.0)
    y = rng.random(N_ROWS) < expit(X @ truth[:-1] + truth[-1])
    return X, y.astype(np.float64), truth


def main() -> None:
    """Print coverage of the features' intervals, and their widths over those of sampling."""
    warnings.simplefilter("ignore")
    for kind in KINDS:
        for epsilon in EPSILONS:
            held, wider = [], []
            for seed in range(int(os.environ.get("DPSCREEN_TRIALS", "100"))):
                X, y, truth = simulated(kind, seed)
                table = fitted(X, y, epsilon, f"logit {seed}")
                held.append(((table.low <= truth) & (truth <= table.high))[:-1])
                wider.append(table.wider[:-1])
            title = f"logit, {kind}, epsilon {epsilon:g}"
            report(f"{title}: coverage", float(np.mean(held)), at_least=0.93)
            print(
                f"  ({np.median(wider):.2f} times as wide as those of sampling alone)", flush=True
            )


if __name__ == "__main__":
    main()
