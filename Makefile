# make demo   install into .venv and show what grubler does, on a robot with twelve rotors
# make test   lint, import rules and all tests
# make bench  speed, side by side with Pinocchio and MuJoCo; results in benchmarks/results

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test lint bench clean

demo: .venv/installed
	$(BIN)/python examples/demo.py

test: .venv/installed-test lint
	$(BIN)/python -m pytest -n auto

lint: .venv/installed-test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-logo

bench: .venv/installed-bench
	$(BIN)/python -m benchmarks

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python pyproject.toml
	$(PIP) -e .
	touch $@

.venv/installed-test: .venv/installed
	$(PIP) -e '.[test]'
	touch $@

.venv/installed-bench: .venv/installed
	$(PIP) -e '.[bench]'
	touch $@

clean:
	rm -rf .venv build dist out .pytest_cache .ruff_cache .hypothesis .import_linter_cache
