# Every target installs what it needs first: `make demo` and `make test` each work in a fresh clone.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
LOCK := $(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --universal \
	--python-version 3.11 --custom-compile-command "make lock"

# The caller's own Python path must not leak into .venv.
unexport PYTHONPATH PYTHONHOME

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow coverage lint format types contract docs bench check ci lock clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(firstword $(MAKEFILE_LIST)) | \
		awk -F ':.*## ' '{ printf "  make %-10s %s\n", $$1, $$2 }'

setup: $(STAMP) ## create .venv with the locked dependencies and this package

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "stirred needs Python 3.11 or later; '$(PYTHON)' is missing or older." >&2; \
		echo "Name another one: make PYTHON=python3.12 setup" >&2; exit 1; }
	@echo "Installing the locked dependencies into $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --require-hashes -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

demo: setup ## a first look: a synthetic county, released by swapping and by TopDown, and compared
	@rm -rf stirred-demo .stirred-demo.part
	@$(BIN)/stirred demo

test: setup ## the fast tests, on every core; COVERAGE=1 measures which branches they take
	@$(BIN)/python -m pytest $(if $(COVERAGE),--cov --cov-report=json:.coverage.json)

test-slow: setup ## the tests marked slow, and the coverage that the fast ones left
	@$(BIN)/python -m pytest -m slow || { code=$$?; \
		if [ $$code -eq 5 ]; then echo "No test is marked slow."; else exit $$code; fi; }
	@test ! -f .coverage.json || $(BIN)/python tests/coverage_by_room.py .coverage.json

coverage: setup ## which lines and branches of every room the fast tests take; at least 90%
	@$(MAKE) --no-print-directory test COVERAGE=1
	@$(BIN)/python tests/coverage_by_room.py .coverage.json

lint: setup ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: setup ## ruff: fix and format in place
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: setup ## mypy --strict on src
	@$(BIN)/mypy

contract: setup ## which room may import which
	@$(BIN)/lint-imports --no-logo

docs: setup ## build the documentation into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

bench: setup ## run every benchmark in turn
	@for file in $(sort $(wildcard benchmarks/*.py)); do \
		echo "== $$file"; $(BIN)/python "$$file" || exit $$?; done

check: lint types contract docs ## everything that reads the code without running it

ci: ## what continuous integration runs
	@PYTHON="$(PYTHON)" .ci/run

lock: $(BIN)/uv ## lock the dependencies; newest versions: make lock UPGRADE=--upgrade
	@$(LOCK) $(UPGRADE) --extra all --group dev pyproject.toml -o requirements.lock
	@$(LOCK) $(UPGRADE) --constraints requirements.lock --extra all pyproject.toml -o requirements-runtime.lock
	@$(LOCK) $(UPGRADE) --constraints requirements.lock pyproject.toml -o requirements-core.lock
	@$(LOCK) $(UPGRADE) --resolution lowest-direct --extra all --group test pyproject.toml -o requirements-lowest.lock

$(BIN)/uv:
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install uv

clean: ## remove everything that can be made again
	@rm -rf $(VENV) site dist build stirred-demo .stirred-demo.part .coverage .coverage.json .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
