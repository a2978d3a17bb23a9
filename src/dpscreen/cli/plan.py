"""`dpscreen plan`: what a private fit would find, before any budget is spent."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from dpscreen.cli import console

if TYPE_CHECKING:
    from dpscreen.planning.plan import Needed, Plan


@click.command(context_settings=console.HELP)
@click.option("--rows", type=console.WholeWithin(min=2), help="Number of rows.")
@click.option("--features", type=console.COUNT, help="Number of features.")
@console.schema_option("Its levels count as such, and a target of two levels as a yes or no.")
@click.option("--epsilon", type=console.EPSILON, help="Budget: epsilon.")
@console.delta_option("Budget: delta.")
@click.option(
    "--effect",
    type=console.SHARE,
    help="A standardised coefficient: with --rows or --epsilon alone, find the other.",
)
@click.option("--n-effects", type=console.COUNT, help="How many features have an effect.")
@click.option(
    "--correlation",
    type=console.NumberWithin(0, 1, max_open=True),
    default=0.0,
    show_default=True,
    help="Between neighbouring features.",
)
@click.option(
    "--looseness",
    type=console.NumberWithin(1, 1000),
    default=1.0,
    show_default=True,
    help="How many times too wide the bounds will be.",
)
@click.option(
    "--model",
    type=click.Choice(["lasso", "ols", "logistic", "logit"]),
    help="lasso, the default: which features are found. ols: how wide a regression table's "
    "intervals are. logistic: which features of a yes or no are found. logit: how wide intervals "
    "of its odds are.",
)
@click.option(
    "--rate",
    type=console.SHARE,
    help="Of a yes or no: the supposed share of rows with a yes.  [default: 0.5]",
)
@console.SEED
@console.plot_option("Draw power and R² into this file")
@console.AS_JSON
def command(
    rows: int | None,
    features: int | None,
    schema_file: Path | None,
    epsilon: float | None,
    delta: float,
    effect: float | None,
    n_effects: int | None,
    correlation: float,
    looseness: float,
    model: str | None,
    rate: float | None,
    seed: str,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Say what a private fit would detect, from simulated rows: nothing is read or spent.

    With --rows and --epsilon: for each size of effect, the power to detect it, and the error. With
    --effect and one of the two: the least of the other that gives 80 % power. A feature is detected
    where its coefficient is larger in size than those of 95 % of the features without effect: a
    false-selection rate of 5 % for each feature. An effect is a coefficient when features and
    target have variance 1; of a binary outcome, what one standard deviation of a
    feature adds to the log-odds.

    \b
    Examples:
      dpscreen plan --rows 5000 --features 40 --epsilon 1
      dpscreen plan --rows 5000 --features 40 --epsilon 1 --plot plan.png
      dpscreen plan --rows 5000 --schema schema.toml --epsilon 1
      dpscreen plan --rows 5000 --features 40 --effect 0.1
      dpscreen plan --epsilon 1 --features 40 --effect 0.1
      dpscreen plan --rows 5000 --features 8 --epsilon 1 --model ols
      dpscreen plan --rows 5000 --features 20 --epsilon 1 --model logistic
      dpscreen plan --rows 9000 --features 8 --epsilon 1 --model logit --rate 0.2
    """
    shape = console.table_shape(features, schema_file)
    model = model or ("logistic" if shape.yes_or_no else "lasso")
    _check_model(model, rows, epsilon, rate)
    epsilon = _for_one_row(epsilon, delta, shape.rows_per_unit)
    numbers = (rows, shape.features, epsilon, delta)
    if model in ("ols", "logit"):
        share = None if model == "ols" else rate or 0.5
        return _show_widths(numbers, share, shape.levels, as_json=as_json)
    if model == "logistic":
        if plot is not None or correlation:
            raise click.UsageError("--model logistic has neither --plot nor --correlation.")
        public = (*numbers, n_effects, 0.0, looseness)
        return _show_outcomes(public, rate, effect, seed, as_json=as_json)
    _check(rows, epsilon, effect, plot)
    supposed = {
        "n_effects": n_effects,
        "correlation": correlation,
        "looseness": looseness,
        "random_state": seed,
    }
    _plan_lasso(numbers, effect, supposed, plot, as_json=as_json)


def _for_one_row(epsilon: float | None, delta: float, rows_per_unit: int) -> float | None:
    """Return what an ε for a unit of several rows is for one row, and say so."""
    if rows_per_unit == 1:
        return epsilon
    from dpscreen.planning.what_if import epsilon_of_one_row

    told = f"A unit has up to {rows_per_unit} rows: epsilon below is for one row"
    if epsilon is None:
        console.say(f"{told}.")
        return None
    one_row = float(f"{epsilon_of_one_row(epsilon, delta, rows_per_unit):.3g}")
    console.say(f"{told}, {one_row:g} where a unit has {epsilon:g}.")
    return one_row


def _plan_lasso(
    numbers: tuple[int | None, int, float | None, float],
    effect: float | None,
    supposed: dict[str, Any],
    plot: Path | None,
    *,
    as_json: bool,
) -> None:
    """Say what a fit will find; or, with an effect and without rows or ε, how much it takes."""
    # Slow to import: wrong usage is told first.
    from dpscreen.planning.plan import plan, plan_for

    rows, features, epsilon, delta = numbers
    with console.wrong_usage():
        if rows is not None and epsilon is not None:
            sizes = None if effect is None else [effect]
            with console.simulating("simulating") as progress:
                public: Any = {"effects": sizes, "progress": progress}
                expected = plan(rows, features, epsilon, delta, **public, **supposed)
            _show_plan(expected, plot, as_json=as_json)
        elif effect is not None:
            public = {"n_features": features, "n_rows": rows, "epsilon": epsilon}
            needed = plan_for(effect, delta=delta, **public, **supposed)
            _show_needed(needed, as_json=as_json)


def _check(
    rows: int | None, epsilon: float | None, effect: float | None, plot: Path | None
) -> None:
    if rows is None and epsilon is None:
        raise click.UsageError("Give --rows, --epsilon, or both.")
    if effect is None and (rows is None or epsilon is None):
        missing = "--rows" if rows is None else "--epsilon"
        raise click.UsageError(f"Give {missing}, or --effect to find out how much is needed.")
    if plot is not None and (rows is None or epsilon is None):
        raise click.BadParameter("needs both --rows and --epsilon.", param_hint="--plot")
    console.check_plot(plot)


def _check_model(model: str, rows: int | None, epsilon: float | None, rate: float | None) -> None:
    if rate is not None and model not in ("logistic", "logit"):
        raise click.BadParameter("needs --model logistic or logit.", param_hint="--rate")
    if model != "lasso" and (rows is None or epsilon is None):
        raise click.UsageError(f"--model {model} needs --rows and --epsilon.")


def _show_widths(
    numbers: tuple[Any, ...], rate: float | None, levels: int, *, as_json: bool
) -> None:
    """Say how wide the intervals of a table will be, and at other ε."""
    from dpscreen.planning.regression_plan import expected_table

    names = ("n_rows", "n_features", "epsilon", "delta")
    with console.simulating("simulating") as progress:
        public: Any = dict(zip(names, numbers, strict=True))
        expected = expected_table(**public, rate=rate, levels=levels, progress=progress)
    if as_json:
        click.echo(json.dumps(asdict(expected), indent=2))
        return
    table = Table(title="intervals, over those without privacy", title_style="bold")
    for name in ("epsilon", "times as wide"):
        table.add_column(name, justify="right")
    for one in expected.widths:
        table.add_row(f"{one.epsilon:g}", "none" if one.ratio is None else f"{one.ratio:.2g}")
    console.output().print(table)
    console.output().print(expected.finding, markup=False)


def _show_outcomes(
    numbers: tuple[Any, ...], rate: float | None, effect: float | None, seed: str, *, as_json: bool
) -> None:
    """Say which features of a yes or no will be found, and with which AUC."""
    from dpscreen.planning.outcome_plan import EFFECTS, OutcomeContest, expected_outcomes, finding
    from dpscreen.planning.plan import setting_of

    sizes = EFFECTS if effect is None else (effect,)
    with console.wrong_usage():
        contest = OutcomeContest(setting_of(*numbers), rate or 0.5, effects=sizes)
        with console.simulating("simulating") as progress:
            expected = expected_outcomes(contest, seed=seed, progress=progress)
    if as_json:
        rows = [asdict(one) for one in expected]
        click.echo(json.dumps(asdict(contest) | {"rows": rows}, indent=2))
        return
    title = f"{contest.title}, epsilon {contest.setting.epsilon:g}"
    table = Table(title=title, title_style="bold")
    for name in ("effect", *console.OUTCOME_QUALITIES):
        table.add_column(name, justify="right")
    for one in expected:
        table.add_row(f"{one.effect:g}", *console.outcome_qualities(one))
    console.output().print(table)
    console.output().print(finding(expected), markup=False)


def _show_plan(expected: Plan, plot: Path | None, *, as_json: bool) -> None:
    if plot is not None:
        with console.write_failures(plot):
            expected.plot(plot)
    if as_json:
        click.echo(json.dumps(expected.to_dict(), indent=2))
    else:
        click.echo(str(expected))
    if plot is not None:
        console.say(f"Picture written to {plot}")


def _show_needed(needed: Needed, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(asdict(needed) | {"words": str(needed)}, indent=2))
    else:
        console.output().print(str(needed), markup=False)
