"""Figures: means with bands, valid files from stored rows, curves that differ without colour."""

import xml.etree.ElementTree as ElementTree

import pytest
from matplotlib.image import imread
from study_rows import row

from dpscreen.paper.figures import (
    NUMBERS,
    figure_panels,
)

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("number", NUMBERS)
def test_figures_are_valid_png_and_svg(written, number):
    height, width, _ = imread(written / "figures" / f"figure{number}.png").shape
    assert width > 600
    assert height > 300
    root = ElementTree.parse(written / "figures" / f"figure{number}.svg").getroot()
    assert root.tag == f"{SVG}svg"
    assert len(root.findall(f".//{SVG}path")) > 10


def curve_rows(suite, data, method, values):
    return [
        row(suite, data, method, trial, series={"iteration": [1, 2], **series})
        for trial, series in enumerate(values)
    ]


def test_a_curve_is_the_mean_with_two_standard_errors():
    trials = [{"mse": [1, 3]}, {"mse": [3, 3]}]
    (panel,) = figure_panels(curve_rows("real", "housing", "rnm-screen", trials), 2)
    (curve,) = panel.curves
    assert (panel.name, panel.label) == ("housing", "Housing")
    assert (curve.label, curve.method, curve.series) == ("RNM-Screen", "rnm-screen", "mse")
    assert (curve.x, curve.mean) == ((1.0, 2.0), (2.0, 3.0))
    assert curve.low == pytest.approx((0.0, 3.0))
    assert curve.high == pytest.approx((4.0, 3.0))
    (panel,) = figure_panels(curve_rows("real", "housing", "rnm-screen", trials[:1]), 2)
    assert panel.curves[0].low == panel.curves[0].mean == panel.curves[0].high
