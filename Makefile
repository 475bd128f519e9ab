# Everything on a machine that has only Python 3.11 and make: `make demo`, `make test`.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test test-heavy lint types check peers bench clean

demo: $(VENV)/.installed
	$(BIN)/headcount demo

test: lint types check

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed
	$(BIN)/mypy

check: $(VENV)/.installed
	$(BIN)/pytest -n 2 tests src --ignore tests/heavy --ignore src/headcount/neural

# Tests of what needs torch and transformers, in an environment of their own.
test-heavy: .venv-heavy/.installed
	.venv-heavy/bin/pytest -n 2 tests/heavy src/headcount/neural

# Compare with other quantification libraries, in an environment of their own.
peers: .venv-peers/.installed
	.venv-peers/bin/pytest -m peers tests/peers

# Measure against them; a quarter of an hour in all.
bench: .venv-peers/.installed
	.venv-peers/bin/python benchmarks/core.py
	.venv-peers/bin/python benchmarks/methods.py
	.venv-peers/bin/python benchmarks/growth.py
	.venv-peers/bin/python benchmarks/selection.py

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

.venv-peers/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --upgrade pip
	.venv-peers/bin/python -m pip install --quiet --editable ".[dev,peers]"
	touch $@

.venv-heavy/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-heavy
	.venv-heavy/bin/python -m pip install --quiet --upgrade pip
	.venv-heavy/bin/python -m pip install --quiet torch==2.13.0
	.venv-heavy/bin/python -m pip install --quiet --editable ".[dev,embed,torch,transformers,models]" onnx
	touch $@

clean:
	rm -rf $(VENV) .venv-peers .venv-heavy
	find . -name __pycache__ -prune -exec rm -rf {} +
