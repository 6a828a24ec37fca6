# make demo             set up .venv, then show what to label, and a page (half a minute)
# make test             set up .venv, then run the tests (about four minutes on two cores)
# make test-long        the rest: many more cases, kills, clusters, examples, browsers (some minutes)
# make test-fast        the core alone: designs, samplers, spectra and what users pass (under a minute)
# make test-frameworks  real training in every framework, every index compared, and examples of several processes (four minutes)
# make test-outside     the checks that scikit-learn and torchdata have for classes like ours
# make test-gpu         draws, loaders and training on a GPU, with commit and GPU in the first line (GPU_PYTHON=python3: a
#                       Python that has torch for CUDA, cuda-bindings and pytest already; COMMIT= names that of a copy without git)
# make test-processors  the numerical tests as on other processors (ten to fifteen minutes)
# make test-oldest      the numerical tests with the oldest versions that pyproject.toml admits
# make test-python      the same with the newest, on another Python: make test-python PYTHON=python3.13
# make coverage         which lines of the package the tests of `make test` run, and their share
# make first-hour       what a stranger types, into an empty environment (some minutes; TRANSCRIPT=FILE)
# make release-check    wheels of all dependencies for every platform; builds, checks and installs what would be
#                       published, on every Python at hand
# make lock             constraints.txt with the newest versions, but for torch
# make fuzz             any input to any function, a hundred thousand calls, and ten thousand damaged files
#                       of every kind (CALLS=, CASES=, SEED= for others; three quarters of an hour, estimated)
# make soak             long runs under load, with kills (about half an hour)
# make check            lint and types
# make frameworks       the table of frameworks in docs/results/frameworks.md (about three minutes)
# make bench            the speed tables of the README and docs/results/benchmarks.md (about a quarter of an hour)
# make docs             the site, build/site: examples run, links checked, opened in Chromium (under ten minutes)
# make check-examples   mypy --strict on the examples, against the wheel as users install it
# make paper            all experiments, in small

PYTHON ?= python3
OLDEST_PYTHON ?= python3.10
VENV ?= .venv
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := $(VENV)/$(SCRIPTS)

ifneq ($(wildcard ../shared/data),)
export DMSGD_DATA ?= $(abspath ../shared/data)
endif

# Tests start Python some two hundred times, which would compile all of the package each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-long test-fast test-frameworks test-outside test-gpu fuzz soak test-processors test-oldest test-python lock coverage first-hour release-check browser check format frameworks bench docs check-examples paper clean

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[sklearn]"
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	@touch $@

$(VENV)/.installed-bench: $(VENV)/.installed-dev
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[bench]"
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.installed-dev
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[docs]"
	@touch $@

demo: $(VENV)/.installed
	$(BIN)/dmsgd demo --force

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 2 -m "not frameworks and not long"

test-long: $(VENV)/.installed-dev browser
	$(BIN)/python -m pytest -n 2 -m "long and not frameworks"

FAST := cells compiled designs fingerprints inclusion inputs kdpp kernels maps options spectra stored_draws symmetric \
        weighted

test-fast: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 2 $(FAST:%=tests/test_%.py)

test-frameworks: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -m frameworks tests/test_distributed.py tests/test_examples.py tests/test_recipes.py

# From the installed packages, however long they take: `make test` runs the short ones. torchdata's has
# none, so tests/test_torch.py does what its test_state_dict.py does, and says where ours differ on purpose.
test-outside: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 2 -m outside tests/test_sklearn.py tests/test_torch.py

# What runs is in FILES of tests/gpu.py; it fails where there is no GPU.
test-gpu: $(if $(GPU_PYTHON),,$(VENV)/.installed-dev)
	$(or $(GPU_PYTHON),$(BIN)/python) tests/gpu.py $(OPTIONS)

# atheris has no wheel for most platforms: without it files are damaged at random, and run.py says so.
$(VENV)/.installed-fuzz: $(VENV)/.installed-dev
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[fuzz]" || echo "the extra fuzz could not be installed"
	@touch $@

# Property tests with new random cases; `make test` has a few hundred fixed ones.
fuzz: $(VENV)/.installed-fuzz
	$(BIN)/python -m pytest -n 2 tests/properties --hypothesis-profile=fuzz
	$(BIN)/python tests/properties/hostile.py --calls $(or $(CALLS),100000) --seed $(or $(SEED),0)
	$(BIN)/python tests/fuzz/run.py --cases $(or $(CASES),10000) --seed $(or $(SEED),0)

# OPTIONS=--short: two configurations and fewer files, in about two minutes.
test-processors: $(VENV)/.installed-dev
	$(BIN)/python tests/processors.py $(OPTIONS)

# Without torch, which has no builds for every Python; what needs it is skipped.
test-oldest:
	$(OLDEST_PYTHON) -m venv --clear .venv-oldest
	.venv-oldest/$(SCRIPTS)/pip install --quiet --no-deps --editable .
	.venv-oldest/$(SCRIPTS)/python tests/oldest.py > .venv-oldest/oldest.txt
	.venv-oldest/$(SCRIPTS)/pip install --quiet --constraint .venv-oldest/oldest.txt --editable ".[test]"
	.venv-oldest/$(SCRIPTS)/python tests/processors.py --here

test-python:
	$(PYTHON) -m venv --clear .venv-python
	.venv-python/$(SCRIPTS)/pip install --quiet --upgrade --editable ".[test]"
	.venv-python/$(SCRIPTS)/python tests/processors.py --here

# Also those lines that only processes started by tests run.
coverage: $(VENV)/.installed-dev browser
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n 2 -m "not frameworks"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

$(VENV)/.installed-release: $(VENV)/.installed-dev
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[release]"
	@touch $@

first-hour: $(VENV)/.installed-dev
	$(BIN)/python tests/first_hour/run.py $(TRANSCRIPT:%=--transcript %)

release-check: $(VENV)/.installed-release
	$(BIN)/python tests/wheels.py
	$(BIN)/python tests/release_check.py

# torch stays as it is: other versions of it are other downloads of gigabytes. Edit its line to change it.
lock:
	$(PYTHON) -m venv --clear .venv-lock
	grep ^torch== constraints.txt > .venv-lock/torch.txt
	.venv-lock/$(SCRIPTS)/pip install --quiet --constraint .venv-lock/torch.txt --editable ".[dev,bench,fuzz,release,docs]"
	grep '^#' constraints.txt > .venv-lock/lock.txt
	.venv-lock/$(SCRIPTS)/pip freeze --all --exclude pip --exclude-editable | sed 's/+cpu$$//; /^torch==/!s/$$/; python_version >= "3.11"/' >> .venv-lock/lock.txt
	mv .venv-lock/lock.txt constraints.txt

# The report's page is tested in a browser where there is one, and those tests skip where not.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && apt-get install -y -qq chromium chromium-driver >/dev/null 2>&1; } || \
	  echo "no Chromium found or installed: the browser tests will be skipped"

# Each prints one line of result; the first that fails ends it.
soak: $(VENV)/.installed-dev
	$(BIN)/python tests/soak/draws.py
	$(BIN)/python tests/soak/loaders.py
	$(BIN)/python tests/soak/schedules.py
	$(BIN)/python tests/soak/workers.py
	$(BIN)/python tests/soak/ddp.py

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
	$(BIN)/python benchmarks/texts.py
	$(BIN)/python benchmarks/loops.py

# The variable silences an announcement of Material's makers (docs/project/decisions/site.md), no warning about the site.
docs: $(VENV)/.installed-docs browser
	$(BIN)/python docs/site/gallery.py
	$(BIN)/python docs/site/pages.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python -m pytest tests/built_site.py
	@echo "the site is build/site/index.html"

# The wheel comes before the editable package on the path, so that types are those that users get.
check-examples: $(VENV)/.installed-dev
	rm -rf build/typed
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir build/typed .
	$(BIN)/python -m venv build/typed/venv
	build/typed/venv/$(SCRIPTS)/pip install --quiet --no-deps build/typed/*.whl
	$(BIN)/python -c "import site; print(site.getsitepackages()[0])" > build/typed/below.pth
	cp build/typed/below.pth $$(build/typed/venv/$(SCRIPTS)/python -c "import site; print(site.getsitepackages()[0])")
	cd examples && $(abspath $(BIN))/mypy --cache-dir ../build/typed-cache --python-executable ../build/typed/venv/$(SCRIPTS)/python .

paper: $(VENV)/.installed-dev
	$(BIN)/python -m experiments all --quick --force

clean:
	rm -rf $(VENV) .venv-oldest .venv-python .venv-lock .mypy_cache .ruff_cache .pytest_cache
