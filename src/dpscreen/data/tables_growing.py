"""An array of rows that grows in place, so that a table is never in memory twice."""

from __future__ import annotations

import numpy as np

from dpscreen._core.arrays import Array, Mask

_SPARE = 1.005


class Growing:
    """Rows of one width; how many there will be is known, or guessed from the share read."""

    def __init__(self, width: int, n_rows: int | None = None) -> None:
        self._rows = np.empty((n_rows or 0, width))
        self._width, self._start, self._end = width, 0, 0

    def room_for(self, more: int, share: float) -> Array:
        """Return the next rows, to be written."""
        self._start, self._end = self._end, self._end + more
        if self._end > len(self._rows):
            guess = int(self._end / min(max(share, 1e-3), 1.0) * _SPARE)
            self._resize(max(self._end, guess))
        return self._rows[self._start : self._end]

    def drop_from_last(self, keep: Mask | None) -> None:
        """Keep only some of the rows that `room_for` returned last."""
        if keep is None or keep.all():
            return
        kept = self._rows[self._start : self._end][keep]
        self._end = self._start + len(kept)
        self._rows[self._start : self._end] = kept

    def finished(self) -> Array:
        """Return all rows, and hold none any more."""
        self._resize(self._end)
        rows, self._rows = self._rows, np.empty((0, self._width))
        return rows

    def _resize(self, n_rows: int) -> None:
        # In place: the system moves pages, not rows. Nobody holds a view here by now.
        if n_rows != len(self._rows):
            self._rows.resize((n_rows, self._width), refcheck=False)
