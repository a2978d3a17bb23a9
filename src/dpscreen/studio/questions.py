"""The models that can be asked for: two of each family."""

from __future__ import annotations

from dataclasses import dataclass

from dpscreen.families import FAMILIES, Family
from dpscreen.families.base import FamilyModel


@dataclass(frozen=True)
class ModelChoice(FamilyModel):
    """A model with its family. In a `table` all coefficients have intervals."""

    family: Family
    table: bool


CHOICES = {
    model.method: ModelChoice(**vars(model), family=family, table=model is family.table)
    for family in FAMILIES.values()
    for model in (family.sparse, family.table)
}
"""By the names of methods on the command line and in `planning.methods`."""
