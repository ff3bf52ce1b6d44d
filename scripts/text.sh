#!/bin/sh
# Makes sure that the demonstration's text is in the cache, and prints its path: the King James Bible of Debian's
# package bible-kjv-text, written out with its own program, a heading for each chapter and a line for each verse.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/scripts/prelude.sh"

text=$cache/texts/bible-kjv.txt
if [ ! -f "$text" ]; then
  command -v bible >/dev/null || die "there is no program 'bible'; run ./dev setup (Debian package bible-kjv)."
  mkdir -p "$cache/texts"
  # -l: no line breaks within a verse. Pretty-printed, a chapter opens with "Genesis 1" between blank lines.
  (cd / && bible -l10000 'Gen1:1-Rev22:21' </dev/null) |
    awk '/^  *[0-9]+ / { verse = $1; sub(/^  *[0-9]+ /, ""); print chapter ":" verse " " $0; next }
         NR > 1 { print } NF { chapter = $NF }' >"$text.unfinished"
  verses=$(grep -c '^[0-9]*:[0-9]* ' "$text.unfinished" || true)
  [ "$verses" -eq 31102 ] || die "expected 31102 verses from the program 'bible', got $verses; is the disk full?"
  mv "$text.unfinished" "$text"
fi
printf '%s\n' "$text"
