"""Count the files of src that a fit runs through: ``python tests/tools/trace_files.py``.

A file counts if one of its functions is called. What is imported or compiled on first use happens
in a run before, which is not counted.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np
from click.testing import CliRunner

import dpscreen
from dpscreen import PrivateLasso
from dpscreen.cli.app import dpscreen as app

SOURCE = Path(dpscreen.__file__).parent
MOST = {"PrivateLasso.fit": 33, "dpscreen fit": 60}
"""How many files are still easy to follow."""

SCHEMA = {
    "fields": [
        {"name": name, "type": "number", "constraints": {"minimum": 0, "maximum": 120}}
        for name in ("age", "height", "cost")
    ],
    "dpscreen": {"target": "cost"},
}


def files_run(work: Callable[[], object]) -> list[str]:
    """Return the files of src whose functions are called by `work`, when it runs again."""
    work()
    codes = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            codes.add(frame.f_code)

    earlier = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(earlier)
        threading.setprofile(None)
    names = {code.co_filename for code in codes if code.co_name != "<module>"}
    inside = (Path(name) for name in names if Path(name).is_relative_to(SOURCE))
    return sorted(path.relative_to(SOURCE).as_posix() for path in inside)


def table() -> np.ndarray:
    """Return 300 rows of two features and a target, other ones in each fit: nothing warns."""
    rng = np.random.default_rng()
    features = rng.uniform(20, 80, size=(300, 2))
    return np.column_stack((features, features[:, 0] + rng.normal(0, 5, size=300)))


def fit_rows() -> None:
    """Fit `PrivateLasso` to an array."""
    rows = table()
    model = PrivateLasso(epsilon=1, delta=1e-6, feature_bounds=(0, 120), target_bounds=(0, 120))
    model.fit(rows[:, :2], rows[:, 2])


def fit_file() -> None:
    """Run `dpscreen fit` on a CSV file and its schema, in this process."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savetxt(
            folder / "rows.csv", table(), delimiter=",", header="age,height,cost", comments=""
        )
        (folder / "schema.json").write_text(json.dumps(SCHEMA), encoding="utf-8")
        files = [folder / "rows.csv", "--schema", folder / "schema.json", "-o", folder / "m.json"]
        options = [*map(str, files), "--epsilon", "1", "--delta", "1e-6"]
        done = CliRunner().invoke(app, ["fit", *options])
    assert done.exit_code == 0, done.output


FITS = {"PrivateLasso.fit": fit_rows, "dpscreen fit": fit_file}

if __name__ == "__main__":
    for fit, work in FITS.items():
        found = files_run(work)
        print(f"{fit}: {len(found)} files, {MOST[fit]} are allowed")
        print("\n".join(f"  {file}" for file in found))
