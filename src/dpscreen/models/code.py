"""A model as code on the raw table, an expression of SQL, R or Excel, generated from `RawModel`.

SQL is built as a tree with sqlglot, which writes it for the dialect that is asked for: so no name
of a column or level can end a literal, whatever the dialect escapes with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from importlib import resources
from itertools import product
from typing import Any

from dpscreen._core.messages import message
from dpscreen._core.words import did_you_mean, letters, plain
from dpscreen.models.explain import sentences
from dpscreen.models.raw import (
    Cell,
    Joint,
    Line,
    Lookup,
    NoFormula,
    RawModel,
    Term,
    Writer,
    raw_model_of,
    words_of,
)
from dpscreen.models.release import Release, statement_for
from dpscreen.tables.columns.base import NUMBER, Level, level_text
from dpscreen.tables.columns.date import ISO
from dpscreen.tables.days import text_pattern
from dpscreen.tables.encode import LOOK_ALIKE

COLUMNS_OF_A_SHEET = 16_384
LONGEST_EXCEL, LONGEST_EXCEL_TEXT = 8_192, 255
NO_DATABASES = ("", "dax", "prql", "solr", "tableau")
"""Dialects of sqlglot that no SQL database has."""
USUAL_DIALECT = "postgres"
CURRENCIES = "$€£¥%"
"""Signs around numbers that SQL takes away where the schema says that there may be some."""
YES_NO = {"yes": "true", "y": "true", "t": "true", "no": "false", "n": "false", "f": "false"}
"""Words of which databases may make booleans when they read a file, and the texts of these."""
_FIRST_EXCEL_DAY = 25_569
"""1970-01-01 in a sheet."""
_WEEKS = 7 * 102_738
"""Days in whole weeks, so many that no year since 1 has a negative number of days."""


def formula_of(
    release: Release, language: str, *, dialect: str | None = None, force: bool = False
) -> str:
    """Return a model as a formula of a language, sql, r or excel, with its privacy statement."""
    statement = statement_for(release, force=force)["privacy"]
    model = raw_model_of(release)
    if any("\0" in text for term in model.reads for text in _texts(term)):
        raise NoFormula(message("export.zero-byte"))
    if language == "sql":
        formula = _in_sql(model, dialect)
    elif dialect is not None:
        raise ValueError(message("export.dialect-of-sql"))
    else:
        formula = _in_r(model) if language == "r" else _in_excel(model, statement)
    if language == "excel":  # a cell holds no comments
        return formula
    sign = {"sql": "--", "r": "#"}[language]
    return "\n".join(
        [*(f"{sign} {line}" for line in notes_of(release, language, dialect)), formula]
    )


def notes_of(release: Release, language: str, dialect: str | None = None) -> list[str]:
    """Return what a reader of the formula should know, a line each."""
    target = release.about.get("target") or release.declared_target[0] or "the target"
    return sentences(
        release,
        "formula",
        predicted=release.words(release.family.words.predicted, target=target),
        promise=statement_for(release, force=True)["privacy"],
        language=language,
        dialect=dialect or USUAL_DIALECT,
        cells=cells_of(raw_model_of(release)) if language == "excel" else (),
    )


def _texts(term: Lookup | Line) -> Iterator[str]:
    yield term.cell.column
    values = term.values if isinstance(term, Lookup) else ()
    yield from (one for one in (*values, *term.cell.missing) if isinstance(one, str))


def number(value: float | None, missing: str = "NA_real_") -> str:
    """Write a number so that it reads back exactly, in brackets if it is negative."""
    if value is None:
        return missing
    return f"({value!r})" if value < 0 else repr(abs(float(value)))


def _split(values: Iterable[Level]) -> tuple[list[str], list[float]]:
    """Return the texts among some values, the words for booleans included, and the numbers."""
    every = list(values)
    words = [word for one in every for word in words_of(one)]
    return words, [one for one in every if not isinstance(one, str)]


# --- SQL ------------------------------------------------------------------------------------------


def dialects() -> list[str]:
    """Return the dialects of SQL that can be asked for."""
    from sqlglot.dialects.dialect import Dialect

    return sorted(name for name in Dialect.classes if name not in NO_DATABASES)


def _in_sql(model: RawModel, dialect: str | None) -> str:
    try:
        import sqlglot
    except ImportError:
        raise ImportError(message("export.sql-missing")) from None
    if dialect is None and any("\\" in text for term in model.reads for text in _texts(term)):
        raise NoFormula(message("export.backslash"))
    known = dialects()
    if dialect is not None and dialect not in known:
        guess, every = did_you_mean(dialect, known), ", ".join(known)
        raise NoFormula(message("export.dialect", given=plain(dialect), guess=guess, known=every))
    level = sqlglot.ErrorLevel.RAISE  # what a dialect cannot say must not be left out
    written = dialect or USUAL_DIALECT
    tree = _Sql(written).prediction(model)
    return str(tree.sql(dialect=written, pretty=True, unsupported_level=level))


class _Sql(Writer[Any]):
    """Writes a model as an expression of sqlglot, which has a tree and no text yet."""

    derives = True

    def __init__(self, dialect: str) -> None:
        from sqlglot import exp

        self.exp: Any = exp
        self.dialect = dialect

    def prediction(self, model: RawModel) -> Any:
        """Return the whole expression."""
        terms = [self.number(model.intercept), *map(self._term, model.terms)]
        total = self._joined(self.exp.Add, terms)
        found = self.written(model.whole, lambda _: self.exp.paren(total))
        bare = [one.cell for one in model.reads if not one.cell.declared and one.missing is None]
        nulls = [self._is_null(self._column(one)) for one in bare]
        signed = {one.cell for one in model.reads if not one.cell.plain}
        nulls += [self._may_have_signs(one) for one in sorted(signed, key=lambda one: one.column)]
        if not nulls:
            return found
        return self._case([(self._joined(self.exp.Or, nulls), self.exp.null())], found)

    def _joined(self, kind: Any, terms: list[Any]) -> Any:
        """Return a balanced sum or the like: databases limit how deep an expression may be."""
        if len(terms) == 1:
            return terms[0]
        half = (len(terms) + 1) // 2
        left, right = self._joined(kind, terms[:half]), self._joined(kind, terms[half:])
        return kind(this=left, expression=self.exp.paren(right) if half > 1 else right)

    def _term(self, term: Term) -> Any:
        if not isinstance(term, Joint):
            return self._read(term)
        read = [self.exp.paren(self._read(one)) for one in term.reads if one.missing is None]
        gone = self.exp.or_(*map(self._is_null, read)) if read else None
        found = self.written(term.of, lambda name: self._read(term.inputs[name]))
        return self._case([(gone, self.number(term.missing))], found)

    def _read(self, term: Lookup | Line) -> Any:
        if term.cell.kind == "number" and term.cell.marks.decimal != ".":
            raise NoFormula(message("export.decimal-comma", column=plain(term.cell.column)))
        if term.cell.kind != "day":
            return self._lookup(term) if isinstance(term, Lookup) else self._line(term)
        part, missing = self._part(term.cell, term.part), self.number(term.missing)
        if isinstance(term, Lookup):
            ifs = [
                self.exp.If(this=self.number(value), true=self.number(adds))
                for value, adds in term.numbers.items()
            ]
            value = self.exp.Case(this=part, ifs=ifs, default=missing.copy())
        else:
            value = self.written(term.whole, lambda _: part.copy())
        # First those declared to be missing.
        numbers = [self.number(one) for one in _split(term.cell.missing)[1]]
        gone = self._days(term.cell).isin(*numbers) if numbers else None
        return self._case([(gone, missing), (self._is_day(term.cell), value)], missing.copy())

    # --- cells ----------------------------------------------------------------------------------

    def _column(self, cell: Cell) -> Any:
        return self.exp.column(cell.column, quoted=True)

    def _text(self, cell: Cell) -> Any:
        kind = "VARCHAR(4000)" if self.dialect in ("oracle", "teradata") else "TEXT"
        return self.exp.Trim(this=self.exp.cast(self._column(cell), kind))

    def _double(self, cell: Cell) -> Any:
        return self.exp.cast(self._bare(cell) if not cell.plain else self._column(cell), "DOUBLE")

    def _bare(self, cell: Cell) -> Any:
        """Return the text of a cell; of a number with signs as declared, such as $1,500, without.

        The text stays as it is where what is left has not stood together, or is not grouped well.
        """
        text = self._text(cell)
        if cell.plain:
            return text
        inside, sign = text, cell.marks.thousands
        for one in "" if cell.marks.bare else CURRENCIES:
            inside = self._replaced(inside, one)
        inside = self.exp.Trim(this=inside)
        for one in LOOK_ALIKE.get(sign, ""):
            inside = self._replaced(inside, one, sign)
        place = self.exp.StrPosition(this=text.copy(), substr=self._replaced(inside, "-"))
        together = self.exp.GT(this=place, expression=self.exp.Literal.number(0))
        well = together
        if sign:  # SQLite needs several tests: those of the shorter text, unless blanks may group
            short = self.dialect == "sqlite" and sign != " "
            well = self.exp.and_(together, self._is_grouped(text if short else inside, sign))
        return self._case([(well, self._replaced(inside, sign) if sign else inside)], text)

    def _replaced(self, text: Any, sign: str, by: str = "") -> Any:
        signs = [self.exp.Literal.string(one) for one in (sign, by)]
        return self.exp.Anonymous(this="REPLACE", expressions=[text.copy(), *signs])

    def _is_grouped(self, text: Any, sign: str) -> Any:
        """Return whether a sign stands between groups of three digits alone, or nowhere."""
        digits = "[0-9]"
        if self.dialect != "sqlite":
            whole = f"({digits}{{1,3}}([{sign}]{digits}{{3}})+|{digits}*)"
            pattern = f"^[+-]?{whole}([.]{digits}*)?([eE][+-]?{digits}+)?$"
            return text.rlike(pattern)
        short = [f"*{sign}{k * digits}[^0-9]*" for k in range(3)]
        wrong = [f"{sign}*", f"*[^0-9]{sign}*", *short]
        wrong += [f"*{4 * digits}{sign}*", f"*{sign}{4 * digits}*", f"*.*{sign}*"]
        ended = self.exp.DPipe(this=text.copy(), expression=self.exp.Literal.string("."))
        tests = (self._globs(self.exp.paren(ended), one) for one in wrong)
        return self.exp.not_(self.exp.or_(*tests))

    def _globs(self, text: Any, pattern: str) -> Any:
        return self.exp.Glob(this=text, expression=self.exp.Literal.string(pattern))

    def _is_null(self, value: Any) -> Any:
        return value.is_(self.exp.null())

    def _is_number(self, cell: Cell) -> Any:
        """Return whether a cell is a finite number or the text of one."""
        if self.dialect == "sqlite":  # a text that is no number differs from what it is cast to
            column = self._column(cell) if cell.plain else self._bare(cell)
            same = self.exp.cast(column, "NUMERIC").eq(column)
            most = self.exp.Literal.number(repr(1.7976931348623157e308))
            return self.exp.and_(same, self.exp.Abs(this=self._double(cell)) <= most)
        return self._bare(cell).rlike(f"^{NUMBER}$".replace(r"\.", "[.]"))

    def _may_have_signs(self, cell: Cell) -> Any:
        """Return whether a cell is a text with digits that is not read as a number, as 12 EUR."""
        text = self._text(cell)
        lite = self.dialect == "sqlite"
        digits = self._globs(text, "*[0-9]*") if lite else text.rlike("[0-9]")
        return self.exp.and_(digits, self.exp.not_(self._is_number(cell)))

    def _is_one_of(self, cell: Cell, values: Iterable[Level]) -> Any | None:
        """Return whether a cell has one of some values; None if there are none."""
        words, numbers = _split(values)
        tests = [self._text(cell).isin(*words)] if words else []
        if numbers:
            # The number that a cell spells; some databases cast no truth to one.
            value = self.exp.cast(self._bare(cell), "DOUBLE")
            value = self._case([(self._is_number(cell), value)], None)
            tests.append(value.isin(*map(self.number, numbers)))
        return self.exp.or_(*tests) if tests else None

    # --- terms ----------------------------------------------------------------------------------

    def _line(self, line: Line) -> Any:
        value = self.written(line.whole, lambda _: self._double(line.cell))
        if not line.cell.declared:
            return value
        missing = self.number(line.missing)
        branches = [
            (self._is_one_of(line.cell, line.cell.missing), missing),
            (self._is_number(line.cell), value),
        ]
        for truth in {1.0, 0.0} - {*line.cell.missing}:
            words = self._text(line.cell).isin(*words_of(truth))
            branches.append((words, self.number(line.of_number(truth))))
        return self._case(branches, missing.copy())

    def _lookup(self, lookup: Lookup) -> Any:
        cell, branches = lookup.cell, []
        if lookup.missing != lookup.otherwise:
            missing = self.number(lookup.missing)
            branches += [(self._is_null(self._column(cell)), missing)]
            branches += [(self._is_one_of(cell, cell.missing), missing)]
        groups: dict[float, list[Level]] = {}
        for value, adds in _with_booleans(lookup.values).items():
            groups.setdefault(adds, []).append(value)
        branches += [
            (self._is_one_of(cell, values), self.number(adds))
            for adds, values in groups.items()
            if adds != lookup.otherwise or lookup.missing != lookup.otherwise
        ]
        otherwise = lookup.otherwise
        if cell.kind == "number" and lookup.missing != otherwise:  # what is no number is missing
            truths = self._text(cell).isin(*_split([1.0, 0.0])[0])
            branches.append((self.exp.or_(self._is_number(cell), truths), self.number(otherwise)))
            otherwise = lookup.missing
        return self._case(branches, self.number(otherwise))

    # --- days -----------------------------------------------------------------------------------

    def _is_day(self, cell: Cell) -> Any:
        iso = self._iso(cell)
        if self.dialect == "sqlite":  # which counts 30 February as a day of March
            days = self.exp.Anonymous(this="JULIANDAY", expressions=[iso])
            return self.exp.Anonymous(this="DATE", expressions=[days]).eq(iso)
        return self.exp.not_(self._is_null(self._date(cell)))

    def _iso(self, cell: Cell) -> Any:
        """Return the day as text, 2020-01-31; null for what is written otherwise.

        A column of dates reads so too, whatever format its texts were declared with.
        """
        branches, dash = [], self.exp.Literal.string("-")
        for form in dict.fromkeys((cell.form, ISO)):
            for like, cuts in _written(form):
                year, month, day = (self._padded(cell, *cuts[sign]) for sign in ("%Y", "%m", "%d"))
                day_text = self.exp.Concat(expressions=[year, dash, month, dash.copy(), day])
                tests = [self._text(cell).like(one) for one in (like, f"{like}T%", f"{like} %")]
                branches.append((self.exp.or_(*tests), day_text))
        return self._case(branches, None)

    def _cut(self, text: Any, start: int, width: int) -> Any:
        start, length = map(self.exp.Literal.number, (start, width))
        return self.exp.Substring(this=text, start=start, length=length)

    def _padded(self, cell: Cell, start: int, width: int) -> Any:
        """Return a part of the text, with a zero before a lone digit."""
        cut = self._cut(self._text(cell), start, width)
        if width > 1:
            return cut
        return self.exp.Concat(expressions=[self.exp.Literal.string("0"), cut])

    def _date(self, cell: Cell) -> Any:
        return self.exp.TryCast(this=self._iso(cell), to=self.exp.DataType.build("date"))

    def _days(self, cell: Cell) -> Any:
        first = self.exp.cast(self.exp.Literal.string("1970-01-01"), "date")
        return self.exp.DateDiff(this=self._date(cell), expression=first, unit=self.exp.var("DAY"))

    def _part(self, cell: Cell, part: str) -> Any:
        if part == "days":
            return self._days(cell)
        if part == "weekday":
            shifted = self.exp.paren(self._days(cell) + (_WEEKS + 3))
            return self.exp.paren(shifted % 7 + 1)
        cut = self._cut(self._iso(cell), *((1, 4) if part == "year" else (6, 2)))
        return self.exp.cast(cut, "DOUBLE")

    # --- pieces ---------------------------------------------------------------------------------

    def number(self, value: float | None) -> Any:
        """Return a double: with an exponent, as a decimal number could overflow."""
        if value is None:
            return self.exp.null()
        text = repr(abs(float(value)))
        found = self.exp.Literal.number(text if "e" in text else f"{text}e0")
        return self.exp.Neg(this=found) if value < 0 else found

    def _case(self, branches: Iterable[tuple[Any | None, Any]], default: Any | None) -> Any:
        """Return a CASE of the branches that have a condition; without any, the default."""
        ifs = [self.exp.If(this=when, true=then.copy()) for when, then in branches if when]
        return self.exp.Case(ifs=ifs, default=default) if ifs else default

    def operation(self, sign: str, left: Any, right: Any) -> Any:
        """Return an operation; ends are never null here: in that databases differ."""
        exp = self.exp
        if sign in ("minimum", "maximum"):
            lite = self.dialect == "sqlite"
            word = {"minimum": ("LEAST", "MIN"), "maximum": ("GREATEST", "MAX")}[sign][lite]
            return exp.Anonymous(this=word, expressions=[left, right])
        kinds = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul, "/": exp.Div, "<": exp.LT, "<=": exp.LTE}
        found = kinds[sign](this=left, expression=right)
        if sign in ("<", "<="):
            return self._case([(found, self.number(1.0))], self.number(0.0))
        return exp.paren(found)

    def function(self, name: str, of: Any) -> Any:
        """Return a function that databases have."""
        return {"log": self.exp.Ln, "sqrt": self.exp.Sqrt, "exp": self.exp.Exp}[name](this=of)

    def choice(self, value: Any, end: Any, below: Any, otherwise: Any) -> Any:
        """Return a CASE."""
        return self._case([(self.exp.LT(this=value, expression=end), below)], otherwise)


def _with_booleans(values: Mapping[Level, float]) -> Mapping[Level, float]:
    """Return what levels add; booleans too where levels are words that databases read as such."""
    truths: dict[Level, float] = {
        YES_NO.get(str(level).lower(), ""): adds for level, adds in values.items()
    }
    return {**truths, **values} if truths.keys() == {"true", "false"} else values


def _written(form: str) -> Iterator[tuple[str, dict[str, tuple[int, int]]]]:
    """Yield how a day may be written: a pattern of LIKE, and where year, month and day stand.

    Month and day may have one digit, unless digits stand alone.
    """
    parts = re.findall("%.|.", form)
    digits = all(part.startswith("%") for part in parts)
    widths = [(4,) if one == "%Y" else (2,) if digits else (2, 1) for one in parts if one[0] == "%"]
    for chosen in product(*widths):
        left, like, cuts = list(chosen), "", {}
        for part in parts:
            if part[0] == "%":
                cuts[part] = (len(like) + 1, left[0])
                like += "_" * left.pop(0)
            else:
                like += part
        yield like, cuts


# --- R --------------------------------------------------------------------------------------------


def _r_helpers(names: Collection[str]) -> str:
    """Return the functions of `export.R` that have these names."""
    file = resources.files("dpscreen.models").joinpath("export.R")
    every = file.read_text(encoding="utf-8").strip().split("\n\n")
    text = "\n".join(one for one in every if one.partition(" <- ")[0] in names)
    true, false = (", ".join(map(_r_text, words_of(one))) for one in (1.0, 0.0))
    words = {"@NUMBER@": NUMBER.replace(r"\.", "[.]"), "@TRUE@": true, "@FALSE@": false}
    for mark, shown in words.items():
        text = text.replace(mark, shown)
    return text


def _in_r(model: RawModel) -> str:
    names = {".text", ".number", ".fill"}
    if any(one.cell.kind == "day" for one in model.reads):
        names |= {".day", ".part", ".pick_part"}
    if any(isinstance(one, Lookup) and not one.part for one in model.reads):
        names.add(".pick")
    total = " +\n  ".join([number(model.intercept), *map(_r_term, model.terms)])
    total = _R.written(model.whole, lambda _: total)
    return "\n".join(["local({", _r_helpers(names), total, "})"])


class Text(Writer[str]):
    """Writes an expression as text, in which every operation has its brackets.

    `functions` has what differs from a function of the same name, `words` those of two values, and
    `either` a choice.
    """

    def __init__(self, functions: dict[str, str], words: dict[str, str], either: str) -> None:
        self._functions, self._words, self._either = functions, words, either

    def number(self, value: float) -> str:
        """Return a number that reads back exactly."""
        return number(value)

    def operation(self, sign: str, left: str, right: str) -> str:
        """Return two values and a sign between, or a function of them."""
        if sign in self._words:
            return self._words[sign].format(left, right)
        return f"({left} {sign} {right})"

    def function(self, name: str, of: str) -> str:
        """Return a function."""
        return self._functions.get(name, f"{name}(%s)") % of

    def choice(self, value: str, end: str, below: str, otherwise: str) -> str:
        """Return one of two values."""
        return self._either.format(value, end, below, otherwise)


_COMPARED = {"<": "(({} < {}) * 1)", "<=": "(({} <= {}) * 1)"}
_R = Text(
    {"square": "(%s)^2", "expit": "plogis(%s)"},
    {"minimum": "pmin({}, {})", "maximum": "pmax({}, {})", **_COMPARED},
    "ifelse({} < {}, {}, {})",
)


def _r_term(term: Term) -> str:
    if isinstance(term, Joint):
        value = _R.written(term.of, lambda name: _r_read(term.inputs[name]))
        return f".fill({value}, {number(term.missing)})"
    return _r_read(term)


def _r_read(term: Lookup | Line) -> str:
    cell, gone = term.cell, _r_numbers(_split(term.cell.missing)[1])
    name = _escaped("`")(cell.column)
    if cell.kind == "day":
        pattern = _r_text(text_pattern(cell.form))
        days = f".day({name}, {_r_text(cell.form)}, {pattern}, {gone})"
        value = f".part({days}, {_r_text(term.part)})"
    else:
        value = f".number({name}, {'TRUE' if cell.plain else 'FALSE'}"
        value += f", {gone})" if isinstance(term, Line) else ")"
    if isinstance(term, Line):
        added = _R.written(term.whole, lambda _: value)
        return added if term.missing is None else f".fill({added}, {number(term.missing)})"
    numbers, adds = _r_numbers(term.numbers), _r_numbers(term.numbers.values())
    if term.part:
        return f".pick_part({value}, {numbers}, {adds}, {number(term.missing)})"
    words = [(word, adds) for one, adds in term.values.items() for word in words_of(one)]
    texts, text_adds = [one for one, _ in words], [one for _, one in words]
    shown = (
        *(name, value, _r_texts(texts), _r_numbers(text_adds), numbers, adds),
        *(_r_texts(_split(cell.missing)[0]), gone, number(term.missing), number(term.otherwise)),
        "TRUE" if cell.kind == "number" else "FALSE",
    )
    return f".pick({', '.join(shown)})"


def _escaped(mark: str) -> Callable[[str], str]:
    """Return what quotes a text by a mark, before which a backslash stands inside."""

    def quoted(text: str) -> str:
        shown = text.replace("\\", "\\\\").replace(mark, f"\\{mark}")
        return mark + "".join(f"\\x{ord(one):02x}" if one < " " else one for one in shown) + mark

    return quoted


_r_text = _escaped('"')


def _r_texts(texts: list[str]) -> str:
    return f"c({', '.join(map(_r_text, texts))})" if texts else "character(0)"


def _r_numbers(values: Collection[float]) -> str:
    return f"c({', '.join(map(number, values))})" if values else "numeric(0)"


# --- Excel ----------------------------------------------------------------------------------------


def cells_of(model: RawModel) -> list[tuple[str, str]]:
    """Return each column with its cell in a sheet: A2 for the first."""
    return [(name, f"{letters(j).upper()}2") for j, name in enumerate(model.columns)]


def _in_excel(model: RawModel, statement: str) -> str:
    cells = dict(cells_of(model))
    total = "+".join([number(model.intercept), *(_x_term(one, cells) for one in model.terms)])
    total = _EXCEL.written(model.whole, lambda _: total)
    text = f"={total}+N({_x_text(statement[:LONGEST_EXCEL_TEXT])})"  # N of a text is 0: a comment
    if len(cells) > COLUMNS_OF_A_SHEET or len(text) > LONGEST_EXCEL:
        raise NoFormula(message("export.large-for-excel"))
    return text


def _x_term(term: Term, cells: dict[str, str]) -> str:
    if not isinstance(term, Joint):
        return _x_read(term, cells[term.cell.column])
    value = _EXCEL.written(
        term.of,
        lambda name: f"({_x_read(term.inputs[name], cells[term.inputs[name].cell.column])})",
    )
    gone = [_x_gone(one, cells[one.cell.column]) for one in term.reads if one.missing is None]
    return f"IF(OR({','.join(gone)}),{number(term.missing)},{value})" if gone else value


def _x_empty(term: Lookup | Line, cell: str) -> str:
    gone = (one for one in _split(term.cell.missing)[0] if one)
    return ",".join([f'TRIM({cell})=""', *(f"EXACT({cell},{_x_text(one)})" for one in gone)])


def _x_gone(term: Lookup | Line, cell: str) -> str:
    """Return whether a cell is missing; of a text that is no number, its value is #N/A."""
    codes = _split(term.cell.missing)[1]
    days = f"(INT({cell})-{_FIRST_EXCEL_DAY})" if term.cell.kind == "day" else f"N({cell})"
    coded = _x_coded(days, codes, "TRUE", "FALSE")
    return f"IF(ISTEXT({cell}),OR({_x_empty(term, cell)}),IF(ISBLANK({cell}),TRUE,{coded}))"


def _x_read(term: Lookup | Line, cell: str) -> str:
    """Return what a cell adds; #N/A where it holds a text that Excel may read otherwise."""
    codes = _split(term.cell.missing)[1]
    missing, empty = number(term.missing, "NA()"), _x_empty(term, cell)
    if term.cell.kind == "day":
        days = f"(INT({cell})-{_FIRST_EXCEL_DAY})"
        parts = {"days": days, "weekday": f"(MOD({days}+3,7)+1)"}
        part = parts.get(term.part, f"{term.part.upper()}({cell})")
        if isinstance(term, Line):
            value = _EXCEL.written(term.whole, lambda _: part)
        else:
            value = _x_numbers(term, part, term.missing)
        value = _x_coded(days, codes, missing, value)
        return f"IF(ISNUMBER({cell}),{value},IF(OR({empty}),{missing},NA()))"
    if isinstance(term, Line):
        value, others = _EXCEL.written(term.whole, lambda _: cell), "NA()"
        truths = [number(term.of_number(one)) for one in (1.0, 0.0)]
    else:
        value, others = _x_numbers(term, cell, term.otherwise), _x_words(term, cell)
        truths = [number(term.values.get(one, term.otherwise), "NA()") for one in (1.0, 0.0)]
    truths = [
        missing if one in codes else text for one, text in zip((1.0, 0.0), truths, strict=True)
    ]
    value = _x_coded(cell, codes, missing, value)
    truth = f"IF({cell},{truths[0]},{truths[1]})"
    text = f"IF(OR({empty}),{missing},{others})"
    return f"IF(ISNUMBER({cell}),{value},IF(ISLOGICAL({cell}),{truth},{text}))"


def _x_numbers(lookup: Lookup, value: str, otherwise: float | None) -> str:
    """Return what a number adds: sums, as Excel limits how deep IF may be."""
    if not lookup.numbers:
        return number(otherwise, "NA()")
    if otherwise is None:
        known = ",".join(f"{value}={number(one)}" for one in lookup.numbers)
        return f"IF(OR({known}),{_x_numbers(lookup, value, 0.0)},NA())"
    extra = (
        f"({value}={number(one)})*{number(adds - otherwise)}"
        for one, adds in lookup.numbers.items()
        if adds != otherwise
    )
    return "+".join([number(otherwise), *extra])


def _x_words(lookup: Lookup, cell: str) -> str:
    """Return what a text adds. EXACT, as = ignores case.

    A text that is none of the words adds `otherwise`, unless it might be one: with blanks around
    it, or where some word is a number.
    """
    if lookup.cell.kind == "number":
        return "NA()"
    words = [
        (word, adds)
        for one, adds in lookup.values.items()
        for word in (*words_of(one), *(() if isinstance(one, str) else (level_text(one),)))
    ]
    tests = {f"EXACT({cell},{_x_text(word)})": adds for word, adds in words}
    extra = [f"{test}*{number(adds)}" for test, adds in tests.items() if adds]
    shown = number(lookup.otherwise, "NA()")
    unknown = f"IF(EXACT(TRIM({cell}),{cell}),{shown},NA())"
    other = "NA()" if lookup.number_read else unknown
    return f"IF(OR({','.join(tests)}),{'+'.join(extra) or '0'},{other})"


def _x_coded(value: str, codes: list[float], missing: str, found: str) -> str:
    if not codes:
        return found
    tests = ",".join(f"{value}={number(one)}" for one in codes)
    return f"IF(OR({tests}),{missing},{found})"


_X_FUNCTIONS = {
    "log": "LN(%s)",
    "log1p": "LN(1+%s)",
    "log2": "LOG(%s,2)",
    "log10": "LOG10(%s)",
    "sqrt": "SQRT(%s)",
    "exp": "EXP(%s)",
    "expm1": "(EXP(%s)-1)",
    "expit": "1/(1+EXP(-(%s)))",
    "square": "(%s)^2",
}


_EXCEL = Text(
    _X_FUNCTIONS,
    {"minimum": "MIN({},{})", "maximum": "MAX({},{})", **_COMPARED},
    "IF({}<{},{},{})",
)


def _x_text(text: str) -> str:
    if len(text) > LONGEST_EXCEL_TEXT:
        raise NoFormula(message("export.long-for-excel"))
    return '"' + text.replace('"', '""') + '"'
