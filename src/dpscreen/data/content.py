"""A table of numbers, and a fingerprint of what it says.

The fingerprint is taken over column names, shape and values, not over a file's bytes: `1`, `1.0`
and `1.00` are the same content, and so are a plain and a compressed file. That lets a copy that was
downloaded and converted be accepted when, and only when, it says the same.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dpscreen._core.arrays import Array

_ROWS_PER_BLOCK = 2048  # a canonical copy of the whole table would double the peak memory


@dataclass(frozen=True, eq=False)
class Frame:
    """Named columns of float64; a missing value is NaN."""

    columns: tuple[str, ...]
    values: Array

    def __post_init__(self) -> None:
        """Refuse values whose shape does not fit the names."""
        if self.values.ndim != 2 or self.values.shape[1] != len(self.columns):
            raise ValueError(
                f"{len(self.columns)} column names do not fit values of shape {self.values.shape}"
            )

    def select(self, columns: Sequence[str]) -> "Frame":
        """These columns, in this order."""
        places = {name: place for place, name in enumerate(self.columns)}
        absent = [name for name in columns if name not in places]
        if absent:
            raise ValueError(f"there is no column {absent[0]!r}")
        return Frame(tuple(columns), self.values[:, [places[name] for name in columns]])


def content_hash(frame: Frame) -> str:
    """The sha256 of names, shape and values: float64, little-endian, one NaN, one zero."""
    heading = json.dumps([list(frame.columns), list(frame.values.shape)], separators=(",", ":"))
    digest = hashlib.sha256(heading.encode())
    for block in _canonical_blocks(frame.values):
        digest.update(block)
    return digest.hexdigest()


def _canonical_blocks(values: Array) -> Iterator[bytes]:
    for start in range(0, len(values), _ROWS_PER_BLOCK):
        block = values[start : start + _ROWS_PER_BLOCK].astype("<f8")
        block += 0.0  # -0.0 becomes 0.0
        block[np.isnan(block)] = np.nan  # NaNs differ in sign and payload
        yield block.tobytes()
