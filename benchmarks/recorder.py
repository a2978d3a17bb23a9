"""dp-recorder against whole fits: `python -m benchmarks recorder [neighbours of each kind]`.

The package of T. Cebere, D. Erb, D. Desfontaines, A. Bellet and J. Fitzsimons (2026,
arXiv:2602.17454) records every call of a mechanism in a fit, runs the fit on a neighbour with the
recorded outputs, and compares: calls and their public parameters must be the same, and inputs may
not move by more than the declared sensitivity. Its auditor, distances and neighbours are used as
they are; here are only the places where it listens. It is not on PyPI: put its `src` on PYTHONPATH.

As a test of the test every fit is audited again with half of each declared sensitivity.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.markdown import write
from benchmarks.timing import repeats
from dpscreen.planning.methods import METHODS, FitRequest, estimator
from dpscreen.privacy import Budget, SeededNoise
from dpscreen.privacy import mechanisms as ours
from dpscreen.privacy.sampling import Signed

Array = Any


class Refused(AssertionError):
    """One of two neighbours was refused before anything was released."""


N_ROWS, N_FEATURES = 400, 4
BOUND = 4.0
BUDGET = Budget(2.0, 1e-6)
LISTENED = {
    ours.DiscreteGaussian: "dist_l2",
    ours.GaussianVector: "dist_l2",
    ours.NoisyMax: "dist_linf",
    ours.SignedNoisyMax: "dist_linf",
    ours.LaplaceNoisyMax: "dist_linf",
}
"""Mechanisms, and the distance of their inputs that the sensitivity bounds."""

REFUSED = "refused"
NEIGHBOURS = (
    "remove",
    "copy_random",
    "uniform_supported",
    "insert_shifted_outliers",
    "insert_large_outliers",
    "insert_nan",
    "insert_inf",
)
KINDS = {"binary": ("private-logistic", "private-logit", "noisy-descent", "class-means")}
KINDS["counts"] = ("private-poisson-lasso", "private-poisson")
KINDS["numbers"] = (
    "private-lasso",
    "private-ols",
    "free-screen",
    "adassp",
    "boosted-adassp",
    "noisy-iht",
    "dp-sis",
    "dp-gcd",
    "dp-fw",
    "rnm-screen",
)


@dataclass(frozen=True, eq=False)
class Listener:
    """The functions of dp-recorder that are used."""

    primitives: Any
    metrics: Any
    datasets: Any

    @classmethod
    def found(cls) -> Listener:
        where = "dp_recorder.auditing"
        try:
            return cls(*(
                importlib.import_module(f"{where}.{one}")
                for one in ("audit_primitives", "metrics", "dataset_util")
            ))  # fmt: skip
        except ImportError as problem:
            sys.exit(f"dp-recorder is not installed ({problem}): put its `src` on PYTHONPATH.")

    @contextmanager
    def instrumented(self, part: float) -> Iterator[None]:
        """Report every call of a mechanism to the auditor, its sensitivity times `part`."""
        before = {kind: kind.__call__ for kind in LISTENED}
        for kind, distance in LISTENED.items():
            kind.__call__ = self._reported(kind, getattr(self.metrics, distance), part)
        try:
            yield
        finally:
            for kind, call in before.items():
                kind.__call__ = call

    def _reported(self, kind: Any, distance: Any, part: float) -> Callable[..., Any]:
        call, at = kind.__call__, {}

        @self.primitives.audit_spec(
            kind=kind.__name__,
            input_arg="values",
            sensitivity_arg="sensitivity",
            metric_fn=distance,
        )
        def release(values: Array, sensitivity: float, mechanism: Any) -> Any:  # noqa: ARG001
            found = call(mechanism, at["values"], at["noise"])
            return tuple(found) if isinstance(found, Signed) else found  # it copies plain tuples

        def reported(mechanism: Any, values: Any, noise: Any) -> Any:
            at.update(values=values, noise=noise)
            sums = np.array(getattr(values, "sums", values)) * getattr(mechanism, "unit", 1.0)
            found = release(sums, mechanism.sensitivity * part, mechanism)
            return Signed(*found) if isinstance(found, tuple) else found

        return reported

    def audit(self, method: str, rows: Array, neighbour: Array, *, part: float = 1.0) -> Counter:
        """Record a fit and replay it; count its releases, or raise AssertionError."""
        auditor = self.primitives.Auditor()
        with self.instrumented(part):
            for replayed, table in enumerate((rows, neighbour)):
                if replayed:
                    auditor.set_replay()
                with auditor:
                    found = fitted(method, table)
                    if replayed and found == REFUSED:
                        raise Refused
                    self.primitives.ensure_equality(found=found)
        auditor.validate_records()
        assert any(one.kind != "EQ" for one in auditor.log), "nothing was recorded."
        return Counter(one.kind for one in auditor.log if one.kind != "EQ")


def fitted(method: str, table: Array) -> str:
    """Return all that a fit shows of itself, or that it refused cells which are not finite."""
    high = BOUND if method in KINDS["numbers"] else 20.0
    low = -BOUND if method in KINDS["numbers"] else 0.0
    request = FitRequest(
        BUDGET,
        np.array([(-BOUND, BOUND)] * N_FEATURES),
        (low, high),
        n_rows=N_ROWS,
        random_state=SeededNoise("recorder"),
        classes=(0, 1),
    )
    try:
        model = estimator(method, request).fit(table[:, :-1], table[:, -1])
    except ValueError as problem:
        return REFUSED if not np.isfinite(table).all() else str(problem)
    return f"{model.coef_.tolist()} {model.intercept_} {model.privacy_}"


def rows_of(kind: str, rng: Any) -> Array:
    """Return rows with the target last."""
    X = rng.uniform(-BOUND, BOUND, (N_ROWS, N_FEATURES))
    line = X[:, 0] / 2 - X[:, 1] / 4
    y = {
        "numbers": line + rng.normal(size=N_ROWS) / 2,
        "binary": (line + rng.logistic(size=N_ROWS) > 0) * 1.0,
        "counts": rng.poisson(np.exp(line / 2)) * 1.0,
    }[kind]
    return np.column_stack((X, y))


def neighbour_of(listener: Listener, rows: Array, how: str, kind: str, rng: Any) -> Array:
    """Return dp-recorder's neighbour; an outcome that cannot be is one that can."""
    mode = "unbounded:remove" if how == "remove" else "unbounded:add"
    found = listener.datasets.generate_neighbors(rows, 1, mode=mode, rng=rng, strategy=how)
    if kind == "binary":
        found[:, -1] = found[:, -1] > 0
    return found


def main() -> None:
    """Audit every method with every kind of neighbour, and print what was found."""
    listener, count = Listener.found(), repeats(3)
    lines = ["| method | pairs | releases | violations | with half the sensitivity | refused |"]
    lines.append("|---" * 6 + "|")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind, methods in KINDS.items():
            for method in methods:
                assert method in METHODS
                lines.append(_audited(listener, method, kind, count))
                print(lines[-1], flush=True)
    write("recorder", "\n".join(lines))


def _audited(listener: Listener, method: str, kind: str, count: int) -> str:
    """Return a line: pairs, releases, violations as it is and halved, and rows that were refused.

    A pair of which one side is refused counts there alone: whether rows are finite is outside of
    the guarantee, as every statement says.
    """
    releases, violations, halved, refused = 0, [], 0, 0
    pairs = [(how, seed) for how in NEIGHBOURS for seed in range(count)]
    for how, seed in pairs:
        rng = np.random.default_rng([seed, len(how)])
        rows = rows_of(kind, rng)
        neighbour = neighbour_of(listener, rows, how, kind, rng)
        try:
            releases += listener.audit(method, rows, neighbour).total()
        except Refused:
            refused += 1
            continue
        except AssertionError as problem:
            violations.append(f"{how}: {problem}")
        try:
            listener.audit(method, rows, neighbour, part=0.5)
        except AssertionError:
            halved += 1
    for one in violations:
        print(method, one[:400], flush=True)
    tried = len(pairs) - refused
    found = f"{releases} | {len(violations)} | {halved} of {tried} | {refused}"
    return f"| {method} | {tried} | {found} |"


if __name__ == "__main__":
    main()
