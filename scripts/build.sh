#!/bin/sh
# Configures and builds one CMake preset, after making sure that what it needs is there.
# Usage: scripts/build.sh [--configure-only] release|cuda|asan-ubsan|tsan
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/scripts/prelude.sh"

configure_only=
if [ "$1" = --configure-only ]; then
  configure_only=1
  shift
fi
preset=$1

"$root/scripts/packages.sh" build
[ "$preset" != tsan ] || "$root/scripts/packages.sh" sanitize
case $preset in
  release | cuda)
    [ "$preset" != cuda ] || export MODELD_CUDA=1
    engine=$("$root/scripts/engine.sh")
    prefix=$(printf '%s\n' "$engine" | sed -n 1p)
    source=$(printf '%s\n' "$engine" | sed -n 2p)
    set -- "-DCMAKE_PREFIX_PATH=$prefix" "-DMODELD_LLAMA_SOURCE=$source"
    ;;
  *)
    prefix=none
    set --
    ;;
esac
if command -v ccache >/dev/null; then set -- "$@" -DCMAKE_CXX_COMPILER_LAUNCHER=ccache; fi

cd "$root"
# CMake remembers where it found llama.cpp; another engine needs another look.
made_with=build/$preset/engine.txt
if [ -f "$made_with" ] && [ "$(cat "$made_with")" != "$prefix" ]; then set -- --fresh "$@"; fi
mkdir -p "build/$preset"
log=build/$preset/configure.log
cmake --preset "$preset" "$@" >"$log" 2>&1 || {
  cat "$log" >&2
  die "configuring $preset failed; CMake's words are above."
}
printf '%s\n' "$prefix" >"$made_with"
[ -z "$configure_only" ] || exit 0
say "Building $preset in $root/build/$preset ..."
cmake --build --preset "$preset" -j "$(nproc)"
