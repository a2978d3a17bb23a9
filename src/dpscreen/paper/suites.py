"""What can be run by name, as data: items, and the experiments that make their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

from dpscreen._core.messages import unknown
from dpscreen.paper.data import CORRELATION
from dpscreen.paper.experiments import (
    PROCESS,
    Experiment,
    RealData,
    Regression,
    Simulation,
    UniformProcess,
)
from dpscreen.paper.methods import FEW, MANY, proven_names
from dpscreen.paper.published import published_data
from dpscreen.paper.results import StudyError

SYNTHETIC = tuple(CORRELATION)

ABLATION_SUPPORT = {"residential": 32, "blogfeedback": 93}
"""K in Tables 4 and 5 where it is not that of Table 2.

On these two sets NP-FW ends at a single vertex that is in the support, so its printed F1 is
2/(1 + K): .061 leaves only K = 32, and .021 leaves 93 to 96, of which 93 is d/3.
"""

KEPT = ("kept_true", "kept_false")
EXPERIMENT_A = ("dp-fw-rule", "dp-fw-rule-50th", "dp-fw-rule-last")
EXPERIMENT_B = ("np-fw-adp", "np-fw-adp-50th", "np-fw-adp-last")
FIGURE_3 = ("adp-screen", "adp-screen-50th", "adp-screen-last")
RULES = ("np-fw-rule", "np-fw-published-rule", "np-fw-safe", "np-fw")
"""Eq. 1 as printed, with and without return; the rule corrected for the radius; no rule."""
GAPS = ("dp-fw-rule", "np-fw-rule", "np-fw")
"""What Figure 4 compares by the Wolfe gap."""
ENDS = ("np-fw-low", "np-fw-high")
ITERATIONS = (f"np-fw-{FEW}", f"np-fw-{MANY}")
ZERO_START, CHOICES = "zero-start", "choices"
FROM_ZERO = ("dp-fw-zero", "rnm-screen-zero")
AGAIN = ("rnm-screen", "oracle-k-fw")
BLOCKS = 5
LONG = {"real": "real-long", "ablation": "ablation-long"}
"""The suites that repeat a suite's random trials, five times as many, with noise of their own."""


# --- items --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Item:
    """A table, figure or claim of the paper, and the rows it is made from.

    Those are of some methods in a suite (none: of all of them); `data` None means on every data
    set of the suite.
    """

    name: str
    title: str
    suite: str
    methods: tuple[str, ...] = ()
    data: tuple[str, ...] | None = None

    def takes(self, suite: str, data: str) -> bool:
        """Whether it is made from rows of a suite on a data set."""
        return suite == self.suite and (self.data is None or data in self.data)

    def needed(self, experiment: Experiment) -> tuple[str, ...]:
        """Return the methods of an experiment whose rows it is made from."""
        if not self.takes(experiment.suite, experiment.data):
            return ()
        return tuple(one for one in experiment.methods if one in (self.methods or (one,)))


@cache
def all_items() -> Mapping[str, Item]:
    """Every item by name, in the paper's order."""
    proven, plain = proven_names(), ("uncorrelated",)
    baselines = ("rnm-screen", "dp-fw", "oracle-k-fw", "np-fw", "lasso", *ENDS, *proven)
    items = (
        Item("table1", "RNM-Screen on synthetic data",
             "synthetic", ("rnm-screen", "adp-screen", "dp-fw", "np-fw", *proven)),
        Item("figure1", "RNM-Screen against ADP-Screen over the iterations",
             "synthetic", ("rnm-screen", "adp-screen")),
        Item("table2", "RNM-Screen on real data", "real", ("rnm-screen", "dp-fw", *proven)),
        Item("figure2", "Mean squared error over the iterations",
             "real", ("rnm-screen", *proven)),
        Item("table3", "RNM-Screen against baselines on real data",
             "real", (*baselines, "preselect-k-fw", *RULES[:3])),
        Item("figure3", "ADP-Screen by how often it screens", "adp", FIGURE_3, plain),
        Item("figure4", "Wolfe gap, private against non-private", "adp", GAPS, plain),
        Item("table4", "RNM-Screen without the Yeo-Johnson transform",
             "ablation", ("rnm-screen", "dp-fw", *proven)),
        Item("table5", "RNM-Screen against baselines without the transform",
             "ablation", baselines),
        Item("experiment-a", "Non-private screening of private Frank-Wolfe",
             "adp", EXPERIMENT_A),
        Item("experiment-b", "Private screening of non-private Frank-Wolfe",
             "adp", (*EXPERIMENT_B, *FIGURE_3), plain),
        Item("claim-55", "Non-private screening keeps 55 % of the true nonzeros",
             "adp", RULES, plain),
        Item("claim-55-wide", "The same at the radius of Section 5.1", "synthetic", RULES),
        Item("more-iterations", "Frank-Wolfe and RNM-Screen for more iterations",
             "real", ("rnm-screen", "rnm-screen-longer", *ITERATIONS)),
        Item("long-real", "Five times the trials of Table 3's bold type", LONG["real"], AGAIN),
        Item("long-ablation", "Five times the trials of Table 5's bold type",
             LONG["ablation"], AGAIN),
        Item("theorem2", "Expected nonzeros under uniform updates and screenings",
             "theorem2", (PROCESS,)),
        Item("control", "RNM-Screen against zeroing at random",
             "synthetic", ("rnm-screen", "uniform-zeroing")),
        Item(ZERO_START, "DP-FW and RNM-Screen from a zero start", ZERO_START, FROM_ZERO),
        Item(CHOICES, "What the paper leaves open, chosen otherwise", CHOICES),
    )  # fmt: skip
    return {item.name: item for item in items}


def find_items(names: Iterable[str]) -> tuple[Item, ...]:
    """Return the items of these names; all of them if there are none."""
    known = all_items()
    wanted = tuple(dict.fromkeys(names))
    for name in wanted:
        if name not in known:
            raise StudyError(unknown("item", name, tuple(known)))
    return tuple(known[name] for name in wanted or known)


# --- experiments --------------------------------------------------------------------------------


@cache
def all_experiments() -> tuple[Experiment, ...]:
    """Every experiment of the study, the longest first, so that both cores end together."""
    real, ablation = _real_sources(transform=True), _real_sources(transform=False)
    synthetic = [published_data()[name] for name in SYNTHETIC]
    # λ and the shares of ε and δ for screening: Table 1 and Figure 1, and Appendix C.
    wide = [Simulation(data=one, radius=50.0) for one in synthetic]
    narrow = [Simulation(data=one, radius=5.0, shares=(0.5, 0.5)) for one in synthetic]
    return (
        *(_regression("real", one, ("mse",)) for one in real),
        *(_regression("ablation", one, ("mse",)) for one in ablation),
        *(_regression(LONG["real"], one, blocks=BLOCKS) for one in real),
        *(_regression(LONG["ablation"], one, blocks=BLOCKS) for one in ablation),
        *(_regression(ZERO_START, one) for one in real),
        *(_regression(ZERO_START, one) for one in wide),
        *_choices(wide, real),
        *(_regression("synthetic", one, KEPT) for one in wide),
        *(_regression("adp", one, (*KEPT, "wolfe_gap")) for one in narrow),
        *theorem2_processes(),
    )


def _regression(
    suite: str, source: Simulation | RealData, series: tuple[str, ...] = (), blocks: int = 1
) -> Regression:
    """Return the experiment that runs what the items are made from."""
    items = [item for item in all_items().values() if item.takes(suite, source.data.name)]
    methods = tuple(dict.fromkeys(name for item in items for name in item.methods))
    return Regression(suite, source, methods, series, blocks)


def _choices(block: list[Simulation], real: list[RealData]) -> Iterator[Regression]:
    """What the paper does not say and this study had to choose, chosen otherwise."""
    for one in block:
        yield Regression(CHOICES, replace(one, scattered=True), ("rnm-screen-scattered",))
        yield Regression(CHOICES, one, ("rnm-screen-whole-loss",))
    for table in real:
        third = round(table.data.n_features / 3)
        if third != table.data.n_support:
            other = replace(table, data=replace(table.data, n_support=third))
            yield Regression(CHOICES, other, ("rnm-screen-third", "oracle-k-fw-third"))
        yield Regression(CHOICES, table, ("preselect-k-variance", "preselect-k-correlation"))
        if table.data.name == "communities":
            filled = replace(table, mean_filled=True)
            yield Regression(CHOICES, filled, ("rnm-screen-filled", "oracle-k-fw-filled"))


def theorem2_processes() -> tuple[UniformProcess, ...]:
    """Settled processes from few to many features, and two that are far from settled."""
    sizes = ((10, 200), (60, 1000), (280, 4000), (600, 6000), (600, 1000), (10_000, 50))
    return tuple(UniformProcess(d, T) for d, T in sizes)


def _real_sources(*, transform: bool) -> list[RealData]:
    """Return the real sets, the largest first."""
    changed = {} if transform else ABLATION_SUPPORT
    sets = [
        replace(data, n_support=changed.get(name, data.n_support))
        for name, data in published_data().items()
        if name not in SYNTHETIC
    ]
    sets.sort(key=lambda data: -data.n_rows * data.n_features)
    return [RealData(data=data, transform=transform) for data in sets]
