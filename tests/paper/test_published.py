"""The typed-in numbers against the paper's own tables, and the paper against itself."""

import re

import pytest

from dpscreen.paper.published import (
    errata,
    known_inconsistencies,
    label,
    published_cells,
    published_data,
)

SYNTHETIC = ("uncorrelated", "correlated")
PRINTED = {cell.key: cell.value for cell in published_cells()}
REAL = tuple(name for name in published_data() if name not in SYNTHETIC)
# --- the file -------------------------------------------------------------------------------


def test_every_cell_is_typed_once_and_has_three_decimals():
    cells = published_cells()
    assert len(cells) == len(PRINTED) == 184
    for cell in cells:
        assert round(cell.value, 3) == cell.value
        assert 0 <= cell.value <= (3 if cell.metric == "mse" else 1)
        assert cell.data in published_data()
        assert all(label(key) for key in (cell.data, cell.method, cell.metric))


# --- against the paper's source ---------------------------------------------------------------

RNM, ORACLE, PRESELECT, PLAIN = "rnm-screen", "oracle-k-fw", "preselect-k-fw", "np-fw"
COLUMNS = {
    1: [(RNM, metric) for metric in ("tpr", "fpr", "f1", "density")],
    2: [(RNM, metric) for metric in ("tpr", "fpr", "f1", "density", "r2")],
    3: [(m, metric) for m in (PLAIN, PRESELECT, ORACLE, RNM) for metric in ("f1", "mse")],
    4: [(RNM, metric) for metric in ("f1", "density", "r2")],
    5: [(m, metric) for m in (PLAIN, ORACLE, RNM) for metric in ("f1", "mse")],
}


@pytest.fixture(scope="module")
def printed_tables(data_folder):
    """The rows of each table: name, then (number, bold) per entry."""
    sources = sorted(data_folder.parent.glob("paper/*.txt"))
    if not sources:
        pytest.skip("the paper's source is not here to compare with")
    text = sources[0].read_text(encoding="utf-8")
    bodies = re.findall(r"\\begin\{tabular\}(.*?)\\end\{tabular\}", text, flags=re.DOTALL)
    return {number: rows_of(body) for number, body in enumerate(bodies, start=1)}


def rows_of(body):
    body = re.sub(r"\\makecell\[l\]\{(.*?)\\\\\s*(.*?)\}", r"\1 \2", body)
    lines = [line.split("&") for line in re.split(r"\\\\", body)]
    return {
        re.sub(r"\\\w+", "", name).strip(): [entry(part) for part in parts]
        for name, *parts in lines
        if parts and re.search(r"\d\.\d{3}", parts[-1])
    }


def entry(part):
    (number,) = re.findall(r"\d+(?:\.\d+)?", part)
    return float(number), "textbf" in part


@pytest.mark.parametrize("table", COLUMNS)
def test_every_number_and_every_bold_is_as_printed(printed_tables, table):
    rows = printed_tables[table]
    typed = {cell.key: (cell.value, cell.bold) for cell in published_cells(table)}
    names = {label(name): name for name in published_data()}
    printed = {
        (table, names[row], *column): content
        for row, entries in rows.items()
        for column, content in zip(COLUMNS[table], entries[-len(COLUMNS[table]) :], strict=True)
    }
    assert typed == printed


def test_sizes_and_iterations_are_as_printed(printed_tables):
    names = {label(name): name for name in REAL}
    printed = {
        names[row]: tuple(n for n, _ in parts[:3]) for row, parts in printed_tables[2].items()
    }
    typed = {d.name: (d.n_rows, d.n_features, d.n_iter) for d in published_data().values()}
    assert {name: typed[name] for name in REAL} == printed


# --- the paper against itself -------------------------------------------------------------------


def implied_density(tpr, fpr, n_support, n_features):
    """Density of a solution with these rates, or of a mean over trials."""
    return (n_support * tpr + (n_features - n_support) * fpr) / n_features


def test_no_printed_density_follows_from_the_printed_rates():
    """Rounding of the three printed numbers explains a difference of 0.001."""
    for name, data in published_data().items():
        printed = {cell.metric: cell.value for cell in published_cells() if cell.data == name
                   and cell.table < 3}  # fmt: skip
        implied = implied_density(printed["tpr"], printed["fpr"], data.n_support, data.n_features)
        assert abs(printed["density"] - implied) > 0.001


def test_five_densities_contradict_their_rates_whatever_k_is():
    """For any K the density is a weighted mean of TPR and FPR; each is rounded by 0.0005."""
    outside = []
    for data in published_data():
        table = 1 if data in SYNTHETIC else 2
        density, *rates = (PRINTED[table, data, RNM, what] for what in ("density", "tpr", "fpr"))
        if not min(rates) - 0.001 <= density <= max(rates) + 0.001:
            outside.append(label(data))
    assert len(outside) == 5
    assert ", ".join(outside) in errata()["E10"].evidence


def test_two_f1_are_above_what_their_tpr_allows():
    """F1 is at most 2·TPR/(1 + TPR), without false positives; concave, so also on average."""
    above = []
    for data in REAL:
        tpr, f1 = (PRINTED[2, data, RNM, what] for what in ("tpr", "f1"))
        ceiling = 2 * (tpr + 0.0005) / (1 + tpr + 0.0005)
        above += [label(data)] if f1 > ceiling + 0.0005 else []
    assert " and ".join(above) in errata()["E10"].evidence


def single_run_count(rate, total):
    """The whole number k for which k/total is printed as `rate`, if there is one."""
    count = round(rate * total)
    # A tie in the fourth decimal may have been rounded either way.
    return count if abs(count / total - rate) <= 0.0005 + 1e-12 else None


def test_every_printed_rate_is_a_count_from_one_run():
    for cell in published_cells():
        data = published_data()[cell.data]
        totals = {"tpr": data.n_support, "fpr": data.n_features - data.n_support}
        if cell.metric in totals:
            assert single_run_count(cell.value, totals[cell.metric]) is not None
    assert single_run_count(0.829, 70) == 58
    assert single_run_count(0.475, 530) == 252
    assert single_run_count(0.350, 3) is None


# --- known inconsistencies ----------------------------------------------------------------------


def test_every_inconsistency_names_a_printed_cell():
    reasons = known_inconsistencies()
    assert set(reasons) <= {cell.key for cell in published_cells()}
    assert all(reason.endswith(".") for reason in reasons.values())


def test_a_bold_cell_beside_a_better_one_is_flagged():
    """In Tables 3 and 5 bold marks the significantly better of Oracle-K FW and RNM-Screen."""
    rival = {ORACLE: RNM, RNM: ORACLE}
    wrong = {
        cell.key
        for cell in published_cells(3) + published_cells(5)
        if cell.bold
        and (PRINTED[cell.table, cell.data, rival[cell.method], cell.metric] < cell.value)
        == (cell.metric == "mse")
    }
    assert wrong == {
        (5, "abalone", ORACLE, "mse"),
        (5, "communities", ORACLE, "f1"),
        (5, "blogfeedback", ORACLE, "f1"),
    }
    assert wrong <= set(known_inconsistencies())
