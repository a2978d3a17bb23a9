"""
A first private model
=====================

Five thousand rows, thirty features, three of which matter. The budget and the bounds are all that
:class:`~dpscreen.PrivateLasso` needs to be told.
"""

import textwrap

import matplotlib.pyplot as plt
import numpy as np

from dpscreen import PrivateLasso

rng = np.random.default_rng(0)
truth = np.zeros(30)
truth[[0, 3, 7]] = 0.5, -0.2, 0.1
X = rng.normal(50, 10, size=(5_000, 30))
y = X @ truth + rng.normal(0, 2, size=5_000)

# %%
# The bounds are public knowledge and may be too wide: here features reach from 10 to 90, and the
# bounds allow 0 to 200. They are never taken from the rows.

model = PrivateLasso(epsilon=1, delta=1e-6, feature_bounds=(0, 200), target_bounds=(-100, 200))
model.fit(X, y)
print(model.summary())

# %%
# The coefficients that matter are found; a few of the others are not quite zero.

_, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.vlines(np.arange(30), 0, truth, color="#b8bec7", linewidth=7, label="true")
axes.plot(np.arange(30), model.coef_, "o", color="#0b6e4f", label="private, ε = 1")
axes.axhline(0, color="#555", linewidth=0.6)
axes.set_xlabel("feature")
axes.set_ylabel("coefficient")
axes.legend(frameon=False)
plt.show()

# %%
# What is promised goes with the model, in words for whoever has to decide:

print(textwrap.fill(model.explain(), 88))
