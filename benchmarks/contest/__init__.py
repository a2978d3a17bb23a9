"""The open contest behind docs/peers.md: `make contest`, or `python -m benchmarks contest 3`.

The rules are in README.md beside this file. `contest` runs the open and the locked tables once,
logs the run in `runs.jsonl` and rewrites the pages; `contest-open` runs the open ones alone, as
often as you like, and prints. `contest-page` writes the pages anew from the records of the last
run. `contest-synthetic` is the division of least squares on synthetic data, which is slow.
`DPSCREEN_TABLES` chooses open tables by a part of their name (`contest-synthetic`: by names),
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
from benchmarks.contest.page import Standings, summary, write_results
from benchmarks.contest.tables import LOOSENESS, MANIFEST, loaded, manifest
from benchmarks.markdown import write
from benchmarks.timing import repeats

PLACE = Path("dpscreen-contest")
HOME = MANIFEST.parent
RUNS, RESULTS = HOME / "runs.jsonl", HOME / "results.csv"
TABLES = "peers-tables.md"
"""The page with all mean ranks, scores and gaps, beside the one that says where we lose."""

SMALL = {"intervals": 3, "support": 2}
"""Repetitions of the small divisions for each trial of the others."""

BESIDE = ("private-lasso", "boosted-adassp", "adassp", "dp-gd")
"""Methods that synthetic data are compared with."""

Record = dict[str, Any]


Block = tuple[str, str, Iterator[Record]]
"""A division, a table of it, or nothing for a whole division, and its fits, not yet made."""


def blocks(trials: int, *, locked: bool) -> Iterator[Block]:
    """Yield all fits: open tables, simulated ones, locked tables, and the small divisions."""
    part = os.environ.get("DPSCREEN_TABLES", "")
    methods = tuple(os.environ.get("DPSCREEN_METHODS", "").split())
    looseness = float(os.environ.get("DPSCREEN_LOOSENESS", LOOSENESS))
    chosen = tuple(one for one in manifest() if part in one.name and one.locked <= locked)
    yield from _on([one for one in chosen if not one.locked], trials, methods, looseness)
    if not part:
        for name, division, draw in play.simulations():
            found = play.on_table(name, division, draw, trials, methods=methods)
            yield division, name, found
    yield from _on([one for one in chosen if one.locked], trials, methods, looseness)
    if not part:
        for division, module in (("intervals", intervals), ("support", support)):
            many = trials * SMALL[division]
            seed = f"{play.SEED}/{division}"
            yield division, "", module.plays(play.EPSILONS, play.DELTA, many, seed)


def _on(
    entries: list[Any], trials: int, methods: tuple[str, ...], looseness: float
) -> Iterator[Block]:
    for entry, numbers in loaded(tuple(entries)):
        draw = play.bounded(entry, numbers, looseness)
        suited = tuple(one for one in methods if one in play.METHODS[entry.division])
        found = play.on_table(entry.name, entry.division, draw, trials, methods=suited)
        mark = {"locked": entry.locked}
        yield entry.division, entry.name, (one | mark for one in found)


def kept(made: Iterator[Block], path: Path, earlier: list[Record] | None = None) -> list[Record]:
    """Write records as they come, and return them all; what an earlier run finished is not redone.

    The last table that it wrote may be incomplete, and is.
    """
    whole = finished(earlier or [])
    done = {(one["division"], one["table"]) for one in whole} | {
        (one["division"], "") for one in whole if one["division"] in SMALL
    }
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in whole)
        for division, table, found in made:
            if (division, table) in done:
                continue
            print(f"{time.strftime('%H:%M:%S')} {division}: {table or 'all'}", flush=True)
            for one in found:
                whole.append(one)
                file.write(json.dumps(one, ensure_ascii=False) + "\n")
            file.flush()
    return whole


def finished(earlier: list[Record]) -> list[Record]:
    """Return the records of all blocks but the last, which may be incomplete."""

    def block(one: Record) -> tuple[str, str]:
        return one["division"], "" if one["division"] in SMALL else one["table"]

    return [one for one in earlier if block(one) != block(earlier[-1])]


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


def published(found: list[Record]) -> list[tuple[str, Standings]]:
    """Print the divisions, put them on the two pages that are named, and return them."""
    named = list(sections(found))
    for name, standings in named:
        write(name, standings.text())
        write(name, standings.details(), TABLES)
    return named


def main_synthetic() -> None:
    """Compare least squares on synthetic data with faster methods, on open tables."""
    PLACE.mkdir(exist_ok=True)
    name = "regression, synthetic data"

    def made() -> Iterator[Block]:
        chosen = os.environ.get("DPSCREEN_TABLES", "").split()
        entries = [
            one
            for one in manifest()
            if not one.locked
            and one.division == "regression"
            and (one.name in chosen or not chosen)
        ]
        for entry, numbers in loaded(tuple(entries)):
            if numbers.X.shape[1] < synthetic.MOST_COLUMNS:
                draw = play.bounded(entry, numbers)
                methods = (*BESIDE, *play.SLOW)
                yield (
                    name,
                    entry.name,
                    play.on_table(entry.name, name, draw, repeats(1), methods=methods),
                )

    found = kept(made(), PLACE / "synthetic.jsonl")
    write_results(found, RESULTS.with_stem("results-synthetic"))
    published(found)


def main_open() -> None:
    """Run the open tables and print; nothing is logged."""
    PLACE.mkdir(exist_ok=True)
    published(kept(blocks(repeats(2), locked=False), PLACE / "open.jsonl"))


def main() -> None:
    """Run everything once, log the run, and rewrite the page."""
    if any(os.environ.get(f"DPSCREEN_{one}") for one in ("TABLES", "METHODS", "LOOSENESS")):
        sys.exit("the whole contest has no choices; use `python -m benchmarks contest-open`.")
    if _git("status", "--porcelain", "--untracked-files=no"):
        sys.exit("the work tree has changes: commit them, so that the log says what was run.")
    commit, began = _git("rev-parse", "HEAD"), time.time()
    PLACE.mkdir(exist_ok=True)
    path = PLACE / "contest.jsonl"
    stamp = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)), "commit": commit}
    _log(stamp | {"began": True})  # a run that is stopped is in the log too
    found = kept(blocks(repeats(3), locked=True), path, stopped(path))
    ranks = {name: _ranks(one) for name, one in sections(found)}
    line = stamp | {
        "hours": round((time.time() - began) / 3600, 2),
        "locked": sorted({one["table"] for one in found if one.get("locked")}),
        "fits": len(found),
        "mean_ranks": ranks,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }
    _log(line)
    write_results(found, RESULTS)
    main_page()


def stopped(path: Path) -> list[Record]:
    """Return the records of a run that was stopped: those whose checksum is not in the log."""
    if not path.exists():
        return []
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    if RUNS.exists() and sha256 in RUNS.read_text(encoding="utf-8"):
        return []
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]  # the last may be half a line
    return [json.loads(one) for one in lines]


def _log(line: Record) -> None:
    with RUNS.open("a", encoding="utf-8") as log:
        log.write(json.dumps(line, ensure_ascii=False) + "\n")


def main_page() -> None:
    """Write the page from the records of the last run; `contest` ends with it."""
    for kind in ("contest", "synthetic"):
        path = PLACE / f"{kind}.jsonl"
        if path.exists():
            lines = path.read_text(encoding="utf-8").splitlines()
            named = published([json.loads(one) for one in lines])
            if kind == "contest":
                write("summary of the contest", summary(named))


def _ranks(standings: Standings) -> dict[str, dict[str, float]]:
    return {
        f"{e:g}": {m: round(r, 2) for m, r in standings.ranks(e).items()}
        for e in standings.epsilons
    }


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True, cwd=HOME)
    return done.stdout.strip()
