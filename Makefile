# The words of the house; CONTRIBUTING.md says what each does.
BIN := .venv/bin
READY := .venv/.ready
PIP := $(BIN)/pip install --quiet --no-build-isolation --no-deps

MAKEFLAGS += --no-print-directory

.PHONY: build debug test test-c asan tsan run-c bench lint soak clean

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
test-c: ; @+$(MAKE) run-c KIND=$@ C_FLAGS='-O1 -g -DCPU_DEBUG=2'
asan: ; @+$(MAKE) run-c KIND=$@ C_FLAGS='-O1 -g -DCPU_DEBUG=2 -fsanitize=address,undefined -fno-sanitize-recover=all'
tsan: ; @+$(MAKE) run-c KIND=$@ C_FLAGS='-O1 -g -fsanitize=thread'

COMPILE = @mkdir -p $(@D); $(CC) -std=gnu11 -Wall -Wextra -Werror $(C_FLAGS) -D_GNU_SOURCE -pthread -Iinclude -Il0rt/cpu_driver
C_HEADERS := $(wildcard include/l0rt/*.h l0rt/cpu_driver/*.h l0rt/cpu_driver/test/*.h)
C_OBJECTS := $(patsubst %.c,build/$(KIND)/%.o,$(wildcard l0rt/cpu_driver/*.c))
C_TESTS := $(patsubst %.c,build/$(KIND)/%,$(wildcard l0rt/cpu_driver/test/test_*.c))

.SECONDARY:  # keep the objects

run-c: $(C_TESTS)
	@test -n "$^" || { echo "there are no l0rt/cpu_driver/test/test_*.c"; exit 1; }
	@set -e; for program in $^; do echo $$program; $$program; done

build/$(KIND)/%.o: %.c $(C_HEADERS)
	$(COMPILE) -c $< -o $@

build/$(KIND)/%: %.c $(C_OBJECTS) $(C_HEADERS)
	$(COMPILE) $< $(C_OBJECTS) -lm -o $@

clean:
	rm -rf build dist *.egg-info
