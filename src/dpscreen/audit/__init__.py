"""Neighbouring data sets in, a certified lower bound on ε out.

An audit cannot prove privacy, but it can refute a claim: if the released numbers distinguish two
neighbouring data sets better than the claimed ε allows, at a stated confidence, the claim is
false. Proven methods must survive it; the published calibration does not.

>>> from dpscreen.audit import audit
>>> [finding.verdict for finding in audit(["published-noisy-max"], runs=4000, seed="doc")]
['claim refuted']
"""

from dpscreen.audit.audit import (
    AuditFileProblem,
    Finding,
    audit,
    audit_case,
    load_findings,
    save_findings,
)
from dpscreen.audit.cases import Case, all_cases

__all__ = [
    "AuditFileProblem",
    "Case",
    "Finding",
    "all_cases",
    "audit",
    "audit_case",
    "load_findings",
    "save_findings",
]
