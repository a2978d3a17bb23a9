"""Run every benchmark and print ratios: `make bench`, or `python -m benchmarks foundation`.

A number is that of repetitions, where there are any: `python -m benchmarks inference 60`.

What was measured is also saved, as dpscreen-bench/ratios.json.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from benchmarks import (
    contest,
    curves,
    databases,
    exactness,
    foundation,
    free_screen,
    growth,
    heaps,
    history,
    inference,
    open_problems,
    panels,
    paper_defaults,
    poisson,
    private_lasso,
    quality,
    recorder,
    ruler,
    scale,
    sniper,
    sparse,
    studio,
    tables,
    tables_quality,
)
from benchmarks.contest import reproduce
from benchmarks.timing import RATIOS, machine

BENCHMARKS = {
    "foundation": foundation.main,
    "exactness": exactness.main,
    "private-lasso": private_lasso.main,
    "tables": tables.main,
    "tables-quality": tables_quality.main,
    "quality": quality.main,
    "contest": contest.main,
    "contest-open": contest.main_open,
    "contest-page": contest.main_page,
    "contest-reproduce": reproduce.main,
    "contest-synthetic": contest.main_synthetic,
    "curves": curves.main,
    "ruler": ruler.main,
    "paper-defaults": paper_defaults.main,
    "poisson": poisson.main,
    "heaps": heaps.main,
    "history": history.main,
    "scale": scale.main,
    "databases": databases.main,
    "sparse": sparse.main,
    "free-screen": free_screen.main,
    "open-problems": open_problems.main,
    "growth": growth.main,
    "sniper": sniper.main,
    "dp-sniper": sniper.main_published,
    "recorder": recorder.main,
    "inference": inference.main,
    "inference-speed": inference.speed,
    "panels": panels.main,
    "studio": studio.main,
}

LONG = {
    "free-screen",
    "open-problems",
    "contest",
    "contest-open",
    "contest-page",
    "contest-reproduce",
    "contest-synthetic",
    "curves",
    "paper-defaults",
    "poisson",
    "heaps",
    "inference",
    "sniper",
    "dp-sniper",
    "recorder",
    "panels",
}
BY_NAME = {"history", "tables-quality", "quality", "ruler", "studio"} | LONG
"""Run by name only: it writes a file, needs tables or Chromium, or takes long."""


def main() -> None:
    names = [name for name in sys.argv[1:] if not name.isdigit()]
    if numbers := [name for name in sys.argv[1:] if name.isdigit()]:
        os.environ["DPSCREEN_TRIALS"] = numbers[-1]
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        sys.exit(f"no benchmark {unknown[0]!r}; there are: {', '.join(BENCHMARKS)}")
    for name in names or (name for name in BENCHMARKS if name not in BY_NAME):
        BENCHMARKS[name]()
        save()


def save() -> None:
    """Write what has been measured so far."""
    place = Path("dpscreen-bench")
    place.mkdir(exist_ok=True)
    found = {"machine": machine(), "ratios": RATIOS}
    text = json.dumps(found, indent=1, ensure_ascii=False, default=float)
    (place / "ratios.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
