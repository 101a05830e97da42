# Two commands matter: `make demo` and `make test`. Both set up .venv on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BARE := $(VENV)/.installed-bare
# Three on two cores: some tests wait for disks, servers and signals.
WORKERS ?= 3

# Tests start hundreds of interpreters: without bytecode each would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup browser pictures demo test slow mutants bench lint clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    set up .venv and release something real"
	@echo "make test    set up .venv, lint, type-check and run all tests (what CI runs)"
	@echo "make slow    the long campaigns: 10^7-draw law tests, exhaustive bounds; RESUME=1 goes on where it ended"
	@echo "make mutants plant privacy bugs one by one and see which test notices, write build/mutants.md"
	@echo "make bench   measure against peers, write benchmarks/RESULTS.md"
	@echo "make pictures draw the pages of the workbench anew, into docs/pictures"
	@echo "make browser find a browser for the tests of pages, or bring one"
	@echo "make lint    ruff and mypy only"
	@echo "make docs    build the site into build/site, without network, and check its links"
	@echo "make notebooks  run docs/notebooks and store what they answer"
	@echo "make release build, check the wheel on each Python at hand, and write a bill of materials into dist/"

# $(call install,WHAT): what pip shall install, in .venv
define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Sordino needs Python 3.11 or newer; run: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "python venv is missing; on Debian: apt-get install python3-venv"; exit 1; }
	@echo "installing into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt $(1)
	@touch $@
endef

$(STAMP): pyproject.toml constraints.txt
	$(call install,-e '.[dev]')

$(BARE): pyproject.toml constraints.txt
	$(call install,-e '.[plot]' pandas)

setup: $(STAMP) browser

# For the tests of pages. CI=true wants one; without CI these tests are skipped where there is none.
browser: $(STAMP)
	@$(BIN)/python -m tools.browser

# Sordino with pictures and pandas, unless all that the tests need (PyTorch, Spark: gigabytes) is there already.
demo:
	@test -e $(STAMP) || $(MAKE) --no-print-directory $(BARE)
	@$(BIN)/python examples/demo.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Neighbours in a file go to one worker, so that what they share (a Spark session, a server) is started once.
# Types are checked meanwhile, on one core while the tests wait; what mypy found is told last, and fails the target, too.
test: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@mkdir -p build
	@$(BIN)/mypy > build/mypy.txt 2>&1 & mypy=$$!; \
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow"; tests=$$?; \
	wait $$mypy; types=$$?; cat build/mypy.txt; exit $$((tests | types))

# RESUME=1 leaves out what has passed on the code as it is now (build/slow.jsonl): hours may be spent in parts.
slow: setup
	$(BIN)/python -m tools.slow --workers $(WORKERS) $(if $(RESUME),--resume)

mutants: setup
	$(BIN)/python -m tools.mutants --workers $(WORKERS)

pictures: setup
	$(BIN)/python -m tools.page_pictures

bench: setup
	$(BIN)/python -m benchmarks.run

.PHONY: docs notebooks release
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m tools.docs_site

notebooks: setup
	$(BIN)/python -m tools.notebooks

release: setup
	$(BIN)/python -m tools.release

clean:
	rm -rf build dist $(VENV) benchmarks/.venvs .mypy_cache .ruff_cache .pytest_cache .hypothesis demo-output
