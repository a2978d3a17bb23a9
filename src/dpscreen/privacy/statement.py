"""The statement that goes with a release: what is promised, on what grounds, and what is not."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from dpscreen.privacy.accountant import Accountant, Use
from dpscreen.privacy.budget import Budget

NEIGHBOURS = "adding or removing one row"


@dataclass(frozen=True)
class MechanismRecord:
    """One line of the account: a mechanism with its sensitivity, noise scale and count."""

    purpose: str
    name: str
    sensitivity: float
    scale: float
    count: int
    rho: float | None

    @classmethod
    def of(cls, use: Use, *, proven: bool) -> MechanismRecord:
        """Record a use; the cost is stated only where it is proven."""
        mechanism = use.mechanism
        rho = float(use.count * mechanism.cost) if proven else None
        return cls(
            use.purpose, mechanism.name, mechanism.sensitivity, mechanism.scale, use.count, rho
        )

    def __str__(self) -> str:
        cost = "" if self.rho is None else f", rho {self.rho:.4g}"
        return (
            f"{self.purpose}: {self.name}, {_times(self.count)}, "
            f"sensitivity {self.sensitivity:.4g}, noise scale {self.scale:.4g}{cost}"
        )


@dataclass(frozen=True)
class PrivacyStatement:
    """What a fitted model promises. Holds public and released values only.

    `holds` is False where the promise is known not to be kept: the published calibration, and
    noise that can be repeated from a seed.
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

    @classmethod
    def of(
        cls,
        budget: Budget,
        accountant: Accountant,
        *,
        public: tuple[str, ...],
        arithmetic: str = "float64",
        errata: tuple[str, ...] = (),
    ) -> PrivacyStatement:
        """Close the account of a fit."""
        proven = accountant.limit is not None
        return cls(
            epsilon=budget.epsilon,
            delta=budget.delta,
            rho=float(accountant.spent) if proven else None,
            calibration="proven" if proven else "published",
            neighbours=NEIGHBOURS,
            mechanisms=tuple(MechanismRecord.of(use, proven=proven) for use in accountant.uses),
            public=public,
            errata=errata,
            arithmetic=arithmetic,
            noise=accountant.noise.description,
            secure_noise=accountant.noise.secure,
        )

    @property
    def holds(self) -> bool:
        """Whether the stated (ε, δ) may be relied on."""
        return self.calibration == "proven" and self.secure_noise

    def __str__(self) -> str:
        return "\n".join(_wrapped(line) for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield self._promise()
        yield "Mechanisms:"
        yield from (f"  - {record}" for record in self.mechanisms)
        yield "Treated as public: " + "; ".join(self.public) + "."
        yield f"Arithmetic: {self.arithmetic}."
        yield f"Random bits: {self.noise}."
        yield (
            "Not covered: choices made by looking at the data (bounds, radius, n_iter, which model "
            "to keep), running time, and whether there were rows and they passed the check for "
            "missing and infinite values."
        )

    def _promise(self) -> str:
        pair = f"epsilon = {self.epsilon:g}, delta = {self.delta:.4g}"
        if self.calibration == "published":
            grounds = f" (errata {', '.join(self.errata)})" if self.errata else ""
            return (
                f"NOT PRIVATE AS STATED. The published calibration claims ({pair}) for "
                f"{self.neighbours}; the claim does not hold{grounds}."
            )
        promise = (
            f"({pair})-differential privacy for {self.neighbours}, all arguments held fixed and "
            f"chosen without the data; rows, not people. Composed in zCDP, rho = {self.rho:.6g}."
        )
        if self.secure_noise:
            return promise
        return "NOT PRIVATE: the noise was seeded. With secure noise this would be " + promise


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _wrapped(line: str) -> str:
    return textwrap.fill(line, 88, subsequent_indent="    " if line.startswith("  -") else "")
