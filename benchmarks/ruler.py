"""Compare this code with another commit under coupled noise: `python -m benchmarks ruler`.

Two seed sets of the same code differ by several hundredths of R² at small ε, which hides what a
change does. Here both commits fit the same rows with the same bounds, and the k-th release for a
purpose draws the same standard noise in both. What differs is then the code.

The tables lie in the folder `tables` of DPSCREEN_DATA, with a harness, `tables.py`; a folder of
other tables in the same form can be named there instead. Environment variables:

DPSCREEN_AGAINST
    The commit to compare with (HEAD: what is not committed yet is compared with what is).
DPSCREEN_KINDS
    Groups of tables, separated by commas (regression, fresh, classification,
    fresh_classification; groups that the folder does not have are passed over).
DPSCREEN_EPSILONS, DPSCREEN_LOOSENESS, DPSCREEN_TRIALS
    Budgets (0.5,1,3), how many times too wide bounds are (4), and fits per table (3).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import train_test_split

from benchmarks.tables_quality import DELTA, FLOOR, harness, lasso
from dpscreen.privacy.mechanisms import DiscreteGaussian, NoisyMax, SignedNoisyMax
from dpscreen.privacy.noise import WATCH, Noise, SeededNoise, named_seed

KINDS = "regression,fresh,classification,fresh_classification"
CLEAR = 0.005
"""Differences of R² or AUC from which on a table counts as won or lost."""


class CoupledNoise(Noise):
    """Noise that depends on a name, the purpose of a release and how often it came before.

    Not private. A mechanism of another scale, or on other values, gets the same standard draws.
    """

    secure = False
    description = "coupled noise of a benchmark (reproducible, so not private)"

    def __init__(self, name: str) -> None:
        self._name = name
        self._counts: Counter[str] = Counter()

    def words(self, count: int) -> Any:
        """Return words for draws that no mechanism makes, such as the coins of a split."""
        return SeededNoise(self._next("words")).words(count)

    def answer(self, mechanism: Any, values: Any, *, purpose: str, account: object) -> Any:  # noqa: ARG002
        """Release what the mechanism makes of the values with the noise of this purpose."""
        name = self._next(purpose)
        rng = np.random.default_rng(named_seed(name))
        if isinstance(mechanism, DiscreteGaussian):
            noise = np.rint(rng.standard_normal(values.size) * mechanism.scale / mechanism.unit)
            return np.asarray((values + noise) * mechanism.unit, dtype=np.float64)
        if isinstance(mechanism, NoisyMax):
            return int(
                np.argmax(values * mechanism.unit + mechanism.scale * rng.gumbel(size=len(values)))
            )
        if isinstance(mechanism, SignedNoisyMax) and isinstance(values, np.ndarray):
            scores = np.stack((values, -values)) * mechanism.unit
            place = int(np.argmax(scores + mechanism.scale * rng.gumbel(size=scores.shape)))
            return place % values.size, 1 if place < values.size else -1
        return mechanism(values, SeededNoise(name))

    def _next(self, purpose: str) -> str:
        self._counts[purpose] += 1
        return f"{self._name}/{purpose}/{self._counts[purpose]}"


@dataclass(frozen=True)
class Job:
    """Which tables are fitted, how, and how often."""

    kinds: Sequence[str]
    epsilons: Sequence[float]
    looseness: float
    trials: int

    @classmethod
    def of_environment(cls) -> Job:
        """Return what the environment variables say."""
        get = os.environ.get
        return cls(
            get("DPSCREEN_KINDS", KINDS).split(","),
            [float(one) for one in get("DPSCREEN_EPSILONS", "0.5,1,3").split(",")],
            float(get("DPSCREEN_LOOSENESS", "4")),
            int(get("DPSCREEN_TRIALS", "3")),
        )

    def tasks(self) -> Iterator[Any]:
        """Yield the tables of these kinds."""
        tables = harness()
        there = json.loads((Path(tables.HERE) / "tables.json").read_text())
        for kind in self.kinds:
            if kind in there:
                yield from tables.tasks(kind)

    def splits(self, task: Any) -> Iterator[tuple[int, Any, Any]]:
        """Yield a number, rows to fit and to predict, and bounds, for each trial."""
        for trial in range(self.trials):
            strata = task.y if is_binary(task) else None
            parts = train_test_split(
                task.X, task.y, test_size=0.2, random_state=trial, stratify=strata
            )
            rng = np.random.default_rng(named_seed(f"bounds of {task.name} {trial}"))
            yield trial, parts, harness().loose_bounds(task, self.looseness, rng)


def is_binary(task: Any) -> bool:
    """Return whether the outcome is 0 or 1."""
    return bool(task.kind.endswith("classification"))


def sparse_model(task: Any, epsilon: float, bounds: Any, seed: str) -> Any:
    """Return the sparse model of this code, unfitted, for the outcome of a table."""
    import dpscreen

    given = {"epsilon": epsilon, "delta": DELTA, "feature_bounds": bounds[0], "random_state": seed}
    if not is_binary(task):
        return dpscreen.PrivateLasso(**given, target_bounds=bounds[1])
    return dpscreen.PrivateLogisticLasso(**given)


def quality(task: Any, model: Any, rows: Any, truth: Any) -> float:
    """Return R², floored, or AUC on held-out rows."""
    if is_binary(task):
        return float(roc_auc_score(truth, model.predict_proba(rows)[:, 1]))
    return max(FLOOR, float(r2_score(truth, model.predict(rows))))


@contextmanager
def coupled(name: str) -> Iterator[None]:
    """Let fits inside draw noise that depends on this name and on what it is for."""
    token = WATCH.set(lambda _: CoupledNoise(name))
    try:
        yield
    finally:
        WATCH.reset(token)


def measure(job: Job) -> None:
    """Print a line of JSON for each fit: table, ε, trial and quality."""
    warnings.simplefilter("ignore")
    for task in job.tasks():
        for trial, (rows, held, target, truth), bounds in job.splits(task):
            for epsilon in job.epsilons:
                seed = f"{task.name} {trial} {epsilon:g}"
                with coupled(seed):
                    model = sparse_model(task, epsilon, bounds, seed).fit(rows, target)
                found = quality(task, model, held, truth)
                line = {"table": task.name, "binary": is_binary(task), "epsilon": epsilon}
                print(json.dumps({**line, "trial": trial, "quality": found}), flush=True)


@contextmanager
def sources(commit: str) -> Iterator[Path]:
    """Check a commit out for a while, and return the folder of its package."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "other"
        git = ["git", "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", place, commit], check=True)
        try:
            yield place / "src"
        finally:
            subprocess.run([*git, "remove", "--force", place], check=True)


def started(source: Path) -> subprocess.Popen[str]:
    """Start measuring the package in a folder."""
    path = os.pathsep.join(map(str, (source, Path.cwd())))
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.ruler", "--child"],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen[str]) -> dict[tuple[str, bool, float], list[float]]:
    """Return the qualities of a process's fits, by table and ε."""
    found: dict[tuple[str, bool, float], list[float]] = {}
    out, _ = process.communicate()
    if process.returncode:
        sys.exit("a child process failed; see above.")
    for line in map(json.loads, out.splitlines()):
        key = line["table"], line["binary"], line["epsilon"]
        found.setdefault(key, []).append(line["quality"])
    return found


def main() -> None:
    """Print, for each ε, how this code's quality differs from the other commit's."""
    commit, job = os.environ.get("DPSCREEN_AGAINST", "HEAD"), Job.of_environment()
    with sources(commit) as other:
        running = started(Path("src").resolve()), started(other)
        here, there = map(finished, running)
    print(
        f"Coupled noise, {job.trials} fits per table, bounds {job.looseness:g} times too wide;"
        f" held-out R² or AUC of this code less that of {commit}"
    )
    for binary, measured in ((False, "R²"), (True, "AUC")):
        for epsilon in job.epsilons:
            keys = [key for key in here if key[1:] == (binary, epsilon)]
            if keys:
                means = [(key[0], np.mean(here[key]), np.mean(there[key])) for key in keys]
                report(f"{measured}, epsilon {epsilon:g}", means)
    if "regression" in job.kinds:
        gaps(job, here, there)


def report(title: str, means: Sequence[tuple[str, Any, Any]]) -> None:
    """Print the mean difference, its standard error over tables, and the tables that differ."""
    less = np.array([new - old for _, new, old in means])
    error = less.std(ddof=1) / np.sqrt(len(less)) if len(less) > 1 else np.nan
    won, lost = int((less > CLEAR).sum()), int((less < -CLEAR).sum())
    print(f"\n{title}: mean {less.mean():+.4f} ± {error:.4f}, {won} won and {lost} lost", end="")
    print(f" of {len(less)} tables by more than {CLEAR}")
    for name, new, old in sorted(means, key=lambda one: one[1] - one[2]):
        if abs(new - old) > CLEAR:
            print(f"  {name[:32]:32} {old:7.3f} -> {new:7.3f}  {new - old:+.3f}")


def gaps(job: Job, here: dict[Any, list[float]], there: dict[Any, list[float]]) -> None:
    """Print the mean gap to LassoCV of both."""
    warnings.simplefilter("ignore")
    best: dict[str, float] = {}
    for task in job.tasks():
        if not is_binary(task):
            found = []
            for _, (rows, held, target, truth), _ in job.splits(task):
                found.append(quality(task, lasso(None, None, 0).fit(rows, target), held, truth))
            best[task.name] = float(np.mean(found))
    print("\nmean R² less LassoCV's: the other commit, this code")
    for epsilon in job.epsilons:
        keys = [key for key in here if key[1:] == (False, epsilon)]
        less = [
            np.mean([np.mean(arm[key]) - best[key[0]] for key in keys]) for arm in (there, here)
        ]
        print(f"  epsilon {epsilon:g}: {less[0]:+.4f} {less[1]:+.4f}")


if __name__ == "__main__":
    if "--child" in sys.argv:
        measure(Job.of_environment())
    else:
        main()
