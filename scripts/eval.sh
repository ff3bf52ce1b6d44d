#!/bin/sh
# Runs a preset of `modeld eval`. Finished cells are kept in the preset's own folder, so a run that was stopped goes on
# where it was. Usage: scripts/eval.sh short|full PROGRAM FOLDER CODE ARGUMENTS...
# PROGRAM is modeld, FOLDER holds the results, CODE is a directory of source code (full only); ARGUMENTS, given to
# every run, name model, embedder and text.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/scripts/prelude.sh"

preset=$1
program=$2
folder=$3
code=$4
shift 4

# The newest Python's own library: what it states itself is asked for.
python=$(for library in /usr/lib/python3.*; do [ ! -f "$library/ast.py" ] || printf '%s\n' "$library"; done |
  sort -V | tail -n 1)

# evaluate NAME ARGUMENTS...: one run, its results in a folder of that name.
evaluate() {
  name=$1
  shift
  if [ -n "$python" ]; then
    set -- "$@" --python "$python"
  else
    say "eval: there is no /usr/lib/python3.*: the questions about Python source are left out."
  fi
  "$program" eval --output "$folder/$name" "$@"
  reports="${reports:-}Report: $folder/$name/report.md
"
}

case $preset in
  # About 15 minutes on two quiet cores with the test model, which reads 300 tokens/s, densely 8k tokens in 85 s:
  #   reading      4 texts (prose, Python, UUIDs, numbers) of 16384 tokens: 4 x 55 s             220 s
  #   ours, fresh  10 tasks (6 kinds of prose, 2 of Python, 1 each of the others) x 12: 120 x 2 s  240 s
  #   truncated    4 windows x 85 s, 10 x 6 questions x 2 s                                      460 s
  # 920 s. Dense reading of 12k tokens would cost another 40 s a text and answers of the same kind.
  short)
    evaluate 16k "$@" --tokens 16384 --questions 12 --free-questions 0 --dense-questions 6 --pairs --passkeys 0 \
      --modes fresh ours truncated --kinds single lookalike paraphrase unrelated number update
    ;;
  # About half a day. 64k, with the kinds that want several sentences, at the speeds above:
  #   reading      6 corpora (prose, code, Python, UUIDs, numbers, filler) x 4 texts and 10 pass keys: 34 x 218 s  2.1 h
  #   ours, fresh  28 tasks x 4 texts x 52 questions x 2 s, and 28 x 4 x 20 free ones x 3 s          5.1 h
  #   the others   first texts only: 3 times 28 x 52 x 1.5 s; dense reading to 16k, 6 x 5 min         2.3 h
  # 256k, 4 corpora (no code, no filler) x 2 texts:
  #   reading      8 x 262144 tokens                                                              1.9 h
  #   ours, fresh  7 tasks x 2 texts x 40 questions x 2 s, and 7 x 2 x 20 free ones x 3 s            0.5 h
  full)
    evaluate 64k "$@" --code "$code" --tokens 65536 --texts 4 --questions 52 --pairs --noise --passkeys 10 \
      --kinds single lookalike paraphrase unrelated number uuid values queries chain update earlier
    evaluate 256k "$@" --tokens 262144 --texts 2 --questions 40 --pairs --passkeys 0 --modes fresh ours \
      --kinds single lookalike paraphrase
    ;;
  *) die "eval: there is no preset '$preset'; there are short and full." ;;
esac
printf '%s' "$reports" >&2
