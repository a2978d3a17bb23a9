"""FreeScreen against the same path without screening: `python -m benchmarks free-screen [n]`.

Rule and domain were found on other settings and written down before these were drawn
(docs/decisions/2026-11-free-screening.md). Every setting is drawn from `SEED`; n data sets each.
All fits of a data set share the noise of the releases that they have in common, so differences are
paired. A fit is inside the domain if the rule applied, which is read off the released path. F1 is
that of `selected_` (coefficients that are not zero, where there is no `selected_`) against the
features that generated the target; the error is the mean square on 2 000 new rows over their
variance. Means over settings count every setting once.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.private_lasso import REAL, real, simulated, stagewise_again
from benchmarks.timing import autoregressive, machine, repeats, side_by_side
from dpscreen import DPFrankWolfe, FreeScreen, PrivateLasso, RNMScreen
from dpscreen.models.private_lasso import SOLVERS
from dpscreen.paper.metrics import f1
from dpscreen.paper.problem import lasso_reference
from dpscreen.privacy import ZCDP, Budget
from dpscreen.solvers import rules

Array = NDArray[np.float64]
SEED = 20261118
DEVELOPMENT = 1
"""The seed of settings that the benchmark itself was tried on."""

N_SETTINGS = 40
N_PAPER_FITS = 10
N_TEST = 2000
MOST_CELLS = 12_000_000


@dataclass(frozen=True)
class Setting:
    """What a data set is drawn from; everything here is public."""

    n: int
    d: int
    k: int
    epsilon: float
    design: str
    coefs: str
    noise: str
    r2: float
    wide: float

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> Setting:
        """Draw a setting, not too large for a quick fit."""
        while True:
            n, d = int(10 ** rng.uniform(3, 4.7)), int(10 ** rng.uniform(1.5, 3.4))
            found = cls(
                n=n,
                d=d,
                k=int(min(10 ** rng.uniform(0.3, 1.8), d // 2)),
                epsilon=float(rng.choice([0.5, 1.0, 2.0, 5.0])),
                design=str(rng.choice(["normal", "ar", "factor", "bits", "skewed"])),
                coefs=str(rng.choice(["equal", "decay", "uniform", "normal"])),
                noise=str(rng.choice(["normal", "laplace", "t3"])),
                r2=float(rng.choice([0.2, 0.5, 0.9])),
                wide=float(rng.choice([1.0, 4.0])),
            )
            if (n + N_TEST) * d <= MOST_CELLS:
                return found

    def features(self, rng: np.random.Generator) -> Array:
        """Return rows of the design, in columns of standard deviation 1."""
        correlation = 0.7 if self.design == "ar" else 0.0
        Z = autoregressive(rng, self.n + N_TEST, self.d, correlation)
        if self.design == "factor":
            Z = 0.6 * rng.standard_normal((len(Z), 3)) @ rng.standard_normal((3, self.d)) + Z
        if self.design == "bits":
            Z = (rng.uniform(-1, 1.5, self.d) < Z).astype(np.float64)
        if self.design == "skewed":
            Z = np.exp(Z / 2)
        return np.asarray((Z - Z.mean(axis=0)) / Z.std(axis=0))

    def data(self, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """Return features, target in standard deviations, and coefficients."""
        X, coef = self.features(rng), np.zeros(self.d)
        sizes = {
            "equal": np.ones(self.k),
            "decay": 1 / np.sqrt(np.arange(1, self.k + 1)),
            "uniform": rng.uniform(0.2, 1, self.k),
            "normal": np.abs(rng.standard_normal(self.k)),
        }[self.coefs]
        coef[rng.choice(self.d, self.k, replace=False)] = sizes * rng.choice([-1, 1], self.k)
        signal = X @ coef
        draw = {
            "normal": rng.standard_normal,
            "laplace": lambda size: rng.laplace(size=size),
            "t3": lambda size: rng.standard_t(3, size),
        }[self.noise]
        errors = draw(len(X))
        y = signal + errors * signal.std() / errors.std() * np.sqrt(1 / self.r2 - 1)
        return X, y / y.std(), coef

    @property
    def public(self) -> dict[str, Any]:
        """Return budget and bounds."""
        return {
            "epsilon": self.epsilon,
            "delta": 1e-6,
            "feature_bounds": (-4 * self.wide, 4 * self.wide),
            "target_bounds": (-6 * self.wide, 6 * self.wide),
        }


def drawn_settings(seed: int, count: int) -> list[Setting]:
    """Return the settings of a seed."""
    rng = np.random.default_rng(seed)
    return [Setting.drawn(rng) for _ in range(count)]


# --- fits -----------------------------------------------------------------------------------------

NONE, SCREENED, SHORT, DEFAULT, DP_FW, RNM = (
    *("stagewise, no screening", "FreeScreen", "stagewise, half the steps"),
    *("PrivateLasso, defaults", "DP-FW", "RNM-Screen, same clip"),
)


def frank_wolfe(public: dict[str, Any], n: int, d: int) -> dict[str, Any]:
    """Return radius, steps and clip of DP-FW and RNM-Screen.

    A radius of half the target's width, a clip of a fifth of that, steps as PrivateLasso has.
    """
    low, high = public["target_bounds"]
    rho = float(ZCDP.within(Budget(public["epsilon"], public["delta"])))
    n_iter = rules.n_steps(rules.Regime(n, d, rho))
    return {"radius": (high - low) / 2, "clip": (high - low) / 10, "n_iter": n_iter}


def models(public: dict[str, Any], n: int, d: int, seed: str) -> dict[str, Callable[[int], Any]]:
    """Return what makes each model, given the number of steps of the unscreened path."""
    own = {**public, "random_state": seed, "quality": False}
    given = {**public, **frank_wolfe(public, n, d), "random_state": seed}
    return {
        NONE: lambda _: PrivateLasso(**own, solver="stagewise"),
        SCREENED: lambda _: FreeScreen(**own),
        SHORT: lambda steps: PrivateLasso(**own, solver="stagewise", n_iter=max(1, steps // 2)),
        DEFAULT: lambda _: PrivateLasso(**own),
        DP_FW: lambda _: DPFrankWolfe(**given),
        RNM: lambda _: RNMScreen(**given),
    }


@dataclass(frozen=True)
class Outcome:
    """What one fit came to."""

    f1: float
    density: float
    error: float
    seconds: float
    applied: bool

    @property
    def numbers(self) -> tuple[float, ...]:
        """Return all but whether the rule applied."""
        return self.f1, self.density, self.error, self.seconds


def outcomes(
    X: Array, y: Array, coef: Array, test: slice, public: dict[str, Any], seed: str
) -> dict[str, Outcome]:
    """Fit every model to the rows before the test rows."""
    train = slice(0, test.start or len(y))
    found, steps, first, target = {}, 0, X[train], y[train]
    for name, model_of in models(public, len(target), X.shape[1], seed).items():
        model = model_of(steps)
        began = time.perf_counter()
        model.fit(first, target)
        seconds = time.perf_counter() - began
        steps = model.n_iter_ if name == NONE else steps
        selected = getattr(model, "selected_", model.coef_ != 0)
        error = float(np.mean((model.predict(X[test]) - y[test]) ** 2) / y[test].var())
        applied = name == SCREENED and bool(model.screened_.any())
        found[name] = Outcome(f1(selected, coef), selected.mean(), error, seconds, applied)
    return found


# --- tables ---------------------------------------------------------------------------------------

HEAD = "| method | F1 | density | error | seconds |\n|---|---|---|---|---|"


def mean_and_error(values: Any) -> str:
    """Return the mean and its standard error."""
    values = np.asarray(values, dtype=np.float64)
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{values.mean():.3f} ± {error:.3f}"


def by_setting(runs: list[list[dict[str, Outcome]]], name: str) -> Array:
    """Return F1, density, error and seconds, one row for each setting."""
    return np.array([np.mean([fit[name].numbers for fit in fits], axis=0) for fits in runs])


def fresh_table(runs: list[list[dict[str, Outcome]]], title: str) -> None:
    """Print all methods, and paired differences over settings."""
    kept = [fits for fits in runs if fits]
    print(f"\n{title}: {len(kept)} settings, {sum(map(len, kept))} data sets\n{HEAD}")
    if not kept:
        return
    numbers = {name: by_setting(kept, name) for name in kept[0][0]}
    for name, found in numbers.items():
        print(f"| {name} | " + " | ".join(map(mean_and_error, found.T)) + " |")
    for one, other in ((SCREENED, NONE), (SHORT, NONE), (SCREENED, SHORT)):
        change = numbers[one] - numbers[other]
        cells = " | ".join(map(mean_and_error, change.T[:3]))
        ratio = numbers[one][:, 3] / numbers[other][:, 3]
        print(f"| {one}, less: {other} | {cells} | × {mean_and_error(ratio)} |")
        better, worse = int((change[:, 0] > 0).sum()), int((change[:, 0] < 0).sum())
        print(
            f"  F1 higher in {better} settings, lower in {worse}; largest loss of F1 "
            f"{-change[:, 0].min():.3f}, largest rise of the error {change[:, 2].max():.3f}"
        )


def fresh(seed: int, n_settings: int, n_sets: int) -> None:
    """Fit all methods to data sets of every setting."""
    inside, outside, every = [], [], []
    for i, setting in enumerate(drawn_settings(seed, n_settings)):
        fits = []
        for s in range(n_sets):
            X, y, coef = setting.data(np.random.default_rng((seed, i, s)))
            test = slice(setting.n, None)
            fits.append(outcomes(X, y, coef, test, setting.public, f"{seed}, {i}, {s}"))
        within = [fit for fit in fits if fit[SCREENED].applied]
        without = [fit for fit in fits if not fit[SCREENED].applied]
        inside.append(within)
        outside.append(without)
        every.append(fits)
        assert all(fit[SCREENED].numbers[:3] == fit[NONE].numbers[:3] for fit in without)
        cells = "; ".join(
            f"{name} {np.mean([fit[name].f1 for fit in fits]):.2f}" for name in fits[0]
        )
        print(f"{i} {setting} applied {len(within)} of {n_sets}; F1: {cells}", flush=True)
    fresh_table(inside, "inside the domain")
    fresh_table(outside, "outside the domain")
    fresh_table(every, "all")


def paper_tasks(n_fits: int) -> None:
    """Fit all methods to the paper's ten tasks at ε = 5, δ = 1/n; errors are on the fitted rows.

    The truth of a real set is the support of a LASSO with d/3 coefficients, as in the paper.
    """
    for name in ("synthetic", "correlated", *REAL):
        fits = []
        for s in range(n_fits if name != "blogfeedback" else max(1, n_fits // 5)):
            problem = simulated(name, s) if name in ("synthetic", "correlated") else real(name)
            if problem.coef is None:
                n_support = max(1, problem.X.shape[1] // 3)
                reference = lasso_reference(
                    problem.X, problem.y, n_support=n_support, intercept=True
                )
                coef = reference.coef
            else:
                coef = problem.coef
            public = {key: problem.setting[key] for key in ("feature_bounds", "target_bounds")}
            public |= {"epsilon": 5.0, "delta": 1 / len(problem.y)}
            fits.append(
                outcomes(problem.X, problem.y, coef, slice(0, None), public, f"{name}, {s}")
            )
        applied = sum(fit[SCREENED].applied for fit in fits)
        print(f"\n{name}: {len(fits)} fits, rule applied in {applied}\n{HEAD}")
        for method in fits[0]:
            numbers = np.array([fit[method].numbers for fit in fits]).T
            print(f"| {method} | " + " | ".join(map(mean_and_error, numbers)) + " |", flush=True)


# --- time -----------------------------------------------------------------------------------------


def sparse_rows(n: int, d: int, per_row: int, k: int) -> tuple[Any, Array]:
    """Return rows with so many nonzeros each, and a target made of k features that many rows hold.

    Frequencies of features fall off as 1/√rank.
    """
    rng = np.random.default_rng(d)
    weights = 1 / np.sqrt(np.arange(1, d + 1))
    columns = rng.choice(d, size=n * per_row, p=weights / weights.sum())
    data = np.ones(n * per_row)
    X = sparse.csr_array((data, columns, np.arange(0, n * per_row + 1, per_row)), shape=(n, d))
    X.sum_duplicates()
    X.data[:] = 1.0
    y = X[:, 2 * np.arange(k)] @ (2.0 * (np.arange(k) % 2) - 1) + 0.3 * rng.standard_normal(n)
    return X, y


def dense_rows(n: int, d: int, k: int) -> tuple[Array, Array]:
    """Return standard normal rows, and a target made of k features."""
    rng = np.random.default_rng(d)
    X = rng.standard_normal((n, d))
    return X, X[:, :k].sum(axis=1) / np.sqrt(k) + 0.5 * rng.standard_normal(n)


def cases() -> Iterator[tuple[str, Any, Array, dict[str, Any]]]:
    """Yield tables to time, with public bounds."""
    even = {"feature_bounds": (-4, 4), "target_bounds": (-6, 6), "standardize": False}
    for n, d in ((5_000, 1_000), (20_000, 2_000)):
        yield f"dense, {n} × {d}", *dense_rows(n, d, 10), even
    bits = {"feature_bounds": (-1, 1), "target_bounds": (-6, 6)}
    for n, d in ((50_000, 20_000), (200_000, 1_000_000)):
        yield f"sparse, {n} × {d}, 40 a row", *sparse_rows(n, d, 40, 10), bits


def fitted(X: Any, y: Array, given: dict[str, Any]) -> PrivateLasso:
    """Return a fitted model."""
    return PrivateLasso(**given).fit(X, y)


def speed() -> None:
    """Print the time of whole fits, and of path and refit alone, taken in turns."""
    print(f"\ntime ({machine()})")
    print("| rows | steps | selected halfway | whole fit | path and refit |\n|---|---|---|---|---|")
    for name, X, y, bounds in cases():
        public = {**bounds, "epsilon": 5.0, "delta": 1e-6, "quality": False, "random_state": "t"}
        sides = [
            partial(fitted, X, y, {**public, "solver": solver})
            for solver in ("stagewise", "free-screen")
        ]
        again = stagewise_again(sides[0])
        sides += [partial(again, SOLVERS[solver]) for solver in ("stagewise", "free-screen")]
        model = sides[1]()
        applied = int((~model.screened_).sum()) if model.screened_.any() else "not applied"
        none, screened, bare, short = side_by_side(*sides, rounds=5)
        print(
            f"| {name} | {model.n_iter_} | {applied} | {none:.2f} → {screened:.2f} s, "
            f"× {screened / none:.2f} | {bare:.2f} → {short:.2f} s, × {short / bare:.2f} |",
            flush=True,
        )


def main() -> None:
    trials = repeats(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fresh(SEED, N_SETTINGS, trials)
        speed()
        paper_tasks(N_PAPER_FITS)
