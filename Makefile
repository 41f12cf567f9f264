# Each command sets itself up on a machine that has only Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
EXTRAS := figures,experiments,service,postgres,adapters,ray
export OMP_NUM_THREADS ?= 1

.PHONY: demo test bench docs reproduce lint clean

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --constraint constraints.txt torch
	$(BIN)/python -m pip install -q --constraint constraints.txt -e ".[$(EXTRAS)]" -r requirements-dev.txt
	touch $@

demo: $(READY)
	$(BIN)/sparingly demo

test: $(READY)
	$(BIN)/python -m tests.everything

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/python -m benchmarks

docs: $(READY)
	$(BIN)/mkdocs build --strict

reproduce: $(READY)
	$(BIN)/sparingly reproduce all

clean:
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
