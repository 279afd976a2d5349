# What a person types. Each goal does its own set-up; the build itself is CMake (see CMakePresets.json).
PREFIX ?= /usr/local
DESTDIR ?=
JOBS ?= $(shell nproc)
# tests at a time: a core counts as four, of which those that compute take all (tests/CMakeLists.txt)
TESTS = $(shell expr 4 \* $(JOBS))
# more settings for CMake, as in: make test CMAKE_FLAGS=-DHEC_WERROR=ON
CMAKE_FLAGS ?=
FUZZ_SECONDS ?= 600
DRAWN_PROGRAMS ?= 320
SOAK_HOURS ?= 24
MUTANTS ?= 200

export CTEST_OUTPUT_ON_FAILURE = 1

.DEFAULT_GOAL := help
.PHONY: help build demo test bench portable install format lint asan tsan fuzz drawn soak mutants clean

help: ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## */  make \1	/' | expand -t 18

build: ## the programs, in build/bin
	@scripts/bootstrap build
	@scripts/build release programs -DHEC_TESTS=OFF $(CMAKE_FLAGS)

demo: ## measure something now: a real GPU when there is one, else the simulated one
	@scripts/demo

test: ## every test
	@scripts/bootstrap build test
	@scripts/build release all -DHEC_TESTS=ON $(CMAKE_FLAGS)
	@ctest --test-dir build -j $(TESTS)

bench: ## the measurements behind the published figures (up to 20 minutes)
	@scripts/bootstrap build test
	@scripts/build release all -DHEC_TESTS=ON $(CMAKE_FLAGS)
	@scripts/bench

portable: ## a tree that runs from anywhere, in dist/hec-portable
	@scripts/bootstrap build
	@scripts/portable

install: ## into PREFIX (default /usr/local), below DESTDIR
	@scripts/bootstrap build
	@scripts/build release programs -DHEC_TESTS=OFF $(CMAKE_FLAGS)
	@umask 022; DESTDIR="$(DESTDIR)" cmake --install build --prefix "$(PREFIX)"

format: ## rewrite the C sources in the project's style, wrap Markdown
	@scripts/bootstrap lint
	@scripts/check-format --fix
	@scripts/columns.py --fix

lint: ## include law, formatting, static analysis, shell scripts, man pages
	@scripts/bootstrap build test lint
	@scripts/build release all -DHEC_TESTS=ON $(CMAKE_FLAGS)
	@scripts/lint

asan: ## unit tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@scripts/bootstrap build test fuzz
	@scripts/build asan all $(CMAKE_FLAGS)
	@ctest --test-dir build/asan -L unit -j $(TESTS)

tsan: ## the tests with threads, under ThreadSanitizer
	@scripts/bootstrap build test
	@scripts/build tsan threaded $(CMAKE_FLAGS)
	@ctest --test-dir build/tsan -L threads -j $(TESTS)

fuzz: ## every parser, FUZZ_SECONDS each (default 600)
	@scripts/bootstrap build test fuzz
	@scripts/build asan fuzzers $(CMAKE_FLAGS)
	@scripts/fuzz $(FUZZ_SECONDS)

drawn: ## DRAWN_PROGRAMS random programs on the simulated GPU (default 320), judged
	@scripts/bootstrap build test
	@scripts/build release all -DHEC_TESTS=ON $(CMAKE_FLAGS)
	@HEC_DRAWN_PROGRAMS=$(DRAWN_PROGRAMS) ctest --test-dir build -R e2e.drawn_sim

soak: ## a simulated day of an agent with 8 GPUs under all attacks, as root (SOAK_HOURS, default 24)
	@scripts/bootstrap build test
	@scripts/build release all -DHEC_TESTS=ON $(CMAKE_FLAGS)
	@HEC_SOAK_HOURS=$(SOAK_HOURS) python3 -m pytest -q -s -p no:cacheprovider tests/e2e/test_soak.py

mutants: ## MUTANTS random mutants (default 200) against the tests, sanitizers too, as root; hours
	@scripts/bootstrap build test fuzz
	@scripts/build release all -DHEC_TESTS=ON $(CMAKE_FLAGS)
	@scripts/build coverage units -DHEC_TESTS=ON $(CMAKE_FLAGS)
	@scripts/build asan units -DHEC_TESTS=ON $(CMAKE_FLAGS)
	@scripts/build tsan threaded -DHEC_TESTS=ON $(CMAKE_FLAGS)
	@test -x build/mutants/python/bin/mutate || { python3 -m venv build/mutants/python && \
		build/mutants/python/bin/pip install -q universalmutator==1.14.1; }
	@scripts/mutants --count $(MUTANTS)

clean: ## remove build/ and dist/
	@rm -rf build dist
