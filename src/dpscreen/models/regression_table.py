"""Regression tables: coefficients, standard errors, intervals and tests.

Made from released numbers only. Where a coefficient could not be told apart from others there is
NaN, and a reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from scipy.special import fdtrc, ndtri, stdtr, stdtrit
from sklearn.utils.validation import check_is_fitted

from dpscreen._core.arrays import Array, Mask
from dpscreen._core.words import (
    LINEAR,
    ODDS,
    PER_CENT,
    EffectScale,
    PrintedTable,
    did_you_mean,
    listed,
    number,
    prose,
    short_name,
    some,
    step_words,
)
from dpscreen.solvers.inference import (
    MEANING,
    OF_CHANCES,
    UNEQUAL,
    FeatureInterval,
    Inference,
    differences,
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
    """Whether several coefficients are zero together: F with its degrees of freedom, and p.

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

    def __str__(self) -> str:
        p = f"= {self.pvalue:.4g}" if self.pvalue >= 0.0001 else "< 0.0001"
        told = (
            f"{listed(self.names)} together zero: F({self.df_num}, {self.df_denom:.0f}) = "
            f"{self.statistic:.4g}, p {p}"
        )
        inside = [name for name in self.untested if name not in self.left_out]
        why = ((inside, "without an interval"), (self.left_out, "not in the model"))
        return told + "".join(f"; not tested: {listed(of)}, {one}" for of, one in why if of)


@dataclass(frozen=True, eq=False)
class RegressionTable:
    """Released coefficients with their covariance, the constant last if there is one.

    `reasons` say of which features there is nothing to tell, and why. `clip_bias` is how far
    clipped influences may have moved a coefficient, by what a lower clip would change.
    `scales` and `target_scale` are released deviations, in which effects are compared.
    `shortened` is the noisy number of rows that count for less because they lie far out.
    `plain_errors` are what standard errors would be about without privacy.
    """

    names: tuple[str, ...]
    coefficients: Array
    covariance: Array
    freedom: Array
    clip_bias: Array
    scales: Array
    target_scale: float
    shortened: float
    plain_errors: Array
    reasons: Mapping[int, str] = field(default_factory=dict)

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
    def left_out(self) -> tuple[str, ...]:
        """Return the features that are not in the model; others may have no interval either."""
        return tuple(self.names[j] for j in self.reasons if self.coefficients[j] == 0)

    def _series(self, values: Array, name: str) -> pd.Series[float]:
        import pandas as pd

        told = np.where(self.given[: len(values)], values, np.nan)
        return pd.Series(told, index=self.names[: len(values)], name=name)

    @property
    def params(self) -> pd.Series[float]:
        """Return the coefficients by name; NaN for features that were left out."""
        return self._series(self.coefficients, "coef")

    @property
    def bse(self) -> pd.Series[float]:
        """Return the standard errors."""
        return self._series(np.sqrt(np.diag(self.covariance)), "std err")

    @property
    def tvalues(self) -> pd.Series[float]:
        """Return coefficients over their standard errors."""
        return (self.params / self.bse).rename("t")

    @property
    def pvalues(self) -> pd.Series[float]:
        """Return two-sided p-values of single coefficients being zero."""
        return self._series(2 * stdtr(self.freedom, -np.abs(self.tvalues.to_numpy())), "P>|t|")

    def holm(self) -> pd.Series[float]:
        """Return the features' p-values, adjusted by Holm's rule for looking at all of them.

        All declared features count, also those without a p-value: which of them have one depends
        on the data.
        """
        raw = self.pvalues.iloc[: self.n_features]
        ordered = raw.dropna().sort_values(kind="stable")
        steps = (self.n_features - np.arange(len(ordered))) * ordered.to_numpy()
        ordered[:] = np.minimum(np.maximum.accumulate(steps), 1.0)
        return ordered.reindex(raw.index).rename("P>|t|, Holm")

    def half_widths(self, level: float) -> Array:
        """Return how far intervals reach from coefficients; NaN where there is none."""
        if not 0 < level < 1:
            raise ValueError("level must lie between 0 and 1.")
        quantiles = stdtrit(self.freedom, 0.5 + level / 2)
        return np.asarray(quantiles * self.bse.to_numpy())

    def conf_int(
        self, level: float = 0.95, *, alpha: float | None = None, constant: bool = False
    ) -> pd.DataFrame:
        """Return low and high end of each feature's interval, NaN where there is none."""
        import pandas as pd

        level = level if alpha is None else 1 - alpha
        if level < LEAST_LEVEL:
            raise ValueError(
                f"an interval that holds its coefficient {level:.0%} of the time is hardly meant: "
                "level is 0.95 where other software says alpha=0.05."
            )
        middle, half = self.params.to_numpy(), self.half_widths(level)
        ends = {"low": middle - half, "high": middle + half}
        found = pd.DataFrame(ends, index=pd.Index(self.names))
        return found if constant else found.iloc[: self.n_features]

    def plain_half_widths(self, level: float = 0.95) -> Array:
        """Return how far intervals without privacy would reach, about: least squares' own."""
        half = float(ndtri(0.5 + level / 2)) * self.plain_errors
        return np.where(self.given, half, np.nan)

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance of all coefficients."""
        import pandas as pd

        there = np.outer(self.given, self.given)
        told = np.where(there, self.covariance, np.nan)
        return pd.DataFrame(told, index=list(self.names), columns=list(self.names))

    def standardized(self) -> pd.Series[float]:
        """Return coefficients per deviation of feature and target, both as released."""
        ratio = self.scales / self.target_scale
        return self._series(self.coefficients[: self.n_features] * ratio, "per deviation")

    def wald_test(self, names: str | Sequence[str]) -> WaldTest:
        """Test whether several coefficients are all zero; a category stands for its levels."""
        places = self._places([names] if isinstance(names, str) else list(names))
        told = tuple(self.names[place] for place in places)
        there = [place for place in places if self.given[place]]
        if not there:
            raise ValueError(f"there is no interval for {some(told)}, so nothing to test.")
        part = self.covariance[np.ix_(there, there)]
        values = self.coefficients[there]
        statistic = float(values @ np.linalg.solve(part, values)) / len(there)
        freedom = float(self.freedom[there].min())
        pvalue = float(fdtrc(len(there), freedom, statistic))
        kept = tuple(self.names[place] for place in there)
        untested = tuple(name for name in told if name not in kept)
        gone = tuple(name for name in untested if name in self.left_out)
        return WaldTest(kept, statistic, len(there), freedom, pvalue, untested, gone)

    def _places(self, names: Sequence[str]) -> list[int]:
        found: list[int] = []
        for name in names:
            of = [j for j, one in enumerate(self.names) if one == name]
            of = of or [j for j, one in enumerate(self.names) if one.startswith(f"{name}=")]
            if not of:
                guess = did_you_mean(name, self.names)
                raise ValueError(f"no feature is called {name!r}: {some(self.names)}.{guess}")
            found += [j for j in of if j not in found]
        return found

    def inference(self, *, outcomes: bool = False) -> Inference:
        """Return the intervals at 95 %, and what they mean; those of log-odds for outcomes."""
        errors = np.sqrt(np.diag(self.covariance))
        numbers = (self.coefficients, errors, self.half_widths(0.95))
        intervals = tuple(
            FeatureInterval.of(j, self.names[j], *(float(one[j]) for one in numbers))
            for j in np.flatnonzero(self.given[: self.n_features]).tolist()
        )
        return Inference(bool(intervals), " ".join(self.meaning(outcomes=outcomes)), intervals)

    def meaning(self, *, outcomes: bool = False) -> Iterator[str]:
        """Yield what intervals are for, and what they are not."""
        if not self.given[: self.n_features].any():
            why = set(self.reasons.values())
            told = f": {why.pop()}" if len(why) == 1 else ", for reasons that table_.reasons has."
            yield f"Intervals are not available{told}"
            return
        model = f"without {some(self.left_out)}" if self.left_out else "of all listed features"
        yield MEANING.format(
            model=f"of log-odds {model}" if outcomes else model,
            bounds="to feature_bounds_" if outcomes else "to feature_bounds_ and target_bounds_",
            sampling=OF_CHANCES if outcomes else UNEQUAL,
        )
        there = self.given
        errors = np.sqrt(np.diag(self.covariance))[there]
        usual = "logistic regression" if outcomes else "least squares"
        yield from differences(self.shortened, self.clip_bias[there], errors, usual)


# --- a model that has a table ---------------------------------------------------------------------

NOT_KEPT = (
    "fitted values and residuals are a number for each private row, so a private model keeps none. "
    "predict(X) computes them; they are as private as X."
)


class TableModel:
    """What a model with a regression table tells of it, fitted or from a file."""

    table_: RegressionTable
    quality_: Any
    n_rows_: Any

    @property
    def params(self) -> pd.Series[float]:
        """Return the coefficients by name, the constant last; NaN for what was left out."""
        return self._table.params

    @property
    def bse(self) -> pd.Series[float]:
        """Return the standard errors by name."""
        return self._table.bse

    @property
    def tvalues(self) -> pd.Series[float]:
        """Return coefficients over their standard errors."""
        return self._table.tvalues

    @property
    def pvalues(self) -> pd.Series[float]:
        """Return two-sided p-values of single coefficients being zero."""
        return self._table.pvalues

    @property
    def rsquared(self) -> float:
        """Return the released R²; NaN if it is not known (`quality_.r2_reason` says why)."""
        quality = getattr(self, "quality_", None)
        if quality is None:
            check_is_fitted(self)
            raise AttributeError("rsquared was not paid for: fit with quality=True.")
        return float(quality.r2)

    @property
    def nobs(self) -> float:
        """Return the number of rows that rules used: the declared one, or a noisy count."""
        check_is_fitted(self)
        return float(self.n_rows_)

    @property
    def fittedvalues(self) -> NoReturn:
        """Refuse with an AttributeError: a number for each private row is not kept."""
        raise AttributeError(NOT_KEPT)

    resid = fittedvalues

    def conf_int(
        self, level: float = 0.95, *, alpha: float | None = None, constant: bool = False
    ) -> pd.DataFrame:
        """Return each feature's interval, low and high; NaN where there is none.

        Parameters
        ----------
        level : float, default=0.95
            How often such an interval holds its coefficient; one at a time, not all together.
            At least 0.5.
        alpha : float, default=None
            How often it does not, as other software has it: alpha=0.1 is level=0.9.
        constant : bool, default=False
            Whether a last row, const, is for the intercept, as in `params`.

        Returns
        -------
        DataFrame
            One row for each feature, in their order, and columns low and high. `params` and
            `cov_params` have the constant too; here it must be asked for.
        """
        return self._table.conf_int(level, alpha=alpha, constant=constant)

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance of all coefficients, privacy noise included."""
        return self._table.cov_params()

    def wald_test(self, names: str | Sequence[str]) -> WaldTest:
        """Test whether several coefficients are zero together.

        Parameters
        ----------
        names : str or list of str
            Features; the name of a category stands for all of its levels.

        Returns
        -------
        WaldTest
            With `statistic` (F), `df_num`, `df_denom`, `pvalue`, the names that are `untested`,
            as they have no interval, and those of them that are `left_out` of the model. Print it.
        """
        return self._table.wald_test(names)

    def holm(self) -> pd.Series[float]:
        """Return the features' p-values adjusted by Holm's rule: all of them may be looked at.

        The number of hypotheses is that of all declared features, with or without a p-value.
        """
        return self._table.holm()

    def standardized(self) -> pd.Series[float]:
        """Return coefficients per deviation of feature and target, as these were released."""
        return self._table.standardized()

    @property
    def _table(self) -> RegressionTable:
        check_is_fitted(self)
        return self.table_


class OddsTableModel(TableModel):
    """The same of log-odds."""

    def odds_ratios(self, level: float = 0.95) -> pd.DataFrame:
        """Return by what the odds are multiplied with a step of 1 of each feature.

        Parameters
        ----------
        level : float, default=0.95
            How often such an interval holds its odds ratio; one at a time.

        Returns
        -------
        DataFrame
            One row for each feature, in their order, and columns odds_ratio, low and high.
        """
        import pandas as pd

        ends = self.conf_int(level)
        params = self.params.iloc[: len(ends)].rename("odds_ratio")
        return pd.DataFrame(np.exp(pd.concat([params, ends], axis=1)))

    @property
    def rsquared(self) -> NoReturn:
        """Refuse with an AttributeError: chances have no R²."""
        raise AttributeError("chances have no R²; quality_ tells AUC and deviance.")


# --- in a model file ------------------------------------------------------------------------------


def table_fields(table: RegressionTable) -> dict[str, Any]:
    """Return in plain values what a model file says beside names and coefficients."""
    return {
        "covariance": table.covariance.tolist(),
        "freedom": table.freedom.tolist(),
        "clip_bias": table.clip_bias.tolist(),
        "scales": table.scales.tolist(),
        "target_scale": table.target_scale,
        "shortened": table.shortened,
        "left_out": [{"feature": j, "reason": why} for j, why in table.reasons.items()],
        "plain_errors": table.plain_errors.tolist(),
    }


def table_of_fields(
    found: Mapping[str, Any], names: tuple[str, ...], coefficients: Sequence[float], d: int
) -> RegressionTable:
    """Return the table of d features in a model file, or raise a ValueError."""
    covariance, freedom, bias, scales, plain_errors = (
        np.array(found[key], dtype=np.float64)
        for key in ("covariance", "freedom", "clip_bias", "scales", "plain_errors")
    )
    k = len(names)
    left_out = {int(one["feature"]): prose(one["reason"]) for one in found["left_out"]}
    if covariance.shape != (k, k) or {one.shape for one in (freedom, bias, plain_errors)} != {(k,)}:
        raise ValueError("the regression table must have one entry for each coefficient.")
    if scales.shape != (d,) or len(left_out) != len(found["left_out"]):
        raise ValueError("the regression table must have each feature once.")
    if not (covariance == covariance.T).all() or (np.diag(covariance) < 0).any():
        raise ValueError("a covariance must be symmetric, with a diagonal that is not negative.")
    if any(j >= d for j in left_out):
        raise ValueError("a feature is left out that the model does not have.")
    numbers = np.array(coefficients, dtype=np.float64), covariance, freedom, bias, scales
    told = float(found["target_scale"]), float(found["shortened"])
    return RegressionTable(names, *numbers, *told, plain_errors, left_out)


# --- the summary ----------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class RegressionSummary(PrintedTable):
    """A regression table as statisticians know it. Print it, or use `frame`."""

    title: str
    table: RegressionTable
    notes: tuple[str, ...]
    steps: tuple[float, ...]
    zero_one: tuple[bool, ...]
    level: float = 0.95
    scale: EffectScale = LINEAR

    @property
    def has_odds(self) -> bool:
        """Whether effects are shown as odds ratios."""
        return self.scale == ODDS

    @property
    def frame(self) -> pd.DataFrame:
        """Return the table as a data frame."""
        table = self.table
        parts = (table.params, table.bse, table.tvalues, table.pvalues)
        found = table.conf_int(self.level, constant=True)  # by place: a column may be called const
        for place, part in enumerate(parts):
            found.insert(place, part.name, part.to_numpy())
        steps = np.append(self.steps, [np.nan] * (len(found) - len(self.steps)))
        effects = steps * table.params.to_numpy()
        if self.scale == PER_CENT:
            return found.assign(step=steps, effect_percent=100 * np.expm1(effects))
        if not self.has_odds:
            return found.assign(step=steps, effect=effects)
        low, high = np.exp(steps * found.to_numpy()[:, 4:6].T)
        return found.assign(
            step=steps, odds_ratio=np.exp(effects), odds_ratio_low=low, odds_ratio_high=high
        )

    @property
    def has_intervals(self) -> bool:
        """Whether any feature has an interval."""
        return bool(self.table.given[: self.table.n_features].any())

    def _cells(self) -> list[list[str]]:
        tails = (1 - self.level) / 2
        head, ends = ["", "coef", "std err", "t", "P>|t|"], [f"[{tails:.3g}", f"{1 - tails:.3g}]"]
        name = self.scale.heading
        head += ["step", name, *ends] if self.has_odds else [*ends, "step", name]
        rows = list(enumerate(self.frame.iterrows()))
        rows = rows if self.has_intervals else rows[len(self.steps) :]  # one reason is for all
        body = ([*self._row(name, row), *self._effect(place, row)] for place, (name, row) in rows)
        return [head, *body]

    def _effect(self, place: int, row: Any) -> list[str]:
        """Return step and effect, as text, of odds with their interval; of the constant none."""
        told = [number(value, digits=4) + self.scale.sign for value in row.iloc[7:]]
        if place >= len(self.steps):
            return [""] * (1 + len(told))
        step = step_words(self.steps[place], self.zero_one[place])
        return [step, *(["–"] * len(told) if np.isnan(row.iloc[0]) else told)]

    def _row(self, name: Any, row: Any) -> list[str]:
        coef, error, t, p, low, high = row.iloc[:6]
        told = [number(coef, digits=5), number(error, digits=3), f"{t:.2f}", f"{p:.3f}"]
        told += [] if self.has_odds else [number(low, digits=4), number(high, digits=4)]
        return [short_name(str(name)), *(["–"] * len(told) if np.isnan(coef) else told)]
