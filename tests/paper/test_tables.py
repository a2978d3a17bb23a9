"""Every printed number is on the page and in the Markdown, beside ours, and differences show."""

import dataclasses
import re
from types import SimpleNamespace

import pytest
from study_rows import made_up_rows

from dpscreen._core.words import decimals, duration, how_many, letters
from dpscreen.paper import tables
from dpscreen.paper.agreement import Estimate
from dpscreen.paper.grid import flat_grid, grid_to_markdown, mean_and_error
from dpscreen.paper.methods import proven_names
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


@pytest.mark.parametrize("table", TABLES)
def test_markdown_holds_every_printed_cell(written, table):
    text = (written / "tables" / f"table{table}.md").read_text(encoding="utf-8")
    numbers = re.findall(r"(?<![\d.])\d+\.\d{3}(?!\d)", text)
    for cell in published_cells(table):
        value = f"{cell.value:.3f}"
        assert value in numbers
        numbers.remove(value)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in rows}) == 1


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
    text = grid_to_markdown(grid)
    assert f"0.900 ≠ {unexplained.mark}" in text
    assert f"**≠ {unexplained.mark}** No reason is known." in text


def test_cells_of_one_reason_share_a_mark(rows):
    for name in ("abalone", "housing"):
        rows = changed(rows, "real", name, "preselect-k-fw", f1=0.1, mse=3.0)
    grid = Report(rows).grids["table3"]
    marks = {entry.mark for entry in entries(grid, "here") if entry.text in ("0.100", "3.000")}
    assert len(marks) == 1
    (note,) = (note for note in grid.notes if note.mark in marks)
    assert len(note.details) >= 4


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
    sign = SimpleNamespace(test=SimpleNamespace(wins=8, losses=0), agrees_with_bold=True)
    told = tables._bold("better", [SimpleNamespace(significance=sign)] * 3)
    assert told.endswith("agrees with the printed type in 3 of 3 cells.")


def test_errata_have_evidence_where_rows_give_it(report):
    evidence = {erratum.key: erratum.evidence for erratum in report.errata}
    assert list(evidence) == [f"E{n}" for n in range(1, 12)]
    assert "is 100, where 1 is assumed" in evidence["E1"]
    assert "1.82 for m = 10" in evidence["E4"]
    assert "changes by 0.243; 0.1 is claimed" in evidence["E5"]
    assert "27.9 times" in evidence["E2"]
    assert "scale 9320" in evidence["E7"]
    assert "outside [FPR, TPR]: 5 (Body Fat, Pyrim," in evidence["E10"]
    assert "Eq. 1 gives -8" in evidence["E3"]
    real = {one.key: one.evidence for one in Report(made_up_rows(without=("uncorrelated",))).errata}
    assert "noise on a score" not in (real["E7"] or "")


def test_every_column_has_its_own_number_of_iterations(rows):
    other = tuple(
        dataclasses.replace(row, settings=row.settings | {"n_iter": 131})
        if row.method == "proven-dp-fw"
        else row
        for row in rows
    )
    grid = Report(other).grids["table1"]
    for section in grid.sections:
        name, numbers = section.lines[0]
        assert name == "iterations T"
        assert [number.text for number in numbers[:3]] == ["1000", "1000", "131"]
        assert "T =" not in section.detail


def test_what_is_left_open_stands_beside_its_alternative(report):
    grid = report.grids["choices"]
    titles = " ".join(section.title for section in grid.sections)
    for choice in ("scattered", "½", "start", "K:", "missing cells", "Preselect-K"):
        assert choice in titles
    assert all(len(numbers) == 3 for section in grid.sections for _, numbers in section.lines)


def test_numbers_read_well():
    assert decimals(0.5) == "0.500"
    assert decimals(-0.25) == "−0.250"
    assert decimals(12345.6) == "1.235e+04"
    assert decimals(float("nan")) == decimals(None) == "–"
    assert mean_and_error(Estimate(0.5, 0.0125, 20)) == "0.500 ± 0.013"
    assert mean_and_error(Estimate(0.5, 0.0, 1)) == "0.500"
    assert [duration(s) for s in (3.2, 100, 4000)] == ["3 s", "2 min", "1 h 07 min"]
    assert (how_many(1, "row"), how_many(2, "row")) == ("1 row", "2 rows")
    assert [letters(n) for n in (0, 25, 26, 52)] == ["a", "z", "aa", "ba"]


def test_markdown_is_escaped():
    hostile = "a|b <i>*x*</i>\n_y_"
    grid = flat_grid("key", hostile, f"{hostile} | {hostile}", [(hostile, hostile)], hostile)
    shown = grid_to_markdown(grid)
    assert hostile not in shown
    assert shown.count(r"a\|b &lt;i&gt;\*x\*&lt;/i&gt; \_y\_") == 6
