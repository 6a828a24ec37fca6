# make demo   set up .venv, then compare samplers on long-tailed digits (under two minutes)
# make test   set up .venv, then run all tests
# make check  lint and types
# make bench  the speed tables of the README

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

ifneq ($(wildcard ../shared/data),)
export DMSGD_DATA ?= $(abspath ../shared/data)
endif

.PHONY: demo test check format bench clean

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	@touch $@

$(VENV)/.installed-bench: $(VENV)/.installed-dev
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[bench]"
	@touch $@

demo: $(VENV)/.installed
	$(BIN)/dmsgd demo

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 2

check: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/draws.py
	$(BIN)/python benchmarks/setup.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
