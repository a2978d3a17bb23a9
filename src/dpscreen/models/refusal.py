"""A regression table that is impossible at its budget: the rule in words, and the exception.

Both the fit and the plan call `table_needs`, so that a plan predicts what a fit refuses.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING
from fractions import Fraction
from functools import partial

from dpscreen._core.words import how_many, listed, number, rounded, rounded_up
from dpscreen.privacy import ZCDP, Budget, PrivacyStatement
from dpscreen.solvers.table import TableRule


@dataclass(frozen=True)
class RequestedTable:
    """A table that is asked for: public numbers and, as `n_rows`, a declared or noisy count."""

    n_rows: int
    n_features: int
    budget: Budget
    constant: bool = True
    counted: str = "row"
    """What is counted: rows, or units whose rows count together."""


@dataclass(frozen=True)
class TableNeeds:
    """What would make a table possible that is not.

    `epsilon` is at the δ of the request; None if no ε suffices for so many features and rows.
    `features` may be 0: then no table is possible with this many rows at this budget.
    """

    rows: int
    epsilon: float | None
    features: int
    counted: str = "row"

    def words(self, instead: str) -> str:
        """Say what would make it possible, and which model selects features instead."""
        options = [f"about {number(self.rows)} {self.counted}s"]
        if self.epsilon is not None:
            options.append(f"an epsilon of about {self.epsilon:g}")
        if self.features:
            options.append(f"at most {how_many(self.features, 'feature')}")
        return (
            f"A table needs {listed(options, 'or')}. Even then some coefficients may have "
            f"no interval. {instead} selects features with any number of {self.counted}s; simulate "
            "it first."
        )


def table_needs(rule: TableRule, asked: RequestedTable) -> TableNeeds | None:
    """Return what a table would take; None if it is possible (docs/theory/tables.md, Lemma 60)."""
    budget, columns = asked.budget, asked.n_features + asked.constant
    rho = float(ZCDP.within(budget))
    rows = rule.rows_needed(columns, rho)
    if rows <= asked.n_rows:
        return None
    more = rule.rho_needed(columns, asked.n_rows)
    up = partial(rounded, digits=2, direction=ROUND_CEILING)  # so that what is read suffices
    return TableNeeds(
        int(up(rows)),
        None if more is None else up(ZCDP(Fraction(more)).epsilon(budget.delta)),
        max(0, rule.most_columns(asked.n_rows, rho, columns) - asked.constant),
        asked.counted,
    )


class TableRefused(ValueError):
    """A regression table was not fitted, as privacy noise rules it out at this budget.

    Decided from the number of rows, declared or a noisy count, from public numbers and, for
    outcomes, from their released share: it says nothing about any effect of the features.

    Attributes
    ----------
    n_rows : int
        The number of rows that was used: declared, or a noisy count.
    n_features : int
        How many features were asked for.
    charged : ZCDP
        What was charged to the budget, and booked in the ledger if there is one; nothing if the
        number of rows was declared.
    privacy : PrivacyStatement or None
        The statement of what was released; None if nothing was.
    rows_needed : int
        With about how many rows the table is possible at this budget.
    epsilon_needed : float or None
        With about which ε, at the same δ, it is possible with these rows; None: with none.
    features_possible : int
        How many features are possible with these rows at this budget.
    """

    n_rows: int
    n_features: int
    charged: ZCDP
    privacy: PrivacyStatement | None
    rows_needed: int
    epsilon_needed: float | None
    features_possible: int


NOISE = "privacy noise would hide the coefficients even of uncorrelated features."
FEW_ROWS = "standard errors need at least ten {}s for each coefficient, the constant among them."


def refused(
    asked: RequestedTable,
    needs: TableNeeds,
    charged: ZCDP | None = None,
    privacy: PrivacyStatement | None = None,
    *,
    counted: bool = False,
    instead: str,
) -> TableRefused:
    """Return the refusal of a table, with what was charged for it."""
    rows = how_many(asked.n_rows, asked.counted)
    given = f"about {rows} (a noisy count)" if counted else f"{rows} (declared)"
    budget = asked.budget
    why = NOISE if needs.epsilon is not None else FEW_ROWS.format(asked.counted)
    charge = "Nothing was charged to the budget."
    if charged is not None and privacy is not None:
        released = listed([one.purpose for one in privacy.mechanisms])
        epsilon = rounded_up(charged.epsilon(budget.delta), digits=3)
        charge = (
            f"Only {released} was released and charged to the budget: epsilon = {epsilon} at "
            f"delta = {budget.delta:g}."
        )
    message = (
        f"a table of {how_many(asked.n_features, 'feature')} is not possible with {given} at "
        f"epsilon = {budget.epsilon:g}, delta = {budget.delta:g}: {why} {needs.words(instead)} "
        f"{charge}"
    )
    refusal = TableRefused(message)
    refusal.charged, refusal.privacy = charged or ZCDP.free(), privacy
    refusal.n_rows, refusal.n_features = asked.n_rows, asked.n_features
    refusal.rows_needed, refusal.epsilon_needed = needs.rows, needs.epsilon
    refusal.features_possible = needs.features
    return refusal
