"""The paper's statements outside its tables, each with what became of it.

The checks themselves, one function per claim, are in `claim_checks`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dpscreen.study.claim_checks import CHECKS, Finding, NotRunError
from dpscreen.study.compare import RowIndex
from dpscreen.study.published import published_claims
from dpscreen.study.results import TrialRow


@dataclass(frozen=True)
class ClaimCheck:
    """A statement of the paper, whether it holds (None: cannot be said), and why."""

    key: str
    where: str
    description: str
    caveat: str | None
    holds: bool | None
    finding: str
    numbers: Mapping[str, float]


def check_claims(rows: Iterable[TrialRow]) -> tuple[ClaimCheck, ...]:
    """Check every claim, in the order of `published_claims`."""
    index = RowIndex(rows)
    found = []
    for key, claim in published_claims().items():
        finding = _checked(key, index)
        found.append(
            ClaimCheck(
                key=key,
                where=claim.where,
                description=claim.description,
                caveat=claim.caveat,
                holds=finding.holds,
                finding=finding.text,
                numbers=finding.numbers,
            )
        )
    return tuple(found)


def _checked(key: str, index: RowIndex) -> Finding:
    if key not in CHECKS:
        return Finding(None, "Not checked here.")
    try:
        return CHECKS[key](index)
    except NotRunError as error:
        return Finding(None, f"Not run: {error}.")
