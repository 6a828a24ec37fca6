# make demo             set up .venv, then compare samplers on long-tailed digits (under two minutes)
# make test             set up .venv, then run all tests
# make test-processors  the numerical tests as on other processors (ten to fifteen minutes)
# make check            lint and types
# make frameworks       the table of frameworks in docs/training.md (about three minutes)
# make bench            the speed tables of the README
# make paper            all experiments of the paper, in small (about ten minutes)

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

ifneq ($(wildcard ../shared/data),)
export DMSGD_DATA ?= $(abspath ../shared/data)
endif

.PHONY: demo test test-processors browser check format frameworks bench paper clean

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
	$(BIN)/dmsgd demo --force

test: $(VENV)/.installed-dev browser
	$(BIN)/python -m pytest -n 2

# OPTIONS=--short: two configurations and fewer files, in about two minutes.
test-processors: $(VENV)/.installed-dev
	$(BIN)/python tests/processors.py $(OPTIONS)

# The report's page is tested in a browser where there is one, and those tests skip where not.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && apt-get install -y -qq chromium chromium-driver >/dev/null 2>&1; } || \
	  echo "no Chromium found or installed: the browser tests will be skipped"

check: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

frameworks: $(VENV)/.installed-dev
	$(BIN)/python tests/frameworks.py

bench: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/draws.py
	$(BIN)/python benchmarks/setup.py
	$(BIN)/python benchmarks/weighted.py

paper: $(VENV)/.installed-dev
	$(BIN)/dmsgd reproduce all --quick --out build/paper --force

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
