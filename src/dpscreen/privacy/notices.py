"""Warnings that a privacy engineer would want to see once, and be able to filter by name."""


class PublishedCalibrationWarning(UserWarning):
    """The paper's constants are in use: the stated ε does not hold."""


class SeededNoiseWarning(UserWarning):
    """The noise can be repeated by whoever knows the seed: the release is not private."""


class WeakDeltaWarning(UserWarning):
    """δ is 1/n or more: the promise allows publishing a random row outright."""
