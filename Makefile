# Plain `make` lists the targets. Variables: PYTHON (to make .venv with), JOBS (test processes), ARGS (passed on).
PYTHON ?= python3
JOBS ?= 4
ARGS ?=
export PYTHON
# Tests start hundreds of processes: without bytecode each would compile all that it imports.
export PYTHONDONTWRITEBYTECODE :=

BIN := .venv/bin
# Not every folder exists in every checkout, and mypy stops at a missing one.
CODE := $(wildcard src tests bench demo tools)
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help demo quick test check bench pictures soak format clean venv servers agents

help:
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## See agents carry out a plan, die, return as zombies, and merge; and every task end with one result
	@tools/setup demo
	@$(BIN)/python -m demo $(ARGS)

quick: venv ## Run the tests for a change in hand, without servers and agents (less than two minutes)
	$(PYTEST) --quick $(ARGS)

test: venv servers agents ## Run all tests on all stores, with their servers and real coding agents
	$(PYTEST) $(ARGS)

check: venv ## Format, lint, types, import rules, size habits
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports
	$(BIN)/python -m tools.tidy

bench: venv servers ## Measure every store; a table, and JSON beside it
	@$(BIN)/python -m bench $(ARGS)

pictures: venv servers ## Take the pictures of the documents again, from the demo in a browser (two minutes)
	@$(BIN)/python -m tools.screenshots $(ARGS)

soak: venv servers agents ## The tests with many more seeds and longer runs (hours)
	COORD_SOAK=1 $(PYTEST) --timeout 7200 $(ARGS)

format: venv ## Format the code and fix what lint can fix
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

clean: ## Remove .venv, caches and build results
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

venv:
	@tools/setup venv

servers:
	@tools/setup servers

agents:
	@tools/setup agents
