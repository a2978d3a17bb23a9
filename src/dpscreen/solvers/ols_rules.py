"""Every choice that PrivateOLS makes by itself, as a function of public and released numbers.

No function here sees a row. The measurement behind each constant is in docs/inference.md. What
carries the rules is the blur: noise in a Gram matrix of k columns moves its eigenvalues by up to
2√k of the noise of one entry, and n rows of combinations that vary alike have eigenvalues about n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpscreen.solvers.rules import clamp

NEWTON_PARTS = tuple(Fraction(part, 100) for part in (7, 13, 25, 55))
"""How the Newton steps divide what is left for them."""

SIZE_SHARES = (0.005, 0.005, 0.01, 0.05)
"""What a histogram of influences costs before each step, as a share of the regression's budget."""

MOST_SIZE_SHARE = 0.04
"""What it costs at most where rows are few, so that its cells stand out of their noise."""

DISTANCE_SHARE = 0.02
"""What histograms of the distances from centres cost, as a share of the whole budget."""

LENGTH_SHARE = 0.01
"""What a histogram of the rows' lengths costs."""

ROOM, LAST_ROOM = 1.2, 1.7
"""How much longer rows may be than the longest that are seen: in a look, as the frame still
changes, and in the last matrix, as few that noise hides may be all that tells a direction."""

RESIDUALS_KEPT = (12.0, 6.0, 3.0, 2.0)
"""Up to how many deviations residuals of the longest rows stay whole, in each step."""

REACH = 3.0
"""How many times as long rows count whole in the last step."""

FAR_OUT = 2.0
"""From how many times the mean length on a row lies far out."""

MIDDLE_SHARE = 0.08
ONE_SIDED_SHARE = 0.03
LONG_SHARE = 0.005

LOOKS = 3
"""How many Gram matrices show the way, at most; then comes the last."""

LOOK_SHARES = (0.02, 0.05)
GRAM_SHARES = (0.15, 0.35)
"""What a Gram matrix costs that only shows the way, and the last one: at least, at most."""

LOOK_BLUR, GRAM_BLUR, MOST_BLUR = 0.3, 0.28, 0.3
"""Noise levels: those that the two matrices accept before rows are clipped to a smaller norm, and
the one beyond which not all features of a table are expected to be identifiable."""

RESOLVED = 1.2
"""How many blurs the least eigenvalue must have for no other look."""

TOLD_APART = 3.5
"""How many noises an eigenvalue must have, and the blur, for its direction to be estimated."""

MOST_STRETCH = 30.0
"""How much larger than its columns' scales say a combination may be made to vary as they do."""

SHORTEST = 1.5
"""The least squared length to which rows are cut off, for each column; on average it is one."""

POINT = 0.7
"""The share of rows at one place from which on a column is one point for the most."""

LONGEST = 3.0
"""The squared length, for each column, up to which residuals of rows stay whole."""

FARTHEST = 256.0
"""Up to how many times the mean lengths of rows are told apart."""

MOST_SCALES = 256.0
"""How many scales from its centre a feature is clipped at; the lattice divides that by 2^14."""

PRIVATE_PART = 0.1
"""The variance of privacy noise over that of sampling, up to which clips are loosened."""

ONE_SIDED = 1 / 3
"""Which part of what clips cut off is taken to pull one way, where no feature shows more."""

TAIL_INDICES = np.linspace(1.25, 12.0, 44)
"""How fast tails may fall, all alike likely before anything is seen: they have a mean, at least."""

APART = 0.1
"""How likely it is, before anything is seen, that a tail is not that of the cells before it."""

LONGEST_RESIDUAL = 256.0
"""Up to where the first histogram tells residuals apart, in deviations of the target."""

LEAST_SPREAD = 0.1
"""The least part of its mean that a variance of sampling is taken for."""

LEAST_FREEDOM = 4.0

ROWS_PER_COLUMN = 10
"""With fewer rows a sandwich is too short even without privacy noise."""

PLACED = 0.8
"""The share of a budget that is left for the regression after the count, the marginals and the
quality, at least about."""


@dataclass(frozen=True)
class TableSize:
    """What rules rest on: rows, public or released, columns with the constant, and ρ."""

    n_rows: int
    n_columns: int
    rho: float

    def blur(self, square: float, share: float) -> float:
        """Return how far noise moves eigenvalues, as a part of n, for rows of that ‖x‖²."""
        noise = square / math.sqrt(2) / math.sqrt(2 * share * self.rho)
        return 2 * math.sqrt(self.n_columns) * noise / self.n_rows

    def _share(self, per_column: float, blur: float) -> float:
        """Return the share at which the blur is that."""
        return self.blur(per_column * self.n_columns, 1.0) ** 2 / blur**2

    @property
    def look_share(self) -> float:
        """Return what a look costs."""
        return clamp(self._share(SHORTEST, 0.3), *LOOK_SHARES)

    @property
    def gram_share(self) -> float:
        """Return what the last Gram matrix costs."""
        return clamp(self._share(2.0, 0.3), *GRAM_SHARES)

    def row_norm(self, share: float, blur: float) -> float:
        """Return ν, to which rows are shortened: as long as the blur allows."""
        longest = blur / self.blur(1.0, share)
        return math.sqrt(max(SHORTEST * self.n_columns, longest))

    @property
    def longest(self) -> float:
        """Return up to which length residuals of rows stay whole: more would cost all others."""
        return math.sqrt(LONGEST * self.n_columns)

    @property
    def size_shares(self) -> tuple[float, ...]:
        """Return what each histogram of influences costs."""
        seen = min(MOST_SIZE_SHARE, 4000 / (self.n_rows**2 * self.rho))
        return tuple(max(share, seen) for share in SIZE_SHARES)

    @property
    def resolvable(self) -> bool:
        """Whether all features are expected to be identifiable, and rows are not too few."""
        few = self.n_rows < ROWS_PER_COLUMN * self.n_columns
        return not few and self.blur(SHORTEST * self.n_columns, GRAM_SHARES[1]) <= MOST_BLUR


@dataclass(frozen=True)
class TableRule:
    """Which tables are possible in the best case (docs/inference.md, Lemma 60).

    In the best case features are standardised and uncorrelated, so that all eigenvalues of the
    matrix to be solved are equal. `matrix_share` is the share of the fit's ρ that it gets; `score`
    is n√ρ for each column, below which noise of the score makes every interval meaningless.
    """

    matrix_share: float
    score: float = 0.0

    def rows_needed(self, n_columns: int, rho: float) -> int:
        """Return the least number of rows with which such a table is possible at this ρ."""
        by_noise = math.ceil(self._signal(n_columns) / math.sqrt(rho))
        return max(by_noise, ROWS_PER_COLUMN * n_columns)

    def rho_needed(self, n_columns: int, n_rows: int) -> float | None:
        """Return the least ρ with which it is possible; None: rows are too few at any ρ."""
        if n_rows < ROWS_PER_COLUMN * n_columns:
            return None
        return (self._signal(n_columns) / n_rows) ** 2

    def most_columns(self, n_rows: int, rho: float, limit: int) -> int:
        """Return the largest number of columns, up to a limit, with which it is possible."""
        counts = range(limit, 0, -1)
        return next((k for k in counts if self.rows_needed(k, rho) <= n_rows), 0)

    def _signal(self, n_columns: int) -> float:
        """Return n√ρ at which the least noisy eigenvalue reaches the threshold of Lemma 29."""
        edge = math.sqrt(2 * n_columns)
        noise = SHORTEST * n_columns / math.sqrt(2 * self.matrix_share)
        return max((edge + max(TOLD_APART, edge)) * noise, self.score * n_columns)


LINE = TableRule(PLACED * GRAM_SHARES[1])
"""The rule of least squares: its Gram matrix binds, and noise of the score never does."""
