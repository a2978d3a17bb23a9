"""Findings on disk, beside the study's results, for the page to show."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

from dpscreen._core.files import write_text
from dpscreen.audit.audit import Finding

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
