# make demo   install into .venv and show what grubler does, on a robot with twelve rotors
# make test   lint, import rules and all tests
# make quick  the tests between two edits: one robot a feature, under a minute
# make docs   the documents as web pages, in docs/_build/html
# make bench  speed, side by side with Pinocchio and MuJoCo; results in benchmarks/results

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test quick lint docs pictures bench clean

demo: .venv/installed-demo
	$(BIN)/python examples/demo.py

test: .venv/installed-test lint
	$(BIN)/python -m pytest -n auto

quick: .venv/installed-test
	$(BIN)/python -m pytest -n auto -m quick

lint: .venv/installed-test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-logo

docs: .venv/installed-docs
	$(BIN)/sphinx-build -W --keep-going -q -j auto docs docs/_build/html
	@echo docs/_build/html/index.html

pictures: .venv/installed-test
	$(BIN)/python docs/pictures.py $(if $(CASSIE),--cassie $(CASSIE))

bench: .venv/installed-bench
	$(BIN)/python -m benchmarks

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python pyproject.toml
	$(PIP) -e .
	touch $@

# the demo draws its picture and names the viewer: both extras come along
.venv/installed-demo: .venv/installed
	$(PIP) -e '.[plot,view]'
	touch $@

.venv/installed-test: .venv/installed
	$(PIP) -e '.[test,docs]'
	touch $@

.venv/installed-docs: .venv/installed
	$(PIP) -e '.[docs]'
	touch $@

.venv/installed-bench: .venv/installed
	$(PIP) -e '.[bench]'
	touch $@

clean:
	rm -rf .venv build dist out docs/_build .pytest_cache .ruff_cache .hypothesis .import_linter_cache
