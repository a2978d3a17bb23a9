"""What `interest` gains, and whether its intervals cover: `python -m benchmarks.interest`.

Simulated trials and observational designs with outcomes from a known model. For each design and
epsilon: of the coefficients of interest, the power of a test at 5 % and the coverage of the 95 %
interval, with the budget on all coefficients ("all"), on those of interest ("interest") and, in the
trial, of the treatment alone ("alone"); "plain" is without privacy, with robust standard errors.
`DPSCREEN_TRIALS` sets the repetitions (200); arguments name designs, all by default.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.coverage import Design, linear, normal, usual
from dpscreen import PrivateLogit, PrivateOLS
from dpscreen.models.refusal import TableRefused

EPSILONS = (0.5, 1.0, 3.0)


@dataclass(frozen=True)
class Studied:
    """A design, and the features whose coefficients are of interest, with their true values."""

    design: Design
    truth: tuple[float, ...]
    interest: tuple[int, ...] = (0,)
    alone: bool = False


def trial_rows(rng: Any, n: int) -> Any:
    """Return a randomised treatment and nine covariates of a trial of blood pressure."""
    return np.column_stack(
        (
            rng.random(n) < 0.5,
            np.clip(rng.normal(55, 12, n), 18, 100),
            np.clip(rng.normal(28, 5, n), 10, 70),
            rng.random(n) < 0.5,
            rng.random(n) < 0.2,
            rng.random(n) < 0.12,
            np.minimum(rng.exponential(8, n), 60),
            np.minimum(rng.gamma(6, 1.5, n), 30),
            np.clip(rng.normal(72, 11, n), 40, 160),
            rng.random(n) < 0.3,
        )
    ).astype(np.float64)


TRIAL_BOUNDS = np.array(
    [(0, 1), (18, 100), (10, 70), (0, 1), (0, 1), (0, 1), (0, 60), (0, 30), (40, 160), (0, 1)],
    dtype=np.float64,
)
TRIAL_SLOPES = (1.0, 0.42, 0.77, -4.2, 2.8, 5.6, 0.14, 0.56, 0.11, -2.8)
WIDE = (-200.0, 200.0)


def confounded(share: float, d: int = 6) -> Callable[[Any, int], Any]:
    """Return a binary exposure, as likely as covariates say, and these."""

    def rows(rng: Any, n: int) -> Any:
        X = rng.normal(size=(n, d))
        X[:, 1] = np.exp(X[:, 1])
        score = X[:, 0] + 0.5 * np.log(X[:, 1]) - X[:, 2] + rng.logistic(size=n)
        exposed = score > np.quantile(score, 1 - share)
        return np.column_stack((exposed, X)).astype(np.float64)

    return rows


def dose(rng: Any, n: int) -> Any:
    """Return a skewed dose, of whose logarithm covariates explain 80 %, and these."""
    X = rng.normal(size=(n, 6))
    logarithm = 0.8 * X[:, 0] - 0.4 * X[:, 1] + 0.45 * rng.normal(size=n)
    return np.column_stack((np.exp(0.7 * logarithm), X))


def rare_confounder(rng: Any, n: int) -> Any:
    """Return a treatment that nearly all of the 2 % get who have a condition, and covariates."""
    condition = rng.random(n) < 0.02
    treated = rng.random(n) < np.where(condition, 0.9, 0.4)
    others = rng.normal(size=(n, 5))
    return np.column_stack((treated, condition, others)).astype(np.float64)


def arms(rng: Any, n: int) -> Any:
    """Return two of three arms, and covariates that shift who is in which."""
    X = rng.normal(size=(n, 6))
    arm = np.digitize(0.5 * X[:, 0] + rng.normal(size=n), (-0.4, 0.6))
    return np.column_stack((arm == 1, arm == 2, X)).astype(np.float64)


def studied() -> Iterator[Studied]:
    """Yield the designs, continuous outcomes first."""
    slopes = linear(*TRIAL_SLOPES, constant=100.0)

    def pressure(rng: Any, X: Any) -> Any:
        return 12.3 * rng.normal(size=len(X))

    trial = Design("trial", trial_rows, slopes, TRIAL_BOUNDS, pressure, (0, 300), 5000)
    yield Studied(trial, (1.0,), alone=True)
    six = [(-10.0, 10.0)] * 6
    mixed = np.array([(0, 1), (-10, 10), (0, 200), *six[2:]], dtype=np.float64)
    effects = (0.3, 1.0, 0.3, 0.5, 0.0, -0.5, 0.2)

    def uneven(rng: Any, X: Any) -> Any:
        return np.exp(X[:, 1] / 2 + 0.5 * X[:, 0]) * rng.normal(size=len(X))

    def skewed(rng: Any, X: Any) -> Any:
        return (0.5 + X[:, 0]) * (rng.lognormal(0, 1, len(X)) - np.exp(0.5))

    half, rare = confounded(0.5), confounded(0.02)
    of = linear(*effects)
    yield Studied(Design("exposure of 50 %", half, of, mixed, normal, WIDE, 5000), (0.3,))
    yield Studied(Design("exposure of 2 %", rare, of, mixed, normal, WIDE, 5000), (0.3,))
    yield Studied(Design("exposure of 2 %, more", rare, of, mixed, normal, WIDE, 20_000), (0.3,))
    yield Studied(Design("heteroscedastic", half, of, mixed, uneven, WIDE, 5000), (0.3,))
    yield Studied(Design("skewed errors", half, of, mixed, skewed, WIDE, 5000), (0.3,))
    doses = np.array([(0, 100), *six], dtype=np.float64)
    yield Studied(Design("dose", dose, of, doses, normal, WIDE, 5000), (0.3,))
    second = np.array([(0, 1), (0, 1), *six[:5]], dtype=np.float64)
    strong = linear(0.2, 3.0, 0.5, -0.5, 0.3, 0.0, 0.2)
    yield Studied(Design("rare confounder", rare_confounder, strong, second, normal, WIDE), (0.2,))
    few = Design("rare confounder, few", rare_confounder, strong, second, normal, WIDE, 5000)
    yield Studied(few, (0.2,))
    three = np.array([(0, 1), (0, 1), *six], dtype=np.float64)
    two = Design("three arms", arms, linear(0.2, 0.0, *effects[1:]), three, normal, WIDE, 5000)
    yield Studied(two, (0.2, 0.0), (0, 1))
    odds = linear(*effects, constant=-0.5)
    yield Studied(Design("binary outcome", half, odds, mixed, n_rows=10_000), (0.3,))
    yield Studied(Design("binary, exposure of 2 %", rare, odds, mixed, n_rows=20_000), (0.3,))
    sick = linear(0.3, 1.5, 0.5, -0.5, 0.3, 0.0, 0.2, constant=-2.0)
    yield Studied(Design("binary, confounder", rare_confounder, sick, second), (0.3,))


def fitted(one: Studied, epsilon: float, seed: int, how: str) -> tuple[Any, ...]:
    """Return estimates, half-widths and standard errors of the coefficients of interest."""
    rng, design = np.random.default_rng([seed, 77]), one.design
    X = design.rows(rng, design.n_rows)
    y = design.outcomes(rng, X)
    places = list(one.interest)
    if how == "plain":
        slopes, errors = usual(X, y, design.noise is None)
        return slopes[places], 1.96 * errors[places], errors[places]
    bounds = design.bounds
    if how == "alone":
        X, bounds = X[:, places], bounds[places]
    kind, settings = (PrivateLogit, {}) if design.noise is None else (PrivateOLS, {})
    if design.noise is not None:
        settings = {"target_bounds": design.target_bounds}
    if how == "interest":
        settings["interest"] = [f"x{j}" for j in places]
    if how == "required":
        settings["required"] = [f"x{j}" for j in range(X.shape[1])]
    model = kind(
        epsilon=epsilon,
        delta=1e-6,
        feature_bounds=bounds,
        quality=False,
        random_state=f"interest {seed}",
        **settings,
    )
    try:
        table = model.fit(X, y).table_
    except TableRefused:
        return (np.full(len(places), np.nan),) * 3
    places = places if how != "alone" else list(range(len(places)))
    half = np.where(table.given, table.half_widths(0.95), np.nan)[places]
    return table.coefficients[places], half, np.sqrt(np.diag(table.covariance))[places]


HEAD = (
    f"{'':26}{'eps':>4} {'':8} {'given':>6}{'power':>6}{'cover':>6}{'width':>6}{'bias':>7}{'s':>6}"
)


def line(one: Studied, epsilon: float, how: str, trials: int) -> str:
    """Return one line of the report: power and coverage are those of given intervals and all."""
    began = time.perf_counter()
    found = np.array([fitted(one, epsilon, seed, how) for seed in range(trials)])
    seconds = (time.perf_counter() - began) / trials
    estimates, half, _ = found.transpose(1, 0, 2)
    plain = np.array([fitted(one, epsilon, seed, "plain")[1] for seed in range(min(trials, 20))])
    given = ~np.isnan(half)
    off = estimates - np.array(one.truth)
    power = float((np.abs(estimates) > half).mean())
    covers = float((np.abs(off) <= half)[given].mean()) if given.any() else np.nan
    width = float(np.nanmedian(half) / np.median(plain)) if given.any() else np.nan
    bias = float(off[given].mean() / np.median(plain) * 1.96) if given.any() else np.nan
    numbers = f"{given.mean():6.2f}{power:6.2f}{covers:6.3f}{width:6.2f}{bias:7.2f}{seconds:6.2f}"
    return f"{one.design.name[:25]:26}{epsilon:4g} {how:8} {numbers}"


def main() -> None:
    """Measure designs and print them."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--epsilon", type=float, nargs="*", default=EPSILONS)
    parser.add_argument("--how", nargs="*", default=("all", "interest"))
    asked = parser.parse_args()
    trials = int(os.environ.get("DPSCREEN_TRIALS", "200"))
    print(HEAD, flush=True)
    for one in studied():
        if asked.names and not any(name in one.design.name for name in asked.names):
            continue
        for epsilon in asked.epsilon:
            ways = [*asked.how, *["alone"] * (one.alone and "all" in asked.how)]
            for how in ways:
                print(line(one, epsilon, how, trials), flush=True)
        print(line(one, np.inf, "plain", trials), flush=True)


if __name__ == "__main__":
    main()
