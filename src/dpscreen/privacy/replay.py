"""Recording what a fit releases, and forcing the same releases on other rows: a bench for tests.

If nothing private leaves a fit but through its mechanisms, then other rows with the same releases
forced give the same model, file, page, warnings and account, to the byte. And if what was booked is
right, the rows of a neighbour move no mechanism's input by more (docs/evidence.md).

It is the noise that records, as it must be at hand wherever something is released. Its type says
that it is not secure, so a fit that is watched warns, and its statement does not hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Never, TypeVar

import numpy as np

from dpscreen._core.arrays import Mask, Words
from dpscreen.privacy.budget import ZCDP
from dpscreen.privacy.mechanisms import (
    DiscreteGaussian,
    GaussianVector,
    LaplaceNoisyMax,
    Mechanism,
    NoisyMax,
    SignedNoisyMax,
    ThresholdedNoisyMin,
)
from dpscreen.privacy.noise import WATCH, Noise

Released = TypeVar("Released")

Steer = Callable[[str, Mechanism[object], int], Any]
"""A purpose, a mechanism and the size of its input to what shall be released; None: an honest draw.

It makes transcripts that noise would not make in a lifetime: a guarantee is for all of them.
"""


class Diverged(AssertionError):
    """A replay asked for another release than was recorded: something private steered the fit."""


@dataclass(frozen=True, eq=False)
class Passage:
    """One release: what was booked for it, what came out, and what the mechanism was given.

    `account` counts the accountants that booked something, from 0 on: a fit that splits its rows
    has one for all of them and one for each half. `given` is private: it is never shown, and a
    passage cannot be pickled.
    """

    purpose: str
    mechanism: Mechanism[object]
    rows_per_unit: int
    account: int
    released: Any
    given: Any = field(repr=False)

    @property
    def cost(self) -> ZCDP:
        """Return what was booked, for one unit."""
        return self.mechanism.cost * self.rows_per_unit**2

    @property
    def booked(self) -> tuple[str, Mechanism[object], int, int, int]:
        """Return all that must not depend on private rows."""
        return self.purpose, self.mechanism, self.rows_per_unit, self.account, self.given.size

    def __reduce__(self) -> Never:
        raise TypeError("a passage holds private numbers, and stays in memory.")


class Transcript:
    """What a watched fit released, in order; and what it drew besides: free draws, and coins.

    With an `earlier` one it is a replay, forced to release and to draw what was recorded there.
    """

    def __init__(
        self,
        coins: Sequence[Mask] | None = None,
        *,
        steer: Steer | None = None,
        earlier: Transcript | None = None,
    ) -> None:
        self.passages: list[Passage] = []
        self.draws: list[Words] = []
        self.coins: list[Mask] = []
        self._tossed = None if coins is None else list(coins)
        self._steer, self._earlier = steer, earlier
        self._accounts: list[object] = []
        self._over = False

    def __reduce__(self) -> Never:
        raise TypeError("a transcript holds private numbers, and stays in memory.")

    def release(
        self,
        mechanism: Mechanism[Released],
        values: Any,
        noise: Noise,
        *,
        purpose: str,
        account: Any,
    ) -> Released:
        """Make one release, and remember it."""
        self._check()
        given = np.array(getattr(values, "sums", values))  # scores may be an index of their sums
        if account not in self._accounts:
            self._accounts.append(account)
        place, k = self._accounts.index(account), account.rows_per_unit
        asked = Passage(purpose, mechanism, k, place, None, given)
        steered = None if self._steer is None else self._steer(purpose, mechanism, given.size)
        released: Any
        if self._earlier is not None:
            before = _at(self._earlier.passages, len(self.passages), "releases")
            if before.booked != asked.booked:
                raise Diverged(
                    f"release {len(self.passages)} was {before.purpose!r}; now it is {purpose!r}, "
                    "or of another size, or booked otherwise."
                )
            released = before.released
        else:
            released = mechanism(values, noise) if steered is None else steered
        self.passages.append(replace(asked, released=released))
        return released  # type: ignore[no-any-return]

    def draw(self, noise: Noise, count: int) -> Words:
        """Draw words for something that looks at no row, and remember them."""
        self._check()
        if self._earlier is None:
            words = noise.words(count)
        else:
            words = _at(self._earlier.draws, len(self.draws), "draws")
            if words.size != count:
                raise Diverged("another number of words is drawn than was recorded.")
        self.draws.append(words)
        return words

    def toss(self, noise: Noise, count: int) -> Mask:
        """Toss a secret coin for every row, and remember them."""
        self._check()
        self.coins.append(noise.coins(count) if self._tossed is None else self._tossed.pop(0))
        if self.coins[-1].shape != (count,):
            raise Diverged("so many coins were not tossed.")
        return self.coins[-1]

    def finish(self) -> None:
        """Refuse to have released less than was recorded."""
        for what in ("passages", "draws") if self._earlier else ():
            if len(getattr(self, what)) != len(getattr(self._earlier, what)):
                raise Diverged(f"the replay is over, and fewer {what} than were recorded.")

    def close(self) -> None:
        """Release nothing any more."""
        self._over = True

    def _check(self) -> None:
        if self._over:
            raise RuntimeError("the recording is over: nothing can be released under it.")


Kept = TypeVar("Kept")


def _at(kept: Sequence[Kept], place: int, what: str) -> Kept:
    if place >= len(kept):
        raise Diverged(f"there are more {what} than were recorded.")
    return kept[place]


class WatchedNoise(Noise):
    """Noise under which every release is remembered, and may be forced. For tests: not private."""

    secure = False
    description = "watched by a test, which records releases or forces them (so not private)"

    def __init__(self, noise: Noise, transcript: Transcript) -> None:
        self._noise = noise
        self._transcript = transcript

    def words(self, count: int) -> Words:
        """Return words that no mechanism asked for."""
        return self._transcript.draw(self._noise, count)

    def coins(self, count: int) -> Mask:
        """Return a coin for every row."""
        return self._transcript.toss(self._noise, count)

    def answer(
        self,
        mechanism: Callable[[Any, Noise], Released],
        values: Any,
        *,
        purpose: str,
        account: object,
    ) -> Released:
        """Release under the eyes of the transcript."""
        made: Any = mechanism
        released: Released = self._transcript.release(
            made, values, self._noise, purpose=purpose, account=account
        )
        return released


# --- as a context ---------------------------------------------------------------------------------


def record(
    *, coins: Sequence[Mask] | None = None, steer: Steer | None = None
) -> AbstractContextManager[Transcript]:
    """Record what the fits inside release: `with record() as transcript: model.fit(X, y)`.

    Parameters
    ----------
    coins : list of boolean arrays, default=None
        The secret coins of fits that split their rows, one array for each split. None: noise.
    steer : callable, default=None
        What to release in place of an honest draw (`Steer`).
    """
    return _watch(Transcript(coins, steer=steer))


def replay(
    transcript: Transcript, *, coins: Sequence[Mask] | None = None
) -> AbstractContextManager[Transcript]:
    """Force the releases of a transcript on the fits inside, and record what they were given.

    Raises `Diverged` as soon as something else is asked for, booked or sized than was recorded.
    """
    return _watch(Transcript(coins, earlier=transcript))


@contextmanager
def _watch(transcript: Transcript) -> Iterator[Transcript]:
    if WATCH.get() is not None:
        raise RuntimeError("a fit is recorded or replayed, not both, and not twice.")
    token = WATCH.set(lambda noise: WatchedNoise(noise, transcript))
    try:
        yield transcript
        transcript.finish()
    finally:
        WATCH.reset(token)
        transcript.close()


# --- how far neighbouring rows moved an input -----------------------------------------------------


@dataclass(frozen=True)
class Move:
    """How far a mechanism's input moved, as a part of what was booked for a unit.

    `within` is decided without rounding. Both are private: they are functions of the rows.
    """

    purpose: str
    account: int
    part: float
    within: bool


def moves(before: Transcript, after: Transcript) -> list[Move]:
    """Compare the inputs of two runs under one transcript, release by release."""
    pairs = zip(before.passages, after.passages, strict=True)
    return [_move(one, other) for one, other in pairs]


def _move(before: Passage, after: Passage) -> Move:
    if before.booked != after.booked:
        raise Diverged(f"{before.purpose!r} was booked otherwise.")
    square = _squared_part(before.mechanism, _changes(before, after)) / before.rows_per_unit**2
    return Move(before.purpose, before.account, math.sqrt(square), square <= 1)


def _changes(before: Passage, after: Passage) -> list[Any]:
    """Return how far every number moved, exactly, in whole numbers of the unit if it has one."""
    pairs = zip(before.given.ravel().tolist(), after.given.ravel().tolist(), strict=True)
    if before.given.dtype == after.given.dtype == np.int64:
        return [new - old for old, new in pairs]
    return [Fraction(new) - Fraction(old) for old, new in pairs]


def _squared_part(mechanism: Mechanism[object], changes: list[Any]) -> Fraction:
    """Return (moved / booked)² in the norm that the mechanism requires."""
    unit = Fraction(getattr(mechanism, "unit", 1.0)) / Fraction(mechanism.sensitivity)
    largest = Fraction(max(map(abs, changes))) * unit
    match mechanism:
        case NoisyMax():
            span = Fraction(mechanism.unit) / Fraction(mechanism.score_range)
            return Fraction(max(largest, (max(changes) - min(changes)) * span)) ** 2
        case SignedNoisyMax() | LaplaceNoisyMax() | ThresholdedNoisyMin():
            return largest**2
        case DiscreteGaussian() | GaussianVector():
            return Fraction(sum(change * change for change in changes)) * unit**2
    raise TypeError(f"{mechanism.name}: no norm is known in which its input may move.")
