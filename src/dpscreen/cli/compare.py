"""`dpscreen compare`: methods and budgets side by side on simulated rows, which spends nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table

from dpscreen.cli import console

if TYPE_CHECKING:
    from dpscreen.planning.contest import Contest, ContestOutcome

NAMES = ("private-lasso", "dp-fw", "rnm-screen", "lasso")
MOST_FITS = 60
LESSON = (
    "Simulated rows: nothing was read and nothing is spent. Real rows are less tidy, so read it as "
    "which method suits this size and budget, not as what yours will give."
)


@click.command(context_settings=console.HELP)
@click.option("--rows", type=console.WholeWithin(min=2), required=True, help="Number of rows.")
@click.option("--features", type=console.WholeWithin(min=1), help="Number of features.")
@click.option(
    "--schema",
    "schema_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Take the number of features, and the rows of a unit, from this schema.",
)
@click.option(
    "--epsilon",
    "epsilons",
    type=console.POSITIVE,
    multiple=True,
    default=(0.5, 1.0, 2.0, 5.0),
    show_default=True,
    help="A budget to try; may be repeated.",
)
@console.delta_option("Delta of all of them.")
@click.option(
    "--method",
    "methods",
    type=click.Choice(NAMES),
    multiple=True,
    help="A method to try; may be repeated.  [default: all]",
)
@click.option(
    "--effect",
    type=console.SHARE,
    help="Standardised coefficient of the features that matter.  [default: half of the variance]",
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
    together unless --effect says otherwise. "lasso" is not private: the standard to measure by.

    \b
    Examples:
      dpscreen compare --rows 5000 --features 40
      dpscreen compare --rows 5000 --schema schema.json --epsilon 0.5 --epsilon 1
      dpscreen compare --rows 5000 --features 40 --method dp-fw --json
      dpscreen compare --rows 5000 --features 40 --plot compare.png
    """
    console.check_plot(plot)
    shape = _shape(features, schema_file)
    contest = _contest(rows, shape, epsilons, delta, methods, effect, n_effects)
    outcomes = _run(contest, repetitions, seed)
    title = _title(contest)
    if plot is not None:
        _draw(outcomes, title, plot)
    if as_json:
        click.echo(json.dumps(_as_dict(contest, outcomes), indent=2))
    else:
        _show(outcomes, title)


def _shape(features: int | None, schema_file: Path | None) -> tuple[int, int]:
    """Return the number of features and the most rows of a unit."""
    if (features is None) == (schema_file is None):
        raise click.UsageError("Give --features or --schema: one of them.")
    if schema_file is None:
        assert features is not None
        return features, 1
    schema = console.checked_schema(schema_file)
    return len(schema.feature_names), schema.rows_per_unit


def _contest(
    rows: int,
    shape: tuple[int, int],
    epsilons: Sequence[float],
    delta: float,
    methods: Sequence[str],
    effect: float | None,
    n_effects: int | None,
) -> Contest:
    chosen = tuple(sorted(set(epsilons)))
    if len(chosen) * len(NAMES) > MOST_FITS:
        raise click.UsageError(f"Give at most {MOST_FITS // len(NAMES)} values of --epsilon.")
    from dpscreen.planning.contest import Contest
    from dpscreen.planning.plan import checked_sizes, setting_of

    try:
        setting = setting_of(rows, shape[0], chosen[0], delta, n_effects=n_effects)
        size = None if effect is None else checked_sizes(setting, [effect])[0]
        asked = tuple(name for name in NAMES if name in methods) or NAMES
        contest = Contest(setting, chosen, asked, size, rows_per_unit=shape[1])
        contest.check()
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    return contest


def _run(contest: Contest, repetitions: int | None, seed: str) -> tuple[ContestOutcome, ...]:
    from dpscreen.planning.contest import compete

    with console.progress(console.messages()) as bar:
        task = bar.add_task("simulating", total=None)

        def tell(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        return compete(contest, repetitions=repetitions, seed=seed, on_table=tell)


def _title(contest: Contest) -> str:
    setting = contest.setting
    unit = "" if contest.rows_per_unit == 1 else f", {contest.rows_per_unit} rows a unit"
    return (
        f"{setting.n_rows} rows, {setting.n_features} features of which {setting.n_effects} have "
        f"an effect of {contest.size:.2g}, delta {setting.delta:g}{unit}"
    )


def _draw(outcomes: Sequence[ContestOutcome], title: str, plot: Path) -> None:
    from dpscreen.planning.contest import draw

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
    table = Table(title=title, title_style="bold")
    table.add_column("method")
    for name in ("epsilon", *console.QUALITIES):
        table.add_column(name, justify="right")
    for one in outcomes:
        epsilon = "not private" if one.epsilon is None else f"{one.epsilon:g}"
        table.add_row(one.method, epsilon, *console.qualities(one))
    out = console.output()
    out.print(table)
    out.print(LESSON, markup=False)
