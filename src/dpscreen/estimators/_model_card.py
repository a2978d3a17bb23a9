"""`model.to_model_card()`: the model in Markdown, to go beside the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dpscreen._core.numbers import number
from dpscreen._core.words import markdown
from dpscreen.estimators._explain import explanation_of
from dpscreen.estimators._release import Release
from dpscreen.estimators._summary import promise, summary_of
from dpscreen.privacy import PrivacyStatement

USES = (
    "Made for: describing which features go with the target, and predicting it for rows of the "
    "same kind.",
    "Not made for: deciding about one person, or saying what would happen if a feature were "
    "changed: coefficients are shrunken, noisy and selected, and are not causal effects.",
    "Predictions beyond the bounds below are guesses.",
)


def model_card_of(release: Release) -> str:
    """Return the card: what the model is, says, promises, and does not promise."""
    return "\n".join(_lines(release))


def _lines(release: Release) -> Iterator[str]:
    yield f"# Model card: {markdown(release.estimator)}"
    yield ""
    if not release.statement.holds:
        yield f"> **{markdown(promise(release))}**"
        yield ""
    yield markdown(explanation_of(release))
    yield ""
    yield "## Use"
    yield ""
    yield from (f"* {text}" for text in USES)
    yield ""
    yield "## Features"
    yield ""
    yield from _features(release)
    yield ""
    yield "## Privacy statement"
    yield ""
    yield from _table(("what", "value"), _terms(release.statement))
    yield ""
    yield "## Mechanisms"
    yield ""
    yield from _table(
        ("purpose", "mechanism", "times", "sensitivity", "noise scale", "rho"),
        _mechanisms(release.statement),
    )


def _features(release: Release) -> Iterator[str]:
    summary = summary_of(release)
    shown = (
        (
            row.feature,
            number(row.coefficient),
            "" if row.low is None or row.high is None else f"{row.low:.4g} to {row.high:.4g}",
            "" if row.noise_p_value is None else f"{row.noise_p_value:.2g}",
            " to ".join(number(float(end), digits=4) for end in release.feature_bounds[j]),
        )
        for j, row in zip(release.selected, summary.rows, strict=True)
    )
    head = ("feature", "coefficient", "95 % interval", "noise p", "bounds")
    last = ("(intercept)", number(release.intercept), "", "", "")
    yield from _table(head, [*shown, last])
    yield ""
    yield from (f"* {markdown(note)}" for note in summary.notes)


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
