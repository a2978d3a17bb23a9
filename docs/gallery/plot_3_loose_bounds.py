"""
Bounds that are too wide
========================

Bounds come from knowledge, not from the rows, and knowledge is rough.
:class:`~dpscreen.PrivateLasso` pays a little of its budget to ask whether the bounds fit, and
tightens them where they do not. ``standardize=False`` takes them as they are.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpscreen import PrivateLasso

rng = np.random.default_rng(2)
X = rng.normal(50, 10, size=(6_000, 12))
y = X[:, :3] @ [1, -1, 1] + rng.normal(0, 10, size=6_000)
train, test = slice(0, 3_000), slice(3_000, None)
widths = [1, 4, 16, 64]


def score(width, standardize):
    """Return R² on new rows, with bounds that are `width` times too wide."""
    model = PrivateLasso(
        epsilon=1,
        delta=1e-6,
        feature_bounds=(50 - 30 * width, 50 + 30 * width),
        target_bounds=(50 - 100 * width, 50 + 100 * width),
        standardize=standardize,
    )
    return model.fit(X[train], y[train]).score(X[test], y[test])


_, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
for standardize, colour in (("auto", "#0067a5"), (False, "#c44e00")):
    scores = [np.mean([score(width, standardize) for _ in range(3)]) for width in widths]
    axes.plot(widths, scores, "o-", color=colour, label=f"standardize={standardize!r}")
axes.set_xscale("log", base=2)
axes.set_xticks(widths, [f"{width}×" for width in widths])
axes.set_xlabel("bounds too wide by")
axes.set_ylabel("R² on new rows")
axes.legend(frameon=False)
plt.show()

# %%
# Tightening needs rows: with a few hundred, or with many features, bounds that fit are worth more
# than a larger ε. :doc:`/guide/declare-your-data` says how to find them.
