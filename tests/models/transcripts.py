"""What a fit gives to its mechanisms, on neighbouring rows under the same answers."""

from __future__ import annotations

from unittest import mock

import numpy as np

from dpscreen.privacy import Accountant, DiscreteGaussian, NoisyMax


class Transcript:
    """Records what mechanisms were given and what they answered, or answers from a record."""

    def __init__(self, answers=None):
        self.given, self.answers = [], [] if answers is None else list(answers)
        self._forced = answers is not None
        self._release = Accountant.release

    def __enter__(self):
        def release(accountant, mechanism, values, *, purpose):
            values = getattr(values, "sums", values)
            self.given.append((mechanism, np.array(values).ravel(), purpose))
            found = self._release(accountant, mechanism, values, purpose=purpose)
            if self._forced:
                return self.answers[len(self.given) - 1]
            self.answers.append(found)
            return found

        self._patch = mock.patch.object(Accountant, "release", release)
        self._patch.start()
        return self

    def __exit__(self, *_):
        self._patch.stop()


def moves(make, rows, more):
    """Yield by purpose how far one row moved what mechanisms were given, over what is booked."""
    with Transcript() as here:
        make().fit(*rows)
    with Transcript(here.answers) as there:
        make().fit(*more)
    for (mechanism, before, purpose), (same, after, _) in zip(here.given, there.given, strict=True):
        assert mechanism == same
        assert before.dtype == after.dtype == np.int64
        yield purpose, move_of(mechanism, after - before)


def move_of(mechanism, move):
    """Return how far the input moved, as a share of what the mechanism books."""
    if isinstance(mechanism, NoisyMax):
        alone = np.abs(move).max() / mechanism.sensitivity
        return max(alone, np.ptp(move) / mechanism.score_range) * mechanism.unit
    vector = isinstance(mechanism, DiscreteGaussian)
    size = np.linalg.norm(move.astype(float)) if vector else np.abs(move).max()
    return size * mechanism.unit / mechanism.sensitivity
