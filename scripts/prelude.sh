# Sourced by the other scripts, after `set -eu`: words to the user, the cache, downloads with a checksum.
# REQUIRES: $root is the repository's root.
# shellcheck shell=sh disable=SC2034,SC2154
. "$root/scripts/versions"

cache=${XDG_CACHE_HOME:-${HOME:?HOME is not set: set it, or XDG_CACHE_HOME}/.cache}/modeld

# Progress goes to standard error, so that what a script answers on standard output can be read by another.
say() { printf '%s\n' "$*" >&2; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# free_kb DIR: kilobytes that may still be written below DIR.
free_kb() { df -Pk "$1" | awk 'NR == 2 { print $4 }'; }

# require_free_kb DIR KB WHAT: stops before work that would fill the disk.
require_free_kb() {
  free=$(free_kb "$1")
  [ "$free" -ge "$2" ] || die "$3 needs $(($2 / 1024)) MB in $1, and $((free / 1024)) MB are free." \
    "Free some space, or set XDG_CACHE_HOME to a folder on another disk; nothing was changed."
}

# is_file FILE SHA256: whether FILE is there and has that checksum.
is_file() { [ -f "$1" ] && [ "$(sha256sum "$1" | cut -d' ' -f1)" = "$2" ]; }

# The Python that has pip: Debian's own first, since a version manager's may lack it.
find_pip() {
  for python in /usr/bin/python3 python3; do
    if "$python" -m pip --version >/dev/null 2>&1; then return 0; fi
  done
  die "no python3 with pip was found; install python3 and python3-pip."
}

# pypi DIR FILE SHA256 PACKAGE==VERSION [pip options]: puts FILE, checked, into DIR.
pypi() {
  pypi_dir=$1 pypi_file=$2 pypi_sha=$3 pypi_what=$4
  shift 4
  find_pip
  quiet=--quiet
  [ -t 2 ] && quiet=
  # shellcheck disable=SC2086 # $quiet is one option or none
  "$python" -m pip download $quiet --disable-pip-version-check --no-deps --dest "$pypi_dir" "$@" "$pypi_what" >&2 ||
    die "could not download $pypi_what from PyPI (see pip's message above): check the network, the proxy and the free" \
      "space in $pypi_dir, then run this again."
  is_file "$pypi_dir/$pypi_file" "$pypi_sha" ||
    die "$pypi_what: $pypi_file is missing or its sha256 is not $pypi_sha; not used. Run this again; if it stays so," \
      "the package index serves something else than what scripts/versions pins."
}

# one_at_a_time NAME: waits for another run that makes the same thing. The lock ends with this process.
one_at_a_time() {
  mkdir -p "$cache/locks" || die "cannot write to $cache; set XDG_CACHE_HOME to a folder that can be written."
  exec 9>"$cache/locks/$1"
  flock -n 9 || {
    say "Waiting for another run that prepares $1 ..."
    flock 9
  }
}
