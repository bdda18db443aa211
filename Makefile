# Every target creates and fills .venv as far as it needs; stamp files inside .venv make the second run start in seconds.
# Another Python:        make demo PYTHON=python3.12
# Another torch build:   make demo TORCH_ARGS="--index-url URL"   (PyTorch's own page lists the URLs; a bare torch may bring CUDA)
# Newer packages:        make clean && make constraints CONSTRAINTS=
# Tests, one at a time:  make test JOBS=0
# One engine alone:      make test-engines ENGINE=unsloth
# Its figures kept:      make test-engines TELL=1                 (benchmarks/results/engines.json)

PYTHON ?= python3
TORCH_ARGS ?=
CONSTRAINTS ?= constraints.txt
LAB_ARGS ?=
INSPECT_ARGS ?=
JOBS ?= 2
TELL ?=
ENGINE ?= $(patsubst tests/engines/%.txt,%,$(wildcard tests/engines/*.txt))

VENV := .venv
BIN := $(VENV)/bin
# Twice quiet: errors only, since each step says in one plain line what it does.
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check
PINNED := $(CONSTRAINTS:%=-c %)
TORCH := $(shell sed -n 's/^ *"\(torch==[^"]*\)".*/\1/p' pyproject.toml)
NOTEBOOKS := $(sort $(wildcard notebooks/*.ipynb))
# `make test` replays the notebooks that teach the pipeline, and those that differ from the upstream branch.
TAUGHT := $(filter notebooks/00_% notebooks/05_% notebooks/06_%,$(NOTEBOOKS))
CHANGED := $(filter $(NOTEBOOKS),$(shell git diff --name-only @{upstream} -- notebooks 2>/dev/null))
# The other notebooks read the runs of the first one.
FIRST := $(firstword $(NOTEBOOKS))
# The tests of a file run in one process, since they share fixtures. tests/conftest.py orders the files.
SHARED := -n $(JOBS) --dist loadfile --no-loadscope-reorder
OFFLINE := HF_HUB_OFFLINE=1 HF_DATASETS_OFFLINE=1 TRANSFORMERS_OFFLINE=1
# Waiting threads must not spin: they would take the cores of the other process (workbench/util/threads.py).
REPLAY := OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=2000 $(OFFLINE) PLOTLY_RENDERER=plotly_mimetype $(BIN)/python -m pytest --nbval --nbval-current-env \
	--nbval-sanitize-with tests/nbval_sanitize.cfg

# Tests start many processes: without compiled files, each of them compiles the sources again.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo check test test-all test-engines lint lab inspect notebooks constraints clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / && !seen[$$1]++ {printf "  make %-12s %s\n", $$1, $$2}' Makefile

demo: $(VENV)/.base ## train a tiny model to say what it knows and to pass on what it does not
	@$(BIN)/workbench demo
	@echo "before commands of workbench, once in a shell: source $(BIN)/activate"

# All three run, even if the first fails.
LINT := ok=0; $(BIN)/ruff check . || ok=1; $(BIN)/ruff format --check . || ok=1; $(BIN)/mypy || ok=1; test $$ok = 0

lint: $(VENV)/.dev
	@$(LINT)

check: $(VENV)/.notebooks $(VENV)/.apps lint ## style, types and the quick tests (about 90 seconds)
	@$(BIN)/python -m pytest -p no:nbval $(SHARED) -m "not slow and not nightly"

# A failed part does not stop the others; the last line names the failed ones.
define RUN_TESTS
	@trap 'exit 130' INT; failed=""; \
	{ $(LINT); } || failed="$$failed style"; \
	$(BIN)/python -m pytest $(SHARED) $(1) --durations 20 --durations-min 10 || failed="$$failed tests"; \
	echo "replaying notebooks and comparing their outputs"; \
	$(REPLAY) $(firstword $(2)) || failed="$$failed $(firstword $(2))"; \
	$(REPLAY) $(SHARED) $(wordlist 2,$(words $(2)),$(2)) || failed="$$failed notebooks"; \
	if [ -n "$$failed" ]; then echo "failed:$$failed" >&2; exit 1; fi
endef

test: $(VENV)/.notebooks $(VENV)/.apps $(VENV)/.dev ## style, types, tests, the notebooks that teach the pipeline (about 15 minutes)
	$(call RUN_TESTS,-m "not nightly",$(FIRST) $(filter-out $(FIRST),$(sort $(TAUGHT) $(CHANGED))))

test-all: $(VENV)/.notebooks $(VENV)/.apps $(VENV)/.dev ## the same with the nightly tests and every notebook
	$(call RUN_TESTS,,$(NOTEBOOKS))

# A failed engine does not stop the others; the last line names the failed ones.
test-engines: ## build the environment of each engine (minutes, GBs) and run its tests there
	@trap 'exit 130' INT; failed=""; \
	for engine in $(ENGINE); do \
		$(MAKE) --no-print-directory .engines/$$engine/.made && WORKBENCH_TELL=$(TELL) .engines/$$engine/bin/python -m pytest \
			-p no:cacheprovider -m engines tests/engines/test_$$engine*.py || failed="$$failed $$engine"; \
	done; \
	if [ -n "$$failed" ]; then echo "failed:$$failed" >&2; exit 1; fi; echo "passed: $(ENGINE)"

lab: $(VENV)/.notebooks ## open the notebooks in JupyterLab
	@$(BIN)/jupyter lab --notebook-dir notebooks --LabApp.app_settings_dir=$(CURDIR)/notebooks/settings $(LAB_ARGS)

inspect: $(VENV)/.apps ## open the reward inspector
	@$(BIN)/python apps/reward_inspector.py $(INSPECT_ARGS)

notebooks: $(VENV)/.notebooks $(VENV)/.dev ## run every notebook from the top and save its outputs, plots as pictures too
	@test -n "$(NOTEBOOKS)" || { echo "notebooks/ holds no notebook yet" >&2; exit 2; }
	@echo "running the notebooks: several minutes"
	@WORKBENCH_PICTURES=1 PLOTLY_RENDERER=plotly_mimetype $(BIN)/jupyter nbconvert --to notebook --execute --inplace $(NOTEBOOKS)
	@$(BIN)/nbstripout --keep-output --keep-count --extra-keys metadata.widgets $(NOTEBOOKS)
	@$(BIN)/python notebooks/pictures.py $(NOTEBOOKS)

# What only some builds of torch bring is left free: torch itself says which versions it needs. soupsieve needs a later 3.11
# than we do; a test finds others that might.
constraints: $(VENV)/.notebooks $(VENV)/.apps $(VENV)/.dev ## write the version of every package in .venv to constraints.txt
	@$(BIN)/python -m pip --disable-pip-version-check list --format freeze --exclude-editable --exclude pip > $(VENV)/versions
	@grep '^#' constraints.txt > $(VENV)/constraints
	@sed -E '/^(nvidia|cuda|triton|pytorch-triton)/d; s/\+.*//; s/^soupsieve.*/&; python_full_version >= "3.11.5"/' $(VENV)/versions >> $(VENV)/constraints
	@mv $(VENV)/constraints constraints.txt

clean: ## remove .venv, .engines, builds and caches (runs/ stays)
	rm -rf $(VENV) .engines build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.python:
	@$(PYTHON) -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "$(PYTHON) is older than 3.11, lacks venv (Debian: apt install python3-venv) or is missing: name another, as in make PYTHON=python3.12" >&2; \
		exit 2; }
	@$(PYTHON) -m venv $(VENV)
	@touch $@

# torch goes first and alone, so that TORCH_ARGS choose its build without touching where the rest comes from. Another index
# may lack the pinned versions of what torch needs; the second line puts them right.
$(VENV)/.base: pyproject.toml constraints.txt $(VENV)/.python
	@echo "installing PyTorch and friends: about 2–4 minutes on first use"
	@$(PIP) install $(TORCH_ARGS) $(if $(TORCH_ARGS),,$(PINNED)) $(TORCH)
	@$(PIP) install $(PINNED) -e .
	@touch $@

$(VENV)/.dev $(VENV)/.notebooks $(VENV)/.apps: $(VENV)/.%: pyproject.toml constraints.txt $(VENV)/.base
	@echo "installing the packages of the extra '$*': about a minute on first use"
	@$(PIP) install $(PINNED) -e '.[$*]'
	@touch $@

# An engine's own versions of what the project needs, so nothing of .venv is shared; what pip has in its cache is not fetched again.
.engines/%/.made: tests/engines/%.txt pyproject.toml constraints.txt
	@TORCH_ARGS="$(TORCH_ARGS)" $(PYTHON) -m tests.engines.environment $*
