"""What the pages say of the contest's records: where we lose, and mean ranks, scores and gaps.

Scores on single tables are in results.csv.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from benchmarks.contest.play import EPSILONS, NOT_PRIVATE, OURS, PACKAGE, kind_of

Record = dict[str, Any]
MEASURES = {
    "regression": "R²",
    "binary": "AUC",
    "counts": "D²",
    "intervals": "−score",
    "support": "F1",
}
SURE = 2.0
"""Standard errors from which on a difference counts as more than chance."""


class Standings:
    """The records of one division, open or locked."""

    def __init__(self, records: Sequence[Record], division: str) -> None:
        self.division, self.kind = division, kind_of(division)
        self.every = list(records)
        self.records = [one for one in records if one["epsilon"] in (None, *EPSILONS)]
        self._scores: dict[tuple[str, str, Any], list[float]] = defaultdict(list)
        for one in self.records:
            self._scores[one["table"], one["method"], one["epsilon"]].append(one["score"])
        self.tables = tuple(dict.fromkeys(one["table"] for one in self.records))
        played = dict.fromkeys(one["method"] for one in self.records)
        self.methods = tuple(one for one in played if one != NOT_PRIVATE)
        self.epsilons = tuple(e for e in EPSILONS if any(one["epsilon"] == e for one in records))

    def scores(self, table: str, method: str, epsilon: Any) -> Any:
        """Return the scores of all trials."""
        return np.array(self._scores[table, method, epsilon])

    def mean(self, table: str, method: str, epsilon: Any) -> float:
        return float(self.scores(table, method, epsilon).mean())

    def grid(self, epsilon: float) -> Any:
        """Return mean scores, a row for each table."""
        return np.array([[self.mean(t, m, epsilon) for m in self.methods] for t in self.tables])

    def ranks(self, epsilon: float) -> dict[str, float]:
        """Return the mean rank of every method."""
        ranks = rankdata(-self.grid(epsilon), axis=1).mean(axis=0)
        return dict(zip(self.methods, ranks.tolist(), strict=True))

    def order(self) -> list[str]:
        """Return methods by their mean rank over all budgets."""
        whole = {m: np.mean([self.ranks(e)[m] for e in self.epsilons]) for m in self.methods}
        return sorted(whole, key=lambda m: float(whole[m]))

    def about(self, method: str, field: str) -> list[Any]:
        return [one.get(field) for one in self.records if one["method"] == method]

    def best(self, table: str) -> float | None:
        found = self.scores(table, NOT_PRIVATE, None)
        return float(found.mean()) if len(found) else None

    # --- tables of the page ---

    def rank_table(self) -> str:
        """Return mean ranks, mean scores, mean and worst gaps, and times."""
        measure = MEASURES[self.kind]
        shown = "mean rank" if self.kind == "intervals" else f"mean rank (mean {measure})"
        head = " | ".join(f"ε = {e:.3g}" for e in self.epsilons)
        lines = [f"| {shown} | {head} | seconds |", "|---" * (len(self.epsilons) + 2) + "|"]
        ranks = {e: self.ranks(e) for e in self.epsilons}
        for method in self.order():
            cells = " | ".join(self._cell(method, e, ranks[e]) for e in self.epsilons)
            seconds = np.mean(self.about(method, "seconds"))
            lines.append(f"| {method} | {cells} | {seconds:.2f} |")
        if NOT_PRIVATE in {one["method"] for one in self.records}:
            mean = np.mean([self.best(t) for t in self.tables])
            lines.append(f"| *not private* |{f' ({mean:.3f}) |' * len(self.epsilons)} |")
        return "\n".join(lines)

    def _cell(self, method: str, epsilon: float, ranks: dict[str, float]) -> str:
        rank = f"{ranks[method]:.1f}"
        text = f"**{rank}**" if ranks[method] == min(ranks.values()) else rank
        if self.kind == "intervals":
            return text
        refused = sum(
            one["refused"] and one["epsilon"] == epsilon
            for one in self.records
            if one["method"] == method
        )
        mean = self.grid(epsilon)[:, self.methods.index(method)].mean()
        return f"{text} ({mean:.3f}{f', refused {refused}' if refused else ''})"

    def gap_table(self) -> str:
        """Return the mean and the worst gap to the model without privacy."""
        head = " | ".join(f"ε = {e:.3g}" for e in self.epsilons)
        lines = [f"| mean gap (worst gap) | {head} |", "|---" * (len(self.epsilons) + 1) + "|"]
        best = np.array([self.best(t) for t in self.tables])[:, None]
        for method in self.order():
            place = self.methods.index(method)
            gaps = [(best - self.grid(e))[:, place] for e in self.epsilons]
            cells = " | ".join(f"{one.mean():.3f} ({one.max():.3f})" for one in gaps)
            lines.append(f"| {method} | {cells} |")
        return "\n".join(lines)

    def loss_table(self) -> str:
        """Return the mean log loss of methods that give probabilities."""
        head = " | ".join(f"ε = {e:.3g}" for e in self.epsilons)
        lines = [f"| mean log loss | {head} |", "|---" * (len(self.epsilons) + 1) + "|"]
        for method in self.order():
            given = [
                [
                    one.get("log_loss")
                    for one in self.records
                    if (one["method"], one["epsilon"]) == (method, e)
                ]
                for e in self.epsilons
            ]
            if all(None not in one for one in given):
                cells = " | ".join(f"{np.mean(one):.3f}" for one in given)
                lines.append(f"| {method} | {cells} |")
        return "\n".join(lines)

    def interval_table(self) -> str:
        """Return coverage and the width over that of least squares, every design and budget."""
        text = []
        for table in self.tables:
            budgets = sorted({one["epsilon"] for one in self.every if one["table"] == table})
            head = " | ".join(f"ε = {e:.3g}" for e in budgets)
            text += [f"| {table} | {head} |", "|---" * (len(budgets) + 1) + "|"]
            for method in self.order():
                cells = []
                for e in budgets:
                    here = [
                        one
                        for one in self.every
                        if (one["table"], one["method"], one["epsilon"]) == (table, method, e)
                    ]
                    cells.append(_coverage(here))
                text.append(f"| {method} | {' | '.join(cells)} |")
            text.append("")
        return "\n".join(text)

    def lost(self) -> Iterator[str]:
        """Yield, for every budget, where a method of others beats our first one."""
        ours, own = OURS[self.kind], PACKAGE[self.kind]
        for epsilon in self.epsilons:
            ranks = self.ranks(epsilon)
            ahead = sorted(
                (m for m in self.methods if m not in own and ranks[m] < ranks[ours]),
                key=lambda m: ranks[m],
            )
            sure = []
            for table in self.tables:
                others = [m for m in self.methods if m not in own]
                winner = max(others, key=lambda m: self.mean(table, m, epsilon))
                theirs, mine = (self.scores(table, one, epsilon) for one in (winner, ours))
                apart = theirs - mine[: len(theirs)]
                error = apart.std(ddof=1) / math.sqrt(len(apart)) if len(apart) > 1 else math.inf
                if apart.mean() > 0:
                    sure.append((float(apart.mean()), float(error), table, winner))
            beyond = [one for one in sure if one[0] > SURE * one[1]]
            shown = "; ".join(f"{t} to {w} by {a:.3f}" for a, _, t, w in sorted(beyond)[::-1])
            behind = f"behind {', '.join(ahead)} in mean rank; " if ahead else ""
            better = f"some rival is better on {len(sure) or 'none'} of {len(self.tables)} tables"
            chance = f", on {len(beyond)} by more than {SURE:g} standard errors: {shown}"
            yield f"* ε = {epsilon:.3g}: {behind}{better}{chance if beyond else ''}."

    def text(self) -> str:
        """Return what the first page has: where we lose, and coverage and width of intervals."""
        trials = 1 + max(one["trial"] for one in self.records)
        parts = [self.interval_table()] if self.kind == "intervals" else []
        runs = f"Means of {trials} trials" if trials > 1 else "One trial"
        count = f"{len(self.tables)} table{'s' if len(self.tables) > 1 else ''}"
        parts.append(f"{runs} on {count}. Where {OURS[self.kind]} loses:")
        return "\n\n".join([*parts, "\n".join(self.lost())])

    def details(self) -> str:
        """Return what the second page has: mean ranks, scores, times, gaps and log losses."""
        parts = [self.rank_table()]
        if self.kind in ("regression", "binary", "counts"):
            parts.append(self.gap_table())
        if self.kind == "binary":
            parts.append(self.loss_table())
        return "\n\n".join(parts)


def summary(named: Sequence[tuple[str, Standings]]) -> str:
    """Return our mean rank and the best of others', by division and budget."""
    lines = []
    for name, one in named:
        ours, own = OURS[one.kind], PACKAGE[one.kind]
        cells = []
        for epsilon in one.epsilons:
            ranks = one.ranks(epsilon)
            best = min((m for m in one.methods if m not in own), key=lambda m: ranks[m])
            mine = f"{ranks[ours]:.1f}"
            mark = f"**{mine}**" if ranks[ours] <= ranks[best] else mine
            cells.append(f"{mark}; {best} {ranks[best]:.1f}")
        if not lines:
            head = " | ".join(f"ε = {e:.3g}" for e in one.epsilons)
            lines = [f"| division | {head} |", "|---" * (len(one.epsilons) + 1) + "|"]
        title = name.removeprefix("contest of ").removesuffix(" tables")
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _coverage(here: list[Record]) -> str:
    if not here:
        return ""
    given = sum(one["given"] for one in here)
    if not given:
        return "none"
    widths = [one["relative_width"] for one in here if one["relative_width"] is not None]
    share = sum(one["covered"] for one in here) / given
    few = "" if all(not one["refused"] for one in here) else "*"
    return f"{share:.2f}, {np.median(widths):.3g}×{few}"


def write_results(records: Sequence[Record], path: Path) -> None:
    """Write the mean score of every method on every table at every budget: nothing is left out."""
    found: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for one in records:
        found[one["division"], one["table"], one["epsilon"], one["method"]].append(one["score"])
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(("division", "table", "epsilon", "method", "trials", "score"))
        for (division, table, epsilon, method), scores in found.items():
            mean = f"{np.mean(scores):.4g}"
            lines.writerow((division, table, epsilon or "", method, len(scores), mean))
