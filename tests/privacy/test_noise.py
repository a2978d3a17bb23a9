"""Each draw has its law, from both sources, and the secure stream is never repeated.

Every statistical test has a false-alarm rate of 1e-6 and shows that it rejects a scale 10 % off.
"""

import copy
import ctypes
import os
import pickle
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats

from dpscreen.privacy import SecureNoise, SeededNoise, named_seed
from dpscreen.privacy import noise as module
from tools.noise import Script

ALARM = 1e-6
Z = stats.norm.isf(ALARM / 2)
COUNT = 200_000
LAWS = {
    "uniform": stats.uniform,
    "exponential": stats.expon,
    "laplace": stats.laplace,
    "normal": stats.norm,
}
SOURCES = {
    "seeded by number": lambda: SeededNoise(20240517),
    "seeded by name": lambda: SeededNoise("tests/noise"),
    "secure": SecureNoise,
}

sources = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)


# --- laws -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LAWS)
@sources
def test_draws_follow_their_law_and_the_test_would_see_10_percent(source, name):
    draws, law = getattr(source(), name)(COUNT), LAWS[name]
    assert stats.ks_1samp(draws, law.cdf).pvalue > ALARM
    for wrong in (0.9, 1.1):
        assert stats.ks_1samp(draws, law(scale=wrong).cdf).pvalue < ALARM


def farthest_off(coins, lags=256):
    """Return the farthest of their mean and their agreements at all lags, in deviations."""
    signs = 2.0 * coins - 1
    sums = [signs.sum(), *(signs[lag:] @ signs[:-lag] for lag in range(1, lags))]
    return np.abs(sums).max() / np.sqrt(len(coins) - lags)


@sources
def test_coins_and_signs_are_fair_and_independent_of_each_other(source):
    """So that a row's half is its own secret, whatever is known of the others."""
    most = stats.norm.isf(ALARM / 2 / 256)
    noise = source()
    coins = noise.coins(2**16)
    assert coins.dtype == np.bool_
    assert farthest_off(coins) < most
    assert farthest_off(np.resize(coins[:64], 2**16)) > most
    assert farthest_off(np.where(noise.uniform(2**16) < 0.05, True, coins)) > most
    signs = noise.signs(COUNT)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    chances = [stats.binomtest(int((signs > 0).sum()), COUNT, p).pvalue for p in (0.5, 0.51, 0.49)]
    assert [chance > ALARM for chance in chances] == [True, False, False]


def correlation_z(a, b):
    """Return √n times the correlation: standard normal for independent a and b."""
    return np.sqrt(a.size) * np.corrcoef(a, b)[0, 1]


def dependence(draws):
    """Return z-scores for the ways in which a Laplace stream could be less than independent."""
    sign, size = np.sign(draws), np.abs(draws)
    serial = [correlation_z(of[:-lag], of[lag:]) for of in (draws, sign, size) for lag in (1, 2, 7)]
    return np.array([*serial, correlation_z(sign, size), correlation_z(sign, size > np.log(2))])


@sources
def test_laplace_draws_are_independent_and_sign_does_not_tell_size(source):
    assert np.abs(dependence(source().laplace(COUNT))).max() < Z


def test_the_independence_test_sees_repeated_and_shared_bits():
    words = SeededNoise(3).words(COUNT)
    repeated = Script(block=np.repeat(words[: COUNT // 2], 2))
    assert np.abs(dependence(repeated.laplace(COUNT))).max() > Z
    shared = (words & ~np.uint64(1)) | (words >> np.uint64(63))  # the sign is the size's top bit
    assert np.abs(dependence(Script(block=shared).laplace(COUNT))).max() > Z


# --- the ends -------------------------------------------------------------------------------


@pytest.mark.parametrize("word", [0, 1, 2**11, 2**12 - 1, 2**63, 2**64 - 2**12, 2**64 - 1])
def test_uniform_is_never_0_or_1_and_nothing_is_infinite(word):
    noise = Script(block=[word])
    assert 0 < noise.uniform(1)[0] < 1
    for name in (*LAWS, "signs"):
        assert np.isfinite(getattr(noise, name)(1)).all()
    assert noise.exponential(1)[0] > 0
    # the middle of a cell of 2^−52
    assert noise.uniform(1)[0] == 2.0**-53 + (word >> 12) * 2.0**-52


# --- seeded ---------------------------------------------------------------------------------


def test_a_seed_gives_its_own_stream_again():
    seeds = [0, 1, 2**64, 2**127, "", "0", "1", "trial 1", "trial 2", "trial 1 "]
    streams = [[SeededNoise(seed).words(50).tobytes() for seed in seeds] for _ in range(2)]
    assert streams[0] == streams[1]
    assert len(set(streams[0])) == len(seeds)


def test_a_name_is_the_same_seed_on_every_machine():
    # SHA-256's first 16 bytes, so it must never depend on Python's own string hash.
    assert named_seed("abc") == 0xBA7816BF8F01CFEA414140DE5DAE2223
    assert SeededNoise("abc").words(1) == SeededNoise(named_seed("abc")).words(1)


# --- secure ---------------------------------------------------------------------------------


def distinct(*draws):
    """Whether no word occurs in two draws (64-bit words: a false alarm in 1e17)."""
    return len(set(np.concatenate(draws).tolist())) == sum(draw.size for draw in draws)


@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, lambda noise: pickle.loads(pickle.dumps(noise))],
    ids=["copy", "deepcopy", "pickle"],
)
@pytest.mark.parametrize("used", [False, True])
def test_a_duplicate_is_a_new_source(duplicate, used):
    noise = SecureNoise()
    if used:
        noise.words(3)
    other = duplicate(noise)
    assert isinstance(other, SecureNoise)
    assert pickle.dumps(noise) == pickle.dumps(SecureNoise())  # which holds no key
    assert distinct(noise.words(8), other.words(8), noise.words(8), other.words(8))


def python_fork():
    """Fork as Python does, which runs the hooks of `os.register_at_fork`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12+: threads of the runner
        return os.fork()


def foreign_fork():
    """Fork as a library in C does: no hook of Python runs."""
    return ctypes.PyDLL(None).fork()


def many(noise, count):
    """Draw words at once."""
    return noise.words(count)


def one_by_one(noise, count):
    """Draw words one at a time, of which a source has some in store."""
    return np.array([noise.word() for _ in range(count)], dtype=np.uint64)


def words_of_a_child(noise, count, draw=many, fork=python_fork):
    """Fork a real process and return what the child draws from the source it inherited."""
    reader, writer = os.pipe()
    child = fork()
    if child == 0:  # pragma: no cover (in the child)
        try:
            os.write(writer, draw(noise, count).tobytes())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as pipe:  # noqa: PTH123 (a descriptor)
        data = pipe.read()
    os.waitpid(child, 0)
    return np.frombuffer(data, dtype=np.uint64)


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
each_fork = pytest.mark.parametrize("fork", [python_fork, foreign_fork])
each_draw = pytest.mark.parametrize("draw", [many, one_by_one])


@needs_fork
@each_fork
@each_draw
def test_a_forked_child_has_a_stream_of_its_own(fork, draw):
    """And so has a child of the child."""
    noise = SecureNoise()
    noise.words(3)
    noise.word()  # so that others are in store

    def with_child(noise, count):
        own = draw(noise, count)
        return np.concatenate((own, words_of_a_child(noise, count, draw, fork), draw(noise, count)))

    children = [words_of_a_child(noise, 8, one, fork) for one in (draw, draw, with_child)]
    assert [child.size for child in children] == [8, 8, 24]
    assert distinct(*children, draw(noise, 8))


def test_every_source_asks_the_system_for_a_key_of_256_bits(monkeypatch):
    asked = []

    def urandom(size):
        asked.append(size)
        return os.urandom(size)

    monkeypatch.setattr(module, "os", SimpleNamespace(urandom=urandom))
    assert distinct(SecureNoise().words(8), SecureNoise().words(8))
    assert asked == [32, 32]


def test_a_stream_is_one_key_of_a_block_cipher_in_counter_mode_and_never_starts_over(monkeypatch):
    key = bytes(range(32))
    monkeypatch.setattr(module, "os", SimpleNamespace(urandom=lambda size: key[:size]))
    noise = SecureNoise()
    counts = (1, 7, 70_000, 3, *[1] * 70, 2**18)
    drawn = np.concatenate([noise.words(count) for count in counts])
    block = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    counters = b"".join(n.to_bytes(16, "big") for n in range(-(-drawn.size // 2)))
    expected = np.frombuffer(block.update(counters), dtype=np.uint64)
    assert np.array_equal(drawn, expected[: drawn.size])
