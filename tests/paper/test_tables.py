"""Every printed number is on the page and in the Markdown, beside ours, and differences show."""

import pytest

from dpscreen.paper.methods import proven_names
from dpscreen.paper.published import published_cells

TABLES = range(1, 6)


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
