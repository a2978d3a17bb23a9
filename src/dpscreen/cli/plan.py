"""`dpscreen plan`: what a private fit would find, before any budget is spent."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpscreen._core.words import listed
from dpscreen.cli import console
from dpscreen.cli._fit_options import OURS, SPARSE, TABLES

if TYPE_CHECKING:
    from dpscreen.solvers.family import Family

Numbers = tuple[Any, int, Any, float]
"""Rows, features, epsilon and delta."""


@click.command()
@click.option("--rows", type=console.ROWS, help="Number of rows.")
@click.option("--features", type=console.COUNT, help="Number of features.")
@console.schema_option("Its levels count as such, and a target of two levels as a binary outcome.")
@click.option("--epsilon", type=console.EPSILON, help="Budget: epsilon.")
@console.DELTA(help="Budget: delta.")
@click.option(
    "--effect",
    type=console.SHARE,
    help="Standardised coefficient to detect: finds --rows from --epsilon, or the reverse.",
)
@click.option("--n-effects", type=console.COUNT, help="Number of features with an effect.")
@click.option(
    "--correlation",
    type=console.NumberWithin(0, 1, max_open=True),
    default=0.0,
    help="Correlation between neighbouring features.",
)
@click.option(
    "--looseness",
    type=console.NumberWithin(1, 1000),
    default=1.0,
    help="Factor by which the declared bounds are too wide.",
)
@click.option(
    "--model",
    type=click.Choice(OURS),
    help=f"{', '.join(SPARSE.values())}: power to detect features (default: lasso). "
    f"{', '.join(TABLES.values())}: width of a regression table's intervals.",
)
@click.option(
    "--rate",
    type=console.POSITIVE,
    help="Assumed share of the second class of a binary outcome.  [default: 0.5]  Of counts: "
    "assumed mean.  [default: 1]",
)
@console.SEED
@console.plot_option("Draw power and R², or AUC, into this file")
@console.JSON(help="Print JSON.")
def command(
    rows: int | None,
    features: int | None,
    schema_file: Path | None,
    formula: str | None,
    epsilon: float | None,
    delta: float,
    model: str | None,
    rate: float | None,
    **given: Any,
) -> None:
    """Simulate what a private fit would detect: no data are read, nothing is charged.

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
      dpscreen plan --rows 9000 --features 8 --epsilon 1 --model poisson --rate 3
    """
    from dpscreen.solvers.family import FAMILIES, family_of_method

    shape = console.table_shape(features, schema_file, formula)
    method = shape.family.sparse.method if model is None else f"private-{model}"
    family = family_of_method(method)
    if rate is not None and family.simulation.rate is None:
        known = [one for one in FAMILIES if FAMILIES[one].simulation.rate is not None]
        names = listed([name for one in known for name in (SPARSE[one], TABLES[one])], "or")
        raise click.BadParameter(f"needs --model {names}.", param_hint="--rate")
    if rate is not None and not family.supposes(rate):
        raise click.BadParameter("a share lies between 0 and 1.", param_hint="--rate")
    searched = method == family.sparse.method and family.quadratic
    if not searched and (rows is None or epsilon is None):
        raise click.UsageError(
            f"--model {method.removeprefix('private-')} needs --rows and --epsilon."
        )
    if shape.rows_per_unit > 1 and method == family.table.method and family.averages_units:
        console.say("Units count, whatever the number of their rows: rows below are units.")
    elif shape.rows_per_unit > 1:
        from dpscreen.planning.power import epsilon_of_one_row

        words, whole = f"A unit has up to {shape.rows_per_unit} rows: epsilon below is", epsilon
        if whole is not None:
            epsilon = float(f"{epsilon_of_one_row(whole, delta, shape.rows_per_unit):.3g}")
        where = "" if whole is None else f", {epsilon:g} where a unit has {whole:g}"
        console.say(f"{words} for one row{where}.")
    numbers = (rows, shape.features, epsilon, delta)
    if method == family.table.method:
        _show_widths(numbers, rate, family, shape.levels, as_json=given["as_json"])
    else:
        _show_selection(numbers, rate, family, **given)


def _show_selection(
    numbers: Numbers,
    rate: float | None,
    family: Family,
    *,
    effect: float | None,
    plot: Path | None,
    as_json: bool,
    seed: str,
    **more: Any,
) -> None:
    """Say what a selection will find; or, with an effect and no rows or ε, how much it takes."""
    rows, features, epsilon, delta = numbers
    if rows is None and epsilon is None:
        raise click.UsageError("Give --rows, --epsilon, or both.")
    both = rows is not None and epsilon is not None
    if effect is None and not both:
        missing = "--rows" if rows is None else "--epsilon"
        raise click.UsageError(f"Give {missing}, or --effect to find out how much is needed.")
    if plot is not None and not both:
        raise click.BadParameter("needs both --rows and --epsilon.", param_hint="--plot")
    from dpscreen.planning.plan import plan, plan_for  # slow: wrong usage comes first

    more |= {"random_state": seed}
    with console.wrong_usage():
        if effect is not None and not both:
            public = {"n_features": features, "n_rows": rows, "epsilon": epsilon}
            needed = plan_for(effect, delta=delta, **public, **more)
            content, words = asdict(needed) | {"words": str(needed)}, str(needed)
        else:
            more |= {"rate": rate, "family": family.name}
            with console.share_bar() as progress:
                sizes = None if effect is None else [effect]
                expected = plan(*numbers, effects=sizes, progress=progress, **more)
            content, words = expected.to_dict(), str(expected)
    if plot is not None:
        with console.write_failures(plot, "Picture"):
            expected.plot(plot)
    if as_json:
        console.show_json(content)
    else:
        console.output().print(words, markup=False)


def _show_widths(
    numbers: Numbers, rate: float | None, family: Family, levels: int, *, as_json: bool
) -> None:
    """Say how wide the intervals of a table will be, and at other ε."""
    from dpscreen.planning.regression_plan import expected_table

    names = ("n_rows", "n_features", "epsilon", "delta")
    public: Any = dict(zip(names, numbers, strict=True))
    public |= {"rate": rate, "levels": levels, "family": family}
    with console.share_bar() as progress:
        expected = expected_table(**public, progress=progress)
    if as_json:
        console.show_json(asdict(expected))
        return
    rows = [
        (f"{one.epsilon:g}", "none" if one.ratio is None else f"{one.ratio:.2g}")
        for one in expected.widths
    ]
    title = "intervals, over those without privacy"
    console.print_table(console.made_table(("epsilon", "times as wide"), rows, title=title))
    console.output().print(expected.finding, markup=False)
