"""What is recorded of a fit, floats by their bits, and how a record is compared."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

FILE = Path(__file__).with_name("golden.json")

RTOL, ATOL = 1e-9, 1e-12
"""For what BLAS, LAPACK or libm compute in floats: they round differently on other machines."""

ATTRIBUTES = (
    *("coef_", "intercept_", "feature_bounds_", "target_bounds_", "scale_", "solver_"),
    *("n_iter_", "n_rows_", "n_features_in_", "dual_gap_", "screened_"),
)


def released(model) -> dict:
    """Return all numbers that a fitted model has released."""
    found = {name: getattr(model, name) for name in ATTRIBUTES if hasattr(model, name)}
    if getattr(model, "path_", None) is not None:
        path = model.path_
        found["path_"] = [path.features, path.signs, path.steps]
    if hasattr(model, "inference_"):
        found["inference_"] = [
            [one.feature, one.coefficient, one.standard_error, one.low, one.high]
            for one in model.inference_.intervals
        ]
    if hasattr(model, "privacy_"):
        found["privacy_"] = promised(model.privacy_)
    return plain(found)


def promised(statement) -> dict:
    """Return the numbers of a privacy statement."""
    names = ("epsilon", "delta", "rho", "rows_per_unit", "rows_disclosed", "holds")
    lines = [[line.sensitivity, line.scale, line.count, line.rho] for line in statement.mechanisms]
    return {name: getattr(statement, name) for name in names} | {"mechanisms": lines}


def numbers(document):
    """Return what of a JSON document is a number; its prose may change."""
    if isinstance(document, dict):
        kept = {name: numbers(value) for name, value in document.items()}
        return {name: value for name, value in kept.items() if value not in (None, {}, [])}
    if isinstance(document, list):
        return [value for value in map(numbers, document) if value not in (None, {}, [])]
    return document if isinstance(document, int | float) else None


def plain(value):
    """Return the value as JSON can hold it without loss: a float is written in hex."""
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value.hex() if isinstance(value, float) else value


def differences(found, golden, *, rounded: Callable[[str], bool], where: str = "") -> Iterator[str]:
    """Yield the places at which two records differ, to the last bit unless `rounded` there."""
    if isinstance(golden, dict) and isinstance(found, dict):
        for name in golden.keys() | found.keys():
            pair = found.get(name, "absent"), golden.get(name, "absent")
            yield from differences(*pair, rounded=rounded, where=f"{where}.{name}")
    elif isinstance(golden, list) and isinstance(found, list) and len(golden) == len(found):
        for i, pair in enumerate(zip(found, golden, strict=True)):
            yield from differences(*pair, rounded=rounded, where=f"{where}[{i}]")
    elif found != golden and not (rounded(where) and _close(found, golden)):
        yield f"{where}: {_shown(found)} instead of {_shown(golden)}"


def _close(found, golden) -> bool:
    pair = _number(found), _number(golden)
    return None not in pair and math.isclose(*pair, rel_tol=RTOL, abs_tol=ATOL)


def _number(value) -> float | None:
    with suppress(TypeError, ValueError):
        return float.fromhex(value)
    return None


def _shown(value) -> str:
    number = _number(value)
    return repr(value) if number is None else f"{number!r} ({value})"


def read_golden() -> dict:
    """Return what was recorded."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def write_golden(records: dict) -> None:
    """Write one line for each attribute, so that a change shows as the lines it concerns."""
    parts = []
    for name in sorted(records):
        lines = [f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in records[name].items()]
        parts.append(f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n}")
    FILE.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
