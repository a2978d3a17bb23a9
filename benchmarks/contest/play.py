"""Fits of the contest: every method on every table, as records that the page is made of."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, PoissonRegressor, RidgeCV
from sklearn.metrics import log_loss, r2_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.contest import counts, libraries, rivals, synthetic
from benchmarks.contest.binned import fit_binagg
from benchmarks.contest.tables import LOOSENESS, Entry, Numbers
from dpscreen.families import POISSON
from dpscreen.families.poisson import LEAST_MEAN, deviance_explained
from dpscreen.planning import arenas
from dpscreen.planning.arenas import PublicTable, simulated
from dpscreen.planning.methods import FitRequest, estimator
from dpscreen.privacy import Budget, SeededNoise, named_seed

Array = Any
Record = dict[str, Any]
NOT_PRIVATE = "not private"
EPSILONS = (0.5, 1.0, 3.0, 10.0)
DELTA = 1e-6
SEED = "contest"
HELD_OUT = 0.2
WORST = {
    "regression": -0.5,
    "binary": 0.5,
    "counts": -0.5,
    "support": 0.0,
    "intervals": -math.inf,
}


@dataclass(frozen=True)
class Request:
    """One fit: rows, public bounds, a budget, and where noise comes from."""

    X: Array
    y: Array
    table: PublicTable
    epsilon: float
    seed: str

    @property
    def budget(self) -> Budget:
        return Budget(self.epsilon, DELTA)

    @property
    def noise(self) -> SeededNoise:
        return SeededNoise(self.seed)

    @property
    def number(self) -> int:
        """Return a seed for packages of others."""
        return named_seed(self.seed) % 2**31


Fit = Callable[[Request], Any]


def packaged(name: str) -> Fit:
    """Return a method of the package, by its name."""

    def fit(request: Request) -> Any:
        given = FitRequest(
            request.budget,
            request.table.feature_bounds,
            request.table.target_bounds,
            n_rows=len(request.y),
            random_state=request.noise,
            classes=(0, 1),
        )
        return estimator(name, given).fit(request.X, request.y)

    return fit


def peer(kind: type[Any], *, binary: bool = False) -> Fit:
    """Return a rival that is a peer of the package's own."""

    def fit(request: Request) -> Any:
        given: dict[str, Any] = {} if binary else {"target_bounds": request.table.target_bounds}
        model = kind(
            epsilon=request.epsilon,
            delta=DELTA,
            feature_bounds=request.table.feature_bounds,
            n_rows=len(request.y),
            random_state=request.noise,
            **given,
        )
        return model.fit(request.X, request.y)

    return fit


def _binagg(request: Request) -> Any:
    table = request.table
    return fit_binagg(
        request.X,
        request.y,
        table.feature_bounds,
        table.target_bounds,
        request.budget,
        request.noise,
    )


def _smeared(method: str) -> Fit:
    def fit(request: Request) -> Any:
        bounds = request.table.feature_bounds, request.table.target_bounds
        return counts.fit_smeared(
            method, request.X, request.y, *bounds, request.budget, request.noise
        )

    return fit


def _diffprivlib(request: Request) -> Any:
    table, rows = request.table, (request.X, request.y)
    return libraries.linear_by_diffprivlib(
        *rows, table.feature_bounds, table.target_bounds, request.epsilon, request.number
    )


def _logistic_by_diffprivlib(request: Request) -> Any:
    rows, bounds = (request.X, request.y), request.table.feature_bounds
    return libraries.logistic_by_diffprivlib(*rows, bounds, request.epsilon, request.number)


def _dp_ebm(request: Request) -> Any:
    target = request.table.target_bounds if request.table.family.has_scale else None
    return libraries.boosted_by_interpret(
        request.X,
        request.y,
        request.table.feature_bounds,
        target,
        request.epsilon,
        DELTA,
        request.number,
    )


REGRESSION: dict[str, Fit] = {
    **{
        name: packaged(name)
        for name in (
            "private-lasso",
            "private-ols",
            "adassp",
            "boosted-adassp",
            "noisy-iht",
            "dp-sis",
            "dp-gcd",
            "dp-fw",
            "rnm-screen",
            "tukey-em",
            "kendall-tukey-em",
        )
    },
    "ihm": peer(rivals.HessianMixing),
    "dp-gd": peer(rivals.GradientDescent),
    "binagg": _binagg,
    "dp-ebm": _dp_ebm,
    "diffprivlib": _diffprivlib,
}
BINARY: dict[str, Fit] = {
    **{
        name: packaged(name)
        for name in (
            "private-logistic",
            "private-logit",
            "noisy-descent",
            "class-means",
            "outcome-fw",
        )
    },
    "objective-perturbation": peer(rivals.ObjectivePerturbation, binary=True),
    "dp-ebm": _dp_ebm,
    "diffprivlib": _logistic_by_diffprivlib,
}
COUNTS: dict[str, Fit] = {
    **{name: packaged(name) for name in ("private-poisson-lasso", "private-poisson")},
    "noisy-poisson-descent": peer(rivals.PoissonDescent),
    "log-private-lasso": _smeared("private-lasso"),
    "log-boosted-adassp": _smeared("boosted-adassp"),
    "log-adassp": _smeared("adassp"),
}
METHODS = {"regression": REGRESSION, "binary": BINARY, "counts": COUNTS}


def _synthetic(how: str) -> Fit:
    def fit(request: Request) -> Any:
        bounds = request.table.feature_bounds, request.table.target_bounds
        return synthetic.fit(request.X, request.y, *bounds, request.budget, request.noise, how=how)

    return fit


SLOW: dict[str, Fit] = {
    "mst-ols": _synthetic("mst-ols"),
    "mst-lasso": _synthetic("mst-lasso"),
    "dd-ssp": _synthetic("mst-moments"),
    "aim-ols": _synthetic("aim-ols"),
    "aim-lasso": _synthetic("aim-lasso"),
}
"""Methods of a division of their own: a fit takes some hundred times as long as others. Methods
that start from the same marginals share them: the first one has the time."""


REFERENCES: dict[str, Callable[[], Any]] = {
    "regression": lambda: RidgeCV(np.logspace(-2, 4, 13)),
    "binary": lambda: LogisticRegression(C=0.1, max_iter=500),
    "counts": lambda: PoissonRegressor(alpha=1e-3, max_iter=500),
}


ONCE = {"dp-ebm"}
"""Methods that play in the first trial alone: their fits would take most of the time."""


def kind_of(division: str) -> str:
    """Return what is scored: regression, binary, counts, intervals or support."""
    return division.removeprefix("simulated ").partition(",")[0]


OURS = {
    "regression": "private-lasso",
    "binary": "private-logistic",
    "counts": "private-poisson-lasso",
    "intervals": "private-ols",
    "support": "private-lasso",
}
PACKAGE = {
    "regression": ("private-lasso", "private-ols"),
    "binary": ("private-logistic", "private-logit"),
    "counts": ("private-poisson-lasso", "private-poisson"),
    "intervals": ("private-ols",),
    "support": ("private-lasso", "free-screen"),
}
"""Methods of the package that are not others'."""


class NotPlayed(Exception):
    """A method is not installed here, so it has no place in the ranking."""


def on_table(
    name: str,
    division: str,
    draw: Callable[[int], PublicTable],
    trials: int,
    epsilons: tuple[float, ...] = EPSILONS,
    methods: tuple[str, ...] = (),
) -> Iterator[Record]:
    """Yield every fit on a table, the one without privacy first."""
    kind = kind_of(division)
    suited = METHODS[kind] | (SLOW if kind == "regression" else {})
    for trial in range(trials):
        table = draw(trial)
        stratify = table.y if kind == "binary" else None
        split = train_test_split(
            table.X,
            table.y,
            test_size=HELD_OUT,
            random_state=named_seed(f"{SEED}/{name}/{trial}") % 2**31,
            stratify=stratify,
        )
        rows, held, y, truth = split
        shape = {"division": division, "table": name, "n": len(table.y), "d": table.X.shape[1]}
        reference = make_pipeline(StandardScaler(), REFERENCES[kind]())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            best = scored(reference.fit(rows, y), held, truth, kind)
        yield shape | {"method": NOT_PRIVATE, "epsilon": None, "trial": trial} | best
        for method in methods or METHODS[kind]:
            if trial and method in ONCE:
                continue
            for epsilon in epsilons:
                seed = f"{SEED}/{name}/{trial}/{method}/{epsilon!r}"
                request = Request(rows, y, table, epsilon, seed)
                try:
                    found = one_fit(suited[method], request, held, truth, kind)
                except NotPlayed as problem:
                    print(f"{method} does not play: {problem}", flush=True)
                    break
                yield shape | {"method": method, "epsilon": epsilon, "trial": trial} | found


def one_fit(fit: Fit, request: Request, held: Array, truth: Array, kind: str) -> Record:
    """Return score and time of one fit; what is refused or fails has the worst score."""
    began = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # seeded noise, bounds and penalties: all on purpose
            found = scored(fit(request), held, truth, kind)
    except libraries.NotInstalled as problem:
        raise NotPlayed(str(problem)) from None
    except Exception as problem:  # a method that fails, for whatever reason, has the worst score
        why = f"{type(problem).__name__}: {problem}"[:80]
        found = {"score": WORST[kind], "refused": True, "why": why}
    return {"refused": False} | found | {"seconds": time.process_time() - began}


def scored(model: Any, held: Array, truth: Array, kind: str) -> Record:
    """Return R², AUC and log loss, or the deviance explained, on held-out rows."""
    if kind != "binary":
        predicted = np.asarray(model.predict(held), dtype=np.float64)
        if not np.isfinite(predicted).all():
            raise ValueError("predictions are not finite.")
        if kind == "counts":
            return {"score": deviance_explained(np.log(np.maximum(predicted, LEAST_MEAN)), truth)}
        return {"score": max(WORST[kind], float(r2_score(truth, predicted)))}
    loss = None
    if hasattr(model, "predict_proba"):
        p = np.clip(np.asarray(model.predict_proba(held))[:, 1], 0.001, 0.999)
        order, loss = p, float(log_loss(truth, p))
    if hasattr(model, "decision_function"):
        order = np.ravel(model.decision_function(held))
    return {"score": float(roc_auc_score(truth, order)), "log_loss": loss}


def bounded(entry: Entry, numbers: Numbers, looseness: float = LOOSENESS) -> Any:
    """Return what draws the table of a trial: the same rows, bounds guessed anew."""

    def draw(trial: int) -> PublicTable:
        seed = named_seed(f"bounds/{entry.name}/{trial}") % 2**63
        return numbers.bounded(looseness, seed, entry.division)

    return draw


def simulations() -> Iterator[tuple[str, str, Callable[[int], PublicTable]]]:
    """Yield the package's simulated designs, by name and division, and counts of the first ones."""
    for name, arena in simulated(SEED).items():
        kind = "regression" if arena(0).family.has_scale else "binary"
        yield name.removeprefix("simulated, "), f"simulated {kind}", arena
    for name in ("sparse", "correlated", "categories"):
        _, draw = arenas.DESIGNS[name]
        arena = partial(arenas._drawn, POISSON, draw, f"{SEED}/{name} counts")
        yield f"{name} counts", "simulated counts", arena
