"""
A first private model
=====================

Five thousand rows, thirty features, three of which matter. The budget and the bounds are all that
:class:`~dpscreen.PrivateLasso` needs.
"""

import textwrap
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

from dpscreen import PrivateLasso, SeededNoiseWarning

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
# The coefficients that matter are found; a few of the others are not quite zero. For the picture
# the noise is seeded, so that the page looks the same whenever it is made; such a fit is not
# private, and warns.

with warnings.catch_warnings():
    warnings.simplefilter("ignore", SeededNoiseWarning)
    shown = clone(model).set_params(random_state="gallery").fit(X, y)
_, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.vlines(np.arange(30), 0, truth, color="#8a939e", linewidth=7, label="true")
axes.plot(np.arange(30), shown.coef_, "o", color="#0067a5", label="private, ε = 1")
axes.axhline(0, color="#555", linewidth=0.6)
axes.set_xlabel("feature")
axes.set_ylabel("coefficient")
axes.legend(frameon=False)
plt.show()

# %%
# What is promised goes with the model, in words for anyone who has to decide:

print(textwrap.fill(model.explain(), 88))
