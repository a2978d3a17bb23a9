"""Words and numbers for readers: in tables, on pages and in sentences."""

from __future__ import annotations

import difflib
import math
import re
import textwrap
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from html import escape

WIDTH, WIDEST_NOTE = 79, 100
"""How long lines of text are: a terminal has 80 columns, unless somebody widens it; and notes below
a table, which may be wider itself."""

# --- bounds in few digits, rounded to the side on which they still hold ---------------------------

SMALLEST = 1e-300
"""What underflows is still not nothing."""


def rounded(number: Fraction | float, *, digits: int, direction: str) -> float:
    """Return the number to so many digits, rounded in a direction that `decimal` knows."""
    ratio = Fraction(number)
    context = Context(prec=digits, rounding=direction)
    return float(context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))


def rounded_up(bound: float, *, digits: int) -> str:
    """Write an upper bound so that what is read is one too; 0.01 stays 0.01."""
    written = Fraction(repr(float(max(bound, SMALLEST))))
    shown = rounded(written, digits=digits, direction=ROUND_CEILING)
    return f"{shown:.{digits}g}"


def percent_at_most(share: float) -> str:
    """Write an upper bound on a probability in percent, with digits enough to differ from 1."""
    value = 100 * Decimal(repr(float(share)))
    rest = min(value, 100 - value)
    places = max(1, 1 - rest.adjusted()) if rest > 0 else 1
    step = Decimal(1).scaleb(-min(places, 6))
    shown = f"{value.quantize(step, rounding=ROUND_CEILING):f}"
    return shown.rstrip("0").rstrip(".") + " %"


ELLIPSIS = "…"
_LONGEST = 200
_MOST_ACCENTS = 3
_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn")
"""Categories of signs that are not shown: control, marks of direction, lone surrogates."""
_MARKDOWN = re.compile(r"([\\`*_\[\]#|~$])")


# --- lists and guesses ----------------------------------------------------------------------------


def listed(names: Iterable[object], joint: str = "and") -> str:
    """Join words as one writes them: a, b and c."""
    *first, last = [str(name) for name in names] or [""]
    return f"{', '.join(first)} {joint} {last}" if first else last


def some(names: Sequence[object], most: int = 8) -> str:
    """Join words, and count those for which there is no room."""
    if len(names) <= most:
        return listed(names)
    return f"{', '.join(str(name) for name in names[:most])} and {len(names) - most} more"


def how_many(amount: int, noun: str) -> str:
    """Return "1 row", "2 rows"."""
    return f"{amount} {noun}" if amount == 1 else f"{amount} {noun}s"


def outcome(label: object) -> str:
    """Return a class as people say it: yes and no, or what it is called."""
    return ("no", "yes")[label] if isinstance(label, bool) else plain(str(label))


def meant(given: str, known: Iterable[str]) -> str | None:
    """Return the known word that a mistyped one is close to, if there is one; case is no typo."""
    folded = {word.casefold(): word for word in reversed(list(known))}
    close = difflib.get_close_matches(given.casefold(), list(folded), n=1)
    return folded[close[0]] if close else None


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return " Did you mean 'this'?", to stand after a sentence, or nothing."""
    close = meant(given, known)
    return f" Did you mean '{close}'?" if close else ""


# --- text from files and libraries ----------------------------------------------------------------


def first_line(reason: BaseException) -> str:
    """What another library said, short enough to stand inside a sentence."""
    return (str(reason).strip() or type(reason).__name__).splitlines()[0]


def plain(text: str) -> str:
    """Return text on one line, with what cannot be printed written as an escape."""
    shown = "".join(one if one.isprintable() else _escape(one) for one in text)
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + ELLIPSIS


def prose(text: str) -> str:
    """Return a paragraph on one line, of any length, with nothing that cannot be printed."""
    return "".join(one if one.isprintable() else _escape(one) for one in " ".join(text.split()))


def _escape(one: str) -> str:
    return one.encode("unicode_escape").decode("ascii")


def markdown(text: str) -> str:
    """Return text that Markdown shows as it is: no emphasis, cell, heading or tag comes of it."""
    shown = _MARKDOWN.sub(r"\\\1", prose(text))
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def shortened(text: str, cells: int) -> str:
    """Return the text on one line, without control signs, and at most `cells` wide.

    Wide signs count two.
    """
    shown = (sign for sign in text if sign.isspace() or unicodedata.category(sign) not in _UNSEEN)
    clean = "".join(" " if sign.isspace() else sign for sign in shown)
    clean = without_towers(" ".join(clean.split())) or "(no name)"
    if sum(map(_width, clean)) <= cells:
        return clean
    kept, used = "", 1
    for sign in clean:
        used += _width(sign)
        if used > cells:
            break
        kept += sign
    return kept.rstrip() + ELLIPSIS


def without_towers(text: str) -> str:
    """Return the text with at most three accents on a letter: more would cover its neighbours."""
    kept, accents = [], 0
    for sign in text:
        accents = accents + 1 if unicodedata.category(sign) in ("Mn", "Me") else 0
        if accents <= _MOST_ACCENTS:
            kept.append(sign)
    return "".join(kept)


def _width(sign: str) -> int:
    return 2 if unicodedata.east_asian_width(sign) in ("W", "F") else 1


# --- numbers --------------------------------------------------------------------------------------


NOTHING = "–"


THIN_SPACE, HARD_SPACE = "\u202f", "\u00a0"
"""What stands between thousands on pages, and in text: no line is broken there."""

WRITTEN_OUT = -7, 12
"""Beyond which powers of ten numbers are written with an exponent."""


def number(value: float, *, digits: int = 6) -> str:
    """Return a number as people write it: 1 950, 0.00010756."""
    if not math.isfinite(value):
        return str(value)
    shown = float(f"{value:.{digits}g}")
    power = math.floor(math.log10(abs(shown))) if shown else 0
    if not WRITTEN_OUT[0] <= power <= WRITTEN_OUT[1]:
        return f"{value:.{digits}g}"
    text = f"{shown:,.{max(0, digits - 1 - power)}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace(",", HARD_SPACE)


def cell(value: float, *, digits: int = 6) -> str:
    """Return a number as spreadsheets read it: 1950, 0.00010756."""
    return number(value, digits=digits).replace(HARD_SPACE, "")


def figure(value: float, *, digits: int = 4) -> str:
    """Return a number with a true minus sign, as pages have it."""
    return number(value, digits=digits).replace("-", "−").replace(HARD_SPACE, THIN_SPACE)


def nice_step(size: float) -> float:
    """Return the nearest of 1, 2 and 5 times a power of ten, by ratio; 1 if there is no size."""
    if not (math.isfinite(size) and size > 0):
        return 1.0
    power = math.floor(math.log10(size))
    mantissas = (1, 2, 5, 10)
    leading = size / 10.0**power if power > -300 else 1.0
    nearest = min(mantissas, key=lambda one: abs(math.log(one / leading)))
    return float(f"{nearest}e{power}")


def letters(place: int) -> str:
    """Return a, b, …, z, aa, ab, … for 0, 1, …"""
    first, last = divmod(place, 26)
    return (letters(first - 1) if first else "") + chr(ord("a") + last)


def decimals(value: float | None) -> str:
    """Return three decimals, as the paper prints; of large ones four digits, none as a dash."""
    if value is None or math.isnan(value):
        return NOTHING
    text = f"{value:.3f}" if abs(value) < 1000 else f"{value:.4g}"
    return text.replace("-", "−") if value < 0 else text


def percent(share: float) -> str:
    """Return a probability in percent, with as many digits as separate it from 0 and 1."""
    rest = 100 * min(share, 1 - share)
    if rest < 1e-6:
        return "more than 99.9999 %" if share > 0.5 else "less than 0.0001 %"
    digits = 0 if rest >= 10 else math.ceil(-math.log10(rest)) + 1
    shown = f"{100 * share:.{digits}f}"
    return (shown.rstrip("0").rstrip(".") if "." in shown else shown) + " %"


def whole_percent(share: float) -> str:
    """Return a share as whole per cent; what is small but not nothing as < 1 %."""
    if 0 < share < 0.005:
        return "< 1 %"
    return "> 999 %" if share > 9.995 else f"{100 * share:.0f} %"


def duration(seconds: float) -> str:
    """Return "40 s", "3 min" or "1 h 20 min"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def span(values: list[int]) -> str:
    """Return "20", or "2 to 20" where they differ."""
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


# --- effects --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EffectScale:
    """From a coefficient times a step, an effect, to what is shown of it.

    `column` is what a data frame calls what is shown. Of a `ratio`, no effect is 1, axes are
    logarithmic, and intervals are shown on the same scale.
    """

    heading: str
    shown: Callable[[float], float]
    sign: str = ""
    column: str = "effect"
    ratio: bool = False

    @property
    def column_heading(self) -> str:
        """Return the heading of cells that hold numbers alone."""
        return self.heading + self.sign

    def text(self, effect: float, *, digits: int = 4) -> str:
        """Return an effect as sentences have it."""
        return number(self.shown(effect), digits=digits) + self.sign

    def figure(self, effect: float) -> str:
        """Return an effect as pages have it."""
        return figure(self.shown(effect)) + self.sign


def exponential(effect: float) -> float:
    """Return e^effect, infinity where that overflows."""
    return math.exp(effect) if effect < 709 else math.inf


def _per_cent(effect: float) -> float:
    return 100 * math.expm1(effect) if effect < 704 else math.inf


LINEAR = EffectScale("effect", float)
PER_CENT = EffectScale("effect", _per_cent, "\u00a0%", column="effect_percent")


# --- tables, as text in a terminal and as HTML in a notebook --------------------------------------

LONGEST_NAME = 32
YEAR = 365.25
"""Days: the step of a date."""


class PrintedTable(ABC):
    """A table with a title, and notes below it, that prints itself."""

    title: str
    notes: tuple[str, ...]

    @abstractmethod
    def _cells(self) -> list[list[str]]:
        """Return the table as text, headings first."""

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head, *body = self._cells()
        rows = "".join(_html_row(cells, "td") for cells in body)
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return (
            f"<table><caption>{escape(self.title)}</caption><thead>{_html_row(head, 'th')}</thead>"
            f"<tbody>{rows}</tbody></table>{notes}"
        )

    def to_latex(self) -> str:
        """Return the table in LaTeX, with the rules of the booktabs package, and its notes."""
        head, *body = ([_latex(one) for one in row] for row in self._cells())
        lines = [
            r"\begin{table}",
            rf"\caption{{{_latex(self.title)}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}",
            r"\toprule",
            " & ".join(head) + r" \\",
            r"\midrule",
            *(" & ".join(row) + r" \\" for row in body),
            r"\bottomrule",
            r"\end{tabular}",
            *(rf"\par {_latex(note)}" for note in self.notes),
            r"\end{table}",
        ]
        return "\n".join(lines) + "\n"

    def _lines(self) -> Iterator[str]:
        cells = self._cells()
        widths = column_widths(cells)
        head, *body = (aligned(row, widths) for row in cells)
        across = max(sum(widths) + 2 * (len(widths) - 1), len(self.title))
        yield from (self.title, "=" * across, head, "-" * across, *body, "=" * across)
        wide = max(across, WIDEST_NOTE)
        yield from (textwrap.fill(note, wide, break_on_hyphens=False) for note in self.notes)


_LATEX = {sign: f"\\{sign}" for sign in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": "$|$",
    "<": "$<$",
    ">": "$>$",
    "→": r"$\to$",
    "−": "$-$",
    "²": "$^2$",
    "ε": r"$\varepsilon$",
    "δ": r"$\delta$",
    "≥": r"$\ge$",
    "≤": r"$\le$",
    "\u00a0": "~",
}


def _latex(text: str) -> str:
    """Return a text in LaTeX, its signs escaped."""
    return "".join(_LATEX.get(sign, sign) for sign in text)


def column_widths(cells: Sequence[Sequence[str]]) -> list[int]:
    """Return how wide each column of a table is."""
    return [max(map(len, column)) for column in zip(*cells, strict=True)]


def aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return a row as one line: the first cell to the left, numbers to the right."""
    first, *rest = zip(cells, widths, strict=True)
    padded = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)]
    return "  ".join(padded).rstrip()


def short_name(name: str) -> str:
    """Return a column's name, safe to print and no longer than a table has room for."""
    text = plain(name)
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"


def step_words(step: float, zero_one: bool) -> str:
    """Return a step as tables have it, with hard spaces alone: 0→1, +1 year or +100 000."""
    return "0→1" if zero_one else f"+1{HARD_SPACE}year" if step == YEAR else f"+{number(step)}"


def with_marks(cells: list[list[str]], marks: Sequence[str]) -> list[list[str]]:
    """Return a table with a last column of footnote letters for its body, if there are any."""
    column = ["", *marks]
    return [[*row, one] for row, one in zip(cells, column, strict=True)] if any(marks) else cells


def _html_row(cells: Sequence[str], kind: str) -> str:
    return "<tr>" + "".join(f"<{kind}>{escape(cell)}</{kind}>" for cell in cells) + "</tr>"


# --- what power means -----------------------------------------------------------------------------

FALSE_RATE = 0.05
"""The share of features without effect that may be detected: the rate at which power is stated."""

DETECTED = (
    f"A feature counts as detected if its coefficient is larger in size than those of "
    f"{whole_percent(1 - FALSE_RATE)} of the features without effect, in simulated tables of the "
    f"same kind."
)
