"""`dpscreen audit`: try to refute what is claimed, and show what was found."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click
from rich.table import Table

from dpscreen._core.words import did_you_mean
from dpscreen.audit import Finding, all_cases, audit, save_findings
from dpscreen.cli import console


@click.command(context_settings=console.HELP)
@click.argument("cases", nargs=-1)
@click.option(
    "--runs", type=console.WholeWithin(min=100), help="Runs on each of the two data sets."
)
@click.option(
    "--confidence",
    type=console.NumberWithin(0.5, 1, max_open=True),
    default=0.999,
    show_default=True,
    help="Confidence of each certified bound.",
)
@click.option("--jobs", type=console.COUNT, default=1, show_default=True, help="Processes.")
@click.option("--seed", help="Repeat the same audit; without it the noise is that of a release.")
@click.option(
    "--save",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the findings in this directory, for the page of `dpscreen reproduce`.",
)
@click.option("--json", "as_json", is_flag=True, help="Print findings as JSON.")
def command(
    cases: tuple[str, ...],
    runs: int | None,
    confidence: float,
    jobs: int,
    seed: str | None,
    save: Path | None,
    as_json: bool,
) -> None:
    """Certify lower bounds on epsilon by telling neighbouring data sets apart.

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
    _check(cases)
    log = console.messages()
    with console.progress(log) as bar:
        task = bar.add_task("auditing", total=len(cases or all_cases()))
        findings = audit(
            cases,
            runs=runs,
            confidence=confidence,
            jobs=jobs,
            seed=seed,
            on_finding=lambda found: bar.update(task, advance=1, description=found.name),
        )
    if save:
        _save(findings, save)
    if as_json:
        click.echo(json.dumps([asdict(found) | _verdict(found) for found in findings], indent=2))
    else:
        console.output().print(_table(findings))
    if not all(found.as_expected for found in findings):
        raise SystemExit(1)


def _check(cases: tuple[str, ...]) -> None:
    for name in cases:
        if name not in all_cases():
            hint = did_you_mean(name, all_cases())
            raise click.UsageError(f"No case '{name}'.{hint} Cases: {', '.join(all_cases())}.")


def _save(findings: list[Finding], directory: Path) -> None:
    try:
        console.say(f"Findings: {save_findings(findings, directory)}")
    except OSError as error:
        raise click.ClickException(f"Cannot write to {directory}: {error.strerror}.") from None


def _verdict(found: Finding) -> dict[str, object]:
    return {"verdict": found.verdict, "as_expected": found.as_expected}


def _table(findings: list[Finding]) -> Table:
    table = Table(title="Audit: certified lower bounds on epsilon", title_style="bold")
    for name in ("case", "claimed", "delta", "certified", "runs", "verdict", "expected"):
        table.add_column(name, justify="left" if name in ("case", "verdict") else "right")
    for found in findings:
        table.add_row(
            found.title,
            f"{found.claimed:g}",
            f"{found.delta:.2g}",
            f"≥ {found.certified:.2f}",
            f"{found.runs}",
            found.verdict,
            "yes" if found.as_expected else "NO",
        )
    return table
