"""Imports point one way, the package is cheap to import, and functions stay short."""

import ast
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dpscreen

SOURCE = Path(dpscreen.__file__).parent

ORDER = ("_core", "privacy", "regression", "estimators", "data", "study", "audit", "report", "cli")
STRANGERS = {("privacy", "regression"), ("regression", "privacy")}
ROOT_EXPORTS = "estimators"  # what `from dpscreen import SomeEstimator` brings in
FREE = {"__init__.py", "__main__.py"}  # of the root; they may name any package


def imported_modules(path: Path, *, source: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, absolute dotted name) for every import in a file, wherever it stands."""
    inside = (source.name, *path.relative_to(source).parent.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, name.name) for name in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = ".".join(inside[: len(inside) - level + 1]) if level else ""
                start = ".".join(part for part in (base, module) if part)
                yield from ((node.lineno, f"{start}.{name.name}") for name in names)
            case ast.Call(func=func, args=[ast.Constant(value=str(name)), *_]):
                called = getattr(func, "attr", getattr(func, "id", ""))
                if called in ("import_module", "__import__"):
                    yield node.lineno, name


def package_of(module: str, *, root: str) -> str | None:
    """Return which package of ours a module belongs to; None for the rest of the world."""
    head, *rest = module.split(".")
    if head != root or (rest and rest[0].startswith("__")):
        return None
    return rest[0] if rest and rest[0] in ORDER else ROOT_EXPORTS


def is_allowed(importer: str, imported: str) -> bool:
    return (importer, imported) not in STRANGERS and ORDER.index(imported) <= ORDER.index(importer)


def wrong_arrows(source: Path) -> list[str]:
    found = []
    for path in sorted(source.rglob("*.py")):
        place = path.relative_to(source)
        if place.parts[0] in FREE:
            continue
        importer = place.parts[0]
        if importer not in ORDER:
            found.append(f"{place}: not in a package of the house")
            continue
        for line, module in imported_modules(path, source=source):
            imported = package_of(module, root=source.name)
            if imported is not None and not is_allowed(importer, imported):
                found.append(f"{place}:{line}: {importer} imports {module}")
    return found


def test_imports_point_up_the_list_only():
    assert wrong_arrows(SOURCE) == []


def test_the_walk_reaches_the_packages():
    seen = {path.relative_to(SOURCE).parts[0] for path in SOURCE.rglob("*.py")}
    assert {"privacy", "regression", "estimators"} <= seen


@pytest.fixture
def fake_house(tmp_path):
    """Return a function that builds a package from {path: text} and lists its wrong arrows."""

    def build(files: dict[str, str]) -> list[str]:
        source = tmp_path / "dpscreen"
        for name, text in files.items():
            path = source / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return wrong_arrows(source)

    return build


@pytest.mark.parametrize(
    "text",
    [
        "import dpscreen.models",
        "import numpy, dpscreen.solvers.frank_wolfe as steps",
        "from dpscreen.models import DPFrankWolfe",
        "from dpscreen import estimators",
        "from dpscreen import DPFrankWolfe",
        "import dpscreen",
        "from ..estimators import DPFrankWolfe",
        "from .. import estimators",
        "def late():\n    from dpscreen.models import DPFrankWolfe",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import dpscreen.models",
        "from importlib import import_module\nimport_module('dpscreen.models')",
        "import importlib\nimportlib.import_module('dpscreen.models')",
    ],
)
def test_checker_sees_a_wrong_arrow_in_every_form(fake_house, text):
    assert len(fake_house({"privacy/noise.py": text})) == 1


@pytest.mark.parametrize(
    ("importer", "imported"), [("privacy", "regression"), ("regression", "privacy")]
)
def test_checker_keeps_privacy_and_regression_apart(fake_house, importer, imported):
    assert fake_house({f"{importer}/a.py": f"import dpscreen.{imported}"}) != []


def test_checker_sees_a_wrong_arrow_from_a_subpackage(fake_house):
    files = {"data/deep/a.py": "from ...study import metrics\nfrom ..columns import schema"}
    assert fake_house(files) == ["data/deep/a.py:1: data imports dpscreen.paper.metrics"]


def test_checker_wants_every_module_in_a_package_of_the_house(fake_house):
    assert fake_house({"utils.py": "", "helpers/__init__.py": ""}) == [
        "helpers/__init__.py: not in a package of the house",
        "utils.py: not in a package of the house",
    ]


def test_checker_accepts_right_arrows(fake_house):
    files = {
        "__init__.py": "from dpscreen.cli import main",
        "privacy/a.py": "import numpy\nfrom . import b\nfrom dpscreen import __version__",
        "privacy/b.py": "from dpscreen.privacy import a",
        "estimators/a.py": "from ..privacy import a\nfrom dpscreen.regression import design",
        "cli/a.py": "from dpscreen import DPFrankWolfe, report",
    }
    assert fake_house(files) == []


def test_importing_the_package_loads_nothing_but_itself():
    code = "import sys; old = set(sys.modules); import dpscreen; print(*set(sys.modules) - old)"
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert [name for name in loaded if name.partition(".")[0] not in sys.stdlib_module_names] == [
        "dpscreen"
    ]


@pytest.mark.parametrize("package", ["privacy", "regression"])
def test_the_core_needs_neither_sklearn_nor_matplotlib(package):
    code = f"import dpscreen.{package}, sys; print({{'sklearn', 'matplotlib'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_every_public_name_is_there():
    assert all(getattr(dpscreen, name) is not None for name in dpscreen.__all__)
    assert dir(dpscreen) == sorted(dpscreen.__all__)
    with pytest.raises(AttributeError, match="no attribute 'DPLasso'"):
        _ = dpscreen.DPLasso


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a function, its docstring left out."""
    length = (function.end_lineno or function.lineno) - function.lineno + 1
    if ast.get_docstring(function) is not None:
        text = function.body[0]
        length -= (text.end_lineno or text.lineno) - text.lineno + 1
    return length


def function_lengths(source: Path) -> dict[str, int]:
    return {
        f"{path.relative_to(source)}:{node.lineno} {node.name}": code_lines(node)
        for path in sorted(source.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_functions_are_short():
    lengths = function_lengths(SOURCE)
    assert {name: length for name, length in lengths.items() if length > 60} == {}
    longest = sorted(lengths.items(), key=lambda item: -item[1])[:10]
    assert statistics.median(lengths.values()) < 10, f"the longest: {longest}"


def test_the_ruler_leaves_out_docstrings_and_counts_the_signature(tmp_path):
    text = 'def f(\n    a,\n):\n    """One.\n\n    Two.\n    """\n    b = a\n    return b\n'
    (tmp_path / "a.py").write_text(text, encoding="utf-8")
    assert function_lengths(tmp_path) == {"a.py:1 f": 5}
