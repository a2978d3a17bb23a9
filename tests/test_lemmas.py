"""What is released names its proof: references to lemmas and errata lead to a statement."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import dpscreen
from dpscreen.privacy import accountant, mechanisms, sensitivity

SOURCE = Path(dpscreen.__file__).parent
ROOT = Path(__file__).parent.parent
PAGES = {
    page.relative_to(ROOT).as_posix(): page.read_text("utf-8")
    for folder in ("docs", "docs/theory")
    for page in (ROOT / folder).glob("*.md")
}

NUMBERS = r"(?:P?\d+)(?:(?:,| and) P?\d+)*"
LEMMAS = re.compile(rf"(docs/[\w/-]+\.md), Lemmas? ({NUMBERS})")
ERRATA = re.compile(r"(docs/[\w-]+\.md), (E\d+)")
BARE = re.compile(rf"Lemmas? ({NUMBERS})")


def stated(page: str) -> set[str]:
    """Return the lemmas and errata that have a heading, or a bold statement, of their own."""
    found = re.findall(r"^(?:#+ |\*\*)(?:Lemma (P?\d+)|(E\d+)$)", PAGES.get(page, ""), re.MULTILINE)
    return {lemma or erratum for lemma, erratum in found}


def references(text: str) -> Iterator[tuple[str, str]]:
    """Yield (page, lemma or erratum) for every reference in a text, wherever its lines break."""
    plain = re.sub(r"\s+", " ", text)
    for page, numbers in LEMMAS.findall(plain):
        yield from ((page, number) for number in re.findall(r"P?\d+", numbers))
    yield from ERRATA.findall(plain)


def dead(text: str) -> list[tuple[str, str]]:
    return [(page, name) for page, name in references(text) if name not in stated(page)]


def texts() -> Iterator[tuple[str, str]]:
    """Yield every text in the package: docstrings, and what users are told."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{path.relative_to(SOURCE)}:{node.lineno}", node.value


def functions(path: Path) -> Iterator[ast.FunctionDef]:
    tree = ast.parse(path.read_text("utf-8"))
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def must_have_proof() -> Iterator[tuple[str, str]]:
    """Yield mechanisms, sensitivities and everything that releases, with their docstrings."""
    for name, value in vars(mechanisms).items():
        if isinstance(value, type) and hasattr(value, "cost") and value is not mechanisms.Mechanism:
            yield name, value.__doc__ or ""
    for module in (sensitivity, accountant):
        for node in ast.parse(Path(module.__file__).read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                yield f"{module.__name__}.{node.name}", ast.get_docstring(node) or ""
    for path in [*(SOURCE / "families").rglob("*.py"), *(SOURCE / "solvers").rglob("*.py")]:
        for node in functions(path):
            if re.match(r"_?release_", node.name):
                yield f"{path.stem}.{node.name}", ast.get_docstring(node) or ""


PROVEN = dict(must_have_proof())


@pytest.mark.parametrize("name", PROVEN)
def test_what_is_released_names_its_page_and_lemma(name):
    assert list(references(PROVEN[name]))


def test_the_list_is_not_empty():
    assert {"NoisyMax", "DiscreteGaussian", "base.release_sum"} <= set(PROVEN)
    assert len(PROVEN) > 30


def test_every_reference_leads_to_a_statement():
    followed = {place: dead(text) for place, text in texts()}
    assert {place: links for place, links in followed.items() if links} == {}


def test_a_lemma_without_a_page_is_stated_on_one_page_only():
    pages = [stated(page) for page in PAGES]
    for place, text in texts():
        for numbers in BARE.findall(re.sub(r"\s+", " ", text)):
            for number in re.findall(r"P?\d+", numbers):
                assert sum(number in page for page in pages) == 1, (place, number)


def test_every_lemma_is_stated_once():
    heading = re.compile(r"^#+ Lemma (P?\d+)", re.MULTILINE)
    found = [name for page in PAGES.values() for name in heading.findall(page)]
    assert len(found) > 40
    assert sorted(found) == sorted(set(found))


def test_the_follower_sees_dead_links_in_every_form():
    page = "docs/theory/mechanisms.md"
    assert dead(f"({page}, Lemmas 1,\n    2 and 99)") == [(page, "99")]
    assert dead("docs/nowhere.md, Lemma 1") == [("docs/nowhere.md", "1")]
    other = "docs/theory/exactness.md"
    assert dead(f"{other}, Lemma 1; docs/theory/peers.md, Lemma P1") == [(other, "1")]
    assert dead("docs/errata.md, E77") == [("docs/errata.md", "E77")]
    assert dead("docs/errata.md, E5") == []
