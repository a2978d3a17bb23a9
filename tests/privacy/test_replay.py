"""The bench on which releases are recorded and forced: what it sees, and that it is never left on.

What it finds on real fits is in tests/leaks.
"""

import pickle
import threading
from fractions import Fraction

import numpy as np
import pytest

from dpscreen import PrivateLasso
from dpscreen.privacy import (
    ZCDP,
    Accountant,
    DiscreteGaussian,
    GaussianVector,
    LaplaceNoisyMax,
    NoisyMax,
    SecureNoise,
    SeededNoise,
    SeededNoiseWarning,
    SignedNoisyMax,
    ThresholdedNoisyMin,
    Unit,
)
from dpscreen.privacy.noise import watched
from dpscreen.privacy.replay import Diverged, Passage, WatchedNoise, _move, record, replay

PUBLIC = {"epsilon": 2.0, "delta": 1e-6, "feature_bounds": (-1, 1), "target_bounds": (-4, 4)}
SUM = DiscreteGaussian(3.0, 5.0, 0.5)


def fitted(rows, **options):
    with pytest.warns(SeededNoiseWarning, match="recorded or forced"):
        return PrivateLasso(**PUBLIC | options).fit(*rows)


def accountant(**options):
    return Accountant(watched(SecureNoise()), limit=ZCDP(Fraction(9)), **options)


def released(values, purpose="a sum", **options):
    return accountant(**options).release(SUM, np.array(values), purpose=purpose)


# --- what is recorded -----------------------------------------------------------------------------


def test_recording_changes_no_number(rows):
    with pytest.warns(SeededNoiseWarning, match="random_state"):
        plain = PrivateLasso(**PUBLIC, random_state=3).fit(*rows)
    with record() as transcript:
        watched_one = fitted(rows, random_state=3)
    assert np.array_equal(plain.coef_, watched_one.coef_)
    assert len(transcript.passages) > 10


def test_a_transcript_has_coins_and_free_draws(rows):
    with record() as transcript:
        fitted(rows, inference="split", n_rows=30_000)
    assert [coins.shape for coins in transcript.coins] == [(400,)]
    assert {one.account for one in transcript.passages} == {0, 1}
    with record() as transcript:
        watched(SecureNoise()).uniform(7)
    assert [words.size for words in transcript.draws] == [7]
    with replay(transcript) as again:
        assert np.array_equal(watched(SecureNoise()).words(7), transcript.draws[0])
    assert len(again.draws) == 1


def test_inputs_are_neither_shown_nor_stored():
    with record() as transcript:
        released([123456789])
    assert transcript.passages[0].given.tolist() == [123456789]
    assert "123456789" not in repr(transcript.passages) + repr(transcript)
    for kept in (transcript, transcript.passages[0]):
        with pytest.raises(TypeError, match="stays in memory"):
            pickle.dumps(kept)


def test_a_driver_may_choose_what_is_released(rows):
    asked = []

    def steer(purpose, mechanism, size):
        asked.append((purpose, mechanism, size))
        return np.full(size, 7.5) if purpose == "a sum" else None

    with record(steer=steer) as transcript:
        assert released([1, 2]).tolist() == [7.5, 7.5]
        assert released([1, 2], purpose="another").tolist() != [7.5, 7.5]
    assert asked == [("a sum", SUM, 2), ("another", SUM, 2)]
    assert transcript.passages[0].released.tolist() == [7.5, 7.5]


# --- what is forced -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "otherwise",
    [
        lambda: released([1, 2], purpose="another"),
        lambda: released([1, 2, 3]),
        lambda: released([1, 2], unit=Unit(2)),
        lambda: accountant().release(DiscreteGaussian(3.0, 5.5, 0.5), np.ones(2), purpose="a sum"),
        lambda: (released([1, 2]), released([1, 2])),
        lambda: None,
        lambda: (released([1, 2]), watched(SecureNoise()).words(1)),
    ],
)
def test_a_replay_that_asks_for_something_else_diverges(otherwise):
    with record() as transcript:
        released([3, 4])
    with pytest.raises(Diverged), replay(transcript):
        otherwise()


def test_another_number_of_words_or_coins_diverges():
    with record() as transcript:
        watched(SecureNoise()).words(3)
    with pytest.raises(Diverged, match="number of words"), replay(transcript):
        watched(SecureNoise()).words(4)
    with pytest.raises(Diverged, match="coins"), record(coins=[np.ones(3, dtype=bool)]):
        watched(SecureNoise()).coins(4)


# --- how far inputs moved -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mechanism", "change", "part"),
    [
        (NoisyMax(2.0, 4.0, 1.0, 0.5), [4, -4, 0], 1),
        (NoisyMax(2.0, 2.0, 1.0, 0.5), [4, 1], 1),
        (NoisyMax(2.0, 2.0, 1.0, 0.5), [4, -1], 1.25),
        (SignedNoisyMax(2.0, 1.0, 0.5), [4, -4], 1),
        (SignedNoisyMax(2.0, 1.0, 0.5), [5, 0], 1.25),
        (DiscreteGaussian(2.5, 1.0, 0.5), [3, -4], 1),
        (DiscreteGaussian(2.5, 1.0, 0.5), [6, 8], 2),
        (GaussianVector(2.5, 1.0), [1.5, -2.0], 1),
        (LaplaceNoisyMax(2.0, 1.0), [0.5, -2.0], 1),
        (ThresholdedNoisyMin(2.0, 1.0), [-3.0, 0.0], 1.5),
    ],
)
def test_an_input_moves_in_the_norm_that_the_mechanism_requires(mechanism, change, part):
    start = np.array([2**40, -(2**40), 7][: len(change)], dtype=np.asarray(change).dtype)
    for k in (1, 3):
        before, after = (
            Passage("x", mechanism, k, 0, None, given) for given in (start, start + change)
        )
        found = _move(before, after)
        assert found.part == pytest.approx(part / k)
        assert found.within == (part <= k)


def test_a_move_is_compared_without_rounding():
    least = DiscreteGaussian(float(2**53), 1.0, 1.0)
    for change, within in ((2**53, True), (2**53 + 1, False)):
        ends = (np.array([0]), np.array([change]))
        found = _move(*(Passage("x", least, 1, 0, None, given) for given in ends))
        assert found.part == 1
        assert found.within is within


# --- that it is never on by accident --------------------------------------------------------------


def test_a_watched_fit_says_that_it_is_not_private(rows):
    with record():
        model = fitted(rows)
    assert not model.privacy_.holds
    assert not model.privacy_.secure_noise
    for text in (str(model.privacy_), str(model.summary())):
        assert "NOT PRIVATE: a test watched" in " ".join(text.split())


def test_outside_nothing_is_watched(rows):
    with pytest.raises(KeyboardInterrupt), record() as transcript:
        raise KeyboardInterrupt
    assert not transcript.passages
    secure = SecureNoise()
    assert watched(secure) is secure
    assert PrivateLasso(**PUBLIC).fit(*rows).privacy_.holds
    assert not transcript.passages


def test_noise_that_outlives_the_recording_releases_nothing():
    with record():
        book = accountant()
        assert isinstance(book.noise, WatchedNoise)
    for use in (
        lambda: book.release(SUM, np.array([1]), purpose="late"),
        lambda: book.noise.words(1),
        lambda: book.noise.coins(1),
    ):
        with pytest.raises(RuntimeError, match="the recording is over"):
            use()


def test_other_threads_are_not_watched():
    seen = []
    with record() as transcript:
        thread = threading.Thread(target=lambda: seen.append(watched(SecureNoise())))
        thread.start()
        thread.join()
    assert [type(one) for one in seen] == [SecureNoise]
    assert not transcript.passages


def test_one_at_a_time():
    with record() as transcript:
        for other in (record(), replay(transcript)):
            with pytest.raises(RuntimeError, match="not both"), other:
                raise AssertionError("unreachable")


def test_noise_of_the_callers_own_is_left_alone(rows):
    with record() as transcript, pytest.warns(SeededNoiseWarning, match="random_state"):
        PrivateLasso(**PUBLIC, random_state=SeededNoise("own")).fit(*rows)
    assert not transcript.passages
