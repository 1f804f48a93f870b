# Everything a newcomer types. Each target sets up what it needs, and is quiet when that is in place.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup demo history test test-all lint bench profile docs pictures gallery web release clean

PYTHON ?=
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.setup-done
ARGS ?=
# Where the site's pages install from: a clone (.), another path, git+https://..., or softsearch (a package index).
SOFTSEARCH_SOURCE ?= .
# Some tests start processes of their own: more threads than cores only fight each other. What one process has compiled,
# the others read.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(PY) -m pytest
WORKERS := -n auto --maxprocesses 4 --dist worksteal
EACH_ONCE := -m "not day and not nightly"
WAITING := tests/integration tests/faults # for processes, browsers and time-outs
OTHERS := $(WAITING:%=--ignore=%)

# The first interpreter that runs and is of a version the project is tested on; PYTHON=... chooses another.
CANDIDATES := $(if $(PYTHON),$(PYTHON),python3 python3.13 python3.12 python3.11)
SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))

help: ## list the targets
	@echo "softsearch: make TARGET"
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16
	@echo "  PYTHON=python3.12 chooses the interpreter of a new .venv; ARGS='...' is passed on by history, test, test-all, bench and gallery"

setup: $(STAMP) ## create .venv with the pinned dependencies and this package
	@:

# torch is pinned like everything else. A plain Linux machine gets the wheel of pip's default index, which brings CUDA;
# for another build configure pip itself (PIP_EXTRA_INDEX_URL or PIP_FIND_LINKS), see CONTRIBUTING.md. uv, which knows nothing
# of pip's indexes, installs where none is configured.
$(STAMP): pyproject.toml constraints.txt
	@python=""; \
	for candidate in $(CANDIDATES); do \
	  if "$$candidate" -c "$(SUPPORTED)" >/dev/null 2>&1; then python="$$candidate"; break; fi; \
	done; \
	if ! $(PY) -c "$(SUPPORTED)" >/dev/null 2>&1; then \
	  if [ -z "$$python" ]; then \
	    echo "make: softsearch needs Python 3.11, 3.12 or 3.13; tried: $(CANDIDATES). Choose one with PYTHON=/path/to/python" >&2; \
	    exit 1; \
	  fi; \
	  rm -rf $(VENV); \
	  echo "setting up $(VENV) with $$("$$python" --version) (first time, some minutes) ..."; \
	  if ! output=$$("$$python" -m venv $(VENV) 2>&1); then \
	    printf '%s\n' "$$output" >&2; \
	    echo "make: $$python could not create $(VENV); on Debian and Ubuntu its venv module is the package python3-venv" >&2; \
	    exit 1; \
	  fi; \
	else \
	  echo "bringing $(VENV) up to date ..."; \
	fi; \
	if command -v uv >/dev/null && ! $(PY) -m pip config list | grep -qE 'index-url|find-links' && \
	    uv pip install --quiet --python $(PY) -c constraints.txt -e '.[lab,sweep,serve,dev]' >$(VENV)/setup.log 2>&1; then :; \
	elif ! $(PY) -m pip install --no-input --disable-pip-version-check -c constraints.txt -e '.[lab,sweep,serve,dev]' \
	    </dev/null >$(VENV)/setup.log 2>&1; then \
	  tail -n 60 $(VENV)/setup.log >&2; \
	  echo "make: pip failed; its whole output is in $(VENV)/setup.log. Run make again once the cause is gone." >&2; \
	  exit 1; \
	fi; \
	touch $@

demo: $(STAMP) ## train, evaluate, export and translate on a generated corpus (2 minutes)
	@$(VENV)/bin/softsearch demo

history: $(STAMP) ## every architecture on one page (8 hours; less: ARGS="budget=small")
	@$(VENV)/bin/softsearch history $(ARGS)

test: $(STAMP) ## each fault once, in eight minutes on two cores
	@$(PYTEST) $(WAITING) $(EACH_ONCE) $(ARGS) >$(VENV)/waiting.log 2>&1 & waiting=$$!; \
	trap 'kill $$waiting 2>/dev/null || :' EXIT; status=0; \
	$(PYTEST) $(OTHERS) $(EACH_ONCE) $(WORKERS) $(ARGS) || status=$$?; \
	wait $$waiting || [ $$? = 5 ] || status=1; cat $(VENV)/waiting.log; [ $$status = 0 ] || [ $$status = 5 ] # no tests, with ARGS that choose some

test-all: $(STAMP) ## the whole test suite, what runs at night too
	@$(PYTEST) -m "" $(WORKERS) $(ARGS)

lint: $(STAMP) ## format, style, types, layering and spelling
	@$(PY) -m ruff format --check --quiet .
	@$(PY) -m ruff check --quiet .
	@$(PY) -m mypy --no-error-summary
	@$(VENV)/bin/lint-imports --no-cache >$(VENV)/lint-imports.log || { cat $(VENV)/lint-imports.log; exit 1; }
	@git ls-files -z --cached --others --exclude-standard | xargs -0 $(VENV)/bin/codespell
	@! git grep -nEif tests/architecture/banned_phrases.txt -- 'src/*.py' configs README.md CONTRIBUTING.md SECURITY.md 'docs/*.md' ':!docs/adr' ':!docs/reproduce' notebooks examples || \
	  { echo "these phrases are not plain English; see tests/architecture/banned_phrases.txt"; exit 1; }
	@$(PY) -m tests.architecture.simplicity

bench: $(STAMP) benchmarks/.joeynmt-venv/.setup-done benchmarks/.marianmt-venv/.setup-done ## training speed beside peers
	@$(PY) benchmarks/train_speed.py $(ARGS)

benchmarks/.%-venv/.setup-done: benchmarks/setup_peer.sh benchmarks/%/requirements.txt
	@PYTHON=$(abspath $(PY)) bash benchmarks/setup_peer.sh $*

profile: $(STAMP) ## where a training step's time goes: ARGS="model=rnnsearch data=multi30k data.root=FOLDER"
	@$(PY) benchmarks/profile_step.py $(ARGS)

docs: $(STAMP) ## the documentation and the API reference as one site, site/index.html
	@$(PY) -m tests.options_page
	@$(PY) -m tests.reliability_page
	@$(PY) -m tests.api_pages
	@$(VENV)/bin/zensical build --strict --clean
	@$(PY) -m tests.install_source "$(SOFTSEARCH_SOURCE)"
	@echo "site/index.html; with its search: python -m http.server -d site, and http://localhost:8000"

pictures: $(STAMP) ## the documentation's pictures, after make demo (needs Chromium)
	@$(PY) -m tests.pictures

gallery: $(STAMP) ## the pictures of docs/gallery, after make history ARGS="budget=small" (else an hour)
	@$(PY) -m tests.gallery $(ARGS)

web: ## the page of `softsearch web` anew, with npm (Node.js 20 or newer)
	@cd src/web && npm ci --ignore-scripts --no-audit --no-fund --silent && npm run --silent build

release: SOFTSEARCH_SOURCE := softsearch
release: $(STAMP) docs ## sdist and wheel, checked in fresh environments, with notes and an SBOM, in dist/, and the site that installs from an index
	@$(PY) -m pip install --no-input --disable-pip-version-check --quiet -c constraints.txt -e '.[release]'
	@$(PY) -m tests.release $(ARGS)

clean: ## remove what was generated, .venv and run folders excepted
	@rm -rf build dist site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
