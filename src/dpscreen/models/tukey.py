"""TukeyEM, alone and after a choice of features by Kendall's τ: peers that are only compared with.

They are no estimators to release from: no `fit` command offers them, and what they give has no
privacy statement and no file. The depths, the test and the draw are exact; the small models are
least squares in floats, of which the proof asks only that each depends on its own rows
(docs/theory/peers.md, Lemmas 43 and 44).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from dpscreen._core.arrays import Array, Integers
from dpscreen.models.base import noise_source
from dpscreen.models.parameters import checked
from dpscreen.privacy import Budget
from dpscreen.solvers import tukey as solvers
from dpscreen.solvers.tukey import PureSpending

__all__ = ["KendallTukeyEM", "TukeyEM"]


@dataclass(kw_only=True, eq=False)
class TukeyEM:
    """Least squares on many small parts of the rows, and a model that lies deep among theirs.

    Rows fall into m parts by secret coins. A test, with noise, asks how many of the m models would
    have to change before a deep point gave one of them away; if it passes, a point is drawn by the
    exponential mechanism with its depth as score. If it fails, the model is the middle of the
    target's bounds.

    Guarantees  (epsilon, delta) for adding or removing one row, by adding up pure ε
                                                              (docs/theory/peers.md, Lemma 43)

    Half of ε is for the test; m is just large enough that normal models pass it, and where that
    leaves fewer than 3 rows for each weight of a model, there is only a constant. `n_rows` is
    public. The declared bounds do: no tighter ones are needed.

    After Amin et al. (2023).
    """

    epsilon: float
    delta: float
    feature_bounds: Any
    target_bounds: Any
    n_rows: int
    random_state: Any = None

    def check_parameters(self) -> None:
        """Raise a ValueError for settings that cannot be used."""
        Budget(checked("epsilon", self.epsilon), checked("delta", self.delta))
        checked("n_rows", self.n_rows)

    def fit(self, X: Any, y: Any) -> Self:
        """Release a model of the rows."""
        self.check_parameters()
        # Features and target are mapped onto [−1, 1] by their bounds.
        bounds = self.feature_bounds_ = np.asarray(self.feature_bounds, dtype=np.float64)
        half_widths, middles = np.ptp(bounds, axis=1) / 2, bounds.mean(axis=1)
        mapped = (np.clip(np.asarray(X, dtype=np.float64), *bounds.T) - middles) / half_widths
        low, high = self.target_bounds
        half = (high - low) / 2
        target = (np.clip(y, low, high) - low) / half - 1
        spending = PureSpending(noise_source(self.random_state), self.epsilon)
        chosen = self._chosen(spending, mapped, target)
        centres = solvers.release_centres(spending, mapped[:, chosen])
        released = solvers.release_deep_model(
            spending, mapped[:, chosen] - centres, target, n_rows=self.n_rows, delta=self.delta
        )
        self.passed_ = released is not None
        weights, constant = np.zeros(mapped.shape[1]), 0.0
        if released is not None:
            weights[chosen] = released[:-1]
            constant = float(released[-1] - released[:-1] @ centres)
        self.coef_ = weights * half / half_widths
        self.intercept_ = float(low + half * (1 + constant) - self.coef_ @ middles)
        return self

    def predict(self, X: Any) -> Array:
        """Return predictions for features clipped to their bounds, clipped to the target's."""
        low, high = self.feature_bounds_.T
        found = np.clip(X, low, high) @ self.coef_ + self.intercept_
        return np.asarray(np.clip(found, *self.target_bounds))

    def _chosen(self, _spending: PureSpending, X: Array, _y: Array) -> Integers:
        """Return all features; none where the test would fail with them, by public numbers."""
        n_weights = X.shape[1] + 1
        fits = solvers.affordable(self.n_rows, n_weights, self.epsilon, self.delta)
        return np.arange(X.shape[1] if fits else 0)


class KendallTukeyEM(TukeyEM):
    """Features by noisy rank correlations, then `TukeyEM` on them: DPKendall + TukeyEM.

    A feature's score is its correlation with the target by Kendall's τ, less the mean of those with
    the features chosen before; each is chosen by the exponential mechanism.

    Guarantees  (epsilon, delta) for adding or removing one row, by adding up pure ε: the choices'
                and that of the rest                     (docs/theory/peers.md, Lemmas 43 and 44)

    A quarter of ε is for the choices, alike: as many features as leave rows for the models, at most
    10. After Dick, Gillenwater and Joseph (2023).
    """

    def _chosen(self, spending: PureSpending, X: Array, y: Array) -> Integers:
        count = solvers.n_chosen(self.n_rows, X.shape[1], self.epsilon, self.delta)
        if count in (0, X.shape[1]):
            return np.arange(count)
        share = spending.left * solvers.KENDALL_SHARE
        return solvers.release_features(spending, X, y, count, epsilon=share)
