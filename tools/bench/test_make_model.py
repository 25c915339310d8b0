#!/usr/bin/env python3
"""Tests tools/bench/make_model: bytes, scales, errors, and that lathe takes it."""

import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import model_shapes  # noqa: E402


class MakeModel(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.root = pathlib.Path(self._folder.name)

    def make(self, name, *more, out="model.gguf"):
        command = [sys.executable, HERE / "make_model", name, "-o", self.root / out]
        return subprocess.run([*command, *more], capture_output=True, text=True)

    def bytes_of(self, *more):
        done = self.make("tiny-256", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return (self.root / "model.gguf").read_bytes()

    def test_same_seed_same_bytes(self):
        first = self.bytes_of("--seed", "7")
        self.assertEqual(first, self.bytes_of("--seed", "7"))
        other = self.bytes_of("--seed", "8")
        self.assertEqual(len(first), len(other))
        # The title names the seed; the weights must differ, too.
        self.assertNotEqual(first[-4096:], other[-4096:])
        self.assertEqual([p.name for p in self.root.iterdir()], ["model.gguf"])

    def test_a_shallow_model_has_the_layers_of_a_deep_one(self):
        tail = 2 * 256 * 512 * 4  # more than ffn_down of a layer
        deep = self.bytes_of("--format", "f32", "--fade-from", "2", "--fade", "0.5")
        whole = self.bytes_of("--format", "f32")
        shallow = self.bytes_of("--format", "f32", "--layers", "2")
        self.assertLess(len(shallow), len(deep))
        self.assertEqual(len(whole), len(deep))
        end = shallow[-tail:]
        self.assertIn(end, deep)
        self.assertIn(end, whole)
        values = numpy.frombuffer(deep[-256 * 512 * 4 :], "<f4")
        self.assertAlmostEqual(float(values.std()) * math.sqrt(512), 0.5, 2)

    def test_deviation(self):
        data = self.bytes_of("--format", "f32")
        # The last tensor is ffn_down of the last layer, 256 x 512.
        values = numpy.frombuffer(data[-256 * 512 * 4 :], "<f4")
        self.assertAlmostEqual(float(values.std()) * math.sqrt(512), 1.0, 2)
        self.assertAlmostEqual(float(values.mean()), 0.0, 3)

    def test_every_format_has_its_size(self):
        bits = {"q8_0": 8.5, "q5_0": 5.5, "q4_1": 5, "q4_0": 4.5, "q6_k": 6.5625}
        bits |= {"q4_k": 4.5, "f16": 16, "bf16": 16, "f32": 32}
        sizes = {kind: len(self.bytes_of("--format", kind)) for kind in bits}
        shape = model_shapes.SHAPES["tiny-256"]
        elements = sum(
            math.prod(tensor.shape)
            for tensor in model_shapes.tensors(shape, "f32")
            if len(tensor.shape) == 2
        )
        for kind, each in bits.items():
            expected = sizes["f32"] - elements * (32 - each) / 8
            self.assertEqual(sizes[kind], expected, kind)

    def test_mix_of_q4_k_m(self):
        # As in the published Llama-3.1-8B file: 16 of 32 layers have Q6_K.
        shape = model_shapes.SHAPES["llama-3.1-8b"]
        kinds = {t.name: t.kind for t in model_shapes.tensors(shape, "q4_k_m")}
        down = [kinds[f"blk.{i}.ffn_down.weight"] for i in range(32)]
        self.assertEqual(down.count("q6_k"), 16)
        self.assertEqual(down[:5], ["q6_k"] * 4 + ["q4_k"])
        self.assertEqual(kinds["output.weight"], "q6_k")
        self.assertEqual(kinds["token_embd.weight"], "q4_k")
        tied = model_shapes.tensors(model_shapes.SHAPES["llama-3.2-1b"], "q4_k_m")
        self.assertEqual(tied[0].kind, "q6_k")

    def test_rope_factors(self):
        factors = model_shapes.rope_factors(64, 32.0)
        self.assertEqual(factors[0], 1.0)
        self.assertEqual(factors[-1], 32.0)
        self.assertEqual(factors, sorted(factors))

    def test_errors_name_what_is_wrong(self):
        done = self.make("tiny-256", out="nowhere/model.gguf")
        self.assertEqual(done.returncode, 2)
        self.assertIn("does not exist", done.stderr)
        done = self.make("tiny-256", "--seed", "-1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--seed", done.stderr)

    def test_full_disk_is_said_before_writing(self):
        program = (
            "import importlib.machinery, importlib.util, pathlib, shutil, sys\n"
            "loader = importlib.machinery.SourceFileLoader('m', sys.argv[1])\n"
            "m = importlib.util.module_from_spec("
            "importlib.util.spec_from_loader('m', loader))\n"
            "loader.exec_module(m)\n"
            "shutil.disk_usage = lambda path: type('D', (), {'free': 1000})\n"
            "sys.argv[1:] = ['tiny-256', '-o', sys.argv[2]]\n"
            "sys.exit(m.main())\n"
        )
        out = self.root / "model.gguf"
        done = subprocess.run(
            [sys.executable, "-B", "-c", program, HERE / "make_model", out],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(HERE)},
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("free", done.stderr)
        self.assertEqual(list(self.root.iterdir()), [])

    @unittest.skipUnless("LATHE_BIN" in os.environ, "LATHE_BIN: no lathe")
    def test_lathe_compiles_and_runs_it(self):
        self.bytes_of()
        lathe = pathlib.Path(os.environ["LATHE_BIN"]) / "lathe"
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.root / "cache")}
        environment["XDG_CONFIG_HOME"] = str(self.root / "config")

        def run(*words):
            done = subprocess.run(
                [lathe, *words], capture_output=True, text=True, env=environment
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        engine = self.root / "model.lathe"
        run("compile", "--strict", self.root / "model.gguf", "-o", engine)
        self.assertIn("ffn_down", run("inspect", engine, "--weights"))
        answer = run("run", engine, "--raw", "-p", "the house", "-n", "4", "--json")
        self.assertIn('"completion_tokens": 4', answer)


if __name__ == "__main__":
    unittest.main()
