"""`model.to_model_card()`, in Markdown, and `model.to_registry_entry()`: filled-in templates."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from dpscreen._core.messages import message
from dpscreen._core.words import number, plain
from dpscreen.models.explain import explanation_of, texts
from dpscreen.models.release import Release, about_facts, promise_of
from dpscreen.models.summary import Summary, summary_of

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


def _filled(template: str, release: Release, **more: Any) -> str:
    filled = texts().get_template(template)
    return str(filled.render(release=release, statement=release.statement, **more)).rstrip("\n")


def model_card_of(release: Release) -> str:
    """Return the card: what the model is, says, promises, and does not promise."""
    summary = summary_of(release)
    return _filled(
        "card.md",
        release,
        promise=promise_of(release.statement),
        facts=about_facts(release),
        explanation=explanation_of(release),
        summary=summary,
        features=list(_features(release, summary)),
    )


def _features(release: Release, summary: Summary) -> Iterator[tuple[str, ...]]:
    for j, row in zip(release.selected, summary.rows, strict=True):
        span, shown = "", summary.shown_interval(row)
        if shown is not None:
            start, refit, end = (number(one, digits=4) for one in shown)
            alone = row.refit == row.coefficient  # else the interval is not of what predicts
            span = f"{start} to {end}" + ("" if alone else f" (refit {refit})")
        # Digits enough to show how far bounds are apart, as those of days.
        low, high = release.feature_bounds[j].tolist()
        apart = max(abs(low), abs(high)) / (high - low) if high > low else 1.0
        digits = 4 + math.floor(math.log10(max(apart, 1.0)))
        yield (
            row.feature,
            number(row.coefficient),
            f"{summary.scale.text(row.effect)} ({row.step_words})",
            span,
            f"{number(low, digits=digits)} to {number(high, digits=digits)}",
            summary.marks.get(j, ""),
        )


def registry_entry_of(release: Release, *, tier: int = 3) -> dict[str, Any]:
    """Return an entry up to the tier."""
    if tier not in TIERS:
        raise ValueError(message("export.tier", given=tier))
    if not release.statement.holds:
        raise NoEntry(message("export.no-entry"))
    regression = release.family.words.regression
    sparse, whole = f"A sparse {regression}", f"A {regression} on all features"
    filled = _filled(
        "registry.json",
        release,
        tier=tier,
        kind=sparse if release.table is None else whole,
        names=", ".join([*map(plain, release.names[:50]), *["…"] * (release.n_features > 50)]),
        uses="\n".join(f"- {record}" for record in release.statement.mechanisms),
    )
    entry: dict[str, Any] = json.loads(filled)
    if tier == 2:
        for part in ("privacy_loss", "deployment_model"):
            told = entry["deployment"][part].items()
            entry["deployment"][part] = {k: v for k, v in told if not k.endswith("_details")}
    return entry
