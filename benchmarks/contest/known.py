"""The contest on tables that rules were made on: `python -m benchmarks contest-known 5`.

The tables of `tables-quality` and `outcomes` are written as CSV files with schemas, bounds drawn as
a user guesses them, into dpscreen-contest/tables; then the command itself runs:

    dpscreen contest dpscreen-contest/tables --public --simulated --json \\
        --page dpscreen-contest/contest.html

What it prints is kept in dpscreen-contest/contest.json and becomes the tables of the page that
`DPSCREEN_PAGE` names, between its markers. `DPSCREEN_TRIALS` sets the repetitions (3),
`DPSCREEN_EPSILONS` the budgets. Without DPSCREEN_DATA only simulated tables are played on.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.inference import write
from benchmarks.tables_quality import harness
from dpscreen.planning.standings import measure

PLACE = Path("dpscreen-contest")
LOOSENESS = 4.0
SHOWN = (1.0, 5.0)
"""Budgets of which the page has every score."""

Found = dict[str, Any]


# --- tables with schemas --------------------------------------------------------------------------


def write_tables(folder: Path) -> None:
    """Write every task of the harness with its schema."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = harness()
    for kind in ("regression", "classification"):
        for task in tables.tasks(kind):
            bounds, aim = tables.loose_bounds(task, LOOSENESS, np.random.default_rng(0))
            columns = {f"x{j}": task.X[:, j] for j in range(task.X.shape[1])}
            target = task.y if kind == "regression" else task.y.astype(int)
            frame = pd.DataFrame(columns | {"target": target})
            frame.to_csv(folder / f"{task.name}.csv", index=False)
            schema = declared(bounds, aim if kind == "regression" else None)
            (folder / f"{task.name}.json").write_text(json.dumps(schema), encoding="utf-8")


def declared(bounds: Any, target: tuple[float, float] | None) -> dict[str, Any]:
    """Return a schema; without bounds the target is yes or no."""
    fields = [number(f"x{j}", low, high) for j, (low, high) in enumerate(bounds.tolist())]
    truth = {"name": "target", "type": "boolean", "trueValues": ["1"], "falseValues": ["0"]}
    aim = truth if target is None else number("target", *target)
    return {"fields": [*fields, aim], "dpscreen": {"target": "target"}}


def number(name: str, low: float, high: float) -> dict[str, Any]:
    return {"name": name, "type": "number", "constraints": {"minimum": low, "maximum": high}}


# --- the command ----------------------------------------------------------------------------------


def run(arguments: list[str]) -> Found:
    """Run the command, and keep what it prints."""
    command = [sys.executable, "-m", "dpscreen", "contest", *arguments, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=True)
    (PLACE / "contest.json").write_text(done.stdout, encoding="utf-8")
    return json.loads(done.stdout)


# --- what the page says ---------------------------------------------------------------------------


def rank_table(found: Found, kind: str) -> str:
    """Return mean ranks and mean scores of every method, by ε."""
    lines: dict[str, dict[float, Found]] = {}
    for one in found["divisions"][kind]["ranks"]:
        lines.setdefault(one["method"], {})[one["epsilon"]] = one
    epsilons = found["epsilons"]
    head = " | ".join(f"ε = {epsilon:.3g}" for epsilon in epsilons)
    text = [
        f"| mean rank (mean {measure(kind)}) | {head} | seconds |",
        "|---" * (len(epsilons) + 2) + "|",
    ]
    order = sorted(lines, key=lambda method: lines[method][max(epsilons)]["rank"])
    firsts = {e: min(by[e]["rank"] for by in lines.values()) for e in epsilons}
    for method in order:
        cells = " | ".join(cell(lines[method][e], firsts[e]) for e in epsilons)
        seconds = np.mean([one["seconds"] for one in lines[method].values()])
        text.append(f"| {method} | {cells} | {seconds:.2f} |")
    best = np.mean([mean(found, table, "not private", None) for table in names(found, kind)])
    text.append(f"| *not private* |{f' ({best:.3f}) |' * len(epsilons)} |")
    return "\n".join(text)


def cell(one: Found, first: float) -> str:
    rank = f"**{one['rank']:.1f}**" if one["rank"] == first else f"{one['rank']:.1f}"
    refused = f", refused {one['refused']}" if one["refused"] else ""
    return f"{rank} ({one['score']:.3f}{refused})"


def names(found: Found, kind: str) -> list[str]:
    return list(dict.fromkeys(one["table"] for one in found["fits"] if one["division"] == kind))


def mean(found: Found, table: str, method: str, epsilon: float | None) -> float:
    return float(np.mean([
        one["score"] for one in found["fits"]
        if (one["table"], one["method"], one["epsilon"]) == (table, method, epsilon)
    ]))  # fmt: skip


def score_table(found: Found, kind: str, epsilon: float) -> str:
    """Return the mean score of every method on every table."""
    ranked = [one for one in found["divisions"][kind]["ranks"] if one["epsilon"] == epsilon]
    methods = [one["method"] for one in sorted(ranked, key=lambda one: one["rank"])]
    title = f"{measure(kind)}, ε = {epsilon:.3g}"
    text = [f"| {title} | {' | '.join(methods)} | not private |", "|---" * (len(methods) + 2) + "|"]
    for table in names(found, kind):
        row = [mean(found, table, method, epsilon) for method in methods]
        cells = " | ".join(f"**{one:.3f}**" if one == max(row) else f"{one:.3f}" for one in row)
        text.append(f"| {table} | {cells} | {mean(found, table, 'not private', None):.3f} |")
    return "\n".join(text)


def lost(found: Found, kind: str) -> Iterator[str]:
    """Say where a method of other authors beats our first one, by more than chance."""
    for epsilon in found["epsilons"]:
        here = [one for one in found["divisions"][kind]["lost"] if one["epsilon"] == epsilon]
        sure = [one for one in here if one["difference"] > 2 * (one["error"] or math.inf)]
        shown = "; ".join(
            f"{one['table']} to {one['winner']} by {one['difference']:.3f}" for one in sure
        )
        behind = f"behind on {len(here)} of {len(names(found, kind))} tables"
        chance = f"on {len(sure)} by more than twice the error{': ' + shown if shown else ''}"
        yield f"* ε = {epsilon:.3g}: {behind}, {chance}."


def page(found: Found, kind: str) -> str:
    whole = [
        f"Means of {found['trials']} trials on {len(names(found, kind))} tables.",
        rank_table(found, kind),
    ]
    whole += [score_table(found, kind, e) for e in SHOWN if e in found["epsilons"]]
    ours = "PrivateLogisticLasso" if kind.endswith("outcomes") else "PrivateLasso"
    return "\n\n".join([*whole, f"Where {ours} loses:", "\n".join(lost(found, kind))])


def main() -> None:
    """Write the tables, run the command, and put what it found on the page."""
    PLACE.mkdir(exist_ok=True)
    arguments = ["--simulated", "--page", str(PLACE / "contest.html"), "--force"]
    if os.environ.get("DPSCREEN_DATA"):
        write_tables(PLACE / "tables")
        arguments = [str(PLACE / "tables"), "--public", *arguments]
    arguments += ["--trials", os.environ.get("DPSCREEN_TRIALS", "3")]
    for epsilon in os.environ.get("DPSCREEN_EPSILONS", "").split():
        arguments += ["--epsilon", epsilon]
    found = run(arguments)
    for kind in found["divisions"]:
        write(f"contest of {kind}", page(found, kind))


if __name__ == "__main__":
    main()
