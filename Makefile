# Everything here works from a clean clone: each target first makes .venv and installs what it needs.
# PYTHON=python3.12 chooses the interpreter, RUN=path another run for `make run`, PYTEST="-k name" what to test.
.DEFAULT_GOAL := help

BIN := .venv/bin
RUN ?= sample_runs/amp_clock_drift
PYTEST ?= -n 2

export PYTHON
# The tests start hundreds of processes, which would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

# An installation is good for as long as neither the dependencies nor their pins change.
PINS := $(shell cat pyproject.toml constraints.txt | cksum | cut -d ' ' -f 1)
FOR_TESTS := .venv/.installed-test-$(PINS)
FOR_WINDOW := $(or $(wildcard $(FOR_TESTS)),.venv/.installed-view-$(PINS))

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.venv/.installed-view-$(PINS):
	@scripts/install.sh view
	@rm -f .venv/.installed-* && touch $@

$(FOR_TESTS):
	@scripts/install.sh all,test
	@rm -f .venv/.installed-* && touch $@

.PHONY: run
run: $(FOR_WINDOW) ## open a sample run in the window, or draw it to demo-output/ where there is no display
	@scripts/system_libs.sh
	@$(BIN)/python scripts/demo.py $(RUN)

.PHONY: setup
setup: $(FOR_TESTS) ## install everything that the tests need
	@scripts/system_libs.sh --tools

.PHONY: test
test: setup ## run the tests
	QT_QPA_PLATFORM=offscreen $(BIN)/python -m pytest $(PYTEST)

.PHONY: kill-test
kill-test: $(FOR_TESTS) ## kill a real training 100 times and look at what it leaves
	SPIKEVIEW_KILLS=100 $(BIN)/python -m pytest tests/store/test_store_kill.py

.PHONY: check
check: setup ## format, lint, types, import contracts and tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) --no-print-directory test

.PHONY: format
format: $(FOR_TESTS) ## format the code and mend what ruff can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: diagnosis
diagnosis: $(FOR_TESTS) ## measure how right the diagnosis is, on recorded faults; more than an hour the first time
	$(BIN)/python -m benchmarks.diagnosis --write docs/diagnosis.md

.PHONY: screenshot
screenshot: setup ## take the README's screenshots anew
	$(BIN)/python scripts/screenshot.py

.PHONY: samples
samples: $(FOR_TESTS) ## record the sample runs anew
	@scripts/record_samples.sh

.PHONY: wheel
wheel: $(FOR_TESTS) ## build the wheel into dist/
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m build --wheel

.PHONY: clean
clean: ## remove caches and what was built
	rm -rf build dist demo-output *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -path ./.venv -prune -o -name __pycache__ -type d -exec rm -rf {} +

.PHONY: distclean
distclean: clean ## the same, and remove .venv
	rm -rf .venv
