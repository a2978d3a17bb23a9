"""One function per claim of the paper: it says whether the claim holds, in a sentence and numbers.

Each is registered under the claim's key of `published_claims`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from dpscreen.paper.agreement import (
    STANDARD_ERRORS,
    RowIndex,
    better_by_sign_test,
    check_r2,
    check_theorem2,
    mean_of,
)
from dpscreen.paper.published import PublishedClaim, published_claims, published_data
from dpscreen.paper.results import TrialRow
from dpscreen.paper.suites import CLAIM_55, EXPERIMENT_A, EXPERIMENT_B, FIGURE_3, SYNTHETIC
from dpscreen.privacy import sensitivity

REAL = tuple(name for name in published_data() if name not in SYNTHETIC)
WIDE = tuple(name for name in REAL if published_data()[name].n_features > 20)


class ClaimFinding(NamedTuple):
    """Whether a claim holds (None: cannot be said), why, and the numbers behind it."""

    holds: bool | None
    finding: str
    numbers: Mapping[str, float] = {}


@dataclass(frozen=True)
class ClaimCheck(PublishedClaim):
    """A statement of the paper, and what was found of it."""

    holds: bool | None
    finding: str
    numbers: Mapping[str, float]


class NotRunError(Exception):
    """The rows that a claim needs are not there."""


Check = Callable[[RowIndex], ClaimFinding]
CHECKS: dict[str, Check] = {}


def _claim(key: str) -> Callable[[Check], Check]:
    def keep(check: Check) -> Check:
        CHECKS[key] = check
        return check

    return keep


def _mean(index: RowIndex, suite: str, data: str, method: str, metric: str) -> float:
    found = index.estimate(suite, data, method, metric)
    if found is None:
        raise NotRunError(f"{method} on {data} ({suite})")
    return found.mean


def _curve_mean(
    index: RowIndex, suite: str, data: str, method: str, series: str, place: int
) -> float:
    """The mean of a curve at its first (0) or last (-1) iteration."""
    rows = [row for row in index.rows(suite, data, method) if series in row.series]
    found = mean_of(row.series[series][place] for row in rows)
    if found is None:
        raise NotRunError(f"{method} on {data} ({suite})")
    return found.mean


def _better(
    index: RowIndex, suite: str, data: str, methods: tuple[str, str], metric: str
) -> tuple[bool, float]:
    """Whether the first method is significantly better than the second, and the p-value."""
    ours, theirs = (index.values(suite, data, method, metric) for method in methods)
    if not set(ours) & set(theirs):
        raise NotRunError(f"{methods[0]} and {methods[1]} on {data} ({suite})")
    test, better = better_by_sign_test(ours, theirs, metric)
    return better, test.p_two_sided


def _changes(
    index: RowIndex, metric: str, ours: tuple[str, str], theirs: tuple[str, str]
) -> dict[str, float]:
    """How much more one (suite, method) has of a metric than another, on each real set."""
    return {
        data: _mean(index, ours[0], data, ours[1], metric)
        - _mean(index, theirs[0], data, theirs[1], metric)
        for data in REAL
    }


def _sets(names: list[str]) -> str:
    return f" ({', '.join(names)})" if names else ""


# Synthetic data, Section 5.1 and Appendix C.


@_claim("nonprivate-screening")
def _nonprivate_screening(index: RowIndex) -> ClaimFinding:
    tpr, fpr = (
        {name: _mean(index, "adp", "uncorrelated", name, metric) for name in CLAIM_55}
        for metric in ("tpr", "fpr")
    )
    screened = _mean(index, "adp", "uncorrelated", "np-fw-safe", "screened")
    text = (
        f"With the rule corrected for the radius (E3) {tpr['np-fw-safe']:.0%} of the true nonzeros "
        f"and {fpr['np-fw-safe']:.1%} of the true zeros are nonzero, as in plain Frank-Wolfe "
        f"({tpr['np-fw']:.0%}): the {screened:.0f} features it rejects are never touched anyway. "
        f"Eq. 1 as printed leaves {tpr['np-fw-rule']:.0%}, and {tpr['np-fw-published-rule']:.0%} "
        "if what it rejects is left out for good."
    )
    holds = abs(tpr["np-fw-safe"] - 0.55) <= 0.05 and fpr["np-fw-safe"] <= 0.001
    return ClaimFinding(holds, text, {f"{name} tpr": share for name, share in tpr.items()})


@_claim("rnm-better-f1-than-adp")
def _rnm_better_than_adp(index: RowIndex) -> ClaimFinding:
    methods = ("rnm-screen", "adp-screen")
    tests = {data: _better(index, "synthetic", data, methods, "f1") for data in SYNTHETIC}
    numbers = {
        f"{method} {data}": _mean(index, "synthetic", data, method, "f1")
        for data in SYNTHETIC
        for method in methods
    }
    found = ", ".join(f"p = {p:.2g} on {data} data" for data, (_, p) in tests.items())
    holds = all(better for better, _ in tests.values())
    return ClaimFinding(holds, f"Sign test of F1: {found}.", numbers)


@_claim("rnm-discriminates")
def _rnm_discriminates(index: RowIndex) -> ClaimFinding:
    gaps = {
        f"{method} {data}": _mean(index, "synthetic", data, method, "tpr")
        - _mean(index, "synthetic", data, method, "fpr")
        for data in SYNTHETIC
        for method in ("rnm-screen", "uniform-zeroing", "adp-screen")
    }
    shown = ", ".join(f"{name} {gap:.3f}" for name, gap in gaps.items())
    holds = all(gaps[f"rnm-screen {data}"] > 0.1 for data in SYNTHETIC)
    text = f"TPR − FPR: {shown}. Zeroing at random tells them apart as well as screening does."
    return ClaimFinding(holds, text, gaps)


@_claim("adp-no-discrimination")
def _adp_no_discrimination(index: RowIndex) -> ClaimFinding:
    numbers = _kept(index, FIGURE_3)
    ratio = numbers["adp-screen-50th kept true"] / max(numbers["adp-screen-50th kept false"], 1e-12)
    text = (
        f"{_kept_text(numbers)} At every 50th iteration a true nonzero is {ratio:.2f} times as "
        "likely to be kept as a true zero."
    )
    return ClaimFinding(ratio < 1.1, text, numbers)


@_claim("experiment-a")
def _experiment_a(index: RowIndex) -> ClaimFinding:
    numbers = {
        f"{method} {data}": _mean(index, "adp", data, method, "screened")
        for data in SYNTHETIC
        for method in EXPERIMENT_A
    }
    holds = all(numbers[f"{method} uncorrelated"] == 0 for method in EXPERIMENT_A)
    shown = ", ".join(f"{count:.1f} by {name}" for name, count in numbers.items())
    return ClaimFinding(holds, f"Coordinates set to zero in a run, on average: {shown}.", numbers)


@_claim("experiment-b")
def _experiment_b(index: RowIndex) -> ClaimFinding:
    numbers = _kept(index, EXPERIMENT_B)
    true, false = (numbers[f"np-fw-adp-50th kept {which}"] for which in ("true", "false"))
    return ClaimFinding(abs(true - 0.1) <= 0.05 and false <= 0.005, _kept_text(numbers), numbers)


def _kept(index: RowIndex, methods: Iterable[str]) -> dict[str, float]:
    return {
        f"{method} kept {which}": _mean(index, "adp", "uncorrelated", method, metric)
        for method in methods
        for which, metric in (("true", "tpr"), ("false", "fpr"))
    }


def _kept_text(numbers: Mapping[str, float]) -> str:
    methods = dict.fromkeys(name.split(" kept ")[0] for name in numbers)
    shown = ", ".join(
        f"{method} {numbers[f'{method} kept true']:.3f} / {numbers[f'{method} kept false']:.3f}"
        for method in methods
    )
    return f"Fraction of true nonzeros / true zeros left nonzero: {shown}."


@_claim("wolfe-gap")
def _wolfe_gap(index: RowIndex) -> ClaimFinding:
    last = {
        method: _curve_mean(index, "adp", "uncorrelated", method, "wolfe_gap", -1)
        for method in ("dp-fw-rule", "np-fw-rule", "np-fw")
    }
    text = (
        f"At the last iteration {last['dp-fw-rule']:.3f} with private optimisation, "
        f"{last['np-fw-rule']:.3f} without (both with Eq. 1 at every iteration), "
        f"{last['np-fw']:.3f} with neither noise nor screening."
    )
    holds = last["dp-fw-rule"] > max(last["np-fw-rule"], last["np-fw"])
    return ClaimFinding(holds, text, last)


# Real data, Section 5.2.


def _none_better(
    index: RowIndex, sets: tuple[str, ...], methods: tuple[str, str], metric: str
) -> ClaimFinding:
    tests = {data: _better(index, "real", data, methods, metric) for data in sets}
    better = [data for data, (found, _) in tests.items() if found]
    text = (
        f"{methods[0]} is significantly better than {methods[1]} in {metric} on {len(better)} of "
        f"{len(sets)} sets{_sets(better)}."
    )
    return ClaimFinding(not better, text, {f"p {data}": p for data, (_, p) in tests.items()})


NONE_BETTER = {
    "f1-not-better-than-dp-fw": (REAL, ("rnm-screen", "dp-fw"), "f1"),
    "oracle-f1-not-better-above-20-features": (WIDE, ("oracle-k-fw", "rnm-screen"), "f1"),
    "oracle-mse-not-better-above-20-features": (
        tuple(name for name in WIDE if name != "blogfeedback"),
        ("oracle-k-fw", "rnm-screen"),
        "mse",
    ),
}
for _key, (_data, _methods, _metric) in NONE_BETTER.items():
    CHECKS[_key] = partial(_none_better, sets=_data, methods=_methods, metric=_metric)


@_claim("density-better-than-dp-fw")
def _density_better(index: RowIndex) -> ClaimFinding:
    methods = ("rnm-screen", "dp-fw")
    better = [data for data in REAL if _better(index, "real", data, methods, "density")[0]]
    dense = min(_mean(index, "real", data, "dp-fw", "density") for data in REAL)
    text = f"On {len(better)} of {len(REAL)} sets; the density of DP-FW is at least {dense:.3f}."
    numbers = {"sets": float(len(better)), "dp-fw": dense}
    return ClaimFinding(len(better) == len(REAL), text, numbers)


@_claim("more-iterations")
def _more_iterations(index: RowIndex) -> ClaimFinding:
    methods = ("real", "rnm-screen-longer"), ("real", "rnm-screen")
    f1, density = (_changes(index, metric, *methods) for metric in ("f1", "density"))
    denser = [data for data in REAL if density[data] > 0]
    steady = [data for data in REAL[:-1] if abs(f1[data]) <= 0.05]
    blog = f1["blogfeedback"]
    text = (
        f"With three times the iterations density rises on {len(denser)} of {len(REAL)} sets, F1 "
        f"changes by at most .05 on {len(steady)} of the {len(REAL) - 1} smaller ones and by "
        f"{blog:+.3f} on BlogFeedback."
    )
    holds = len(denser) == len(REAL) and len(steady) == len(REAL) - 1 and blog > 0
    changes = (("f1", f1), ("density", density))
    numbers = {f"{name} {data}": change[data] for data in REAL for name, change in changes}
    return ClaimFinding(holds, text, numbers)


@_claim("learning-on-larger-sets")
def _learning(index: RowIndex) -> ClaimFinding:
    numbers = {
        data: _curve_mean(index, "real", data, "rnm-screen", "mse", -1)
        / _curve_mean(index, "real", data, "rnm-screen", "mse", 0)
        for data in REAL
    }
    falling = [data for data in WIDE if numbers[data] < 1]
    text = (
        f"The MSE at the end is below that of the first iteration on {len(falling)} of {len(WIDE)}."
    )
    return ClaimFinding(len(falling) == len(WIDE), text, numbers)


@_claim("r2-definition")
def _r2_definition(index: RowIndex) -> ClaimFinding:
    compared = check_r2(index.all_rows())
    if not compared:
        raise NotRunError("rnm-screen on real data")
    unchosen = sum(check.fits == "unchosen" for check in compared)
    text = (
        f"The regression to all unchosen features is nearer to the printed value in {unchosen} of "
        f"{len(compared)} cells, the one that the text defines in {len(compared) - unchosen}."
    )
    return ClaimFinding(unchosen < len(compared) / 2, text, {"unchosen": float(unchosen)})


@_claim("np-fw-unchanged-by-screening")
def _unchanged_by_screening(index: RowIndex) -> ClaimFinding:
    numbers = {}
    for rule in ("np-fw-safe", "np-fw-published-rule"):
        for metric in ("f1", "mse"):
            changes = _changes(index, metric, ("real", rule), ("real", "np-fw"))
            numbers[f"{rule} {metric}"] = max(map(abs, changes.values()))
    safe_f1, safe_mse, printed_f1, printed_mse = numbers.values()
    text = (
        f"The safe rule changes F1 by at most {safe_f1:.3f} and MSE by at most {safe_mse:.3f}; "
        f"Eq. 1 as printed by {printed_f1:.3f} and {printed_mse:.3f}."
    )
    return ClaimFinding(max(numbers.values()) < 0.0005, text, numbers)


@_claim("np-fw-best")
def _np_fw_best(index: RowIndex) -> ClaimFinding:
    others = ("preselect-k-fw", "oracle-k-fw", "rnm-screen")
    f1, mse = (
        [_changes(index, metric, ("real", "np-fw"), ("real", other)) for other in others]
        for metric in ("f1", "mse")
    )
    best = [
        data
        for data in REAL
        if min(more[data] for more in f1) >= 0 and max(more[data] for more in mse) <= 5e-4
    ]
    text = f"Best in F1 and in MSE on {len(best)} of {len(REAL)} sets."
    return ClaimFinding(len(best) == len(REAL), text, {"sets": float(len(best))})


@_claim("low-dimensional-data")
def _low_dimensional(_index: RowIndex) -> ClaimFinding:
    wide = [
        name for name in REAL if published_data()[name].n_rows < published_data()[name].n_features
    ]
    return ClaimFinding(True, f"{len(wide)} of {len(REAL)} sets have fewer rows than features.")


# Without the Yeo-Johnson transform, Appendix E.


@_claim("ablation-r2")
def _ablation_r2(index: RowIndex) -> ClaimFinding:
    suites = ("ablation", "rnm-screen"), ("real", "rnm-screen")
    changes = _changes(index, "r2_unchosen", *suites)
    lower = [data for data in REAL if changes[data] < 0]
    text = f"Lower on {len(lower)} of {len(REAL)} sets ({', '.join(lower)})."
    return ClaimFinding(set(REAL) - set(lower) == {"blogfeedback"}, text, changes)


@_claim("ablation-f1")
def _ablation_f1(index: RowIndex) -> ClaimFinding:
    changes = _changes(index, "f1", ("ablation", "rnm-screen"), ("ablation", "oracle-k-fw"))
    higher = [data for data in REAL if changes[data] > 0]
    count = f"{len(higher)} of {len(REAL)} sets{_sets(higher)}"
    text = f"RNM-Screen's F1 is the higher one on {count}."
    return ClaimFinding(not higher, text, changes)


@_claim("one-screened-per-iteration")
def _one_per_iteration(index: RowIndex) -> ClaimFinding:
    numbers = {}
    for suite, sets in (("synthetic", SYNTHETIC), ("real", REAL)):
        for data in sets:
            screened = _mean(index, suite, data, "rnm-screen", "screened")
            numbers[data] = screened / published_data()[data].n_iter
    least = min(numbers.values())
    return ClaimFinding(least > 0.999, f"At least {least:.3f} a round, on average.", numbers)


# Mathematics: no rows needed.


@_claim("theorem-1")
def _theorem1(_index: RowIndex) -> ClaimFinding:
    radius, n_rows = 50.0, 3000
    published = sensitivity.published_screening_score(radius=radius, n_rows=n_rows)
    exact = sensitivity.screening_score(radius=radius, n_rows=n_rows)
    text = f"At λ = 50, n = 3000: printed {published:.3g}, attained {exact:.4g} (erratum E2)."
    return ClaimFinding(False, text, {"published": published, "exact": exact})


@_claim("lipschitz-constant")
def _lipschitz(_index: RowIndex) -> ClaimFinding:
    bound = sensitivity.residual_bound(radius=50.0, target_bound=50.0)
    return ClaimFinding(False, f"It is 2λ: {bound:.0f} at λ = 50 (erratum E1).", {"exact": bound})


@_claim("rnm-privacy")
@_claim("adp-privacy")
def _privacy(_index: RowIndex) -> ClaimFinding:
    return ClaimFinding(False, "Its sensitivities are too small (errata E1 and E2).")


@_claim("theorem-2-many-iterations")
def _theorem2_iterations(index: RowIndex) -> ClaimFinding:
    settled = [found for found in check_theorem2(index.all_rows()) if found.settled]
    if not settled:
        raise NotRunError("the uniform process")
    corrected = max(abs(found.simulated.mean / found.corrected_limit - 1) for found in settled)
    published = max(abs(found.simulated.mean / found.published_limit - 1) for found in settled)
    text = (
        f"The simulation is within {corrected:.2%} of d(d−1)/(2d−1) and up to {published:.0%} off "
        "the printed limit (erratum E6)."
    )
    return ClaimFinding(published <= 0.02, text, {"corrected": corrected, "published": published})


@_claim("theorem-2-many-features")
def _theorem2_features(index: RowIndex) -> ClaimFinding:
    found = max(check_theorem2(index.all_rows()), key=lambda one: one.n_features, default=None)
    if found is None:
        raise NotRunError("the uniform process")
    simulated, T = found.simulated, found.n_iter
    text = (
        f"d = {found.n_features}, T = {T}: {simulated.mean:.2f} ± {simulated.standard_error:.2f} "
        f"nonzeros; the corrected expression gives {found.corrected:.2f}, the printed limit is "
        f"{T - 1}, the printed expression gives {found.published:.1f}."
    )
    near = abs(simulated.mean - (T - 1)) <= STANDARD_ERRORS * simulated.standard_error
    return ClaimFinding(near and math.isclose(found.published, T - 1, rel_tol=0.02), text)


def check_claims(rows: Iterable[TrialRow]) -> tuple[ClaimCheck, ...]:
    """Check every claim, in the order of `published_claims`."""
    index = RowIndex(rows)
    return tuple(
        ClaimCheck(**vars(claim), **_checked(key, index)._asdict())
        for key, claim in published_claims().items()
    )


def _checked(key: str, index: RowIndex) -> ClaimFinding:
    try:
        return CHECKS[key](index)
    except NotRunError as error:
        return ClaimFinding(None, f"Not run: {error}.")
