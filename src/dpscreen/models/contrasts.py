"""Linear hypotheses, mean predictions and effects of variables, from a released regression table.

Everything is a linear combination of released coefficients, with the released covariance, so it
costs no budget. A combination that needs a coefficient without an interval is NaN, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import stdtr, stdtrit

from dpscreen._core.arrays import Array
from dpscreen._core.messages import message, unknown
from dpscreen._core.words import (
    LINEAR,
    NOTHING,
    EffectScale,
    PrintedTable,
    cell,
    plain,
    short_name,
    some,
)
from dpscreen.families import Family

if TYPE_CHECKING:
    import pandas as pd

    from dpscreen.tables.schema import TableSchema

_LEVEL = re.compile("(?P<column>.*?)=(?P<level>.*)", re.DOTALL)
_WORD = re.compile(r"[^\W\d]\w*")


# --- hypotheses as texts --------------------------------------------------------------------------


def linear_hypotheses(text: str, names: Sequence[str]) -> tuple[Array, Array, tuple[str, ...]]:
    """Return the matrix L and the values q of hypotheses Lβ = q, and each as text.

    Names are those of the table. A level may also be written as ward[B], and any name in backticks.
    """
    from formulaic.utils.constraints import LinearConstraints  # type: ignore[import-untyped]

    spelled: dict[str, int] = {}
    for j, name in enumerate(names):
        spelled |= {name: j, f"`{name}`": j}
        if level := _LEVEL.fullmatch(name):
            column, of = level["column"], level["level"]
            spelled |= {f"{column}[{of}]": j, f"{column}[T.{of}]": j}
    pattern = re.compile("|".join(map(_whole, sorted(spelled, key=len, reverse=True))))
    if stranger := _WORD.search(pattern.sub(" ", text)):
        raise ValueError(unknown("coefficient", stranger[0], names))
    rows, values, shown = [], [], []
    for one in pattern.sub(lambda found: f"c{spelled[found[0]]}", text).split(","):
        shown.append(re.sub(r"c(\d+)", lambda found: names[int(found[1])], one.strip()))
        try:
            found = LinearConstraints.from_spec(
                one, variable_names=[f"c{j}" for j in range(len(names))]
            )
        except Exception:  # whatever the parser raises
            raise ValueError(message("result.hypothesis", given=plain(shown[-1]))) from None
        rows += list(found.constraint_matrix)
        values += list(found.constraint_values)
    return np.array(rows, dtype=np.float64), np.array(values, dtype=np.float64), tuple(shown)


def _whole(name: str) -> str:
    """Return a pattern of the name that does not begin or end inside a longer word."""
    before = r"(?<!\w)" if re.match(r"\w", name) else ""
    after = r"(?!\w)" if re.search(r"\w$", name) else ""
    return before + re.escape(name) + after


# --- combinations of coefficients -----------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class Combinations:
    """Linear combinations Lβ, as statsmodels calls what belongs to them.

    Attributes
    ----------
    effect, sd, df_denom : ndarray
        Lβ, its standard error, and its degrees of freedom, the least of the coefficients that
        count. NaN where one of them has no interval.
    reasons : tuple of str
        Which has none; "" where none lacks.
    """

    effect: Array
    sd: Array
    df_denom: Array
    reasons: tuple[str, ...]

    @classmethod
    def of(cls, table: Any, weights: Array, **more: Any) -> Self:
        """Return combinations of a table's coefficients, a column of weights for each of them."""
        there = table.given | table.fixed
        known = np.where(there, weights, 0.0)
        variances = ((known @ table.covariance) * known).sum(axis=1)
        lacking = (weights != 0) & ~there
        hidden = lacking.any(axis=1)
        counts = (weights != 0) & ~table.fixed
        names = np.array([plain(name) for name in table.names], dtype=object)
        return cls(
            effect=np.where(hidden, np.nan, known @ table.coefficients),
            sd=np.where(hidden, np.nan, np.sqrt(np.maximum(variances, 0.0))),
            df_denom=np.where(counts, table.freedom, np.inf).min(axis=1, initial=np.inf),
            reasons=tuple(
                f"no interval for {some(names[row].tolist())}" if row.any() else ""
                for row in lacking
            ),
            **more,
        )

    def conf_int(self, alpha: float = 0.05) -> Array:
        """Return intervals at 1 − alpha, low and high in columns."""
        if not 0 < alpha < 0.5:
            raise ValueError(message("result.alpha"))
        half = stdtrit(self.df_denom, 1 - alpha / 2) * self.sd
        return np.column_stack((self.effect - half, self.effect + half))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ContrastResults(Combinations, PrintedTable):
    """Tests of linear hypotheses Lβ = q, or effects of variables.

    Print it, or use `summary_frame()`. `values` are q; `tvalue` and `pvalue` belong to Lβ − q.
    """

    title: str
    names: tuple[str, ...]
    values: Array
    scale: EffectScale = LINEAR

    @property
    def tvalue(self) -> Array:
        """Return the t statistics; NaN where the standard error is 0."""
        with np.errstate(all="ignore"):
            return np.where(self.sd > 0, (self.effect - self.values) / self.sd, np.nan)

    @property
    def pvalue(self) -> Array:
        """Return two-sided p-values."""
        return np.asarray(2 * stdtr(self.df_denom, -np.abs(self.tvalue)))

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Return all of it; of ratios or per cent also the effects on that scale."""
        import pandas as pd

        low, high = self.conf_int(alpha).T
        numbers = {"coef": self.effect, "std err": self.sd, "t": self.tvalue, "P>|t|": self.pvalue}
        numbers |= {"low": low, "high": high}
        if self.scale != LINEAR:
            for ending, one in {"": self.effect, "_low": low, "_high": high}.items():
                numbers[self.scale.column + ending] = np.array(list(map(self.scale.shown, one)))
        return pd.DataFrame(numbers, index=pd.Index(self.names))

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        """Return why there is no interval, where there is none."""
        pairs = zip(self.names, self.reasons, strict=True)
        return tuple(f"{plain(name)}: {why}." for name, why in pairs if why)

    def _cells(self) -> list[list[str]]:
        frame = self.summary_frame()
        rows = zip(self.names, frame.to_numpy(), strict=True)
        return [
            ["", *frame.columns],
            *([short_name(name), *number_cells(*row)] for name, row in rows),
        ]


def number_cells(coef: float, error: float, t: float, p: float, *others: float) -> list[str]:
    """Return the numbers of a coefficient or a combination of some as tables print them."""
    shown = [cell(coef, digits=5), cell(error, digits=3), f"{t:.2f}", f"{p:.3f}"]
    shown += [cell(one, digits=4) for one in others]
    return [NOTHING] * len(shown) if np.isnan(coef) else shown


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PredictionResults(Combinations):
    """Mean predictions of rows, with standard errors: of the mean, not of single outcomes.

    `effect` and `sd` are those of the linear predictor; `reasons` says why a row has none.
    """

    family: Family
    index: Any = None

    def __repr__(self) -> str:
        return repr(self.summary_frame())

    @property
    def predicted_mean(self) -> Array:
        """Return the predicted means."""
        return np.asarray(self.family.inverse_link(self.effect))

    @property
    def se_mean(self) -> Array:
        """Return standard errors of the means; through a link by the delta method.

        Links are canonical, so the derivative of the inverse link is the variance function.
        """
        return np.asarray(self.family.variance(self.predicted_mean) * self.sd)

    def conf_int(self, alpha: float = 0.05) -> Array:
        """Return intervals of the means at 1 − alpha: the ends of the predictor's, transformed."""
        return np.asarray(self.family.inverse_link(super().conf_int(alpha)))

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Return mean, mean_se, mean_ci_lower and mean_ci_upper of every row."""
        import pandas as pd

        low, high = self.conf_int(alpha).T
        numbers = {"mean": self.predicted_mean, "mean_se": self.se_mean}
        ends = {"mean_ci_lower": low, "mean_ci_upper": high}
        return pd.DataFrame(numbers | ends, index=self.index)


# --- rows at declared middles ---------------------------------------------------------------------


@dataclass(frozen=True)
class Baseline:
    """The row at which variables are moved: declared middles, reference levels, and 0 of booleans.

    `bounds` has the declared bounds of numbers, `levels` the levels of categories.
    """

    row: Mapping[str, Any]
    bounds: Mapping[str, tuple[float, float]]
    levels: Mapping[str, tuple[Any, ...]]

    @classmethod
    def of(cls, model: Any) -> Baseline:
        """Return the baseline of a fitted model's columns, as its rows are given."""
        if model.table_schema is not None:
            return cls.of_schema(model.table_schema)
        names = [str(name) for name in model.feature_names_out_]
        ends = model.released().public_bounds.tolist()
        bounds = {name: (low, high) for name, (low, high) in zip(names, ends, strict=True)}
        columns = getattr(model, "columns_", None)
        levels = {} if columns is None else columns.levels
        middles = {name: 0.0 if ends == (0, 1) else sum(ends) / 2 for name, ends in bounds.items()}
        row = {
            name: levels[name][0] if name in levels else middles[name]
            for name in (names if columns is None else columns.names)
        }
        return cls(row, bounds, levels)

    @classmethod
    def of_schema(cls, schema: TableSchema) -> Baseline:
        """Return the baseline of the columns that a schema declares."""
        columns = {name: schema.field(name) for name in schema.columns}
        levels: dict[str, Any] = {name: getattr(one, "levels", ()) for name, one in columns.items()}
        bounds = {
            name: one.declared_bounds for name, one in columns.items() if "transformed" in one.roles
        }
        row = {
            name: levels[name][0] if levels[name] else np.asarray(one.placed(np.zeros(1)))[0]
            for name, one in columns.items()
        }
        middles = {name: sum(ends) / 2 for name, ends in bounds.items()}
        return cls(row | middles, bounds, {name: one for name, one in levels.items() if one})

    def rows(self, variable: str, values: Sequence[Any], at: Mapping[str, Any]) -> pd.DataFrame:
        """Return a row for each value of a variable, the others as `at` says or at the baseline."""
        import pandas as pd

        for name, one in [(variable, value) for value in values] + list(at.items()):
            self._check(name, one)
        moved = [{**self.row, **at, variable: value} for value in values]
        return pd.DataFrame(moved, columns=list(self.row))

    def _check(self, name: str, value: Any) -> None:
        if name not in self.row:
            raise ValueError(unknown("variable", name, tuple(self.row)))
        if name in self.levels:
            levels = tuple(map(str, self.levels[name]))
            if str(value) not in levels:
                raise ValueError(message("result.level", name=name, given=value, levels=levels))
        elif isinstance(value, int | float | np.number) and name in self.bounds:
            low, high = self.bounds[name]
            if not low <= value <= high:
                ends = {"low": low, "high": high}
                raise ValueError(message("result.outside", name=name, given=value, **ends))
