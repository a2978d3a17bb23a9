"""What to run: the trials that the items need, less those whose rows are already there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dpscreen.study.experiments import Experiment
from dpscreen.study.results import ResultsProblem, RowKey, TrialRow, fingerprint
from dpscreen.study.suites import Item


@dataclass(frozen=True)
class Job:
    """One trial of one experiment: these methods on the same rows."""

    experiment: Experiment
    trial: int
    methods: tuple[str, ...]

    @property
    def label(self) -> str:
        """What a progress display shows."""
        return f"{self.experiment.suite}: {self.experiment.data}, trial {self.trial + 1}"


def plan(items: Iterable[Item], trials: int, experiments: Iterable[Experiment]) -> list[Job]:
    """List the trials that the items need, grouped so that one job uses one set of rows."""
    needs = [need for item in items for need in item.needs]
    jobs = []
    for experiment in experiments:
        methods = defaultdict(list)
        for name in experiment.method_names:
            if any(need.covers(experiment, name) for need in needs):
                for trial in experiment.trials(name, trials):
                    methods[trial].append(name)
        jobs += [Job(experiment, trial, tuple(names)) for trial, names in methods.items()]
    return jobs


def current_rows(
    rows: Iterable[TrialRow], wanted: Iterable[Job]
) -> tuple[dict[RowKey, TrialRow], list[ResultsProblem]]:
    """Return the rows that were computed with today's settings and versions; count the others."""
    expected = {
        (job.experiment.suite, job.experiment.data, name): fingerprint(
            job.experiment.declared(name)
        )
        for job in wanted
        for name in job.methods
    }
    have, foreign = {}, 0
    for row in rows:
        mark = expected.get((row.suite, row.data, row.method))
        if row.fingerprint == mark:
            have[row.key] = row
        elif mark is not None:
            foreign += 1
    return have, [_other_settings(foreign)] if foreign else []


def _other_settings(count: int) -> ResultsProblem:
    return ResultsProblem(
        "other settings",
        f"{count} row(s) were made with other settings or versions; they stay in the file but are "
        "not used.",
    )


def missing(wanted: Iterable[Job], have: dict[RowKey, TrialRow]) -> list[Job]:
    """Return what is left to do."""
    todo = []
    for job in wanted:
        names = tuple(name for name in job.methods if _key(job, name) not in have)
        if names:
            todo.append(Job(job.experiment, job.trial, names))
    return todo


def keys(wanted: Iterable[Job]) -> Iterator[RowKey]:
    """Return the rows that the jobs make, in their order."""
    return (_key(job, name) for job in wanted for name in job.methods)


def _key(job: Job, name: str) -> RowKey:
    return RowKey(job.experiment.suite, job.experiment.data, name, job.trial)
