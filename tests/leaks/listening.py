"""A secret to plant, and who hears all that is logged, warned and raised."""

from __future__ import annotations

import datetime
import decimal
import logging
import traceback
import warnings
from contextlib import contextmanager
from fractions import Fraction

import numpy as np
import pandas as pd

WORD, NUMBER = "Zebedee-8675309", 8675309.25
DAY = datetime.datetime(1986, 7, 5, 8, 6, 7)
TOLD_AS = ("8675309", "8.675309", "8.67531e", "Zebedee", "1986-07", "1986, 7", "05/07", "07/05")


def assert_untold(texts):
    """Fail if a text holds the secret, in any way that it may be written."""
    for text in texts:
        assert not [word for word in TOLD_AS if word in text], text[:300]


class Hostile:
    """An object that tells the secret whenever it is asked."""

    def __repr__(self):
        return WORD

    def __float__(self):
        raise RuntimeError(WORD)

    def __eq__(self, other):
        raise RuntimeError(WORD)

    __str__ = __repr__
    __hash__ = object.__hash__


OBJECTS = {
    "text": WORD,
    "number as text": str(NUMBER),
    "bytes": WORD.encode(),
    "datetime": DAY,
    "datetime64": np.datetime64(DAY),
    "timestamp": pd.Timestamp(DAY),
    "zone": DAY.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=1), WORD)),
    "duration": datetime.timedelta(seconds=NUMBER),
    "decimal": decimal.Decimal(str(NUMBER)),
    "fraction": Fraction(NUMBER),
    "float": NUMBER,
    "too large": 8675309 * 10**400,
    "complex": complex(NUMBER, 1),
    "nested list": [NUMBER, WORD],
    "array": np.array([NUMBER, NUMBER]),
    "mapping": {WORD: NUMBER},
    "set": {WORD},
    "error": ValueError(WORD),
    "hostile": Hostile(),
    "not a time": pd.NaT,
    "its class": type("Zebedee", (), {})(),
    "large decimal": decimal.Decimal("8675309e999999"),
}
"""What a cell may be in place of a number."""


def betray(*_given, **_options):
    """Raise an error that tells the secret in every part of it."""
    problem = RuntimeError(WORD, NUMBER)
    problem.add_note(WORD)
    raise problem from ValueError(NUMBER)


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
