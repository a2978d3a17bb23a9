"""Keys of secret noise that are the same in every run of a test, and others in every test.

A test of noisy numbers that fails in one run of a thousand says nothing about the change at hand.
So secret noise in the process of the tests is keyed by the name of the test, or of the fixture that
several tests share. A forked child and a command in a process of its own ask the system, as users'
programs do; so does everything with HYPOTHESIS_PROFILE=free, as in `make study`.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count


class NamedKeys:
    """What stands in for `os` in the room of noise."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._asked: Iterator[tuple[str, int]] = self._numbered("outside of tests")

    def begin(self, name: str) -> None:
        """Start over with the keys of this test."""
        self._asked = self._numbered(name)

    @contextmanager
    def within(self, name: str) -> Iterator[None]:
        """Use the keys of this fixture, then go on as before."""
        before = self._asked
        self.begin(name)
        try:
            yield
        finally:
            self._asked = before

    def urandom(self, size: int) -> bytes:
        """Return the next key; a child would repeat its parent's, so it asks the system."""
        if os.getpid() != self._owner:
            return os.urandom(size)
        return hashlib.shake_256(repr(next(self._asked)).encode()).digest(size)

    @staticmethod
    def _numbered(name: str) -> Iterator[tuple[str, int]]:
        return ((name, k) for k in count())
