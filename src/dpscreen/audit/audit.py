"""Running cases, and from counts to a certified lower bound on ε and a verdict.

If an event has probability p on one data set and q on a neighbouring one, (ε, δ)-differential
privacy demands p ≤ e^ε q + δ. So a lower confidence limit of p and an upper one of q certify
ε ≥ ln((p − δ)/q), at the confidence of the two limits together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from dpscreen._core.arrays import Array
from dpscreen._core.files import write_text
from dpscreen.audit.cases import Case, all_cases
from dpscreen.privacy import Noise, SecureNoise, SeededNoise


@dataclass(frozen=True)
class Finding:
    """What the runs of one case certify.

    `certified` is a lower bound on the true ε at the claimed δ, wrong with probability at most
    1 − `confidence`.
    """

    name: str
    title: str
    claimed: float
    delta: float
    certified: float
    confidence: float
    runs: int
    stands: bool

    @property
    def broken(self) -> bool:
        """Whether the claim is refuted."""
        return self.certified > self.claimed

    @property
    def as_expected(self) -> bool:
        """Whether the verdict is the one that the proofs and the errata lead to expect."""
        return self.broken != self.stands

    @property
    def verdict(self) -> str:
        """Say it in two words."""
        return "claim refuted" if self.broken else "not refuted"


def audit_case(
    case: Case, *, runs: int | None = None, confidence: float = 0.999, noise: Noise | None = None
) -> Finding:
    """Run a case on both data sets; choose the event on one half, judge it on the other."""
    noise = noise or SecureNoise()
    count, claim = runs or case.runs, case.claimed
    here, there = (case.sample(with_row, count, noise) for with_row in (False, True))
    here, there, spent = with_learned_score(here, there)
    here, there, half = here[spent:], there[spent:], (len(here) - spent) // 2
    given = {"delta": claim.delta, "confidence": confidence}
    event = best_event(here[:half], there[:half], **given)
    return Finding(
        name=case.name,
        title=case.title,
        claimed=claim.epsilon,
        delta=claim.delta,
        certified=float(event.epsilon(here[half:], there[half:], **given)),
        confidence=confidence,
        runs=2 * count,
        stands=case.stands,
    )


def with_learned_score(here: Array, there: Array) -> tuple[Array, Array, int]:
    """Add what a classifier, trained on the first quarter of runs, says to all released numbers.

    Return how many runs trained it, which may certify nothing. One number needs no classifier.
    """
    if here.shape[1] == 1:
        return here, there, 0
    from sklearn.ensemble import HistGradientBoostingClassifier

    spent = len(here) // 4
    shown, labels = np.vstack((here[:spent], there[:spent])), np.repeat((0, 1), spent)
    model = HistGradientBoostingClassifier(max_iter=50, random_state=0).fit(shown, labels)

    def scored(outputs: Array) -> Array:
        return np.column_stack((outputs, model.predict_proba(outputs)[:, 1]))

    return scored(here), scored(there), spent


def audit(
    names: Sequence[str] = (),
    *,
    runs: int | None = None,
    confidence: float = 0.999,
    jobs: int = 1,
    seed: str | None = None,
    on_finding: Callable[[Finding], None] | None = None,
) -> list[Finding]:
    """Audit the named cases, or all of them, and return what was found, in order.

    `runs` is for each of the two data sets. A `seed` makes the audit repeatable; without one the
    noise is that of a real release.
    """
    unknown = [name for name in names if name not in all_cases()]
    if unknown:
        raise ValueError(f"no case {unknown[0]!r}; there are: {', '.join(all_cases())}.")
    run = partial(_audit_named, runs=runs, confidence=confidence, seed=seed)
    findings = []
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for finding in (pool.map if jobs > 1 else map)(run, names or tuple(all_cases())):
            findings.append(finding)
            if on_finding:
                on_finding(finding)
    return findings


def _audit_named(name: str, *, runs: int | None, confidence: float, seed: str | None) -> Finding:
    noise = SecureNoise() if seed is None else SeededNoise(f"{seed}/{name}")
    return audit_case(all_cases()[name], runs=runs, confidence=confidence, noise=noise)


# --- from counts to a bound ---------------------------------------------------------------------


def clopper_pearson(successes: ArrayLike, runs: int, *, miss: float) -> tuple[Array, Array]:
    """Return one-sided limits (low, high); each fails to hold with probability at most `miss`."""
    k = np.asarray(successes, dtype=np.float64)
    low = np.where(k > 0, betaincinv(np.maximum(k, 1), runs - k + 1, miss), 0.0)
    high = np.where(k < runs, betaincinv(k + 1, np.maximum(runs - k, 1), 1 - miss), 1.0)
    return low, high


Counts = tuple[ArrayLike, int]
"""In how many runs each event happened, and the number of runs."""


def certified_epsilon(
    likely: Counts, unlikely: Counts, *, delta: float, confidence: float
) -> Array:
    """Return the ε that the counts of events certify, 0 where they certify nothing."""
    miss = (1 - confidence) / 2
    low = clopper_pearson(*likely, miss=miss)[0]
    high = clopper_pearson(*unlikely, miss=miss)[1]
    ratio = np.maximum(low - delta, 0.0) / high
    return np.log(np.maximum(ratio, 1.0))


# The search looks at this many thresholds a statistic; more would hardly find better ones.
_THRESHOLDS = 200


@dataclass(frozen=True)
class Event:
    """One side of thresholds on a released number; `first`: likely on the first data set."""

    statistic: int
    above: bool
    first: bool
    threshold: float | Array

    def epsilon(self, here: Array, there: Array, *, delta: float, confidence: float) -> Array:
        """Return the ε that the event certifies from runs on the two data sets."""
        counts = []
        for runs in (here, there):
            ordered = np.sort(runs[:, self.statistic])
            side: Literal["left", "right"] = "left" if self.above else "right"
            below = np.searchsorted(ordered, self.threshold, side=side)
            counts.append((len(runs) - below if self.above else below, len(runs)))
        likely, unlikely = counts if self.first else counts[::-1]
        return certified_epsilon(likely, unlikely, delta=delta, confidence=confidence)


def best_event(here: Array, there: Array, *, delta: float, confidence: float) -> Event:
    """Return the event that certifies most on these runs."""
    best, event = -1.0, Event(0, True, True, 0.0)
    for kind in product(range(here.shape[1]), (True, False), (True, False)):
        values = np.unique(np.concatenate((here[:, kind[0]], there[:, kind[0]])))
        positions = np.unique(np.linspace(0, len(values) - 1, _THRESHOLDS).astype(int))
        tried = Event(*kind, values[positions])
        certified = tried.epsilon(here, there, delta=delta, confidence=confidence)
        if certified.max() > best:
            best = float(certified.max())
            event = Event(*kind, float(values[positions][np.argmax(certified)]))
    return event


# --- the file of findings -----------------------------------------------------------------------

NAME = "audit.json"


class AuditFileProblem(Exception):
    """A file of findings cannot be used; the message says why."""


def save_findings(findings: Sequence[Finding], directory: Path) -> Path:
    """Write findings into a directory, in place of those of an earlier audit."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / NAME
    write_text(path, json.dumps([asdict(one) for one in findings], indent=1))
    return path


def load_findings(directory: Path) -> tuple[Finding, ...]:
    """Read the findings of a directory; none if there was no audit."""
    path = directory / NAME
    if not path.exists():
        return ()
    try:
        return tuple(_finding(one) for one in json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, OSError):
        raise AuditFileProblem(
            f"{NAME} is not a file of findings; run `dpscreen audit --save` again"
        ) from None


_KINDS: dict[str, Any] = {"float": (int, float), "int": int, "bool": bool, "str": str}


def _finding(stored: dict[str, Any]) -> Finding:
    for field in fields(Finding):
        if not isinstance(stored[field.name], _KINDS[str(field.type)]):
            raise TypeError(f"{field.name} has another type")
    return Finding(**stored)
