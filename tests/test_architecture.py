"""The house: imports point one way, names mean one thing, and everything stays small."""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import dpscreen

SOURCE = Path(dpscreen.__file__).parent

ORDER = (
    "_core",
    "privacy",
    "rows",
    "tables",
    "families",
    "solvers",
    "models",
    "planning",
    "audit",
    "studio",
    "paper",
    "cli",
)
STRANGERS = {("privacy", "rows"), ("rows", "privacy"), ("paper", "studio")}
GUESTS_OF_THE_PAPER = {"paper", "cli"}
COMMANDS_OF_THE_PAPER = {"demo", "reproduce", "errata", "datasets"}
"""All others, and what they share, work without the paper's room."""
ROOT_EXPORTS = "planning"  # the highest room that `from dpscreen import …` brings in
FREE = {"__init__.py", "__main__.py"}  # of the root; they may name any room

MOST_FILES, MOST_LINES, MOST_ENGINE_LINES = 200, 44_000, 3_500
METHODS_OF_OTHERS = {
    "peers",
    "tukey",
    "frank_wolfe",
    "clipped_frank_wolfe",
    "free_screen",
    "screening",
}
LONGEST_FUNCTION = 80


# --- arrows between rooms -------------------------------------------------------------------------


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


def room_of(module: str, *, root: str) -> str | None:
    """Return which room of ours a module belongs to; None for the rest of the world."""
    head, *rest = module.split(".")
    if head != root or (rest and rest[0].startswith("__")):
        return None
    return rest[0] if rest and rest[0] in ORDER else ROOT_EXPORTS


def is_allowed(importer: str, module: str, imported: str) -> bool:
    """Whether a room may import a module of another: from below, by its front door."""
    if imported == importer:
        return True
    hidden = any(part.startswith("_") for part in module.split(".")[2:])
    paper = imported == "paper" and importer not in GUESTS_OF_THE_PAPER
    below = ORDER.index(imported) < ORDER.index(importer)
    return below and not hidden and not paper and (importer, imported) not in STRANGERS


def wrong_arrows(source: Path) -> list[str]:
    found = []
    for path in sorted(source.rglob("*.py")):
        place = path.relative_to(source)
        if place.parts[0] in FREE:
            continue
        importer = place.parts[0]
        if importer not in ORDER:
            found.append(f"{place}: not in a room of the house")
            continue
        for line, module in imported_modules(path, source=source):
            imported = room_of(module, root=source.name)
            if imported is None:
                continue
            alone = importer == "cli" and place.stem not in COMMANDS_OF_THE_PAPER
            paper = imported == "paper" and alone
            if paper or not is_allowed(importer, module, imported):
                found.append(f"{place}:{line}: {importer} imports {module}")
    return found


def test_imports_point_one_way_only():
    assert wrong_arrows(SOURCE) == []


def test_the_walk_reaches_every_room():
    assert {path.relative_to(SOURCE).parts[0] for path in SOURCE.rglob("*/*.py")} == set(ORDER)


@pytest.fixture
def fake_house(tmp_path):
    """Return a function that builds a package from {path: text} and returns where it lies."""

    def build(files: dict[str, str]) -> Path:
        source = tmp_path / "dpscreen"
        for name, text in files.items():
            path = source / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return source

    return build


@pytest.mark.parametrize(
    "text",
    [
        "import dpscreen.models",
        "import numpy, dpscreen.models.base as base",
        "from dpscreen.models import DPFrankWolfe",
        "from dpscreen import models",
        "from dpscreen import DPFrankWolfe",
        "import dpscreen",
        "from ..models import DPFrankWolfe",
        "from .. import models",
        "def late():\n    from dpscreen.models import DPFrankWolfe",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import dpscreen.models",
        "from importlib import import_module\nimport_module('dpscreen.models')",
        "import importlib\nimportlib.import_module('dpscreen.models')",
    ],
)
def test_checker_sees_a_wrong_arrow_in_every_form(fake_house, text):
    assert len(wrong_arrows(fake_house({"privacy/noise.py": text}))) == 1


HIDDEN = "from dpscreen.rows._hidden import x\n"
HOUSES = {
    "privacy and rows are apart": (
        {"privacy/a.py": "import dpscreen.rows", "rows/a.py": "import dpscreen.privacy"},
        ["privacy/a.py:1", "rows/a.py:1"],
    ),
    "only commands of the paper visit it": (
        {f"{room}/errata.py": "import dpscreen.paper.data" for room in ORDER}
        | {"cli/fit.py": "import dpscreen.paper.data"},
        ["cli/fit.py:1", *(f"{room}/errata.py:1" for room in set(ORDER) - GUESTS_OF_THE_PAPER)],
    ),
    "another room's hidden module": (
        {"cli/a.py": f"{HIDDEN}from dpscreen.rows import _hidden", "rows/b.py": HIDDEN},
        ["cli/a.py:1", "cli/a.py:2"],
    ),
    "a subpackage": (
        {"tables/deep/a.py": "from ...paper import metrics\nfrom ..columns import schema"},
        ["tables/deep/a.py:1"],
    ),
    "every module is in a room": (
        {"utils.py": "", "helpers/__init__.py": ""},
        ["helpers/__init__.py", "utils.py"],
    ),
    "right arrows": (
        {
            "__init__.py": "from dpscreen.cli import main",
            "privacy/a.py": "import numpy\nfrom . import b\nfrom dpscreen import __version__",
            "privacy/b.py": "from dpscreen.privacy import a",
            "models/a.py": "from ..privacy import a\nfrom dpscreen.rows import design",
            "cli/demo.py": "from dpscreen import DPFrankWolfe, paper",
        },
        [],
    ),
}


@pytest.mark.parametrize("name", HOUSES)
def test_checker_sees_wrong_arrows_and_no_others(fake_house, name):
    files, wrong = HOUSES[name]
    found = [line.partition(": ")[0] for line in wrong_arrows(fake_house(files))]
    assert sorted(found) == sorted(wrong)


# --- no circles -----------------------------------------------------------------------------------


def modules_of(source: Path) -> dict[str, Path]:
    """Return the modules by name; a package is its `__init__`."""
    places = {path: path.relative_to(source).with_suffix("").parts for path in source.rglob("*.py")}
    return {
        ".".join((source.name, *(parts[:-1] if parts[-1] == "__init__" else parts))): path
        for path, parts in places.items()
    }


def import_graph(source: Path) -> dict[str, set[str]]:
    """Return which modules each module imports, early or late; the root imports for others."""
    modules = modules_of(source)
    graph = {}
    for name, path in modules.items():
        told = {module for _, module in imported_modules(path, source=source)}
        known = {one if one in modules else one.rpartition(".")[0] for one in told}
        graph[name] = (known & set(modules)) - {name, source.name}
    del graph[source.name]
    return graph


def circle(source: Path) -> list[str]:
    try:
        TopologicalSorter(import_graph(source)).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_module_imports_itself_by_a_detour():
    assert circle(SOURCE) == []


def test_checker_sees_a_circle_through_a_late_import(fake_house):
    files = {
        "__init__.py": "",
        "rows/__init__.py": "",
        "rows/a.py": "from dpscreen.rows.b import x",
        "rows/b.py": "def late():\n    from dpscreen.rows import a",
    }
    assert set(circle(fake_house(files))) == {"dpscreen.rows.a", "dpscreen.rows.b"}


# --- names ----------------------------------------------------------------------------------------


def nodes(kind: type | tuple[type, ...]) -> Iterator[tuple[Path, ast.AST]]:
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, kind):
                yield path, node


def test_no_class_name_stands_for_two_things():
    count = Counter(node.name for _, node in nodes(ast.ClassDef))
    assert [name for name, times in count.items() if times > 1] == []


def undocumented(classes: Mapping[str, ast.ClassDef]) -> list[str]:
    """Return public methods without a docstring of their own, or one that they inherit."""

    def line(name: str) -> Iterator[ast.ClassDef]:
        if name in classes:
            yield classes[name]
            for base in ast.walk(ast.Tuple(classes[name].bases)):
                yield from line(base.id) if isinstance(base, ast.Name) else ()

    def methods(one: ast.ClassDef) -> dict[str, bool]:
        functions = [node for node in one.body if isinstance(node, ast.FunctionDef)]
        return {node.name: ast.get_docstring(node) is not None for node in functions}

    return [
        f"{name}.{method}"
        for name in classes
        if not name.startswith("_")
        for method in methods(classes[name])
        if not method.startswith("_") and not any(methods(one).get(method) for one in line(name))
    ]


def test_every_public_method_has_or_inherits_a_docstring():
    assert undocumented({node.name: node for _, node in nodes(ast.ClassDef)}) == []
    text = "class A:\n def f(self): 'Doc.'\nclass B(A):\n def f(self): ...\n def g(self): ..."
    assert undocumented({node.name: node for node in ast.parse(text).body}) == ["B.g"]


def test_every_public_name_is_there():
    assert all(getattr(dpscreen, name) is not None for name in dpscreen.__all__)
    assert dir(dpscreen) == sorted(dpscreen.__all__)
    with pytest.raises(AttributeError, match="no attribute 'DPLasso'"):
        _ = dpscreen.DPLasso


# --- sizes ----------------------------------------------------------------------------------------


def test_the_house_is_small():
    texts = [path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")]
    assert len(texts) <= MOST_FILES
    assert sum(len(text.splitlines()) for text in texts) <= MOST_LINES
    engine = [one for one in (SOURCE / "solvers").glob("*.py") if one.stem not in METHODS_OF_OTHERS]
    assert sum(len(one.read_text("utf-8").splitlines()) for one in engine) <= MOST_ENGINE_LINES


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a function, its docstring left out."""
    length = (function.end_lineno or function.lineno) - function.lineno + 1
    if ast.get_docstring(function) is not None:
        text = function.body[0]
        length -= (text.end_lineno or text.lineno) - text.lineno + 1
    return length


def test_no_function_is_too_long():
    lengths = {
        f"{path.relative_to(SOURCE)}:{node.lineno} {node.name}": code_lines(node)
        for path, node in nodes((ast.FunctionDef, ast.AsyncFunctionDef))
    }
    assert {name: length for name, length in lengths.items() if length > LONGEST_FUNCTION} == {}


def test_the_ruler_leaves_out_docstrings_and_counts_the_signature():
    text = 'def f(\n    a,\n):\n    """One.\n\n    Two.\n    """\n    b = a\n    return b\n'
    assert code_lines(ast.parse(text).body[0]) == 5


# --- what an import costs -------------------------------------------------------------------------


def loaded_by(code: str) -> list[str]:
    """Return the modules that a new process has loaded after some code, warnings being errors."""
    code = f"import sys; before = set(sys.modules); {code}; print(*set(sys.modules) - before)"
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_importing_the_package_loads_nothing_but_itself():
    foreign = {name.partition(".")[0] for name in loaded_by("import dpscreen")}
    assert foreign - set(sys.stdlib_module_names) == {"dpscreen"}


@pytest.mark.parametrize("room", ["_core", "privacy", "rows"])
def test_the_lower_rooms_need_neither_sklearn_nor_matplotlib(room):
    modules = [name for name in modules_of(SOURCE) if name.startswith(f"dpscreen.{room}")]
    loaded = {name.partition(".")[0] for name in loaded_by(f"import {', '.join(modules)}")}
    assert not loaded & {"sklearn", "matplotlib"}
