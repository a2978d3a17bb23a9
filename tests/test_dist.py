"""What is shipped: the wheel holds all that the code opens, and works in an empty environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import jinja2
import pytest
import yaml

from dpscreen import __version__

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env=os.environ | environment, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """Return where an sdist lies, and a wheel that was made of the sdist."""
    place = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", place)
    return place


def only(place: Path, pattern: str) -> Path:
    (found,) = place.glob(pattern)
    return found


def test_the_wheel_holds_every_file_of_the_package_and_no_other(built):
    with zipfile.ZipFile(only(built, "*.whl")) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    files = (path for path in SOURCE.rglob("*") if path.is_file())
    expected = {
        path.relative_to(SOURCE).as_posix()
        for path in files
        if "__pycache__" not in path.parts and not path.name.startswith(".")
    }
    assert held == expected
    assert {"dpscreen/py.typed", "dpscreen/models/model.schema.json"} <= held
    assert {Path(name).suffix for name in held} >= {".html", ".css", ".json"}


def test_the_sdist_holds_tests_and_pages_and_nothing_that_was_built(built):
    with tarfile.open(only(built, "*.tar.gz")) as sdist:
        held = {name.partition("/")[2] for name in sdist.getnames()}
    wanted = {"README.md", "LICENSE", "Makefile", "constraints.txt", "pyproject.toml"}
    wanted |= {"CITATION.cff", "docs/conf.py", "docs/tutorial.md", "tests/test_dist.py"}
    assert wanted <= held
    unwanted = ("docs/_build", "docs/gallery_pages", ".venv", "dist")
    assert not [name for name in held if name.startswith(unwanted) or "__pycache__" in name]


def test_what_others_read_of_the_project_agrees_with_it():
    def text(name: str) -> str:
        return (ROOT / name).read_text(encoding="utf-8")

    project = tomllib.loads(text("pyproject.toml"))["project"]
    assert f"\nversion: {__version__}\n" in text("CITATION.cff")
    assert f'name: "{project["authors"][0]["name"]}"' in text("CITATION.cff")
    assert "run: .ci/run" in text(".github/workflows/ci.yml")
    tried = set(re.findall(r'"(3\.\d+)"', text(".github/workflows/ci.yml")))
    named = {one.rpartition(" ")[2] for one in project["classifiers"] if ":: 3." in one}
    assert tried == named


def test_the_conda_recipe_is_one_once_its_blanks_are_filled():
    """As conda-build fills them: from the project's files, before the YAML is read."""
    place = ROOT / "conda"

    def data(name: str, **_: bool):
        return tomllib.loads((place / name).read_text(encoding="utf-8"))

    def regex(name: str, form: str, **_: bool):
        return re.search(form, (place / name).read_text(encoding="utf-8"))

    blanks = {"load_file_data": data, "load_file_regex": regex, "PYTHON": "python"}
    template = jinja2.Template((place / "meta.yaml").read_text(encoding="utf-8"))
    recipe = yaml.safe_load(template.render(blanks))
    project = data("../pyproject.toml")["project"]
    assert recipe["about"]["summary"] == project["description"]
    assert recipe["package"]["version"] == __version__
    needs = recipe["requirements"]["run"]
    assert needs == ["python >=3.11", *map(str.lower, project["dependencies"])]
    assert (place / recipe["source"]["path"] / recipe["about"]["license_file"]).exists()


@pytest.fixture(scope="module")
def empty(built, tmp_path_factory) -> Path:
    """Return the programs of an environment that holds the wheel, without any extra."""
    place = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", place)
    pip = (place / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--quiet")
    run(*pip, "install", only(built, "*.whl"), PIP_CONSTRAINT=str(ROOT / "constraints.txt"))
    return place / "bin"


SIZES = """
import re
from importlib.metadata import PackageNotFoundError, distribution, distributions

def size(dist):
    return sum(path.stat().st_size for file in dist.files if (path := file.locate()).exists())

def with_needs(names, found):
    for name in names:
        try:
            dist = distribution(name)
        except PackageNotFoundError:  # an extra, or for another system
            continue
        if dist.name not in found:
            found[dist.name] = size(dist)
            plain = (one for one in dist.requires or () if "extra ==" not in one)
            with_needs([re.match(r"[\\w.-]+", one)[0] for one in plain], found)
    return found

tools = {"pip", "setuptools", "wheel"}
whole = sum(size(dist) for dist in distributions() if dist.name not in tools)
field = ("numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "numba")
print(whole / sum(with_needs(field, {}).values()))
"""


@pytest.mark.slow
def test_the_wheel_brings_little_more_than_the_field_has_anyway(empty):
    """Over numpy, scipy, scikit-learn, pandas, pyarrow and numba, with what those need."""
    assert 1 < float(run(empty / "python", "-c", SIZES)) <= 1.25


@pytest.mark.slow
def test_what_belongs_to_an_extra_is_not_there_and_is_named(empty, tmp_path):
    for name in (
        "dask",
        "distributed",
        "openpyxl",
        "onnx",
        "sqlglot",
        "sphinx",
        "polars",
    ):
        found = f"import importlib.util as u; print(u.find_spec({name!r}))"
        assert run(empty / "python", "-c", found).strip() == "None"
    (tmp_path / "table.csv").touch()
    told = subprocess.run(
        [empty / "dpscreen", "studio", "table.csv"],
        **{"capture_output": True, "text": True, "cwd": tmp_path, "check": False},
    )
    assert told.returncode == 1
    assert "pip install 'dpscreen[studio]'" in told.stderr


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(empty, tmp_path):
    assert "RNM-Screen, proven" in run(empty / "dpscreen", "demo", cwd=tmp_path)
    assert "<svg" in (tmp_path / "dpscreen-demo.html").read_text(encoding="utf-8")
    where = "import dpscreen; print(dpscreen.__file__)"
    assert str(empty.parent) in run(empty / "python", "-W", "error", "-c", where, cwd=tmp_path)
    page = (
        "import numpy as np; from dpscreen import PrivateLasso, load, write_model_page\n"
        "X = np.random.default_rng(0).uniform(size=(900, 3)); y = X[:, 0]\n"
        "model = PrivateLasso(epsilon=2, delta=1e-6, feature_bounds=(0, 1), target_bounds=(0, 1))\n"
        "model.fit(X, y).save('model.json'); print(load('model.json').summary())\n"
        "from pathlib import Path; write_model_page(load('model.json'), Path('page.html'))\n"
    )
    assert "Released quality" in run(empty / "python", "-c", page, cwd=tmp_path)
    assert "<svg" in (tmp_path / "page.html").read_text(encoding="utf-8")
