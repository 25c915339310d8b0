"""Options out of range, and options that can have no effect: each is told."""

import json
import os
import signal
import subprocess
import time

from support import LATHE, CliTest, write_tiny_model


class Ranges(CliTest):
    def test_counts(self):
        for command, option in (
            (("run", "m", "-p", "x"), "--context"),
            (("run", "m", "-p", "x"), "--chunk"),
            (("compile", "m", "-o", "x"), "--context"),
            (("bench", "m"), "--batch"),
            (("bench", "m"), "--threads"),
            (("bench", "m"), "--repetitions"),
        ):
            for value in ("0", "-1", "1.5", "x", "99999999999999999999"):
                with self.subTest(command=command, option=option, value=value):
                    told = rf"{option}: takes a whole number from 1 to \d+, not '{value}'"
                    self.fails(2, told, *command, option, value)
        self.fails(2, "--prompt: .*from 0 to", "bench", "m", "-p", "4,-4")

    def test_sampling(self):
        run = ("run", "m", "-p", "x")
        for option, value, told in (
            ("--logit-bias", "-1=3", "--logit-bias '-1=3': token ids are 0 or more"),
            ("--logit-bias", "1=1e38", "at most 1e9"),
            ("--frequency-penalty", "-1e38", "frequency penalty .* -1e9 to 1e9"),
            ("--presence-penalty", "1e10", "presence penalty .* -1e9 to 1e9"),
            ("--repeat-penalty", "1e-30", "repetition penalty .* 1e-6 to 1e6"),
            ("--stop", "", "--stop: "),
            ("--system", b"\xff", "--system is not valid UTF-8"),
        ):
            with self.subTest(option=option, value=value):
                command = [LATHE, *run, option, value]
                result = subprocess.run(
                    command, capture_output=True, env=self.environment, check=False
                )
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertRegex(result.stderr.decode(), told)

    def test_names(self):
        self.fails(2, "MODEL: must not be empty", "run", "", "-p", "x")
        self.fails(1, "name is empty", "tokenize", "", "x")
        self.fails(1, "name is empty", "bench", "")
        self.fails(2, "--raw", "run", "m", "-p", "x", "--parse-special")

    def test_unknown_isa_is_told_before_anything_is_compiled(self):
        write_tiny_model(self.home / "m.gguf")
        for command in (("run", "m.gguf", "-p", "x"), ("bench", "m.gguf")):
            for given in ({"LATHE_ISA": "foo"}, None):
                option = () if given else ("--isa", "foo")
                result = self.run_lathe(*command, *option, **(given or {}))
                name = "LATHE_ISA" if given else "--isa"
                self.assertEqual(result.returncode, 1)
                self.assertEqual(
                    result.stderr,
                    f"lathe: error: {name} 'foo': unknown; known are generic, avx2, "
                    "avx512, avx512bf16\n",
                )

    def test_keys_that_are_no_signers(self):
        for start, rest in (
            ("00", "00"),  # order 4
            ("01", "00"),  # the identity
            ("02", "00"),  # not on the curve
            ("ec", "ff"),  # above p with the sign bit
        ):
            key = "ed25519:" + start + rest * 31
            with self.subTest(key):
                self.fails(1, "no key of a signer", "trust", "add", key)
        for key in (
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
            "ed" + "ff" * 30 + "7f",  # p, for 0
        ):
            self.fails(1, "no key of a signer", "trust", "add", "ed25519:" + key)
        # RFC 8032, section 7.1, TEST 1.
        good = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
        self.done("trust", "add", "ed25519:" + good)


class NoEffect(CliTest):
    def setUp(self):
        super().setUp()
        self.tiny = self.engine()
        self.model = self.home / "tiny.gguf"

    def test_kv_dtype_of_an_engine(self):
        run = ("run", self.tiny, "-p", "x", "-n", "1", "--kv-dtype")
        told = self.run_lathe(*run, "f32")
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertRegex(told.stderr, "warning: --kv-dtype f32 has no effect: .*f16")
        self.assertNotIn("no effect", self.run_lathe(*run, "f16").stderr)

    def test_kv_dtypes_take_what_they_say(self):
        # Two layers of two KV heads of 32 elements, K and V, 16 tokens.
        elements = 2 * 2 * 2 * 32 * 16
        scales = 2 * 2 * 2 * 16 * 4
        sizes = {
            "f32": 4 * elements,
            "f16": 2 * elements,
            "bf16": 2 * elements,
            "int8": elements + scales,
        }
        for dtype, size in sizes.items():
            out = self.home / f"{dtype}.lathe"
            self.done("compile", self.model, "-o", out, "--kv-dtype", dtype)
            (group,) = self.json("inspect", out, "--memory")["kv_groups"]
            self.assertEqual((group["dtype"], group["page_bytes"]), (dtype, size))
            again = self.home / "again.lathe"
            self.done("compile", out, "-o", again)
            (group,) = self.json("inspect", again, "--memory")["kv_groups"]
            self.assertEqual(group["dtype"], dtype)
            self.done("run", out, "-p", "x", "-n", "4", "--kv-dtype", dtype)

    def test_what_an_input_of_compile_has_settled(self):
        ir = self.home / "x.mlir"
        stop = ("--stop-after", "fuse-attention")
        summary = self.json("compile", self.model, "-o", ir, *stop)
        self.assertEqual(list(summary), ["output", "ir_after", "seconds"])
        out = ("-o", self.home / "y.lathe")
        source = ("--source", self.model)
        self.done("compile", ir, *out, *source)
        self.fails(1, "--source", "compile", self.model, *out, *source)
        self.fails(1, "--source", "compile", self.tiny, *out, *source)
        for made in (ir, self.tiny):
            self.fails(1, "--context", "compile", made, *out, "--context", "64")
        self.fails(1, "--kv-dtype", "compile", self.tiny, *out, "--kv-dtype", "f32")
        disable = ("--disable-pass", "merge-linears")
        self.fails(1, "--disable-pass", "compile", self.tiny, *out, *disable)
        for option in ("--print-ir-after", "--stop-after"):
            told = "after fuse-attention already.*after canonicalize"
            self.fails(1, told, "compile", ir, *out, option, "canonicalize")
        self.done("compile", ir, *out, "--print-ir-after", "merge-linears")

    def test_bench(self):
        told = r"a context of 2000\d* tokens .* lower -d, -p or -n$"
        self.fails(1, told, "bench", self.tiny, "-p", "0", "-n", "20000")
        bench = ("bench", self.tiny, "-p", "0", "-n", "1", "-r", "1")
        # Before it measures: its figures would be on standard output.
        for path in ("no/where.svg", self.home, self.tiny):
            result = self.run_lathe(*bench, "--svg", path)
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertIn(str(path), result.stderr)
        self.done(*bench, "--svg", "plot.svg")
        self.assertIn("<svg", (self.home / "plot.svg").read_text())

    def test_more_threads_than_cpus(self):
        run = ("run", self.tiny, "-p", "x", "-n", "1", "-t")
        cpus = len(os.sched_getaffinity(0))
        many = self.run_lathe(*run, str(2 * cpus + 2))
        self.assertEqual(many.returncode, 0, many.stderr)
        self.assertEqual(many.stderr.count("warning: --threads"), 1)
        self.assertNotIn("warning", self.run_lathe(*run, "1").stderr)

    def test_one_is_not_many(self):
        shown = self.run_lathe("run", self.tiny, "--raw", "-p", "x", "-n", "1")
        self.assertRegex(shown.stderr, "prefill 1 token, .*decode 1 token, ")
        generic = self.home / "generic.lathe"
        self.done("compile", self.model, "-o", generic, "--target", "cpu:generic")
        targets = self.done("inspect", generic, "--targets")
        self.assertIn("needs nothing beyond x86-64\n", targets)

    def test_bytes_that_are_no_text(self):
        (self.home / "bytes").write_bytes(b"\xff")
        run = ("run", self.tiny, "-n", "1", "-f", "bytes")
        self.fails(1, "the prompt is not valid UTF-8 .with --raw", *run)
        self.done(*run, "--raw")

    def test_signals_have_their_status(self):
        command = ("run", self.tiny, "--raw", "-p", "x", "--ignore-end", "--json")
        command = [LATHE, *command, "-n", "450"]
        for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            for wait in (0.1, 0.05, 0.2, 0.02, 0.4):
                process = subprocess.Popen(
                    list(map(str, command)),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=self.environment,
                )
                time.sleep(wait)
                process.send_signal(number)
                out, error = process.communicate(timeout=60)
                self.assertIn(process.returncode, (0, -number, status), error)
                if process.returncode == status:
                    self.assertEqual(json.loads(out)["finish_reason"], "cancelled")
                    break
            else:
                self.skipTest("no signal came while tokens were generated")
