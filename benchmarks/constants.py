"""What halving and doubling a tuned constant does: `python -m benchmarks.constants NAME ...`.

Every numeric constant of `families`, `solvers` and `planning` states its origin in its docstring:
derived (from a lemma), conventional (a round number or a common choice) or tuned. Without names all
tuned ones are tried. Held-out R² and AUC are compared under coupled noise, as by
`python -m benchmarks ruler`, whose environment variables choose tables and budgets; those of a
regression table are shown by `python -m benchmarks.coverage --save FILE` before and after an edit.
`--table` writes docs/constants.md.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import dpscreen

SOURCE = Path(dpscreen.__file__).parent
PAGE = Path(__file__).parent.parent / "docs" / "constants.md"
PAPER = {"peers", "tukey", "frank_wolfe", "clipped_frank_wolfe", "screening", "free_screen"}
"""Modules of the paper's methods and of peers, whose constants are those of their authors."""

ORIGINS = ("derived", "conventional", "tuned")

HEAD = """# Constants

For developers: every numeric constant of `families`, `solvers` and `planning`, with its origin.
*Derived* constants follow from a lemma or a number format, *conventional* ones are round numbers or
common choices, and *tuned* ones were chosen by their effect on tables. What halving and doubling a
tuned one does is shown by `python -m benchmarks.constants NAME` (sparse models) and
`python -m benchmarks.coverage` (regression tables). This page is written by
`python -m benchmarks.constants --table`.
"""


@dataclass(frozen=True)
class Constants:
    """Constants that share a docstring: where they are defined, their values and their origin."""

    module: str
    names: tuple[str, ...]
    value: str
    meaning: str

    @property
    def origin(self) -> str:
        """Return the first origin that the docstring names; nothing if it names none."""
        words = re.findall(r"\w+", self.meaning.lower())
        return next((word for word in words if word in ORIGINS), "")


def constants() -> Iterator[Constants]:
    """Yield all numeric constants of the modules that fit and plan."""
    for folder in ("families", "solvers", "planning"):
        for path in sorted((SOURCE / folder).rglob("*.py")):
            if path.stem not in PAPER:
                module = path.relative_to(SOURCE).with_suffix("")
                yield from _of_module(".".join(module.parts), path)


def _of_module(module: str, path: Path) -> Iterator[Constants]:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    for node, after in zip(body, [*body[1:], None], strict=True):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        parts = target.elts if isinstance(target, ast.Tuple) else [target]
        names = tuple(one.id for one in parts if isinstance(one, ast.Name) and one.id.isupper())
        text = ast.unparse(node.value)
        if not names or names[0].startswith("_") or not _is_numeric(node.value):
            continue
        match after:
            case ast.Expr(value=ast.Constant(value=str(meaning))):
                yield Constants(module, names, text, " ".join(meaning.split()))
            case _:
                yield Constants(module, names, text, "")


def _is_numeric(value: ast.expr) -> bool:
    nodes = list(ast.walk(value))
    found = [node.value for node in nodes if isinstance(node, ast.Constant)]
    indexed = any(isinstance(node, ast.Subscript | ast.comprehension) for node in nodes)
    return bool(found) and all(isinstance(one, int | float) for one in found) and not indexed


def page() -> str:
    """Return the page of all constants."""
    lines = [HEAD]
    for origin in ORIGINS[::-1]:
        chosen = [one for one in constants() if one.origin == origin]
        count = sum(len(one.names) for one in chosen)
        lines.append(f"## {origin.capitalize()}: {count}\n")
        for one in chosen:
            names = ", ".join(f"`{name}`" for name in one.names)
            lines += _wrapped(f"- {names} in `{one.module}`: `{one.value}`. {one.meaning}")
        lines.append("")
    return "\n".join(lines)


def _wrapped(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, 96, subsequent_indent="  ", break_long_words=False)


# --- halving and doubling -------------------------------------------------------------------------


def scaled(value: Any, factor: float) -> Any:
    """Return a constant times a factor, of the same kind."""
    if isinstance(value, int) and not isinstance(value, bool):
        return max(1, round(value * factor))
    if isinstance(value, tuple):
        return tuple(scaled(one, factor) for one in value)
    return value * factor


def patch(module: str, name: str, factor: float) -> None:
    """Replace a constant wherever it was imported to."""
    home = importlib.import_module(f"dpscreen.{module}")
    old = getattr(home, name)
    for other in [one for key, one in sys.modules.items() if key.startswith("dpscreen.")]:
        if getattr(other, name, None) is old:
            setattr(other, name, scaled(old, factor))


def measured(module: str, name: str, factor: float) -> dict[tuple[str, float], list[float]]:
    """Return qualities by table and ε, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.constants", "--child", module, name, str(factor)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=os.environ)
    found: dict[tuple[str, float], list[float]] = {}
    for line in map(json.loads, done.stdout.splitlines()):
        found.setdefault((line["table"], line["epsilon"]), []).append(line["quality"])
    return found


def compare(wanted: list[str]) -> None:
    """Print how the mean quality changes if constants are halved and doubled."""
    found = [one for one in constants() if one.origin == "tuned"]
    tuned = [(one.module, name) for one in found for name in one.names]
    plain = measured(*tuned[0], 1.0)
    for module, name in tuned:
        if wanted and name not in wanted:
            continue
        for factor in (0.5, 2.0):
            try:
                other = measured(module, name, factor)
            except subprocess.CalledProcessError:
                print(f"{module}.{name} × {factor:g}: the fit fails")
                continue
            print(f"{module}.{name} × {factor:g}:", end="")
            for epsilon in sorted({key[1] for key in plain}):
                keys = [key for key in plain if key[1] == epsilon]
                less = np.mean([np.mean(other[key]) - np.mean(plain[key]) for key in keys])
                print(f"  ε {epsilon:g} {less:+.4f}", end="")
            print(flush=True)


def main() -> None:
    """Run what the arguments ask for."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["--table"]:
        PAGE.write_text(page(), encoding="utf-8")
    elif arguments[:1] == ["--child"]:
        from benchmarks.ruler import Job, measure

        patch(arguments[1], arguments[2], float(arguments[3]))
        measure(Job.of_environment())
    else:
        compare(arguments)


if __name__ == "__main__":
    main()
