# SPDX-License-Identifier: Apache-2.0
# CONTRIBUTING.md says what each target does.
BIN := .venv/bin
READY := .venv/.ready
PIP := $(BIN)/pip install --quiet --no-build-isolation --no-deps

# What clang-format holds; build folders have generated C.
C_FILES = $(shell find include l0rt tests examples -path '*/build' -prune -o -name '*.[ch]' -print -o -name '*.[ch]pp' -print)

MAKEFLAGS += --no-print-directory

.PHONY: build debug test test-all llama test-fresh test-intel test-c asan tsan tsan-python rings bench lint style format-c kernels site pictures dist soak clean

$(READY): pyproject.toml
	test -x $(BIN)/python || python3 -m venv .venv
	$(BIN)/pip install --quiet '.[test,lint]'
	touch $@

build: $(READY)
	$(PIP) .

debug: $(READY)
	L0RT_BUILD=debug $(PIP) .

test: build
	$(BIN)/pytest $(ARGS)

# Nothing is shortened, and what l0rt is compared and used with is there: some gigabytes.
test-all: build llama
	$(BIN)/pip install --quiet 'l0rt[partners,dask,mpi,ray,torch,sycl,browser]'
	L0RT_TEST_ALL=1 L0RT_TEST_TORCH=1 L0RT_TEST_PARTNERS=1 L0RT_TEST_SYCL=1 $(BIN)/pytest $(ARGS)

# llama.cpp with its SYCL backend: docs/cpu-driver.md. 290 MB, in an environment of its own.
llama:
	test -x build/llama/bin/python || python3 -m venv build/llama
	build/llama/bin/pip install --quiet numpy 'cyllama-sycl==0.2.18' 'intel-sycl-rt==2025.3.*' tbb

# Debian 12, 13 and forky; as root and as an ordinary user.
test-fresh: $(READY)
	$(BIN)/python tests/fresh.py $(ARGS)

# Intel's driver of today, on simulated devices.
test-intel: build
	$(BIN)/python tests/intel.py $(ARGS)

soak: build
	L0RT_TEST_SOAK=1 L0RT_TEST_HANG_LIMIT=7200 $(BIN)/pytest -o faulthandler_timeout=9000 $(ARGS)

# The tests that other drivers run, by what all ask of the CPU driver.
rings: build
	L0RT_TEST_NOTES=build/notes.json $(BIN)/pytest -q $(addprefix tests/,core runtime accelerator kernels graphs)
	PYTHONPATH=tests $(BIN)/python -m helpers.covering build/notes.json

bench: build
	$(BIN)/l0rt bench $(ARGS)

lint: style
	$(BIN)/pytest -q tests/layout

style: $(READY)
	$(BIN)/ruff check .
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/cython-lint l0rt tests
	$(BIN)/codespell
	$(BIN)/mypy
	@$(BIN)/clang-format --dry-run -Werror $(C_FILES)
	$(BIN)/check-jsonschema -q --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema -q --builtin-schema vendor.citation-file-format CITATION.cff

format-c: $(READY)
	$(BIN)/clang-format -i $(C_FILES)

# A source archive, and from it a wheel for each Python, tried in an empty environment. ARGS="--pythons 3.11": one.
dist: $(READY)
	$(BIN)/pip install --quiet 'l0rt[test,release]'
	$(BIN)/python tests/dist.py $(ARGS)

# The site, in one folder that needs no server. Warnings are errors.
site: $(READY)
	$(BIN)/pip install --quiet 'l0rt[site]'
	$(BIN)/sphinx-build -q -W --keep-going docs build/site
	@echo build/site/index.html

# Each page of the site at 1280 and 400 pixels, light and dark. It needs Debian's chromium and chromium-driver.
pictures: site
	$(BIN)/pip install --quiet 'l0rt[test,browser]'
	$(BIN)/python tests/pictures.py $(ARGS)

# The modules that lie beside their sources. It needs ocloc, of Debian's package intel-opencl-icd.
kernels: $(patsubst %.cl,%.spv,$(filter-out %/algorithms.cl %/producers.cl,$(wildcard l0rt/*/*.cl l0rt/*/*/*.cl tests/kernels/*.cl)))
l0rt/launch/random.spv l0rt/launch/random_graph.spv: l0rt/launch/random.cl l0rt/kernels/philox.clh
l0rt/launch/random_fp64.spv l0rt/launch/random_graph_fp64.spv: l0rt/launch/random_fp64.cl l0rt/kernels/philox.clh
$(wildcard l0rt/interop/torch_device/*.spv): $(wildcard l0rt/interop/torch_device/*.clh) l0rt/interop/torch_device/pointwise.h
# With lines of the source, whose path is in the module.
tests/kernels/refused.spv: tests/kernels/refused.cl
	cp $< /tmp
	cd /tmp && ocloc compile -q -file refused.cl -device skl -options '-cl-std=CL2.0 -g' -spv_only -output refused
	mv /tmp/refused_Gen9core.spv $@
%.spv: %.cl
	ocloc compile -q -file $< -device pvc -options '-cl-std=CL2.0 -I l0rt/kernels -I $(<D)' -spv_only -output $(*F) -out_dir build/ocloc
	mv build/ocloc/$(*F)_*.spv $@

# The CPU driver's tests are C programs, linked with the driver itself: no Python, no loader.
test-c: ; @+$(MAKE) -C tests/cpu_driver test
asan: ; @+$(MAKE) -C tests/cpu_driver $@
tsan: ; @+$(MAKE) -C tests/cpu_driver $@

# The extension modules under the thread sanitizer, built for it alone.
tsan-python: build
	L0RT_TEST_SOAK=1 $(BIN)/pytest tests/process/test_races.py

clean:
	rm -rf build dist *.egg-info docs/api docs/c-api.md docs/cpu-driver-*s.md
