#!/bin/sh
# Checks for a machine with an NVIDIA GPU and the CUDA toolkit: is the GPU seen, do the engine's rules hold on it, does
# the main job run on it. Prints a line for each check with its time; the exit status is the number of failed checks.
#
# Under 8 minutes once llama.cpp is built with CUDA. That build is long (half an hour and more on few cores), so do it
# first, and apart:   MODELD_CUDA=1 ./dev build && scripts/gpu_checks.sh
# Usage: scripts/gpu_checks.sh [FOLDER for the logs; default build/gpu-checks]
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/scripts/prelude.sh"
logs=${1:-$root/build/gpu-checks}
mkdir -p "$logs"

nvidia-smi --query-gpu=name,memory.total,memory.free,driver_version --format=csv,noheader ||
  die "nvidia-smi does not answer, so there is no GPU to check."
"$root/scripts/build.sh" cuda
model=$("$root/scripts/models.sh" smollm2)
"$root/scripts/models.sh" gemma3 >/dev/null
text=$("$root/scripts/text.sh")
bin=$root/build/cuda
export MODELD_TEST_MODELS="$cache/models"

failures=0
# check NAME SECONDS COMMAND...: runs it with a limit; its output goes to a log.
check() {
  name=$1 limit=$2 began=$(date +%s)
  shift 2
  status=0
  timeout "$limit" "$@" >"$logs/$name.log" 2>&1 </dev/null || status=$?
  took=$(($(date +%s) - began))
  if [ "$status" = 0 ]; then
    echo "ok      $name (${took} s)"
  else
    failures=$((failures + 1))
    echo "FAILED  $name (exit status $status after ${took} s of at most $limit; $logs/$name.log ends:)"
    tail -n 8 "$logs/$name.log" | sed 's/^/        /'
  fi
}

check describe 30 "$bin/modeld" describe "$model" --json
# What is claimed before loading must hold after it, here with the GPU's memory.
check describe-loaded 60 "$bin/modeld" describe "$model" --loaded
check gpu-in-describe 5 grep -qiE 'cuda|gpu' "$logs/describe.log"
check conformance 150 "$bin/conformance_llama"
check calibrate 90 "$bin/modeld" calibrate "$model"
check demo 120 "$bin/modeld" demo --model "$model" --text "$text"

echo
cat "$logs/describe.log"
[ ! -f "$logs/demo.log" ] || tail -n 40 "$logs/demo.log"
echo "$failures checks failed; logs in $logs"
exit "$failures"
