#!/bin/sh
# Installs the Debian packages that a purpose needs, and only those that are missing.
# Usage: scripts/packages.sh build|lint|sanitize...    MODELD_SKIP_PACKAGES=1 leaves packages to you.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/scripts/prelude.sh"

[ -z "${MODELD_SKIP_PACKAGES:-}" ] || exit 0

wanted=
for purpose; do
  case $purpose in
    build) wanted="$wanted g++ cmake ninja-build ccache git ca-certificates python3 python3-pip unzip pkg-config
      libfmt-dev libexpected-dev nlohmann-json3-dev libcli11-dev libssl-dev libxxhash-dev libhwy-dev libuchardet-dev
      libsqlitecpp-dev libsqlite3-dev libgtest-dev librapidcheck-dev libbenchmark-dev" ;;
    text) wanted="$wanted bible-kjv bible-kjv-text" ;;
    lint) wanted="$wanted clang-format-19 clang-tidy-19 shellcheck" ;;
    sanitize) wanted="$wanted clang-19 libclang-rt-19-dev" ;;
    *) die "packages.sh: unknown purpose '$purpose'; there are: build text lint sanitize" ;;
  esac
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  die "this is not a Debian system, so packages cannot be installed here. Install what these packages hold, then set" \
    "MODELD_SKIP_PACKAGES=1: $wanted"
fi

missing=
for package in $wanted; do
  # shellcheck disable=SC2016 # dpkg's own placeholder
  state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) || state=
  [ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

sudo=
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null ||
    die "these packages are missing, and there is no sudo to install them with. As root: apt-get install$missing"
  sudo=sudo
  # Without a terminal nobody can answer a password prompt: fail at once instead of hanging.
  [ -t 0 ] || sudo="sudo -n"
fi

mkdir -p "$cache" || die "cannot write to $cache; set XDG_CACHE_HOME to a folder that can be written."
log=$cache/packages.log
# shellcheck disable=SC2086 # a list
set -- $missing
say "Installing $# Debian packages (a minute or two; log: $log):$missing"
# shellcheck disable=SC2024 # the log is ours, not root's
if ! { $sudo apt-get update -qq &&
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
    -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "$@"; } >"$log" 2>&1 </dev/null; then
  tail -n 15 "$log" >&2
  die "apt-get could not install the packages (its last words are above). By hand, as root: apt-get install$missing"
fi
say "Installed."
