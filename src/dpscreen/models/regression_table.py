"""Regression tables: coefficients, standard errors, intervals and tests.

Made from released numbers only. Where a coefficient is not identifiable there is NaN, and a reason.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import fdtrc, ndtri, stdtr, stdtrit

from dpscreen._core.arrays import Array, Mask
from dpscreen._core.messages import message, unknown
from dpscreen._core.words import listed, prose, some
from dpscreen.families import GAUSSIAN, Family
from dpscreen.models.contrasts import Combinations, ContrastResults, linear_hypotheses
from dpscreen.models.intervals import (
    CLUSTERED,
    MEANING,
    NOTED_BIAS,
    FeatureInterval,
    Inference,
    caveats,
)

if TYPE_CHECKING:
    import pandas as pd

CONSTANT = "const"
LEAST_LEVEL = 0.5
"""Below it a level is taken for somebody's alpha, and refused."""

SHARE = (
    " Bounds that are whole numbers next to each other are kept, as those of yes and no: if this "
    "is a number that keeps to a part of them, declare that part."
)


def constant_beside(names: Sequence[str]) -> str:
    """Return what the constant is called beside features, one of which may be called const."""
    name = CONSTANT
    while name in names:
        name = f"({name})"
    return name


@dataclass(frozen=True)
class WaldTest:
    """Whether hypotheses hold together, or coefficients are `zero`: F with its degrees of freedom.

    `untested` were asked for too, but have no interval, so the test says nothing about them;
    those of them that are `left_out` are not in the model, either.
    """

    names: tuple[str, ...]
    statistic: float
    df_num: int
    df_denom: float
    pvalue: float
    untested: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    zero: bool = True

    def __str__(self) -> str:
        p = f"= {self.pvalue:.4g}" if self.pvalue >= 0.0001 else "< 0.0001"
        told = (
            f"{listed(self.names)} together{' zero' * self.zero}: "
            f"F({self.df_num}, {self.df_denom:.0f}) = {self.statistic:.4g}, p {p}"
        )
        inside = [name for name in self.untested if name not in self.left_out]
        why = ((inside, "without an interval"), (self.left_out, "not in the model"))
        return told + "".join(f"; not tested: {listed(of)}, {one}" for of, one in why if of)


def places_of(asked: str | Sequence[str], names: Sequence[str]) -> list[int]:
    """Return where coefficients stand among names; a category stands for its levels."""
    found: list[int] = []
    for name in (asked,) if isinstance(asked, str) else asked:
        of = stands_for(name, names)
        if not of:
            raise ValueError(unknown("feature", name, names))
        found += [j for j in of if j not in found]
    return found


def stands_for(name: str, names: Sequence[str]) -> list[int]:
    """Return where the coefficients stand that a name is of; none if it is none."""
    of = [j for j, one in enumerate(names) if one == name]
    return of or [j for j, one in enumerate(names) if one.startswith(f"{name}=")]


class TableReadings:
    """What statisticians read off a regression table: of the table itself, or of its model."""

    @property
    @abstractmethod
    def _table(self) -> RegressionTable:
        """Return the table."""

    @property
    def params(self) -> pd.Series[float]:
        """Return the coefficients by name, the constant last; NaN for what was left out."""
        return self._table.series(self._table.coefficients, "coef")

    @property
    def bse(self) -> pd.Series[float]:
        """Return the standard errors by name."""
        return self._table.series(np.sqrt(np.diag(self._table.covariance)), "std err")

    @property
    def tvalues(self) -> pd.Series[float]:
        """Return coefficients over their standard errors."""
        return (self.params / self.bse).rename("t")

    @property
    def pvalues(self) -> pd.Series[float]:
        """Return two-sided p-values of single coefficients being zero."""
        tails = stdtr(self._table.freedom, -np.abs(self.tvalues.to_numpy()))
        return self._table.series(2 * tails, "P>|t|")

    def conf_int(self, level: float = 0.95, *, alpha: float | None = None) -> pd.DataFrame:
        """Return each coefficient's interval, in columns low and high; NaN where there is none.

        Parameters
        ----------
        level : float, default=0.95
            The coverage of such an interval; one at a time, not all together. At least 0.5.
        alpha : float, default=None
            One minus the coverage, as other software has it: alpha=0.1 is level=0.9.
        """
        import pandas as pd

        level = level if alpha is None else 1 - alpha
        if level < LEAST_LEVEL:
            raise ValueError(message("result.alpha-as-level", level=level))
        table, middle = self._table, self.params.to_numpy()
        half = table.half_widths(level)
        ends = {"low": middle - half, "high": middle + half}
        return pd.DataFrame(ends, index=pd.Index(table.names))

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance of all coefficients, privacy noise included."""
        import pandas as pd

        table = self._table
        told = np.where(np.outer(table.given, table.given), table.covariance, np.nan)
        return pd.DataFrame(told, index=list(table.names), columns=list(table.names))

    def wald_test(self, hypotheses: Any) -> WaldTest:
        """Test whether several linear hypotheses hold together; print the result.

        They are given as in `t_test`, or as names of features, which are zero together; the name of
        a category stands for all of its levels.
        """
        table = self._table
        asked = [hypotheses] if isinstance(hypotheses, str) else hypotheses
        zero = all(isinstance(one, str) and stands_for(one, table.names) for one in asked)
        if zero:
            places = places_of(asked, table.names)
            weights, values = np.eye(len(table.names))[places], np.zeros(len(places))
            names = tuple(table.names[place] for place in places)
        else:
            weights, values, names = self._hypotheses(hypotheses)
        found = Combinations.of(table, weights)
        there = found.sd > 0
        if not there.any():
            raise ValueError(message("result.nothing-to-test", names=names))
        tested, moved = weights[there], (found.effect - values)[there]
        if np.linalg.matrix_rank(tested) < len(tested):
            raise ValueError(message("result.redundant"))
        freedom = float(found.df_denom[there].min())
        inverse = np.linalg.solve(tested @ table.covariance @ tested.T, moved)
        statistic = float(moved @ inverse) / len(tested)
        untested = tuple(name for name, given in zip(names, there, strict=True) if not given)
        return WaldTest(
            names=tuple(name for name, given in zip(names, there, strict=True) if given),
            statistic=statistic,
            df_num=len(tested),
            df_denom=freedom,
            pvalue=float(fdtrc(len(tested), freedom, statistic)),
            untested=untested,
            left_out=tuple(name for name in untested if name in table.left_out),
            zero=zero,
        )

    def t_test(self, hypotheses: Any) -> ContrastResults:
        """Test linear hypotheses about coefficients, each by itself.

        Parameters
        ----------
        hypotheses : str, list of str, or array-like of shape (n_hypotheses, n_coefficients)
            Such as ``"ward[B] - ward[C] = 0, age = 2"``, with names as the table prints them
            (``ward=B`` may be written ``ward[B]``, any name in backticks); or a matrix L with a
            column for each entry of `params`, for the hypotheses Lβ = 0.

        Returns
        -------
        ContrastResults
            `effect`, `sd`, `tvalue`, `pvalue`, `conf_int()`, `summary_frame()`; NaN where a
            coefficient has no interval. Print it.
        """
        weights, values, names = self._hypotheses(hypotheses)
        return ContrastResults.of(
            self._table, weights, title="Linear hypotheses", names=names, values=values
        )

    def _hypotheses(self, given: Any) -> tuple[Array, Array, tuple[str, ...]]:
        """Return L and q of hypotheses Lβ = q, and each as text."""
        names = self._table.names
        if isinstance(given, str) or all(isinstance(one, str) for one in given):
            return linear_hypotheses(given if isinstance(given, str) else ", ".join(given), names)
        weights = np.atleast_2d(np.asarray(given, dtype=np.float64))
        if weights.ndim != 2 or weights.shape[1] != len(names):
            raise ValueError(message("result.matrix", columns=len(names)))
        return weights, np.zeros(len(weights)), tuple(f"c{j}" for j in range(len(weights)))

    def tidy(self, level: float = 0.95) -> pd.DataFrame:
        """Return the table in the layout of R's broom: a row for each term, the constant last.

        Columns are term, estimate, std_error, statistic, p_value, conf_low and conf_high.
        """
        numbers = ["estimate", "std_error", "statistic", "p_value", "conf_low", "conf_high"]
        found = self._table.frame(level).set_axis(numbers, axis=1)
        return found.rename_axis("term").reset_index()

    def holm(self) -> pd.Series[float]:
        """Return the features' p-values adjusted by Holm's rule: all of them may be looked at.

        The number of hypotheses is that of all declared features, or of those of interest, with or
        without a p-value: which of them have one depends on the data.
        """
        n_features = self._table.n_features
        tested = n_features - len(self._table.nuisance)
        raw = self.pvalues.iloc[:n_features]
        ordered = raw.dropna().sort_values(kind="stable")
        steps = (tested - np.arange(len(ordered))) * ordered.to_numpy()
        ordered[:] = np.minimum(np.maximum.accumulate(steps), 1.0)
        return ordered.reindex(raw.index).rename("P>|t|, Holm")

    def undetected_shift(self) -> pd.Series[float]:
        """Return by how much a group too small to be detected could move each coefficient.

        Least squares, which does not clip such rows, could be moved further.
        `table_.undetected` is the number of rows of the smallest group that is detected.
        """
        return self._table.series(self._table.largest_shift, "largest shift")

    def standardized(self) -> pd.Series[float]:
        """Return coefficients per standard deviation of feature and target, as released."""
        table = self._table
        ratio = table.scales / table.target_scale
        return table.series(
            table.coefficients[: table.n_features] * ratio, "per standard deviation"
        )


@dataclass(frozen=True, eq=False)
class RegressionTable(TableReadings):
    """Released coefficients with their covariance, the constant last if there is one.

    `reasons` say of which features there is no interval, and why; those in `binary_bounds` have
    the bounds of a binary feature, and may be numbers that vary little within them, and those in
    `nuisance` are adjusted for while the budget went to coefficients of interest. The coefficient
    of `offset` is known. `clip_bias` is how far clipped influences may have moved a coefficient:
    what its standard error counts or, where large influences lean to one side along it, all that
    clips cut off. `scales` and `target_scale` are released standard deviations, in which effects
    are compared. `shortened` is the noisy number of high-leverage rows, whose weight is reduced. A
    group of fewer rows than `undetected` is not detectable at the budget, and moves coefficients by
    at most `largest_shift`.
    `plain_errors` are what standard errors would be about without privacy.
    """

    names: tuple[str, ...]
    coefficients: Array
    covariance: Array
    freedom: Array
    clip_bias: Array
    largest_shift: Array
    scales: Array
    target_scale: float
    shortened: float
    undetected: float
    plain_errors: Array
    reasons: Mapping[int, str] = field(default_factory=dict)
    binary_bounds: frozenset[int] = frozenset()
    nuisance: frozenset[int] = frozenset()
    offset: frozenset[int] = frozenset()

    @property
    def _table(self) -> RegressionTable:
        return self

    @property
    def n_features(self) -> int:
        """Return how many coefficients there are, without the constant."""
        return len(self.scales)

    @property
    def given(self) -> Mask:
        """Return of which coefficients there is an interval."""
        found = np.diag(self.covariance) > 0
        found[list(self.reasons)] = False
        return np.asarray(found)

    @property
    def fixed(self) -> Mask:
        """Return the coefficients that are known and not estimated: that of an offset."""
        return np.isin(np.arange(len(self.names)), list(self.offset))

    def is_clip_biased(self, j: int) -> bool:
        """Whether clipping may have moved a coefficient by a part of its standard error."""
        bias = float(self.clip_bias[j])
        return bool(self.given[j] and bias > NOTED_BIAS * math.sqrt(self.covariance[j, j]))

    @property
    def is_shiftable(self) -> bool:
        """Whether undetected rows could move a coefficient by more than its standard error."""
        errors = np.sqrt(np.diag(self.covariance))
        return bool(((self.largest_shift > errors) & self.given)[: self.n_features].any())

    @property
    def left_out(self) -> tuple[str, ...]:
        """Return the features that are not in the model; others may have no interval either."""
        return tuple(self.names[j] for j in self.reasons if self.coefficients[j] == 0)

    def series(self, values: Array, name: str) -> pd.Series[float]:
        """Return values by the names of their coefficients, NaN where there is no interval."""
        import pandas as pd

        told = np.where(self.given[: len(values)], values, np.nan)
        return pd.Series(told, index=self.names[: len(values)], name=name)

    def frame(self, level: float = 0.95) -> pd.DataFrame:
        """Return all columns of the table as it is printed, the constant last."""
        found = self.conf_int(level)  # by place: a column may be called const
        for place, part in enumerate((self.params, self.bse, self.tvalues, self.pvalues)):
            found.insert(place, part.name, part.to_numpy())
        return found

    def half_widths(self, level: float) -> Array:
        """Return how far intervals reach from coefficients; NaN where there is none."""
        if not 0 < level < 1:
            raise ValueError(message("result.level-range"))
        quantiles = stdtrit(self.freedom, 0.5 + level / 2)
        return np.asarray(quantiles * self.bse.to_numpy())

    def plain_half_widths(self, level: float = 0.95) -> Array:
        """Return how far intervals without privacy would reach, about: least squares' own."""
        half = float(ndtri(0.5 + level / 2)) * self.plain_errors
        return np.where(self.given, half, np.nan)

    def inference(self, family: Family = GAUSSIAN, *, clustered: bool = False) -> Inference:
        """Return the intervals at 95 %, and what they mean; `clustered`: units count, not rows."""
        errors = np.sqrt(np.diag(self.covariance))
        numbers = (self.coefficients, errors, self.half_widths(0.95))
        intervals = tuple(
            FeatureInterval.of(j, self.names[j], *(float(one[j]) for one in numbers))
            for j in np.flatnonzero(self.given[: self.n_features]).tolist()
        )
        if not intervals:
            why = set(self.reasons.values())
            if len(why) == 1:
                return Inference.not_available(why.pop())
            told = "Intervals are not available, for reasons that table_.reasons has."
            return Inference(False, told, ())
        words, given = family.words, self.given
        model = f"without {some(self.left_out)}" if self.left_out else "of all listed features"
        meaning = MEANING.format(
            model=f"of {words.predictor} {model}" if words.predictor else model,
            bounds=family.target.bounds,
            sampling=CLUSTERED if clustered else words.sampling,
        )
        found = (self.clip_bias[given], self.largest_shift[given], errors[given])
        notes = caveats(
            self.shortened, self.undetected, found, words.plain, "units" if clustered else "rows"
        )
        return Inference(True, " ".join([meaning, *notes]), intervals)


# --- in a model file ------------------------------------------------------------------------------

_ARRAYS = (
    *("coefficients", "covariance", "freedom", "clip_bias", "largest_shift"),
    *("scales", "plain_errors"),
)


def table_fields(table: RegressionTable) -> dict[str, Any]:
    """Return in plain values what a model file says beside names and coefficients."""
    return {name: getattr(table, name).tolist() for name in _ARRAYS} | {
        "target_scale": table.target_scale,
        "shortened": table.shortened,
        "undetected": table.undetected,
        "left_out": [
            {"feature": j, "reason": why, "binary_bounds": j in table.binary_bounds}
            | {name: True for name in ("nuisance", "offset") if j in getattr(table, name)}
            for j, why in table.reasons.items()
        ],
    }


def table_of_fields(found: Mapping[str, Any], names: tuple[str, ...], d: int) -> RegressionTable:
    """Return the table of d features in a model file, or raise a ValueError."""
    arrays = {name: np.array(found[name], dtype=np.float64) for name in _ARRAYS}
    covariance, k = arrays["covariance"], len(names)
    left_out = {int(one["feature"]): prose(one["reason"]) for one in found["left_out"]}
    marked = {
        name: frozenset(int(one["feature"]) for one in found["left_out"] if one.get(name))
        for name in ("binary_bounds", "nuisance", "offset")
    }
    shapes = {"covariance": (k, k), "scales": (d,)}
    for name, array in arrays.items():
        if array.shape != shapes.get(name, (k,)):
            what = "feature" if name == "scales" else "coefficient"
            raise ValueError(message("model-file.table-size", what=what))
    if len(left_out) != len(found["left_out"]):
        raise ValueError(message("model-file.table-twice"))
    if not (covariance == covariance.T).all() or (np.diag(covariance) < 0).any():
        raise ValueError(message("model-file.covariance"))
    if any(j >= d for j in left_out):
        raise ValueError(message("model-file.left-out"))
    return RegressionTable(
        names=names,
        target_scale=float(found["target_scale"]),
        shortened=float(found["shortened"]),
        undetected=float(found["undetected"]),
        reasons=left_out,
        binary_bounds=marked["binary_bounds"],
        nuisance=marked["nuisance"],
        offset=marked["offset"],
        **arrays,
    )
