# Everything on a machine that has only Python 3.11 and make: `make demo`, `make test`.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo figure test test-heavy test-site lint types check peers bench clean

demo: $(VENV)/.installed
	$(BIN)/headcount demo

# The figure of the README.
figure: $(VENV)/.installed
	$(BIN)/python benchmarks/readme_figure.py

test: lint types check

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed
	$(BIN)/mypy

check: $(VENV)/.installed
	$(BIN)/pytest -n 2 tests src --ignore tests/heavy --ignore tests/site --ignore src/headcount/neural --ignore src/headcount/site

# Tests of what needs torch and transformers, in an environment of their own.
test-heavy: .venv-heavy/.installed
	.venv-heavy/bin/pytest -n 2 tests/heavy src/headcount/neural

# Tests of the lab's site, in an environment of their own: a browser, PostgreSQL, real processes.
# As root it installs what is missing; else those tests say why they skip.
test-site: .venv-site/.installed
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  missing=""; \
	  command -v chromium >/dev/null || missing="$$missing chromium"; \
	  command -v npm >/dev/null || missing="$$missing npm"; \
	  ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$$missing postgresql"; \
	  [ -z "$$missing" ] || { apt-get update -qq; \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing >/dev/null; } || true; \
	fi
	.venv-site/bin/pytest -n 2 tests/site

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

.venv-site/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-site
	.venv-site/bin/python -m pip install --quiet --upgrade pip
	.venv-site/bin/python -m pip install --quiet --editable ".[dev,site,test-site]"
	touch $@

clean:
	rm -rf $(VENV) .venv-peers .venv-heavy .venv-site
	find . -name __pycache__ -prune -exec rm -rf {} +
