"""A model as an ONNX graph on the raw table, with one typed input for each column it uses.

Numbers are doubles, NaN where missing; texts are strings, empty where missing; days are doubles
that count from 1970-01-01, as tensors know no dates. A text that may be a value in another spelling
gives NaN, as ONNX can neither strip blanks nor compare numbers in texts by their value.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from dpscreen._core.messages import message
from dpscreen.models.raw import (
    Cell,
    Joint,
    Line,
    Lookup,
    RawModel,
    Term,
    Writer,
    raw_model_of,
    words_of,
)
from dpscreen.models.release import Release, statement_for
from dpscreen.tables.columns.base import BLANKS, NUMBER, level_text

OPSET, ML_OPSET, IR = 20, 3, 9
FEATURES = "features"
"""The one input of a model whose columns have no names."""


def onnx_of(release: Release, *, force: bool = False) -> bytes:
    """Return the model with its privacy statement, as a property and in the graph's description."""
    privacy = statement_for(release, force=force)
    try:
        from onnx import checker, helper
    except ImportError:
        raise ImportError(message("export.onnx-missing")) from None

    model = raw_model_of(release)
    graph = _Graph()
    outputs = graph.predict(model)
    used = {name for node in graph.nodes for name in node.input}
    constants = [one for one in graph.constants if one.name in used]
    made = helper.make_model(
        helper.make_graph(graph.nodes, release.estimator, graph.inputs, outputs, constants),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)],
        ir_version=IR,
        producer_name="dpscreen",
        doc_string=privacy["privacy"],
    )
    statement = json.dumps(privacy["statement"], ensure_ascii=False)
    helper.set_model_props(made, {"privacy": privacy["privacy"], "privacy_statement": statement})
    checker.check_model(made)
    return bytes(made.SerializeToString())


class _Graph(Writer[str]):
    """Nodes that are added one by one; a value is the name of what one gives, of shape (n, 1)."""

    derives = True

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.constants: list[Any] = []
        self._cells: dict[str, str] = {}

    def predict(self, model: RawModel) -> list[Any]:
        """Add the whole model; return its outputs."""
        from onnx import TensorProto

        if not model.named or not model.terms:
            self._take(FEATURES, TensorProto.DOUBLE, len(model.columns))
        total = self._start(model)
        for term in model.terms:
            total = self("Add", total, self._term(term, model))
        outputs = {"predict": self._mean, "predict_proba": self._probabilities}
        return outputs[model.predicts](total, model)

    def _mean(self, total: str, model: RawModel) -> list[Any]:
        from onnx import TensorProto, helper

        found = self.written(model.whole, lambda _: total)
        self("Identity", found, out="prediction")
        return [helper.make_tensor_value_info("prediction", TensorProto.DOUBLE, [None, 1])]

    def __call__(self, op: str, *inputs: str, out: str | None = None, **given: Any) -> str:
        from onnx import helper

        name = out or f"value {len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **given))
        return name

    def _constant(self, values: Any) -> str:
        from onnx import numpy_helper

        name = f"constant {len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def number(self, value: float | None) -> str:
        """Return a constant; NaN for none."""
        return self._constant(np.array(np.nan if value is None else value, dtype=np.float64))

    def _take(self, name: str, kind: int, width: int = 1) -> None:
        from onnx import helper

        self.inputs.append(helper.make_tensor_value_info(name, kind, [None, width]))

    def _start(self, model: RawModel) -> str:
        """Return the intercept; of a model without terms, as often as there are rows."""
        if model.terms:
            return self.number(model.intercept)
        first = self("Gather", FEATURES, self._constant(np.array([0])), axis=1)
        zero = self("Where", self("IsNaN", first), self.number(0.0), self.number(0.0))
        return self("Add", zero, self.number(model.intercept))

    def _cell(self, cell: Cell, model: RawModel) -> str:
        """Return the input of a column, which several terms may have."""
        from onnx import TensorProto

        if cell.column not in self._cells:
            if model.named:
                kind = TensorProto.STRING if cell.kind == "text" else TensorProto.DOUBLE
                self._take(cell.column, kind)
                self._cells[cell.column] = cell.column
            else:
                place = self._constant(np.array([model.columns.index(cell.column)]))
                self._cells[cell.column] = self("Gather", FEATURES, place, axis=1)
        return self._cells[cell.column]

    # --- terms ----------------------------------------------------------------------------------

    def _term(self, term: Term, model: RawModel) -> str:
        if not isinstance(term, Joint):
            return self._read(term, model)
        read = {name: self._read(one, model) for name, one in term.inputs.items()}
        found = self.written(term.of, lambda name: read[name])
        for name, one in term.inputs.items():
            if one.missing is None:
                gone = self("IsNaN", read[name])
                found = self("Where", gone, self.number(term.missing), found)
        return found

    def _read(self, term: Lookup | Line, model: RawModel) -> str:
        cell = self._cell(term.cell, model)
        if isinstance(term, Lookup) and term.cell.kind == "text":
            return self._words(term, cell)
        value = self._part(cell, term.part)
        if isinstance(term, Line):
            found = self.written(term.whole, lambda _: value)
        else:
            found = self._numbers(term, value)
        if not term.cell.declared:
            return found
        infinite = self("Greater", self("Abs", cell), self.number(np.finfo(np.float64).max))
        gone = self("Or", self("IsNaN", cell), infinite)
        for code in term.cell.missing:
            if not isinstance(code, str):
                gone = self("Or", gone, self("Equal", cell, self.number(code)))
        return self("Where", gone, self.number(term.missing), found)

    def _numbers(self, lookup: Lookup, value: str) -> str:
        found = self.number(lookup.missing if lookup.part else lookup.otherwise)
        for number, adds in lookup.numbers.items():
            same = self("Equal", value, self.number(number))
            found = self("Where", same, self.number(adds), found)
        return found

    def _words(self, lookup: Lookup, cell: str) -> str:
        """Look texts up; NaN for one that is none, but may be one in another spelling."""
        known: dict[str, float | None] = {"": lookup.missing}
        for value, adds in lookup.values.items():
            known |= dict.fromkeys(_spelled(value), adds)
        for value in lookup.cell.missing:
            known |= dict.fromkeys(_spelled(value), lookup.missing)
        place = self(
            "LabelEncoder",
            cell,
            domain="ai.onnx.ml",
            keys_strings=list(known),
            values_int64s=list(range(len(known))),
            default_int64=len(known),
        )
        worth = self._constant(np.array([*known.values(), lookup.otherwise], dtype=np.float64))
        found = self("Gather", worth, place)
        blank = f"[{BLANKS.encode('unicode_escape').decode()}]"
        odd = f"(?s){blank}.*|.*{blank}" + (f"|{NUMBER}" if lookup.number_read else "")
        other = self("Equal", place, self._constant(np.int64(len(known))))
        doubtful = self("And", other, self("RegexFullMatch", cell, pattern=odd))
        return self("Where", doubtful, self.number(np.nan), found)

    def _probabilities(self, log_odds: str, model: RawModel) -> list[Any]:
        from onnx import TensorProto, helper

        yes, no = self("Sigmoid", log_odds), self("Sigmoid", self("Neg", log_odds))
        self("Concat", no, yes, axis=1, out="probabilities")
        second = self("Cast", self("Greater", log_odds, self.number(0.0)), to=TensorProto.INT64)
        labels = np.array(model.classes)
        labels = labels.astype(object) if labels.dtype.kind == "U" else labels
        self("Gather", self._constant(labels), second, out="label")
        kind = helper.np_dtype_to_tensor_dtype(labels.dtype)
        return [
            helper.make_tensor_value_info("label", kind, [None, 1]),
            helper.make_tensor_value_info("probabilities", TensorProto.DOUBLE, [None, 2]),
        ]

    # --- pieces ---------------------------------------------------------------------------------

    def operation(self, sign: str, left: str, right: str) -> str:
        """Return an operation; a comparison as 1 or 0."""
        found = self(_OPERATIONS[sign], left, right)
        one, zero = self.number(1.0), self.number(0.0)
        return self("Where", found, one, zero) if sign in ("<", "<=") else found

    def choice(self, value: str, end: str, below: str, otherwise: str) -> str:
        """Return one of two values."""
        return self("Where", self("Less", value, end), below, otherwise)

    def function(self, name: str, of: str) -> str:
        """Return a function that ONNX calls alike."""
        return self(name.capitalize(), of)

    def _floor(self, value: str, divisor: float) -> str:
        return self("Floor", self("Div", value, self.number(divisor)))

    def _sum(self, terms: Iterable[tuple[float, str]], constant: float) -> str:
        found = self.number(constant)
        for factor, value in terms:
            found = self("Add", found, self("Mul", self.number(factor), value))
        return found

    def _part(self, cell: str, part: str) -> str:
        """Return a part of a day: the calendar of 400 years that begin in March."""
        if part in ("", "days"):
            return cell
        if part == "weekday":
            shifted = self._sum([(1, cell)], 3)
            return self._sum([(1, shifted), (-7, self._floor(shifted, 7))], 1)
        days = self._sum([(1, cell)], 719_468)
        era = self._floor(days, 146_097)
        rest = self._sum([(1, days), (-146_097, era)], 0)
        leaps = [(-1, 1_460), (1, 36_524), (-1, 146_096)]
        even = self._sum([(1, rest), *((s, self._floor(rest, d)) for s, d in leaps)], 0)
        year = self._floor(even, 365)
        past = [(-365, year), (-1, self._floor(year, 4)), (1, self._floor(year, 100))]
        day = self._sum([(1, rest), *past], 0)
        month = self._floor(self._sum([(5, day)], 2), 153)
        late = self("Less", month, self.number(10))
        month = self("Where", late, self._sum([(1, month)], 3), self._sum([(1, month)], -9))
        if part == "month":
            return month
        next_year = self("Where", late, self.number(0.0), self.number(1.0))
        return self._sum([(1, year), (400, era), (1, next_year)], 0)


_OPERATIONS = {
    "+": "Add",
    "-": "Sub",
    "*": "Mul",
    "/": "Div",
    "minimum": "Min",
    "maximum": "Max",
    "<": "Less",
    "<=": "LessOrEqual",
}


def _spelled(value: str | float) -> list[str]:
    """Return the spellings of a value that are looked up."""
    if isinstance(value, str):
        return [value]
    return list(dict.fromkeys((*words_of(value), level_text(value), repr(value))))
