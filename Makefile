# Everything below sets itself up: the first run makes .venv and installs pinned versions into it, later runs use it as it is.
# Another interpreter: make test PYTHON=python3.12 (3.10 or newer; remove .venv when you change it).

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
MOEPLAN := $(BIN)/moeplan
# A bare `torch` would take whatever is newest, gigabytes of it: name the pinned one.
TORCH := $(shell grep '^torch==' constraints-dev.txt)

# An interpreter that has the engine already (MOEPLAN_SGLANG_PYTHON, MOEPLAN_VLLM_PYTHON) spares its environment.
ENGINES_READY := $(if $(MOEPLAN_SGLANG_PYTHON),,.engines/sglang/.ready) $(if $(MOEPLAN_VLLM_PYTHON),,.engines/vllm/.ready)
MOEPLAN_SGLANG_PYTHON ?= $(CURDIR)/.engines/sglang/bin/python
MOEPLAN_VLLM_PYTHON ?= $(CURDIR)/.engines/vllm/bin/python

LAUNCHES := $(CURDIR)/.cache/launches.jsonl
# Tests over a process more than there are CPUs, for many wait; then, one by one, those that measure the machine.
PROCESSES := $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))
TESTS = $(BIN)/python -m pytest --quiet --numprocesses $(PROCESSES) --maxprocesses 9 --dist loadfile -m 'not alone' && $(BIN)/python -m pytest --quiet -m alone tests/probes

.DEFAULT_GOAL := help
.PHONY: help demo test fuzz check ray release engines bench skew docs format clean
.DELETE_ON_ERROR:

help: ## list the targets
	@sed -n 's/^\([a-z]*\):[^#]*## /  make \1|/p' $(MAKEFILE_LIST) | while IFS='|' read -r name what; do printf '%-14s %s\n' "$$name" "$$what"; done

demo: $(READY) ## the main job: plan Mixtral on a preset, write what three engines load, check it, run the plan
	@mkdir -p demo
	@echo; echo '== 1. Solve: which expert of Mixtral sits on which of 2 x 2 GPUs'
	$(MOEPLAN) solve --model mixtral --topology hgx-h100:2x2 -o demo/plan.json
	@echo; echo '== 2. Emit: what each serving engine loads, and how it is started'
	$(MOEPLAN) emit demo/plan.json --engine trtllm -o demo/trtllm
	@echo '# SGLang would ignore a map for Mixtral: emit writes nothing (exit 2), or the launch without the map where that is what is wanted'
	! $(MOEPLAN) emit demo/plan.json --engine sglang -o demo/sglang
	$(MOEPLAN) emit demo/plan.json --engine sglang --flags-only -o demo/sglang
	@echo '# vLLM reads no map at all: a plugin makes its balancer follow the plan'
	$(MOEPLAN) emit demo/plan.json --engine vllm --plugin -o demo/vllm
	@echo; echo '== 3. Check: read the plan and each map back and judge them'
	$(MOEPLAN) check demo/plan.json
	$(MOEPLAN) check demo/trtllm/moe_load_balancer.yaml --engine trtllm
	$(MOEPLAN) convert demo/trtllm/moe_load_balancer.yaml --to vllm_ascend -o demo/expert_map.json
	$(MOEPLAN) check demo/expert_map.json --model mixtral --ep 4 --engine vllm_ascend
	@echo; echo '== 4. Validate: run the plan, one process a rank'
	$(MOEPLAN) validate demo/plan.json

test: $(READY) ## run the tests
	$(TESTS)

fuzz: $(READY) ## damaged files into every reader, and every kill point of every writer, for minutes (SECONDS=600)
	MOEPLAN_FUZZ=1 $(BIN)/python -m pytest --quiet tests/planner/maps/test_crashes.py
	$(BIN)/python -m tests.fuzz $(or $(SECONDS),600)

check: $(READY) ## everything a change must pass: format, lint, types, contracts, tests
	@echo '== format'; $(BIN)/ruff format --check
	@echo '== lint'; $(BIN)/ruff check
	@echo '== types'; $(BIN)/mypy planner probes tests docs
	@echo '== contracts'; $(BIN)/lint-imports --no-logo
	@echo '== tests'
	$(TESTS)

ray: $(READY) ## install Ray beside the rest, for the tests that ask for it
	@$(BIN)/python -c 'import ray' 2>/dev/null || $(BIN)/python -m pip install --quiet --constraint constraints-dev.txt --editable '.[ray]'

release: $(READY) ## build sdist and wheel, install and run them in empty environments, one for each Python from 3.10 to 3.14 that is here
	$(BIN)/python -m tests.release $(PYTHONS)

engines: export MOEPLAN_SGLANG_PYTHON := $(MOEPLAN_SGLANG_PYTHON)
engines: export MOEPLAN_VLLM_PYTHON := $(MOEPLAN_VLLM_PYTHON)
engines: $(READY) $(ENGINES_READY) ## ask SGLang and vLLM themselves about all that emit writes for them (Python 3.11; installs both once: 5 GB)
	@mkdir -p .cache; rm -f $(LAUNCHES)
	MOEPLAN_MATRIX_OUT=$(LAUNCHES) $(BIN)/python -m pytest -o faulthandler_timeout=1800 --numprocesses 2 --dist loadfile tests/engines
	$(BIN)/python docs/make_engines_page.py $(LAUNCHES)

bench: $(READY) ## every study, beside the balancers of vLLM and SGLang (fetches their wheels, 380 MB, once)
	@ls .cache/vllm-0.33.0-*.whl >/dev/null 2>&1 || $(BIN)/python -m pip download --quiet --no-deps --dest .cache vllm==0.33.0
	@ls .cache/sglang-0.5.23-*.whl >/dev/null 2>&1 || $(BIN)/python -m pip download --quiet --no-deps --dest .cache sglang==0.5.23
	$(MOEPLAN) bench --peer .cache/vllm-0.33.0-*.whl --peer .cache/sglang-0.5.23-*.whl

skew: $(READY) ## all-to-alls under skew in emulated clusters, 15 minutes on an idle machine; writes docs/skew.md
	$(BIN)/python docs/make_skew.py

docs: $(READY) ## write what is generated: docs/cli.md, docs/structure.md, docs/rooms.svg, what docs/how-to shows
	$(BIN)/python docs/make_cli_page.py
	$(BIN)/python docs/make_structure_page.py
	$(BIN)/python docs/make_how_to_pages.py

format: $(READY) ## format the code, sort imports, apply safe fixes
	$(BIN)/ruff check --fix --exit-zero --quiet
	$(BIN)/ruff format

clean: ## remove .venv, caches and what the targets made
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache dist build demo
	find planner probes tests docs -name __pycache__ -type d -prune -exec rm -rf {} +

# Without dependencies, for both ask for a torch of gigabytes; then torch once more with its own, for a CUDA build does not import without its libraries.
.engines/%/.ready: tests/engines/requirements-%.txt
	@$(PYTHON) -c 'import sys; sys.version_info[:2] == (3, 11) or sys.exit("the engines are pinned for Python 3.11, this is " + sys.version.split()[0] + ": make engines PYTHON=python3.11")'
	@echo '== setting up .engines/$* (the first time this takes several minutes; `make clean` leaves it)'
	$(PYTHON) -m venv .engines/$*
	.engines/$*/bin/python -m pip install --quiet --no-deps --requirement $<
	.engines/$*/bin/python -m pip install --quiet "$$(grep '^torch==' $<)"
	@touch $@

$(READY): pyproject.toml constraints-dev.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 10) or sys.exit("moeplan needs Python 3.10 or newer, this is " + sys.version.split()[0] + ": make PYTHON=python3.12")'
	@echo '== setting up .venv (the first time this takes a few minutes)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade --constraint constraints-dev.txt pip
	$(BIN)/python -m pip install --quiet --constraint constraints-dev.txt --build-constraint constraints-dev.txt '$(TORCH)' --editable '.[hardware,record]' --group dev
	@touch $@
