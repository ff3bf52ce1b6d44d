#!/bin/sh
# Tests, quickest first: unit, real models, unit under ASan and UBSan. With --long also ThreadSanitizer and clang-tidy
# over everything. Each stage ends with ctest's own summary; the first stage that fails ends the run.
# The tests find the models in the folder MODELD_TEST_MODELS.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/scripts/prelude.sh"
cd "$root"

# stage N OF WHAT: a line that says where we are.
stage() { say "--- $1/$2 $3 ($(date +%H:%M:%S))"; }
stages=3
[ "${1:-}" != --long ] || stages=5

scripts/packages.sh build text
[ "$stages" = 3 ] || scripts/packages.sh lint sanitize
scripts/build.sh release
scripts/models.sh smollm2 gemma3 minilm >/dev/null
export MODELD_TEST_MODELS="$cache/models"
export GOMP_SPINCOUNT=0 # as modeld sets it for itself: src/engine/llama/barriers.h

if [ "$stages" = 5 ]; then
  stage 1 5 "clang-tidy on every file"
  scripts/lint.sh --all
  stage 2 5 "unit tests under ThreadSanitizer"
  scripts/build.sh tsan
  ctest --preset tsan
fi
stage $((stages - 2)) "$stages" "unit tests"
ctest --preset unit
stage $((stages - 1)) "$stages" "tests through real models"
ctest --preset model
stage "$stages" "$stages" "unit tests under ASan and UBSan"
scripts/build.sh asan-ubsan
ctest --preset asan-ubsan
