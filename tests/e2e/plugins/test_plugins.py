"""Pass plugins and --check-passes, as a user meets them.

Environment: LATHE_BIN (the programs), LATHE_PLUGINS (the built plugins) and
LATHE_SEEDED_MODELS (the seeded GGUF files).
"""

import os
import pathlib
import subprocess
import tempfile
import unittest

BIN = pathlib.Path(os.environ["LATHE_BIN"])
PLUGINS = pathlib.Path(os.environ["LATHE_PLUGINS"])
MODELS = pathlib.Path(os.environ["LATHE_SEEDED_MODELS"])
EXAMPLE = PLUGINS / "example" / "FoldScales.so"
MISCOMPILE = PLUGINS / "miscompile" / "Miscompile.so"

TWO_SCALES = """
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = lathe.scale %x by 2.0 : tensor<?x8xf32>
  %1 = lathe.scale %0 by 3.0 : tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}
"""


class PluginTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        # Keys and caches of this test alone.
        self.environment = {
            **os.environ,
            "HOME": self.folder.name,
            "XDG_CONFIG_HOME": str(self.path / "config"),
            "XDG_CACHE_HOME": str(self.path / "cache"),
        }

    def run_program(self, name, *arguments, text=None):
        return subprocess.run(
            [BIN / name, *map(str, arguments)],
            input=text,
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=300,
        )

    def compile(self, model, *arguments, output="out.lathe"):
        return self.run_program(
            "lathe",
            "compile",
            MODELS / (model + ".gguf"),
            "-o",
            self.path / output,
            "--target",
            "cpu:generic",
            *arguments,
        )

    def expect_failure(self, result, *parts):
        """A clean error that says all this; no engine is left behind."""
        self.assertGreater(result.returncode, 0, result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)
        left = [p.name for p in self.path.iterdir() if "lathe" in p.suffix]
        self.assertEqual(left, [])
        return result.stderr


class ExamplePlugin(PluginTest):
    def test_runs_in_lathe_opt(self):
        result = self.run_program(
            "lathe-opt",
            f"--load-pass-plugin={EXAMPLE}",
            "--pass-pipeline=builtin.module(fold-scales)",
            text=TWO_SCALES,
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("lathe.scale %arg0 by 6.0", result.stdout)
        self.assertEqual(result.stdout.count("lathe.scale"), 1)

    def test_runs_in_a_compilation_that_is_checked(self):
        # The graph of Gemma has a scale; add one, as a person would by hand.
        plain = self.compile(
            "gemma3-gqa", "--stop-after", "canonicalize", output="x.mlir"
        )
        self.assertEqual(plain.returncode, 0, plain.stderr)
        dump = self.path / "x.mlir"
        lines = dump.read_text().splitlines()
        at = next(i for i, line in enumerate(lines) if "lathe.scale" in line)
        value, rest = lines[at].strip().split(" = ", 1)
        split = rest.rindex(" by 8.000000e+00")
        lines[at : at + 1] = [
            f"%first = {rest[:split]} by 2.0{rest[split + 16:]}",
            f"{value} = lathe.scale %first by 4.0{rest[split + 16:]}",
        ]
        dump.write_text("\n".join(lines))
        result = self.run_program(
            "lathe",
            "compile",
            dump,
            "-o",
            self.path / "out.lathe",
            "--source",
            MODELS / "gemma3-gqa.gguf",
            "--target",
            "cpu:generic",
            "--load-pass-plugin",
            EXAMPLE,
            "--add-pass",
            "fold-scales@after:fuse-attention",
            "--print-ir-after",
            "fuse-attention",
            "--check-passes",
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("by 8.000000e+00", result.stdout)
        self.assertTrue((self.path / "out.lathe").exists())

    def test_other_versions_are_refused_before_their_code_runs(self):
        for plugin, said in [
            ("OtherApi", "version 999 of Lathe's plugin interface"),
            ("OtherMlir", "built for MLIR 12.0, this compiler has 19.1"),
            ("NoPlugin", "not a pass plugin for Lathe"),
        ]:
            path = PLUGINS / "miscompile" / (plugin + ".so")
            with self.subTest(plugin):
                result = self.compile("llama-gqa", "--load-pass-plugin", path)
                self.expect_failure(result, said, plugin)
                result = self.run_program(
                    "lathe-opt", "--load-pass-plugin", path, text=TWO_SCALES
                )
                self.assertEqual(result.returncode, 1)
                self.assertIn(said, result.stderr)

    def test_files_that_are_no_plugins(self):
        junk = self.path / "junk.so"
        junk.write_text("not a shared object")
        cut = self.path / "cut.so"
        cut.write_bytes(EXAMPLE.read_bytes()[:3000])
        for path, said in [
            (self.path / "absent.so", "there is no such plugin"),
            (junk, "not a shared object"),
            (cut, "cut.so"),
        ]:
            with self.subTest(path.name):
                self.expect_failure(
                    self.compile("llama-gqa", "--load-pass-plugin", path), said
                )

    def test_passes_that_cannot_be_added(self):
        for text, said in [
            ("fold-scales", "expected NAME@after:PHASE"),
            ("@after:canonicalize", "expected NAME@after:PHASE"),
            ("fold-scales@after:lunch", "no phase is called 'lunch'"),
            ("fold-scale@after:canonicalize", "no pass is called 'fold-scale'"),
        ]:
            with self.subTest(text):
                result = self.compile(
                    "llama-gqa", "--load-pass-plugin", EXAMPLE, "--add-pass", text
                )
                self.expect_failure(result, said)


class CheckPasses(PluginTest):
    def check(self, model, fault, phase, *arguments):
        return self.compile(
            model,
            "--load-pass-plugin",
            MISCOMPILE,
            "--add-pass",
            f"{fault}@after:{phase}",
            "--check-passes",
            *arguments,
        )

    def test_right_compilations_pass(self):
        for model in ["llama-gqa", "gemma3-window-odd", "format-q4-k"]:
            with self.subTest(model):
                result = self.compile(model, "--check-passes")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(
                    [p.name for p in self.path.iterdir() if p.is_file()],
                    ["out.lathe"],
                )

    def expect_named(self, fault, phase, *parts, model="llama-gqa", arguments=()):
        """The error names all; the reduced module still shows the fault."""
        result = self.check(model, fault, phase, *arguments)
        self.expect_failure(result, f"pass '{fault}'", *parts)
        reduced = self.path / f"out.lathe.{fault}.mlir"
        self.assertIn(str(reduced), result.stderr)
        self.assertIn("reduced:", result.stderr)
        again = self.run_program(
            "lathe-opt",
            reduced,
            f"--load-pass-plugin={MISCOMPILE}",
            f"--pass-pipeline=builtin.module({fault})",
        )
        self.assertEqual(again.returncode, 0, again.stderr)
        before = self.run_program("lathe-opt", reduced)
        self.assertNotEqual(again.stdout, before.stdout)
        return reduced.read_text()

    def test_wrong_epsilon(self):
        text = self.expect_named(
            "break-epsilon",
            "merge-linears",
            "lathe.rms_norm at blk.1.ffn_norm in @body",
        )
        # The norm alone: what it reads from its block, not other layers.
        self.assertEqual(text.count(" = lathe.rms_norm"), 2)
        self.assertNotIn("blk.0.", text)
        self.assertNotIn("blk.2.", text)

    def test_keys_and_values_swapped(self):
        self.expect_named(
            "break-values", "fuse-attention", "lathe.attention at blk.2.attn"
        )

    def test_keys_and_values_swapped_in_the_step(self):
        self.expect_named(
            "break-values", "kv-cache-layout", "lathe.paged_attention at blk.2.attn"
        )

    def test_wrong_matrix_of_the_head(self):
        self.expect_named(
            "break-head", "quantize-activations", "lathe.linear at output in @head"
        )

    def test_rows_that_do_not_see_their_own_step(self):
        result = self.check("llama-gqa", "break-order", "kv-cache-layout")
        self.expect_failure(
            result, "after pass 'break-order'", "has not been appended"
        )

    def test_wrong_kernel(self):
        result = self.check("llama-gqa", "break-kernel", "form-kernels")
        self.expect_failure(
            result, "computes something else than its graph", "break-kernel"
        )

    def test_without_the_check_nothing_is_said(self):
        result = self.compile(
            "llama-gqa",
            "--load-pass-plugin",
            MISCOMPILE,
            "--add-pass",
            "break-epsilon@after:canonicalize",
        )
        self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == "__main__":
    unittest.main()
