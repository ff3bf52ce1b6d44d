"""Sessions of the real program: begun, killed, gone on with, branched, copied, edited, removed.

Usage: sessions_test.py MODELD [MODEL]. Without MODEL only what needs no model is checked.
"""
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

MODELD = ""
MODEL = ""
USER, CAPACITY, OTHER = 2, 4, 1
KILLS = 20
LICENCES = Path("/usr/share/common-licenses")


def run(*arguments, timeout=600, **options):
    return subprocess.run([MODELD, *map(str, arguments)], capture_output=True, timeout=timeout, check=False, **options)


class Case(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.state = self.folder / "state"

    def refused(self, code, status, *arguments):
        done = run(*arguments)
        last = done.stderr.decode().strip().splitlines()[-1]
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertTrue(last.startswith(f"modeld: {code}: "), last)
        return last

    def sessions(self, verb, *more):
        return ("sessions", verb, "--state", self.state, *more)

    def listed(self):
        done = run(*self.sessions("list", "--json"))
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)


class WithoutAModel(Case):
    def test_an_empty_directory_is_made_and_listed(self):
        self.assertEqual(self.listed()["sessions"], [])
        self.assertEqual(self.state.stat().st_mode & 0o777, 0o700)
        for file in self.state.rglob("*"):
            self.assertEqual(file.stat().st_mode & 0o077, 0, file)
        done = run(*self.sessions("list"))
        self.assertIn(b"--session NAME", done.stdout)

    def test_what_is_not_there_and_names_that_cannot_be(self):
        self.assertIn("sessions list", self.refused("session_missing", USER, *self.sessions("show", "none")))
        self.refused("session_missing", USER, *self.sessions("rm", "none"))
        self.refused("session_missing", USER, *self.sessions("branch", "none", "new"))
        self.refused("session_missing", USER, *self.sessions("export", "none", self.folder / "out"))
        self.assertFalse((self.folder / "out").exists())
        self.refused("file_missing", USER, *self.sessions("import", "none", self.folder / "nowhere"))
        self.refused("bad_argument", USER, *self.sessions("branch", "none", "a\nb"))
        self.refused("bad_argument", USER, *self.sessions("branch", "none", "x" * 201))
        self.refused("bad_argument", USER, "sessions")
        self.refused("bad_argument", USER, "sessions", "burn")

    def test_a_directory_in_use_is_refused(self):
        self.listed()
        with open(self.state / "lock", "rb") as lock:
            holder = subprocess.Popen(["flock", "-n", lock.name, "sleep", "30"])
            try:
                deadline = time.monotonic() + 10
                while run(*self.sessions("list")).returncode == 0 and time.monotonic() < deadline:
                    time.sleep(0.05)
                self.assertIn("--state", self.refused("state_locked", CAPACITY, *self.sessions("list")))
            finally:
                holder.kill()
                holder.wait()

    def test_things_in_the_directorys_place(self):
        (self.folder / "file").write_text("mine")
        self.refused("io_failed", CAPACITY, "sessions", "list", "--state", self.folder / "file")
        self.assertEqual((self.folder / "file").read_text(), "mine")
        (self.folder / "elsewhere").mkdir()
        (self.folder / "link").symlink_to(self.folder / "elsewhere")
        run("sessions", "list", "--state", self.folder / "link")
        self.listed()
        (self.state / "books.sqlite").write_bytes(b"This is no database. " * 400)
        self.refused("state_damaged", OTHER, *self.sessions("list"))

    def test_the_default_place(self):
        environment = {**os.environ, "XDG_STATE_HOME": str(self.folder / "xdg")}
        self.assertEqual(run("sessions", "list", env=environment).returncode, 0)
        self.assertTrue((self.folder / "xdg" / "modeld" / "books.sqlite").exists())
        nowhere = {name: value for name, value in os.environ.items() if name not in ("XDG_STATE_HOME", "HOME")}
        done = run("sessions", "list", env=nowhere)
        self.assertEqual(done.returncode, USER)
        self.assertIn(b"--state", done.stderr)


class WithAModel(Case):
    QUESTION = "What must you do when you convey a covered work?"

    def ask(self, *more, name="book"):
        return ("ask", "--model", MODEL, "--hot", "1024", "--state", self.state, "--session", name, "--answer-tokens",
                "24", "--json", *more)

    def answered(self, *more, name="book"):
        done = run(*self.ask(*more, name=name))
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def text(self):
        path = self.folder / "text.txt"
        path.write_text((LICENCES / "GPL-3").read_text()[:24_000])
        return path

    def verified(self):
        done = run(*self.sessions("verify"))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_killed_again_and_again_it_comes_to_its_end_and_answers_the_same(self):
        text = self.text()
        expected = self.answered("--file", text, self.QUESTION, name="unkilled")
        self.assertEqual(run(*self.sessions("purge")).returncode, 0)
        random.seed(5)
        kills, before = 0, 0
        while kills < KILLS:
            process = subprocess.Popen([MODELD, *map(str, self.ask("--file", text, self.QUESTION))],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                process.wait(timeout=random.uniform(0.2, 5.0))
                self.assertEqual(process.returncode, 0)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                kills += 1
            self.verified()
            found = self.listed()["sessions"]
            now = found[0]["computed_tokens"] if found else 0
            self.assertGreaterEqual(now, before)
            before = now
        answer = self.answered("--file", text, self.QUESTION)
        self.assertEqual(answer["answer"], expected["answer"])
        self.assertEqual([(one["start"], one["end"]) for one in answer["retrieved"]],
                         [(one["start"], one["end"]) for one in expected["retrieved"]])
        again = self.answered(self.QUESTION)
        self.assertEqual(again["answer"], expected["answer"])
        self.assertEqual(again["computed_tokens"] + again["reused_tokens"], again["prompt_tokens"])
        self.assertLess(again["computed_tokens"], 40)

    def test_a_session_is_branched_copied_edited_and_removed(self):
        text = self.text()
        self.assertIn("--file", self.refused("session_missing", USER, *self.ask(self.QUESTION)))
        first = self.answered("--file", text, self.QUESTION)
        tokens = first["prompt_tokens"]

        self.assertEqual(run(*self.sessions("branch", "book", "twin")).returncode, 0)
        self.refused("session_exists", USER, *self.sessions("branch", "book", "twin"))
        disk = self.listed()
        self.assertEqual(sum(one["kv_bytes"] for one in disk["sessions"]), 2 * disk["sessions"][0]["kv_bytes"])
        self.assertLess(disk["kv_bytes"], 1.2 * disk["sessions"][0]["kv_bytes"] + 60_000_000)
        twin = self.answered(self.QUESTION, name="twin")
        self.assertEqual(twin["answer"], first["answer"])
        self.assertLess(twin["computed_tokens"], 40)

        # A file that has changed takes its own place; what comes again of it is not computed.
        content = text.read_text()
        middle = content.index("\n", len(content) // 2)
        text.write_text(content[:middle] + "\nThis line was not here before.\n" + content[middle:])
        edited = self.answered("--file", text, self.QUESTION, name="twin")
        self.assertGreater(edited["reused_after_edit_tokens"], tokens * 0.8)
        self.assertLess(edited["computed_tokens"], 500)
        self.assertEqual(self.answered("--file", text, self.QUESTION, name="twin")["reused_after_edit_tokens"], 0)
        self.assertEqual(self.answered(self.QUESTION)["answer"], first["answer"])

        out = self.folder / "out"
        self.assertEqual(run(*self.sessions("export", "book", out)).returncode, 0)
        self.assertEqual(run(*self.sessions("rm", "book")).returncode, 0)
        self.assertEqual([one["name"] for one in self.listed()["sessions"]], ["twin"])
        self.assertEqual(run(*self.sessions("import", "book", out, "--as", "back")).returncode, 0)
        back = self.answered(self.QUESTION, name="back")
        self.assertEqual(back["answer"], first["answer"])
        self.assertLess(back["computed_tokens"], 40)
        self.assertEqual(run("sessions", "verify", "--state", out).returncode, 0)

        shown = json.loads(run(*self.sessions("show", "back", "--json")).stdout)
        self.assertEqual(len(shown["block_list"]), shown["blocks"])
        self.assertTrue(all(block["tier"] == "disk" for block in shown["block_list"]))
        self.assertTrue(any(block["fetches"] > 0 for block in shown["block_list"]))

        self.verified()
        kv = sorted((self.state / "kv").rglob("*.kv"))
        with open(kv[len(kv) // 2], "r+b") as file:
            file.seek(1000)
            byte = file.read(1)[0]
            file.seek(1000)
            file.write(bytes([byte ^ 1]))
        self.refused("state_damaged", OTHER, *self.sessions("verify"))

        self.assertEqual(run(*self.sessions("purge")).returncode, 0)
        self.assertEqual(self.listed()["sessions"], [])
        self.assertEqual(list((self.state / "kv").rglob("*.kv")), [])
        for file in self.state.rglob("*"):
            if file.is_file():
                self.assertNotIn(b"covered work", file.read_bytes(), file)

    def test_what_was_made_otherwise_is_refused(self):
        text = self.folder / "short.txt"
        text.write_text("The access code for Lisbon is 5520.\n")
        self.answered("--file", text, "What is the access code for Lisbon?")
        said = self.refused("payload_invalid", OTHER, *self.ask("--kv-type", "q8_0", "Why?"))
        self.assertIn("q8_0", said)
        self.answered("What is the access code for Lisbon?")

    def test_a_disk_that_is_full_stops_no_answer(self):
        text = self.text()
        done = run(*self.ask("--file", text, "--disk-budget", "20M", self.QUESTION))
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual(answer["dropped_tokens"], 0)
        self.assertLessEqual(self.listed()["used_bytes"], 21 << 20)
        self.verified()
        # What was given up is computed again.
        self.assertTrue(self.answered("--disk-budget", "20M", self.QUESTION)["answer"])


if __name__ == "__main__":
    MODELD = os.path.abspath(sys.argv[1])
    names = sys.argv[3:]
    if len(sys.argv) > 2:
        MODEL = os.path.abspath(sys.argv[2])
    case = WithAModel if MODEL else WithoutAModel
    loader = unittest.defaultTestLoader
    suite = (unittest.TestSuite(case(name) for name in names) if names else loader.loadTestsFromTestCase(case))
    sys.exit(0 if unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful() else 1)
