"""Append today's ratios to benchmarks/history.jsonl and compare them with the recent past.

Every ratio sets a fit of ours against one of scikit-learn, or a row source against the same rows in
memory, in one run on one machine, so that entries of different machines can be compared. A ratio
that exceeds the median of the last entries by more than `TOLERANCE` fails the run.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import warnings
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.linear_model import LassoCV, LogisticRegressionCV

from benchmarks.timing import machine, report, side_by_side
from dpscreen import PrivateLasso, PrivateLogisticLasso, PrivateOLS

FILE = Path(__file__).with_name("history.jsonl")
RECENT = 10
"""Number of past entries that a new one is compared with."""
TOLERANCE = 1.5
"""Largest ratio of a new value to the median of the recent ones."""


def measure() -> dict[str, float]:
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
    rounded = {label: round(value, 4) for label, value in new.items()}
    entry = {"date": at, "commit": commit, "machine": machine(), "ratios": rounded}
    with FILE.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")
    if found := slower(past, new):
        sys.exit(
            "\n".join(f"{label}: {factor:.2f} times the median" for label, factor in found.items())
        )
