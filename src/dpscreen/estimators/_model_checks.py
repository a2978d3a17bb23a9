"""Whether a model that was read from a file can be one: what no JSON Schema can say."""

from __future__ import annotations

import numpy as np

from dpscreen.estimators._private_lasso_inference import Inference
from dpscreen.estimators._release import Release
from dpscreen.regression.stagewise import Path


def contradiction(release: Release) -> str | None:
    """Return in which way a release contradicts itself; None if it does not."""
    pairs = np.vstack((release.feature_bounds, release.target_bounds))
    if not (pairs[:, 0] < pairs[:, 1]).all():
        return "bounds must have low < high in every pair."
    if not release.named and release.names != tuple(f"x{j}" for j in range(release.n_features)):
        return "columns without names must be called x0, x1, and so on."
    if release.path is not None:
        problem = _path_problem(release, release.path)
        if problem:
            return problem
    return None if release.inference is None else _inference_problem(release.inference)


def _path_problem(release: Release, path: Path) -> str | None:
    lengths = {len(path.features), len(path.signs), len(path.steps), release.n_iter}
    if len(lengths) != 1:
        return "the path's features, signs and steps must be as many as n_iter."
    constants = int(release.solver == "frank-wolfe" and release.fit_intercept)
    if path.features.max() >= release.n_features + constants:
        return "the path takes a step along a feature that the model does not have."
    return None


def _inference_problem(inference: Inference) -> str | None:
    if inference.available != bool(inference.intervals):
        return "intervals are there exactly if inference is available."
    features = [one.feature for one in inference.intervals]
    if len(set(features)) != len(features):
        return "a feature has two intervals."
    if not all(one.low <= one.coefficient <= one.high for one in inference.intervals):
        return "an interval does not hold its own coefficient."
    return None
