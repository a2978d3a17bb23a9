"""What a fit promises, in values and in words; and what a promise read from a file must satisfy.

A file can be edited. What follows from other numbers in it is computed again: whether the promise
holds, whether ε and δ follow from ρ, and whether the mechanisms add up to ρ. What is said in words
must be said as `PrivacyStatement` says it, wherever a reader would rely on it. Which fields there
are, and of which kind and size, the JSON Schema of a model file says.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import Field, asdict, dataclass, fields
from fractions import Fraction
from html import escape
from typing import Any

import numpy as np

from dpscreen import __version__
from dpscreen._core.messages import message
from dpscreen._core.words import WIDTH, rounded_up
from dpscreen.privacy.accountant import Accountant, Use
from dpscreen.privacy.budget import ROW, ZCDP, Budget, Unit, neighbours_of, worded
from dpscreen.privacy.mechanisms import DiscreteGaussian, NoisyMax


class PublishedCalibrationWarning(UserWarning):
    """The paper's constants are in use: the stated ε does not hold."""


class SeededNoiseWarning(UserWarning):
    """The noise can be repeated by whoever knows the seed: the release is not private."""


class WeakDeltaWarning(UserWarning):
    """δ is 1/n or more: the promise allows publishing a random row outright."""


COMPOSITION = (
    "adaptive composition in zCDP, in which costs add up; the total is converted to epsilon and "
    "delta at the end (docs/theory/mechanisms.md, Lemma 4)"
)
IN_HALVES = (
    "adaptive composition in zCDP within each of two halves, of which one row touches one only; "
    "the larger of the two sums is converted to epsilon and delta at the end "
    "(docs/theory/mechanisms.md, Lemma 16)"
)
NO_COMPOSITION = "as published, with sensitivities that do not hold; no cost is claimed"
PREPROCESSING = (
    "outside the budget: values are clipped to bounds that are public or released, each row by "
    "itself; whatever was done to the rows before the fit is not covered"
)
AVERAGED = (
    "what the rows of one unit add to a sum is averaged, and counts as one row's "
    "(docs/theory/mechanisms.md, Lemma 89); "
)
TUNING = (
    "the fit's own choices are functions of public and released numbers, charged to the "
    "budget; comparing several fits, or setting parameters by looking at the data, is not covered"
)
TRUST = (
    "central: a curator sees the rows and runs the fit on a trusted machine; everybody else sees "
    "what is released, may know every other row, and is not trusted"
)
TIMING = "none: running time depends on the data, so let nobody who is not trusted measure it"
NOT_COVERED = (
    "choices made by looking at the data (bounds, radius, n_iter, which model to keep)",
    "running time",
    "whether there were rows and they passed the check for missing and infinite values",
)


@dataclass(frozen=True)
class MechanismRecord:
    """One line of the account: a mechanism with its sensitivity, noise scale and count.

    Sensitivity and cost are for one unit: k times and k² times those of a row, if k rows of one
    count by themselves. Rounds of one purpose are one line: the largest sensitivity, and the noise
    scale at which as many rounds, all alike, cost the same.
    """

    purpose: str
    name: str
    sensitivity: float
    scale: float
    count: int
    rho: float | None

    @classmethod
    def of(cls, *uses: Use, proven: bool, rows_per_unit: int = 1) -> MechanismRecord:
        """Record the uses of one purpose; the cost is stated only where it is proven."""
        first, k, count = uses[0].mechanism, rows_per_unit, sum(one.count for one in uses)
        change, scale, rho = max(one.mechanism.sensitivity for one in uses), first.scale, None
        if proven:
            cost = sum((one.count * one.mechanism.cost for one in uses), ZCDP.free())
            alike = math.sqrt(count * first.cost.rho / cost.rho)
            scale, rho = change / first.sensitivity * alike * scale, float(k**2 * cost)
        return cls(uses[0].purpose, first.name, k * change, scale, count, rho)

    def __str__(self) -> str:
        cost = "" if self.rho is None else f", rho {self.rho:.4g}"
        times = "once" if self.count == 1 else f"{self.count} times"
        return (
            f"{self.purpose}: {self.name}, {times}, "
            f"sensitivity {self.sensitivity:.4g}, noise scale {self.scale:.4g}{cost}"
        )


@dataclass(frozen=True)
class PrivacyStatement:
    """What a fitted model promises. Holds public and released values only.

    `holds` is False where the promise is known not to be kept: the published calibration, and
    noise that can be repeated from a seed. ε, δ and ρ are for one unit: one row, or up to
    `rows_per_unit` rows. `rows_disclosed` says that the true number of rows is part of the
    release; then only what a unit holds is hidden, not whether it is there
    (docs/theory/mechanisms.md, Lemma 19).
    """

    epsilon: float
    delta: float
    rho: float | None
    calibration: str
    neighbours: str
    mechanisms: tuple[MechanismRecord, ...]
    public: tuple[str, ...]
    errata: tuple[str, ...]
    arithmetic: str
    noise: str
    secure_noise: bool
    unit: str = str(ROW)
    rows_per_unit: int = 1
    rows_disclosed: bool = False
    composition: str = COMPOSITION
    preprocessing: str = PREPROCESSING
    tuning: str = TUNING
    trust_model: str = TRUST
    timing: str = TIMING
    not_covered: tuple[str, ...] = NOT_COVERED
    library: str = f"dpscreen {__version__}"

    @classmethod
    def of(
        cls,
        budget: Budget,
        accountant: Accountant,
        *,
        public: tuple[str, ...],
        arithmetic: str = "float64",
        errata: tuple[str, ...] = (),
        composition: str = COMPOSITION,
        rows_disclosed: bool = False,
    ) -> PrivacyStatement:
        """Close the account of a fit."""
        proven, unit = accountant.limit is not None, accountant.unit
        k = accountant.rows_per_unit
        rounds: dict[tuple[str, object], list[Use]] = {}
        for use in accountant.uses:
            kind = use.mechanism.name if proven else use.mechanism
            rounds.setdefault((use.purpose, kind), []).append(use)
        return cls(
            epsilon=float(budget.epsilon),
            delta=float(budget.delta),
            rho=float(accountant.spent) if proven else None,
            calibration="proven" if proven else "published",
            neighbours=neighbours_of(str(unit), rows_disclosed=rows_disclosed),
            mechanisms=tuple(
                MechanismRecord.of(*alike, proven=proven, rows_per_unit=k)
                for alike in rounds.values()
            ),
            public=public,
            errata=errata,
            arithmetic=arithmetic,
            noise=accountant.noise.description,
            secure_noise=accountant.noise.secure,
            unit=str(unit),
            rows_per_unit=unit.rows_per_unit,
            rows_disclosed=rows_disclosed,
            composition=composition if proven else NO_COMPOSITION,
            preprocessing=unit.preparation + AVERAGED * accountant.averaged + PREPROCESSING,
        )

    @property
    def holds(self) -> bool:
        """Whether the stated (ε, δ) may be relied on."""
        return self.calibration == "proven" and self.secure_noise

    @property
    def weakness(self) -> str:
        """Say why noise that is not secure is not."""
        return "a test watched" if "watched" in self.noise else "the noise was seeded"

    @property
    def of_rows(self) -> bool:
        """Whether the promise is for a row, whoever owns it."""
        return Unit.of_words(self.unit) == ROW

    @property
    def brief_unit(self) -> str:
        """Return whom the promise is for, in few words."""
        unit = Unit.of_words(self.unit)
        return self.unit if unit is None else unit.brief

    @property
    def surplus_left_out(self) -> bool:
        """Whether a column identified units, so that their surplus rows could be left out."""
        unit = Unit.of_words(self.unit)
        return unit is not None and unit.column is not None

    @property
    def changing_epsilon(self) -> float | None:
        """Return ε for changing what one unit holds, at the same δ: removed and added, so at 4ρ.

        (docs/theory/mechanisms.md, Lemma 19)
        """
        return None if self.rho is None else ZCDP(Fraction(4 * self.rho)).epsilon(self.delta)

    @property
    def disclosure(self) -> str:
        """Say what follows from a number of rows that is disclosed; nothing if it is not."""
        if not self.rows_disclosed:
            return ""
        what = "a row is in the data" if self.of_rows else "a unit is there, and with how many rows"
        disclosed = (
            "The number of rows is disclosed: whoever knows all the others can infer by counting "
            f"whether {what}."
        )
        if self.changing_epsilon is None:
            return disclosed
        changed = "row" if self.of_rows else "unit, its number of rows unchanged"
        return (
            f"{disclosed} What it holds is protected: for changing one {changed}, epsilon = "
            f"{rounded_up(self.changing_epsilon, digits=3)}, delta = {self.delta:.4g}."
        )

    def grounds(self) -> dict[str, str]:
        """Return on what grounds the promise is made, each under its name."""
        return {
            "Composition": self.composition,
            "Before the fit": self.preprocessing,
            "Tuning": self.tuning,
            "Trust": self.trust_model,
            "Arithmetic": self.arithmetic,
            "Random bits": self.noise,
            "Measures against timing": self.timing,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the statement in plain values, as JSON can hold them."""
        found = asdict(self)
        lists = {name: list(value) for name, value in found.items() if isinstance(value, tuple)}
        return found | lists | {"holds": self.holds}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> PrivacyStatement:
        """Return the statement that `to_dict` wrote; a ValueError says how it contradicts itself.

        That its fields are there and of the right kind is for the JSON Schema of a model file.
        """
        values = _values(found, fields(cls))
        records = [_values(one, fields(MechanismRecord)) for one in values.pop("mechanisms")]
        made = cls(mechanisms=tuple(MechanismRecord(**record) for record in records), **values)
        for problem in _contradictions(made, holds=found["holds"]):
            raise ValueError(message(f"statement.{problem}"))
        return made

    def __str__(self) -> str:
        grounds = self.grounds()
        lines = [
            self._promise(),
            "Mechanisms:",
            *(f"  - {record}" for record in self.mechanisms),
            f"Composition: {grounds.pop('Composition')}.",
            "Treated as public: " + "; ".join(self.public) + ".",
            *(f"{name}: {text}." for name, text in grounds.items()),
            f"Not covered: {_listed(self.not_covered)}.",
            f"Library: {self.library}.",
        ]
        return "\n".join(
            textwrap.fill(line, WIDTH, subsequent_indent="    " if line.startswith("  -") else "")
            for line in lines
        )

    def _repr_html_(self) -> str:
        """Show the promise in a notebook; what it rests on unfolds."""
        promise = f"<details><summary>{escape(self._promise())}</summary>"
        return f"{promise}<pre>{escape(str(self))}</pre></details>"

    def _promise(self) -> str:
        pair = f"epsilon = {self.epsilon:g}, delta = {self.delta:.4g}"
        if self.calibration == "published":
            grounds = f" (errata {', '.join(self.errata)})" if self.errata else ""
            return (
                f"NOT PRIVATE AS STATED. The published calibration claims ({pair}) for "
                f"{self.neighbours}; the claim does not hold{grounds}."
            )
        whose = "; rows, not people" if self.of_rows else ""
        held = (
            ", as are all other arguments, which were chosen without the data"
            if self.rows_disclosed
            else ", all arguments held fixed and chosen without the data"
        )
        promise = (
            f"({pair})-differential privacy for {self.neighbours}{held}{whose}. Composed in zCDP, "
            f"rho = {self.rho:.6g}. {self.disclosure}"
        ).rstrip()
        if self.secure_noise:
            return promise
        return f"NOT PRIVATE: {self.weakness}. With secure noise this would be {promise}"


def _listed(items: tuple[str, ...]) -> str:
    return ", ".join(items[:-1]) + f", and {items[-1]}" if len(items) > 1 else "".join(items)


# --- what a statement from a file must satisfy ----------------------------------------------------

CLOSE = 1e-6
PER_SQUARE = {NoisyMax.name: (1 / 2, 1 / 8), DiscreteGaussian.name: (1 / 2,)}
"""ρ in units of (Δ/scale)². A selection costs a quarter where scores have the range Δ (Lemma 2)."""

HALVES = ("first half: ", "second half: ")


def _values(found: Mapping[str, Any], fields: Iterable[Field[Any]]) -> dict[str, Any]:
    """Return the values of a dataclass from what a model file's JSON Schema found to be right."""
    return {field.name: _value(field.name, found[field.name], str(field.type)) for field in fields}


def _value(name: str, value: Any, kind: str) -> Any:
    texts = {"str": (value,), "tuple[str, ...]": value}.get(kind, ())
    if not all(text.isprintable() for text in texts):
        raise ValueError(message("statement.unprintable", name=name))
    match kind:
        case "float" | "float | None":
            return None if value is None else float(value)
        case "int":
            return int(value)
        case "tuple[str, ...]":
            return tuple(value)
    return value


def _contradictions(statement: PrivacyStatement, *, holds: bool) -> Iterator[str]:
    """Yield the ways in which a statement contradicts itself; the first makes others moot."""
    seeded = "seeded" in statement.noise.casefold()
    if holds != statement.holds or (statement.secure_noise and seeded):
        yield "holds"
    # A unit that is a row has one, and one that says how many says the same number.
    rows = "1" if statement.of_rows else worded(statement.unit)[1]
    if rows not in (None, str(statement.rows_per_unit)):
        yield "rows-per-unit"
    expected = neighbours_of(statement.unit, rows_disclosed=statement.rows_disclosed)
    if statement.neighbours != expected:
        yield "neighbours"
    costs = statement.rho, *(record.rho for record in statement.mechanisms)
    if statement.calibration != "published":
        yield from _wrong_costs(statement)
    elif any(rho is not None for rho in costs):
        yield "published-cost"


def _wrong_costs(statement: PrivacyStatement) -> Iterator[str]:
    """Yield what is wrong with the account of a proven statement."""
    rho, records = statement.rho, statement.mechanisms
    if not rho or not all(record.rho for record in records):
        yield "no-costs"
        return
    if not all(record.name in PER_SQUARE for record in records):
        yield "no-proof"
    if statement.composition != IN_HALVES and any(
        record.purpose.startswith(HALVES) for record in records
    ):
        yield "halves"
    if not all(_cost_follows(record) for record in records):
        yield "mechanism-cost"
    sums = dict.fromkeys((*HALVES, ""), 0.0)  # a coin split the rows into halves (Lemma 16)
    for record in records:
        sums[next(half for half in sums if record.purpose.startswith(half))] += record.rho or 0.0
    if abs(sums.pop("") + max(sums.values()) - rho) > CLOSE * rho:
        yield "sum"
    with np.errstate(all="ignore"):
        if ZCDP(Fraction(rho)).delta(statement.epsilon) > statement.delta * (1 + CLOSE):
            yield "epsilon"


def _cost_follows(record: MechanismRecord) -> bool:
    """Whether ρ is what the lemma of the mechanism says, times the count."""
    if not (record.scale > 0 and record.sensitivity > 0):
        return False
    try:
        ratio = (record.rho or 0.0) / record.count / (record.sensitivity / record.scale) ** 2
    except ArithmeticError:
        return False
    return any(abs(ratio - known) <= CLOSE * known for known in PER_SQUARE[record.name])
