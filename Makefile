# SPDX-License-Identifier: Apache-2.0
# The front door. `make` alone builds build/release/epochmeter; `make help` lists the rest.
.DEFAULT_GOAL := build
.PHONY: build demo test check fast asan tsan fuzz bench format clean help

build: ## Build build/release/epochmeter (the default)
	@tools/setup --build
	@tools/build release epochmeter
	@echo "built build/release/epochmeter"

demo: ## Install what is missing, build, record a small real training, print its report
	@tools/demo

test: ## Run every test, real frameworks included
	@tools/test

check: ## Everything a change must pass (format, tidy, tests, goldens, docs, sizes)
	@tools/check

fast: ## The same for the files that changed, in about a minute
	@tools/check --fast

asan: ## The C++ tests under the address and undefined behaviour sanitizers
	@tools/build asan && ctest --preset asan

tsan: ## The C++ tests under the thread sanitizer
	@tools/build tsan && ctest --preset tsan

fuzz: ## Run every fuzz target for a minute (tools/fuzz has more)
	@tools/fuzz 1

bench: ## Build the benchmark programs
	@tools/build bench

format: ## Rewrite C++ files in the house format
	@git ls-files '*.cc' '*.h' | xargs -r clang-format-14 -i

clean: ## Remove what was built, keep the Python environment
	rm -rf build

help: ## This list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
