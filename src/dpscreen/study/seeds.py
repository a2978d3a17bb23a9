"""Seeds from names: what a row is called is all that its random numbers depend on.

So a row can be computed again alone, and is the same whatever ran before or beside it.
"""

from __future__ import annotations

import numpy as np

from dpscreen.privacy import SeededNoise, named_seed


def seed_name(**names: str | int) -> str:
    """Join the names into one, in alphabetical order: "data=housing, method=dp-fw, trial=3"."""
    return ", ".join(f"{key}={value}" for key, value in sorted(names.items()))


def rng_for(**names: str | int) -> np.random.Generator:
    """Return the generator that belongs to these names, for data."""
    return np.random.default_rng(named_seed(seed_name(**names)))


def noise_for(**names: str | int) -> SeededNoise:
    """Return the noise that belongs to these names, for mechanisms."""
    return SeededNoise(seed_name(**names))
