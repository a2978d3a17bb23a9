"""How often `PrivateOLS` covers where people have several rows: `python -m benchmarks panels 200`.

2000 people with 1 to 10 rows each, and residuals half of whose variance is between people. Half of
the features are the same in all rows of a person. ε = 1 for a whole person. Beside it, what
statsmodels makes of the same rows, with and without clusters; and intervals of a fit that pays for
each of ten rows (`rows_per_unit=10`), which takes rows for independent and which `PrivateOLS`
refuses: only their width is of use. Widths are over those of statsmodels with clusters.
"""

from __future__ import annotations

import os
import warnings
from collections import defaultdict
from typing import Any

import numpy as np
import statsmodels.api as sm

from dpscreen import PrivateOLS
from dpscreen.planning.power import epsilon_of_one_row

UNITS, MOST, WITHIN = 2000, 10, 0.5
SLOPES = (1.0, -0.5, 0.5, 0.0)
EPSILON, DELTA = 1.0, 1e-6
BOUNDS: Any = {"feature_bounds": (-10, 10), "target_bounds": (-30, 30)}
NAMES = "noise for a person", "noise for ten rows", "statsmodels, clusters", "statsmodels, rows"


def panel(rng: Any) -> tuple[Any, Any, Any]:
    """Return features, targets, and whose the rows are."""
    ids = np.repeat(np.arange(UNITS), rng.integers(1, MOST + 1, UNITS))
    X = rng.normal(size=(len(ids), len(SLOPES)))
    shared = len(SLOPES) // 2
    X[:, :shared] = rng.normal(size=(UNITS, shared))[ids]
    between = np.sqrt(1 - WITHIN) * rng.normal(size=UNITS)[ids]
    return X, 1 + X @ SLOPES + between + np.sqrt(WITHIN) * rng.normal(size=len(ids)), ids


def intervals(seed: int) -> dict[str, Any]:
    """Return the ends of the intervals of the slopes, by each way to have some."""
    X, y, ids = panel(np.random.default_rng(seed))
    rows = sm.OLS(y, sm.add_constant(X)).fit()
    clusters = rows.get_robustcov_results("cluster", groups=ids)
    quiet = {"delta": DELTA, "quality": False, "random_state": seed, **BOUNDS}
    one = epsilon_of_one_row(EPSILON, DELTA, MOST)
    private = (
        PrivateOLS(epsilon=EPSILON, **quiet).fit(X, y, unit=ids),
        PrivateOLS(epsilon=one, **quiet).fit(X, y),
    )
    ends = [np.asarray(model.conf_int()) for model in private]
    return dict(zip(NAMES, (*ends, clusters.conf_int()[1:], rows.conf_int()[1:]), strict=True))


def main() -> None:
    """Print coverage and widths."""
    trials = int(os.environ.get("DPSCREEN_TRIALS", "40"))
    warnings.simplefilter("ignore")
    covers, widths = defaultdict(list), defaultdict(list)
    for seed in range(trials):
        found = intervals(seed)
        usual = np.diff(found[NAMES[2]])[:, 0]
        for name, ends in found.items():
            covers[name].append((ends[:, 0] <= SLOPES) & (ends[:, 1] >= SLOPES))
            widths[name].append(np.diff(ends)[:, 0] / usual)
    print(f"{trials} panels; features: two the same in all rows of a person, two that vary")
    print("| intervals | coverage | of each feature | width, of each feature |")
    print("|---|---|---|---|")
    for name in NAMES:
        hit, wide = np.array(covers[name]), np.median(widths[name], axis=0)
        each = ", ".join(f"{one:.3f}" for one in hit.mean(axis=0))
        print(f"| {name} | {hit.mean():.3f} | {each} | {', '.join(f'{one:.2f}' for one in wide)} |")
    share = np.array(widths[NAMES[0]]) / np.array(widths[NAMES[1]])
    print(f"Width over that with noise for ten rows: {np.nanmedian(share):.2f} (median)")
