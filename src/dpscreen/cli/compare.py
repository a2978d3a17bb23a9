"""`dpscreen compare`: methods and budgets side by side on simulated rows, which spends nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpscreen._core.words import listed
from dpscreen.cli import console
from dpscreen.cli._fit_options import COMPARED, FAMILY_NAMES, RATE

if TYPE_CHECKING:
    from dpscreen.families import Family
    from dpscreen.planning.power import Contest

BY_RATE = "gaussian", "binomial"
"""Families that follow from the target, or from a share of rows with a yes."""
BY_NAME = [family for family in COMPARED if family not in BY_RATE]
MOST_EPSILONS = 15
LESSON = (
    "Simulated rows: nothing was read and nothing is charged. Real data are less\n"
    "regular: the comparison shows which method suits this size and budget, not the\n"
    "scores to expect."
)


@click.command()
@click.option("--rows", type=console.ROWS, required=True, help="Number of rows.")
@click.option("--features", type=console.COUNT, help="Number of features.")
@console.schema_option("It also declares whether the outcome is binary.")
@RATE
@click.option(
    "--model",
    type=click.Choice(BY_NAME),
    help=f"Compare models of {', '.join(FAMILY_NAMES[one].outcomes for one in BY_NAME)}. Without "
    "it, of binary outcomes with --rate.",
)
@console.EPSILONS(default=(0.5, 1.0, 2.0, 5.0), help="A budget to try; may be repeated.")
@console.DELTA(help="Delta of every budget.")
@click.option(
    "--method",
    "methods",
    type=click.Choice([name for names in COMPARED.values() for name in names]),
    metavar="METHOD",
    multiple=True,
    help=f"A method to try; may be repeated: {listed(COMPARED['gaussian'])}; for a binary outcome, "
    f"{listed(COMPARED['binomial'])}; "
    + "".join(f"for --model {family}, {listed(COMPARED[family])}" for family in BY_NAME)
    + ".  [default: all]",
)
@click.option(
    "--effect",
    type=console.SHARE,
    help="Standardised coefficient of the features with an effect; for a binary outcome, in "
    "log-odds.  [default: they explain half of the variance; 0.5]",
)
@click.option("--n-effects", type=console.COUNT, help="Number of features with an effect.")
@click.option(
    "--repetitions",
    type=click.IntRange(min=2, max=1000),
    help="Simulated tables.  [default: as many as take about ten seconds]",
)
@console.SEED
@console.plot_option("Draw power and R², or AUC, into this file")
@console.JSON(help="Print JSON.")
def command(
    features: int | None,
    schema_file: Path | None,
    formula: str | None,
    rate: float | None,
    model: str | None,
    repetitions: int | None,
    seed: str,
    plot: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Compare methods and budgets on simulated rows: no data are read, nothing is charged.

    Every method fits the same rows: some features have an effect, and together explain half of the
    target's variance unless --effect is given. The last method listed for each kind of outcome,
    such as "lasso", is not private, and shows what privacy costs.

    \b
    Examples:
      dpscreen compare --rows 5000 --features 40
      dpscreen compare --rows 5000 --schema schema.json --epsilon 0.5 --epsilon 1
      dpscreen compare --rows 5000 --features 40 --method private-lasso --json
      dpscreen compare --rows 5000 --features 40 --plot compare.png
      dpscreen compare --rows 5000 --features 20 --rate 0.2
    """
    shape = console.table_shape(features, schema_file, formula)
    from dpscreen.families import BINOMIAL, FAMILIES

    family = FAMILIES[model] if model else shape.family
    if rate is not None and family.simulation.rate is None:
        family = BINOMIAL
    contest = _contest(shape, family, rate, **given)
    from dpscreen.planning.compare import draw, power_lines
    from dpscreen.planning.power import simulated

    with console.share_bar() as progress:
        found = simulated(contest, repetitions, f"compare/{seed}", progress)
    if plot is not None:
        with console.write_failures(plot, "Picture"):
            draw(found, family.measure.label, contest.title, plot)
    if not as_json:
        lines = power_lines(found, family.measure.label, "method", "epsilon")
        click.echo("\n".join((contest.title, "", *lines, "", LESSON)))
        return
    setting = contest.setting
    shown = {
        "n_rows": setting.n_rows,
        "n_features": setting.n_features,
        "n_effects": setting.n_effects,
        "effect": contest.effects[0],
        "rate": setting.rate,
        "delta": setting.delta,
        "rows_per_unit": setting.rows_per_unit,
        "outcomes": [
            {"method": one.method, "epsilon": one.epsilon, **one.to_dict(family.measure.name)}
            for one in found
        ],
    }
    console.show_json(asdict(contest) | shown)


def _contest(
    shape: console.TableShape,
    family: Family,
    rate: float | None,
    *,
    rows: int,
    epsilons: Sequence[float],
    delta: float,
    methods: Sequence[str],
    effect: float | None,
    n_effects: int | None,
) -> Contest:
    """Return what is simulated, or refuse what cannot be."""
    chosen, names = tuple(sorted(set(epsilons))), COMPARED[family.name]
    others = [name for name in methods if name not in names]
    if others:
        raise click.UsageError(f"{listed(others)}: not for this kind of outcome.")
    chosen_methods = tuple(name for name in names if name in methods) or names
    if len(chosen) > MOST_EPSILONS:
        raise click.UsageError(f"Give at most {MOST_EPSILONS} values of --epsilon.")
    from dpscreen.planning.plan import checked_sizes, setting_of
    from dpscreen.planning.power import Contest

    with console.wrong_usage():
        setting = setting_of(
            *(rows, shape.features, chosen[0], delta),
            n_effects=n_effects,
            rate=rate,
            family=family.name,
            rows_per_unit=shape.rows_per_unit,
        )
        sizes = (setting.usual_effect,) if effect is None else checked_sizes(setting, [effect])
        for epsilon in chosen:
            setting.at(epsilon)
    return Contest(setting, chosen_methods, chosen, sizes)
