"""What the pages tell people to type works: copied and pasted, in order."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest

from dpscreen.tables.schema import load_schema
from tools.command import here

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *DOCS.rglob("*.md"))
    if not {"_build", "gallery_pages"} & set(path.parts)
)
GALLERY = sorted(DOCS.glob("gallery/plot_*.py"))
FOOTNOTES = re.compile(r"^[a-z]: .*?\n(?=Effect: )", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"```.*?```|`[^`\n]*`|\$[^$\n]*\$", re.DOTALL)
FILE = re.compile(r"`([\w/]+\.py)`")
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
OURS = re.compile(r"dpscreen [^|&;<>$`*]*")


@dataclass(frozen=True)
class Block:
    """A piece of a page that a reader may copy."""

    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    """Return what a page tells to run, without what it shows (text) and how files look (json)."""
    found = (Block(*pair) for pair in BLOCK.findall(page.read_text(encoding="utf-8")))
    return [block for block in found if block.language in {"python", "shell"}]


def run_python(text: str, names: dict[str, object]) -> None:
    exec(compile(text, "<page>", "exec"), names)


def run_shell(text: str) -> str:
    """Run lines as one script that stops at the first failure."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def run_commands(text: str) -> str:
    """Run lines; where all are plain commands of ours, in this process: it has started."""
    lines = text.replace("\\\n", " ").splitlines()
    if not all(OURS.fullmatch(line) for line in lines):
        return run_shell(text)
    printed = ""
    for line in lines:
        done = here(*shlex.split(line)[1:])
        assert done.returncode == 0, done.stderr
        printed += done.stdout + done.stderr
    return printed


def run_page(page: Path) -> str:
    """Run a page's blocks in the current directory; Python blocks are one session."""
    names: dict[str, object] = {"__name__": "page"}
    printed = []
    for block in blocks(page):
        if block.language == "python":
            run_python(block.text, names)
        else:
            printed.append(run_commands(block.text))
    return "".join(printed)


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """Return what a fresh clone with its environment looks like, as far as the pages use it."""
    (tmp_path / "docs").symlink_to(DOCS)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --- README ---------------------------------------------------------------------------------------


def test_readme_runs_and_prints_what_it_shows(clone, capsys):
    """Noise is fresh, so numbers differ; the bounds are ten of their deviations and more."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    run_page(ROOT / "README.md")
    printed = capsys.readouterr().out
    (shown,) = re.findall(r"^PrivateLasso: .*?^Privacy: .*?$", page, re.MULTILINE | re.DOTALL)
    assert "summary())" in page
    for text in (shown, printed):
        assert float(re.search(r"^x0 +(\S+) ", text, re.MULTILINE)[1]) == pytest.approx(
            0.5, abs=0.2
        )
        assert float(re.search(r"^x3 +(\S+) ", text, re.MULTILINE)[1]) == pytest.approx(
            -0.2, abs=0.1
        )
        assert "2 of 30 features used" in text
    assert _words(shown) == _words(printed)


def _words(text: str) -> list[str]:
    """Return the words of a summary without its numbers."""
    return re.findall(r"[a-z]{3,}", text)


def test_the_page_of_the_papers_methods_shows_the_demo_as_it_is():
    from dpscreen.paper import demo

    page = (DOCS / "paper-methods.md").read_text(encoding="utf-8")
    shown = re.findall(
        r"^(.{27}) *\d* +\d+ %.*  (?:holds|does NOT hold|no privacy)$", page, re.MULTILINE
    )
    assert [name.strip() for name in shown] == [one.method for one in demo.contestants()]


def test_commands_of_make_that_are_named_exist():
    targets = (ROOT / "Makefile").read_text(encoding="utf-8")
    for page in PAGES:
        for name in set(re.findall(r"`make ([a-z]+)`", page.read_text(encoding="utf-8"))):
            assert re.search(rf"^{name}:", targets, re.MULTILINE), f"{page.name}: make {name}"


# --- tutorial and how-to pages --------------------------------------------------------------------


def test_tutorial_runs_and_so_do_the_pages_that_build_on_it(clone, capsys):
    printed = run_page(DOCS / "tutorial.md")
    assert "exit code 3" in printed
    assert "someone 50 % sure" in printed
    assert "PrivateLasso of progression: " in capsys.readouterr().out
    assert (clone / "report.html").stat().st_size < 500_000
    filled, kept = map(load_schema, ("schema.toml", "docs/diabetes/schema.json"))
    assert (filled.target, filled.target_bounds) == (kept.target, kept.target_bounds)
    assert filled.feature_names == kept.feature_names
    assert filled.feature_bounds.tolist() == kept.feature_bounds.tolist()
    shutil.copy("dummy.csv", "new.csv")
    Path("predictions.csv").unlink()
    run_page(DOCS / "guide/hand-over-a-model.md")
    Path("predictions.csv").unlink()
    run_page(DOCS / "guide/predict.md")
    run_commands("dpscreen simulate --schema schema.toml --rows 500 -o rows.parquet")
    run_page(DOCS / "guide/databases-and-large-data.md")


def test_from_a_clone_to_a_model_of_ones_own_table_in_eight_commands(clone):
    page = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    script = re.search(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[1]
    commands = [one for line in script.splitlines() for one in line.split(" && ")]
    assert len(commands) <= 8
    assert [one for one in commands if one.startswith("make")] == ["make install"]
    names = "patient_id,age,bmi,weight_kg,height_cm,is_smoker,lunch_pct,systolic_bp"
    row = "{0},{1},27.5,{1},170,yes,12.5,{2}\n"
    rows = "".join(row.format(k, 40 + k % 40, 100 + k % 40) for k in range(2000))
    Path("people.csv").write_text(f"{names}\n{rows}", encoding="utf-8")
    ours = "\n".join(one for one in commands if one.startswith("dpscreen"))
    enters = "printf '\\n%.0s' {1..50} | dpscreen schema ask"
    assert "systolic_bp" in run_shell(ours.replace("dpscreen schema ask", enters))
    assert load_schema("schema.toml").unit == "patient_id"


def test_the_script_of_the_readme_writes_the_table_of_the_tutorial(clone):
    runpy.run_path(str(DOCS / "diabetes/write_csv.py"))
    written = Path("diabetes.csv").read_text(encoding="utf-8")
    run_python(blocks(DOCS / "tutorial.md")[0].text, {})
    assert Path("diabetes.csv").read_text(encoding="utf-8") == written


def test_the_page_of_the_papers_methods_runs_and_shows_what_it_prints(clone, capsys):
    """Which features are chosen differs with the noise; the words around them do not."""
    printed = run_page(DOCS / "paper-methods.md")
    page = (DOCS / "paper-methods.md").read_text(encoding="utf-8")
    for told in (page, capsys.readouterr().out):
        assert re.search(r"^RNMScreen: \d of 3 features used$", told, re.MULTILINE)
        assert re.search(r"^\[\[ *\d+ +\d\]", told, re.MULTILINE)  # an iteration and a feature
    for told in (page, printed):
        assert re.search(r"^RNMScreen of progression: \d+ of 10 features used$", told, re.MULTILINE)
        assert "Privacy: epsilon = 5, delta = 1e-06 for adding or removing one row." in told
        assert "NOT PRIVATE: the published calibration does not keep its promise" in told
    snippet = next(one for one in blocks(DOCS / "paper-methods.md") if "pandas" in one.text)
    assert len(snippet.text.splitlines()) == 5


def test_the_page_of_the_papers_methods_has_every_parameter_and_option():
    from dpscreen import ADPScreen
    from dpscreen.cli.fit import command

    page = (DOCS / "paper-methods.md").read_text(encoding="utf-8")
    elsewhere = {"calibration", "categories", "random_state", "rows_per_unit", "schema"}
    for name in set(ADPScreen().get_params()) - elsewhere:
        assert f"`{name}`" in page
    names = [option.opts[0] for option in command.params]
    first, last = names.index("--calibration"), names.index("--screen-at")
    assert last - first == 6
    assert all(name in page for name in names[first : last + 1])


QUICK = [
    "choose-a-model",
    "declare-your-data",
    "several-rows",
    "read-a-regression-table",
    "ask-a-table",
    "scikit-learn",
    "share-a-budget",
    "../for-a-statistician",
]


@pytest.mark.filterwarnings("ignore::dpscreen.models.refits.RefitWarning")
@pytest.mark.parametrize("name", QUICK)
def test_page_of_the_guide_runs_and_prints_what_it_shows(clone, capsys, name):
    """Numbers differ with the noise; the first words of every line that is shown do not."""
    page = DOCS / f"guide/{name}.md"
    run_page(page)
    printed = {first(line) for line in capsys.readouterr().out.splitlines()}
    python, after = name.endswith("statistician"), []  # whose first block is a result
    for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "text" and python:
            lines = FOOTNOTES.sub("", text).splitlines()  # noise decides which there are
            after += [first(line) for line in lines if line.strip(" …=-")]
        python = language == "python"
    assert after
    assert set(after) <= printed


def first(line: str) -> str:
    """Return the first word of a line, numbers aside."""
    return re.sub(r"[\d.]+", "0", line.split()[0]) if line.split() else ""


@pytest.mark.filterwarnings("ignore:releases are recorded or forced")
def test_page_on_evidence_runs(clone, capsys):
    run_page(DOCS / "evidence.md")
    assert "False" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plan-a-fit", "sparse-and-clusters"])
def test_page_that_takes_its_time_runs(clone, tmp_path, name):
    for block in blocks(DOCS / f"guide/{name}.md"):
        if block.language == "shell":
            run_shell(block.text)
        else:
            (tmp_path / "page.py").write_text(block.text, encoding="utf-8")
            run_shell("python page.py")


# --- gallery --------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", GALLERY, ids=lambda path: path.stem)
def test_gallery_script_runs(script, capsys):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with warnings.catch_warnings():
        # Without a screen there is nothing to show.
        warnings.filterwarnings("ignore", message=".*non-interactive.*")
        runpy.run_path(str(script))
    assert plt.get_fignums()
    plt.close("all")


# --- the site -------------------------------------------------------------------------------------


def test_the_pages_make_a_site_without_a_warning(tmp_path):
    """All but the gallery's pictures, which the test above draws; in a copy, to leave no trace."""
    leftovers = shutil.ignore_patterns("_build", "gallery_pages", "__pycache__")
    shutil.copytree(DOCS, tmp_path / "docs", ignore=leftovers)
    (tmp_path / "src").symlink_to(ROOT / "src")
    build = "sphinx-build -W --keep-going -q -D plot_gallery=0 docs site"
    run_shell(f"cd {tmp_path} && python -m sphinx.cmd.build {build.partition(' ')[2]}")
    page = (tmp_path / "site/theory/mechanisms.html").read_text(encoding="utf-8")
    assert "<math" in page
    assert "mathjax" not in page.lower()


@pytest.mark.parametrize(
    ("formula", "drawn"),
    [
        (r"\tfrac12 (x)", "mfrac mn 1 mn 2"),
        (r"\hat\sigma_x", "msub mrow mover mi σ mo ˆ mrow mi x"),
        (r"s \lt 0", "mi s mo &lt; mn 0"),
    ],
)
def test_formulas_are_drawn_as_latex_reads_them(monkeypatch, formula, drawn):
    monkeypatch.syspath_prepend(DOCS / "_ext")
    from mathml import as_mathml

    text = re.sub(r"</\w+>", "", as_mathml(formula, block=False))
    words = re.sub(r"<(\w+)[^>]*>", r" \1 ", text).split()
    assert drawn in " ".join(words)


# --- links ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_linked_files_exist(page):
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    missing = [target for target in LINK.findall(text) if not (page.parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_of_ours_that_are_named_exist(page):
    homes = ROOT, ROOT / "src" / "dpscreen", ROOT / "tests", DOCS
    named = set(FILE.findall(page.read_text(encoding="utf-8")))
    assert [name for name in named if not any((home / name).exists() for home in homes)] == []
