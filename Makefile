# make demo   set up, grow a graph, make tasks, train on them, write the report (offline, no key, no server)
# make test   set up, lint, type-check, test
# make test-slow  the tests that take long: kills by the dozen, real peers, everything rendered
# make setup  only the set-up that `demo` needs
# Results go to runs/demo; `make demo` again goes on where it was stopped, `make clean-demo` starts over.

RECIPE ?= recipes/demo.toml
BIN := .venv/bin
export PYTHONUNBUFFERED := 1
export TOKENIZERS_PARALLELISM := false

.PHONY: demo test test-slow setup setup-test lint types check clean-demo help

help:
	@sed -n 's/^# \(make.*\)/\1/p' Makefile

setup:
	@scripts/setup.sh demo

setup-test:
	@scripts/setup.sh test

demo: setup
	@$(BIN)/kgsynth run $(RECIPE)
	@$(BIN)/trainer run $(RECIPE)
	@$(BIN)/kgsynth report $(RECIPE)

clean-demo:
	rm -rf runs/demo

test: setup-test lint types
	@$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow"

test-slow: setup-test
	@$(BIN)/python -m pytest -n 2 --dist loadfile -m slow

lint:
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types:
	@$(BIN)/pyright
