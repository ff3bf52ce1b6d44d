#!/bin/sh
# Formatting, the tidy test, shellcheck, and clang-tidy on what changed: against the merge base with origin/main where
# that exists, else (and in CI) against the last commit. Usage: scripts/lint.sh [--all]   (--all: clang-tidy everywhere)
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/scripts/prelude.sh"
cd "$root"
"$root/scripts/packages.sh" build lint
failed=

# sources: every C++ file that git knows or would add.
sources() { git ls-files --cached --others --exclude-standard -- '*.h' '*.cc' | sort -u | while read -r f; do
  [ ! -f "$f" ] || printf '%s\n' "$f"; done; }

# changed: the C++ files that differ from the base, new ones included.
changed() {
  base=HEAD~1
  if [ -z "${CI:-}" ] && git rev-parse -q --verify origin/main >/dev/null; then
    merge_base=$(git merge-base HEAD origin/main)
    [ "$merge_base" = "$(git rev-parse HEAD)" ] || base=$merge_base
  fi
  if ! git rev-parse -q --verify "$base" >/dev/null; then
    sources # the first commit, or a clone of depth one: everything is new
    return
  fi
  { git diff --name-only "$base" -- '*.h' '*.cc' && git ls-files --others --exclude-standard -- '*.h' '*.cc'; } |
    sort -u | while read -r f; do [ ! -f "$f" ] || printf '%s\n' "$f"; done
}

# units: from headers and sources to what clang-tidy can parse, that is compiled files. For a header the .cc beside it,
# else its test, else the first file that includes it.
units() {
  while read -r f; do
    case $f in
      *.cc) printf '%s\n' "$f" ;;
      *)
        stem=${f%.h}
        if [ -f "$stem.cc" ]; then
          printf '%s\n' "$stem.cc"
        elif [ -f "${stem}_test.cc" ]; then
          printf '%s\n' "${stem}_test.cc"
        else
          grep -rlF --include='*.cc' "#include \"${f#src/}\"" src | sort | head -n 1
        fi
        ;;
    esac
  done | sort -u
}

# tidy CHECKS: clang-tidy over the files on standard input, with CHECKS added to those of .clang-tidy. What it says on
# standard error (counts of what was suppressed, faults of its configuration) goes to $notes.
# Deprecations are left to the compiler of the build: clang takes libstdc++'s own std::stable_sort for one.
tidy() {
  xargs -r -P "$(nproc)" -n 1 clang-tidy-19 -p build/release --quiet --checks="$1" --header-filter="^$root/src/" \
    --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-deprecated-declarations 2>>"$notes"
}

say "clang-format"
sources | xargs clang-format-19 --dry-run -Werror || failed="$failed clang-format(./dev format mends it)"

say "tidy test"
python3 -B scripts/tidy_test.py || failed="$failed tidy"

say "shellcheck"
shellcheck -x dev scripts/*.sh .ci/run || failed="$failed shellcheck"

# clang-tidy reads build/release/compile_commands.json, so it has llama.cpp's headers too.
scripts/build.sh --configure-only release
if [ "${1:-}" = --all ]; then list=$(sources); else list=$(changed); fi
# A file that no target builds has no compile command, and clang-tidy would guess one.
list=$(printf '%s\n' "$list" | grep . | units | while read -r f; do
  if grep -qF "\"file\": \"$root/$f\"" build/release/compile_commands.json; then printf '%s\n' "$f"; fi
done)
count=$(printf '%s\n' "$list" | grep -c . || true)
say "clang-tidy on $count files (about $(((count * 10 / $(nproc) + 59) / 60)) min)"
if [ "$count" -gt 0 ]; then
  notes=build/release/clang-tidy.log
  : >"$notes"
  is_test='_(test|bench|fixture)\.cc$|^tests/'
  # The static analyser triples the time and finds little in a change: only in the run over everything.
  analyser='-clang-analyzer-*'
  [ "${1:-}" != --all ] || analyser=
  printf '%s\n' "$list" | grep -vE "$is_test" | tidy "$analyser" || failed="$failed clang-tidy"
  # The macros of GoogleTest are not ours to mend, so tests get the checks that find wrong tests.
  for_tests='-*,bugprone-use-after-move,bugprone-unused-return-value,bugprone-dangling-handle,bugprone-infinite-loop'
  for_tests="$for_tests,performance-for-range-copy,modernize-use-override"
  printf '%s\n' "$list" | grep -E "$is_test" | tidy "$for_tests" || failed="$failed clang-tidy(tests)"
  grep -vE '^[0-9]+ (warnings?|errors?) |^Suppressed |^Use -header-filter|^$' "$notes" >&2 || true
fi

[ -z "$failed" ] || die "lint:$failed"
say "lint: clean"
