"""Findings on disk."""

from __future__ import annotations

import json

import pytest

from dpscreen.audit import AuditFileProblem, audit, load_findings, save_findings


def test_findings_come_back_as_they_were(tmp_path):
    findings = audit(["published-noisy-max"], runs=500, seed="store")
    save_findings(findings, tmp_path / "new")
    assert list(load_findings(tmp_path / "new")) == findings


@pytest.mark.parametrize(("name", "value"), [("curve", {"12": 1}), ("runs", "500")])
def test_a_finding_of_another_type_is_told(tmp_path, name, value):
    save_findings(audit(["published-noisy-max"], runs=500, seed="store"), tmp_path)
    (stored,) = json.loads((tmp_path / "audit.json").read_text())
    (tmp_path / "audit.json").write_text(json.dumps([stored | {name: value}]))
    with pytest.raises(AuditFileProblem, match="audit"):
        load_findings(tmp_path)


def test_no_audit_is_no_findings(tmp_path):
    assert load_findings(tmp_path) == ()
