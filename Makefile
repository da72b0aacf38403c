# make demo   set up, judge real kernels, show the reports      make test   set up, run every check
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# The CPU build of PyTorch that the examples run on; set TORCH= to use one that is already in the environment.
TORCH ?= torch==2.13.0

# Compiled files are kept: without them every process that a test starts would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test lint unit-tests screenshots serve-demo test-serving clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(if $(TORCH),$(BIN)/python -m pip install --quiet "$(TORCH)")
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $(STAMP)

demo: $(STAMP)
	PATH="$(abspath $(BIN)):$$PATH" bash examples/demo.sh

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Side by side: the type checker uses one core.
test: $(STAMP)
	$(MAKE) --no-print-directory -j 2 lint unit-tests

# Collected once before the workers do so: each would compile every test for itself.
unit-tests: $(STAMP)
	-$(BIN)/python -m pytest -p no:xdist --collect-only -qq >/dev/null
	$(BIN)/python -m pytest -n auto --dist loadgroup $(PYTEST_FLAGS)

# A real vLLM on the CPU in an environment of its own (about 2.5 GB, kept): baseline, twin, experiment, verdict.
# FULL=1 measures 6 pairs instead of 2.
serve-demo: $(STAMP)
	PATH="$(abspath $(BIN)):$$PATH" bash examples/serving/demo.sh

# Tests against that engine.
test-serving: $(STAMP)
	MAGPIE_TUI_REAL_ENGINE=1 $(BIN)/python -m pytest tests/serving_real

# Pictures of the real screens, drawn from kernels that are judged for them.
screenshots: $(STAMP)
	$(BIN)/python docs/screenshots/make.py

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
