"""`dpscreen contest`: every private method on public tables, with ranks and where we lose."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpscreen._core.files import write_text
from dpscreen._core.messages import unknown
from dpscreen._core.words import how_many
from dpscreen.cli import console

if TYPE_CHECKING:
    from dpscreen.planning.arenas import Arena
    from dpscreen.planning.standings import Standings

EPSILONS = (0.5, 1.0, math.log(3), 5.0)
GUARD = (
    "A contest fits every table many times, with noise that can be repeated, and shows scores "
    "without privacy: it protects nobody. Run it on public tables only, and say so with --public."
)


@click.command()
@click.argument("folder", required=False, type=console.FOLDER)
@click.option("--public", is_flag=True, help="These tables are public: nothing is protected here.")
@click.option("--simulated", "simulate", is_flag=True, help="Also use simulated tables.")
@console.EPSILONS(help="A budget to try; may be repeated.  [default: 0.5, 1, ln 3, 5]")
@console.DELTA(help="Delta of every budget.")
@click.option(
    "--method", "methods", multiple=True, help="A method to try; may be repeated.  [default: all]"
)
@click.option(
    "--trials",
    type=click.IntRange(min=1, max=1000),
    default=3,
    help="Fits of each method at each budget, with other held-out rows.",
)
@click.option(
    "--most-rows",
    type=click.IntRange(min=100),
    default=20_000,
    help="Rows drawn from larger tables.",
)
@console.SEED
@click.option("--page", type=console.FILE, help="Write the results to this HTML file.")
@console.FORCE(help="Replace an existing page.")
@console.JSON(help="Print JSON.")
def command(folder: Path | None, page: Path | None, as_json: bool, **given: Any) -> None:
    """Rank all private methods on PUBLIC tables: nothing is protected.

    FOLDER holds tables, each with its schema beside it: wages.csv with wages.toml or wages.json.
    Ours and those of other authors get the same rows, declared bounds, number of rows and budget;
    R² is shown for targets of numbers, AUC for binary outcomes, on rows that were held out.

    \b
    Examples:
      dpscreen contest --simulated
      dpscreen contest tables --public --page contest.html
      dpscreen contest tables --public --epsilon 1 --trials 10 --json
      dpscreen contest tables --public --method private-lasso --method tukey-em
    """
    console.check_output(page, force=given["force"])
    if folder is not None and not given["public"]:
        raise click.UsageError(GUARD)
    if folder is None and not given["simulate"]:
        raise click.UsageError("Give a folder of public tables, or --simulated, or both.")
    from dpscreen.planning.arenas import NoArena, in_folder, simulated
    from dpscreen.planning.standings import CONTESTED, ContestRules, n_fits, play, render

    for one in given["methods"]:
        if one not in CONTESTED:
            problem = unknown("method", one, CONTESTED)
            raise click.BadParameter(problem, param_hint="--method")
    epsilons = tuple(sorted(set(given["epsilons"] or EPSILONS)))
    shared = {name: given[name] for name in ("delta", "trials", "methods", "seed")}
    rules = ContestRules(epsilons, **shared)
    arenas: dict[str, Arena] = {}
    if folder is not None:
        if not folder.is_dir():
            raise click.ClickException(f"There is no folder {folder}.")
        with console.failures(NoArena):
            arenas |= in_folder(folder, most_rows=given["most_rows"])
    arenas |= simulated(rules.seed) if given["simulate"] else {}
    with console.progress() as bar:
        task = bar.add_task("fitting", total=n_fits(arenas, rules))
        standings = play(arenas, rules, on_fit=lambda: bar.advance(task))
    if page is not None:
        with console.write_failures(page, "Page"):
            write_text(page, render(standings, rules))
    if not as_json:
        _show(standings)
        return
    divisions = {
        one: {
            "ranks": [
                line for e in epsilons for line in standings.ranks(one, e).to_dict("records")
            ],
            "lost": [lost for e in epsilons for lost in standings.defeats(one, e)],
        }
        for one in standings.divisions
    }
    fits = [asdict(one) for one in standings.plays]
    console.show_json({**asdict(rules), "divisions": divisions, "fits": fits})


def _show(standings: Standings) -> None:
    """Print ranks by method and ε, and to whom ours lost."""
    out = console.output()
    for division in standings.divisions:
        _show_ranks(standings, division)
        for epsilon in standings.epsilons:
            lost = standings.defeats(division, epsilon)
            shown = "; ".join(
                f"{one['table']} to {one['winner']} by {one['difference']:.3f}"
                + ("" if one["error"] is None else f" ± {one['error']:.3f}")
                for one in lost
            )
            if lost:
                text = f"Lost by {lost[0]['ours']} at ε = {epsilon:.3g}: {shown}"
                out.print(text, markup=False)
    out.print("Public tables only: nothing here was protected.", markup=False)


def _show_ranks(standings: Standings, division: str) -> None:
    """Print mean ranks, with mean scores, by method and ε."""
    from dpscreen.planning.standings import measure

    best, epsilons = standings.best(division), standings.epsilons
    found = [standings.ranks(division, one).to_dict("records") for one in epsilons]
    rows = []
    for method in standings.means(division, epsilons[0]):
        lines = [line for ranked in found for line in ranked if line["method"] == method]
        cells = [f"{line['rank']:.2f} ({line['score']:.3f})" for line in lines]
        seconds = sum(line["seconds"] for line in lines) / len(lines)
        rows.append((method, *cells, f"{seconds:.2f}"))
    rows.append(("not private", *[f"({best.mean():.3f})"] * len(found), ""))
    headings = ("method", *(f"ε = {epsilon:.3g}" for epsilon in epsilons), "seconds")
    title = f"{division}, {how_many(len(best), 'table')}: mean rank (mean {measure(division)})"
    console.print_table(headings, rows, left={"method"}, title=title)
