"""A model as a scikit-learn pipeline on the raw table, of steps that need nothing of this package.

Cells are read by methods of pandas, applied by scikit-learn's FunctionTransformer. Each term of the
`RawModel` becomes a column or two, and a linear or logistic model adds them up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np

from dpscreen._core.arrays import Array
from dpscreen._core.messages import message
from dpscreen.models.code import Text
from dpscreen.models.raw import CELL, Cell, Joint, Line, Lookup, RawModel, Term, raw_model_of
from dpscreen.models.release import Release, statement_for
from dpscreen.tables.arithmetic import Constant, Expression, Operation
from dpscreen.tables.columns.base import BLANKS, NUMBER, TRUTHS

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

NOTHING = "\0nothing"
"""What stands for a missing cell among texts: no cell holds a zero byte."""
NO_NUMBER = 1.5e300
"""What stands for it among numbers: no level is so large."""
UNKNOWN = -1.0
"""What a cell gives that is neither true nor false, until it is made missing."""
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": np.exp,
    "expm1": np.expm1,
    "square": np.square,
}


def pipeline_of(release: Release, *, force: bool = False) -> Pipeline:
    """Return a fitted pipeline that predicts what `predict` does, with its privacy statement.

    `privacy_` holds the statement, and the last step says so in its name if it does not hold.
    """
    from sklearn.pipeline import Pipeline

    statement = statement_for(release, force=force)
    model = raw_model_of(release)
    reads, weights, constants = [], [], [model.intercept]
    columns = [one for term in model.terms for one in _columns(term, model)]
    for place, (names, steps, constant) in enumerate(columns):
        where = names if model.named else [model.columns.index(one) for one in names]
        reads.append((f"column {place}", _chain(steps), where))
        weights.append(1.0)
        constants.append(constant)
    last = LAST_STEPS[model.predicts](model, np.array(weights or [0.0]), sum(constants))
    name = "model" if release.statement.holds else "model (NOT PRIVATE)"
    found = Pipeline([("columns", _fitted_columns(model, reads)), (name, last)])
    found.privacy_ = statement
    return found


def _fitted_columns(model: RawModel, reads: list[Any]) -> Any:
    """Return what reads the columns, fitted to a row that no table has."""
    import pandas as pd
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import FunctionTransformer

    if not reads:
        reads = [("nothing", FunctionTransformer(np.zeros_like, validate=False), [0])]
    if not model.named:
        return ColumnTransformer(reads).fit(np.zeros((1, len(model.columns))))
    kinds: dict[str, Any] = {"number": 0.0, "text": "", "day": pd.Timestamp("1970-01-01")}
    row = {
        name: [kinds[model.cells[name].kind] if name in model.cells else 0.0]
        for name in model.columns
    }
    return ColumnTransformer(reads).fit(pd.DataFrame(row))


def _logistic(model: RawModel, weights: Array, constant: float) -> Any:
    """Return a logistic model with these weights, as if it had been fitted."""
    from sklearn.linear_model import LogisticRegression

    odds = LogisticRegression().fit(np.zeros((2, len(weights))), [0, 1])
    odds.coef_, odds.intercept_ = weights[None, :], np.array([constant])
    odds.classes_ = np.array(model.classes)
    return odds


def _regression(model: RawModel, weights: Array, constant: float) -> Any:
    """Return a line with these weights, clipped and taken back to the target's units."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import FunctionTransformer

    assert model.bounds is not None, "as all numbers have"
    ends = {"a_min": model.bounds[0], "a_max": model.bounds[1]}
    back: list[tuple[str, Any]] = [
        ("clip", FunctionTransformer(inverse_func=np.clip, inv_kw_args=ends, check_inverse=False))
    ]
    if model.inverse:  # inverted last, so first in order
        invert = _FUNCTIONS[model.inverse]
        back.insert(0, ("units", FunctionTransformer(inverse_func=invert, check_inverse=False)))
    line = TransformedTargetRegressor(
        LinearRegression(), transformer=Pipeline(back), check_inverse=False
    ).fit(np.zeros((2, len(weights))), np.zeros(2))
    line.regressor_.coef_, line.regressor_.intercept_ = weights, constant
    return line


LAST_STEPS = {"predict": _regression, "predict_proba": _logistic}
"""What adds the columns up, by the method that gives the prediction."""

Step = tuple[Callable[..., Any], dict[str, Any]]
"""A function of a frame, and what else it is given."""


def _chain(steps: list[Step]) -> Any:
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import FunctionTransformer

    steps_of = [
        one if hasattr(one, "fit") else FunctionTransformer(one, kw_args=given)
        for one, given in steps
    ]
    return Pipeline([(f"step {place}", one) for place, one in enumerate(steps_of)])


Columns = Iterator[tuple[list[str], list[Step], float]]
"""Columns of numbers: of which columns, by which steps, and what is to be added."""


def _columns(term: Term, model: RawModel) -> Columns:
    """Yield the columns of numbers that a term is the sum of."""
    import pandas as pd

    if isinstance(term, Joint):
        yield _joint(term, model)
        return
    if isinstance(term, Line):
        for place, of in enumerate(_summands(term.of)):
            steps = [*_line(term, model.named), *_evaluated(of, {CELL.name: CELL.name})]
            if term.missing is not None:
                steps.append((pd.DataFrame.fillna, {"value": 0.0 if place else term.missing}))
            yield [term.cell.column], steps, 0.0
        return
    base = term.otherwise if not term.part else term.missing
    base = UNKNOWN if base is None else base
    for place, steps in enumerate(_lookup(term, base)):
        yield [term.cell.column], steps, 0.0 if place else base


def _joint(term: Joint, model: RawModel) -> tuple[list[str], list[Step], float]:
    """Return the steps that read several columns and evaluate an expression of them."""
    import pandas as pd
    from sklearn.compose import ColumnTransformer

    reads: list[tuple[str, Any, list[str]]] = []
    leaves: dict[str, str] = {}
    for name, one in term.inputs.items():
        parts = list(_columns(one, model))
        places = range(len(reads), len(reads) + len(parts))
        reads += [
            (f"c{k}", _chain(steps), of) for k, (of, steps, _) in zip(places, parts, strict=True)
        ]
        constant = sum(adds for _, _, adds in parts)
        leaf = f"({' + '.join([*(f'c{k}' for k in places), repr(constant)])})"
        unknown = isinstance(one, Lookup) and one.otherwise is None  # 0 / 0 is NaN
        leaves[name] = f"({leaf} + 0.0 / ({leaf} >= 0))" if unknown else leaf
    columns = list(dict.fromkeys(one.cell.column for one in term.reads))
    return (
        columns,
        [
            (ColumnTransformer(reads), {}),
            (pd.DataFrame, {"columns": [name for name, _, _ in reads]}),
            (pd.DataFrame.replace, {"to_replace": np.inf, "value": np.nan}),
            *_evaluated(term.of, leaves),
            (pd.DataFrame.fillna, {"value": term.missing}),
        ],
        0.0,
    )


_PANDAS = Text(
    {"log2": f"(log(%s) / {math.log(2)!r})", "log10": f"(log(%s) / {math.log(10)!r})"},
    {
        "minimum": "(({0}) * (({0}) <= ({1})) + ({1}) * (({0}) > ({1})))",
        "maximum": "(({0}) * (({0}) >= ({1})) + ({1}) * (({0}) < ({1})))",
        "<": "(({0} < {1}) + 0.0 * ({0} + {1}))",
        "<=": "(({0} <= {1}) + 0.0 * ({0} + {1}))",
    },
    "(({0} < {1}) * ({2}) + ({0} >= {1}) * ({3}))",
)
"""Writes expressions of `DataFrame.eval`, in which a comparison of NaN is false."""


def _summands(of: Expression) -> list[Expression]:
    match of:
        case Operation(sign="+", left=left, right=right):
            return [*_summands(left), *_summands(right)]
    return [of]


def _evaluated(of: Expression, leaves: dict[str, str]) -> list[Step]:
    """Return what evaluates an expression on named columns: its factor and clip by steps."""
    factor, ends, steps = 1.0, None, list[Step]()
    match of:
        case Operation(sign="*", left=Constant(value=factor), right=of):
            pass
    match of:
        case Operation(
            sign="minimum",
            left=Operation(sign="maximum", left=inner, right=Constant(value=low)),
            right=Constant(value=high),
        ):
            of, ends = inner, (low, high)
    if of != CELL:
        text = _PANDAS.written(of, leaves.__getitem__)
        steps += [(methodcaller("eval", text, engine="python"), {}), (methodcaller("to_frame"), {})]
    if ends is not None:
        steps.append((np.clip, {"a_min": ends[0], "a_max": ends[1]}))
    if factor != 1:
        steps.append((methodcaller("mul", factor), {}))
    return steps


def _line(line: Line, named: bool) -> list[Step]:
    """Return what reads the number of a line, as a frame with its name."""
    import pandas as pd

    steps = _days(line.cell, line.part) if line.cell.kind == "day" else _numbers(line.cell, named)
    if line.since:
        steps.append((methodcaller("sub", line.since), {}))
    if line.ends is not None:
        steps.append((np.clip, {"a_min": line.ends[0], "a_max": line.ends[1]}))
    frame: Step = (methodcaller("set_axis", [CELL.name], axis=1), {})
    return [*steps, frame if named else (pd.DataFrame, {"columns": [CELL.name]})]


def _numbers(cell: Cell, named: bool) -> list[Step]:
    """Return what reads numbers; without a schema they must be some."""
    import pandas as pd

    if not cell.declared:
        return [(pd.DataFrame.astype, {"dtype": np.float64})] if named else []
    if not cell.plain:  # of a text there is no number, and the error says why
        why = {"value": str(message("export.text-cells", name=cell.column)), "regex": True}
        read: list[Step] = [
            (pd.DataFrame.replace, {"to_replace": r"(?s)^.*$", **why}),
            (pd.DataFrame.astype, {"dtype": np.float64}),
        ]
    else:
        read = [*_texts(), *_as_numbers()]
    odd = [-np.inf, np.inf, *cell.missing]
    return [*read, (pd.DataFrame.replace, {"to_replace": odd, "value": np.nan})]


def _texts() -> list[Step]:
    """Return what makes texts of cells, without blanks around them."""
    import pandas as pd

    return [
        (pd.DataFrame.astype, {"dtype": object}),
        (pd.DataFrame.fillna, {"value": NOTHING}),
        (pd.DataFrame.map, {"func": str}),
        (pd.DataFrame.map, {"func": methodcaller("strip", BLANKS)}),
    ]


def _as_numbers() -> list[Step]:
    """Return what makes numbers of such texts, NaN of those that are none."""
    import pandas as pd

    return [
        (pd.DataFrame.replace, {"to_replace": dict(TRUTHS)}),
        (
            pd.DataFrame.replace,
            {"to_replace": f"(?s)^(?!{NUMBER}$).*$", "value": "nan", "regex": True},
        ),
        (pd.DataFrame.astype, {"dtype": np.float64}),
    ]


def _lookup(lookup: Lookup, base: float) -> Iterator[list[Step]]:
    """Yield what reads a value: as a text, and as a number where some value is one."""
    import pandas as pd

    missing = np.inf if lookup.missing is None else lookup.missing - base
    numbers = {one: adds - base for one, adds in lookup.numbers.items()}
    if lookup.part:
        yield [*_days(lookup.cell, lookup.part), *_looked_up(numbers)]
        return
    words = {one: adds - base for one, adds in lookup.words.items()}
    numbers |= {one: missing for one in lookup.cell.missing if not isinstance(one, str)}
    words |= {one: missing for one in lookup.cell.missing if isinstance(one, str)}
    if lookup.cell.kind == "text":
        yield [*_texts(), *_looked_up({**words, NOTHING: missing})]
    else:
        numbers[NO_NUMBER] = missing
    if numbers:
        plain = lookup.cell.plain
        read = [*_texts(), *_as_numbers()] if plain else _numbers(lookup.cell, named=True)
        yield [*read, (pd.DataFrame.fillna, {"value": NO_NUMBER}), *_looked_up(numbers)]


def _looked_up(values: dict[Any, float]) -> list[Step]:
    import pandas as pd

    return [
        (pd.DataFrame.map, {"func": values.get}),
        (pd.DataFrame.astype, {"dtype": np.float64}),
        (pd.DataFrame.fillna, {"value": 0.0}),
    ]


def _days(cell: Cell, part: str) -> list[Step]:
    """Return what reads days, or a part of them: stored as such, or as texts of the format."""
    import pandas as pd

    regex = {"regex": True}
    dates: list[Step] = [
        (pd.DataFrame.replace, {"to_replace": r"^\s+|\s+$", "value": "", **regex}),
        (pd.DataFrame.replace, {"to_replace": r"^(.{8,10})[T ][0-9].*$", "value": r"\1", **regex}),
        (pd.DataFrame.apply, {"func": pd.to_datetime, "errors": "coerce", "format": cell.form}),
    ]
    if cell.missing:
        gone = [pd.Timestamp("1970-01-01") + pd.Timedelta(days=float(one)) for one in cell.missing]
        dates.append((pd.DataFrame.replace, {"to_replace": gone, "value": pd.NaT}))
    if part in ("month", "year"):
        read: Step = (pd.DataFrame.apply, {"func": attrgetter(f"dt.{part}")})
        return [*dates, read, (pd.DataFrame.astype, {"dtype": np.float64})]
    days: list[Step] = [
        *dates,
        (methodcaller("sub", pd.Timestamp("1970-01-01")), {}),
        (methodcaller("div", pd.Timedelta(days=1)), {}),
        (np.floor, {}),
    ]
    if part == "days":
        return days
    return [*days, *((methodcaller(*one), {}) for one in (("add", 3), ("mod", 7), ("add", 1)))]
