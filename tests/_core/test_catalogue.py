"""Every message has a code and a text in the catalogue, and none is searched for words."""

import ast
import copy
import pickle
from pathlib import Path

import dpscreen
from dpscreen._core.messages import SchemaKey, catalogue, message

SOURCE = Path(dpscreen.__file__).parent


def test_a_message_is_the_text_of_its_code_in_a_voice():
    must = message("must.bound-number")
    found = message("setting.must", column="a", setting=SchemaKey("constraints.minimum"), must=must)
    assert found == "column 'a': constraints.minimum must be a finite number, without quotes."
    assert found.said("toml").endswith(
        "the lower of the bounds must be a finite number, without quotes."
    )
    studio = found.said("studio", located=False)
    assert studio == "the lowest value must be a number."
    for copied in (pickle.loads(pickle.dumps(studio)), copy.deepcopy(studio)):
        assert (copied, copied.code, copied.fields) == (studio, found.code, found.fields)


def codes_used() -> set[str]:
    """Return the codes that calls of `message` and `fault` name."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py"))
    calls = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
    names = ((getattr(call.func, "id", getattr(call.func, "attr", "")), call) for call in calls)
    firsts = (call.args[0] for name, call in names if name in ("message", "fault") and call.args)
    return {str(one.value) for one in firsts if isinstance(one, ast.Constant)}


def test_every_code_of_the_catalogue_is_used_and_no_other():
    texts = catalogue()
    known = {code for code in texts[""] if not code.startswith("set.")}
    for voice in texts.values():
        assert {code for code in voice if not code.startswith("set.")} <= known
    used = codes_used()
    assert used <= known
    sources = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    composed = {code for code in known if code.startswith(("must.", "instead.", "name."))}
    assert known - used <= composed
    assert all(f'"{code.partition(".")[2]}"' in sources for code in composed - used)
