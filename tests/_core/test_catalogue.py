"""Every message has a code and a text in the catalogue, and none is searched for words."""

import ast
import copy
import pickle
import re
from pathlib import Path

import pytest

import dpscreen
from dpscreen._core.messages import SchemaKey, catalogue, message

SOURCE = Path(dpscreen.__file__).parent


def test_a_message_is_the_text_of_its_code_in_a_voice():
    must = message("must.bound-number")
    found = message("setting.must", column="a", setting=SchemaKey("constraints.minimum"), must=must)
    assert found == "column 'a': constraints.minimum must be a finite number, without quotes."
    assert found.said("toml").endswith(
        "the lower of the bounds must be a finite number, or a day such as 2020-01-31, without "
        "quotes."
    )
    studio = found.said("studio", located=False)
    assert studio == "the lowest value must be a number."
    for copied in (pickle.loads(pickle.dumps(studio)), copy.deepcopy(studio)):
        assert (copied, copied.code, copied.fields) == (studio, found.code, found.fields)


COMPOSED = {
    *("must", "instead", "learns", "fallback", "step"),
    *("statement", "ledger", "not-a-ledger", "damage"),
    *("signal", "detected", "needed", "parameter"),
}
"""Sections whose codes are put together; the part behind the point is in the sources."""
CODE_AT = {"message": 0, "fault": 0, "usage": 0, "failure": 0, "quietly": 1, "each_quietly": 1}
"""Which argument of these functions is a code."""


def codes_used() -> set[str]:
    """Return the codes that calls name."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py"))
    calls = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
    named = ((getattr(call.func, "id", getattr(call.func, "attr", "")), call) for call in calls)
    given = (call.args[CODE_AT[name] :] for name, call in named if name in CODE_AT)
    return {str(some[0].value) for some in given if some and isinstance(some[0], ast.Constant)}


def test_every_code_of_the_catalogue_is_used_and_no_other():
    texts = catalogue()
    known = {code for code in texts[""] if not code.startswith("set.")}
    for voice in texts.values():
        assert {code for code in voice if not code.startswith("set.")} <= known
    assert codes_used() <= known
    sources = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    composed = {code: code.partition(".")[2] for code in known if code.split(".")[0] in COMPOSED}
    unused = {code for code in known if f'"{code}"' not in sources}
    assert {code for code in unused if f'"{composed.get(code, code)}"' not in sources} == set()


# --- no sentence is searched ----------------------------------------------------------------------

SEARCHES = {
    *("startswith", "endswith", "removeprefix", "removesuffix", "replace", "find", "index"),
    *("partition", "rpartition", "split", "search", "match", "fullmatch", "sub", "count"),
}
PHRASE = re.compile(r"[A-Za-z]{2,}[,:;.]? [A-Za-z]{2,}")
MAY_SEARCH = {
    "_core/pictures.py": "matplotlib's SVG is rewritten for pages",
    "studio/server.py": "a page's own policy is cut out of its HTML",
    "models/intake.py": "scikit-learn's errors have no fields",
    "tables/toml.py": "errors of tomllib have no fields before Python 3.14",
    "paper/claims.py": "a set of verdicts",
}
"""Files that may search text, by what it is and why."""


def phrases_searched(text: str) -> list[int]:
    """Return the lines that search or replace words of a sentence, or the text of an exception."""
    tree = ast.parse(text)
    named = {
        target.id: node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    caught = {node.name for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)}

    def is_phrase(node: ast.expr) -> bool:
        value = named.get(node.id) if isinstance(node, ast.Name) else getattr(node, "value", None)
        return isinstance(value, str) and PHRASE.search(value) is not None

    def is_caught(node: ast.AST) -> bool:
        texts = (one for one in ast.walk(node) if isinstance(one, ast.Call))
        return any(
            getattr(one.func, "id", "") == "str" and getattr(one.args[0], "id", "") in caught
            for one in texts
            if one.args
        )

    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            searched = is_phrase(node.left) or is_caught(node.comparators[0])
            found += [node.lineno] * (searched and not isinstance(node.comparators[0], ast.Tuple))
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in SEARCHES:
            inside = [node.func.value, *node.args]
            if any(map(is_phrase, node.args)) or any(map(is_caught, inside)):
                found.append(node.lineno)
    return found


def test_no_decision_is_made_by_searching_a_sentence():
    found = {
        f"{path.relative_to(SOURCE).as_posix()}:{line}"
        for path in SOURCE.rglob("*.py")
        for line in phrases_searched(path.read_text(encoding="utf-8"))
    }
    assert {one for one in found if one.partition(":")[0] not in MAY_SEARCH} == set()
    assert {one.partition(":")[0] for one in found} >= set(MAY_SEARCH)


@pytest.mark.parametrize(
    "text",
    [
        "'too few rows' in told",
        "END = ' nothing is spent.'\ntold.removesuffix(END)",
        "told.replace('was fitted', 'will be')",
        "try: f()\nexcept ValueError as error:\n    bad = 'x' in str(error)",
        "try: f()\nexcept ValueError as error:\n    re.search('[0-9]+', str(error))",
    ],
)
def test_the_check_finds_a_searched_sentence(text):
    assert phrases_searched(text)
