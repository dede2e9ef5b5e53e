# `make demo` grades the reference submission, `make up` starts the service, `make test` runs what a change must pass.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
export UV_SYSTEM_CERTS := 1

.PHONY: help setup demo up down check test test-all corpus lint format lock pin audit schemas pages clean

help:
	@echo "make demo     set up, then grade examples/reference_submission.ipynb without Docker, Redis or GPU"
	@echo "make up       the service in containers, started and seen to grade; GRADER_GPU=GPU-… make up with a GPU"
	@echo "make down     end it; the database, artifacts and keys stay"
	@echo "make check    linters, types, import contracts, and the tests that need no service"
	@echo "make test     what a change must pass; as root on Debian or Ubuntu it installs what that needs (Docker, …)"
	@echo "make test-all everything, or one shard of it: make test-all SHARD=2/6"
	@echo "make lint     linter, formatter, types, import contracts"
	@echo "make lock     resolve images/lock/*.txt anew"
	@echo "make pin      ask registries for the digests of their images; compose and the manifests get them"
	@echo "make audit    known vulnerabilities and licences of the locks; writes docs/supply-chain.md"
	@echo "make schemas  write docs/schema/*.json from the models"
	@echo "make pages    write docs/diagnosis.md, docs/checks.md and docs/corpus.md from the code"
	@echo "make corpus   play all cheats and honest submissions, then with each defence switched off"

setup:
	@$(PYTHON) images/bootstrap.py

demo: setup
	@mkdir -p build
	@$(BIN)/grader grade examples/reference_submission.ipynb --sandbox process --device cpu \
	    --json build/verdict.json --report build/report.html \
	  || test $$? = 4 # inconclusive: others kept this host busy
	@echo && echo "The same verdict as JSON: build/verdict.json, as a page: build/report.html"

up: setup
	@images/up.sh && images/prove.sh

down:
	@images/compose.sh down

# docs/testing.md says what each level runs.
check: setup
	@$(BIN)/python -m tests.levels check

test: setup
	@$(BIN)/python -m tests.levels test

test-all: setup
	@$(BIN)/python -m tests.levels all $(if $(SHARD),--shard $(SHARD))

lint: setup
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports

format: setup
	@$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

lock: setup
	$(UV) pip compile -q -U --universal --generate-hashes --python-version 3.11 pyproject.toml --extra lab --extra s3 --extra parquet --extra kubernetes --extra dev -o images/lock/dev.txt
	$(UV) pip compile -q --universal --generate-hashes --python-version 3.11 pyproject.toml --extra s3 --extra parquet --extra kubernetes -c images/lock/dev.txt -o images/lock/service.txt
	$(UV) pip compile -q --universal --generate-hashes --python-version 3.11 images/lab/requirements.in -c images/lock/dev.txt -o images/lock/lab.txt

pin: setup
	@$(BIN)/python -m images.pins

audit: setup
	@$(BIN)/python -m images.audit

corpus: setup
	@$(BIN)/python -m tests.corpus && $(BIN)/python -m pytest -n auto --dist load tests/corpus/test_defences.py

pages: setup
	@$(BIN)/python bench/diagnosis_page.py > docs/diagnosis.md
	@$(BIN)/python bench/checks_page.py > docs/checks.md
	@$(BIN)/python -m tests.corpus.table > docs/corpus.md

schemas: setup
	@for name in verdict evidence lab preflight progress; do $(BIN)/grader schema $$name > docs/schema/$$name.json; done

clean:
	rm -rf build .mypy_cache .ruff_cache .pytest_cache
