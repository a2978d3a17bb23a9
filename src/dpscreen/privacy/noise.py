"""Where randomness comes from. It is always an argument, never a global.

The default is a cryptographic stream keyed by the operating system. A seed gives reproducible noise
for studies and tests; whoever knows it can subtract the noise, so a seeded release is not private,
and the type of the source says so.
"""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from os import getpid
from typing import Any, ClassVar, TypeVar

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy.special import ndtri

from dpscreen._core.arrays import Array, Mask, Words

Released = TypeVar("Released")

# How many forks lie between the first process and this one. A fork by other code than Python's runs
# no hook; then the process id shows it.
_forks = 0


def _count_fork() -> None:  # pragma: no cover - runs in a forked child, which does not report
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


class Noise(ABC):
    """Independent draws from the distributions that mechanisms need, in float64."""

    secure: ClassVar[bool]
    description: ClassVar[str]
    """Where the bits come from, for the privacy statement."""
    _spare: Iterator[int] = iter(())

    @abstractmethod
    def words(self, count: int) -> Words:
        """Return `count` independent, uniform 64-bit words."""

    def word(self) -> int:
        """Return one uniform 64-bit word; they are made a few at a time."""
        for word in self._spare:
            return word
        self._spare = iter(self.words(128).tolist())
        return next(self._spare)

    def below(self, limit: int) -> int:
        """Return a whole number below `limit`, each with exactly the same probability."""
        n_bits = limit.bit_length()
        while True:
            bits, n_drawn = 0, 0
            while n_drawn < n_bits:
                bits, n_drawn = bits << 64 | self.word(), n_drawn + 64
            number = bits >> (n_drawn - n_bits)
            if number < limit:
                return number

    def uniform(self, count: int) -> Array:
        """Return uniforms on (0, 1): the middles of 2^52 equal cells, so never 0 and never 1."""
        return _middles(self.words(count))

    def exponential(self, count: int) -> Array:
        """Return standard exponentials."""
        return -np.log(self.uniform(count))

    def laplace(self, count: int) -> Array:
        """Return standard Laplace draws: an exponential whose sign is a bit it does not use."""
        words = self.words(count)
        draws = np.log(_middles(words))
        draws.view(np.uint64)[...] ^= words << np.uint64(63)  # flips the sign bit, or does not
        return draws

    def normal(self, count: int) -> Array:
        """Return standard normals, by inversion."""
        return np.asarray(ndtri(self.uniform(count)), dtype=np.float64)

    def signs(self, count: int) -> Array:
        """Return −1 or +1 with equal probability."""
        return 1.0 - 2.0 * (self.words(count) & np.uint64(1)).astype(np.float64)

    def coins(self, count: int) -> Mask:
        """Return secret coins, which fall either way with equal probability."""
        return np.asarray((self.words(count) >> np.uint64(63)).astype(np.bool_))

    def answer(
        self,
        mechanism: Callable[[Any, Noise], Released],
        values: Any,
        *,
        purpose: str,  # noqa: ARG002 - for anyone who watches (dpscreen.privacy.replay)
        account: object,  # noqa: ARG002
    ) -> Released:
        """Release what the mechanism makes of private values with this noise."""
        return mechanism(values, self)


WATCH: ContextVar[Callable[[Noise], Noise] | None] = ContextVar("watch", default=None)
"""What a test puts in front of the noise of fits (`dpscreen.privacy.replay`); None: nothing."""


def watched(noise: Noise) -> Noise:
    """Return the noise, or what a test puts in front of it; that is for one thread."""
    watch = WATCH.get()
    return noise if watch is None else watch(noise)


class SecureNoise(Noise):
    """AES-256 in counter mode, keyed by the operating system.

    The stream is never repeated: a forked child draws a key of its own, and copying or pickling
    gives a new source.
    """

    secure = True
    description = "AES-256-CTR keyed by the operating system"

    _owner: tuple[int, int] | None = None

    def __reduce__(self) -> tuple[type[SecureNoise], tuple[()]]:
        return SecureNoise, ()

    def words(self, count: int) -> Words:
        self._check_owner()
        return np.frombuffer(self._stream.update(bytes(8 * count)), dtype=np.uint64)

    def word(self) -> int:
        """Return one word; what a parent process had in store is not used by its child."""
        self._check_owner()
        return super().word()

    def _check_owner(self) -> None:
        """Draw a key at first, and another in a forked child."""
        if self._owner != (getpid(), _forks):
            self._spare = iter(())
            self._stream = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(bytes(16))).encryptor()
            self._owner = (getpid(), _forks)


class SeededNoise(Noise):
    """A reproducible stream from a number or a name. For studies and tests only: not private."""

    secure = False
    description = "a seeded general-purpose generator (reproducible, so not private)"

    def __init__(self, seed: int | str) -> None:
        self._generator = np.random.PCG64(named_seed(seed) if isinstance(seed, str) else int(seed))

    def words(self, count: int) -> Words:
        return np.asarray(self._generator.random_raw(count), dtype=np.uint64)


def _middles(words: Words) -> Array:
    # The top 52 bits become the fraction of a float64 in [1, 2); taking off 1 − 2^−53 is exact and
    # leaves the middle of a cell. With 53 bits the top cell would round to 1.
    bits = words >> np.uint64(12)
    bits |= np.uint64(0x3FF0000000000000)
    cells = bits.view(np.float64)
    cells -= 1 - 2.0**-53
    return cells


def named_seed(name: str) -> int:
    """Return the same 128-bit seed for the same name on every machine."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:16], "big")
