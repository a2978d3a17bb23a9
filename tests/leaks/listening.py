"""Hears all that is logged, warned and raised."""

from __future__ import annotations

import logging
import traceback
import warnings
from contextlib import contextmanager


class Listener(logging.Handler):
    """Keeps all that is logged at any level."""

    def __init__(self):
        super().__init__(level=0)
        self.lines = []

    def emit(self, record):
        self.lines.append(f"{record.getMessage()} {record.args} {record.exc_text}")


@contextmanager
def listening(*, ending=Exception, shown=traceback.format_exception_only):
    """Yield a list that receives what is logged, warned and raised; such errors end here."""
    told, listener, root = [], Listener(), logging.getLogger()
    level = root.level
    root.addHandler(listener)
    root.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                yield told
            except ending as problem:  # any other is a failure of the test
                told += [*said_by(problem), *shown(problem)]
        told += [f"{one.message} {one.message.args} {one.source}" for one in caught]
        told += listener.lines
    finally:
        root.removeHandler(listener)
        root.setLevel(level)


def said_by(problem):
    """List what an exception and all that hangs on it say."""
    found, queue = [], [problem]
    while queue:
        one = queue.pop()
        found += [str(one), repr(one), repr(one.args), repr(vars(one))]
        found += [repr(getattr(one, "__notes__", [])), getattr(one, "doc", "")]
        queue += [other for other in (one.__context__, one.__cause__) if other is not None]
    return found
