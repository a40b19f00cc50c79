# `make run` shows the library at work, `make test` checks everything; both install what is missing (tools/setup).
# The others are the pieces of `make test`, and helpers.
JOBS ?= $(shell nproc)
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(JOBS)
export CTEST_PARALLEL_LEVEL ?= $(JOBS)

.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: run test setup setup-run build test-gcc test-clang sanitize asan tsan format check-format tidy \
        docs mutation bench golden cost clean help

run: setup-run  ## build the release preset and take the tour
	cmake --preset release
	cmake --build --preset release --target tour
	build/release/examples/tour

test: setup check-format test-gcc test-clang sanitize tidy docs mutation  ## every check
	@echo "make test: every check passed"

setup-run:
	@tools/setup run

setup:  ## install the packages that the checks need
	@tools/setup test

build:  ## build the dev preset
	cmake --preset dev
	cmake --build --preset dev

test-gcc: build  ## g++: unit tests, laws, golden, must-not-compile, consumer
	ctest --preset dev

test-clang:  ## clang++: the same, without what does not depend on the compiler
	cmake --preset dev-clang
	cmake --build --preset dev-clang
	ctest --preset dev-clang

sanitize: asan tsan  ## address, undefined-behaviour and thread sanitizers

asan:
	cmake --preset asan
	cmake --build --preset asan
	ctest --preset asan

tsan:
	cmake --preset tsan
	cmake --build --preset tsan
	ctest --preset tsan

format:  ## rewrite the sources with clang-format
	tools/format

check-format:  ## complain where clang-format would rewrite
	tools/format --check

tidy:  ## clang-tidy over headers, library and examples
	tools/tidy

docs:  ## the pages against the tree: coverage of the original, rules with tests, the README's program
	python3 tools/check_coverage_page.py
	python3 tools/check_docs.py

mutation:  ## break the headers in small ways and see the tests notice
	python3 tests/mutation/run.py

bench: setup-run  ## build the release preset and run the benchmark
	cmake --preset release
	cmake --build --preset release
	for program in build/release/bench/*; do if [ -f "$$program" ] && [ -x "$$program" ]; then "$$program" || exit 1; fi; done

golden: setup  ## make the golden cases again with PyTorch, in a virtual environment of the project's
	python3 -m venv build/golden-venv
	build/golden-venv/bin/pip install --quiet torch==2.13.0
	build/golden-venv/bin/python tests/golden/make_golden.py

cost: setup-run  ## compile time and binary size of a file that calls five operators
	tools/cost

clean:  ## remove everything that was built
	rm -rf build

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 24
