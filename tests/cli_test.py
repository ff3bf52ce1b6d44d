"""What the command line says when something is wrong, and what its JSON holds when nothing is.

Usage: cli_test.py MODELD [MODEL]. Without MODEL only what needs no model is checked. Each failing case: one line on
stderr "modeld: <code>: <sentence>", the same as JSON on stdout with --json, and the code's exit status.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

MODELD = ""
MODEL = ""
USER, MODEL_STATUS, CAPACITY, CANCELLED = 2, 3, 4, 130
NUMBERS = ["prompt_tokens", "reused_tokens", "computed_tokens", "attended_tokens", "cold_tokens", "dropped_tokens",
           "recomputed_tokens", "ttft_ms", "prefill_tokens_per_second", "decode_ms_per_token", "kv_bytes_device",
           "kv_bytes_host", "index_bytes", "predicted_seconds"]


def run(*arguments, stdin=b"", timeout=600):
    command = [MODELD, *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=timeout, check=False)


class Case(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content)
        return path

    def refused(self, code, status, *arguments, numbers=(), stdin=b""):
        """Runs with --json and checks all three forms of the error; returns its sentence."""
        done = run(*arguments, "--json", stdin=stdin)
        stderr = done.stderr.decode()
        self.assertEqual(done.returncode, status, stderr)
        last = stderr.strip().splitlines()[-1]
        self.assertTrue(last.startswith(f"modeld: {code}: "), stderr)
        # One object and nothing else: an error alone, or a description that holds it.
        error = json.loads(done.stdout.decode())["error"]
        self.assertEqual(error["code"], code)
        self.assertEqual(last, f"modeld: {code}: {error['message']}")
        self.assertGreater(len(error["message"].split()), 4, error["message"])
        self.assertTrue(error["message"].endswith("."), error["message"])
        for name in numbers:
            self.assertIn(name, error["numbers"])
        return error["message"]


class WithoutAModel(Case):
    def ask(self, *more):
        return ("ask", "--model", self.folder / "none.gguf", "--file", __file__, *more)

    def test_help_is_enough_to_get_on(self):
        done = run("--help")
        self.assertEqual(done.returncode, 0)
        for command in ("ask", "describe", "calibrate", "demo", "eval", "bench"):
            self.assertIn(command, done.stdout.decode())
            self.assertEqual(run(command, "--help").returncode, 0, command)

    def test_unknown_option_and_values(self):
        self.refused("bad_argument", USER, *self.ask("--no-such-option", "Why?"))
        self.refused("bad_argument", USER, *self.ask("--kv-type", "q9", "Why?"))
        self.refused("bad_argument", USER, *self.ask("--hot", "-4", "Why?"))
        self.refused("bad_argument", USER, *self.ask("--host-budget", "much", "Why?"))
        self.refused("bad_argument", USER, *self.ask("--context", "wide", "Why?"))
        self.refused("bad_argument", USER, *self.ask("--seed", "-1", "Why?"))
        self.refused("bad_argument", USER, *self.ask("--seed", "9" * 30, "Why?"))
        self.refused("bad_argument", USER, *self.ask("--temperature", "nan", "Why?"))
        self.assertIn("is not a whole number between 1 and",
                      self.refused("bad_argument", USER, *self.ask("--hot", "4k", "Why?")))
        self.assertIn("f16, q4_0, q8_0", self.refused("bad_argument", USER, *self.ask("--kv-type", "q9", "Why?")))
        self.assertIn("like this", self.refused("bad_argument", USER, *self.ask("Why", "like", "this")))
        self.assertIn("no-such-command", self.refused("bad_argument", USER, "no-such-command"))
        self.refused("bad_argument", USER)

    def test_question_missing_or_double(self):
        questions = self.file("questions", b"Why?\n")
        self.refused("bad_argument", USER, *self.ask())
        self.refused("bad_argument", USER, *self.ask("--questions", questions, "Why?"))
        self.refused("file_missing", USER, *self.ask("--questions", self.folder / "none"))
        self.refused("text_empty", USER, *self.ask("--questions", self.file("blank", b"\n \n")))
        self.refused("bad_argument", USER, "ask", "--model", "m.gguf", "Why?")
        self.refused("bad_argument", USER, *self.ask("--questions", self.folder))
        self.refused("text_binary", USER, *self.ask("--questions", self.file("binary", bytes(range(256)) * 16)))
        self.refused("bad_argument", USER, *self.ask("--questions", "/dev/zero"))

    def test_evaluation_of_what_is_not_there(self):
        nothing = self.folder / "none"
        self.refused("file_missing", USER, "eval", "--model", nothing, "--text", nothing)
        self.refused("file_missing", USER, "eval", "--model", nothing, "--text", __file__)
        self.refused("bad_argument", USER, "eval", "--model", nothing, "--tokens", "0")

    def test_output_that_cannot_be_written_is_no_success(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([MODELD, "--help"], stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"modeld: io_failed: ", done.stderr)

    def test_requantize_replaces_nothing_unasked(self):
        there = self.file("there.gguf", b"mine")
        self.assertEqual(run("requantize", self.folder / "none.gguf", there).returncode, USER)
        self.assertEqual(there.read_bytes(), b"mine")
        self.assertEqual(run("requantize", self.folder / "none.gguf", "/dev/null", "--force").returncode, USER)

    def test_model_missing_or_no_model(self):
        for command in (("describe",), ("calibrate",)):
            self.refused("file_missing", USER, *command, self.folder / "none.gguf")
        self.refused("file_missing", USER, *self.ask("Why?"))
        text = self.file("text.gguf", b"This is no model at all.\n" * 9)
        self.refused("model_not_gguf", MODEL_STATUS, "describe", text)
        done = run("describe", self.file("empty.gguf", b""))
        self.assertEqual(done.returncode, MODEL_STATUS, done.stderr)


class WithAModel(Case):
    FACT = "The access code for Lisbon is 5520."

    def ask(self, path, *more):
        return ("ask", "--model", MODEL, "--file", path, *more)

    def text(self, lines=2000, at=700):
        filler = [f"Line {i} tells of the weather on day {i * 7 % 365} and of the harvest that came after it."
                  for i in range(lines)]
        filler.insert(at, self.FACT)
        return self.file("text.txt", "\n".join(filler).encode())

    def test_model_cut_short(self):
        with open(MODEL, "rb") as model:
            cut = self.file("cut.gguf", model.read(20_000_000))
        self.refused("model_truncated", MODEL_STATUS, "describe", cut)
        self.refused("model_truncated", MODEL_STATUS, "ask", "--model", cut, "--file", __file__, "Why?")

    def test_texts_that_are_none(self):
        self.refused("file_missing", USER, *self.ask(self.folder / "none", "Why?"))
        self.refused("text_empty", USER, *self.ask(self.file("empty", b""), "Why?"))
        self.refused("text_binary", USER, *self.ask(self.file("binary", bytes(range(256)) * 16), "Why?"))
        bad = "Grüße aus Köln, wo die Straße endet.\n".encode() * 20 + b"\xff\xfe\xc3(\n"
        self.assertIn("byte", self.refused("text_encoding", USER, *self.ask(self.file("bad", bad), "Why?")))
        (self.folder / "pictures").mkdir()
        (self.folder / "pictures" / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(64))
        self.refused("text_empty", USER, *self.ask(self.folder / "pictures", "Why?"))
        self.refused("text_empty", USER, *self.ask("-", "Why?"), stdin=b"")

    def test_huge_file_is_announced_and_refused_before_it_is_read(self):
        path = self.folder / "huge"
        with open(path, "wb") as huge:
            huge.truncate(1 << 30)
        begin = time.monotonic()
        done = run(*self.ask(path, "--host-budget", "1G", "Why?"))
        self.assertLess(time.monotonic() - begin, 20.0)
        self.assertEqual(done.returncode, USER)
        stderr = done.stderr.decode()
        self.assertIn("1.0 GB", stderr.splitlines()[0])
        self.assertIn("tokens", stderr.splitlines()[0])
        self.refused("text_too_large", USER, *self.ask(path, "--host-budget", "1G", "Why?"),
                     numbers=("text_bytes", "tokens", "needed_bytes", "host_budget_bytes"))

    def test_hot_set_too_small_or_too_large(self):
        text = self.text()
        self.refused("hot_too_small", CAPACITY, *self.ask(text, "--hot", "64", "Why?"))
        self.refused("hot_too_large", CAPACITY, *self.ask(text, "--hot", "1000000", "Why?"))
        self.refused("hot_too_large", CAPACITY, "describe", MODEL, "--hot", "1000000")

    def test_question_longer_than_the_hot_set(self):
        words = " ".join(f"word{i}" for i in range(3000))
        self.refused("question_too_long", USER, *self.ask(self.text(), "--hot", "1024", words))

    def test_overflow_in_exact_mode(self):
        self.refused("context_overflow", USER, *self.ask(self.text(), "--context", "exact", "--hot", "2048", "Why?"))

    def test_describe_is_the_same_from_the_loaded_engine(self):
        answers = [json.loads(run("describe", MODEL, "--json", *more).stdout) for more in ((), ("--loaded",))]
        for answer in answers:
            self.assertGreater(len(answer["layers"]), 0)
            self.assertEqual(set(answer["kv_types"]), {"f16", "q8_0", "q4_0"})
            # What other programs do to free memory between two runs is not the model's.
            for device in answer["devices"]:
                self.assertGreater(device.pop("free_bytes"), 0)
            for fit in answer["kv_types"].values():
                for name in ("device_tokens", "device_usable_bytes", "device_kv_bytes"):
                    self.assertGreater(fit.pop(name), 0)
        self.assertEqual(*answers)

    def test_output_that_cannot_be_written_is_no_success(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([MODELD, "describe", MODEL], stdout=full, stderr=subprocess.PIPE, timeout=60,
                                  check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"modeld: io_failed: ", done.stderr)

    def check_answer(self, answer):
        for name in NUMBERS:
            self.assertIsInstance(answer[name], (int, float), name)
        self.assertEqual(answer["prompt_tokens"], answer["reused_tokens"] + answer["computed_tokens"])
        self.assertEqual(answer["prompt_tokens"],
                         answer["attended_tokens"] + answer["cold_tokens"] + answer["dropped_tokens"])
        self.assertIn(answer["mode"], ("exact", "extended"))
        for name in ("ingest", "probe", "scoring", "admission", "question", "decode"):
            self.assertGreaterEqual(answer["seconds"][name], 0.0)
        for passage in answer["retrieved"]:
            self.assertEqual(set(passage), {"start", "end", "score", "source", "lines", "origin"})
            self.assertLess(passage["start"], passage["end"])
            self.assertLessEqual(passage["lines"][0], passage["lines"][1])

    def test_questions_of_one_stream(self):
        questions = self.file("questions", b"What is the access code for Lisbon?\nWhat does line 40 tell of?\n")
        text = self.text(lines=160, at=60)
        done = run(*self.ask(text, "--questions", questions, "--context", "focus", "--hot", "2048",
                             "--answer-tokens", "24", "--quiet"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, b"")
        answers = [json.loads(line) for line in done.stdout.decode().splitlines()]
        self.assertEqual(len(answers), 2)
        for answer in answers:
            self.check_answer(answer)
            self.assertEqual(answer["mode"], "extended")
        lisbon = [p for p in answers[0]["retrieved"] if p["lines"][0] <= 61 <= p["lines"][1]]
        self.assertTrue(lisbon, answers[0]["retrieved"])
        self.assertEqual(lisbon[0]["source"], str(text))

    def test_a_pass_over_the_whole_text(self):
        done = run(*self.ask(self.text(lines=160, at=60), "--map", "--context", "focus", "--hot", "2048",
                             "--answer-tokens", "24", "--json", "What is the access code for Lisbon?"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"A pass over the whole text: ", done.stderr)
        answer = json.loads(done.stdout)
        self.check_answer(answer)
        self.assertEqual(answer["attended_tokens"], answer["prompt_tokens"])
        parts = answer["map"]["parts"]
        self.assertGreaterEqual(len(parts), 2)
        for before, after in zip(parts, parts[1:]):
            self.assertEqual(before["end"], after["start"])
        self.assertEqual(answer["map"]["read_tokens"], parts[-1]["end"] - parts[0]["start"])

    def test_plain_answer_from_standard_input(self):
        done = run(*self.ask("-", "--answer-tokens", "8", "What is the code?"), stdin=(self.FACT + "\n").encode())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("tokens", done.stdout.decode())
        self.assertIn("exact mode", done.stdout.decode())

    def test_evaluation_prints_one_object_and_leaves_report_and_picture(self):
        out = self.folder / "out"
        arguments = ("eval", "--model", MODEL, "--text", self.text(lines=400), "--tokens", "2048", "--hot", "1024",
                     "--kinds", "single", "--questions", "4", "--free-questions", "1", "--passkeys", "0",
                     "--modes", "fresh", "ours", "--output", out, "--json")
        first, again = (run(*arguments) for _ in range(2))
        self.assertEqual(first.returncode, 0, first.stderr)
        scores = json.loads(first.stdout)
        # The second time all comes from the folder.
        self.assertEqual(json.loads(again.stdout)["tasks"], scores["tasks"])
        self.assertEqual(scores["tokens"], 2048)
        self.assertEqual(scores["report"], str(out / "report.md"))
        modes = scores["tasks"]["prose.single"]
        self.assertEqual(set(modes), {"fresh", "ours"})
        for one in modes.values():
            self.assertEqual(one["n"], 4)
            self.assertEqual(one["free"]["n"], 1)
            self.assertLessEqual(one["interval"][0], one["score"])
        self.assertEqual(set(modes["ours"]["recall"]), {"1", "4", "8", "16"})
        self.assertIn("(report.svg)", (out / "report.md").read_text())
        picture = ElementTree.parse(out / "report.svg").getroot()
        self.assertEqual(picture.tag, "{http://www.w3.org/2000/svg}svg")
        points = [g for g in picture.iter("{http://www.w3.org/2000/svg}g") if g.get("class") == "point"]
        self.assertEqual(len(points), 2)

    def test_first_interrupt_stops_cleanly(self):
        command = [MODELD, *map(str, self.ask(self.text(lines=6000), "--hot", "2048", "Why?"))]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            for line in process.stderr:
                if b" blocks, " in line:  # the plan is stated: reading begins
                    break
            time.sleep(2.0)
            begin = time.monotonic()
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=60)
            self.assertLess(time.monotonic() - begin, 10.0)
        self.assertEqual(process.returncode, CANCELLED, stderr)
        self.assertIn(b"Stopped. ", stderr)
        self.assertIn(b"modeld: cancelled: ", stderr)


if __name__ == "__main__":
    MODELD = os.path.abspath(sys.argv[1])
    if len(sys.argv) > 2:
        MODEL = os.path.abspath(sys.argv[2])
        suite = unittest.defaultTestLoader.loadTestsFromTestCase(WithAModel)
    else:
        suite = unittest.defaultTestLoader.loadTestsFromTestCase(WithoutAModel)
    sys.exit(0 if unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful() else 1)
