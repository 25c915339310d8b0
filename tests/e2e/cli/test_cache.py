"""Model files are compiled once."""

import os
import subprocess
import time
import unittest

from support import LATHE, CliTest, write_tiny_model
from test_chat import Terminal


class Cache(CliTest):
    def setUp(self):
        super().setUp()
        self.model = self.home / "models/tiny.gguf"
        write_tiny_model(self.model)
        self.engines = self.home / "cache/lathe/engines"

    def compiled(self, *options, **environment):
        """Runs the model; true if that compiled it."""
        arguments = ("run", "tiny", "-p", "x", "-n", "1", *options)
        result = self.run_lathe(*arguments, **environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return "lathe: info: compiling" in result.stderr

    def count(self):
        return len(list(self.engines.glob("*.lathe")))

    def test_second_run_uses_it(self):
        self.assertTrue(self.compiled())
        self.assertFalse(self.compiled())
        self.assertFalse(self.compiled("--threads", "1", "--context", "64"))
        self.assertEqual(self.count(), 1)

    def test_options_of_the_engine_are_part_of_the_key(self):
        self.assertTrue(self.compiled())
        self.assertTrue(self.compiled("--kv-dtype", "f32"))
        self.assertTrue(self.compiled("--isa", "generic"))
        self.assertFalse(self.compiled(LATHE_ISA="generic"))
        self.assertEqual(self.count(), 3)

    def test_content_decides_when_the_file_looks_new(self):
        self.assertTrue(self.compiled())
        os.utime(self.model, (1, 1))
        self.assertFalse(self.compiled())
        copy = self.model.read_bytes()
        self.model.unlink()
        self.model.write_bytes(copy)
        self.assertFalse(self.compiled())
        write_tiny_model(self.model, seed=2)
        self.assertTrue(self.compiled())

    def test_weights_changed_behind_an_equal_size_and_time(self):
        self.assertTrue(self.compiled())
        state = self.model.stat()
        with open(self.model, "r+b") as file:
            file.seek(-1, os.SEEK_END)
            last = file.read(1)
            file.seek(-1, os.SEEK_END)
            file.write(bytes([last[0] ^ 1]))
        os.utime(self.model, ns=(state.st_atime_ns, state.st_mtime_ns))
        self.assertTrue(self.compiled())

    def test_damaged_engine_is_made_again(self):
        self.assertTrue(self.compiled())
        (engine,) = self.engines.glob("*.lathe")
        engine.write_bytes(engine.read_bytes()[:5000])
        self.assertTrue(self.compiled())
        self.assertFalse(self.compiled())

    def test_cache_that_cannot_be_written(self):
        (self.home / "cache").write_text("in the way")
        temporary = self.home / "tmp"
        temporary.mkdir()
        result = self.run_lathe(
            *("run", "tiny", "-p", "x", "-n", "1"), TMPDIR=str(temporary)
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("lathe: warning: the compiled model is not kept", result.stderr)
        self.assertEqual(list(temporary.iterdir()), [])

    def test_cache_open_to_others_is_not_trusted(self):
        self.assertTrue(self.compiled())
        self.engines.chmod(0o777)
        result = self.run_lathe("run", "tiny", "-p", "x", "-n", "1")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("not this user's alone", result.stderr)

    def test_two_at_once_compile_once(self):
        command = [LATHE, "run", "tiny", "-p", "x", "-n", "1"]
        started = [
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self.environment,
                text=True,
            )
            for _ in range(3)
        ]
        outputs = [process.communicate(timeout=240) for process in started]
        self.assertEqual([process.returncode for process in started], [0] * 3, outputs)
        errors = "".join(error for _, error in outputs)
        self.assertEqual(errors.count("info: compiling"), 1, errors)

    def test_failed_compile_leaves_nothing(self):
        content = bytearray(self.model.read_bytes())
        place = content.find(b"llama.block_count") + len("llama.block_count") + 4
        content[place : place + 4] = (3).to_bytes(4, "little")
        self.model.write_bytes(content)
        self.fails(1, "blk.2", "run", "tiny", "-p", "x")
        self.assertEqual(self.count(), 0)

    def test_least_recently_used_goes_first(self):
        for options in ((), ("--kv-dtype", "f32")):
            self.assertTrue(self.compiled(*options))
        self.assertFalse(self.compiled())
        bytes_of_two = sum(file.stat().st_size for file in self.engines.glob("*.lathe"))
        # Engines differ by some pages; two and a half are never three.
        limit = {"LATHE_CACHE_LIMIT": f"{bytes_of_two * 5 // 4 // 1024}K"}
        write_tiny_model(self.model, seed=2)
        self.assertTrue(self.compiled(**limit))
        self.assertEqual(self.count(), 2)
        self.assertEqual(len(list(self.engines.glob("*.build"))), 2)
        write_tiny_model(self.model)
        self.assertFalse(self.compiled())
        self.assertTrue(self.compiled("--kv-dtype", "f32"))

    def test_engines_in_use_stay(self):
        program = Terminal(["run", self.model], self.environment)
        self.addCleanup(os.close, program.master)
        program.expect("> ")
        none = {"LATHE_CACHE_LIMIT": "0"}
        self.assertTrue(self.compiled("--kv-dtype", "f32", **none))
        self.assertEqual(self.count(), 2)
        program.send("hello\n")
        program.expect("memory")
        program.send("/exit\n")
        self.assertEqual(program.status(), 0)
        self.assertTrue(self.compiled("--isa", "generic", **none))
        self.assertEqual(self.count(), 1)

    def test_limit_that_is_none(self):
        result = self.run_lathe("run", "tiny", "-p", "x", LATHE_CACHE_LIMIT="much")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("LATHE_CACHE_LIMIT is 'much'", result.stderr)
        self.assertEqual(self.count(), 1)

    def test_listed(self):
        self.assertIn("tiny.gguf", self.done("run"))


if __name__ == "__main__":
    unittest.main()
