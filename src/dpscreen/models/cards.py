"""`model.to_model_card()`: the model in Markdown, to go beside the file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from dpscreen._core.words import markdown, number, plain
from dpscreen.models.explain import explanation_of
from dpscreen.models.release import (
    Release,
    Summary,
    SummaryRow,
    about_facts,
    promise,
    summary_of,
)
from dpscreen.privacy import PrivacyStatement

USES = (
    "Made for: describing which features go with the target, and predicting it for rows of the "
    "same kind.",
    "Not made for: deciding about one person, or saying what would happen if a feature were "
    "changed: coefficients are {are}, and are not causal effects.",
    "Predictions beyond the bounds below are guesses.",
)

MECHANISM = ("purpose", "mechanism", "times", "sensitivity", "noise scale", "rho")


def model_card_of(release: Release) -> str:
    """Return the card: what the model is, says, promises, and does not promise."""
    return "\n".join(_lines(release))


def _lines(release: Release) -> Iterator[str]:
    statement = release.statement
    yield f"# Model card: {markdown(release.estimator)}"
    if not statement.holds:
        yield from ("", f"> **{markdown(promise(release))}**")
    facts = about_facts(release)
    yield from [""] * bool(facts)
    yield from (f"* {name}: {markdown(text)}" for name, text in facts)
    yield from ("", markdown(explanation_of(release)))
    sections = {
        "Use": (f"* {text.format(are=_coefficients_are(release))}" for text in USES),
        "Features": _features(release),
        "Privacy statement": _table(("what", "value"), _terms(statement)),
        "Mechanisms": _table(MECHANISM, _mechanisms(statement)),
    }
    for title, lines in sections.items():
        yield from ("", f"## {title}", "", *lines)


def _coefficients_are(release: Release) -> str:
    return "shrunken, noisy and selected" if release.table is None else "noisy"


def _kind(release: Release) -> str:
    """Return what the model is, as a person would call it."""
    model = "linear regression" if release.classes is None else "logistic regression"
    return f"A sparse {model}" if release.table is None else f"A {model} on all features"


def _features(release: Release) -> Iterator[str]:
    summary = summary_of(release)
    shown = (
        (
            row.feature,
            number(row.coefficient),
            f"{summary.scale.text(row.effect)} ({row.step_words})",
            _span(summary, row),
            _bounds(*release.feature_bounds[j].tolist()),
        )
        for j, row in zip(release.selected, summary.rows, strict=True)
    )
    effect = f"{summary.scale.heading} (step)"
    head = ("feature", "coefficient", effect, "95 % interval", "bounds")
    last = ("(intercept)", number(release.intercept), "", "", "")
    yield from _table(head, [*shown, last])
    yield ""
    yield from (f"* {markdown(note)}" for note in summary.notes)


def _span(summary: Summary, row: SummaryRow) -> str:
    """Return an interval; with the estimate that it is of, if that is not what predicts."""
    shown = summary.shown_interval(row)
    if shown is None:
        return ""
    low, refit, high = (number(one, digits=4) for one in shown)
    alone = row.refit == row.coefficient
    return f"{low} to {high}" + ("" if alone else f" (refit {refit})")


def _bounds(low: float, high: float) -> str:
    """Return two ends with digits enough to tell how far they are apart, as those of days."""
    apart = max(abs(low), abs(high)) / (high - low) if high > low else 1.0
    digits = 4 + math.floor(math.log10(max(apart, 1.0)))
    return f"{number(low, digits=digits)} to {number(high, digits=digits)}"


def _terms(statement: PrivacyStatement) -> Iterator[tuple[str, str]]:
    yield "promise holds", "yes" if statement.holds else "NO"
    yield "epsilon", number(statement.epsilon)
    yield "delta", number(statement.delta)
    yield "rho (zCDP)", "none is claimed" if statement.rho is None else number(statement.rho)
    yield "unit", statement.unit
    yield "neighbours", statement.neighbours
    if statement.rows_disclosed:
        yield "number of rows", statement.disclosure
    yield "calibration", statement.calibration
    if statement.errata:
        yield "errata", ", ".join(statement.errata)
    yield "composition", statement.composition
    yield "treated as public", "; ".join(statement.public)
    yield "before the fit", statement.preprocessing
    yield "tuning", statement.tuning
    yield "trust", statement.trust_model
    yield "arithmetic", statement.arithmetic
    yield "random bits", statement.noise
    yield "secure noise", "yes" if statement.secure_noise else "NO"
    yield "against timing", statement.timing
    yield "not covered", "; ".join(statement.not_covered)
    yield "library", statement.library


def _mechanisms(statement: PrivacyStatement) -> Iterator[tuple[str, ...]]:
    for record in statement.mechanisms:
        yield (
            record.purpose,
            record.name,
            str(record.count),
            number(record.sensitivity, digits=4),
            number(record.scale, digits=4),
            "" if record.rho is None else number(record.rho, digits=4),
        )


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    yield from (f"| {' | '.join(map(markdown, row))} |" for row in rows)


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
            f"{_kind(release)}: coefficients of {len(release.selected)} of "
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
