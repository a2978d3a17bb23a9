"""The open contest behind docs/peers.md: `make contest`, or `python -m benchmarks contest 3`.

The rules are in README.md beside this file. `contest` runs the open and the locked tables once,
logs the run in `runs.jsonl` and rewrites the page; `contest-open` runs the open ones alone, as
often as you like, and prints. `contest-page` writes the page anew from the records of the last
run. `contest-synthetic` is the division of least squares on synthetic data, which is slow.
`DPSCREEN_TABLES` chooses open tables by a part of their name,
`DPSCREEN_METHODS` methods by name, `DPSCREEN_LOOSENESS` other bounds; records are kept in
dpscreen-contest/.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.contest import intervals, play, support, synthetic
from benchmarks.contest.page import Standings, write_results
from benchmarks.contest.tables import LOOSENESS, MANIFEST, loaded, manifest
from benchmarks.inference import write
from benchmarks.timing import repeats

PLACE = Path("dpscreen-contest")
HOME = MANIFEST.parent
RUNS, RESULTS = HOME / "runs.jsonl", HOME / "results.csv"
SMALL = {"intervals": 4, "support": 3}
"""Repetitions of the small divisions for each trial of the others."""

BESIDE = ("private-lasso", "boosted-adassp", "adassp", "dp-gd")
"""Methods that synthetic data are compared with."""

Record = dict[str, Any]


def records(trials: int, *, locked: bool) -> Iterator[Record]:
    """Yield every fit: open tables, simulated ones, small divisions, and then locked tables."""
    part = os.environ.get("DPSCREEN_TABLES", "")
    methods = tuple(os.environ.get("DPSCREEN_METHODS", "").split())
    looseness = float(os.environ.get("DPSCREEN_LOOSENESS", LOOSENESS))
    epsilons = play.EPSILONS
    chosen = tuple(one for one in manifest() if part in one.name and one.locked <= locked)
    opened = [one for one in chosen if not one.locked]
    yield from _on(opened, trials, methods, looseness)
    if not part:
        for name, division, draw in play.simulations():
            yield from play.on_table(name, division, draw, trials, epsilons, methods)
        for division, module in (("intervals", intervals), ("support", support)):
            many = trials * SMALL[division]
            yield from module.plays(epsilons, play.DELTA, many, f"{play.SEED}/{division}")
    yield from _on([one for one in chosen if one.locked], trials, methods, looseness)


def _on(
    entries: list[Any], trials: int, methods: tuple[str, ...], looseness: float
) -> Iterator[Record]:
    for entry, numbers in loaded(tuple(entries)):
        draw = play.bounded(entry, numbers, looseness)
        suited = tuple(one for one in methods if one in play.METHODS[entry.division])
        found = play.on_table(entry.name, entry.division, draw, trials, methods=suited)
        yield from (one | {"locked": entry.locked} for one in found)


def kept(found: Iterator[Record], path: Path) -> list[Record]:
    """Write records as they come, and return them all."""
    whole, last = [], ""
    with path.open("w", encoding="utf-8") as file:
        for one in found:
            whole.append(one)
            file.write(json.dumps(one, ensure_ascii=False) + "\n")
            if one["table"] != last:
                last = one["table"]
                print(f"{time.strftime('%H:%M:%S')} {one['division']}: {last}", flush=True)
    return whole


def sections(found: list[Record]) -> Iterator[tuple[str, Standings]]:
    """Yield the divisions with their names on the page."""
    for division in dict.fromkeys(one["division"] for one in found):
        for locked in (False, True):
            here = [
                one
                for one in found
                if one["division"] == division and one.get("locked", False) == locked
            ]
            if here:
                name = f"contest of {division}{', locked tables' if locked else ''}"
                yield name, Standings(here, division)


def main_synthetic() -> None:
    """Compare least squares on synthetic data with faster methods, on open tables."""
    PLACE.mkdir(exist_ok=True)
    name = "regression, synthetic data"

    def found() -> Iterator[Record]:
        entries = [one for one in manifest() if not one.locked and one.division == "regression"]
        for entry, numbers in loaded(tuple(entries)):
            if numbers.X.shape[1] < synthetic.MOST_COLUMNS:
                draw = play.bounded(entry, numbers)
                methods = (*BESIDE, *play.SLOW)
                yield from play.on_table(entry.name, name, draw, repeats(1), methods=methods)

    for title, standings in sections(kept(found(), PLACE / "synthetic.jsonl")):
        write(title, standings.text())


def main_open() -> None:
    """Run the open tables and print; nothing is logged."""
    PLACE.mkdir(exist_ok=True)
    for name, standings in sections(kept(records(repeats(2), locked=False), PLACE / "open.jsonl")):
        write(name, standings.text())


def main() -> None:
    """Run everything once, log the run, and rewrite the page."""
    if any(os.environ.get(f"DPSCREEN_{one}") for one in ("TABLES", "METHODS", "LOOSENESS")):
        sys.exit("the whole contest has no choices; use `python -m benchmarks contest-open`.")
    if _git("status", "--porcelain", "--untracked-files=no"):
        sys.exit("the work tree has changes: commit them, so that the log says what was run.")
    commit, began = _git("rev-parse", "HEAD"), time.time()
    PLACE.mkdir(exist_ok=True)
    path = PLACE / "contest.jsonl"
    found = kept(records(repeats(3), locked=True), path)
    ranks = {name: _ranks(one) for name, one in sections(found)}
    line = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
        "commit": commit,
        "hours": round((time.time() - began) / 3600, 2),
        "locked": sorted({one["table"] for one in found if one.get("locked")}),
        "fits": len(found),
        "mean_ranks": ranks,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }
    with RUNS.open("a", encoding="utf-8") as log:
        log.write(json.dumps(line, ensure_ascii=False) + "\n")
    write_results(found, RESULTS)
    main_page()


def main_page() -> None:
    """Write the page from the records of the last run; `contest` ends with it."""
    for kind in ("contest", "synthetic"):
        path = PLACE / f"{kind}.jsonl"
        if path.exists():
            lines = path.read_text(encoding="utf-8").splitlines()
            for name, standings in sections([json.loads(one) for one in lines]):
                write(name, standings.text())


def _ranks(standings: Standings) -> dict[str, dict[str, float]]:
    return {
        f"{e:g}": {m: round(r, 2) for m, r in standings.ranks(e).items()}
        for e in standings.epsilons
    }


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True, cwd=HOME)
    return done.stdout.strip()
