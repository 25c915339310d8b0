"""serve --record and lathe replay."""

import concurrent.futures
import dataclasses
import json
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import time
import unittest

import chain_model
from support import BIN, Server

import cases
import gguf_file
import make_seeded

PROMPTS = ["alpha beta", "x", "One two three four five six seven", "y" * 120]


def write_model(path: pathlib.Path):
    """A two-layer model of random weights: answers differ with everything."""
    base = next(case for case in cases.ALL if case.name == "llama-gqa")
    case = dataclasses.replace(base, layers=2, weights="q8_0", head_size=32)
    metadata = make_seeded.metadata(case)
    template = ("tokenizer.chat_template", gguf_file.STRING, chain_model.TEMPLATE)
    gguf_file.write(path, metadata + [template], make_seeded.tensors(case, 1))


class ReplayTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="lathe-replay-")
        cls.addClassCleanup(folder.cleanup)
        cls.home = pathlib.Path(folder.name)
        cls.model = cls.home / "tiny.gguf"
        write_model(cls.model)
        cls.file = cls.home / "answers.jsonl"
        cls.record(cls.file)

    @classmethod
    def record(cls, file, *options):
        """Serves a mix of requests, many at a time."""
        server = Server(cls.model, "--record", file, *options, home=cls.home)
        chance = random.Random(1)
        bodies = [
            {
                "prompt": chance.choice(PROMPTS),
                "max_tokens": chance.randrange(1, 40),
                "temperature": chance.choice([0, 0.8, 1.3]),
                "top_p": chance.choice([1, 0.9]),
                "presence_penalty": chance.choice([0, 0.5]),
                "n": chance.choice([1, 1, 3]),
                "logit_bias": chance.choice([{}, {"7": -100, "9": 2.5}]),
                "stop": chance.choice([None, ["e"], ["a", "b"]]),
            }
            for _ in range(30)
        ]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            asked = [
                pool.submit(server.request, "/v1/completions", body) for body in bodies
            ]
        statuses = {future.result()[0] for future in asked}
        assert statuses == {200}, statuses
        assert server.stop() == 0
        cls.answers = sum(body["n"] for body in bodies)

    def replay(self, *options, file=None):
        environment = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("LATHE_", "XDG_"))
        }
        return subprocess.run(
            [BIN / "lathe", "replay", file or self.file, *map(str, options)],
            env={**environment, "HOME": str(self.home)},
            capture_output=True,
            text=True,
            timeout=240,
        )

    def replayed(self, *options, file=None) -> dict:
        result = self.replay(*options, "--json", file=file)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def changed(self, change) -> pathlib.Path:
        """A recording in which `change` was made to the parsed lines."""
        lines = [json.loads(line) for line in self.file.read_text().splitlines()]
        change(lines)
        path = self.home / "changed.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    def test_other_batches_and_threads_give_the_same_bits(self):
        for batch, threads in ((1, 1), (3, 2), (32, 4)):
            report = self.replayed("--batch", batch, "--threads", threads)
            self.assertEqual(report["answers"] + report["unchecked"], self.answers)
            self.assertEqual(report["different"], 0)
            self.assertEqual(report["batch"], batch)
            self.assertGreater(report["tokens"], 200)

    def test_the_first_difference_is_named(self):
        def change(lines):
            for number in (9, 4):
                while len(lines[number]["answer"]) < 2:
                    number += 1
                line = lines[number]
                line["answer"][1] = (line["answer"][1] + 1) % 512
            self.line, self.number = line, number + 1

        path = self.changed(change)
        result = self.replay("--json", file=path)
        self.assertEqual(result.returncode, 1)
        found = json.loads(result.stdout)["first_difference"]
        right = (self.line["answer"][1] - 1) % 512
        self.assertEqual(found["line"], self.number)
        self.assertEqual(found["request_id"], self.line["request_id"])
        self.assertEqual(found["position"], len(self.line["prompt"]) + 1)
        self.assertEqual(found["expected"], self.line["answer"][1])
        self.assertEqual(found["got"], right)
        self.assertRegex(
            result.stderr,
            rf"request {self.line['request_id']}.*expected token "
            rf"{found['expected']}, got token {right}; 2 answers in all",
        )

    def test_another_engine_or_layer_is_refused(self):
        def other_engine(lines):
            lines[3]["engine"] = "0" * 64

        result = self.replay(file=self.changed(other_engine))
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, "line 4 was recorded with engine 0000")
        result = self.replay("--isa", "generic")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, "was recorded (with|on)")

    def test_salts_and_texts_are_not_recorded(self):
        line = json.loads(self.file.read_text().splitlines()[0])
        self.assertNotIn("prompt_text", line)
        self.assertNotIn("alpha", self.file.read_text())

    def test_text_is_recorded_on_request(self):
        file = self.home / "texts.jsonl"
        self.record(file, "--record-text")
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        self.assertEqual(len(lines), self.answers)
        self.assertLessEqual({line["prompt_text"] for line in lines}, set(PROMPTS))
        self.assertTrue(any(line["answer_text"] for line in lines))

    def test_a_crash_costs_no_earlier_answer(self):
        file = self.home / "crash.jsonl"
        server = Server(self.model, "--record", file, home=self.home)
        body = {"prompt": "x", "max_tokens": 8, "temperature": 1}
        for _ in range(5):
            server.request("/v1/completions", body)
        while file.read_text().count("\n") < 5:
            time.sleep(0.01)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        server.log.close()
        with file.open("a") as torn:
            torn.write('{"time":"2025')
        result = self.replay("--json", file=file)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout)["torn_lines"], [6])
        self.assertRegex(result.stderr, "line 6: cut off")

    def test_isa_of_the_server_is_found(self):
        file = self.home / "generic.jsonl"
        self.record(file, "--isa", "generic")
        self.assertEqual(self.replayed(file=file)["target"], "cpu:generic")

    def test_no_recording_is_an_error(self):
        result = self.replay(file=self.model)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, "holds no recorded answer")
