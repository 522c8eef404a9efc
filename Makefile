# Each target sets up what it needs on a machine with make and Python 3.11 or newer (with venv). A second run is quick:
# tools/environment.py calls pip only when the pinned requirements or the packaging tables have changed.
PYTHON ?= python3
WORKERS ?= 2

VENV := .venv/bin
TOOLS := .venv-tools/bin
export COVERAGE_RCFILE := $(CURDIR)/pyproject.toml

TYPED := server/nodewise plugins clients/cli/nodewise_cli clients/cli/nodewise_job_traces clients/console/nodewise_console clients/python/nodewise_client \
	clients/python/nodewise_client_conformance clients/conformance/nodewise_conformance \
	integrations/python/nodewise_integrations \
	protos/python/nodewise_values tools research
DEMO := $(wildcard examples/demo examples/provision.py clients/python/examples)

.DEFAULT_GOAL := help
.PHONY: audit help check chaos conformance coverage demo fuzz soak cluster-day test test-all test-rest test-clients test-data test-integrations test-long test-source test-stores test-wheel test-torch lint format bench accuracy stubs lock contract-image release-image clean wheel-ahead

help:
	@echo "make check          while working: lint and tests of what a change touches, in under a minute"
	@echo "make demo           the main job, end to end, with tables and a plot"
	@echo "make test           the service, its plugins, the Python client and the command line, from source and on the wheels"
	@echo "make test-all       make test and all targets below, each of which leaves out and names what does not run here"
	@echo "make test-data      the tests marked data, on the measurements that NODEWISE_DATA names"
	@echo "make test-long      the tests marked long, chaos or oracle: failures, operation, comparisons with others' programs"
	@echo "make test-stores    stores in PostgreSQL and traces in an S3 bucket"
	@echo "make test-torch     the tests marked torch, with the CPU build of PyTorch where pip finds it"
	@echo "make test-clients   build, lint, tests and examples of the clients of all languages, their conformance, and the estimator in Go"
	@echo "make test-integrations  the integrations with Slurm, Ray, Optuna, SkyPilot and Kubernetes, on the real managers"
	@echo "make coverage       every test while lines are counted, and their floor; takes twice as long"
	@echo "make conformance    the conformance of all clients alone; writes docs/conformance.md (RESTARTS=100 restarts under load)"
	@echo "make lint           ruff, mypy, import-linter, buf, whether what is generated is fresh, and the prose of documents"
	@echo "make chaos          plugins fail in every way, processes are killed, servers restarted, under load (CHAOS=--help)"
	@echo "make soak           an hour of mixed load with ten thousand jobs (SOAK=\"--minutes 10\")"
	@echo "make cluster-day    a day of jobs through a real Slurm or Kubernetes (CALLER=kubernetes), beside a simulation's (CLUSTER_DAY=--help)"
	@echo "make fuzz           every method, guided by coverage, for as long as FUZZ=\"-max_total_time=3600\" says"
	@echo "make bench          benchmarks beside their baselines, one JSON object per line"
	@echo "make accuracy       every estimator on every table of NODEWISE_DATA, whole sources left out; writes docs/accuracy.md"
	@echo "make audit          known vulnerabilities of what an image has, by PyPI; writes build/sbom-NAME.json (CycloneDX)"
	@echo "make format         ruff's formatter and its safe fixes"
	@echo "make stubs          generate the stubs of protos for all clients whose toolchain is here, and the client for threads"
	@echo "make lock           pin requirements/*.in and the pyproject.toml files; UPGRADE=1 takes the newest versions"
	@echo "make contract-image keep the contract as it is now, for buf breaking before the first release (REASON=...)"
	@echo "make release-image  keep the contract's image of the released version, for buf breaking"
	@echo "make clean          remove environments, builds and caches"

demo:
	@$(PYTHON) tools/environment.py demo
	@$(VENV)/python examples/demo/run_demo.py

test: wheel-ahead test-source test-wheel

# Everything that `make test` leaves out.
test-rest: test-data test-long test-stores test-torch test-clients test-integrations

test-all: test
	@$(MAKE) test-rest
# Targets share environments, and the machine's cores.
.NOTPARALLEL:

# The environment of test-wheel is set up beside the first tests, as much of that is waiting for the index; test-wheel
# waits for it, and says what failed.
wheel-ahead:
	@$(PYTHON) tools/environment.py dev
	@mkdir -p build
	@nice $(PYTHON) tools/environment.py wheel >build/wheel-ahead.log 2>&1 &

# Tests start hundreds of processes. Without bytecode on disk each of them would compile all sources, which takes a second.
test-source test-wheel test-data test-long test-stores test-torch test-integrations: export PYTHONDONTWRITEBYTECODE :=

# Tests marked `wheel` run on the wheels alone. Files stay together: what a file starts, such as a server, is started once.
# In their order: by numbers of tests the longest would come last, and leave the other worker idle.
PYTEST_OPTIONS := -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# Marks of tests that need more than Python, or minutes each: they have targets of their own.
LONG := long or chaos or oracle
APART := data or stores or slurm or ray or skypilot or torch
ON_WHEELS := mkdir -p build/elsewhere && cd build/elsewhere && ../../.venv-wheel/bin/pytest $(PYTEST_OPTIONS) -c ../../pyproject.toml --rootdir ../.. -p no:cacheprovider ../../tests/integration
test-source:
	@$(PYTHON) tools/environment.py dev
	$(VENV)/pytest $(PYTEST_OPTIONS) -m "not wheel and not ($(LONG) or $(APART))"

test-wheel: test-source
	@$(PYTHON) tools/environment.py dev wheel
	$(ON_WHEELS) -m "wheel and not ($(LONG) or $(APART))"

test-data:
	@$(PYTHON) tools/environment.py test
	@if [ -n "$$NODEWISE_DATA" ]; then \
		$(VENV)/pytest $(PYTEST_OPTIONS) -m "data"; \
	else \
		echo "make test-data: left out, NODEWISE_DATA names no folder of measurements"; \
	fi

test-long:
	@$(PYTHON) tools/environment.py test openapi wheel
	$(VENV)/pytest $(PYTEST_OPTIONS) -m "($(LONG)) and not wheel and not ($(APART))"
	$(ON_WHEELS) -m "($(LONG)) and wheel and not ($(APART))"

test-stores:
	@$(PYTHON) tools/environment.py test
	$(VENV)/pytest $(PYTEST_OPTIONS) -m "stores"

# By hand: counting lines doubles the time that tests take.
coverage:
	@$(PYTHON) tools/environment.py test openapi
	@rm -rf build/coverage && mkdir -p build/coverage
	$(VENV)/coverage run -m pytest $(PYTEST_OPTIONS) -m "not ray and not skypilot"
	@$(VENV)/coverage combine --quiet
	$(VENV)/coverage report --fail-under=90

# The pinned build of PyTorch is the small one for CPUs, which not every index has: without it these tests are left out.
test-torch:
	@if $(PYTHON) tools/environment.py torch; then \
		.venv-torch/bin/pytest -m torch $(PYTEST); \
	else \
		echo "make test-torch: left out, pip finds no CPU build of PyTorch as pinned in requirements/torch.txt"; \
	fi
	@if [ -x "$${NODEWISE_FRAMEWORKS_PYTHON:-.venv-frameworks/bin/python}" ]; then \
		$(PYTHON) tools/environment.py dev && $(VENV)/pytest tests/integration/test_training_callbacks.py; \
	else \
		echo "make test-torch: callbacks of frameworks are left out, there is no environment by tools/environment.py frameworks"; \
	fi

# Languages whose toolchains do not run are left out, and named.
test-clients:
	@$(PYTHON) tools/environment.py dev
	@$(VENV)/python tools/test_clients.py $(CLIENTS)
	$(if $(CLIENTS),,$(VENV)/pytest tests/integration/test_estimator_servers.py)

# Cluster managers: those in Python are heavy and have an environment each, the others' own programs are needed. What pip
# cannot install, or does not run, is left out and named.
MANAGERS := ray skypilot
test-integrations:
	@$(PYTHON) tools/environment.py test wheel
	@for manager in $(MANAGERS); do \
		$(PYTHON) tools/environment.py $$manager || echo "make test-integrations: left out, pip cannot install requirements/$$manager.txt" >&2; \
	done
	$(VENV)/pytest -m "(slurm or ray or skypilot) and not wheel" $(or $(PYTEST),tests/integration)
	$(if $(PYTEST),,$(ON_WHEELS) -m "wheel and (slurm or ray or skypilot)")
	@$(VENV)/python tools/test_integrations.py $(INTEGRATIONS)

# One table: every scenario, every client that is built (`make test-clients` builds them).
RESTARTS ?= 0
conformance:
	@$(PYTHON) tools/environment.py dev
	@$(VENV)/python tools/test_clients.py --only-build
	@$(VENV)/python -m nodewise_conformance $(if $(filter 0,$(RESTARTS)),--page docs/conformance.md,--restarts $(RESTARTS)) $(CONFORMANCE)

chaos:
	@$(PYTHON) tools/environment.py dev
	@$(VENV)/python tests/chaos/campaigns $(CHAOS)

# A day of jobs through a real Slurm on this machine (CALLER=kubernetes: through a real control plane), in ten minutes;
# CLUSTER_DAY=--help.
CALLER ?= slurm
cluster-day:
	@$(PYTHON) tools/environment.py dev
	@$(VENV)/python research/cluster_day_$(CALLER).py $(CLUSTER_DAY)

soak:
	@$(PYTHON) tools/environment.py dev
	@$(VENV)/python tests/chaos/campaigns soak $(SOAK)

# Atheris has builds for Linux and some Pythons only, so it has an environment of its own.
FUZZ ?= -max_total_time=3600
fuzz:
	@$(PYTHON) tools/environment.py fuzz
	@.venv-fuzz/bin/python tests/fuzz/fuzz_requests.py $(FUZZ)

lint:
	@$(PYTHON) tools/environment.py dev tools
	@$(VENV)/python tools/third_party_protos.py
	$(VENV)/ruff check
	$(VENV)/ruff format --check
	$(VENV)/mypy $(TYPED)
	$(if $(DEMO),$(VENV)/mypy $(DEMO))
	$(VENV)/mypy $(wildcard examples/plugins/nodewise_example_*/*.py)
	MYPYPATH=examples/plugins/nodewise_baselines $(VENV)/mypy examples/plugins/nodewise_baselines/nodewise_baselines
	$(VENV)/lint-imports --config importlinter.toml
	$(VENV)/python tools/check_names.py
	$(VENV)/buf lint
	$(VENV)/buf format --diff --exit-code protos
	$(VENV)/python tools/file_options.py --check
	$(VENV)/python tools/check_breaking.py
	$(TOOLS)/python tools/generate_stubs.py --check
	$(VENV)/python tools/generate_client_stubs.py --check
	$(VENV)/python tools/generate_sync_client.py --check
	$(VENV)/python tools/openapi_document.py --check
	$(VENV)/python tools/check_prose.py
	$(VENV)/python tools/list_messages.py --check
	$(VENV)/python tools/run_proselint.py
	$(VENV)/python tools/check_commits.py

# What differs from BASE, a branch; what is left out for want of time is named.
BASE ?= main
check:
	@$(PYTHON) tools/environment.py dev
	@$(VENV)/python tools/check_change.py --base $(BASE) $(TYPED)

format:
	@$(PYTHON) tools/environment.py dev
	$(VENV)/ruff check --fix
	$(VENV)/ruff format
	$(VENV)/buf format --write protos

# Not in CI: the answer changes by the day, and needs PyPI's own index.
IMAGE := runtime jwt opentelemetry postgresql s3
audit:
	@$(PYTHON) tools/environment.py audit
	@mkdir -p build
	@for name in $(IMAGE); do .venv-audit/bin/cyclonedx-py requirements --output-reproducible --output-file build/sbom-$$name.json requirements/$$name.txt || exit; done
	@.venv-audit/bin/pip-audit --strict --require-hashes --disable-pip $(patsubst %,--requirement requirements/%.txt,$(IMAGE))

bench:
	@$(PYTHON) tools/environment.py dev
	@$(PYTHON) tools/environment.py peers || echo "make bench: peers cannot be installed here; what is measured beside them is left out" >&2
	@$(VENV)/python bench/run.py

# What became worse than the committed figures is told; these and the page are then written anew.
accuracy:
	@$(PYTHON) tools/environment.py dev
	@$(VENV)/python research/score_accuracy.py

stubs:
	@$(PYTHON) tools/environment.py dev tools
	@$(VENV)/python tools/third_party_protos.py
	@$(VENV)/python tools/file_options.py
	@$(TOOLS)/python tools/generate_stubs.py
	@$(VENV)/python tools/generate_client_stubs.py
	@$(VENV)/python tools/generate_sync_client.py
	@$(VENV)/python tools/openapi_document.py

lock:
	@$(PYTHON) tools/environment.py tools
	@$(TOOLS)/python tools/lock_requirements.py $(if $(UPGRADE),--upgrade)

contract-image:
	@$(PYTHON) tools/environment.py dev
	@$(VENV)/python tools/third_party_protos.py
	@$(VENV)/python tools/check_breaking.py --renew "$(REASON)"

release-image:
	@$(PYTHON) tools/environment.py dev
	@$(VENV)/python tools/third_party_protos.py
	@$(VENV)/python tools/check_breaking.py --write

clean:
	rm -rf .venv .venv-frameworks .venv-fuzz .venv-openapi .venv-peers .venv-ray .venv-skypilot .venv-tools .venv-torch .venv-wheel build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
