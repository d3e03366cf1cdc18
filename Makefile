# Every target sets up what it needs: a venv in .venv, the package built into it, the extras of the job.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Byte code is made, and kept, when a module is first imported: most modules of the dependencies never are.
unexport PYTHONDONTWRITEBYTECODE
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check --no-compile
PIP := $(BIN)/python $(PIP_INSTALL)
MINIMUM := .venv-minimum
MINIMUM_PIP := $(MINIMUM)/bin/python $(PIP_INSTALL)

# The package and the C++ tests are built in one place, so that the core is compiled once.
BUILD := build/make
EDITABLE := --no-build-isolation --config-settings=build-dir=$(BUILD) --editable

SOURCES := CMakeLists.txt pyproject.toml $(shell find src/core src/bindings -name '*.?pp')

# Targets build in the same place, one after the other; each build uses all cores by itself.
.NOTPARALLEL:
.PHONY: demo test minimum foreign bench docs lint format sanitize fuzz core-test build clean

build: $(VENV)/.built

$(VENV)/.venv:
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade "pip>=24"
	touch $@

# What is built here is built with these: setuptools for the peers that come as sources, older ones cannot make wheels.
$(VENV)/.tools: $(VENV)/.venv pyproject.toml
	$(PIP) "scikit-build-core>=0.11" "nanobind>=2.4" "cmake>=3.18" ninja "setuptools>=70.1"
	touch $@

$(VENV)/.built: $(VENV)/.tools $(SOURCES)
	$(PIP) $(EDITABLE) .
	touch $@

$(VENV)/.extra-%: $(VENV)/.built pyproject.toml
	$(PIP) $(EDITABLE) ".[$*]"
	touch $@

demo: build
	$(BIN)/polymargin compare

test: $(VENV)/.extra-test core-test
	SCIPY_ARRAY_API=1 $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4

# The oldest versions that pyproject.toml allows, on the oldest Python: every machine, tool and command once.
minimum: $(MINIMUM)/.oldest
	$(MINIMUM_PIP) --no-build-isolation --config-settings=build-dir=build/minimum --constraint $< .
	$(MINIMUM)/bin/python -m pytest tests/minimum

$(MINIMUM)/.oldest: pyproject.toml tests/minimum/minima.py
	$(PYTHON) -m venv --clear $(MINIMUM)
	$(MINIMUM_PIP) --upgrade "pip>=24" packaging
	$(MINIMUM)/bin/python tests/minimum/minima.py test plots report onnx > $@.txt
	$(MINIMUM_PIP) ninja "setuptools>=70.1" --requirement $@.txt
	mv $@.txt $@

# The tests that come with scikit-learn, our classes in the place of its own. FOREIGN_PAGE=docs/foreign_suites.md writes
# the page of the docs.
FOREIGN_PAGE ?= build/foreign_suites.md
foreign: $(VENV)/.extra-test $(VENV)/.extra-foreign
	$(BIN)/python tests/foreign/run.py --page $(FOREIGN_PAGE)

core-test: $(VENV)/.built
	test -f $(BUILD)/CMakeCache.txt || $(PIP) $(EDITABLE) .
	$(BIN)/cmake $(BUILD) -DPOLYMARGIN_TESTS=ON > /dev/null
	$(BIN)/cmake --build $(BUILD) --target core_tests
	$(BIN)/ctest --test-dir $(BUILD) --output-on-failure --parallel 2

# Without precompiled headers, so that an include that is missing is missed.
sanitize: $(VENV)/.tools
	$(BIN)/cmake -S . -B build/sanitize -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) \
	    -DCMAKE_BUILD_TYPE=Debug -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON \
	    -DPOLYMARGIN_PYTHON=OFF -DPOLYMARGIN_TESTS=ON -DPOLYMARGIN_SANITIZE=ON > /dev/null
	$(BIN)/cmake --build build/sanitize --target core_tests
	$(BIN)/ctest --test-dir build/sanitize --output-on-failure

# The long versions of the promises, then the readers of files under libFuzzer (needs clang++) and atheris.
FUZZ_SECONDS ?= 600
fuzz: $(VENV)/.extra-test $(VENV)/.extra-fuzz
	POLYMARGIN_LONG=1 SCIPY_ARRAY_API=1 $(BIN)/python -m pytest tests/promises
	mkdir -p build/fuzz/svmlight build/fuzz/readers
	clang++ -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -Isrc/core \
	    tests/fuzz/svmlight.cpp src/core/storage/svmlight.cpp -o build/fuzz/fuzz_svmlight
	build/fuzz/fuzz_svmlight -max_total_time=$(FUZZ_SECONDS) -max_len=4096 build/fuzz/svmlight
	$(BIN)/python tests/fuzz/readers.py -max_total_time=$(FUZZ_SECONDS) -max_len=4096 build/fuzz/readers

# The race against the peers; the other benchmarks are scripts of their own, see benchmarks/README.md.
bench: $(VENV)/.extra-bench
	$(BIN)/python benchmarks/run.py

docs: $(VENV)/.extra-docs
	$(BIN)/python -m sphinx -W -b html docs docs/_build/html

lint: $(VENV)/.extra-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $$(git ls-files 'src/core/*.?pp' 'src/bindings/*.?pp' 'tests/core/*.?pp')
	$(BIN)/mypy
	$(BIN)/python tests/types/completeness.py

format: $(VENV)/.extra-lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $$(git ls-files 'src/core/*.?pp' 'src/bindings/*.?pp' 'tests/core/*.?pp')

clean:
	rm -rf $(VENV) $(MINIMUM) build docs/_build
