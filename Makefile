# The words of the house; CONTRIBUTING.md says what each does.
BIN := .venv/bin
READY := .venv/.ready
PIP := $(BIN)/pip install --quiet --no-build-isolation --no-deps
CC ?= cc
WARN := -std=gnu11 -Wall -Wextra -Werror
C_SOURCES := $(wildcard l0rt/cpu_driver/*.c)
C_TESTS := $(wildcard l0rt/cpu_driver/test/test_*.c)

.PHONY: build debug test test-c asan tsan bench lint soak clean

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

soak: build
	L0RT_TEST_SOAK=1 L0RT_TEST_HANG_LIMIT=7200 $(BIN)/pytest $(ARGS)

bench: build
	$(BIN)/l0rt bench $(ARGS)

lint: $(READY)
	$(BIN)/ruff check .
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/cython-lint l0rt tests
	$(BIN)/codespell
	$(BIN)/pytest -q tests/layout

# The CPU driver's tests are C programs, each linked with the driver itself: no Python, no loader.
test-c: C_FLAGS := -O1 -g -DCPU_DEBUG=2
asan: C_FLAGS := -O1 -g -DCPU_DEBUG=2 -fsanitize=address,undefined -fno-sanitize-recover=all
tsan: C_FLAGS := -O1 -g -fsanitize=thread
test-c asan tsan:
	@mkdir -p build/$@
	@set -e; test -n "$(C_TESTS)"; for source in $(C_TESTS); do \
	  program=build/$@/$$(basename $$source .c); echo $$program; \
	  $(CC) $(WARN) $(C_FLAGS) -D_GNU_SOURCE -pthread -Iinclude -Il0rt/cpu_driver $$source $(C_SOURCES) -lm -o $$program; \
	  $$program; \
	done

clean:
	rm -rf build dist *.egg-info
