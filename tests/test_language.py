"""Text that people read uses the field's terms, not the words of the style guide's left column."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "dpscreen"

WORDS = {
    r"\btold\b": "reported, shown",
    r"\bseen\b": "detected, resolved, counted",
    r"\btell(?:s|ing)?\b": "report, show, indicate, identify",
    r"\bbelie(?:f|ve)\w*": "posterior, prior",
    r"\bwalks?\b(?! over)|\bgo(?:es)? along all\b": "Newton iterations, dense fit",
    r"\bplac(?:e|es|ing) columns\b": "marginals: centre, scale, clipping range",
    r"\bheap(?:s|ed)?\b": "point mass, zero-inflated",
    r"\bblur\w*": "noise level",
    r"\bdrown\w*": "not identifiable",
    r"\b(?:glimpse|sighting|zoom|seat)s?\b": "histogram refinement, round",
    r"\b(?:still|moving|doubtful) (?:columns?|features?)\b": "constant, candidate",
    r"\bevened\b": "whitened",
    r"\bcolumns? (?:that are )?alike\b": "collinear",
    r"\blong rows?\b|\brows? (?:are )?shortened\b": "rows with large norm, norm-clipped",
    r"\bpull(?:s|ed)? (?:of|by|on)\b": "skewed influence, clipping bias",
    r"\bmiddle of the sandwich\b": "meat",
    r"\bdrawn to (?:the|their) mean\b": "shrinkage",
    r"\brich\b": "high-signal regime",
    r"\bst(?:and|ood)s? out\b": "is above the noise, is detected",
    r"\brows? far out\b|\bfar out in\b": "high-leverage rows",
    r"\byes or no\b": "binary, yes/no",
    r"\bchances?\b": "probability, random",
    r"(?<!log-)(?<!the )(?<!posterior )\bodds\b(?![- ]ratio)": "odds ratio, log-odds",
    r"\bmend(?:s|ed|ing)?\b|\bput right\b": "fix, correct",
    r"\bthe usual software\b": "R, statsmodels",
    r"\bpaid\b|\bpay(?:s|ing)? for\b|\bspent on\b": "charged to the budget, allocated",
    r"\bunsure\b": "variance function",
    r"\bonly you know\b": "the name does not imply it",
    r"\bfor whoever\b": "for anyone who, for people who",
    r"\bleft to itself\b|\bthat can be had\b": "with its defaults, possible",
    r"(?<!standard )(?<!absolute )\bdeviations?\b": "standard deviation",
    r"\bintervals? (?:that |should |does not |do not )?(?:holds?|held)\b": "covers, coverage",
    r"\blifted\b": "eigenvalue floor",
    r"(?<![\w.:)\\\[,/*%-])\.\d+\b(?![a-z%*])": "0.95, not .95",
}
"""Patterns that must not occur, with what to write."""

ALLOWED = {
    "tables/asking.py: yes or no": "an answer that a person may type",
    "paper/suites.py: .061": "the number as the paper prints it",
    "paper/suites.py: .021": "the number as the paper prints it",
}
"""Uses that stay, each with why."""


def prose_of(path: Path) -> Iterator[str]:
    """Yield what people can read of a file: texts and docstrings of code, all of other files."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield re.sub(r"```.*?```|`[^`\n]*`|\$[^$]*\$|\{%.*?%\}|https?://\S+", " ", text, flags=re.S)
        return
    nodes = list(ast.walk(ast.parse(text)))
    specs = {
        id(part)
        for node in nodes
        if isinstance(node, ast.FormattedValue) and node.format_spec
        for part in ast.walk(node.format_spec)
    }
    for node in nodes:
        value = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
        if isinstance(value, str) and id(node) not in specs and " " in value.strip():
            yield re.sub(r"`[^`]*`", " ", value)


def found_in(texts: Iterator[str]) -> Iterator[str]:
    """Yield the words that texts should not have."""
    for text in texts:
        line = re.sub(r"\s+", " ", text)
        for pattern in WORDS:
            yield from (one[0].lower() for one in re.finditer(pattern, line, re.IGNORECASE))


def readable() -> list[Path]:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    pages += [*(ROOT / "docs/gallery").iterdir(), *(ROOT / "benchmarks").rglob("*.md")]
    pages += (ROOT / ".github/ISSUE_TEMPLATE").iterdir()
    history = ("CHANGELOG.md", "decisions/")
    code = [
        path
        for kind in ("py", "html", "js", "toml", "json", "txt", "md")
        for path in SOURCE.rglob(f"*.{kind}")
    ]
    return [one for one in pages if not any(part in one.as_posix() for part in history)] + code


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE if SOURCE in path.parents else ROOT).as_posix()


def test_people_read_the_fields_terms():
    found: dict[str, set[str]] = {}
    for path in readable():
        words = {f"{name_of(path)}: {one}" for one in found_in(prose_of(path))} - set(ALLOWED)
        if words:
            found[name_of(path)] = words
    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        "The model tells it.",
        "Outcomes that are yes or no",
        "a noisy count is paid for",
        "at level .95",
        "two deviations of the target",
    ],
)
def test_the_check_finds_dialect(text):
    assert list(found_in(iter([text])))


PLANTED = {
    "page.md": "# A page\n\nThe model {word} it.\n",
    "catalogue.toml": '[fit]\nfailed = "The model {word} it."\n',
    "template.html": "<p>{{% if x %}}The model {word} it.{{% endif %}}</p>",
    "template.txt": "{{% macro result() %}}\nThe model {word} it.\n{{% endmacro %}}",
    "entry.json": '{{"text": "The model {word} it."}}',
    "page.js": 'lost.textContent = "The model {word} it.";',
    "docstring.py": 'def fit():\n    """The model {word} it."""\n',
    "option.py": 'OPTION = option("--fit", help="The model {word} it.")\n',
    "sentence.py": 'raise ValueError(f"The model {word} it of {{n}} rows.")\n',
}


@pytest.mark.parametrize("word", ["tells", "believes", "drowned", "at .95 has"])
@pytest.mark.parametrize("name", PLANTED)
def test_the_check_reads_every_kind_of_text(name, word, tmp_path):
    path = tmp_path / name
    path.write_text(PLANTED[name].format(word=word), encoding="utf-8")
    assert list(found_in(prose_of(path)))


@pytest.mark.parametrize(
    "name",
    [
        *("README.md", "CONTRIBUTING.md", "docs/tutorial.md", "docs/guide/predict.md"),
        *("docs/theory/engine.md", "docs/gallery/plot_4_intervals.py", "_core/messages.toml"),
        *("models/templates/card.md", "models/templates/explain.txt", "studio/templates/base.html"),
        *("studio/templates/studio.js", "models/private_lasso.py", "cli/fit.py"),
        *("benchmarks/contest/README.md", ".github/ISSUE_TEMPLATE/bug.yml"),
    ],
)
def test_the_check_reads_every_place(name):
    assert name in map(name_of, readable())


@pytest.mark.parametrize(
    "text",
    ["the odds ratio of a step", "log-odds", "0.95", "two standard deviations", "the odds grow"],
)
def test_the_check_lets_terms_of_the_field_pass(text):
    assert not list(found_in(iter([text])))
