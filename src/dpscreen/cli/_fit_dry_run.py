"""`dpscreen fit --dry-run`: what a fit would do, cost and find. Spends nothing, reads no cell."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import click

from dpscreen._core.pictures import environment
from dpscreen._core.words import WIDTH, how_many, number
from dpscreen.cli import console
from dpscreen.cli._fit_options import PreparedFit


def show_plan(ready: PreparedFit) -> None:
    """Print the plan of a fit."""
    plan = _plan(ready)
    if ready.options.as_json:
        console.show_json(plan)
        return
    template = environment("dpscreen.cli").overlay(autoescape=False).get_template("dry-run.txt")
    for line in template.render(plan, number=number, how_many=how_many).splitlines():
        folded = textwrap.fill(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
        click.echo(folded.replace("\u00a0", " "))


def _plan(ready: PreparedFit) -> dict[str, Any]:
    from dpscreen.models.refusal import RequestedTable, table_needs
    from dpscreen.planning.methods import settings_of
    from dpscreen.privacy import ZCDP

    options, schema, request, ledger = ready.options, ready.schema, ready.request, None
    published = options.settings.get("calibration") == "published"
    if ready.booking is not None:
        document = ready.booking.ledger.document()
        names = ("dataset", "delta", "total", "spent", "remaining")
        ledger = {name: document[name] for name in names}
    # With how many rows a table is possible, by the rule of the fit.
    rule, width = getattr(ready.model, "table_rule", None), len(request.feature_bounds)
    needs = rule and table_needs(rule, RequestedTable(1, width, request.budget))
    return {
        "dry_run": True,
        "method": ready.method,
        "settings": settings_of(ready.model),
        "target": schema.target,
        "n_features": len(schema.feature_names),
        "unit": "one row" if schema.unit is None else schema.unit,
        "rows_per_unit": schema.rows_per_unit,
        "rows_public": options.rows_public,
        "errata": list(ready.model.errata) if published else [],
        "cost": {
            "epsilon": options.epsilon,
            "delta": options.delta,
            "rho": float(ZCDP.within(request.budget)),
        },
        "ledger": ledger,
        "expected": _expected(ready),
        "table_needs_rows": needs and needs.rows,
        "intervals": _interval_words(ready),
        "would_write": [str(path) for path in (options.output, options.report) if path is not None],
    }


def _no_split(ready: PreparedFit) -> str | None:
    """Return why a split will be refused; None where it will not, or is not known."""
    from dpscreen.solvers.split import refusal

    return None if ready.request.regime is None else refusal(ready.request.regime)


def _interval_words(ready: PreparedFit) -> str | None:
    """Say of how many features there will be intervals, or why of none; None if not asked for."""
    from dpscreen.solvers.split import n_listed

    regime = ready.request.regime
    if ready.options.inference is None or regime is None:
        return None
    if why := _no_split(ready):
        return f"none: {why} The model will be fitted on all rows, without a split."
    listed = how_many(min(n_listed(regime), regime.n_features), "feature")
    return f"of {listed} at most, those with the largest coefficients in the first half"


# --- what to expect, simulated from public numbers ------------------------------------------------


def _expected(ready: PreparedFit) -> dict[str, Any] | None:
    """Simulate the method; None where the number of rows is not public."""
    from dpscreen.planning.methods import PAPER

    options, method, family = ready.options, ready.method, ready.model.family
    if options.rows_public is None:
        return None
    if method in (family.sparse.method, family.table.method):
        with console.share_bar() as progress:
            return _simulated(ready, progress)
    if method not in PAPER:
        return {"finding": f"No command simulates {method}."}
    numbers = f"--rows {options.rows_public} --features {len(ready.request.feature_bounds)}"
    budget = f"--epsilon {options.epsilon:g}"
    asked = f"dpscreen compare {numbers} {budget} --method {method}"
    return {"finding": f"{asked} simulates {method}."}


def _simulated(ready: PreparedFit, progress: Callable[[float], None]) -> dict[str, Any]:
    """Say which effects will be detected, or how wide the intervals of a table will be."""
    from dpscreen.planning.plan import SECONDS, plan_of
    from dpscreen.planning.regression_plan import expected_table
    from dpscreen.planning.setting import Setting

    options, request, family = ready.options, ready.request, ready.model.family
    public = {"n_rows": options.rows_public, "family": family.name}
    public |= {"epsilon": options.epsilon, "delta": options.delta}
    caution = family.simulation.rate_caution
    if ready.method == family.table.method:
        features = console.shape_of(ready.schema).expected(options.settings)
        table = Setting(**public, **features, table=True)
        expected = expected_table(table, others=False, progress=progress)
        return asdict(expected) | {"finding": expected.finding + caution * bool(expected.ratio)}
    setting = Setting(
        **public,
        n_features=len(request.feature_bounds),
        rows_per_unit=request.rows_per_unit,
        split=options.inference is not None and _no_split(ready) is None,
        max_features=request.max_features,
    ).selecting
    planned = plan_of(setting, setting.page_effects, seconds=SECONDS / 3, progress=progress)
    return planned.to_dict() | {
        "finding": planned.finding + caution,
        "effect_is": family.words.effect_axis,
        "steps": planned.settings and planned.settings.steps,
    }
