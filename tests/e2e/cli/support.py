"""What the tests of the lathe program share: a home of their own, a tiny model
with a chat template, and running the program.

To add a test of a command: a method in the file of its topic, which runs the
program with run() and looks at status, stdout and stderr.
"""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(os.environ.get("LATHE_BIN", REPOSITORY / "build/bin"))
LATHE = BIN / "lathe"

sys.path.insert(0, str(REPOSITORY / "tests/golden/seeded"))
import cases  # noqa: E402
import gguf_file  # noqa: E402
import make_seeded  # noqa: E402

CHAT_TEMPLATE = (
    "{% for message in messages %}<|bos|>{{ message.role }}: "
    "{{ message.content }}<|eos|>{% endfor %}"
    "{% if add_generation_prompt %}<|bos|>assistant: {% endif %}"
)
BOS, EOS = cases.VOCABULARY - 4, cases.VOCABULARY - 3


def write_tiny_model(
    path: pathlib.Path, seed: int = 1, template=CHAT_TEMPLATE, weights="q8_0"
):
    """A two-layer model of 512 tokens; another seed, other weights."""
    base = next(case for case in cases.ALL if case.name == "llama-gqa")
    # Attention stores int8 blocks of 32 only if heads are made of them.
    case = dataclasses.replace(base, layers=2, weights=weights, head_size=32)
    metadata = make_seeded.metadata(case)
    if template:
        metadata.append(("tokenizer.chat_template", gguf_file.STRING, template))
    gguf_file.write(path, metadata, make_seeded.tensors(case, seed))


# What engine() keeps, for as long as the tests of one file run.
_kept = tempfile.TemporaryDirectory(prefix="lathe-cli-kept-")


class CliTest(unittest.TestCase):
    """A test with its own home, cache and models directory in self.home."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="lathe-cli-")
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)
        self.environment = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("LATHE_", "XDG_"))
        }
        self.environment.update(
            HOME=str(self.home),
            XDG_CACHE_HOME=str(self.home / "cache"),
            XDG_CONFIG_HOME=str(self.home / "config"),
            LATHE_MODELS=str(self.home / "models"),
        )
        (self.home / "models").mkdir()

    def run_lathe(self, *arguments, program=LATHE, input="", **extra):
        """Runs the program to its end; the result has text streams."""
        return subprocess.run(
            [str(program), *map(str, arguments)],
            input=input,
            capture_output=True,
            text=True,
            env={**self.environment, **extra},
            cwd=self.home,
            timeout=240,
        )

    def done(self, *arguments, **options) -> str:
        """The standard output of a run that must succeed."""
        result = self.run_lathe(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def json(self, *arguments, **options):
        return json.loads(self.done(*arguments, "--json", **options))

    def fails(self, status: int, pattern: str, *arguments, **options):
        """A run that must end with this status and one line of error."""
        result = self.run_lathe(*arguments, **options)
        self.assertEqual(result.returncode, status, result.stderr)
        lines = result.stderr.splitlines()
        errors = [line for line in lines if line.startswith("lathe: error: ")]
        self.assertEqual(len(errors), 1, result.stderr)
        self.assertEqual(lines[-1], errors[0], result.stderr)
        self.assertRegex(errors[0], pattern)

    def engine(self) -> pathlib.Path:
        """tiny.gguf and tiny.lathe in self.home, signed with this test's key.
        Compiled once and copied for each further test, with the key."""
        model, engine = self.home / "tiny.gguf", self.home / "tiny.lathe"
        kept = pathlib.Path(_kept.name)
        if not (kept / "config").exists():
            write_tiny_model(model)
            self.done("compile", model, "-o", engine, "--strict")
            for file in (model, engine):
                shutil.copy2(file, kept)
            shutil.copytree(self.home / "config", kept / "config")
        else:
            shutil.copytree(kept, self.home, dirs_exist_ok=True)
        return engine
