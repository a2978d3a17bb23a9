"""Runs every mutant of the privacy against the tests that should find it: `make mutants`.

Each worker has a copy of the source in a folder of its own, where one mutant after the other is put
in place. A mutant is killed if a named test fails because what it claims is not so; one that lives,
that merely crashes, or whose text is not there any more, fails the command.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path
from queue import Queue

from rich.console import Console
from rich.table import Table

from mutants import HERE, KINDS, PACKAGE, ROOT, SOURCE, Mutant, Stale, read_mutants

PYTEST = ("-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-p", "verdict", "--no-header")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
KILLED, EQUIVALENT = "killed", "equivalent"


@dataclass(frozen=True)
class Result:
    """What became of a mutant: killed, or not; by which test, and after how many seconds."""

    name: str
    kind: str
    outcome: str
    test: str
    seconds: float
    told: str = ""

    @property
    def good(self) -> bool:
        """Whether it is as it should be."""
        return self.outcome in (KILLED, EQUIVALENT)


class Slot:
    """A copy of the source that one worker mutates, and what was compiled of it."""

    def __init__(self, folder: Path) -> None:
        self._source = folder / "src"
        self._compiled = folder / "compiled"
        self._verdict = folder / "verdict.json"
        self._changes = int(time.time())
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(SOURCE, self._source, ignore=ignored)
        self._compiled.mkdir(parents=True)
        self._nursery = subprocess.Popen(
            (sys.executable, str(HERE / "nursery.py")),
            **{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True},
            **{"cwd": ROOT, "env": os.environ | ONE_THREAD},
        )

    def tried(self, mutant: Mutant) -> Result:
        """Put a mutant in place, run its tests, and put the file back."""
        began = time.monotonic()
        try:
            text = mutant.applied()
        except Stale as problem:
            return Result(mutant.name, mutant.kind, "stale", "", 0.0, str(problem))
        place = self._source / PACKAGE / mutant.file
        self._write(place, text)
        try:
            outcome, test, told = self._outcome(mutant, "compiled" in text)
        finally:
            shutil.copy2(SOURCE / PACKAGE / mutant.file, place)
        seconds = time.monotonic() - began
        return Result(mutant.name, mutant.kind, outcome, test, seconds, told)

    def _write(self, place: Path, text: str) -> None:
        """Write a file with a time of its own: Python and numba keep what they made by time."""
        place.write_text(text, encoding="utf-8")
        self._changes += 1
        os.utime(place, (self._changes, self._changes))

    def _outcome(self, mutant: Mutant, loops: bool) -> tuple[str, str, str]:
        compiled = self._compiled
        if loops:  # so that what is compiled of the mutant is not kept
            compiled = self._compiled.with_name("compiled-mutant")
            shutil.rmtree(compiled, ignore_errors=True)
            shutil.copytree(self._compiled, compiled)
        status, found = self.run(mutant.killers, compiled)
        lives = EQUIVALENT if mutant.equivalent else "survived"
        if status == 0:
            return lives, "", mutant.equivalent
        if not found:
            return "no verdict", "", f"pytest ended with {status}"
        outcome = KILLED if found["attack"] else "crashed"
        if mutant.equivalent:
            outcome = f"{outcome}, though said to be equivalent"
        return outcome, found["test"], found["error"]

    def run(self, tests: Iterable[str], compiled: Path | None = None) -> tuple[int, dict]:
        """Run tests against the copy; return pytest's status and the first failure."""
        self._verdict.unlink(missing_ok=True)
        environment = {
            "PYTHONPATH": os.pathsep.join((str(self._source), str(HERE))),
            "NUMBA_CACHE_DIR": str(compiled or self._compiled),
            "MUTANT_VERDICT": str(self._verdict),
            "HYPOTHESIS_PROFILE": "mutants",
        }
        asked = {"command": [*PYTEST, *tests], "environment": environment}
        self._nursery.stdin.write(json.dumps(asked) + "\n")
        self._nursery.stdin.flush()
        status = int(self._nursery.stdout.readline())
        found = json.loads(self._verdict.read_text()) if self._verdict.exists() else {}
        return status, found

    def close(self) -> None:
        """Let the process go."""
        self._nursery.stdin.close()
        self._nursery.wait()


def healthy(slots: list[Slot], mutants: list[Mutant]) -> bool:
    """Whether all named tests pass without a mutant; what is compiled is then kept."""
    tests = sorted({test for mutant in mutants for test in mutant.killers})
    parts = [tests[place :: len(slots)] for place in range(len(slots))]
    with ThreadPoolExecutor(len(slots)) as pool:
        runs = list(pool.map(lambda slot, part: slot.run(part) if part else (0, {}), slots, parts))
    for status, found in runs:
        if status:
            print(f"without any mutant: {found or status}", file=sys.stderr)
    return not any(status for status, _ in runs)


def tried(slots: list[Slot], mutants: list[Mutant], told: Callable[[Result], None]) -> list[Result]:
    """Try all mutants, as many at a time as there are slots."""
    free: Queue[Slot] = Queue()
    for slot in slots:
        free.put(slot)

    def one(mutant: Mutant) -> Result:
        slot = free.get()
        try:
            result = slot.tried(mutant)
        finally:
            free.put(slot)
        told(result)
        return result

    with ThreadPoolExecutor(len(slots)) as pool:
        return list(pool.map(one, mutants))


# --- what is told ---------------------------------------------------------------------------------


def shown(console: Console, results: list[Result], breaks: dict[str, str]) -> None:
    """Print which test killed which mutant, those that are equivalent and those that live."""
    table = Table("mutant", "kind", "what it breaks", "killed by", "s", title="Mutants")
    for one in results:
        by = one.test.replace("tests/", "") if one.outcome == KILLED else f"[bold]{one.outcome}"
        table.add_row(one.name, one.kind, breaks[one.name], by, f"{one.seconds:.0f}")
    console.print(table)
    for one in results:
        if one.outcome != KILLED:
            console.print(f"{one.name}: {one.outcome}. {one.told}", markup=False)
    console.print(summary(results))


def summary(results: list[Result]) -> str:
    """Return the numbers in one line."""
    counts = Counter(one.outcome for one in results)
    told = ", ".join(f"{number} {outcome}" for outcome, number in counts.most_common())
    return f"{len(results)} mutants: {told}."


def by_kind(results: list[Result]) -> str:
    """Return a table in Markdown: of each kind how many there are, killed and equivalent."""
    lines = ["| kind | mutants | killed | equivalent |", "|---|---|---|---|"]
    for kind in KINDS:
        counts = Counter(one.outcome for one in results if one.kind == kind)
        numbers = sum(counts.values()), counts[KILLED], counts[EQUIVALENT]
        lines.append(f"| {kind} | {' | '.join(map(str, numbers))} |")
    return "\n".join(lines)


def kept(folder: Path, results: list[Result], breaks: dict[str, str]) -> None:
    """Write all results as JSON, and as Markdown to be read."""
    folder.mkdir(parents=True, exist_ok=True)
    told = [asdict(one) | {"breaks": breaks[one.name]} for one in results]
    (folder / "mutants.json").write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")
    lines = ["| mutant | kind | what it breaks | outcome | test | s |", "|---|---|---|---|---|---|"]
    for one in results:
        cells = (one.name, one.kind, breaks[one.name], one.outcome, one.test, f"{one.seconds:.0f}")
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    text = f"{summary(results)}\n\n{by_kind(results)}\n\n" + "\n".join(lines) + "\n"
    (folder / "mutants.md").write_text(text)


def parsed() -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[""], metavar="PATTERN", help="those that fit")
    parser.add_argument("--list", action="store_true", help="list the mutants, and run nothing")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    parser.add_argument("--out", type=Path, default=Path("dpscreen-mutants"), help="for results")
    parser.add_argument("--skip-health", action="store_true", help="trust that the tests pass")
    return parser.parse_args()


def fits(mutant: Mutant, patterns: Iterable[str]) -> bool:
    """Whether its name, kind or file holds one of the patterns."""
    words = (mutant.name, mutant.kind, mutant.file)
    return any(fnmatch(word, f"*{pattern}*") for pattern in patterns for word in words)


def main() -> int:
    """Run the mutants that are asked for, and return 1 if one lives."""
    asked, console = parsed(), Console()
    mutants = [one for one in read_mutants() if fits(one, asked.only)]
    if asked.list:
        for one in mutants:
            print(f"{one.name} [{one.kind}] {one.file}: {one.breaks}")
        return 0
    breaks = {one.name: one.breaks for one in mutants}
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        slots = [Slot(Path(folder) / str(number)) for number in range(asked.jobs)]
        if not asked.skip_health and not healthy(slots, mutants):
            return 1
        results = tried(slots, mutants, lambda one: _tell(console, one))
        for slot in slots:
            slot.close()
    shown(console, results, breaks)
    kept(asked.out, results, breaks)
    console.print(f"{(time.monotonic() - began) / 60:.1f} minutes; results in {asked.out}.")
    return 0 if results and all(one.good for one in results) else 1


def _tell(console: Console, one: Result) -> None:
    console.print(f"{one.outcome:10} {one.name} ({one.seconds:.0f} s)", markup=False)


if __name__ == "__main__":
    sys.exit(main())
