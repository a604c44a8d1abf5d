# The list of habits. CI runs `make test`; `make` alone runs everything a change must pass.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
ARGS   ?=

.DEFAULT_GOAL := check
.PHONY: help setup demo test check fix bench clean

help: ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: $(READY) ## make the virtual environment and install Backstory into it, for work on it

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(READY) ## show what Backstory does, on sample conversations, in a temporary folder
	@$(BIN)/backstory demo

test: $(READY) ## run the tests (ARGS="-k claude" picks some)
	$(BIN)/python -m pytest $(ARGS)

check: $(READY) ## format, lint, types, tests, docs fresh
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest $(ARGS)
	$(BIN)/cog -I . --check docs/reference/*.md

fix: $(READY) ## format, repair what the linter can, write the generated docs anew
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/cog -I . -r docs/reference/*.md

bench: $(READY) ## measure speed and memory, with this machine's own baseline beside each figure
	$(BIN)/python -m bench $(ARGS)

clean: ## remove everything that was made here
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
