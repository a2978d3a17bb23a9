"""The product installs, imports and fits without the paper's room."""

import json
import subprocess
import sys

import numpy as np
import pytest

SCHEMA = {
    "fields": [
        {"name": name, "type": "number", "constraints": {"minimum": 0, "maximum": 1}}
        for name in ("a", "b", "y")
    ],
    "dpscreen": {"target": "y"},
}
NO_PAPER = """
import sys

class NoPaper:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[:2] == ["dpscreen", "paper"]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NoPaper())
"""
COMMANDS = (
    ("plan", "--rows", "500", "--features", "3", "--epsilon", "1"),
    ("compare", "--rows", "500", "--features", "3", "--epsilon", "1", "--repetitions", "2"),
    ("fit", "rows.csv", "--schema", "schema.json", "--epsilon", "1", "--delta", "1e-6",
     "-o", "model.json", "--report", "page.html"),
    ("show", "model.json"),
    ("audit", "published-noisy-max", "--runs", "4000", "--seed", "1"),
)  # fmt: skip


@pytest.fixture
def place(tmp_path):
    """Return a folder with a small table and its schema."""
    rows = np.random.default_rng(0).uniform(size=(400, 3))
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",", header="a,b,y", comments="")
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    return tmp_path


def without_paper(code, place):
    command = [sys.executable, "-c", NO_PAPER + code]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)


def test_estimators_fit(place):
    done = without_paper(
        "import numpy as np, dpscreen\n"
        "X = np.random.default_rng(0).uniform(size=(300, 3))\n"
        "bounds = {'feature_bounds': (0, 1), 'target_bounds': (0, 1)}\n"
        "model = dpscreen.PrivateLasso(epsilon=1, delta=1e-6, **bounds).fit(X, X[:, 0])\n"
        "print(all(hasattr(dpscreen, name) for name in dpscreen.__all__), model.coef_.shape)",
        place,
    )
    assert done.stdout.split("\n")[0] == "True (3,)", done.stderr


def test_commands_work(place):
    """One process for all of them: most of the time goes into imports."""
    done = without_paper(
        "from dpscreen.cli.app import dpscreen\n"
        "from dpscreen.planning import plan\n"
        "plan.SECONDS = 0.05\n"
        f"for words in {COMMANDS!r}:\n"
        "    dpscreen.main(words, standalone_mode=False)\n",
        place,
    )
    assert done.returncode == 0, done.stderr
    for message in ("Left to itself", "held-out R²", "claim refuted"):
        assert message in done.stdout
    assert "<svg" in (place / "page.html").read_text(encoding="utf-8")


def test_the_hook_does_hide_the_paper(place):
    done = without_paper("import dpscreen.paper", place)
    assert "No module named 'dpscreen.paper'" in done.stderr
