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


    def test_the_whole_evaluation_is_refused_with_arguments_before_anything_is_built(self):
        answer = run(str(ROOT / "dev"), "eval-full", "--tokens", "4096")
        self.assertEqual(answer.returncode, 2)
        self.assertIn("eval-full takes no arguments", answer.stderr)


class EvalPresets(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.results = self.folder / "results with a space"

    def evaluate(self, preset, status=0):
        """Runs a preset with a program that writes down its arguments; gives the arguments of each run."""
        said = self.folder / "said"
        program = self.folder / "modeld"
        program.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" . >>'{said}'\nexit {status}\n")
        program.chmod(0o755)
        answer = run(str(ROOT / "scripts/eval.sh"), preset, str(program), str(self.results), "/the/code",
                     "--model", "m.gguf", "--text", "a text.txt")
        runs = said.read_text().split("\n.\n")[:-1] if said.exists() else []
        return answer, [one.split("\n") for one in runs]

    def check(self, arguments, name):
        self.assertEqual(arguments[:3], ["eval", "--output", str(self.results / name)])
        options = [a for a in arguments if a.startswith("--")]
        self.assertEqual(len(options), len(set(options)), "the program refuses an option that comes twice")
        self.assertEqual(arguments[arguments.index("--text") + 1], "a text.txt")
        libraries = sorted(pathlib.Path("/usr/lib").glob("python3.*/ast.py"), key=lambda p: int(p.parts[3][8:]))
        self.assertEqual("--python" in options, bool(libraries))
        if libraries:
            self.assertEqual(arguments[arguments.index("--python") + 1], str(libraries[-1].parent))

    def test_the_short_one_is_one_run_and_ends_with_its_report(self):
        answer, runs = self.evaluate("short")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertEqual(len(runs), 1)
        self.check(runs[0], "16k")
        self.assertNotIn("--code", runs[0])
        self.assertEqual(answer.stderr.splitlines()[-1], f"Report: {self.results}/16k/report.md")

    def test_the_whole_is_two_runs_in_folders_of_their_own(self):
        answer, runs = self.evaluate("full")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertEqual(len(runs), 2)
        for arguments, name in zip(runs, ("64k", "256k")):
            self.check(arguments, name)
            self.assertIn(f"Report: {self.results}/{name}/report.md", answer.stderr)
        self.assertEqual(runs[0][runs[0].index("--code") + 1], "/the/code")
        self.assertIn("Report: ", answer.stderr.splitlines()[-1])

    def test_a_run_that_fails_ends_it_with_its_status_and_names_no_report(self):
        answer, runs = self.evaluate("full", status=4)
        self.assertEqual(answer.returncode, 4)
        self.assertEqual(len(runs), 1)
        self.assertNotIn("Report:", answer.stderr)

    def test_an_unknown_preset_is_refused(self):
        answer, runs = self.evaluate("long")
        self.assertEqual(answer.returncode, 1)
        self.assertIn("there are short and full", answer.stderr)
        self.assertEqual(runs, [])


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
