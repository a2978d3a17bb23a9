"""Figures: means with bands, valid files from stored rows, curves that differ without colour."""

import xml.etree.ElementTree as ElementTree

import pytest
from matplotlib.image import imread
from study_rows import row

from dpscreen._core.pictures import COLOURS
from dpscreen.paper.figures import (
    NUMBERS,
    figure_panels,
    figure_view,
    looks,
    write_figure,
)
from dpscreen.paper.published import label, published_data, published_figures

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
    assert panel.label == "Housing"
    assert (curve.label, curve.method, curve.series) == ("RNM-Screen", "rnm-screen", "mse")
    assert (curve.x, curve.mean) == ((1.0, 2.0), (2.0, 3.0))
    assert curve.low == pytest.approx((0.0, 3.0))
    assert curve.high == pytest.approx((4.0, 3.0))
    (panel,) = figure_panels(curve_rows("real", "housing", "rnm-screen", trials[:1]), 2)
    assert panel.curves[0].low == panel.curves[0].mean == panel.curves[0].high


def test_curves_come_in_the_papers_order(rows):
    panels = figure_panels(rows, 1)
    assert [curve.label for curve in panels[0].curves] == published_figures()[1].series
    (panel,) = figure_panels(rows, 4)
    assert [curve.method for curve in panel.curves] == ["dp-fw-rule", "np-fw-rule", "np-fw"]
    some = [one for one in rows if one.data not in ("housing", "correlated")]
    for number in NUMBERS:
        names = published_figures()[number].panels
        shown = {name: label(name) if name in published_data() else name for name in names}
        assert [panel.label for panel in figure_panels(rows, number)] == list(shown.values())
        left = [shown[one] for one in names if one not in ("housing", "correlated")]
        assert [panel.label for panel in figure_panels(some, number)] == left
        assert figure_panels([], number) == ()


@pytest.mark.parametrize("number", NUMBERS)
def test_a_figure_has_the_panels_of_the_paper(rows, number):
    view = figure_view(number, rows)
    assert len(view["pictures"]) == len(published_figures()[number].panels)
    for picture in view["pictures"]:
        ElementTree.fromstring(picture["svg"])
        assert not any(colour in picture["svg"] for colour in COLOURS)
        assert "at iteration 40" in picture["words"]


@pytest.mark.parametrize("number", NUMBERS)
def test_curves_of_a_panel_differ_without_colour(rows, number):
    for panel in figure_panels(rows, number):
        drawn = looks(panel.curves)
        assert len({(look.colour, look.dash) for look in drawn}) == len(drawn)
        for colour in {look.colour for look in drawn}:
            dashes = [look.dash for look in drawn if look.colour == colour]
            assert len(set(dashes)) == len(dashes)


def test_a_file_is_the_same_when_drawn_again_and_pyplot_is_left_alone(rows, written, tmp_path):
    import matplotlib
    from matplotlib import _pylab_helpers

    before, managers = dict(matplotlib.rcParams), _pylab_helpers.Gcf.get_all_fig_managers()
    assert write_figure(1, (), tmp_path) == []
    for path in write_figure(4, rows, tmp_path):
        assert path.read_bytes() == (written / "figures" / path.name).read_bytes()
    assert len(list(tmp_path.iterdir())) == 2
    assert dict(matplotlib.rcParams) == before
    assert _pylab_helpers.Gcf.get_all_fig_managers() == managers  # others' figures may be open
