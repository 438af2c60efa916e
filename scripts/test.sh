#!/usr/bin/env bash
# Builds everything (Release) and runs all tests; installs missing packages first.
#
#   scripts/test.sh [CTEST-ARGUMENT...]     e.g. scripts/test.sh -L unit
set -euo pipefail

cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
./scripts/dependencies.sh
jobs=$(nproc)
[[ -f build/release/build.ninja ]] || cmake -S . -B build/release -G Ninja -DCMAKE_BUILD_TYPE=Release
cmake --build build/release -j "$jobs"
ctest --test-dir build/release --output-on-failure --no-tests=error -j "$jobs" "$@"
