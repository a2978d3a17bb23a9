"""
Intervals that count the noise
==============================

The usual standard errors of coefficients that are selected, shrunken and noisy are wrong.
``inference="split"`` sends each row to one of two halves by a secret coin: one half selects, the
other gives 95 % intervals that count sampling, privacy noise and selection.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from dpscreen import PrivateLasso, SeededNoiseWarning

rng = np.random.default_rng(3)
truth = np.zeros(10)
truth[:4] = 1, -0.7, 0.5, 0.25
X = rng.standard_normal((20_000, 10))
y = X @ truth + rng.standard_normal(20_000)

model = PrivateLasso(
    epsilon=1,
    delta=1e-7,
    feature_bounds=(-4, 4),
    target_bounds=(-8, 8),
    inference="split",
    random_state="gallery",
)
with warnings.catch_warnings():
    # Seeded, to be the same whenever this page is made: leave out random_state on private rows.
    warnings.simplefilter("ignore", SeededNoiseWarning)
    print(model.fit(X, y).inference_)

# %%
# The line is the interval, the cross what is true.

intervals = model.inference_.intervals
place = [interval.feature for interval in intervals]
_, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
axes.hlines(
    place,
    [interval.low for interval in intervals],
    [interval.high for interval in intervals],
    color="#0067a5",
    linewidth=2,
)
axes.plot(truth[place], place, "x", color="#c44e00")
axes.set_yticks(place, [f"x{j}" for j in place])
axes.axvline(0, color="#555", linewidth=0.6)
axes.set_xlabel("coefficient")
plt.show()
