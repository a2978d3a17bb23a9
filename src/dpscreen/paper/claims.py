"""The claims about synthetic data and about mathematics, one function for each reading.

Those about real data are in `real_claims`; `check_claims` judges all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from dpscreen.paper.agreement import (
    STANDARD_ERRORS,
    ControlCheck,
    RowIndex,
    check_control,
    check_theorem2,
    mean_of,
)
from dpscreen.paper.findings import (
    LITTLE,
    REAL,
    Checks,
    ClaimCheck,
    JudgedReading,
    NotRunError,
    Outcome,
    better,
    by_label,
    curve_mean,
    mean,
    spoken,
)
from dpscreen.paper.published import label, published_claims, published_data
from dpscreen.paper.real_claims import REAL_CHECKS
from dpscreen.paper.results import TrialRow
from dpscreen.paper.suites import EXPERIMENT_A, EXPERIMENT_B, FIGURE_3, RULES, SYNTHETIC
from dpscreen.privacy import sensitivity

CHECKS = Checks(REAL_CHECKS)
reads = CHECKS.reads

APART = 0.1
"""By how much TPR must exceed FPR for a method to tell nonzeros from zeros."""
FEW_NONZEROS = 10
NEARLY_ALL = 0.99


def check_claims(rows: Iterable[TrialRow]) -> tuple[ClaimCheck, ...]:
    """Check every claim, in the order of `published_claims`."""
    index = RowIndex(rows)
    return tuple(
        ClaimCheck(
            **vars(claim),
            judged=tuple(
                JudgedReading(one.reading, one.run, _outcome(check, index))
                for one, check in zip(claim.readings, CHECKS[key], strict=True)
            ),
        )
        for key, claim in published_claims().items()
    )


def _outcome(check: Callable[[RowIndex], Outcome], index: RowIndex) -> Outcome:
    try:
        return check(index)
    except NotRunError as error:
        return Outcome(None, f"Not run: {error}.")


# Synthetic data, Section 5.1.


@reads(
    "nonprivate-screening",
    *({"suite": suite, "rule": rule} for suite in ("adp", "synthetic") for rule in RULES[:3]),
)
def _nonprivate_screening(index: RowIndex, suite: str, rule: str) -> Outcome:
    tpr, fpr = (mean(index, suite, "uncorrelated", rule, name) for name in ("tpr", "fpr"))
    plain = mean(index, suite, "uncorrelated", "np-fw", "tpr")
    single = index.values(suite, "uncorrelated", rule, "tpr").values()
    text = (
        f"{tpr:.0%} of the true nonzeros (in single trials {min(single):.0%} to {max(single):.0%}) "
        f"and {fpr:.1%} of the true zeros are nonzero; without a rule {plain:.0%} of the true "
        "nonzeros are."
    )
    if rule != RULES[0]:
        screened = mean(index, suite, "uncorrelated", rule, "screened")
        text += f" It leaves out {screened:.0f} of the 600 features."
    return Outcome(abs(tpr - 0.55) <= LITTLE and fpr <= 0.001, text)


@reads("rnm-better-f1-than-adp")
def _rnm_better_than_adp(index: RowIndex) -> Outcome:
    methods = ("rnm-screen", "adp-screen")
    tests = {data: better(index, "synthetic", data, methods, "f1") for data in SYNTHETIC}
    found = "; ".join(
        f"{label(data).lower()} {_f1(index, data, methods[0]):.3f} against "
        f"{_f1(index, data, methods[1]):.3f}, p = {p:.2g}"
        for data, (_, p) in tests.items()
    )
    return Outcome(all(ahead for ahead, _ in tests.values()), f"F1: {found}.")


def _f1(index: RowIndex, data: str, method: str) -> float:
    return mean(index, "synthetic", data, method, "f1")


@reads("rnm-discriminates")
def _rnm_discriminates(index: RowIndex) -> Outcome:
    gaps = {
        (method, data): mean(index, "synthetic", data, method, "tpr")
        - mean(index, "synthetic", data, method, "fpr")
        for method in ("rnm-screen", "adp-screen")
        for data in SYNTHETIC
    }
    shown = ", ".join(
        f"{spoken(method)} {gap:.3f} on {data} data" for (method, data), gap in gaps.items()
    )
    holds = all((gap > APART) is (method == "rnm-screen") for (method, _), gap in gaps.items())
    return Outcome(holds, f"TPR − FPR at the end: {shown}.")


@reads("rnm-discriminates")
def _rule_discriminates(index: RowIndex) -> Outcome:
    found = [one for one in check_control(index.all_rows()) if one.metric == "f1"]
    if len(found) < len(SYNTHETIC):
        raise NotRunError("zeroing at random")
    shown = "; ".join(map(_against_chance, found))
    ahead = [one.difference.mean > STANDARD_ERRORS * one.difference.standard_error for one in found]
    return Outcome(all(ahead), f"F1 with the rule and with zeroing at random: {shown}.")


def _against_chance(one: ControlCheck) -> str:
    return (
        f"{label(one.data).lower()} {one.screened.mean:.3f} and {one.control.mean:.3f}, difference "
        f"{one.difference.mean:+.3f} ± {one.difference.standard_error:.3f}"
    )


@reads("rnm-less-sparse-than-adp")
def _less_sparse(index: RowIndex) -> Outcome:
    found = {
        data: [
            mean(index, "synthetic", data, name, "density") for name in ("rnm-screen", "adp-screen")
        ]
        for data in SYNTHETIC
    }
    shown = ", ".join(
        f"{ours:.3f} against {theirs:.3f} on {data} data" for data, (ours, theirs) in found.items()
    )
    return Outcome(all(ours > theirs for ours, theirs in found.values()), f"Density {shown}.")


@reads("correlated-features-help", {"method": "rnm-screen"}, {"method": "adp-screen"})
def _correlated_help(index: RowIndex, method: str) -> Outcome:
    without, with_ = (_f1(index, data, method) for data in SYNTHETIC)
    text = f"F1 {without:.3f} on uncorrelated, {with_:.3f} on correlated data."
    return Outcome(with_ > without + LITTLE, text)


@reads("correlated-features-help")
def _correlated_help_the_rule(index: RowIndex) -> Outcome:
    ours, chance = (
        _f1(index, "correlated", method) - _f1(index, "uncorrelated", method)
        for method in ("rnm-screen", "uniform-zeroing")
    )
    text = f"F1 gains {ours:.3f} with the rule and {chance:.3f} with zeroing at random."
    return Outcome(ours > chance + LITTLE, text)


# Appendix C.


@reads("adp-overscreens")
def _overscreens(index: RowIndex) -> Outcome:
    d = published_data()["uncorrelated"].n_features
    left = d * mean(index, "adp", "uncorrelated", "adp-screen", "density")
    return Outcome(left <= FEW_NONZEROS, f"{left:.1f} of {d} coefficients are nonzero at the end.")


@reads("adp-no-discrimination")
def _adp_apart(index: RowIndex) -> Outcome:
    kept = _kept(index, FIGURE_3)
    return Outcome(all(true - false <= APART for true, false in kept.values()), _kept_text(kept))


@reads("adp-no-discrimination")
def _adp_differs(index: RowIndex) -> Outcome:
    found = {}
    for method in FIGURE_3:
        true, false = (
            index.values("adp", "uncorrelated", method, metric) for metric in ("tpr", "fpr")
        )
        gap = mean_of(true[trial] - false[trial] for trial in true)
        if gap is None:
            raise NotRunError(spoken(method))
        found[method] = gap
    shown = "; ".join(
        f"{spoken(method)} {gap.mean:+.3f} ± {gap.standard_error:.3f}"
        for method, gap in found.items()
    )
    same = [gap.mean <= STANDARD_ERRORS * gap.standard_error for gap in found.values()]
    return Outcome(all(same), f"TPR − FPR: {shown}.")


@reads("experiment-a")
def _experiment_a(index: RowIndex) -> Outcome:
    plain, other = (
        {method: mean(index, "adp", data, method, "screened") for method in EXPERIMENT_A}
        for data in SYNTHETIC
    )
    shown = "; ".join(f"{spoken(name)} {count:.1f}" for name, count in plain.items())
    text = (
        f"Coordinates set to zero in a run, each time counted: {shown}. On correlated data, of "
        f"which the paper does not speak, up to {max(other.values()):.0f}."
    )
    return Outcome(not any(plain.values()), text)


@reads("experiment-b")
def _experiment_b(index: RowIndex) -> Outcome:
    kept = _kept(index, EXPERIMENT_B[1:2])
    ((true, false),) = kept.values()
    return Outcome(abs(true - 0.1) <= LITTLE and false <= 0.005, _kept_text(kept))


@reads("experiment-b", {"place": 0}, {"place": -1})
def _experiment_b_as_figure_3(index: RowIndex, place: int) -> Outcome:
    kept = _kept(index, (EXPERIMENT_B[place], FIGURE_3[place]))
    ours, figure = kept.values()
    near = all(abs(a - b) <= LITTLE for a, b in zip(ours, figure, strict=True))
    return Outcome(near, _kept_text(kept))


def _kept(index: RowIndex, methods: Iterable[str]) -> dict[str, tuple[float, float]]:
    """The fractions of true nonzeros and of true zeros that are nonzero at the end."""
    return {
        method: (
            mean(index, "adp", "uncorrelated", method, "tpr"),
            mean(index, "adp", "uncorrelated", method, "fpr"),
        )
        for method in methods
    }


def _kept_text(kept: Mapping[str, tuple[float, float]]) -> str:
    shown = "; ".join(f"{spoken(m)} {true:.3f} / {false:.3f}" for m, (true, false) in kept.items())
    return f"True nonzeros / true zeros left nonzero: {shown}."


@reads("wolfe-gap")
def _wolfe_gap(index: RowIndex) -> Outcome:
    private, rule, plain = (
        curve_mean(index, "adp", "uncorrelated", method, "wolfe_gap", -1)
        for method in ("dp-fw-rule", "np-fw-rule", "np-fw")
    )
    text = (
        f"At the last iteration {private:.3f} with private optimisation and {rule:.3f} without; "
        f"{plain:.3f} with neither noise nor screening."
    )
    return Outcome(private > max(rule, plain), text)


@reads("one-screened-per-iteration", {"least": 1.0}, {"least": NEARLY_ALL})
def _one_per_iteration(index: RowIndex, least: float) -> Outcome:
    shares = {}
    for suite, sets in (("synthetic", SYNTHETIC), ("real", REAL)):
        for data in sets:
            screened = mean(index, suite, data, "rnm-screen", "screened")
            shares[data] = screened / published_data()[data].n_iter
    fewest = min(shares, key=shares.__getitem__)
    always = sum(share == 1 for share in shares.values())
    text = (
        f"In every round on {always} of {len(shares)} sets; least often on {label(fewest)}, in "
        f"{shares[fewest]:.2%} of the rounds."
    )
    return Outcome(shares[fewest] >= least, text, by_label(shares))


# Mathematics: no rows needed.


@reads("theorem-1")
def _theorem1(_index: RowIndex) -> Outcome:
    radius, n_rows = 50.0, 3000
    published = sensitivity.published_screening_score(radius=radius, n_rows=n_rows)
    exact = sensitivity.screening_score(radius=radius, n_rows=n_rows)
    text = f"At λ = 50, n = 3000: printed {published:.3g}, attained {exact:.4g} (erratum E2)."
    return Outcome(False, text, {"printed": published, "attained": exact})


@reads("lipschitz-constant")
def _lipschitz(_index: RowIndex) -> Outcome:
    bound = sensitivity.residual_bound(radius=50.0, target_bound=50.0)
    return Outcome(False, f"It is 2λ: {bound:.0f} at λ = 50 (erratum E1).")


@reads("rnm-privacy")
@reads("adp-privacy")
def _privacy(_index: RowIndex) -> Outcome:
    return Outcome(False, "Its sensitivities are too small (errata E1 and E2).")


@reads("theorem-2-many-iterations")
def _theorem2_iterations(index: RowIndex) -> Outcome:
    settled = [found for found in check_theorem2(index.all_rows()) if found.settled]
    if not settled:
        raise NotRunError("the uniform process")
    corrected = max(abs(found.simulated.mean / found.corrected_limit - 1) for found in settled)
    published = max(abs(found.simulated.mean / found.published_limit - 1) for found in settled)
    text = (
        f"The simulation is within {corrected:.2%} of d(d−1)/(2d−1) and up to {published:.0%} off "
        "the printed limit (erratum E6)."
    )
    return Outcome(published <= 0.02, text, {"corrected": corrected, "printed": published})


@reads("theorem-2-many-features")
def _theorem2_features(index: RowIndex) -> Outcome:
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
    return Outcome(near and math.isclose(found.published, T - 1, rel_tol=0.02), text)
