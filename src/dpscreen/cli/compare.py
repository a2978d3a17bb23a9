"""`dpscreen compare`: methods and budgets side by side on simulated rows, which spends nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from dpscreen._core.words import listed
from dpscreen.cli import console

if TYPE_CHECKING:
    from dpscreen.models.page.charts import OutcomeRow
    from dpscreen.planning.compare import Contest, ContestOutcome
    from dpscreen.planning.outcome_plan import OutcomeContest

NAMES = ("private-lasso", "dp-fw", "rnm-screen", "lasso")
OUTCOME_NAMES = ("private-logistic", "noisy-descent", "outcome-fw", "class-means", "logistic")
MOST_FITS = 60
LESSON = (
    "Simulated rows: nothing was read and nothing is spent. Real rows are less tidy, so read it as "
    "which method suits this size and budget, not as what yours will give."
)


@click.command(context_settings=console.HELP)
@click.option("--rows", type=console.WholeWithin(min=2), required=True, help="Number of rows.")
@click.option("--features", type=console.WholeWithin(min=1), help="Number of features.")
@console.schema_option("If its target has two levels, models of a yes or no are compared.")
@click.option(
    "--rate",
    type=console.SHARE,
    help="The supposed share of rows with a yes: compare models of a yes or no.",
)
@click.option(
    "--epsilon",
    "epsilons",
    type=console.EPSILON,
    multiple=True,
    default=(0.5, 1.0, 2.0, 5.0),
    show_default=True,
    help="A budget to try; may be repeated.",
)
@console.delta_option("Delta of all of them.")
@click.option(
    "--method",
    "methods",
    type=click.Choice((*NAMES, *OUTCOME_NAMES)),
    metavar="METHOD",
    multiple=True,
    help=f"A method to try; may be repeated: {listed(NAMES)}; of a yes or no, "
    f"{listed(OUTCOME_NAMES)}.  [default: all]",
)
@click.option(
    "--effect",
    type=console.SHARE,
    help="Standardised coefficient of the features that matter; of a yes or no, in log-odds.  "
    "[default: half of the variance; 0.5]",
)
@click.option("--n-effects", type=console.WholeWithin(min=1), help="How many features matter.")
@click.option(
    "--repetitions",
    type=console.WholeWithin(min=2, max=1000),
    help="Simulated tables.  [default: as many as take about ten seconds]",
)
@console.SEED
@console.plot_option("Draw R² and power into this file")
@console.AS_JSON
def command(
    rows: int,
    features: int | None,
    schema_file: Path | None,
    rate: float | None,
    epsilons: tuple[float, ...],
    delta: float,
    methods: tuple[str, ...],
    effect: float | None,
    n_effects: int | None,
    repetitions: int | None,
    seed: str,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Compare methods and budgets on simulated rows: no data is read, nothing is spent.

    Every method fits the same rows: some features matter, and explain half of the target's variance
    together unless --effect says otherwise. "lasso", or "logistic" of a yes or no, is not private:
    the standard to measure by.

    \b
    Examples:
      dpscreen compare --rows 5000 --features 40
      dpscreen compare --rows 5000 --schema schema.json --epsilon 0.5 --epsilon 1
      dpscreen compare --rows 5000 --features 40 --method private-lasso --json
      dpscreen compare --rows 5000 --features 40 --plot compare.png
      dpscreen compare --rows 5000 --features 20 --rate 0.2
    """
    console.check_plot(plot)
    shape = console.table_shape(features, schema_file)
    rate = 0.5 if shape.yes_or_no and rate is None else rate
    if rate is not None and plot is not None:
        raise click.UsageError("--plot is for targets that are numbers.")
    contest = _contest(rows, shape, epsilons, delta, methods, effect, n_effects, rate)
    if rate is not None:
        _show_outcomes(contest, repetitions, seed, as_json=as_json)
        return
    outcomes = _run(contest, repetitions, seed)
    title = _title(contest)
    if plot is not None:
        _draw(outcomes, title, plot)
    if as_json:
        click.echo(json.dumps(_as_dict(contest, outcomes), indent=2))
    else:
        _show(outcomes, title)


def _contest(
    rows: int,
    shape: console.TableShape,
    epsilons: Sequence[float],
    delta: float,
    methods: Sequence[str],
    effect: float | None,
    n_effects: int | None,
    rate: float | None,
) -> Any:
    """Return a `Contest`; with a rate of outcomes, an `OutcomeContest`."""
    chosen = _in_order(epsilons)
    asked = _asked(methods, NAMES if rate is None else OUTCOME_NAMES)
    from dpscreen.planning.compare import Contest
    from dpscreen.planning.outcome_plan import USUAL_EFFECT, OutcomeContest
    from dpscreen.planning.plan import checked_sizes, setting_of

    contest: Contest | OutcomeContest
    with console.wrong_usage():
        setting = setting_of(rows, shape.features, chosen[0], delta, n_effects=n_effects)
        if rate is None:
            size = None if effect is None else checked_sizes(setting, [effect])[0]
            contest = Contest(setting, chosen, asked, size, rows_per_unit=shape.rows_per_unit)
        else:
            sizes = (effect or USUAL_EFFECT,)
            contest = OutcomeContest(
                setting, rate, asked, chosen, sizes, rows_per_unit=shape.rows_per_unit
            )
        contest.check()
    return contest


def _in_order(epsilons: Sequence[float]) -> tuple[float, ...]:
    chosen = tuple(sorted(set(epsilons)))
    if len(chosen) * len(NAMES) > MOST_FITS:
        raise click.UsageError(f"Give at most {MOST_FITS // len(NAMES)} values of --epsilon.")
    return chosen


def _asked(methods: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Return the methods that were asked for, or all; refuse those for other targets."""
    others = [name for name in methods if name not in names]
    if others:
        raise click.UsageError(f"{listed(others)}: for another kind of target.")
    return tuple(name for name in names if name in methods) or tuple(names)


def _show_outcomes(
    contest: OutcomeContest, repetitions: int | None, seed: str, *, as_json: bool
) -> None:
    from dpscreen.planning.outcome_plan import TABLES, expected_outcomes

    with console.simulating("simulating") as progress:
        found = expected_outcomes(
            contest, tables=repetitions or TABLES, seed=seed, progress=progress
        )
    if as_json:
        rows = [asdict(one) for one in found]
        click.echo(json.dumps(asdict(contest) | {"outcomes": rows}, indent=2))
        return
    title = f"{contest.title}, effects of {contest.effects[0]:g}"
    _print(title, console.OUTCOME_QUALITIES, [(o, console.outcome_qualities(o)) for o in found])


def _run(contest: Contest, repetitions: int | None, seed: str) -> tuple[ContestOutcome, ...]:
    from dpscreen.planning.compare import compete

    with console.progress(console.messages()) as bar:
        task = bar.add_task("simulating", total=None)

        def tell(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        return compete(contest, repetitions=repetitions, seed=seed, on_table=tell)


def _title(contest: Contest) -> str:
    setting = contest.setting
    return (
        f"{setting.n_rows} rows, {setting.n_features} features of which {setting.n_effects} have "
        f"an effect of {contest.size:.2g}, {contest.promise}"
    )


def _draw(outcomes: Sequence[ContestOutcome], title: str, plot: Path) -> None:
    from dpscreen.planning.compare import draw

    with console.write_failures(plot):
        draw(outcomes, title, plot)
    console.say(f"Picture written to {plot}")


def _as_dict(contest: Contest, outcomes: Sequence[ContestOutcome]) -> dict[str, object]:
    setting = contest.setting
    return {
        "n_rows": setting.n_rows,
        "n_features": setting.n_features,
        "n_effects": setting.n_effects,
        "effect": contest.size,
        "delta": setting.delta,
        "rows_per_unit": contest.rows_per_unit,
        "outcomes": [asdict(one) for one in outcomes],
    }


def _show(outcomes: Sequence[ContestOutcome], title: str) -> None:
    _print(title, console.QUALITIES, [(one, console.qualities(one)) for one in outcomes])


def _print(
    title: str,
    names: Sequence[str],
    rows: Sequence[tuple[ContestOutcome | OutcomeRow, tuple[str, ...]]],
) -> None:
    table = Table(title=title, title_style="bold")
    table.add_column("method", min_width=max(len(one.method) for one, _ in rows))
    for name in ("epsilon", *names):
        table.add_column(name, justify="right")
    for one, told in rows:
        epsilon = "none" if one.epsilon is None else f"{one.epsilon:g}"
        table.add_row(one.method, epsilon, *told)
    out = console.output()
    out.print(table)
    out.print(LESSON, markup=False)
