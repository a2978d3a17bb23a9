"""`dpscreen audit`: try to refute what is claimed, and show what was found."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from dpscreen._core.words import did_you_mean
from dpscreen.audit import all_cases, audit, save_findings
from dpscreen.cli import console


@click.command()
@click.argument("cases", nargs=-1)
@click.option("--runs", type=click.IntRange(min=100), help="Runs on each of the two data sets.")
@click.option(
    "--confidence",
    type=console.Number(0.5, 1, max_open=True),
    default=0.999,
    help="Confidence of each certified bound.",
)
@click.option("--jobs", type=console.COUNT, default=1, help="Processes.")
@click.option("--seed", help="Repeat the same audit; without it the noise is that of a release.")
@click.option(
    "--save",
    type=console.FOLDER,
    help="Keep the findings in this directory, for the page of `dpscreen reproduce`.",
)
@console.JSON(help="Print findings as JSON.")
def command(cases: tuple[str, ...], save: Path | None, as_json: bool, **given: Any) -> None:
    """Certify lower bounds on epsilon by distinguishing neighbouring data sets.

    Runs worst cases many times with and without one row. A bound above the claim refutes it, at the
    stated confidence. The published calibration is refuted; proven methods must not be. Exits with
    1 if a verdict is not the expected one.

    \b
    Examples:
      dpscreen audit
      dpscreen audit published-dp-fw dp-fw --runs 5000
      dpscreen audit --jobs 2 --json > findings.json
      dpscreen audit --save dpscreen-study
    """
    for name in cases:
        if name not in all_cases():
            hint = did_you_mean(name, all_cases())
            raise click.UsageError(f"No case '{name}'.{hint} Cases: {', '.join(all_cases())}.")
    with console.progress() as bar:
        task = bar.add_task("auditing", total=len(cases or all_cases()))
        findings = audit(
            cases,
            on_finding=lambda found: bar.update(task, advance=1, description=found.name),
            **given,
        )
    if save:
        try:
            console.say(f"Findings: {save_findings(findings, save)}")
        except OSError as error:
            raise click.ClickException(f"Cannot write to {save}: {error.strerror}.") from None
    if as_json:
        verdicts = [{"verdict": one.verdict, "as_expected": one.as_expected} for one in findings]
        pairs = zip(findings, verdicts, strict=True)
        console.show_json([asdict(one) | verdict for one, verdict in pairs])
    else:
        headings = ("case", "claimed", "delta", "certified", "runs", "verdict", "expected")
        rows = [
            (
                *(found.title, f"{found.claimed:g}", f"{found.delta:.2g}"),
                *(f"≥ {found.certified:.2f}", f"{found.runs}", found.verdict),
                "yes" if found.as_expected else "NO",
            )
            for found in findings
        ]
        title = "Audit: certified lower bounds on epsilon"
        console.print_table(headings, rows, left={"case", "verdict"}, title=title)
    if not all(found.as_expected for found in findings):
        raise SystemExit(1)
