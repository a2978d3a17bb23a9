"""Noise, and releases, that say what the test wrote."""

import numpy as np

from dpscreen.privacy import Accountant, Noise, SeededNoise


class Script(Noise):
    """A source that gives the words it was told to give, one at a time or as a block."""

    secure = False
    description = "a stub"

    def __init__(self, words=(), *, block=()):
        super().__init__()
        self.left = list(words)
        self._block = np.asarray(block, dtype=np.uint64)

    def words(self, count):
        assert count == self._block.size, "these words were not written as a block"
        return self._block

    def word(self):
        return self.left.pop(0)


class ScriptedAccountant(Accountant):
    """Books nothing, releases what `answer` says, and keeps what each mechanism was given."""

    def __init__(self, seed):
        super().__init__(SeededNoise(0), limit=None)
        self.rng, self.given = np.random.default_rng(seed), []

    def release(self, mechanism, values, *, purpose):
        self.given.append((mechanism, values.copy(), purpose))
        return self.answer(mechanism, values, purpose)


class CountingNoise(SeededNoise):
    """Seeded noise that knows how many words were used: not how many were made in advance."""

    def __init__(self, seed):
        super().__init__(seed)
        self.used = 0

    def words(self, count):
        self.used += count
        return super().words(count)

    def word(self):
        before = self.used
        word = super().word()
        self.used = before + 1
        return word
