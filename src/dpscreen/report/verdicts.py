"""What became of a claim, in a word that needs no colour."""

from __future__ import annotations

from dpscreen.study.claims import ClaimCheck


def verdict(claim: ClaimCheck) -> str:
    """Return "holds", "does not hold", "not run" or "open"."""
    if claim.holds is None:
        return "not run" if claim.finding.startswith("Not run") else "open"
    return "holds" if claim.holds else "does not hold"
