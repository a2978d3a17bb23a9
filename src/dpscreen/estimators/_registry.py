"""An entry for the public registry of deployments of differential privacy, tiers 1 to 3.

The fields are those of the registry's own records as they stood in late 2026 (OpenDP's
deployments-registry-data): tier 1 is what the product is, tier 2 what it promises, tier 3 how it
keeps the promise. What only the curator knows is left empty, to be filled in.
"""

from __future__ import annotations

from typing import Any

from dpscreen._core.words import plain
from dpscreen.estimators._release import Release
from dpscreen.privacy import PrivacyStatement

TIERS = (1, 2, 3)

TO_FILL_IN = (
    "url_slug",
    "deployment.basic.name",
    "deployment.basic.data_curators",
    "deployment.basic.intended_use",
    "deployment.basic.data_product_region",
    "deployment.basic.data_product_sector",
    "deployment.basic.publication_date",
    "deployment.administrative.sources",
    "deployment.administrative.registry_authors",
)
"""What an entry leaves empty."""


class NoEntry(ValueError):
    """A model whose promise does not hold has no place in a registry of such promises."""


def registry_entry_of(release: Release, *, tier: int = 3) -> dict[str, Any]:
    """Return an entry up to the tier."""
    if tier not in TIERS:
        raise ValueError(f"tier must be one of 1, 2 and 3; got {tier!r}.")
    statement = release.statement
    if not statement.holds:
        raise NoEntry("the promise of this model does not hold, so there is nothing to register.")
    deployment: dict[str, Any] = {"basic": _basic(release)}
    if tier >= 2:
        deployment |= _promise(release, statement, full=tier == 3)
    if tier == 3:
        deployment |= _means(release, statement)
    deployment["administrative"] = {"sources": "", "registry_authors": []}
    return {"url_slug": "", "status": "Draft", "tier": tier, "deployment": deployment}


def _basic(release: Release) -> dict[str, Any]:
    return {
        "name": "",
        "data_curators": [{"data_curator_name": "", "data_curator_type": ""}],
        "intended_use": "",
        "data_product_type": "Machine learning model",
        "data_product_region": "",
        "description": (
            f"A sparse linear regression: coefficients of {len(release.selected)} of "
            f"{release.n_features} features and an intercept, fitted by {release.estimator}."
        ),
        "publication_date": "",
        "data_product_sector": "",
    }


def _promise(release: Release, statement: PrivacyStatement, *, full: bool) -> dict[str, Any]:
    """Return what tier 2 asks for; with `full`, the details of tier 3 beside it."""
    names = ", ".join(map(plain, release.names[:50])) + (", …" if release.n_features > 50 else "")
    loss = {
        "privacy_unit": "Row-level" if statement.of_rows else "Unit-level",
        "privacy_unit_details": (
            f"Neighbouring data differ by {statement.neighbours}. {statement.disclosure}"
        ).rstrip(),
        "privacy_parameters": {
            "epsilon": statement.epsilon,
            "delta": statement.delta,
            "rho": statement.rho,
        },
        "privacy_parameters_details": (
            "Composed in zero-concentrated differential privacy and converted to epsilon and delta "
            "at the end; all three are for one unit and for the whole release."
        ),
    }
    model = {
        "model_name": "Central",
        "model_name_details": statement.trust_model,
        "actors": "The curator, who sees the rows; everybody else, who sees the release.",
        "release_type": "One release",
        "release_type_details": "One model file, with its summary and statement.",
        "data_source_type": "Static",
        "access_type": "Non-interactive",
        "access_type_details": "The model is handed over as a file; nobody queries the rows.",
    }
    return {
        "dp_variant": {
            "variant_name": "Zero-concentrated DP",
            "data_domain": (
                f"Tables of numbers with a target and {release.n_features} features ({names}), "
                "each with declared bounds."
            ),
            "unprotected_quantities": "; ".join(statement.public) + ".",
        },
        "privacy_loss": loss if full else _without_details(loss),
        "deployment_model": model if full else _without_details(model),
    }


def _without_details(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if not name.endswith("_details")}


def _means(release: Release, statement: PrivacyStatement) -> dict[str, Any]:
    uses = "\n".join(f"- {record}" for record in statement.mechanisms)
    return {
        "accounting": {
            "post_processing": (
                "Coefficients in the users' units, the summary, noise p-values and predictions are "
                "computed from released values."
            ),
            "composition": statement.composition + ".",
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": (
                f"- Pre-processing: {statement.preprocessing}.\n- Tuning: {statement.tuning}."
            ),
            "mechanisms": (
                f"{uses}\n- Arithmetic: {statement.arithmetic}.\n- Random bits: {statement.noise}."
                f"\n- Timing: {statement.timing}.\n- Library: {statement.library}."
            ),
            "justification": (
                f"{release.estimator} fixes its noise from public and released numbers; proofs "
                "are in docs/privacy.md of the library. Not covered: "
                + "; ".join(statement.not_covered)
                + "."
            ),
        },
    }
