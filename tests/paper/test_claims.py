"""Claims, the control and Theorem 2, on rows made up to pass or to fail."""

import pytest
from printed_rows import row, rows_as_printed

from dpscreen.paper.agreement import Estimate, check_control, check_theorem2
from dpscreen.paper.claims import CHECKS, check_claims
from dpscreen.paper.experiments import UniformProcess
from dpscreen.paper.published import published_claims

MATHEMATICS = {"theorem-1", "lipschitz-constant", "rnm-privacy", "adp-privacy"}


def found(rows, key):
    return next(check for check in check_claims(rows) if check.key == key)


def adp_rows(values):
    return [
        row("adp", data, method, metrics=metrics, series=series)
        for (data, method), (metrics, series) in values.items()
    ]


def test_every_claim_has_a_check_and_no_check_lacks_a_claim():
    assert set(CHECKS) == set(published_claims())


def test_without_rows_only_mathematics_is_judged():
    for check in check_claims([]):
        if check.key in MATHEMATICS:
            assert check.holds is False
        elif check.key != "low-dimensional-data":
            assert check.holds is None
            assert check.finding.startswith("Not run")


def test_the_sensitivity_of_theorem_1_is_too_small_by_its_factor():
    numbers = found([], "theorem-1").numbers
    assert numbers["exact"] / numbers["published"] == pytest.approx((3000**0.5 + 1) / 2)


@pytest.mark.parametrize(("kept", "holds"), [(0.57, True), (0.42, False)])
def test_the_55_percent_claim(kept, holds):
    names = ("np-fw-safe", "np-fw-published-rule", "np-fw-rule", "np-fw")
    rows = [
        row("adp", "uncorrelated", name, metrics={"tpr": kept, "fpr": 0.0, "screened": 9})
        for name in names
    ]
    check = found(rows, "nonprivate-screening")
    assert check.holds is holds
    assert f"{kept:.0%} of the true nonzeros" in check.finding


@pytest.mark.parametrize(("screened", "holds"), [(0, True), (1, False)])
def test_experiment_a_holds_if_nothing_is_screened_on_uncorrelated_data(screened, holds):
    rows = [
        row(
            "adp",
            data,
            f"dp-fw-rule{when}",
            metrics={"screened": screened + (data == "correlated")},
        )
        for data in ("uncorrelated", "correlated")
        for when in ("", "-50th", "-last")
    ]
    assert found(rows, "experiment-a").holds is holds


@pytest.mark.parametrize(
    ("true", "false", "holds"), [(0.09, 0, True), (0.3, 0, False), (0.1, 0.1, False)]
)
def test_experiment_b(true, false, holds):
    rows = [
        row("adp", "uncorrelated", f"np-fw-adp{when}", metrics={"tpr": true, "fpr": false})
        for when in ("", "-50th", "-last")
    ]
    assert found(rows, "experiment-b").holds is holds


def test_the_wolfe_gap_is_compared_at_the_end():
    rows = [
        row("adp", "uncorrelated", name, series={"wolfe_gap": [9.0, last]})
        for name, last in (("dp-fw-rule", 0.2), ("np-fw-rule", 0.07), ("np-fw", 0.001))
    ]
    check = found(rows, "wolfe-gap")
    assert check.holds is True
    assert check.numbers == {"dp-fw-rule": 0.2, "np-fw-rule": 0.07, "np-fw": 0.001}


def test_adp_discriminates_if_true_nonzeros_stay_more_often():
    rows = [
        row("adp", "uncorrelated", f"adp-screen{when}", metrics={"tpr": 0.104, "fpr": 0.068})
        for when in ("", "-50th", "-last")
    ]
    assert found(rows, "adp-no-discrimination").holds is False


def test_the_papers_own_tables_against_its_claims():
    """Table 5 contradicts Appendix E on F1; Table 4 bears out what it says of R²."""
    rows = rows_as_printed()
    assert found(rows, "ablation-f1").holds is False
    assert "communities, blogfeedback" in found(rows, "ablation-f1").finding
    assert found(rows, "ablation-r2").holds is True
    assert found(rows, "np-fw-best").holds is True


def test_sign_tests_need_enough_trials():
    def rows(trials):
        return [
            row("synthetic", data, method, trial, metrics={"f1": value})
            for data in ("uncorrelated", "correlated")
            for method, value in (("rnm-screen", 0.3), ("adp-screen", 0.0))
            for trial in range(trials)
        ]

    assert found(rows(5), "rnm-better-f1-than-adp").holds is False
    assert found(rows(6), "rnm-better-f1-than-adp").holds is True


# --- the control ------------------------------------------------------------------------------


def control_rows(shift):
    values = [0.3, 0.32, 0.28, 0.31]
    return [
        row("synthetic", "correlated", method, trial, metrics={"f1": value})
        for method, change in (("rnm-screen", shift), ("uniform-zeroing", 0.0))
        for trial, value in enumerate(v + change * (1 + t % 2) for t, v in enumerate(values))
    ]


def test_the_control_is_compared_trial_by_trial():
    (same,) = check_control(control_rows(0.0))
    assert (same.difference, same.agrees) == (Estimate(0.0, 0.0, 4), True)
    (apart,) = check_control(control_rows(0.1))
    assert apart.difference.mean == pytest.approx(0.15)
    assert apart.difference.standard_error == pytest.approx(0.0288675)
    assert not apart.agrees


def test_without_a_control_there_is_nothing_to_compare():
    assert check_control([]) == ()


# --- Theorem 2 --------------------------------------------------------------------------------


def process_rows(d, T, nonzeros):
    process = UniformProcess(d, T)
    metrics = {"nonzeros": nonzeros, **process.expected()}
    return [
        row(
            "theorem2",
            process.data,
            "uniform-process",
            metrics=metrics,
            settings=process.settings(),
        )
    ]


def test_theorem_2_is_judged_by_its_limit():
    exact = 600 * 599 / 1199
    (close,) = check_theorem2(process_rows(600, 6000, exact * 1.01))
    (far,) = check_theorem2(process_rows(600, 6000, exact * 1.03))
    assert close.settled
    assert close.relative_error == pytest.approx(0.01, abs=1e-3)
    assert far.relative_error == pytest.approx(0.03, abs=1e-3)
    check = found(process_rows(600, 6000, exact), "theorem-2-many-iterations")
    assert check.holds is False
    assert check.numbers["corrected"] < 1e-3
    assert check.numbers["published"] == pytest.approx(0.5, abs=0.01)


def test_few_rounds_are_not_settled():
    (found_,) = check_theorem2(process_rows(10_000, 50, 49.75))
    assert not found_.settled
    assert abs(found_.relative_error) < 0.02
