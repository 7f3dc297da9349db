# Every target brings up what it needs (tools/bootstrap.sh) and goes straight to its job when nothing has changed.
#   make demo       train a small GPT on real text on the neuron device
#   make chat       talk with a small language model on the neuron device
#   make test       C++ and Python tests            make test-full  and what needs jaxlib or long sweeps
#   make sanitize   the C++ tests under ASan + UBSan, then under TSan; part of test-full
#   make build      the libraries, into torch_neuronx/
#   make bench      ratio table against CPU eager   make lint       style and layer rules
#   make wheel      an installable wheel in dist/   make wheel-check  proves it in a clean environment; part of test-full
#   make fuzz       parser, cache, command streams  make soak       everything at once, for a while: memory stays flat
#   make docs       generated pages, checked links  make clean      everything built; make distclean also the environment
# Variables: PYTHON, VENV, TORCH_INDEX (tools/bootstrap.sh), PRESET (CMakePresets.json), JOBS, ARGS (passed to the job).
SHELL := /bin/bash
.DEFAULT_GOAL := build
.PHONY: setup build demo chat test test-full sanitize sanitized wheel wheel-check fuzz soak bench lint format docs clean distclean

export VENV ?= $(CURDIR)/.venv
PRESET ?= dev
JOBS ?= $(shell nproc)
python := $(VENV)/bin/python
# Compiles are shared between clones of the tree.
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_NOHASHDIR ?= 1

setup:
	@bash tools/bootstrap.sh

build: setup
	@$(python) tools/build.py --preset $(PRESET) --jobs $(JOBS)

demo: build
	@mkdir -p out
	$(python) examples/train_gpt.py --small --plot out/loss.png --json out/demo.json --checkpoint out/demo.pt $(ARGS)

chat: build
	@bash tools/bootstrap.sh chat
	$(python) examples/chat.py $(ARGS)

test: build
	$(python) tools/run_tests.py --build build/$(PRESET) $(ARGS)

test-full: build sanitized
	@bash tools/bootstrap.sh full
	$(python) tools/run_tests.py --build build/$(PRESET) --build build/asan --build build/tsan --full $(ARGS)
	$(MAKE) wheel-check

sanitize: sanitized
	$(python) tools/run_tests.py --build build/asan --build build/tsan --core

sanitized: setup
	@$(python) tools/build.py --preset asan --jobs $(JOBS)
	@$(python) tools/build.py --preset tsan --jobs $(JOBS)

wheel: setup
	$(python) tools/wheel.py build

wheel-check: wheel
	$(python) tools/wheel.py check

fuzz:
	@bash tools/bootstrap.sh fuzz
	@$(python) tools/build.py --preset fuzz --jobs $(JOBS)
	$(python) tools/fuzz.py $(ARGS)

soak: build
	$(python) tools/soak.py $(ARGS)

bench: build
	@mkdir -p out
	$(python) benchmarks/run.py --json out/bench.json --markdown out/bench.md $(ARGS)

lint: setup
	$(python) tools/lint.py $(ARGS)

format: setup
	$(python) tools/lint.py --fix

docs: build
	$(python) tools/make_docs.py $(ARGS)

clean:
	rm -rf build out dist torch_neuronx/lib torch_neuronx/*.so

distclean: clean
	rm -rf $(VENV) *.egg-info
