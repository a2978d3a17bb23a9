import pytest
from printed_rows import row

from dpscreen.paper.figures import figure_panels
from dpscreen.paper.published import published_data, published_figures


def rows(suite, data, method, series, values):
    return [
        row(suite, data, method, trial, series={"iteration": [1, 2], series: value})
        for trial, value in enumerate(values)
    ]


def test_a_curve_is_the_mean_with_two_standard_errors():
    (panel,) = figure_panels(rows("real", "housing", "rnm-screen", "mse", [[1, 3], [3, 3]]), 2)
    (curve,) = panel.curves
    assert (panel.name, panel.label) == ("housing", "Housing")
    assert (curve.label, curve.method, curve.series) == ("RNM-Screen", "rnm-screen", "mse")
    assert curve.x == (1.0, 2.0)
    assert curve.mean == (2.0, 3.0)
    assert curve.low == pytest.approx((0.0, 3.0))
    assert curve.high == pytest.approx((4.0, 3.0))


def test_one_trial_has_no_band():
    (panel,) = figure_panels(rows("real", "housing", "rnm-screen", "mse", [[1, 3]]), 2)
    assert panel.curves[0].low == panel.curves[0].mean == panel.curves[0].high


def test_panels_come_in_the_papers_order():
    everything = [
        *(
            r
            for name in published_data()
            for r in rows("real", name, "rnm-screen", "mse", [[1, 2]])
        ),
        *(
            r
            for method in ("adp-screen", "adp-screen-50th", "adp-screen-last")
            for r in rows("adp", "uncorrelated", method, "kept_true", [[1, 0]])
        ),
    ]
    for number in (2, 3):
        names = [panel.name for panel in figure_panels(everything, number)]
        assert names == published_figures()[number].panels


def test_figure_1_has_four_curves_in_each_panel():
    some = [
        r
        for data in ("uncorrelated", "correlated")
        for method in ("rnm-screen", "adp-screen")
        for r in [
            row("synthetic", data, method,
                series={"iteration": [1], "kept_true": [1.0], "kept_false": [0.5]})
        ]
    ]  # fmt: skip
    panels = figure_panels(some, 1)
    assert [panel.name for panel in panels] == ["uncorrelated", "correlated"]
    assert [c.label for c in panels[0].curves] == published_figures()[1].series


def test_figure_4_compares_wolfe_gaps():
    some = [
        r
        for method in ("np-fw-rule", "dp-fw-rule")
        for r in rows("adp", "uncorrelated", method, "wolfe_gap", [[2, 1]])
    ]
    (panel,) = figure_panels(some, 4)
    assert [curve.method for curve in panel.curves] == ["dp-fw-rule", "np-fw-rule"]


def test_without_rows_there_are_no_panels():
    assert all(figure_panels([], number) == () for number in (1, 2, 3, 4))
