# Everything that a contributor types. All of it works from a fresh clone with Python 3.10 or newer, make and git: a virtual
# environment is made in .venv the first time and again when pyproject.toml changes. Nothing needs to be activated.
# Another Python: make test PYTHON=python3.12 (after make clean).

.DEFAULT_GOAL := help
.SUFFIXES:
MAKEFLAGS += --no-print-directory

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.10 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check --no-input
export PIP_ROOT_USER_ACTION = ignore

# The trainwatch-launch script is copied by an installation, not linked, so it is part of what makes one old.
INSTALL_INPUTS := pyproject.toml launcher/bin/trainwatch-launch launcher/trainwatch_launcher/version.py

.PHONY: help
help: ## what can be made here
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(VENV)/.runtime ## watch a real run of four workers crash (no GPU needed)
	@$(BIN)/trainwatch demo $(ARGS)

.PHONY: test
test: ## all checks: system packages, lint, types, tests
	@tests/setup/system-packages.sh $(PYTHON)
	@$(MAKE) lint
	@$(BIN)/pytest -n 2 --dist loadgroup $(ARGS)

.PHONY: lint
lint: $(VENV)/.dev ## ruff and mypy (strict)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary

.PHONY: bench
bench: $(VENV)/.dev ## measure the budgets, beside a reference each
	@$(BIN)/python benchmarks/run.py $(ARGS)

.PHONY: screenshots
screenshots: $(VENV)/.runtime ## draw screenshots/ again, from real and simulated runs
	@$(BIN)/python screenshots/make.py $(ARGS)

SCORED = --progress 'trainwatch inspect --points --json {path}' --lint 'trainwatch lint --json {path}' \
	--diagnose 'trainwatch why --json {path}' --diagnose-run 'trainwatch why --json {path}'

.PHONY: score
score: $(VENV)/.runtime ## score the parsers on the corpus, where it lies beside the checkout
	@test -f ../shared/corpus/score.py || { echo 'make score: there is no corpus in ../shared/corpus' >&2; exit 2; }
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python ../shared/corpus/score.py --set ../shared/corpus $(or $(ARGS),$(SCORED))

.PHONY: dist
dist: $(VENV)/.dev ## build the wheel and the source archive, the same bytes each time
	@rm -rf dist
	@$(BIN)/python -m hatchling build --directory dist

.PHONY: clean
clean: ## remove all that was made, but no runs
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis snapshot_report.html
	find launcher tui tests benchmarks screenshots -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo 'trainwatch needs Python 3.10 or newer: apt-get install python3 python3-venv' >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo '$(PYTHON) cannot make virtual environments here: apt-get install python3-venv' >&2; exit 2; }
	@echo 'making $(VENV) with $(PYTHON): once, about a minute'
	@$(PYTHON) -m venv $(VENV)

# pip reads dependency groups from 25.1 on; Debian 12 has 23.0.
$(VENV)/.runtime: $(INSTALL_INPUTS) | $(BIN)/python
	@$(PIP) install --upgrade 'pip>=25.1'
	@$(PIP) install --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	@$(PIP) install --group dev
	@touch $@
