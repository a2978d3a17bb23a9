"""Figures: valid files from stored rows, curves told apart without colour."""

import struct
import xml.etree.ElementTree as ElementTree
import zlib

import pytest

from dpscreen._core.pictures import COLOURS, inline
from dpscreen.paper.figures import (
    NUMBERS,
    Curve,
    Panel,
    _whole,
    figure_panels,
    figure_view,
    in_words,
    looks,
    write_figure,
)
from dpscreen.paper.published import published_figures

SVG = "{http://www.w3.org/2000/svg}"


def png_size(content):
    """Check every chunk of a PNG and return its width and height."""
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    place, kinds = 8, []
    while place < len(content):
        (length,) = struct.unpack(">I", content[place : place + 4])
        kind, end = content[place + 4 : place + 8], place + 8 + length
        (check,) = struct.unpack(">I", content[end : end + 4])
        assert zlib.crc32(content[place + 4 : end]) == check
        kinds.append(kind)
        place = end + 4
    assert kinds[0] == b"IHDR"
    assert kinds[-1] == b"IEND"
    return struct.unpack(">II", content[16:24])


@pytest.mark.parametrize("number", NUMBERS)
def test_figures_are_valid_png_and_svg(written, number):
    width, height = png_size((written / "figures" / f"figure{number}.png").read_bytes())
    assert width > 600
    assert height > 300
    root = ElementTree.parse(written / "figures" / f"figure{number}.svg").getroot()
    assert root.tag == f"{SVG}svg"
    assert len(root.findall(f".//{SVG}path")) > 10


def test_a_place_without_a_panel_stays_empty(rows):
    whole = _whole(3, figure_panels(rows, 3)[:1] * 4)
    assert [axes.get_visible() for axes in whole.axes] == [True] * 4 + [False] * 2


@pytest.mark.parametrize("number", NUMBERS)
def test_a_figure_has_the_panels_of_the_paper(rows, number):
    view = figure_view(number, rows)
    assert len(view.pictures) == len(published_figures()[number].panels)
    for picture in view.pictures:
        ElementTree.fromstring(picture.svg)
        assert not any(colour in picture.svg for colour in COLOURS)
        assert "at iteration 40" in picture.words


def test_a_file_is_the_same_when_drawn_again(rows, written, tmp_path):
    for path in write_figure(4, rows, tmp_path):
        assert path.read_bytes() == (written / "figures" / path.name).read_bytes()


def test_no_rows_no_files(tmp_path):
    assert write_figure(1, (), tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", NUMBERS)
def test_curves_of_a_panel_differ_without_colour(rows, number):
    for panel in figure_panels(rows, number):
        drawn = looks(panel.curves)
        assert len({(look.colour, look.dash) for look in drawn}) == len(drawn)
        for colour in {look.colour for look in drawn}:
            dashes = [look.dash for look in drawn if look.colour == colour]
            assert len(set(dashes)) == len(dashes)


def test_pyplot_is_left_alone(rows, tmp_path):
    import matplotlib
    from matplotlib import _pylab_helpers

    before = dict(matplotlib.rcParams)
    write_figure(3, rows, tmp_path)
    assert dict(matplotlib.rcParams) == before
    assert _pylab_helpers.Gcf.get_all_fig_managers() == []


def test_words_say_where_a_curve_goes():
    curve = Curve("A $x$ <b>", "m", "mse", (1.0, 9.0), (2.0, 1.0), (2.0, 1.0), (2.0, 1.0))
    assert in_words(Panel("p", "P", (curve,))) == (
        "P: A $x$ <b> goes from 2.000 at iteration 1 to 1.000 at iteration 9."
    )


def test_inlined_svg_keeps_labels_and_changes_colours_and_ids():
    text = (
        '<?xml version="1.0"?><!DOCTYPE svg><svg xmlns="http://www.w3.org/2000/svg" width="9pt">'
        '<metadata>x</metadata><style>*{a: b}</style><path id="p" d="M 1.23456 2" '
        'style="fill: #010203; opacity: 0.18"/><use href="#p" clip-path="url(#c)"/>'
        "<text>0.12345</text></svg>"
    )
    assert inline(text, prefix="f", colours={"#010203": "var(--a)"}) == (
        '<svg><path id="f-p" d="M 1.2 2" style="fill: var(--a); opacity: 0.18"/>'
        '<use href="#f-p" clip-path="url(#f-c)"/><text>0.12345</text></svg>'
    )
