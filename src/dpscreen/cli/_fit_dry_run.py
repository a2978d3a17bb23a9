"""`dpscreen fit --dry-run`: what a fit would do, cost and find. Spends nothing, reads no cell."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from dpscreen._core.words import DETECTED, FALSE_RATE, WIDTH, how_many, number
from dpscreen.cli import console
from dpscreen.cli._fit_options import PreparedFit
from dpscreen.cli.console import ledger_failures

if TYPE_CHECKING:
    from dpscreen.planning.fitting import Booking

NO_ROWS = (
    "What to expect depends on the number of rows. Give --rows-public to see it; without it a "
    "noisy count is paid for when the rows are read, and the true number is not disclosed."
)

ROWS_DISCLOSED = "The published calibration needs the number of rows, and discloses it."

NEEDS_ROWS = (
    "A table of so many features takes at least about {} rows at this budget. With fewer the fit "
    "is refused after the noisy count, which alone is charged."
)

HALF_SUPPOSED = (
    " That is if half are a yes: where one of the two is rare, less is found, as dpscreen plan "
    "--rate tells."
)


def show_plan(ready: PreparedFit) -> None:
    """Print the plan of a fit."""
    plan = _plan(ready)
    if ready.options.as_json:
        click.echo(json.dumps(plan, indent=2, ensure_ascii=False))
        return
    for line in _lines(plan):
        folded = textwrap.fill(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
        click.echo(folded.replace("\u00a0", " "))


def _plan(ready: PreparedFit) -> dict[str, Any]:
    from dpscreen.planning.methods import settings_of
    from dpscreen.privacy import ZCDP

    options, schema = ready.options, ready.schema
    return {
        "dry_run": True,
        "method": ready.method,
        "settings": settings_of(ready.model),
        "target": schema.target,
        "n_features": len(schema.feature_names),
        "unit": "one row" if schema.unit is None else schema.unit,
        "rows_per_unit": schema.rows_per_unit,
        "missing_numbers": console.unfilled_words(schema) or None,
        "rows_public": options.rows_public,
        "errata": list(ready.model.errata) if options.calibration == "published" else [],
        "cost": {
            "epsilon": options.epsilon,
            "delta": options.delta,
            "rho": float(ZCDP.within(ready.request.budget)),
        },
        "ledger": _ledger(ready.booking),
        "expected": _expected(ready),
        "table_needs_rows": _rows_for_table(ready),
        "intervals": _interval_words(ready),
        "would_write": [str(path) for path in (options.output, options.report) if path is not None],
    }


def _ledger(booking: Booking | None) -> dict[str, Any] | None:
    if booking is None:
        return None
    with ledger_failures():
        document = booking.ledger.document()
    names = ("dataset", "delta", "total", "spent", "remaining")
    return {name: document[name] for name in names}


def _expected(ready: PreparedFit) -> dict[str, Any] | None:
    """Simulate from public numbers; None where the number of rows is not public."""
    if ready.options.rows_public is None:
        return None
    with console.simulating("simulating") as progress:
        match ready.method:
            case "private-ols" | "private-logit":
                return _of_table(ready, progress)
            case "private-logistic":
                return _of_outcomes(ready, progress)
        return _of_selection(ready, progress)


def _rows_for_table(ready: PreparedFit) -> int | None:
    """Return with how many rows a table is possible, by the rule of the fit; None if it is none."""
    from dpscreen.models.refusal import RequestedTable, table_needs

    rule = getattr(ready.model, "table_rule", None)
    if rule is None:
        return None
    width, budget = len(ready.request.feature_bounds), ready.request.budget
    needs = table_needs(rule, RequestedTable(1, width, budget))
    return None if needs is None else needs.rows


def _no_split(ready: PreparedFit) -> str | None:
    """Return why a split will be refused; None where it will not, or nobody can tell."""
    from dpscreen.solvers.inference import refusal

    return None if ready.request.regime is None else refusal(ready.request.regime)


def _splits(ready: PreparedFit) -> bool:
    return ready.options.inference is not None and _no_split(ready) is None


def _interval_words(ready: PreparedFit) -> str | None:
    """Say of how many features there will be intervals, or why of none; None if not asked for."""
    from dpscreen.solvers.inference import n_listed

    regime = ready.request.regime
    if ready.options.inference is None or regime is None:
        return None
    if why := _no_split(ready):
        return f"none: {why.replace('was fitted', 'will be fitted')}"
    listed = how_many(min(n_listed(regime), regime.n_features), "feature")
    return f"of {listed} at most, those with the largest coefficients in the first half"


def _of_selection(ready: PreparedFit, progress: Callable[[float], None]) -> dict[str, Any]:
    """Say which effects private-lasso will detect; of another method nothing is simulated."""
    from dpscreen.planning.methods import ON_OFFER
    from dpscreen.planning.plan import QUICK_SECONDS, SECONDS, plan, selecting_rows, setting_of
    from dpscreen.planning.power import default_effects
    from dpscreen.planning.what_if import epsilon_of_one_row

    options, request = ready.options, ready.request
    public, width = options.rows_public or 2, len(request.feature_bounds)
    if ready.method not in ON_OFFER:
        return {"words": f"No command simulates {ready.method}."}
    if ready.method != "private-lasso":
        simulates = (
            f"dpscreen compare --rows {public} --features {width} --epsilon {options.epsilon:g} "
            f"--method {ready.method} simulates {ready.method}."
        )
        return {"words": simulates}
    one_row = epsilon_of_one_row(options.epsilon, options.delta, request.rows_per_unit)
    public_numbers = selecting_rows(public, split=_splits(ready)), width, one_row, options.delta
    few = default_effects(setting_of(*public_numbers))[::2]  # so each has tables enough
    told: Any = {"effects": few, "seconds": min(SECONDS, QUICK_SECONDS), "progress": progress}
    planned = plan(*public_numbers, max_features=request.max_features, **told)
    return {
        "signal": planned.signal,
        "useful": planned.useful,
        "smallest_effect": planned.smallest_effect,
        "false_selection_rate": FALSE_RATE,
        "power_means": DETECTED,
        "words": planned.words,
        "finding": planned.finding,
        "power": [
            {"effect": row.effect, "power": row.power, "power_se": row.power_se}
            for row in planned.rows
        ],
        "rules": asdict(planned.settings) | {"steps": planned.settings.steps},
    }


def _of_table(ready: PreparedFit, progress: Callable[[float], None]) -> dict[str, Any]:
    """Say how wide intervals will be, or that there will be none."""
    from dpscreen.planning.regression_plan import HALF, expected_table
    from dpscreen.solvers.placing import is_binary

    options, odds = ready.options, ready.method == "private-logit"
    expected = expected_table(
        n_rows=options.rows_public or 2,
        n_features=len(ready.request.feature_bounds),
        epsilon=options.epsilon,
        delta=options.delta,
        others=False,
        rate=HALF if odds else None,
        levels=int(is_binary(ready.request.feature_bounds).sum()),
        progress=progress,
    )
    return {
        "useful": expected.ratio is not None,
        "refused": expected.refused,
        "rows_needed": expected.rows_needed,
        "width_ratio": expected.ratio,
        "words": f"{expected.finding}{HALF_SUPPOSED if odds and expected.ratio else ''}",
    }


def _of_outcomes(ready: PreparedFit, progress: Callable[[float], None]) -> dict[str, Any]:
    """Say what a model of yes and no will find, if half of the rows are a yes."""
    from dpscreen.planning.outcome_plan import TOO_FEW, OutcomeContest, expected_outcomes, finding
    from dpscreen.planning.plan import USELESS, selecting_rows, setting_of
    from dpscreen.planning.regression_plan import HALF

    options, request = ready.options, ready.request
    signal = 0.0 if request.regime is None else request.regime.signal
    if signal < USELESS:
        return {"signal": signal, "useful": False, "words": TOO_FEW}
    rows = selecting_rows(options.rows_public or 2, split=_splits(ready))
    width = len(request.feature_bounds)
    numbers = rows, width, options.epsilon, options.delta
    setting = setting_of(*numbers, max_features=request.max_features)
    contest = OutcomeContest(setting, HALF, rows_per_unit=request.rows_per_unit)
    told = f"{finding(expected_outcomes(contest, progress=progress))}{HALF_SUPPOSED}"
    return {"signal": signal, "useful": True, "words": told}


def _lines(plan: dict[str, Any]) -> Iterator[str]:
    cost, unit = plan["cost"], plan["unit"]
    yield "Dry run: no row was read, nothing is spent, and nothing is written."
    yield f"Model:    {plan['target']} from {plan['n_features']} features, by {plan['method']}"
    given = {name: value for name, value in plan["settings"].items() if value is not None}
    yield f"Settings: {', '.join(f'{name}={value!r}' for name, value in given.items())}"
    several = "" if plan["rows_per_unit"] == 1 else f", at most {plan['rows_per_unit']} rows of it"
    named = unit if unit == "one row" else f"one value of {unit!r}"
    yield f"Protects: {named}{several}"
    if plan["missing_numbers"]:
        yield f"Missing:  {plan['missing_numbers']}"
    if plan["errata"]:
        yield (
            f"NOT PRIVATE AS STATED: with the published calibration epsilon {cost['epsilon']:g} "
            f"does not hold (errata {', '.join(plan['errata'])})."
        )
    else:
        spent = f"epsilon {cost['epsilon']:g}, delta {cost['delta']:g} (rho {cost['rho']:.4g})"
        if (plan["expected"] or {}).get("refused"):
            spent = f"a noisy count at most, as the fit would be refused (budget: {spent})"
        yield f"Costs:    {spent}"
    yield f"Ledger:   {_ledger_words(plan['ledger'])}"
    yield f"Writes:   {', '.join(plan['would_write']) or 'nothing, as no output is given'}"
    expected = plan["expected"]
    if expected is None:
        yield ROWS_DISCLOSED if plan["errata"] else NO_ROWS
        if plan["table_needs_rows"] is not None:
            yield NEEDS_ROWS.format(number(plan["table_needs_rows"]))
        return
    if plan["intervals"]:
        yield f"Intervals: {plan['intervals']}"
    yield f"Expect:   {expected['words']} {expected.get('finding', '')}".rstrip()
    if "power" not in expected:
        return
    powers = (
        f"{one['effect']:g}:\u00a0{one['power']:.0%}\u00a0±\u00a0{one['power_se']:.0%}"
        for one in expected["power"]
    )
    yield f"Power:    by standardised coefficient, {', '.join(powers)}"
    chosen = expected["rules"]
    yield (
        f"Rules:    {chosen['steps']}, residuals clipped at {chosen['clip']:.2g} times "
        "their standard deviation, unless set"
    )


def _ledger_words(ledger: dict[str, Any] | None) -> str:
    if ledger is None:
        return "none, so nothing keeps count of what other fits spend"
    left = ledger["remaining"]
    return (
        f"{ledger['dataset']} has rho {left['rho']:g} left (epsilon {left['epsilon']:g} at delta "
        f"{ledger['delta']:g})"
    )
