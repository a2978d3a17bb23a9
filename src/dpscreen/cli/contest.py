"""`dpscreen contest`: every private method on public tables, with ranks and where we lose."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from dpscreen._core.words import how_many
from dpscreen.cli import console

if TYPE_CHECKING:
    from dpscreen.planning.arenas import Arena
    from dpscreen.planning.standings import ContestRules, Standings

EPSILONS = (0.5, 1.0, math.log(3), 5.0)
GUARD = (
    "A contest fits every table many times, with noise that can be repeated, and shows scores "
    "without privacy: it protects nobody. Run it on public tables only, and say so with --public."
)


@click.command(context_settings=console.HELP)
@click.argument("folder", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.option("--public", is_flag=True, help="These tables are public: nothing is protected here.")
@click.option("--simulated", "simulate", is_flag=True, help="Play on simulated tables, too.")
@click.option(
    "--epsilon",
    "epsilons",
    type=console.EPSILON,
    multiple=True,
    help="A budget to try; may be repeated.  [default: 0.5, 1, ln 3, 5]",
)
@console.delta_option("Delta of all of them.")
@click.option(
    "--method",
    "methods",
    multiple=True,
    help="A method to try; may be repeated.  [default: all]",
)
@click.option(
    "--trials",
    type=console.WholeWithin(min=1, max=1000),
    default=3,
    show_default=True,
    help="Fits of each method at each budget, with other held-out rows.",
)
@click.option(
    "--most-rows",
    type=console.WholeWithin(min=100),
    default=20_000,
    show_default=True,
    help="Of a larger table in the folder, so many are drawn.",
)
@console.SEED
@click.option("--page", type=click.Path(dir_okay=False, path_type=Path), help="Write a page, HTML.")
@click.option("--force", is_flag=True, help="Replace a page that exists.")
@console.AS_JSON
def command(
    folder: Path | None,
    public: bool,
    simulate: bool,
    epsilons: tuple[float, ...],
    delta: float,
    methods: tuple[str, ...],
    trials: int,
    most_rows: int,
    seed: str,
    page: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Let all private methods compete on PUBLIC tables: nothing is protected.

    FOLDER holds tables, each with its schema beside it: wages.csv with wages.toml or wages.json.
    Ours and those of other authors get the same rows, declared bounds, number of rows and budget;
    R² is shown for targets of numbers, AUC for yes or no, on rows that were held out.

    \b
    Examples:
      dpscreen contest --simulated
      dpscreen contest tables --public --page contest.html
      dpscreen contest tables --public --epsilon 1 --trials 10 --json
      dpscreen contest tables --public --method private-lasso --method tukey-em
    """
    console.check_output(page, force=force)
    if folder is not None and not public:
        raise click.UsageError(GUARD)
    from dpscreen.planning.standings import ContestRules

    chosen = tuple(sorted(set(epsilons or EPSILONS)))
    rules = ContestRules(chosen, delta, trials, _known(methods), seed)
    standings = _played(_arenas(folder, simulate, most_rows, seed), rules)
    if page is not None:
        _write_page(standings, rules, page)
    if as_json:
        click.echo(json.dumps(_as_dict(standings, rules), indent=1))
    else:
        _show(standings)


def _known(methods: tuple[str, ...]) -> tuple[str, ...]:
    from dpscreen._core.words import mistyped
    from dpscreen.planning.standings import NUMBERS, OUTCOMES

    for one in methods:
        if one not in (*NUMBERS, *OUTCOMES):
            told = mistyped("method", one, (*NUMBERS, *OUTCOMES))
            raise click.BadParameter(told, param_hint="--method")
    return methods


def _arenas(folder: Path | None, simulate: bool, most_rows: int, seed: str) -> dict[str, Arena]:
    from dpscreen.planning.arenas import NoArena, in_folder, simulated

    found: dict[str, Arena] = {}
    if folder is None and not simulate:
        raise click.UsageError("Give a folder of public tables, or --simulated, or both.")
    if folder is not None:
        if not folder.is_dir():
            raise click.ClickException(f"There is no folder {folder}.")
        try:
            found |= in_folder(folder, most_rows=most_rows)
        except NoArena as problem:
            raise click.ClickException(console.sentence(problem)) from None
    return found | (simulated(seed) if simulate else {})


def _played(arenas: dict[str, Arena], rules: ContestRules) -> Standings:
    from dpscreen.planning.standings import n_fits, play

    with console.progress(console.messages()) as bar:
        task = bar.add_task("fitting", total=n_fits(arenas, rules))
        return play(arenas, rules, on_fit=lambda: bar.advance(task))


def _write_page(standings: Standings, rules: ContestRules, page: Path) -> None:
    from dpscreen._core.files import write_text
    from dpscreen.planning.standings_page import render

    with console.write_failures(page):
        write_text(page, render(standings, rules))
    console.say(f"Page written to {page}")


def _as_dict(standings: Standings, rules: ContestRules) -> dict[str, Any]:
    """Return every fit, and what they come to."""
    divisions = {
        one: {
            "ranks": [asdict(line) for e in rules.epsilons for line in standings.lines(one, e)],
            "lost": [asdict(lost) for e in rules.epsilons for lost in standings.defeats(one, e)],
        }
        for one in standings.divisions
    }
    fits = [asdict(one) for one in standings.plays]
    return {**asdict(rules), "divisions": divisions, "fits": fits}


def _show(standings: Standings) -> None:
    out = console.output()
    for division in standings.divisions:
        out.print(_table(standings, division))
        for epsilon in standings.epsilons:
            _show_defeats(standings, division, epsilon)
    out.print("Public tables only: nothing here was protected.", markup=False)


def _table(standings: Standings, division: str) -> Table:
    """Return mean ranks, with mean scores, by method and ε."""
    from dpscreen.planning.standings import measure

    tables = standings.tables(division)
    best = sum(standings.best(one) for one in tables) / len(tables)
    title = f"{division}, {how_many(len(tables), 'table')}: mean rank (mean {measure(division)})"
    table = Table(title=title, title_style="bold")
    table.add_column("method")
    found = {
        e: {line.method: line for line in standings.lines(division, e)} for e in standings.epsilons
    }
    for epsilon in standings.epsilons:
        table.add_column(f"ε = {epsilon:.3g}", justify="right")
    table.add_column("seconds", justify="right")
    for method in standings.methods(division):
        lines = [one[method] for one in found.values()]
        cells = [f"{line.rank:.2f} ({line.score:.3f})" for line in lines]
        table.add_row(method, *cells, f"{sum(line.seconds for line in lines) / len(lines):.2f}")
    table.add_row("not private", *[f"({best:.3f})"] * len(found), "")
    return table


def _show_defeats(standings: Standings, division: str, epsilon: float) -> None:
    lost = standings.defeats(division, epsilon)
    if not lost:
        return
    shown = "; ".join(
        f"{one.table} to {one.winner} by {one.difference:.3f}"
        + ("" if one.error is None else f" ± {one.error:.3f}")
        for one in lost
    )
    text = f"Lost by {lost[0].ours} at ε = {epsilon:.3g}: {shown}"
    console.output().print(text, markup=False)
