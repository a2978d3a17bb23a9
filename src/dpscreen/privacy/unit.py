"""The unit of privacy: whose coming or going a promise hides.

Statements, model files and ledgers hold it as a sentence. It is worded and read here alone.
"""

from __future__ import annotations

import ast
import re
from contextlib import suppress
from dataclasses import dataclass

NAMELESS = "one unit"
VALUE_OF = "one value of the column "
COUNTED = ", with the disclosed number of rows held fixed"
MOST_ROWS = re.compile(r" \(at most ([0-9]+) rows?\)$")
ESCAPED = r"\\(?:[\\'nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})"
QUOTED = re.compile(rf"""'(?:[^'\\\n]|{ESCAPED})*'|"(?:[^"\\\n]|{ESCAPED})*\"""")


@dataclass(frozen=True)
class Unit:
    """A row; or whoever has up to so many rows, told apart by the values of a column if it has one.

    Where there is a column, surplus rows of a unit were left out, and rows without a value. A row
    that is added can then take another's place, so even at one row a unit the promise is not one
    for rows (docs/privacy.md, Lemma 18).
    """

    rows_per_unit: int = 1
    column: str | None = None

    def __post_init__(self) -> None:
        if self.rows_per_unit < 1:
            raise ValueError("rows_per_unit must be at least 1.")

    @property
    def is_row(self) -> bool:
        """Whether the promise is for a row, whoever owns it."""
        return self.column is None and self.rows_per_unit == 1

    @property
    def most(self) -> str:
        """Say how many rows of it there are at most."""
        return f"at most {self.rows_per_unit} row{'s' * (self.rows_per_unit > 1)}"

    @property
    def preparation(self) -> str:
        """Say what was done to the rows for its sake; nothing if no column tells units apart."""
        if self.column is None:
            return ""
        return (
            f"of each value of the column {self.column!r} {self.most} kept, and rows without one "
            "left out; "
        )

    def __str__(self) -> str:
        if self.is_row:
            return "one row"
        kind = NAMELESS if self.column is None else f"{VALUE_OF}{self.column!r}"
        return f"{kind} ({self.most})"

    @classmethod
    def of_words(cls, words: str) -> Unit | None:
        """Return the unit that says so; None for words that are not from here."""
        kind, rows = worded(words)
        number = int(rows) if rows and len(rows) < 10 else 1  # a longer one is not said again
        made = cls(max(1, number), _column(kind))
        return made if str(made) == words else None


ROW = Unit()


def worded(words: str) -> tuple[str, str | None]:
    """Return a unit in anybody's words without its number of rows, and that number if it is told.

    A ledger's owner may have named a unit in words of their own.
    """
    most = MOST_ROWS.search(words)
    return (words, None) if most is None else (words[: most.start()], most[1])


def neighbours_of(unit: str, *, rows_disclosed: bool) -> str:
    """Describe how two data sets differ between which the promise holds."""
    return f"adding or removing {unit}{COUNTED if rows_disclosed else ''}"


def _column(kind: str) -> str | None:
    name = kind.removeprefix(VALUE_OF)
    if name != kind and QUOTED.fullmatch(name):
        with suppress(ValueError, SyntaxError):
            return str(ast.literal_eval(name))
    return None
