#!/bin/sh
# Makes sure that llama.cpp is built, and prints two lines: where it is installed, and where its source is.
#
# It is built once into the cache, in a folder named by everything that changes the result: version, flags, compiler and
# this processor's features (the build is for the local machine). The work is done in a folder beside it, which gets the
# final name only when complete, so that an interrupted or failed build leaves nothing that could be mistaken for one.
#
# MODELD_LLAMA_PREFIX and MODELD_LLAMA_SOURCE point to an llama.cpp of your own instead (installed prefix; source tree).
# MODELD_CUDA=1 builds with CUDA beside the CPU; MODELD_CUDA_ARCHITECTURES (default: that of the GPU in this machine)
# chooses for which, as CMake writes it (for example 86 or 90).
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/scripts/prelude.sh"

if [ -n "${MODELD_LLAMA_PREFIX:-}" ] || [ -n "${MODELD_LLAMA_SOURCE:-}" ]; then
  [ -f "${MODELD_LLAMA_PREFIX:-}/lib/cmake/llama/llama-config.cmake" ] ||
    die "MODELD_LLAMA_PREFIX='${MODELD_LLAMA_PREFIX:-}' has no lib/cmake/llama/llama-config.cmake; name the prefix" \
      "that llama.cpp was installed to, together with MODELD_LLAMA_SOURCE."
  [ -f "${MODELD_LLAMA_SOURCE:-}/common/chat.h" ] ||
    die "MODELD_LLAMA_SOURCE='${MODELD_LLAMA_SOURCE:-}' has no common/chat.h; name the source tree that the llama.cpp" \
      "in MODELD_LLAMA_PREFIX was built from."
  printf '%s\n%s\n' "$MODELD_LLAMA_PREFIX" "$MODELD_LLAMA_SOURCE"
  exit 0
fi

# GGML_OPENMP=ON: libgomp's barriers can be told to sleep (src/engine/llama/barriers.h); ggml's own always spin, and
# collapse when another process wants the same cores.
flags="-DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON -DGGML_NATIVE=ON -DGGML_OPENMP=ON -DGGML_RPC=OFF
  -DLLAMA_BUILD_APP=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF
  -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_COMMON=ON -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF
  -DLLAMA_BUILD_COMMIT=$LLAMA_COMMIT -DLLAMA_BUILD_NUMBER=0 -DCMAKE_INSTALL_RPATH=\$ORIGIN"
# Virtual machines and sandboxes there are that name AMX among their processor's features and lose its tiles when they
# switch threads: every batch then ends in an illegal instruction.
without=
case $(grep -m1 '^flags' /proc/cpuinfo 2>/dev/null || true) in
  *amx_tile*) without="-mno-amx-tile -mno-amx-int8 -mno-amx-bf16" ;;
esac
export CFLAGS="$without" CXXFLAGS="$without"
minutes=8
if [ -n "${MODELD_CUDA:-}" ]; then
  PATH=$PATH:/usr/local/cuda/bin
  nvcc=$(command -v nvcc) || die "MODELD_CUDA is set, but there is no nvcc in PATH or in /usr/local/cuda/bin; install" \
    "the CUDA toolkit, or unset MODELD_CUDA."
  flags="$flags -DGGML_CUDA=ON -DCMAKE_CUDA_COMPILER=$nvcc"
  [ -z "${MODELD_CUDA_ARCHITECTURES:-}" ] || flags="$flags -DCMAKE_CUDA_ARCHITECTURES=$MODELD_CUDA_ARCHITECTURES"
  minutes=60
fi

compiler=$(c++ --version 2>/dev/null | head -n 1) || compiler=
[ -n "$compiler" ] || die "there is no C++ compiler; run ./dev setup."
processor=$(grep -m1 -E '^(flags|Features)' /proc/cpuinfo || uname -m)
key=$(printf '%s\n' "$LLAMA_SDIST_SHA256" "$flags $without" "$compiler" "$processor" | sha256sum | cut -c1-12)
engine=$cache/engines/llama-$key
answer() { printf '%s\n%s\n' "$engine/prefix" "$engine/source"; }
if [ -d "$engine" ]; then
  answer
  exit 0
fi

one_at_a_time "llama-$key"
if [ -d "$engine" ]; then # the run that we waited for has made it
  answer
  exit 0
fi
mkdir -p "$cache/engines"
require_free_kb "$cache/engines" 614400 "Building llama.cpp"

work=$engine.unfinished
log=$cache/engines/build.log
rm -rf "$work"
mkdir "$work"
trap 'rm -rf "$work"' EXIT
trap 'say "Interrupted; the unfinished llama.cpp build was removed. Run the same command to start again."; exit 130' \
  INT TERM HUP

# failed WHAT: the end of the log, and the likeliest reason. The folder goes with the EXIT trap.
failed() {
  tail -n 15 "$log" >&2 || true
  if [ "$(free_kb "$cache/engines")" -lt 51200 ]; then
    die "$1: the disk that holds $cache is full. Free 600 MB, or set XDG_CACHE_HOME to a folder on another disk, and" \
      "run the same command again. The unfinished build was removed; nothing else was touched."
  fi
  die "$1 (the end of $log is above). The unfinished build was removed; run the same command to try again."
}

say "Downloading llama.cpp $LLAMA_COMMIT ($LLAMA_SDIST $LLAMA_SDIST_VERSION, 77 MB) ..."
pypi "$work" "$LLAMA_SDIST_FILE" "$LLAMA_SDIST_SHA256" "$LLAMA_SDIST==$LLAMA_SDIST_VERSION" \
  --no-binary "$LLAMA_SDIST"
inside=${LLAMA_SDIST_FILE%.tar.gz}/vendor/llama.cpp
# models/ holds vocabularies and templates for llama.cpp's own tests; with docs/ it is two thirds of the source.
tar -xzf "$work/$LLAMA_SDIST_FILE" -C "$work" --exclude="$inside/models" --exclude="$inside/docs" "$inside" \
  2>"$log" || failed "Unpacking llama.cpp failed"
mv "$work/$inside" "$work/source"
rm -rf "${work:?}/${LLAMA_SDIST_FILE%.tar.gz}" "${work:?}/${LLAMA_SDIST_FILE:?}"

jobs=$(nproc)
say "Building llama.cpp for this machine, once: about $minutes minutes on two cores, here with $jobs (log: $log)."
# shellcheck disable=SC2086 # a list of flags
cmake -G Ninja -S "$work/source" -B "$work/build" $flags -DCMAKE_INSTALL_PREFIX="$work/prefix" >>"$log" 2>&1 ||
  failed "Configuring llama.cpp failed"

# progress: ninja's lines to the log; every tenth part, what is done and an estimate of what is left.
progress() {
  shown=0
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$log"
    case $line in '@'[0-9]*) ;; *) continue ;; esac
    # shellcheck disable=SC2086 # the fields of the status line
    set -- ${line#@}
    [ $(($1 * 10 / $2)) -gt "$shown" ] || continue
    shown=$(($1 * 10 / $2))
    seconds=${3%%.*}
    left=$((seconds * ($2 - $1) / $1))
    say "  $1 of $2 files, $((seconds / 60))m$((seconds % 60))s gone, about $(((left + 59) / 60)) min left"
  done
}
# A pipe would lose the build's exit status, so it is left in a file.
{ NINJA_STATUS='@%f %t %e ' cmake --build "$work/build" -j "$jobs" 2>&1 || echo failed >"$work/failed"; } | progress
[ ! -e "$work/failed" ] || failed "Building llama.cpp failed"
cmake --install "$work/build" >>"$log" 2>&1 || failed "Installing llama.cpp failed"
rm -rf "$work/build"
sync -f "$work" 2>/dev/null || true
mv "$work" "$engine" || failed "Putting llama.cpp in place failed"
trap - EXIT INT TERM HUP
say "llama.cpp is ready in $engine."
answer
