"""PrivateLogit: a table of odds ratios of all features, under differential privacy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dpscreen.models.base import Charges, FitStart
from dpscreen.models.delivery import CENTRE
from dpscreen.models.private_logistic import OutcomeEstimator
from dpscreen.models.private_ols import PrivateOLS
from dpscreen.models.regression_table import OddsTableModel
from dpscreen.privacy import ZCDP
from dpscreen.solvers import rules
from dpscreen.solvers.base import Solution
from dpscreen.solvers.inference import why_no_odds
from dpscreen.solvers.least_squares import TableRelease
from dpscreen.solvers.logistic import CLASS_SHARE, OutcomeShare, release_share
from dpscreen.solvers.logit_table import (
    LAST_PARTS,
    SEARCH_STEPS,
    OddsRelease,
    log_odds_table,
    odds_rule,
    place_for_odds,
)
from dpscreen.solvers.ols_rules import TableRule
from dpscreen.solvers.quality import fitted_range, release_outcome_quality
from dpscreen.solvers.wide import WideTask


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateLogit(OddsTableModel, OutcomeEstimator, PrivateOLS):  # type: ignore[misc]
    """Logistic regression under differential privacy with odds ratios, intervals and tests.

    The sibling of `PrivateOLS` for outcomes that are yes or no: all features, all rows, no
    selection. Noisy sums are taken of combinations of columns that vary alike; steps lead near the
    answer, where the curvature is released, and Newton steps follow. Standard errors are those of
    the curvature where they end, and count every privacy noise (docs/yes-no.md).

    Parameters
    ----------
    epsilon, delta, feature_bounds, categories, fit_intercept, n_rows, quality, rows_per_unit, \
random_state
        As in `PrivateOLS`.
    classes : pair of labels, default=(0, 1)
        The two classes of the target, the reference first, as in `PrivateLogistic`: a declaration,
        never learnt.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The declared classes, as declared.
    coef_, intercept_ : ndarray of shape (1, n_features), ndarray of shape (1,)
        The released model of the log-odds of the second class, in the user's units; 0 for features
        that were left out.
    params, bse, tvalues, pvalues, table_, inference_, nobs
        As in `PrivateOLS`, of log-odds.
    feature_bounds_, n_iter_, n_rows_, bounds_notes_, privacy_
        As in `PrivateOLS`.
    quality_ : OutcomeQuality
        AUC and deviance, each with a 95 % interval or not known. Print it.
    n_features_in_, feature_names_in_, feature_names_out_, columns_
        As in `PrivateLasso`.

    Notes
    -----
    Where features cannot be told apart at this budget, the later one is left out. Where privacy
    noise moves log-odds by more than .4, there are no intervals at all, and the table says so.

    Examples
    --------
    >>> import numpy as np
    >>> from dpscreen import PrivateLogit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(50, 10, size=(20000, 3))
    >>> y = 0.05 * (X[:, 0] - X[:, 1]) + rng.logistic(size=20000) > 0
    >>> model = PrivateLogit(epsilon=1, delta=1e-6, feature_bounds=(0, 100)).fit(X, y)
    >>> low, high = model.conf_int().loc["x0"]
    >>> bool(low < 0.06 and high > 0.04 and model.pvalues["x0"] < 0.001)
    True
    """

    classes: Any = (0, 1)
    target_bounds: ClassVar[Any] = OutcomeEstimator.target_bounds  # type: ignore[misc]
    table_rule: ClassVar[TableRule] = odds_rule()
    _instead: ClassVar[str] = "PrivateLogistic"

    # --- the fit ----------------------------------------------------------------------------------

    def _book_admitted(self, charges: Charges, recount: ZCDP) -> None:
        """Book a second count, if there is one: the share of outcomes decides, too."""
        if recount.rho:
            charges.book(recount)

    def _share(self, start: FitStart) -> OutcomeShare:
        """Release the share of outcomes; refuse what it excludes (docs/privacy.md, Lemma 61)."""
        charges = start.promise.charges
        charges.book(start.spending.share(CLASS_SHARE))
        share = release_share(start.spending, start.rows)
        self._refuse(start, odds_rule(share.variance))
        charges.book_rest()
        return share

    def _spend(self, start: FitStart) -> None:
        share = self._share(start)
        kept = rules.QUALITY_SHARE if start.choices.quality else 0.0
        spending = replace(start.spending, reserved=kept)
        wide = place_for_odds(spending, start.rows, start.bounds[0], start.choices)
        self.bounds_notes_ = tuple(self._notes_on_bounds(wide.task, wide.units, start.bounds[0]))
        centre = Solution(np.zeros(wide.units.n_candidates), 0, None, wide.task.deviation)
        centre.weights[len(wide.scales) :] = share.log_odds
        self._keep(CENTRE, wide.units, centre)
        found = log_odds_table(share, wide)
        self._take(wide, found)
        if start.choices.quality:
            moves = found.weights[: len(wide.scales)]
            varying = moves * wide.scales / wide.units.feature_half_widths
            size = float(np.linalg.norm(moves))
            spread = float(np.linalg.norm(varying)) / size if size else 1.0
            self.quality_ = release_outcome_quality(
                start.spending,
                wide.task.design,
                found.weights,
                share.log_odds,
                fitted_range(wide.units.effect_ranges(found.weights)),
                spread=spread,
                cost=start.spending.remaining,
                in_sample=True,
            )

    _n_steps = SEARCH_STEPS + len(LAST_PARTS)

    def _take(self, wide: WideTask, found: TableRelease) -> None:
        """Hold what was released, in the user's units."""
        super()._take(wide, found)
        self.inference_ = self.table_.inference(outcomes=True)

    def _reasons(
        self, found: TableRelease, names: tuple[str, ...], wide: WideTask
    ) -> dict[int, str]:
        assert isinstance(found, OddsRelease), "as it was released"
        return why_no_odds(found, super()._reasons(found, names, wide), len(names))
