#!/usr/bin/env python3
"""Tests of the scripts: the tidy test finds each kind of fault, ./dev answers for itself, downloads are checked."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import tidy_test  # noqa: E402

GOOD_HEADER = "// What it promises.\n#pragma once\nint f();\n"


def complaints(name, text):
    return [message for _, message in tidy_test.check_file(name, text)]


def run(*command, cwd="/", **environment):
    return subprocess.run(command, cwd=cwd, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60)


class TidyFindsFaults(unittest.TestCase):
    def expect(self, name, text, part):
        found = complaints(name, text)
        self.assertEqual(len(found), 1, f"{name}: {found}")
        self.assertIn(part, found[0])

    def test_good_files_pass(self):
        self.assertEqual(complaints("src/base/a.h", GOOD_HEADER), [])
        self.assertEqual(complaints("src/plan/a.cc", '#include "stream/block.h"\n#include <vector>\n'), [])

    def test_sizes(self):
        self.expect("src/base/a.cc", "int a;\n" * 501, "501 lines")
        self.assertEqual(complaints("src/base/a_test.cc", "int a;\n" * 800), [])
        self.expect("src/base/a_test.cc", "int a;\n" * 801, "801 lines")
        self.expect("src/base/a.h", GOOD_HEADER + "int a;\n" * 198, "201 lines")
        self.expect("src/base/a.cc", "//" + "x" * 119 + "\n", "121 columns")

    def test_names(self):
        for name in ("src/base/utils.cc", "src/base/string_util.cc", "src/common/a.md", "scripts/cache-manager.sh"):
            self.expect(name, "\n", "noun")
        self.expect("src/base/HotSet.cc", "\n", "snake_case")

    def test_words_and_paths(self):
        self.expect("src/base/a.cc", "// TO" + "DO: later\n", "unfinished")
        self.expect("README.md", "see /wo" + "rk/x\n", "one machine")
        self.expect("src/base/a.cc", 'open("/ro' + 'ot/x");\n', "one machine")
        self.expect("src/base/a.cc", "int a; \n", "white space")
        self.expect("src/base/a.cc", "int a;", "line end")

    def test_headers(self):
        self.expect("src/base/a.h", "#pragma once\nint a;\n", "opens with a comment")
        self.expect("src/base/a.h", "// Text.\n#include <map>\n#pragma once\n", "#pragma once")

    def test_arrows_point_down(self):
        self.expect("src/plan/a.cc", '#include "session/session.h"\n', "must not include src/session")
        self.expect("src/recall/a.cc", '#include "engine/engine.h"\n', "must not include src/engine")
        self.expect("src/engine/llama/a.cc", '#include "engine/scripted/open.h"\n', "src/engine/scripted")
        self.expect("src/session/a.cc", '#include "engine/llama/open.h"\n', "must not include src/engine/llama")
        self.assertEqual(complaints("src/session/a_test.cc", '#include "engine/scripted/open.h"\n'), [])
        self.assertEqual(complaints("src/cli/main.cc", '#include "engine/llama/open.h"\n'), [])
        self.expect("src/cli/ask.cc", '#include "engine/llama/open.h"\n', "must not include src/engine/llama")
        self.expect("src/attic/a.cc", "int a;\n", "in no layer")

    def test_layers_have_no_circle(self):
        done = set()
        while len(done) < len(tidy_test.LAYERS):
            ready = {name for name, below in tidy_test.LAYERS.items() if name not in done and below <= done}
            self.assertTrue(ready, f"a circle among {set(tidy_test.LAYERS) - done}")
            done |= ready


class Dev(unittest.TestCase):
    def test_help_lists_every_command(self):
        source = (ROOT / "dev").read_text()
        cases = source[source.index("\ncase $command in"):]
        commands = re.findall(r"^  ([a-z-]+)(?: \|[^)]*)?\)", cases, re.MULTILINE)
        self.assertGreaterEqual(len(commands), 10)
        shown = run(str(ROOT / "dev"), "help")
        self.assertEqual(shown.returncode, 0)
        for command in commands:
            self.assertRegex(shown.stdout, rf"(?m)^  {command} ")

    def test_unknown_command_is_refused_with_status_2(self):
        answer = run(str(ROOT / "dev"), "frobnicate")
        self.assertEqual(answer.returncode, 2)
        self.assertIn("no command 'frobnicate'", answer.stderr)
        self.assertIn("Usage:", answer.stderr)


class Engine(unittest.TestCase):
    def test_a_wrong_prefix_is_refused_by_name(self):
        answer = run(str(ROOT / "scripts/engine.sh"), MODELD_LLAMA_PREFIX="/nonexistent", MODELD_LLAMA_SOURCE="/")
        self.assertEqual(answer.returncode, 1)
        self.assertIn("MODELD_LLAMA_PREFIX='/nonexistent'", answer.stderr)
        self.assertEqual(answer.stdout, "")


class Models(unittest.TestCase):
    def test_a_foreign_file_from_the_index_is_not_used(self):
        with tempfile.TemporaryDirectory() as folder:
            tools = pathlib.Path(folder, "tools")
            tools.mkdir()
            # A checksum program that sees another file than the pinned one, and a pip that downloads in no time.
            fake = tools / "sha256sum"
            fake.write_text("#!/bin/sh\necho 0000 \"$1\"\n")
            fake.chmod(0o755)
            script = (f"set -eu; root='{ROOT}'; . \"$root/scripts/prelude.sh\"; find_pip() {{ python=true; }}; "
                      f"touch '{folder}/a.whl'; pypi '{folder}' a.whl 1234 a==1")
            answer = run("sh", "-c", script, PATH=f"{tools}:{os.environ['PATH']}", HOME=folder)
            self.assertEqual(answer.returncode, 1)
            self.assertIn("its sha256 is not 1234; not used", answer.stderr)

    def test_an_unknown_model_is_refused(self):
        answer = run(str(ROOT / "scripts/models.sh"), "gpt")
        self.assertEqual(answer.returncode, 1)
        self.assertIn("there are: smollm2 gemma3 minilm", answer.stderr)


if __name__ == "__main__":
    unittest.main()
