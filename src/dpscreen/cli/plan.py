"""`dpscreen plan`: what a private fit would find, before any budget is spent."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from dpscreen.cli import console
from dpscreen.cli._fit_options import EACH, OURS, RATE, TABLES


@click.command()
@click.option("--rows", type=console.ROWS, help="Number of rows.")
@click.option("--features", type=console.COUNT, help="Number of features.")
@console.schema_option("It also declares levels, and whether the outcome is binary.")
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
    type=console.Number(0, 1, max_open=True),
    default=0.0,
    help="Correlation between neighbouring features.",
)
@click.option(
    "--looseness",
    type=console.Number(1, 1000),
    default=1.0,
    help="Factor by which the declared bounds are too wide.",
)
@click.option(
    "--model",
    type=click.Choice(OURS),
    help="Power of a sparse model to detect features, or width of the intervals of a regression "
    f"table: {EACH}.",
)
@RATE
@console.named_options
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
    interest: tuple[str, ...],
    required: tuple[str, ...],
    **given: Any,
) -> None:
    """Simulate what a private fit would detect: no data are read, nothing is charged.

    With --rows and --epsilon: for each size of effect, the power to detect it, and the error. With
    --effect and one of the two: the least of the other that gives 80 % power. A feature is detected
    if its coefficient is larger in size than those of 95 % of the features without effect: a
    false-selection rate of 5 % for each feature. An effect is a coefficient when features and
    target have variance 1; for a binary outcome, what one standard deviation of a feature adds to
    the log-odds.


    \b
    Examples:
      dpscreen plan --rows 5000 --features 40 --epsilon 1
      dpscreen plan --rows 5000 --features 40 --epsilon 1 --plot plan.png
      dpscreen plan --rows 5000 --schema schema.toml --epsilon 1
      dpscreen plan --rows 5000 --features 40 --effect 0.1
      dpscreen plan --epsilon 1 --features 40 --effect 0.1
      dpscreen plan --rows 5000 --features 8 --epsilon 1 --model ols
      dpscreen plan --rows 5000 --features 8 --epsilon 1 --model ols --interest x0
      dpscreen plan --rows 5000 --features 20 --epsilon 1 --model logistic
      dpscreen plan --rows 9000 --features 8 --epsilon 1 --model logit --rate 0.2
    """
    from dpscreen.families import family_of_method

    shape = console.table_shape(features, schema_file, formula)
    method = shape.family.sparse.method if model is None else f"private-{model}"
    family = family_of_method(method)
    if rate is not None and family.simulation.rate is None:
        raise click.BadParameter(f"does not apply to {method}.", param_hint="--rate")
    if rate is not None and not family.supposes(rate):
        raise click.BadParameter("a share lies between 0 and 1.", param_hint="--rate")
    searched = method == family.sparse.method and family.quadratic
    if not searched and (rows is None or epsilon is None):
        raise click.UsageError(
            f"--model {method.removeprefix('private-')} needs --rows and --epsilon."
        )
    public = {"n_rows": rows, "epsilon": epsilon, "delta": delta, "family": family.name}
    if method == family.table.method:
        if shape.rows_per_unit > 1:
            console.say("A table counts units, whatever their number of rows: --rows are units.")
        named = shape.expected({"interest": interest, "required": required})
        _show_widths(public | named | {"rate": rate}, as_json=given["as_json"])
    elif interest or required:
        raise click.UsageError(
            f"--interest and --required are for tables: {', '.join(TABLES.values())}."
        )
    else:
        public |= {"n_features": shape.features, "rows_per_unit": shape.rows_per_unit}
        _show_selection(public, rate, **given)


def _show_selection(
    public: dict[str, Any],
    rate: float | None,
    *,
    effect: float | None,
    plot: Path | None,
    as_json: bool,
    seed: str,
    **more: Any,
) -> None:
    """Show what a selection will detect; or, with an effect and no rows or ε, how much it needs."""
    rows, epsilon, family = public["n_rows"], public["epsilon"], public.pop("family")
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
            needed = plan_for(effect, **public, **more)
            content, words = asdict(needed) | {"words": str(needed)}, str(needed)
        else:
            with console.share_bar() as progress:
                sizes = None if effect is None else [effect]
                expected = plan(
                    **public, family=family, rate=rate, effects=sizes, progress=progress, **more
                )
            content, words = expected.to_dict(), str(expected)
    if plot is not None:
        with console.write_failures(plot, "Picture"):
            expected.plot(plot)
    if as_json:
        console.show_json(content)
    else:
        console.output().print(words, markup=False)


def _show_widths(public: dict[str, Any], *, as_json: bool) -> None:
    """Show how wide the intervals of a table will be, at this and other ε."""
    from dpscreen.planning.regression_plan import expected_table
    from dpscreen.planning.setting import Setting

    with console.share_bar() as progress:
        expected = expected_table(Setting(**public, table=True), progress=progress)
    if as_json:
        console.show_json(asdict(expected))
        return
    rows = [
        (f"{one.epsilon:g}", "none" if one.ratio is None else f"{one.ratio:.2g}")
        for one in expected.widths
    ]
    title = "width of intervals relative to those without privacy"
    console.print_table(("epsilon", "times as wide"), rows, title=title)
    console.output().print(expected.finding, markup=False)
