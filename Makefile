# Every target brings what it needs: uv comes from PATH, else from a project-local venv.
UV := $(shell command -v uv 2>/dev/null || echo .tools/bin/uv)
RUN := $(UV) run --locked --no-sync
# Tests and packages are compiled once, also where the environment forbids it: that halves the collection.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: check sync format lint types layers unit integration test demo up bench memory coverage model-data metrics chaos cluster slow soak rehearsal growth dist release sbom audit client

# Four checks at once: they share two cores, and one runs while another waits.
check: $(filter .tools/bin/uv,$(UV))
	$(MAKE) --no-print-directory --jobs=4 --output-sync=target lint types layers unit

.tools/bin/uv:
	python3 -m venv .tools
	.tools/bin/pip --quiet --disable-pip-version-check install "uv>=0.8"

sync: $(filter .tools/bin/uv,$(UV))
	$(UV) sync --locked --all-packages --quiet

format: sync
	$(RUN) ruff format .
	$(RUN) ruff check --fix-only .

lint: sync
	$(RUN) ruff format --check .
	$(RUN) ruff check .

types: sync
	$(RUN) mypy

layers: sync
	$(RUN) lint-imports

unit: sync
	$(RUN) pytest -m "not integration" -q -n auto --dist loadfile

# The tests wait for timers and processes more than they compute: four at a time suit two cores.
# Whole stacks take longest and begin first, so that short files fill the end.
INTEGRATION := tests/chaos tests/integration tests/growth apps services libs
integration: sync
	$(RUN) pytest -m "integration and not slow" -q -n 4 --dist loadfile --no-loadscope-reorder $(INTEGRATION)

test: check integration

demo: sync
	$(RUN) fairlead demo

up: sync
	$(RUN) fairlead up

bench: sync
	$(RUN) fairlead bench

# make memory TURNS=10000 SOLO=--solo CACHE=16: the memory of each process over many turns. With a cache of
# few sessions, which is soon full, whatever still grows is no cache.
memory: sync
	$(RUN) fairlead bench memory --turns $(or $(TURNS),10000) $(SOLO) $(if $(CACHE),--cache-sessions $(CACHE))

# The synchronous client follows from the asynchronous one.
client: sync
	$(RUN) python libs/client/tests/generate_sync.py

coverage: sync
	$(RUN) python -m tests.tidy.coverage_table --write

# After an update of genai-prices in the lock file: its windows and prices for our presets.
model-data: sync
	$(RUN) python -m tests.tidy.model_data --write

# docs/operations/metrics.md: every metric of every service.
metrics: sync
	$(RUN) python -m tests.tidy.metrics_table --write

# docs/asyncapi.json: what services meet on NATS.
asyncapi: sync
	$(RUN) python -m tests.tidy.asyncapi_document --write

# make chaos SECONDS=300 SEED=7 LOAD=5, on one nats-server; NODES=3 runs it on a cluster.
CHAOS := $(if $(filter 3,$(NODES)),test_cluster_chaos.py,test_chaos.py)
chaos: sync
	CHAOS_SECONDS=$(SECONDS) CHAOS_SEED=$(SEED) CHAOS_LOAD=$(LOAD) $(RUN) pytest tests/chaos/$(CHAOS) -q -s

# Proofs that take minutes: every fault of a cluster, the release before this one, a wrong clock, wheels.
slow: sync
	$(RUN) pytest -m "integration and slow" -q -s tests apps services libs

# Every fault of a cluster, also those that take minutes.
cluster: sync
	$(RUN) pytest tests/integration/cluster -q -s

# make soak MINUTES=60 SEED=7 LOAD=2 CALM=2.5: rounds of chaos on a cluster, with a line a minute.
soak: sync
	PYTHONPATH=tests/support $(RUN) python -m tests.chaos.soak $(if $(MINUTES),--minutes $(MINUTES)) \
		$(if $(SEED),--seed $(SEED)) $(if $(NODES),--nodes $(NODES)) $(if $(LOAD),--load $(LOAD)) $(if $(CALM),--calm $(CALM))

# A deployment lives through an upgrade, a lost node, a backup and a restore, under load; make rehearsal OUT=report.json
rehearsal: sync
	PYTHONPATH=tests/support $(RUN) python -m tests.rehearsal $(if $(OUT),--out $(OUT))

# What lists, sweeps and budgets cost by the number of sessions; make growth GROWTH=1000,1000000
GROWTH ?= 1000,10000,100000,1000000
growth: sync
	GROWTH=$(GROWTH) $(RUN) pytest tests/growth -q -s -n 0

# The wheels of every package, in dist/.
dist: $(filter .tools/bin/uv,$(UV))
	rm -rf dist
	$(UV) build --all-packages --wheel --out-dir dist

# Before a release is published: one version everywhere, a section in the changelog for the tag of HEAD, wheels, the list of contents.
release: sync
	$(RUN) python -m tests.tidy.release
	$(MAKE) --no-print-directory dist sbom

# What a release contains, as CycloneDX.
sbom: $(filter .tools/bin/uv,$(UV))
	$(UV) export --locked --all-packages --no-dev --quiet --preview-features sbom-export --format cyclonedx1.5 --output-file sbom.json

# Known vulnerabilities of the locked packages. It asks a public database, so it needs the internet.
audit: $(filter .tools/bin/uv,$(UV))
	$(UV) audit --locked
