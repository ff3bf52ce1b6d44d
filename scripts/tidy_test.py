#!/usr/bin/env python3
"""The tidy test: rules of CONTRIBUTING.md that no compiler checks, over every file that git knows or would add.

Usage: tidy_test.py [ROOT]. Prints FILE:LINE: what is wrong and what to do; exit status 1 if anything is.
"""

import pathlib
import re
import subprocess
import sys
import unicodedata

LINES_MAX = {"header": 200, "test": 800, "source": 500}
COLUMNS_MAX = 120
FORBIDDEN_NAMES = {"util", "utils", "helper", "helpers", "common", "manager", "misc"}
# Paths that exist on one machine only. Written in pieces, so that this file passes its own test.
MACHINE_PATHS = re.compile(r"(?<![\w./])(?:/wo" r"rk/|/tm" r"p/dl\b|/ro" r"ot/|/home/\w)")
UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX)\b")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
CODE = {".h", ".cc"}
TEXT = CODE | {".py", ".sh", ".md", ".txt", ".cmake", ".json", ""}

# Arrows point down only: what each folder of src/ may include besides itself. Folders of engines are named in full;
# "engine" is the contract alone; only the composition root knows engines, and tests choose theirs.
LAYERS = {
    "base": set(),
    "model": {"base"},
    "stream": {"base"},
    "source": {"base"},
    "plan": {"base", "model", "stream"},
    "engine": {"base", "model", "stream"},
    "engine/llama": {"base", "model", "stream", "plan", "engine"},
    "engine/scripted": {"base", "model", "stream", "plan", "engine"},
    "recall": {"base", "model", "stream", "plan"},
    "store": {"base", "model", "stream", "plan", "engine"},
    "needles": {"base"},
    "session": {"base", "model", "stream", "plan", "engine", "recall", "store", "needles"},
    "eval": {"base", "model", "stream", "plan", "engine", "recall", "store", "session", "needles", "source"},
    "bench": {"base", "model", "stream", "plan", "engine", "recall", "store", "session", "needles", "source", "eval"},
    "cli": {"base", "model", "stream", "plan", "engine", "recall", "store", "session", "needles", "source", "eval",
            "bench"},
}
COMPOSITION_ROOT = "src/cli/main.cc"
ENGINES = {"engine/llama", "engine/scripted"}


def columns(line):
    """Columns that a line takes on a screen, as clang-format counts them: marks take none, wide characters two."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in line)
    return len(line) + wide - sum(unicodedata.category(c) in ("Mn", "Me", "Cf") for c in line)


def layer_of(path):
    """The layer that a path below src/ belongs to, or None for src/ itself."""
    parts = pathlib.PurePosixPath(path).parts
    if len(parts) < 2:
        return None
    if len(parts) > 2 and "/".join(parts[:2]) in LAYERS:
        return "/".join(parts[:2])
    return parts[0]


def is_test(name):
    return name.startswith("tests/") or re.search(r"_(test|bench|fixture)\.(h|cc|py)$", name) is not None


def check_layers(name, lines):
    if not name.startswith("src/") or pathlib.PurePosixPath(name).suffix not in CODE:
        return
    mine = layer_of(name[len("src/"):])
    if mine is None:
        return
    if mine not in LAYERS:
        yield 1, f"folder src/{mine} is in no layer: name what it may include in LAYERS of scripts/tidy_test.py"
        return
    for number, line in enumerate(lines, 1):
        found = INCLUDE.match(line)
        theirs = layer_of(found.group(1)) if found else None
        if theirs is None or theirs == mine or theirs not in LAYERS or theirs in LAYERS[mine]:
            continue
        if theirs in ENGINES and (is_test(name) or name == COMPOSITION_ROOT):
            continue
        yield number, f"src/{mine} must not include src/{theirs}: arrows point down only"


def check_header(lines):
    first = next((i for i, line in enumerate(lines) if line.strip()), None)
    if first is None or not lines[first].startswith(("//", "/*")):
        yield 1, "a header opens with a comment that says what it promises"
    code = [i for i, line in enumerate(lines) if line.strip() and not line.startswith(("//", "/*", " *"))]
    if not code or lines[code[0]].strip() != "#pragma once":
        yield (code[0] + 1 if code else 1), "#pragma once comes first after the opening comment"


def check_file(name, text):
    """Yields (line, message) for one file; name is relative to the root, with slashes."""
    path = pathlib.PurePosixPath(name)
    for part in [*path.parts[:-1], path.name.split(".")[0]]:
        for word in {part, *re.split(r"[_-]", part)} & FORBIDDEN_NAMES:
            yield 1, f"'{word}' says nothing about what is inside: name it by its noun"
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    elif lines != [""]:
        yield len(lines), "the last line has no line end"
    for number, line in enumerate(lines, 1):
        if UNFINISHED.search(line):
            yield number, "unfinished work belongs in an issue, not in the file"
        if MACHINE_PATHS.search(line):
            yield number, "a path of one machine: derive it, or take it from the environment"
        if path.suffix in CODE | {".py", ".sh"} and columns(line) > COLUMNS_MAX:
            yield number, f"{columns(line)} columns, at most {COLUMNS_MAX}"
        if line != line.rstrip() and path.suffix != ".md":
            yield number, "white space at the end of the line"
    if path.suffix in CODE | {".py", ".sh"}:
        kind = "test" if is_test(name) else "header" if path.suffix == ".h" else "source"
        if len(lines) > LINES_MAX[kind]:
            yield len(lines), f"{len(lines)} lines, at most {LINES_MAX[kind]} for a {kind}: split it by its nouns"
    if path.suffix == ".h":
        yield from check_header(lines)
    if path.suffix in CODE and not re.fullmatch(r"[a-z0-9_]+\.(h|cc)", path.name):
        yield 1, "file names are snake_case"
    yield from check_layers(name, lines)


def files_of(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            check=True, capture_output=True).stdout.decode()
    for name in sorted(set(listed.split("\0"))):
        path = pathlib.Path(root, name)
        if name and pathlib.PurePosixPath(name).suffix in TEXT and path.is_file() and not path.is_symlink():
            yield name, path


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else str(pathlib.Path(__file__).resolve().parent.parent)
    checked = wrong = 0
    for name, path in files_of(root):
        checked += 1
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            print(f"{name}:1: not UTF-8")
            wrong += 1
            continue
        for line, message in check_file(name, text):
            print(f"{name}:{line}: {message}")
            wrong += 1
    print(f"tidy: {checked} files, {wrong} complaints")
    return 1 if wrong or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
