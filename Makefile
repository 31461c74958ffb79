# The single entry: make demo, make test, make imagenet DATA_DIR=..., make check, make clean.
# Each sets up its own .venv the first time. PYTHON chooses the interpreter: make demo PYTHON=python3.12

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
EXTRAS ?=
# Three for two processors: some wait for a server, a worker or a timer. Each more collects all tests,
# imports the frameworks and makes the shared sets once more.
TEST_WORKERS := $(shell expr \( $$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN) \* 3 + 1 \) / 2)
EVERY_CORE := --numprocesses $(TEST_WORKERS) --dist worksteal

.PHONY: help folder imagenet demo prove test docs wheel image-steps release lint house check portable portable-environment exhaustive fuzz mutants torture bench bench-planning rehearsal screenshots clean

help:
	@echo "make demo                    a small ImageNet of its own, every stage, no account needed"
	@echo "make test                    the tests"
	@echo "make imagenet DATA_DIR=...   the real thing (ARGS='--extract' passes options on; EXTRAS=parquet installs that too)"
	@echo "make prove DATA_DIR=...      labels and colors of ImageNet's shards, by a published network (ARGS='--images 0': all)"
	@echo "make check                   lint and tests (make --keep-going check: tests in any case)"
	@echo "make lint                    ruff, mypy, import-linter, phrases that a reader must decode"
	@echo "make house                   how the package reads: tokens per line and statement, names, circles of imports"
	@echo "make portable PYTHON=...     the tests on another Python, but those that say nothing new there"
	@echo "make docs                    the pages of docs/ as a site, in site/"
	@echo "make wheel                   a wheel in dist/, for other machines"
	@echo "make image-steps             the steps of the Dockerfile in an empty root folder, without docker (takes root)"
	@echo "make release                 wheel and sdist, looked at, installed and run on each Python at hand; not uploaded"
	@echo "make exhaustive              every bit of a shard flipped, every length cut: minutes"
	@echo "make fuzz SECONDS=600        strange input for every parser, that long in all (x86-64 Linux)"
	@echo "make mutants                 the modules named in pyproject.toml broken in every way, to see a test fail each time"
	@echo "make torture                 power cuts, full disks, refused calls, on a disk of their own; takes root, half an hour"
	@echo "make bench                   how fast each command is, beside its limit and other ways (scripts/README.md)"
	@echo "make bench-planning          processor time and memory of planning 13 million images that are made up"
	@echo "make rehearsal DIR=...       every stage at full count with tiny images: 1,331,167 of them, 3.5 GB"
	@echo "make screenshots             the pictures of a report in docs/images (takes chromium)"
	@echo "make clean                   removes what make made"

# What the command line needs, and no more: with all of its commands.
$(VENV)/run: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

# TensorFlow, for the tests that hold our records against its own, and the tools. Python compiles what it imports; pip
# would compile all 25,000 modules first, one by one, which takes longer than to unpack them.
$(VENV)/dev: $(VENV)/run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable ".[tensorflow,dev]"
	@touch $@

# One more of the extras in pyproject.toml: make imagenet EXTRAS=parquet
$(VENV)/extra-%: $(VENV)/run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable ".[$*]"
	@touch $@

# Before anything is installed
folder:
	@test -n "$(DATA_DIR)" || { echo "usage: make $(MAKECMDGOALS) DATA_DIR=/data/imagenet" >&2; exit 2; }

imagenet: folder $(VENV)/run $(EXTRAS:%=$(VENV)/extra-%)
	$(BIN)/imagenet-prep run "$(DATA_DIR)" $(ARGS)

demo: $(VENV)/run
	$(BIN)/imagenet-prep demo demo-data $(ARGS)

prove: folder $(VENV)/extra-prove
	$(BIN)/python scripts/prove_labels.py "$(DATA_DIR)" $(ARGS)

test: $(VENV)/dev
	scripts/in_memory.sh $(BIN)/python -m pytest $(EVERY_CORE) $(ARGS)

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/plain_words.py

house: $(VENV)/dev
	$(BIN)/python scripts/house.py $(ARGS)

check: lint test

# Another Python has an environment of its own, without TensorFlow and PyTorch. What looks at pages, packages and this
# project, what compares with them, and what takes long and was marked so, says the same on every Python.
OTHER := .venv-$(notdir $(PYTHON))
SAME := exhaustive browser tensorflow torch objects ray packaging project once
AND := $(SAME:%=and not %)

$(OTHER)/test: pyproject.toml
	$(PYTHON) -m venv $(OTHER)
	$(OTHER)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --editable ".[test]"
	@touch $@

portable-environment: $(OTHER)/test

portable: $(OTHER)/test
	@echo "$$($(OTHER)/bin/python --version), without the tests marked: $(SAME)"
	scripts/in_memory.sh $(OTHER)/bin/python -m pytest $(EVERY_CORE) -m "$(wordlist 2, 99, $(AND))" $(ARGS)

exhaustive: $(VENV)/dev
	$(BIN)/python -m pytest -m exhaustive $(ARGS)

SECONDS ?= 600

$(VENV)/fuzz: $(VENV)/dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[fuzz]"
	@touch $@

$(VENV)/release: $(VENV)/run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build twine
	@touch $@

wheel: $(VENV)/run
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

image-steps:
	$(PYTHON) scripts/image_steps.py $(ARGS)

release: $(VENV)/release
	$(BIN)/python scripts/release.py $(ARGS)

docs: $(VENV)/dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

fuzz: $(VENV)/fuzz
	$(BIN)/python scripts/fuzz.py --seconds $(SECONDS) $(ARGS)

$(VENV)/mutants: $(VENV)/dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[mutants]"
	@touch $@

mutants: $(VENV)/mutants
	$(BIN)/mutmut run $(ARGS)
	$(BIN)/mutmut results
	$(BIN)/mutmut export-cicd-stats
	$(BIN)/python scripts/durable_mutants.py

torture: $(VENV)/dev
	$(BIN)/python scripts/torture.py $(ARGS)

bench: $(VENV)/dev
	$(BIN)/python scripts/bench.py $(AGAINST:%=--against %) $(ARGS)
ifndef AGAINST
	$(BIN)/python scripts/bench_download.py $(DOWNLOAD_ARGS)
	$(BIN)/python scripts/bench_reading.py $(READING_ARGS)
endif

PLANNING_ARGS ?= --images 13153500 --classes 19167 --shards 10240

bench-planning: $(VENV)/run
	$(BIN)/python scripts/bench_planning.py $(PLANNING_ARGS)

rehearsal: $(VENV)/run
	@test -n "$(DIR)" || { echo "usage: make rehearsal DIR=/path/with/4/GB" >&2; exit 2; }
	$(BIN)/python scripts/rehearsal.py "$(DIR)" $(ARGS)

screenshots: $(VENV)/dev
	$(BIN)/python scripts/screenshots.py $(ARGS)

clean:
	rm -rf $(VENV) .venv-* build dist site demo-data .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .hypothesis mutants
	find imagenet_prep scripts tests -name __pycache__ -type d -prune -exec rm -rf {} +
