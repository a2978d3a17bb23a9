"""Append today's ratios to benchmarks/history.jsonl and compare them with the recent past.

Every ratio sets one of our times against another one of the same run and machine, so that entries
of different machines can be compared: smaller is better. A ratio that exceeds the median of the
last entries by more than `TOLERANCE` fails the run.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.linear_model import LassoCV, LogisticRegressionCV

from benchmarks import exactness, scale
from benchmarks import sparse as sparse_steps
from benchmarks.timing import machine, report, side_by_side
from dpscreen import PrivateLasso, PrivateLogisticLasso, PrivateOLS

FILE = Path(__file__).with_name("history.jsonl")
RECENT = 10
"""Number of past entries that a new one is compared with."""
TOLERANCE = 1.5
"""Largest ratio of a new value to the median of the recent ones."""


FILE_ROWS, FILE_COLUMNS, FILE_STEPS = 500_000, 20, 30
SPARSE = 100_000, 1_000_000, 100
CLUSTER = 2_000_000, 50, 30

RATIOS: dict[str, Callable[[], float]] = {
    "exact step / bare product": lambda: exactness.steps(50_000, 280, 0.7, 10),
    "exact selection / OpenDP": lambda: exactness.selections(1200, 1000, 10, exactness.NEAR),
    "sparse step / plain step, uniform": lambda: sparse_steps.against_plain(
        *SPARSE, "uniform", sparse_steps.UNIFORM, at_least=1000
    ),
    "sparse step / plain step, power law": lambda: sparse_steps.against_plain(
        *SPARSE, "power law", sparse_steps.POWER_LAW, at_least=25
    ),
    "streamed fit / bare scans": lambda: scale.streamed(FILE_ROWS, FILE_COLUMNS, FILE_STEPS),
    "Dask with two workers / memory": lambda: scale.cluster(*CLUSTER),
    "--dry-run / fit": lambda: dry_run(),
}
"""What the history has beside whole fits; each is measured by the benchmark that it belongs to."""


def measure() -> dict[str, float]:
    """Return all ratios of this run."""
    return whole_fits() | {label: ratio() for label, ratio in RATIOS.items()}


def dry_run() -> float:
    """Return the time of the command `fit --dry-run` over that of the fit."""
    path, schema = scale.parquet(FILE_ROWS, FILE_COLUMNS)
    command = [sys.executable, "-m", "dpscreen", "fit", str(path), "--schema", str(schema)]
    command += ["--epsilon", "1", "--delta", "1e-9"]
    with tempfile.TemporaryDirectory() as folder:

        def run(*options: str) -> None:
            subprocess.run([*command, *options], capture_output=True, check=True)

        dry, fit = side_by_side(
            lambda: run("--dry-run"),
            lambda: run("-o", str(Path(folder) / "model.json"), "--force"),
            rounds=3,
        )
    return dry / fit


def whole_fits() -> dict[str, float]:
    """Return median times of whole fits, over those of what they are compared with."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 20))
    signal = X[:, 0] - 0.5 * X[:, 3]
    y, binary = signal + rng.normal(size=20_000), rng.random(20_000) < 1 / (1 + np.exp(-signal))
    private = {"epsilon": 1.0, "delta": 1e-6, "feature_bounds": (-5, 5), "n_rows": 20_000}
    linear = private | {"target_bounds": (-8, 8)}
    logistic = private | {"classes": (False, True)}
    lasso, dense, table, sparse_rows, cv, logit, logit_cv = side_by_side(
        lambda: PrivateLasso(**linear).fit(X, y),
        lambda: PrivateLasso(**linear, standardize=False).fit(X, y),
        lambda: PrivateOLS(**linear).fit(X, y),
        lambda: PrivateLasso(**linear, standardize=False).fit(sparse.csr_array(X), y),
        lambda: LassoCV(cv=5).fit(X, y),
        lambda: PrivateLogisticLasso(**logistic).fit(X, binary),
        lambda: LogisticRegressionCV(Cs=5, cv=5, l1_ratios=(0,), use_legacy_attributes=False).fit(
            X, binary
        ),
        rounds=3,
    )
    return {
        "PrivateLasso / LassoCV": lasso / cv,
        "PrivateOLS / LassoCV": table / cv,
        "PrivateLogisticLasso / LogisticRegressionCV": logit / logit_cv,
        "sparse / dense rows": sparse_rows / dense,
    }


def slower(past: Sequence[dict[str, float]], new: dict[str, float]) -> dict[str, float]:
    """Return the ratios that exceed the median of the recent past, and by which factor."""
    found = {}
    for label, value in new.items():
        if recent := [entry[label] for entry in past[-RECENT:] if label in entry]:
            factor = value / statistics.median(recent)
            if factor > TOLERANCE:
                found[label] = factor
    return found


def read(path: Path) -> list[dict[str, float]]:
    """Return the ratios of past entries, oldest first."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line)["ratios"] for line in lines]


def main() -> None:
    warnings.simplefilter("ignore")
    past, new = read(FILE), measure()
    print(f"History ({machine()}), {len(past)} entries before")
    for label, value in new.items():
        report(label, value)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    at = datetime.now(UTC).date().isoformat()
    rounded = {label: float(f"{value:.4g}") for label, value in new.items()}
    entry = {"date": at, "commit": commit, "machine": machine(), "ratios": rounded}
    with FILE.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")
    if found := slower(past, new):
        sys.exit(
            "\n".join(f"{label}: {factor:.2f} times the median" for label, factor in found.items())
        )
