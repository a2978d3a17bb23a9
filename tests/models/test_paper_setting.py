"""The paper's synthetic setting: 3000 rows, 600 features of which 70 matter, 8 trials.

The bands are those within which a replication of Table 1 must fall; noise and data are seeded, so
the test is deterministic.
"""

from __future__ import annotations

import numpy as np
import pytest

from dpscreen import DPFrankWolfe, RNMScreen
from dpscreen.paper import metrics
from dpscreen.paper.data import synthetic
from dpscreen.privacy import named_seed

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

SETTING = {
    "radius": 50,
    "epsilon": 5,
    "delta": 1 / 3000,
    "feature_bounds": (-1, 1),
    "target_bounds": (-50, 50),
    "fit_intercept": False,
}
TRIALS = 8


def mean_scores(correlation, make):
    scores = []
    for trial in range(TRIALS):
        name = f"paper setting/{correlation}/{trial}"
        data = synthetic(correlation=correlation, rng=np.random.default_rng(named_seed(name)))
        coef = make(name).fit(data.X, data.y).coef_
        scores.append(
            (
                metrics.true_positive_rate(coef, data.coef),
                metrics.false_positive_rate(coef, data.coef),
                metrics.f1(coef, data.coef),
                metrics.density(coef),
            )
        )
    return np.mean(scores, axis=0)


@pytest.mark.parametrize(
    ("correlation", "low", "high"),
    [
        (0.0, (0.70, 0.43, 0.26, 0.47), (0.86, 0.51, 0.32, 0.54)),
        (0.5, (0.87, 0.25, 0.40, 0.34), (0.97, 0.34, 0.47, 0.41)),
    ],
    ids=["uncorrelated", "correlated"],
)
def test_published_rnm_screen_falls_into_the_bands_of_table_1(correlation, low, high):
    found = mean_scores(
        correlation,
        lambda name: RNMScreen(
            **SETTING, n_iter=1000, calibration="published", start="random", random_state=name
        ),
    )
    assert (np.array(low) <= found).all(), found
    assert (found <= np.array(high)).all(), found


@pytest.mark.parametrize(
    ("correlation", "least"), [(0.0, 0.85), (0.5, 0.95)], ids=["uncorrelated", "correlated"]
)
def test_proven_dp_fw_finds_the_support(correlation, least):
    found = mean_scores(
        correlation,
        lambda name: DPFrankWolfe(**SETTING, n_iter=150, clip=1.0, start="zero", random_state=name),
    )
    assert found[2] >= least, found
