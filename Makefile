# The list of habits. CI runs `make lint types test`; `make` alone also checks the docs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
ARGS   ?=
# How many processes share the tests: one more than there are cores, as some wait.
JOBS   ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# The number that all chance of a soak comes from; give one to have its failure again.
SOAK   ?= $(shell date +%s)
# The tests start hundreds of processes: each would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := check
.PHONY: help setup demo test soak lint types check fix bench clean

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
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --randomly-seed=1 $(ARGS)

soak: $(READY) ## run the tests for long, with chance: kills, random examples, big corpora
	@echo "to have the same again: make soak SOAK=$(SOAK)"
	SOAK=$(SOAK) $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup \
	    --randomly-seed=$(SOAK) --hypothesis-seed=$(SOAK) $(ARGS)

lint: $(READY) ## check the format and lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY) ## check the types
	$(BIN)/mypy

check: lint types test ## everything that a change must pass: also that the docs are fresh
	$(BIN)/cog -I . --check docs/reference/*.md

fix: $(READY) ## format, repair what the linter can, write the generated docs anew
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/cog -I . -r docs/reference/*.md

bench: $(READY) ## measure speed and memory, with this machine's own baseline beside each figure
	$(BIN)/python -m bench $(ARGS)

clean: ## remove everything that was made here
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
