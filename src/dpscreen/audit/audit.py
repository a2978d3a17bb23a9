"""Running cases and reading verdicts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields
from multiprocessing import get_context
from pathlib import Path

from dpscreen._core.arrays import Array
from dpscreen._core.files import write_text
from dpscreen.audit.cases import Case, all_cases
from dpscreen.audit.certify import best_event
from dpscreen.privacy import Noise, SecureNoise, SeededNoise

DELTAS = (0.0, 1e-6, 1e-4, 1e-3, 1e-2, 0.1)


@dataclass(frozen=True)
class Finding:
    """What the runs of one case certify.

    `certified` is a lower bound on the true ε at the claimed δ, wrong with probability at most
    1 − `confidence`. `curve` has the same bound for other δ, each at that confidence.
    """

    name: str
    title: str
    claimed: float
    delta: float
    certified: float
    confidence: float
    runs: int
    stands: bool
    curve: tuple[tuple[float, float], ...]

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
    count = runs or case.runs
    here, there = (case.sample(with_row, count, noise) for with_row in (False, True))

    def certified(delta: float) -> float:
        return _split_bound(here, there, delta=delta, confidence=confidence)

    return Finding(
        name=case.name,
        title=case.title,
        claimed=case.claim.epsilon,
        delta=case.claim.delta,
        certified=certified(case.claim.delta),
        confidence=confidence,
        runs=2 * count,
        stands=case.stands,
        curve=tuple((delta, certified(delta)) for delta in DELTAS),
    )


def _split_bound(here: Array, there: Array, *, delta: float, confidence: float) -> float:
    half = len(here) // 2
    event = best_event(here[:half], there[:half], delta=delta, confidence=confidence)
    return event.epsilon(here[half:], there[half:], delta=delta, confidence=confidence)


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
    work = [(name, runs, confidence, seed) for name in names or all_cases()]
    findings = []
    for finding in _mapped(work, jobs):
        findings.append(finding)
        if on_finding:
            on_finding(finding)
    return findings


def _mapped(work: list[tuple[str, int | None, float, str | None]], jobs: int) -> Iterator[Finding]:
    if jobs == 1:
        yield from map(_audit_named, work)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_audit_named, work)


def _audit_named(job: tuple[str, int | None, float, str | None]) -> Finding:
    name, runs, confidence, seed = job
    noise = SecureNoise() if seed is None else SeededNoise(f"{seed}/{name}")
    return audit_case(all_cases()[name], runs=runs, confidence=confidence, noise=noise)


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


_KINDS: dict[str, type | tuple[type, ...]] = {
    "float": (int, float),
    "int": int,
    "bool": bool,
    "str": str,
}


def _finding(stored: dict[str, object]) -> Finding:
    values = {field.name: stored[field.name] for field in fields(Finding)}
    for field in fields(Finding):
        kind = _KINDS.get(str(field.type))
        if kind and not isinstance(values[field.name], kind):
            raise TypeError(f"{field.name} has another type")
    curve = values.pop("curve")
    if not isinstance(curve, list):
        raise TypeError("a curve is a list of pairs")
    pairs = tuple((float(delta), float(epsilon)) for delta, epsilon in curve)
    return Finding(**values, curve=pairs)  # type: ignore[arg-type]
