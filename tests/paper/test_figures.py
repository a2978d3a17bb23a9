"""Figures: means with bands, valid files from stored rows, curves that differ without colour."""

import xml.etree.ElementTree as ElementTree

import pytest
from matplotlib.image import imread
from study_rows import row

from dpscreen._core.pictures import COLOURS
from dpscreen.paper.agreement import RowIndex
from dpscreen.paper.figures import NUMBERS, figure_panels, figure_view, write_figure
from dpscreen.paper.published import label, published_data, published_figures

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("number", NUMBERS)
def test_a_figure_is_valid_png_and_svg_and_stands_in_the_page(written, report, number):
    height, width, _ = imread(written / "figures" / f"figure{number}.png").shape
    assert width > 600
    assert height > 300
    root = ElementTree.parse(written / "figures" / f"figure{number}.svg").getroot()
    assert root.tag == f"{SVG}svg"
    assert len(root.findall(f".//{SVG}path")) > 10
    view = figure_view(number, report.index)
    ElementTree.fromstring(view["svg"])
    assert not any(colour in view["svg"] for colour in COLOURS)
    curves = sum(len(panel.curves) for panel in figure_panels(report.index, number))
    assert view["words"].count("at iteration 40") == curves


def panels_of(rows, number):
    return figure_panels(RowIndex(rows), number)


def test_a_curve_is_the_mean_with_two_standard_errors():
    place = ("real", "housing", "rnm-screen")
    rows = [
        row(*place, trial, series={"iteration": [1, 2], "mse": mse})
        for trial, mse in enumerate([[1, 3], [3, 3]])
    ]
    (panel,) = panels_of(rows, 2)
    (curve,) = panel.curves
    assert (panel.label, curve.label) == ("Housing", "RNM-Screen")
    assert (curve.x, curve.mean) == ([1, 2], [2, 3])
    assert curve.low == pytest.approx([0, 3])
    assert curve.high == pytest.approx([4, 3])
    (panel,) = panels_of(rows[:1], 2)
    assert panel.curves[0].low == panel.curves[0].mean == panel.curves[0].high


def test_panels_and_curves_come_in_the_papers_order(rows):
    assert [one.label for one in panels_of(rows, 1)[0].curves] == published_figures()[1].series
    (panel,) = panels_of(rows, 4)
    assert [curve.label for curve in panel.curves] == ["DP-FW, Eq. 1", "NP-FW, Eq. 1", "NP-FW"]
    some = [one for one in rows if one.data not in ("housing", "correlated")]
    for number in NUMBERS:
        names = published_figures()[number].panels
        shown = {name: label(name) if name in published_data() else name for name in names}
        assert [panel.label for panel in panels_of(rows, number)] == list(shown.values())
        left = [shown[one] for one in names if one not in ("housing", "correlated")]
        assert [panel.label for panel in panels_of(some, number)] == left
        assert figure_view(number, RowIndex(()))["svg"] == ""


@pytest.mark.parametrize("number", NUMBERS)
def test_curves_of_a_figure_differ_without_colour_and_mean_the_same_in_every_panel(report, number):
    looks = {}
    for panel in figure_panels(report.index, number):
        drawn = [(curve.colour, curve.dash) for curve in panel.curves]
        assert len(set(drawn)) == len(drawn)
        for colour, _ in drawn:
            dashes = [dash for other, dash in drawn if other == colour]
            assert len(set(dashes)) == len(dashes)
        for curve in panel.curves:
            looks.setdefault(curve.label, (curve.colour, curve.dash))
            assert looks[curve.label] == (curve.colour, curve.dash)


def test_a_file_is_the_same_when_drawn_again_and_pyplot_is_left_alone(report, written, tmp_path):
    import matplotlib
    from matplotlib import _pylab_helpers

    before, managers = dict(matplotlib.rcParams), _pylab_helpers.Gcf.get_all_fig_managers()
    write_figure(1, RowIndex(()), tmp_path)
    write_figure(4, report.index, tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["figure4.png", "figure4.svg"]
    for name in names:
        assert (tmp_path / name).read_bytes() == (written / "figures" / name).read_bytes()
    assert dict(matplotlib.rcParams) == before
    assert _pylab_helpers.Gcf.get_all_fig_managers() == managers  # others' figures may be open
