"""FreeScreen: sparse private regression by a path that screens itself, at no cost in budget."""

from __future__ import annotations

from dataclasses import dataclass

from dpscreen.models.private_lasso import PrivateLasso
from dpscreen.solvers.free_screen import FREE_SCREEN


@dataclass(kw_only=True, repr=False, eq=False)
class FreeScreen(PrivateLasso):
    """Sparse linear regression by a private stagewise path that is screened halfway, for free.

    The path is that of :class:`PrivateLasso` with ``solver="stagewise"``: each step moves one
    signed feature, selected by a noisy maximum. After half of the steps, features that were never
    selected stop being candidates, provided that at most two thirds of the steps so far selected a
    new feature; otherwise nothing is screened and the fit is that of the stagewise path. The rule
    uses released selections only, so it costs no budget (docs/privacy.md, Lemma 7), and later
    steps look at fewer columns. Use it where few of many features matter
    (docs/decisions/2026-11-free-screening.md).

    Parameters that are not listed here, and other attributes, are as in :class:`PrivateLasso`.

    Parameters
    ----------
    solver : str, default="free-screen"
        The path with screening. Other solvers are those of :class:`PrivateLasso`.

    Attributes
    ----------
    screened_ : ndarray of shape (n_features,), bool
        The features that were no candidates in the second half of the path; none where the rule
        did not apply. Computed from `path_`.

    Notes
    -----
    `noise_p_values` uses the steps before screening only: how many features compete afterwards
    depends on the path (docs/private-lasso.md, Lemma 15).

    Examples
    --------
    >>> import numpy as np
    >>> from dpscreen import FreeScreen
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 200))
    >>> y = X[:, 0] - X[:, 3] + rng.normal(size=5000)
    >>> model = FreeScreen(epsilon=2, delta=1e-6, feature_bounds=(-4, 4),
    ...                    target_bounds=(-8, 8)).fit(X, y)
    >>> bool(model.selected_[0] and model.selected_[3])
    True
    """

    solver: str = FREE_SCREEN
