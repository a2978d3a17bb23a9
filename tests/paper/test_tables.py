"""Every printed number is in a table, beside ours, and differences show."""

import dataclasses
from types import SimpleNamespace

import pytest
from study_rows import made_up_rows

from dpscreen.paper import tables
from dpscreen.paper.methods import proven_names
from dpscreen.paper.metrics import SignTest
from dpscreen.paper.published import published_cells
from dpscreen.paper.report import Report

TABLES = range(1, 6)


def changed(rows, suite, data, method, **metrics):
    """Return the rows with some metrics of one method replaced."""
    return tuple(
        dataclasses.replace(row, metrics={**row.metrics, **metrics})
        if (row.suite, row.data, row.method) == (suite, data, method)
        else row
        for row in rows
    )


def entries(grid, kind):
    found = []
    for section in grid.sections:
        for _, numbers in section.lines:
            found += [number for number in numbers if number.kind == kind]
    return found


@pytest.mark.parametrize("table", TABLES)
def test_a_table_holds_every_printed_cell_beside_ours_and_the_proven(report, table):
    grid, cells = report.grids[f"table{table}"], published_cells(table)
    printed = sorted((entry.text, entry.strong) for entry in entries(grid, "printed"))
    assert printed == sorted((f"{cell.value:.3f}", cell.bold) for cell in cells)
    assert len(entries(grid, "here")) == len(cells)
    lines = [line for section in grid.sections for line in section.lines]
    metrics = [line for line in lines if line[0] != "iterations T"]
    assert len(lines) - len(metrics) == len(grid.sections)
    assert len(entries(grid, "proven")) == len(metrics) * len(proven_names())
    assert all(len(numbers) == len(grid.headings) for _, numbers in lines)


def test_a_cell_that_differs_is_marked_and_explained(rows):
    report = Report(changed(rows, "synthetic", "uncorrelated", "rnm-screen", f1=0.9, tpr=0.2))
    grid = report.grids["table1"]
    assert sum(bool(entry.mark) for entry in entries(grid, "here")) == 2
    explained, unexplained = sorted(grid.notes, key=lambda note: not note.explained)
    assert "single run" in explained.reason
    assert unexplained.reason == "No reason is known."
    assert [detail.split(":")[0] for detail in unexplained.details] == [
        "Uncorrelated, F1 of RNM-Screen"
    ]


def test_a_missing_data_set_leaves_dashes_and_the_rest(report):
    partial = Report(made_up_rows(without=("housing",)))
    grid = partial.grids["table2"]
    by_title = {section.title: section for section in grid.sections}
    ours = [numbers[1].text for _, numbers in by_title["Housing"].lines]
    assert by_title["Housing"].detail.startswith("n = 506, d = 13, K = 4")
    assert set(ours) == {"–"}
    assert all("–" not in numbers[1].text for _, numbers in by_title["Abalone"].lines)
    assert any("Housing" in remark for remark in grid.remarks)
    assert partial.narrow.not_run == 4 * 3  # three counted cells in each of four tables
    assert partial.summary.not_run == 5 + 8 + 3 + 6
    assert report.summary.not_run == 0


def test_without_rows_only_the_printed_numbers_are_left():
    empty = Report(())
    assert all(
        entry.text == "–" for grid in empty.grids.values() for entry in entries(grid, "here")
    )
    assert len(empty.grids) == 6
    assert empty.most_trials == 0
    assert len(empty.errata) == 11


def test_the_bold_type_is_compared_only_with_enough_trials(rows, report):
    assert any("fewer than 6 trials" in remark for remark in report.grids["table2"].remarks)
    many = Report(made_up_rows(trials=8)).grids["table2"]
    assert any("agrees with the printed type in" in remark for remark in many.remarks)
    cell = SimpleNamespace(sign=SignTest(8, 0), cell=SimpleNamespace(bold=True))
    assert tables._agreement_with_bold([cell] * 3).endswith("printed type in 3 of 3 cells.")
