"""Many processes, a kill at any moment, a full disk: budget may be lost, never given twice."""

import os
import shutil
import subprocess
import sys

import pytest

from dpscreen.privacy.ledger import PrivacyLedger
from dpscreen.privacy.ledger.file import LedgerProblem
from tools.ledgers import make_ledger, python, said_by

pytestmark = pytest.mark.skipif(os.name != "posix", reason="fork, kill -9 and limits as POSIX has")


class Children:
    """Processes that run one code at the same time, and answer line by line."""

    def __init__(self, code, count):
        self.all = [
            subprocess.Popen(
                [sys.executable, "-W", "error", "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},  # with threads none should fork
            )
            for _ in range(count)
        ]
        assert {child.stdout.readline() for child in self.all} == {"ready\n"}

    def asked(self, line):
        """Return what each of them answers to a line that all get at once."""
        for child in self.all:
            child.stdin.write(f"{line}\n")
            child.stdin.flush()
        return [child.stdout.readline().strip() for child in self.all]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for child in self.all:
            child.communicate(timeout=50)


WORKER = """
import sys
from dpscreen.privacy.ledger import BudgetRefused, PrivacyLedger

print("ready", flush=True)
for line in sys.stdin:
    path, parts, times = line.split()
    ledger = PrivacyLedger(path)
    booked = 0
    for _ in range(int(times)):
        try:
            ledger.reserve(ledger.total / int(parts), purpose="race")
            booked += 1
        except BudgetRefused:
            pass
    print(booked, flush=True)
"""


def race(paths, *, workers, parts, times):
    """Return how much each worker booked from each ledger, all of them starting together."""
    with Children(WORKER, workers) as children:
        for path in paths:
            yield [int(answer) for answer in children.asked(f"{path} {parts} {times}")]


@pytest.mark.parametrize(
    ("times", "parts"), [(50, 100), pytest.param(1000, 6000, marks=pytest.mark.slow)]
)
def test_eight_processes_share_a_budget_for_some_of_their_bookings(tmp_path, times, parts):
    ledger = make_ledger(tmp_path / "budget.ledger")
    (booked,) = race([ledger.path], workers=8, parts=parts, times=times)
    assert sum(booked) == parts
    assert ledger.spent == ledger.total
    numbers = [entry.number for entry in PrivacyLedger(ledger.path).entries()]
    assert numbers == list(range(1, parts + 1))


def test_of_two_racing_for_the_last_of_the_budget_one_gets_it(tmp_path):
    paths = [make_ledger(tmp_path / f"{number}.ledger").path for number in range(20)]
    for booked in race(paths, workers=2, parts=1, times=1):
        assert sorted(booked) == [0, 1]
    assert all(len(PrivacyLedger(path).entries()) == 1 for path in paths)


CREATOR = """
import sys
from dpscreen.privacy.ledger import LedgerProblem, PrivacyLedger

print("ready", flush=True)
for path in sys.stdin:
    try:
        print(PrivacyLedger.create(path.strip(), dataset="d", epsilon=1, delta=1e-6).head)
    except LedgerProblem as problem:
        assert "never overwritten" in str(problem)
        print("")
    sys.stdout.flush()
"""


def test_of_processes_that_create_the_same_ledger_one_does(tmp_path):
    with Children(CREATOR, 3) as children:
        for number in range(20):
            path = tmp_path / f"{number}.ledger"
            assert {*children.asked(path)} - {""} == {PrivacyLedger(path).head}


KILLED_AT_RANDOM = """
import os, random, signal, sys, time
from dpscreen.privacy.ledger import PrivacyLedger

path, marker, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
total = PrivacyLedger(path).total
begun = time.monotonic()
for _ in range(5):
    PrivacyLedger(path).reserve(total / 10**6, purpose="how long does it take?")
longest = (time.monotonic() - begun) / 5 * 4
for _ in range(rounds):
    child = os.fork()
    if child == 0:
        released = os.open(marker, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        ledger = PrivacyLedger(path)
        while True:
            ledger.reserve(total / 10**6, purpose="release")
            os.write(released, b".")
            os.fsync(released)
    time.sleep(random.uniform(0, longest))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert PrivacyLedger(path).spent * 10**6 >= total * os.path.getsize(marker)
"""


def test_a_kill_at_any_moment_never_gives_budget_back(tmp_path):
    ledger, marker, rounds = make_ledger(tmp_path / "budget.ledger"), tmp_path / "released", 100
    marker.touch()
    said_by("-c", KILLED_AT_RANDOM, ledger.path, marker, rounds)
    released, booked = marker.stat().st_size, len(PrivacyLedger(ledger.path).entries()) - 5
    assert released <= booked <= released + rounds  # each kill loses at most the one under way
    assert released > 10  # the rounds did something
    assert ledger.spent == ledger.total * (booked + 5) / 10**6


FILLING = """
import resource, sys
from dpscreen.privacy.ledger import LedgerProblem, PrivacyLedger

ledger = PrivacyLedger(sys.argv[1])
if sys.argv[2] != "0":
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
booked = 0
try:
    while booked < 5000:
        ledger.reserve(ledger.total / 10**6, purpose="x" * 1000)
        booked += 1
except LedgerProblem as problem:
    print(problem, file=sys.stderr)
print(booked)
# What measures coverage writes a file at the end.
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""


def fill(path, limit):
    done = python("-c", FILLING, path, limit)
    assert done.returncode == 0, done.stderr
    return int(done.stdout), done.stderr


@pytest.mark.parametrize("limit", [21000, 40960, 70001])
def test_a_file_that_may_not_grow_books_no_more(tmp_path, limit):
    ledger = make_ledger(tmp_path / "budget.ledger")
    booked, told = fill(ledger.path, limit)
    assert "full" in told or "could not be read or written" in told
    assert "booked" in told
    assert len(told.splitlines()) == 1
    assert len(PrivacyLedger(ledger.path).entries()) == booked < 5000
    ledger.reserve(ledger.total / 10**6, purpose="there is room again")


def test_a_full_disk_books_no_more_and_keeps_what_was_booked(tmp_path):
    asked = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(tmp_path)]
    if shutil.which("mount") is None or subprocess.run(asked, check=False).returncode:
        pytest.skip("no disk may be mounted here")
    try:
        ledger = make_ledger(tmp_path / "budget.ledger")
        booked, told = fill(ledger.path, 0)
        assert "disk is full. No reservation was booked." in told
        assert 0 < booked < 5000
        assert len(PrivacyLedger(ledger.path).entries()) == booked
        for number in range(100):
            try:
                make_ledger(tmp_path / f"{number}.ledger")
            except LedgerProblem:
                break
        assert not (tmp_path / f"{number}.ledger").exists()
        assert len(PrivacyLedger(ledger.path).entries()) == booked
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


FORKED = """
import os, sys
from dpscreen.privacy.ledger import PrivacyLedger

ledger = PrivacyLedger(sys.argv[1])
for _ in range(3):
    child = os.fork()
    if child == 0:
        ledger.reserve(ledger.total / 10, purpose="child")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
ledger.reserve(ledger.total / 10, purpose="after")
print(len(ledger.entries()))
"""


def test_a_ledger_survives_a_fork(tmp_path):
    assert said_by("-c", FORKED, make_ledger(tmp_path / "budget.ledger", 1).path) == "5"
