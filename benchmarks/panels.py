"""How often tables cover where people have several rows: `python -m benchmarks panels`.

2000 people with 1 to 10 rows each, and residuals half of whose variance is between people. Half of
the features are the same in all rows of a person. ε = 1 for a whole person. Beside it, what
statsmodels makes of the same rows, with and without clusters; and intervals of a fit that pays for
each of ten rows (`rows_per_unit=10`), which takes rows for independent and which `PrivateOLS`
refuses: only their width is of use. Widths are over those of statsmodels with clusters.

Then the same of `PrivateLogit` and `PrivatePoisson`, where half of the people have one quantile for
all their outcomes; beside them GEE with weights 1/m for the m rows of a person.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from functools import partial
from typing import Any

import numpy as np
import statsmodels.api as sm
from scipy import stats

from benchmarks.timing import repeats
from dpscreen import PrivateLogit, PrivateOLS, PrivatePoisson
from dpscreen.planning.setting import Setting

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
    one = Setting(2, 1, EPSILON, DELTA, rows_per_unit=MOST).one_row
    private = (
        PrivateOLS(epsilon=EPSILON, **quiet).fit(X, y, unit=ids),
        PrivateOLS(epsilon=one, **quiet).fit(X, y),
    )
    ends = [np.asarray(model.conf_int())[:-1] for model in private]
    return dict(zip(NAMES, (*ends, clusters.conf_int()[1:], rows.conf_int()[1:]), strict=True))


def curved(other: Any, seed: int) -> dict[str, Any]:
    """Return the same of another family, whose mean outcomes are those of its model."""
    estimator, family, outcomes, more = other
    rng = np.random.default_rng(seed)
    X, _, ids = panel(rng)
    means = family.link.inverse(X @ SLOPES / 2 - 0.5)
    alike = (rng.random(UNITS) < WITHIN)[ids]
    y = outcomes(np.where(alike, rng.random(UNITS)[ids], rng.random(len(ids))), means).astype(float)
    fixed = {"feature_bounds": (-10, 10), "delta": DELTA, "quality": False, "random_state": seed}
    private = estimator(epsilon=EPSILON, **fixed, **more).fit(X, y, unit=ids)
    design, weights = sm.add_constant(X), 1 / np.bincount(ids)[ids]
    clusters = sm.GEE(y, design, ids, family=family, weights=weights).fit().conf_int()[1:]
    rows = sm.GLM(y, design, family).fit().conf_int()[1:]
    ends = np.asarray(private.conf_int())[: len(SLOPES)]
    return dict(zip((NAMES[0], *NAMES[2:]), (ends, clusters, rows), strict=True))


CURVED: Any = (
    (PrivateLogit, sm.families.Binomial(), lambda u, means: u < means, {}),
    (PrivatePoisson, sm.families.Poisson(), stats.poisson.ppf, {"target_bounds": (0, 60)}),
)


def main() -> None:
    """Print coverage and widths."""
    warnings.simplefilter("ignore")
    widths = coverage("PrivateOLS", intervals, np.array(SLOPES))
    share = np.array(widths[NAMES[0]]) / np.array(widths[NAMES[1]])
    print(f"Width over that with noise for ten rows: {np.nanmedian(share):.2f} (median)")
    for other in CURVED:
        coverage(other[0].__name__, partial(curved, other), np.array(SLOPES) / 2)


def coverage(title: str, found_by: Any, slopes: Any) -> dict[str, Any]:
    """Print a table of coverage and widths, and return the widths."""
    trials = repeats(40)
    covers, widths = defaultdict(list), defaultdict(list)
    for seed in range(trials):
        found = found_by(seed)
        usual = np.diff(found[NAMES[2]])[:, 0]
        for name, ends in found.items():
            inside = (ends[:, 0] <= slopes) & (ends[:, 1] >= slopes)
            covers[name].append(np.where(np.isnan(ends[:, 0]), np.nan, inside))
            widths[name].append(np.diff(ends)[:, 0] / usual)
    print(f"{title}, {trials} panels; features: two the same in all rows of a person, two not")
    print("| intervals | missing | coverage | of each feature | width, of each feature |")
    print("|---|---|---|---|---|")
    for name in covers:
        hit, wide = np.array(covers[name]), np.nanmedian(widths[name], axis=0)
        each = ", ".join(f"{one:.3f}" for one in np.nanmean(hit, axis=0))
        wides, none = ", ".join(f"{one:.2f}" for one in wide), np.isnan(hit).mean()
        print(f"| {name} | {none:.3f} | {np.nanmean(hit):.3f} | {each} | {wides} |")
    return widths
