"""What a check of a claim is made of: rows in, a verdict and a sentence for each reading out.

The readings themselves, how the paper's words are taken and what was run for it, are in
`published.json`; a check is registered for each, in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from dpscreen.paper.agreement import RowIndex, better_by_sign_test, mean_of
from dpscreen.paper.methods import of_rows
from dpscreen.paper.published import PublishedClaim, label, published_data
from dpscreen.paper.suites import SYNTHETIC

REAL = tuple(name for name in published_data() if name not in SYNTHETIC)
WIDE = tuple(name for name in REAL if published_data()[name].n_features > 20)
LITTLE = 0.05
"""A share or an F1 that differs by no more is called about the same."""


class Outcome(NamedTuple):
    """Whether a claim holds in one reading (None: not run), why, and the numbers behind it."""

    holds: bool | None
    finding: str
    numbers: Mapping[str, float] = {}


@dataclass(frozen=True)
class JudgedReading:
    """How the words were taken, what was run for that, and what came out."""

    reading: str
    run: str
    outcome: Outcome

    @property
    def verdict(self) -> str:
        """Return "holds", "does not hold" or "not run"."""
        return VERDICTS[self.outcome.holds]


VERDICTS = {True: "holds", False: "does not hold", None: "not run"}


@dataclass(frozen=True)
class ClaimCheck(PublishedClaim):
    """A statement of the paper, and what was found of it in every reading."""

    judged: tuple[JudgedReading, ...]

    @property
    def verdict(self) -> str:
        """Return what all readings agree on, or that they do not."""
        found = {one.outcome.holds for one in self.judged}
        if None in found:
            return VERDICTS[None]
        return VERDICTS[found.pop()] if len(found) == 1 else "depends on the reading"


class NotRunError(Exception):
    """The rows that a claim needs are not there."""


Check = Callable[..., Outcome]


class Checks(dict[str, list[Callable[[RowIndex], Outcome]]]):
    """By claim, one check for each of its readings."""

    def reads(self, key: str, *settings: Mapping[str, Any]) -> Callable[[Check], Check]:
        """Register a check for the next reading of a claim; for several, one with each settings."""

        def keep(check: Check) -> Check:
            self.setdefault(key, []).extend(partial(check, **given) for given in settings or ({},))
            return check

        return keep


# --- numbers ------------------------------------------------------------------------------------


def mean(index: RowIndex, suite: str, data: str, method: str, metric: str) -> float:
    """Return the mean over trials; the claim is not run without it."""
    found = index.estimate(suite, data, method, metric)
    if found is None:
        raise NotRunError(f"{spoken(method)} on {label(data)}")
    return found.mean


def curve_mean(
    index: RowIndex, suite: str, data: str, method: str, series: str, place: int
) -> float:
    """Return the mean of a curve at its first (0) or last (-1) iteration."""
    rows = [row for row in index.rows(suite, data, method) if series in row.series]
    found = mean_of(row.series[series][place] for row in rows)
    if found is None:
        raise NotRunError(f"{spoken(method)} on {label(data)}")
    return found.mean


def better(
    index: RowIndex, suite: str, data: str, methods: tuple[str, str], metric: str
) -> tuple[bool, float]:
    """Whether the first method is significantly better than the second, and the p-value."""
    ours, theirs = (index.values(suite, data, method, metric) for method in methods)
    if not set(ours) & set(theirs):
        raise NotRunError(f"{spoken(methods[0])} and {spoken(methods[1])} on {label(data)}")
    test, ahead = better_by_sign_test(ours, theirs, metric)
    return ahead, test.p_two_sided


def changes(
    index: RowIndex,
    metric: str,
    ours: tuple[str, str],
    theirs: tuple[str, str],
    sets: Sequence[str] = REAL,
) -> dict[str, float]:
    """How much more one (suite, method) has of a metric than another, on each set."""
    return {
        data: mean(index, ours[0], data, ours[1], metric)
        - mean(index, theirs[0], data, theirs[1], metric)
        for data in sets
    }


# --- words --------------------------------------------------------------------------------------


def spoken(method: str) -> str:
    """Return the name of a method for readers."""
    return of_rows(method).label


def by_label(numbers: Mapping[str, float], of: str = "") -> dict[str, float]:
    """Return numbers by data set under the names that readers know."""
    return {f"{of} {label(data)}".strip(): value for data, value in numbers.items()}


def of_sets(found: Iterable[str], among: Sequence[str] = REAL) -> str:
    """Return "2 of 8 sets (Abalone, Housing)"."""
    names = [label(name) for name in found]
    which = f" ({', '.join(names)})" if 0 < len(names) < len(among) else ""
    return f"{len(names)} of {len(among)} sets{which}"
