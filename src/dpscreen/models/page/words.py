"""A fitted model as a page shows it: its summary, with what turns coefficients into effects.

Coefficients are in the users' units and cannot be compared with each other. An effect can: it is
the coefficient times half the width of the feature's bounds, so how far the prediction moves, in
the target's units, when the feature goes from the middle of its bounds to their upper end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpscreen import __version__
from dpscreen._core.words import how_many, shortened, without_towers
from dpscreen.models.release import SummaryRow
from dpscreen.privacy import PrivacyStatement


@dataclass(frozen=True)
class FeatureLine:
    """One selected feature, largest effect first."""

    row: SummaryRow

    @property
    def name(self) -> str:
        """Return the feature's name, as it is."""
        return self.row.feature

    @property
    def interval(self) -> tuple[float, float, float] | None:
        """Return low end, refit and high end of the interval as effects; None if there is none."""
        if self.row.low is None or self.row.refit is None or self.row.high is None:
            return None
        half_width = self.row.effect / self.row.coefficient
        return self.row.low * half_width, self.row.refit * half_width, self.row.high * half_width


@dataclass(frozen=True)
class ModelView:
    """The selected features and what may be said about them; released values only."""

    method: str
    target: str
    n_features: int
    intercept: float
    lines: tuple[FeatureLine, ...]
    notes: tuple[str, ...]
    has_intervals: bool


def view(model: Any, *, target: str) -> ModelView:
    """Return what is released of a fitted model."""
    summary = model.summary()
    return ModelView(
        method=summary.title.partition(":")[0],
        target=target,
        n_features=int(model.n_features_in_),
        intercept=summary.intercept,
        lines=tuple(FeatureLine(row) for row in summary.rows),
        notes=summary.notes,
        has_intervals=summary.has_intervals,
    )


Facts = list[tuple[str, str]]

TOO_LITTLE = (
    "the rows are too few for this budget and so many features, and what is chosen is mostly noise."
)
LIMITS = "NOT protected: "
ASSUMPTIONS = (
    "Bounds, levels and all settings were chosen from knowledge, not by looking at these data.",
    "The computer that fitted the model, and those who ran it, are trusted with the rows.",
    "Values beyond the declared bounds were clipped to them; bounds that cut off much of the data "
    "bias the coefficients.",
    "A straight line is a fair summary: coefficients describe, and are not causes.",
)
ONE_ROW = "Every person is in at most one row. Who is in several is protected less, row by row."
UNPROTECTED = (
    "What holds for people in general: it can be applied to anyone, in the data or not.",
    "What other releases from the same data give away: their costs add to this one.",
    "The rows themselves, against those who can read them or the computer's memory.",
)


def target_name(schema: Any) -> str:
    """Return what the schema calls the target."""
    descriptor = schema.to_dict() if hasattr(schema, "to_dict") else schema
    block = descriptor.get("dpscreen") if isinstance(descriptor, Mapping) else None
    name = block.get("target") if isinstance(block, Mapping) else None
    if not isinstance(block, Mapping) or not isinstance(name, str):
        return "the target"
    transforms = block.get("transform") or {}
    word = transforms.get(name, "none") if isinstance(transforms, Mapping) else "none"
    return shortened(name if word == "none" else f"{word}({name})", 60)


def headline(statement: PrivacyStatement, view: ModelView) -> str:
    """Say in one sentence what this is."""
    return (
        f"A linear model of {view.target} with {len(view.lines)} of "
        f"{how_many(view.n_features, 'feature')}, fitted under differential privacy with "
        f"ε = {statement.epsilon:g} and δ = {statement.delta:g}."
    )


def headline_facts(model: Any, view: ModelView) -> Facts:
    """Return the few numbers that everyone asks for."""
    statement: PrivacyStatement = model.privacy_
    rows = getattr(model, "n_rows_", None)
    facts = [
        ("Epsilon", f"{statement.epsilon:g}"),
        ("Delta", f"{statement.delta:g}"),
        ("Features chosen", f"{len(view.lines)}"),
    ]
    return facts if rows is None else [*facts, ("Rows", f"{rows:,}".replace(",", "\u202f"))]


def warnings(statement: PrivacyStatement) -> list[str]:
    """Say what must not be overlooked."""
    found = []
    if statement.calibration == "published":
        found.append(
            "Not private as stated: the paper's constants were used, with which the stated ε does "
            f"not hold (errata {', '.join(statement.errata)})."
        )
    elif not statement.secure_noise:
        found.append(
            "Not private: the noise came from a seed, and whoever knows the seed can take it away. "
            "Fit again without random_state before anything is handed over."
        )
    return found


def paragraphs(model: Any) -> list[str]:
    """Return the model's own explanation; what is not protected stands apart."""
    told, sign, limits = without_towers(model.explain()).partition(LIMITS)
    return [told.strip(), sign + limits] if sign else [told]


# --- the statement --------------------------------------------------------------------------------


def statement_facts(statement: PrivacyStatement) -> Facts:
    """Return what is promised and on what grounds, as names and texts."""
    rho = "" if statement.rho is None else f", ρ = {statement.rho:.6g} in zCDP"
    return [
        ("Promise", f"ε = {statement.epsilon:g}, δ = {statement.delta:g}{rho}"),
        ("Does it hold?", "yes" if statement.holds else "no: see the warning at the top"),
        ("Unit", statement.unit),
        ("Neighbouring data sets", statement.neighbours),
        *([("Number of rows", statement.disclosure)] if statement.rows_disclosed else []),
        ("Composition", statement.composition),
        ("Before the fit", statement.preprocessing),
        ("Tuning", statement.tuning),
        ("Trust", statement.trust_model),
        ("Arithmetic", statement.arithmetic),
        ("Random bits", statement.noise),
        ("Measures against timing", statement.timing),
        ("Library", statement.library),
    ]


# --- assumptions and limits -----------------------------------------------------------------------


def assumptions(statement: PrivacyStatement) -> list[str]:
    """List what the promise and the numbers rest on."""
    return [_about_units(statement), *ASSUMPTIONS]


def _about_units(statement: PrivacyStatement) -> str:
    """Say what has to be true of whom the rows belong to."""
    most = how_many(statement.rows_per_unit, "row")
    if statement.of_rows:
        return ONE_ROW
    if statement.surplus_left_out:
        return (
            f"Every person is one value of the column of units. Of each value at most {most} "
            f"{'was' if statement.rows_per_unit == 1 else 'were'} used; surplus rows, and rows "
            "without a value, were left out without looking at what else they hold."
        )
    return (
        f"Every unit has at most {most}: whoever prepared the rows made sure of it, as the fit "
        "does not know whose row is whose."
    )


def unprotected(statement: PrivacyStatement) -> list[str]:
    """List what differential privacy does not hide."""
    told = [f"{text[:1].upper()}{text[1:]}." for text in statement.not_covered]
    return [*UNPROTECTED, *told]


# --- budget and origin ----------------------------------------------------------------------------


def budget_facts(ledger: Mapping[str, Any] | None) -> Facts | None:
    """Return what the ledger granted, what is spent and what remains; None without one."""
    if ledger is None:
        return None
    delta = ledger["delta"]
    facts = [("Data set", shortened(str(ledger["dataset"]), 120))]
    for name in ("total", "spent", "remaining"):
        amount = ledger[name]
        title = "Granted" if name == "total" else name.capitalize()
        facts.append((title, f"ε {amount['epsilon']:g} at δ {delta:g} (ρ {amount['rho']:g})"))
    return facts


def made_with(model: Any, view: ModelView) -> Facts:
    """Say what made the model."""
    return [
        ("Method", view.method),
        ("Steps", str(getattr(model, "n_iter_", "–"))),
        ("Library", f"{model.privacy_.library}; this page by dpscreen {__version__}"),
    ]
