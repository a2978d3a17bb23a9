"""
What a larger ε buys
====================

The same rows, fitted at seven budgets. Where the curve is flat, a larger ε buys nothing: then take
the smaller one.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpscreen import PrivateLasso

rng = np.random.default_rng(1)
X = rng.standard_normal((4_000, 40))
y = X[:, :5] @ [1, -1, 1, -1, 1] / np.sqrt(5) + rng.standard_normal(4_000)
train, test = slice(0, 2_000), slice(2_000, None)

budgets = [0.1, 0.2, 0.5, 1, 2, 5, 10]
scores = [
    [
        PrivateLasso(epsilon=epsilon, delta=1e-6, feature_bounds=(-5, 5), target_bounds=(-10, 10))
        .fit(X[train], y[train])
        .score(X[test], y[test])
        for _ in range(5)
    ]
    for epsilon in budgets
]

# %%
# Each dot is one fit: its distance from the line is what the privacy noise did that time. The best
# that any model can reach here is .5, as the noise of the target is the other half.

_, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
axes.plot(budgets, scores, ".", color="#5c6670")
axes.plot(budgets, np.mean(scores, axis=1), color="#0067a5", label="mean of five fits")
axes.axhline(0.5, color="#c44e00", linestyle=":", label="the best there is")
axes.set_xscale("log")
axes.set_xticks(budgets, [f"{epsilon:g}" for epsilon in budgets])
axes.set_xlabel("ε")
axes.set_ylabel("R² on new rows")
axes.set_ylim(-0.4, 0.6)
axes.legend(frameon=False)
plt.show()

# %%
# On private rows this very picture is not for free: every dot spends its budget. It can be had from
# simulated rows, with ``dpscreen plan`` and ``dpscreen compare``, which spend nothing.
