"""The kinds of arrays that functions take and return, each under one name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Numbers as the user's data and coefficients are."""

Integers = NDArray[np.int64]
"""Whole numbers: counts, exact sums, places of rows and features."""

Narrow = NDArray[np.int16]
"""Cells on a lattice, of at most 14 bits, and residuals in levels."""

Indices = NDArray[np.uint32]
"""Places of a sparse matrix's cells: numba checks a signed index for counting from the end."""

Words = NDArray[np.uint64]
"""64 bits each: random words, hashes, and where the rows of a sparse matrix start."""

Mask = NDArray[np.bool_]
"""One truth for each row or feature."""

Objects = NDArray[np.object_]
"""Python's own values, such as texts."""

AnyArray = NDArray[Any]
"""An array of whatever kind."""
