# `make run` shows the library at work, `make test` checks everything; both install what is missing (tools/setup).
# The others are the pieces of `make test`, and helpers.
JOBS ?= $(shell nproc)
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(JOBS)
export CTEST_PARALLEL_LEVEL ?= $(JOBS)

.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: run test setup setup-run setup-bench setup-fuzz build python python-stub test-gcc test-clang test-python wheel \
        sanitize asan tsan format check-format tidy docs mutation fuzz bench bench-files bench-graphs bench-python golden \
        cost clean help

run: setup-run  ## build the release preset and take the tour: a photograph pooled in three ways, laws, speed
	cmake --preset release
	cmake --build --preset release --target cenote_cli
	build/release/cli/cenote tour examples/data/coffee.png -o build/tour.png

# Two rows of checks at a time, for the sake of the cores that the end of a build or a single long test leaves idle. Both
# need the Python packages.
test: setup check-format build/python-venv/installed  ## every check
	@tools/side_by_side "$(MAKE) test-gcc test-python" "$(MAKE) sanitize tidy docs mutation MUTATION=--sound"
	@echo "make test: every check passed"

setup-run:
	@tools/setup run

setup-bench:
	@tools/setup bench

setup-fuzz:
	@tools/setup fuzz

setup:  ## install the packages that the checks need
	@tools/setup test

build:  ## build the dev preset
	cmake --preset dev
	cmake --build --preset dev

test-gcc: build  ## g++: unit tests, laws, golden, must-not-compile, consumer
	ctest --preset dev

test-clang:  ## clang++, optimised: the same, without what does not depend on the compiler
	cmake --preset dev-clang
	cmake --build --preset dev-clang
	ctest --preset dev-clang

PIP_HERE = --quiet --no-build-isolation --no-deps --force-reinstall --config-settings=cmake.define.CENOTE_BUILD_PYTHON=ON

# pip builds in the tree of the dev preset, whose library it finds there: a real wheel, and nothing is compiled twice.
python: build/python-venv/installed  ## the Python package, into build/python-venv
	cmake --preset dev
	build/python-venv/bin/pip install $(PIP_HERE) --config-settings=build-dir=build/dev \
	  --config-settings=cmake.build-type=RelWithDebInfo .

test-python: setup python  ## the Python package, against PyTorch and JAX
	build/python-venv/bin/python -m pytest -q tests/python

python-stub: python  ## write python/cenote/_core.pyi again
	build/python-venv/bin/python -m nanobind.stubgen -q -m cenote._core -o python/cenote/_core.pyi

build/python-venv/installed: tests/python/requirements.txt
	python3 -m venv build/python-venv
	build/python-venv/bin/pip install --quiet --only-binary :all: -r tests/python/requirements.txt
	touch $@

# For machines of all kinds, unlike what pip builds from source.
wheel: setup  ## a wheel and an sdist for this machine's Python, optimised, into build/wheel
	python3 -m venv build/wheel-venv
	build/wheel-venv/bin/pip install --quiet build
	build/wheel-venv/bin/python -m build --outdir build/wheel --config-setting=cmake.define.CENOTE_TARGETS=all .

sanitize: asan tsan  ## address and undefined-behaviour (clang++) and thread sanitizers

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

tidy: build/python-venv/installed  ## clang-tidy over headers, library, command, bindings and examples
	tools/tidy

docs:  ## the pages against the tree: coverage of the original, rules with tests, the README's program
	python3 tools/check_coverage_page.py
	python3 tools/check_docs.py

# --sound beside other checks, which run the same suites on the headers as they are.
MUTATION ?=
mutation:  ## break the headers in small ways and see the tests notice
	python3 tests/mutation/run.py $(MUTATION)

RUNS ?= 200000
fuzz: setup-fuzz  ## kernels against the definition, and readers of files, on what libFuzzer thinks of; RUNS=20000000 for hours
	cmake -S . -B build/fuzz -G Ninja -DCMAKE_CXX_COMPILER=clang++-14 -DCMAKE_BUILD_TYPE=RelWithDebInfo \
	  -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1" -DCENOTE_FUZZ=ON -DCENOTE_CHECK_HEADERS=OFF -DCENOTE_BUILD_BENCH=OFF \
	  -DCMAKE_CXX_FLAGS="-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all"
	cmake --build build/fuzz --target kernels_fuzz npy_fuzz png_fuzz tiff_fuzz
	mkdir -p $(addprefix build/fuzz/corpus/,kernels npy png tiff)
	build/fuzz/tests/kernels_fuzz -runs=$(RUNS) -entropic=0 -max_len=96 build/fuzz/corpus/kernels tests/fuzz/corpus/kernels
	build/fuzz/tests/npy_fuzz -runs=$(RUNS) -max_len=1500 build/fuzz/corpus/npy tests/fuzz/corpus/npy
	build/fuzz/tests/png_fuzz -runs=$(RUNS) -max_len=1500 build/fuzz/corpus/png tests/fuzz/corpus/png
	build/fuzz/tests/tiff_fuzz -runs=$(RUNS) -max_len=1500 build/fuzz/corpus/tiff tests/fuzz/corpus/tiff

BENCH ?=
bench: setup-bench build/bench-venv/installed  ## cenote and its peers on every problem; BENCH="--quick" for a few, "--help" for more
	cmake --preset release -DCENOTE_BENCH_ONEDNN=$(CURDIR)/build/bench-venv
	cmake --build --preset release
	build/release/bench/definition
	build/bench-venv/bin/python bench/run.py $(BENCH)

bench-graphs: setup-bench build/bench-venv/installed  ## whole programs against PyTorch: speed, memory, cost of a node
	cmake --preset release -DCENOTE_BENCH_ONEDNN=$(CURDIR)/build/bench-venv
	cmake --build --preset release --target bench_graph
	build/bench-venv/bin/python bench/graphs.py

bench-files: setup-bench build/bench-venv/installed  ## what pooling costs beside the codecs of pictures, and a large array beside cp
	cmake --preset release
	cmake --build --preset release --target cenote_cli
	build/bench-venv/bin/python bench/files.py

bench-python: setup-bench build/bench-venv/installed  ## what a call from Python costs, a training step's memory, and the layers of networks beside PyTorch and jax
	cmake --preset release
	build/bench-venv/bin/pip install $(PIP_HERE) --config-settings=build-dir=build/release \
	  --config-settings=cmake.build-type=Release .
	build/bench-venv/bin/python bench/python_calls.py
	build/bench-venv/bin/python bench/python_memory.py
	build/bench-venv/bin/python bench/python_torch.py
	build/bench-venv/bin/python bench/python_jax.py

# XNNPACK comes inside executorch, whose other dependencies are not needed.
build/bench-venv/installed: bench/requirements.txt
	python3 -m venv build/bench-venv
	build/bench-venv/bin/pip install --quiet --only-binary :all: -r bench/requirements.txt
	build/bench-venv/bin/pip install --quiet --only-binary :all: --no-deps executorch==1.5.1
	touch $@

golden: setup  ## make the golden cases again with PyTorch, in a virtual environment of the project's
	python3 -m venv build/golden-venv
	build/golden-venv/bin/pip install --quiet torch==2.13.0
	build/golden-venv/bin/python tests/golden/make_golden.py
	build/golden-venv/bin/python tests/golden/make_graph_golden.py

cost: setup-run  ## compile time and binary size of a file that calls five operators
	tools/cost

clean:  ## remove everything that was built
	rm -rf build

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 24
