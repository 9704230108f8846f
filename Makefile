# One word each. Everything but `help` prepares .venv first, and a second run finds it ready.
# PYTHON names the interpreter: any from 3.11 on. Without it the first one found that has `venv` is taken.

.DEFAULT_GOAL := help
.PHONY: help setup dev serve test test-postgres lint fix bench bench-store bench-turns bench-providers bench-tools bench-cron chaos lock clean

CANDIDATES := python3 python3.13 python3.12 python3.11 python3.14 python
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
HAS_VENV := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))

ifndef PYTHON
PYTHON := $(shell for each in $(CANDIDATES); do $$each -c '$(HAS_VENV)' >/dev/null 2>&1 && { command -v $$each; exit; }; done; \
	for each in $(CANDIDATES); do $$each -c '$(NEW_ENOUGH)' >/dev/null 2>&1 && { command -v $$each; exit; }; done)
endif

BIN := .venv/bin
CODE := halo_project sessions_app agents_app channels_app cron_app admin_ui tests tools benchmarks manage.py

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 17

setup: ## .venv with the locked dependencies and the `halo` command
	@$(if $(PYTHON),,echo "halo: no Python 3.11 or newer was found. Install one, or name it: make setup PYTHON=/path/to/python3" >&2; exit 1)
	@"$(PYTHON)" tools/bootstrap.py

dev: ## setup, with the tools for tests and lint
	@$(if $(PYTHON),,echo "halo: no Python 3.11 or newer was found. Install one, or name it: make dev PYTHON=/path/to/python3" >&2; exit 1)
	@"$(PYTHON)" tools/bootstrap.py --dev

serve: setup ## run Halo on this machine until Ctrl-C
	@exec $(BIN)/halo serve

test: dev ## every test, as many at once as there are cores (at most 4); ARGS="-k word" chooses
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder --durations=25 $(ARGS)

# What takes locks: the order in which they are taken is tried on a server that holds rows one by one.
ON_POSTGRES := tests/agents_app/lifecycle tests/sessions_app/test_lease_and_rounds.py \
	$(addprefix tests/cron_app/test_,beat_rows.py fires.py upkeep.py deliveries.py retention.py jobs.py tool.py) \
	$(addprefix tests/channels_app/test_,outbox.py outbox_rows.py outbox_sending.py)

test-postgres: dev ## sessions, schedules and the outbox on a PostgreSQL server of its own, which locks what SQLite does one by one
	$(BIN)/python -m tests.support.on_postgres -n auto --maxprocesses 4 $(ON_POSTGRES) $(ARGS)

lint: dev ## format, rules, floors, types
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/lint-imports
	$(BIN)/mypy

fix: dev ## mend what ruff can mend
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

bench: dev ## measure, on this machine
	$(BIN)/python -m benchmarks.run $(ARGS)

bench-store: dev ## measure the session store beside the limits of this machine; figures go to bench-store.json
	$(BIN)/python -m benchmarks.store $(ARGS)

bench-turns: dev ## measure turns: commits, many at once, how fast they start and stop; figures go to bench-turns.json
	$(BIN)/python -m benchmarks.turns $(ARGS)

bench-providers: dev ## measure what the four wires to models cost beyond the SDKs; figures go to bench-providers.json
	$(BIN)/python -m benchmarks.providers $(ARGS)

bench-tools: dev ## measure searches beside ripgrep and find, the system prompt, a sandbox; figures go to bench-tools.json
	$(BIN)/python -m benchmarks.tools $(ARGS)

bench-cron: dev ## measure beat's loop over 5,000 jobs and how late 100 jobs are that are due at once; figures go to bench-cron.json
	$(BIN)/python -m benchmarks.cron $(ARGS)

chaos: dev ## three minutes of talk while workers and Redis are killed, then a look at what is left
	$(BIN)/python -m benchmarks.chaos $(ARGS)

# Hashes and no addresses. Versions that a lock holds already are kept unless UPGRADE=--upgrade is given.
COMPILE := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-config --no-header --no-annotate --python-version 3.11 $(UPGRADE)

lock: dev ## make the lock files anew from pyproject.toml
	$(COMPILE) pyproject.toml -o requirements.lock
	$(COMPILE) pyproject.toml --extra dev -o requirements-dev.lock
	$(COMPILE) requirements-setup.in -o requirements-setup.lock

clean: ## remove .venv and caches
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache build *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
