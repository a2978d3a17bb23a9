"""A process that is killed at each of its system calls, one attempt for each.

A child asks to be traced (ptrace), its parent lets it run from one system call to the next and
kills it at the chosen one. It needs Linux and the right to trace one's own children.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

TRACEME, SET_OPTIONS, RUN_TO_CALL = 0, 0x4200, 24
TELL_CALLS_APART, END_WITH_PARENT = 1, 1 << 20
AT_A_CALL = signal.SIGTRAP | 0x80

Work = Callable[[], object]


def may_trace() -> bool:
    """Whether a child can be traced here."""
    return sys.platform == "linux" and attempt(lambda: None, 10**9)


def killed_at_each_call(work: Work, folder: Path | None = None) -> Iterator[int]:
    """Run `work` in children; yield after each that was killed, until one comes through.

    They are killed before and after each system call in turn. With a folder, only when what it
    holds has changed: to who comes after a kill, all moments between two changes are alike.
    """
    stops = 1
    while not attempt(work, stops, folder):
        yield stops
        stops += 1


def attempt(work: Work, stops: int, folder: Path | None = None) -> bool:
    """Run `work` in a child that is killed when it stops this often; return if it came through."""
    child = os.fork()
    if child == 0:
        _ptrace(TRACEME)
        os.kill(os.getpid(), signal.SIGSTOP)
        try:
            work()
        except BaseException:  # told by the exit code; nothing that the parent began is ended here
            os._exit(1)
        os._exit(0)
    os.waitpid(child, 0)
    if _ptrace(SET_OPTIONS, child, TELL_CALLS_APART | END_WITH_PARENT):
        return _ended(child)
    for _ in range(stops):
        if not _runs_on(child, folder):
            return True
    return _ended(child)


def _runs_on(child: int, folder: Path | None) -> bool:
    """Let the child run to the next stop; return whether it got there."""
    before, passed_on = _content(folder), 0
    while True:
        _ptrace(RUN_TO_CALL, child, passed_on)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0, "the work failed"
            return False
        assert os.WIFSTOPPED(status), "the child was killed by somebody else"
        met = os.WSTOPSIG(status) == AT_A_CALL
        passed_on = 0 if met else os.WSTOPSIG(status)
        if met and (folder is None or _content(folder) != before):
            return True


def _ended(child: int) -> bool:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def _content(folder: Path | None) -> dict[Path, bytes]:
    found = () if folder is None else folder.rglob("*")
    return {path: path.read_bytes() if path.is_file() else b"" for path in found}


def _ptrace(request: int, child: int = 0, data: int = 0) -> int:
    trace = ctypes.CDLL(None, use_errno=True).ptrace
    trace.restype = ctypes.c_long
    return int(trace(request, child, None, ctypes.c_void_p(data)))
