"""The directory of a ledger, in which its database, the database's journal and a lock lie together.

SQLite looks for a journal beside the name under which a database is opened. A database with two
names, by a hard link or because the file alone is mounted elsewhere, has two places for journals:
what a killed process left beside one name undoes, at the next open under that name, what was booked
under the other. The files of a directory keep one place under every name of the directory (rename,
symbolic link, mount), as long as none of them has a name of its own elsewhere. That is checked
whenever the ledger is opened, and once more after each booking.

The lock is a file of its own, held by `flock`. SQLite's locks on the database are lost as soon as
any part of the process closes another handle of it (POSIX); this one is not. It excludes all who
reach the directory, by whatever name.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from dpscreen._core.messages import message

DATABASE, DRAFT, LOCK = "ledger.db", "unfinished.db", "lock"
JOURNAL = "-journal"
FOR_THE_OWNER = 0o600
NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
PAUSE = 0.0005  # seconds; with 0.005, some of 8 busy processes waited several times as long

Place = tuple[int, int, int, int]


class Foreign(Exception):
    """Something is not a ledger of this format, or not a whole one."""

    def __init__(self, code: str, **fields: object) -> None:
        super().__init__(message(f"not-a-ledger.{code}", **fields))


@dataclass(frozen=True)
class LedgerDirectory:
    """Where the files of a ledger lie, and how many seconds to wait for its lock."""

    path: Path
    timeout: float

    def place(self) -> Place:
        """Return which directory and database this is; refuse one that is not whole."""
        if not self.path.is_dir():
            raise Foreign("file" if self.path.exists() else "absent")
        home = self.path.stat()
        missing = [name for name in (DATABASE, LOCK) if not _is_there(self.path / name)]
        if missing:
            raise Foreign("incomplete", missing=" and no ".join(missing))
        for name in (LOCK, DATABASE + JOURNAL, DATABASE):
            with suppress(FileNotFoundError):  # of the journal, which comes and goes
                check_one_name(self.path / name)
        database = (self.path / DATABASE).lstat()
        return home.st_dev, home.st_ino, database.st_dev, database.st_ino

    @contextmanager
    def held(self) -> Iterator[Place]:
        """Take the lock of a whole ledger, and return which one it is."""
        self.place()
        with self.locked():
            yield self.place()

    @contextmanager
    def begun(self) -> Iterator[Path]:
        """Make the directory and hold its lock; give the path of a new database in it, a draft.

        If the block fails, nothing stays.
        """
        draft, lock = self.path / DRAFT, self.path / LOCK
        try:
            self.path.mkdir(mode=0o700)
        except FileExistsError:
            raise Foreign("exists") from None
        try:
            _sync(self.path.parent)
            _touch(lock)
            with self.locked():
                _touch(draft)
                yield draft
        except BaseException:
            made = self.path / f"{DRAFT}{JOURNAL}", draft, lock
            with suppress(OSError):
                if {*self.path.iterdir()} <= {*made}:  # it did not become a ledger
                    for path in made:
                        path.unlink(missing_ok=True)
                    self.path.rmdir()
            raise

    def finish(self, draft: Path) -> None:
        """Let the draft become the database, for good; call it with the lock held."""
        draft.rename(self.path / DATABASE)
        _sync(self.path)
        _sync(self.path.parent)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock; raise `TimeoutError` if others hold it for too long."""
        handle = os.open(self.path / LOCK, os.O_RDONLY | NOFOLLOW)
        try:
            _lock(handle, time.monotonic() + self.timeout)
            try:
                if not os.path.samestat(os.fstat(handle), (self.path / LOCK).lstat()):
                    raise Foreign("replaced")
                yield
            finally:
                _unlock(handle)
        finally:
            os.close(handle)


def _is_there(path: Path) -> bool:
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    return True  # what may not be looked at raises


def check_one_name(path: Path) -> None:
    """Refuse a file that is a link, has a second name, or is mounted apart from its directory."""
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        raise Foreign("link", file=path.name)
    if status.st_nlink > 1:
        raise Foreign("second-name", file=path.name)
    if _mount(path) != _mount(path.parent):
        raise Foreign("mounted", file=path.name)


def _mount(path: Path) -> str:
    """Return an identifier of the mount on which a path lies.

    Linux numbers its mounts. Elsewhere the device number is used: it is the same for everything
    mounted from one disk, and on overlays may differ between a file and its directory.
    """
    if hasattr(os, "O_PATH"):
        handle = os.open(path, os.O_PATH)  # closing it drops no lock: it does not open the file
        try:
            facts = Path(f"/proc/self/fdinfo/{handle}").read_bytes().split()
            return f"mount {int(facts[facts.index(b'mnt_id:') + 1])}"
        except (OSError, ValueError):  # no /proc, or a system that looks like Linux
            pass
        finally:
            os.close(handle)
    return f"device {path.stat().st_dev}"


def _touch(path: Path) -> None:
    """Make an empty file for its owner alone, unless it is there."""
    os.close(os.open(path, os.O_CREAT | os.O_RDONLY | NOFOLLOW, FOR_THE_OWNER))


def _sync(directory: Path) -> None:
    """Wait until the names in a directory are on the disk, where the system can be asked to."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


try:
    import fcntl
except ImportError:  # then SQLite's own locks have to do; Windows does not lose them

    def _lock(handle: int, until: float) -> None:
        """Do nothing."""

    def _unlock(handle: int) -> None:
        """Do nothing."""
else:

    def _lock(handle: int, until: float) -> None:
        """Wait for the lock."""
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise TimeoutError from None
                time.sleep(PAUSE)
            else:
                return

    def _unlock(handle: int) -> None:
        """Give the lock back, though a child that was forked meanwhile has the handle too."""
        fcntl.flock(handle, fcntl.LOCK_UN)
