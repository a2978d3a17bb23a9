"""Formulas: the features of a model as terms of declared columns.

>>> formula = read_formula("charges ~ age + I(age**2) + smoker*bmi + C(region)")
>>> formula.features(columns)      # derived columns: name, expression, bounds

formulaic parses the operators (+ : * ** / - and .); what stands inside a term is evaluated row by
row, with declared levels, bounds and knots only. A function that would learn from rows is refused,
and the refusal names what to write instead. docs/guide/formulas.md is for users.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from dpscreen._core.messages import message
from dpscreen._core.words import did_you_mean, first_line, plain
from dpscreen.tables.arithmetic import (
    Constant,
    Expression,
    Feature,
    Function,
    Operation,
    OutsideDomain,
    Pieces,
    Power,
)
from dpscreen.tables.columns import CategoryColumn, Column
from dpscreen.tables.columns.base import FUNCTIONS, TRANSFORMS, UNCHANGED, level_text
from dpscreen.tables.columns.date import DateColumn
from dpscreen.tables.columns.number import NARROWEST, WIDEST, BooleanColumn

MOST_FEATURES = 10_000
HIGHEST_POWER = 10
_LEARNS = {
    **{word: word for word in ("scale", "center", "te", "lag", "hashed")},
    "standardize": "scale",
    **dict.fromkeys(("cr", "cc", "cs"), "knots"),
}
"""Functions of formulaic and patsy that learn from rows, by the message of what and instead."""


class FormulaProblem(ValueError):
    """A formula that cannot be used, and what to write instead."""


@dataclass(frozen=True)
class DerivedColumn:
    """A feature that a formula makes: an expression on declared columns, within its bounds."""

    name: str
    of: Expression
    bounds: tuple[float, float]
    term: str
    centred: bool = False
    """Whether it is centred, which leaves the model the same if there is an intercept."""


@dataclass(frozen=True)
class Formula:
    """A formula as parsed; columns are looked up when features are made."""

    text: str
    target: str
    target_transform: str
    terms: tuple[tuple[str, ...], ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of columns, or of parts of dates, that the terms use, in order."""
        factors = dict.fromkeys(factor for term in self.terms for factor in term)
        used = (name for one in factors for name in _names_in(_tree(one)))
        return tuple(dict.fromkeys(used))

    @property
    def term_texts(self) -> tuple[str, ...]:
        """The terms as they are written, names in backticks where they need them."""
        return tuple(_unquoted(":".join(one), "`{}`") for one in self.terms)

    def features(self, columns: Mapping[str, Column]) -> tuple[DerivedColumn, ...]:
        """Return the derived columns, for columns that are declared completely."""
        return tuple(_Builder(self, columns).features())


def read_formula(text: str, columns: Sequence[str] = ()) -> Formula:
    """Parse a formula; `columns` is what a point stands for on the right-hand side."""
    from formulaic.parser import DefaultFormulaParser  # type: ignore[import-untyped]

    right = text.partition("~")[2]
    target, transform = formula_target(text)
    others = [one for one in columns if one != target]
    others = [one if one.isidentifier() else _placeholder(one) for one in others]
    context = {"__formulaic_variables_available__": others}
    try:
        terms = DefaultFormulaParser().get_terms(f"~ {_unticked(right)}", context=context)
    except Exception as error:  # whatever the parser raises: a formula is public, and short
        raise FormulaProblem(message("formula.unparsed", reason=first_line(error))) from None
    found = tuple(
        tuple(factor.expr for factor in term.factors) for term in getattr(terms, "rhs", terms)
    )
    if ("1",) not in found:
        raise FormulaProblem(message("formula.no-intercept"))
    found = tuple(term for term in found if term != ("1",))
    if not found:
        raise FormulaProblem(message("formula.no-term"))
    return Formula(text, target, transform, found)


def name_in_formula(name: str) -> str:
    """Return the name of a column as a formula has it: in backticks if it is no identifier."""
    return name if name.isidentifier() and not keyword.iskeyword(name) else f"`{name}`"


def _placeholder(name: str) -> str:
    """Return an identifier that stands for any name."""
    return f"quoted_name_{name.encode().hex()}"


def _unticked(part: str) -> str:
    return re.sub("`([^`]*)`", lambda found: _placeholder(found[1]), part)


def _unquoted(text: str, form: str = "{}") -> str:
    """Return a text with the names that identifiers stand for."""
    names = re.compile("quoted_name_((?:[0-9a-f]{2})*)")
    return names.sub(lambda found: form.format(bytes.fromhex(found[1]).decode()), text)


def formula_target(text: str) -> tuple[str, str]:
    """Return the target of a formula and its transform, "none" without one."""
    left, sign, _ = text.partition("~")
    if not sign or not left.strip():
        raise FormulaProblem(message("formula.no-target"))
    match _tree(_unticked(left).strip()):
        case ast.Name() as name:
            return _unquoted(name.id), "none"
        case ast.Call(func=function, args=[ast.Name() as name], keywords=[]):
            word = _function_name(function)
            if word in TRANSFORMS and word != UNCHANGED.name:
                return _unquoted(name.id), word
    raise FormulaProblem(message("formula.left-side", transforms=tuple(TRANSFORMS)[1:]))


def _tree(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        raise FormulaProblem(message("formula.no-expression", text=plain(text))) from None


def _name_of(node: ast.expr) -> str | None:
    return _unquoted(node.id) if isinstance(node, ast.Name) else None


def _function_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id="np" | "numpy" | "contr"), attr=name):
            return name
    raise FormulaProblem(message("formula.no-function", text=ast.unparse(node)))


def _names_in(node: ast.expr) -> Iterator[str]:
    """Yield the variables of an expression: no names of functions or of coding schemes."""
    match node:
        case ast.Name(id=name):
            yield _unquoted(name)
        case ast.Call(func=function, args=args):
            if _function_name(function) in ("C", "bs", "poly"):
                yield from (name for one in args[:1] for name in _names_in(one))
            else:
                yield from (name for one in args for name in _names_in(one))
        case _:
            children = (one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr))
            yield from (name for child in children for name in _names_in(child))


# --- factors --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Factor:
    """One factor of a term: its columns, by the ends of their names.

    Of a category, `reference` is the column that is left out where the intercept, or the rest of
    the term, is in the model. `power` says of which variable a whole power is, and which.
    """

    columns: tuple[tuple[str, Expression], ...]
    reference: int | None = None
    power: tuple[str, int] | None = None
    centred: tuple[tuple[str, Expression], ...] = field(default=())
    """The same columns, 0 at the middles of the declared bounds; none of what is 0 or 1."""
    moved: bool = False
    """Whether `columns` are centred too, as the higher powers of poly() are."""


class _Builder:
    """Makes the features of a formula from declared columns."""

    def __init__(self, formula: Formula, columns: Mapping[str, Column]) -> None:
        self._formula, self._columns = formula, columns
        self.bounds: dict[str, tuple[float, float]] = {}
        self._indicators: set[str] = set()
        for column in map(self._column, formula.names):
            # A reference level has no bounds of its own.
            found = dict.fromkeys(column.every_feature, (0.0, 1.0))
            if not isinstance(column, CategoryColumn):
                found |= dict(zip(column.feature_names, column.feature_bounds, strict=True))
            self.bounds |= found
            if isinstance(column, CategoryColumn | BooleanColumn):
                self._indicators |= set(found)
            if isinstance(column, DateColumn):
                self._indicators |= {one for one, pair in found.items() if pair == (0.0, 1.0)}
        every = dict.fromkeys(one for term in formula.terms for one in term)
        self._factors = {one: self._factor(one) for one in every}
        self._model = {frozenset(term) for term in formula.terms} | {frozenset[str]()}

    def _column(self, name: str) -> Column:
        if name in self._columns:
            return self._columns[name]
        for column in self._columns.values():
            if isinstance(column, DateColumn) and name in column.every_feature:
                return column
        guess = did_you_mean(name, list(self._columns))
        raise FormulaProblem(message("formula.no-column", name=plain(name), guess=guess))

    def features(self) -> Iterator[DerivedColumn]:
        """Yield the features of all terms."""
        seen: set[str] = set()
        for term in self._formula.terms:
            for name, expression in self._term(term):
                if name in seen:
                    raise FormulaProblem(message("formula.same-name", name=name))
                seen.add(name)
                if len(seen) > MOST_FEATURES:
                    raise FormulaProblem(message("formula.too-many", most=MOST_FEATURES))
                bounds = self._enclosure(name, expression)
                centred = bool(self._centred(term)) or any(self._factors[one].moved for one in term)
                yield DerivedColumn(name, expression, bounds, _unquoted(":".join(term)), centred)

    def _enclosure(self, name: str, expression: Expression) -> tuple[float, float]:
        if isinstance(expression, Feature):
            return self.bounds[expression.name]
        if self._is_indicator(expression):
            return 0.0, 1.0
        try:
            low, high = expression.enclosure(self.bounds)
        except OutsideDomain as problem:
            used = tuple(
                message("formula.declared", name=one, bounds=self.bounds[one])
                for one in expression.occurrences()
            )
            why = message("formula.domain", term=name, reason=problem.args[0], used=used)
            raise FormulaProblem(why) from None
        if not NARROWEST <= high - low <= WIDEST:
            raise FormulaProblem(message("formula.constant", term=name))
        # Whole numbers next to each other would be taken for the bounds of two values.
        return (low, high + 2.0**-20) if high - low == 1 and low == np.floor(low) else (low, high)

    def _is_indicator(self, one: Expression) -> bool:
        """Whether an expression is 0 or 1 in every row."""
        match one:
            case Feature(name=name):
                return name in self._indicators
            case Operation(sign="*", left=left, right=right):
                return self._is_indicator(left) and self._is_indicator(right)
        return isinstance(one, Operation) and one.sign in ("<", "<=")

    def _term(self, term: tuple[str, ...]) -> Iterator[tuple[str, Expression]]:
        """Yield the names and expressions of a term: products of its factors' columns."""
        centred = self._centred(term)
        groups = []
        for one in term:
            factor = self._factors[one]
            columns = list(factor.centred if one in centred else factor.columns)
            if factor.reference is not None and frozenset(term) - {one} in self._model:
                columns.pop(factor.reference)
            groups.append(columns)
        for parts in product(*groups):
            expression = parts[0][1]
            for _, other in parts[1:]:
                expression = Operation("*", expression, other)
            yield ":".join(_unquoted(name) for name, _ in parts), expression

    def _centred(self, term: tuple[str, ...]) -> set[str]:
        """Return the factors to be centred: where all lower terms are in the model too.

        Then centring moves effects between terms and leaves the model the same.
        """
        chosen: set[str] = set()
        for one in term:
            factor = self._factors[one]
            alone = len(term) == 1 and (factor.power is None or factor.power[1] == 1)
            if alone or not factor.centred:
                continue
            others = [self._margins(other) for other in chosen] + [self._margins(one)]
            rest = frozenset(term) - chosen - {one}
            if all(rest.union(*lower) in self._model for lower in product(*others)):
                chosen.add(one)
        return chosen

    def _margins(self, one: str) -> list[frozenset[str]]:
        """Return what a factor is a sum of once it is centred: itself and lower powers, and 1."""
        power = self._factors[one].power
        lower = [
            other
            for other, factor in self._factors.items()
            if power and factor.power and factor.power[0] == power[0] and factor.power < power
        ]
        if power and len({self._factors[other].power for other in lower}) < power[1] - 1:
            return [frozenset([f"{one} without its lower powers"])]  # which no term is
        return [frozenset([one]), frozenset(), *(frozenset([other]) for other in lower)]

    # --- what stands in a term ------------------------------------------------------------------

    def _factor(self, text: str) -> _Factor:
        node = _tree(text)
        match node:
            case ast.Call(func=ast.Name(id="C"), args=[inner, *coding], keywords=options):
                return self._category(inner, [*coding, *(one.value for one in options)])
            case ast.Call(func=ast.Name(id="bs"), args=[inner, *more], keywords=options):
                return self._spline(text, inner, more, options)
            case ast.Call(func=ast.Name(id="poly"), args=[inner, *more], keywords=options):
                return self._polynomial(text, inner, more, options)
        name = _name_of(node)
        if name is not None:
            return self._plain(name)
        return self._numeric([(text, self._expression(node))])

    def _plain(self, name: str) -> _Factor:
        """Return a column, or a part of a date, by its name."""
        column = self._columns.get(name)
        if isinstance(column, CategoryColumn):
            return self._levels(column, 0)
        names = (name,) if column is None else column.feature_names
        return self._numeric([(one, Feature(one)) for one in names])

    def _numeric(self, columns: list[tuple[str, Expression]]) -> _Factor:
        """Return a factor of numbers, with its centred form unless it is 0 or 1."""
        used = {name for _, one in columns for name in one.occurrences()}
        power = _power_of(columns[0][1]) if len(columns) == 1 else None
        if used <= self._indicators:
            return _Factor(tuple(columns))
        middles = {one: np.array([sum(self.bounds[one]) / 2]) for one in used}
        if power is not None and power[1] > 1:
            middle = float(middles[power[0]][0])
            base = Operation("-", Feature(power[0]), Constant(middle))
            name = f"I(({power[0]} - {middle:g}) ** {power[1]})"
            centred: list[tuple[str, Expression]] = [(name, Power(base, power[1]))]
        else:
            centred = [
                (f"({name} - {middle:g})", Operation("-", one, Constant(middle)))
                for name, one in columns
                for middle in (float(one.values(middles)[0]),)
            ]
        return _Factor(tuple(columns), power=power, centred=tuple(centred))

    def _category(self, inner: ast.expr, coding: list[ast.expr]) -> _Factor:
        name = _name_of(inner)
        column = self._columns.get(name or "")
        if name is None or not isinstance(column, CategoryColumn | BooleanColumn):
            raise FormulaProblem(message("formula.no-levels", text=ast.unparse(inner)))
        if isinstance(column, BooleanColumn):
            return self._plain(name)
        levels = [level_text(one) for one in column.levels]
        match coding:
            case [] | [ast.Name(id="Treatment")]:
                return self._levels(column, 0)
            case [ast.Call(func=function, args=args, keywords=options)] if (
                _function_name(function).lower() == "treatment"
            ):
                given = [_literal(one) for one in (*args, *(one.value for one in options))]
                if not given:
                    return self._levels(column, 0)
                text = level_text(given[0] if isinstance(given[0], str) else float(given[0]))
                if text in levels:
                    return self._levels(column, levels.index(text))
                raise FormulaProblem(message("formula.no-level", level=text, name=column.name))
        raise FormulaProblem(message("formula.coding", name=column.name))

    def _levels(self, column: CategoryColumn, reference: int) -> _Factor:
        columns = tuple((one, Feature(one)) for one in column.every_feature)
        return _Factor(columns, reference=reference if len(columns) > 1 else None)

    def _spline(
        self, text: str, inner: ast.expr, more: list[ast.expr], options: list[ast.keyword]
    ) -> _Factor:
        given = {str(one.arg): _literal(one.value) for one in options}
        if more or not set(given) <= {"knots", "degree"} or not given.get("knots"):
            raise FormulaProblem(message("formula.no-knots", term=_unquoted(text)))
        variable = self._expression(inner)
        low, high = self._enclosure(ast.unparse(inner), variable)
        knots, degree = given["knots"], given.get("degree", 3)
        numbers = isinstance(knots, list) and all(isinstance(one, int | float) for one in knots)
        if not numbers or sorted({low, *knots, high}) != [low, *knots, high]:
            why = message("formula.knots", term=_unquoted(text), low=low, high=high)
            raise FormulaProblem(why)
        if degree not in range(1, 6):
            raise FormulaProblem(message("formula.degree", term=_unquoted(text), most=5))
        # The columns of a B-spline basis but the first, as in R and patsy.
        from scipy.interpolate import PPoly

        every = np.array([low] * (degree + 1) + [*map(float, knots)] + [high] * (degree + 1))
        n, breaks = len(every) - degree - 1, (low, *map(float, knots), high)
        columns: list[tuple[str, Expression]] = []
        for k in range(1, n):
            spline = PPoly.from_spline((every, np.eye(n)[k], degree))
            places = np.searchsorted(spline.x, breaks[:-1], side="right") - 1
            table = spline.c[:, places].T.tolist()
            columns.append((f"{text}[{k}]", Pieces(variable, breaks, tuple(map(tuple, table)))))
        return self._numeric(columns)

    def _polynomial(
        self, text: str, inner: ast.expr, more: list[ast.expr], options: list[ast.keyword]
    ) -> _Factor:
        given = {str(one.arg): _literal(one.value) for one in options}
        degree = _literal(more[0]) if more else given.get("degree", 1)
        if given.get("raw") is not True:
            raise FormulaProblem(message("formula.orthogonal", term=_unquoted(text)))
        if type(degree) is not int or not 1 <= degree <= HIGHEST_POWER:
            why = message("formula.degree", term=_unquoted(text), most=HIGHEST_POWER)
            raise FormulaProblem(why)
        variable = self._expression(inner)
        low, high = self._enclosure(ast.unparse(inner), variable)
        centred = Operation("-", variable, Constant((low + high) / 2))
        columns: list[tuple[str, Expression]] = [(f"{text}[1]", variable)]
        columns += [(f"{text}[{k}]", Power(centred, k)) for k in range(2, degree + 1)]
        return replace(self._numeric(columns), moved=degree > 1)

    def _expression(self, node: ast.expr) -> Expression:
        """Return an expression on numbers, or say what a formula cannot hold."""
        name = _name_of(node)
        match node:
            case _ if name is not None:
                if isinstance(self._columns.get(name), CategoryColumn | DateColumn):
                    raise FormulaProblem(message("formula.no-number", name=name))
                return Feature(name)
            case ast.Constant(value=bool() | int() | float() as value):
                return Constant(float(value))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return _folded(Operation("-", Constant(0.0), self._expression(operand)))
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self._expression(operand)
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return _power(self._expression(left), _literal(right))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _SIGNS:
                sides = self._expression(left), self._expression(right)
                return _folded(Operation(_SIGNS[type(op)], *sides))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARED:
                sign, swapped = _COMPARED[type(op)]
                sides = self._expression(left), self._expression(right)
                return Operation(sign, *(reversed(sides) if swapped else sides))
            case ast.Call(func=function, args=args, keywords=[]):
                return self._called(_function_name(function), args)
        text = _unquoted(ast.unparse(node))
        raise FormulaProblem(message("formula.unsupported", text=text))

    def _called(self, word: str, args: list[ast.expr]) -> Expression:
        if word in _LEARNS:
            raise FormulaProblem(
                message("formula.learns", name=word, what=message(f"learns.{_LEARNS[word]}"))
            )
        sides = [self._expression(one) for one in args]
        if word in FUNCTIONS and len(sides) == 1:
            return _folded(Function(word, sides[0]))
        if word in ("minimum", "maximum") and len(sides) == 2:
            return Operation(word, sides[0], sides[1])
        if word == "abs" and len(sides) == 1:
            return Operation("maximum", sides[0], Operation("-", Constant(0.0), sides[0]))
        if word == "I" and len(sides) == 1:
            return sides[0]
        known = (*FUNCTIONS, "abs", "minimum", "maximum", "bs", "poly", "C", "I")
        guess = did_you_mean(word, known)
        why = message("formula.arguments", name=plain(word), guess=guess, known=known)
        raise FormulaProblem(why)


_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
}
_COMPARED: dict[type[ast.cmpop], tuple[str, bool]] = {
    ast.Lt: ("<", False),
    ast.LtE: ("<=", False),
    ast.Gt: ("<", True),
    ast.GtE: ("<=", True),
}


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise FormulaProblem(message("formula.literal", text=ast.unparse(node))) from None


def _folded(one: Expression) -> Expression:
    """Return a number where an expression has no variable."""
    if one.occurrences():
        return one
    one.enclosure({})
    return Constant(float(np.atleast_1d(one.values({}))[0]))


def _power(base: Expression, exponent: Any) -> Expression:
    if exponent == 0.5:
        return Function("sqrt", base)
    if type(exponent) is int and 1 <= exponent <= HIGHEST_POWER:
        return base if exponent == 1 else Power(base, exponent)
    raise FormulaProblem(message("formula.power", most=HIGHEST_POWER))


def _power_of(one: Expression) -> tuple[str, int] | None:
    match one:
        case Feature(name=name):
            return name, 1
        case Power(of=Feature(name=name), exponent=exponent):
            return name, exponent
        case Operation(sign="*", left=left, right=right):  # x*x
            sides = _power_of(left), _power_of(right)
            if sides[0] and sides[1] and sides[0][0] == sides[1][0]:
                return sides[0][0], sides[0][1] + sides[1][1]
    return None
