"""Phases of the compiler that can be left out, and what that costs."""

import unittest
import xml.etree.ElementTree

from support import CliTest, write_tiny_model

SVG = "{http://www.w3.org/2000/svg}"


class OptionalPhases(CliTest):
    def ids(self, *options):
        self.done("compile", "m.gguf", "-o", "m.lathe", "--kv-dtype", "f32", *options)
        run = ("run", "m.lathe", "--raw", "--ignore-end", "--temperature", "0")
        return self.json(*run, "-p", "the keeper of", "-n", "40")["tokens"]

    def test_without_any_of_them_the_greedy_ids_are_equal(self):
        # F32 weights: nothing that the phases change is rounded to fewer bits.
        write_tiny_model(self.home / "m.gguf", weights="f32")
        lines = self.done("compile", "--print-pipeline").splitlines()
        optional = [line.split()[1] for line in lines if "cannot be" not in line]
        self.assertIn("kv-cache-layout", optional)
        expected = self.ids()
        self.assertEqual(len(expected), 40)
        self.assertGreater(len(set(expected)), 5)
        for phase in optional:
            with self.subTest(phase):
                self.assertEqual(self.ids("--disable-pass", phase), expected)
        every = [word for phase in optional for word in ("--disable-pass", phase)]
        self.assertEqual(self.ids(*every), expected)


class SlowerPaths(CliTest):
    """Without a phase something is slower, and the compiler says so."""

    def setUp(self):
        super().setUp()
        write_tiny_model(self.home / "m.gguf")

    def warnings(self, *options):
        result = self.run_lathe("compile", "m.gguf", "-o", "m.lathe", *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr.splitlines()

    def test_none_by_default(self):
        self.assertEqual(self.warnings("--strict"), [])

    def test_each_disabled_phase_is_told_once_for_all_layers(self):
        for phase, told in (
            ("fuse-attention", r"blk\.0\.attn: attention is not fused, so there is no"),
            ("kv-cache-layout", r"blk\.0\.attn: there is no KV cache: .*attention run"),
            ("merge-linears", r"blk\.0\.attn_k\S*: .*; merge-linears would make"),
            ("quantize-activations", "blk.* multiplied by f32 activations"),
        ):
            with self.subTest(phase):
                found = self.warnings("--disable-pass", phase)
                (line,) = [line for line in found if "more like it)" in line]
                self.assertRegex(line, "^lathe: warning: " + told)
                self.assertLessEqual(len(found), 2, found)
                for line in found:
                    self.assertRegex(line, "^lathe: warning: ")

    def test_strict_refuses_them_and_writes_nothing(self):
        strict = ("compile", "m.gguf", "--strict", "--disable-pass", "fuse-attention")
        told = (
            r"m\.gguf: refused by --strict, since slower paths were chosen: "
            r"kv-cache-layout is left out, .*; "
            r"blk\.0\.attn: attention is not fused, .* \(and 1 more like it\)$"
        )
        for output in (("-o", "x.lathe"), ("-o", "x", "--stop-after", "form-kernels")):
            self.fails(1, told, *strict, *output)
        self.assertEqual(list(self.home.glob("x*")), [])

    def test_what_a_dump_lacks_is_told_again(self):
        dump = ("-o", "x.mlir", "--stop-after", "kv-cache-layout")
        self.done("compile", "m.gguf", "--disable-pass", "fuse-attention", *dump)
        self.fails(1, "not fused", "compile", "x.mlir", "-o", "x.lathe", "--strict")

    def test_it_changes_no_engine(self):
        self.done("compile", "m.gguf", "-o", "a.lathe")
        self.done("compile", "m.gguf", "-o", "b.lathe", "--strict")
        self.assertEqual(*((self.home / f"{n}.lathe").read_bytes() for n in "ab"))


class WithoutKvCache(CliTest):
    def test_bench_measures_both(self):
        write_tiny_model(self.home / "m.gguf")
        bench = ("bench", "m.gguf", "-p", "0", "-t", "1", "--kv-cache", "off,on")
        bench += ("--svg", "kv.svg")
        results = self.json(*bench, "-n", "8,300")["results"]
        rows = {row["test"]: row for row in results}
        self.assertEqual(list(rows), ["tg8", "tg300", "tg8@kv-off", "tg300@kv-off"])
        for row in results:
            self.assertGreater(row["last_token_ms"], 0)
            self.assertAlmostEqual(
                row["tokens_per_second"]["median"] * row["seconds"],
                300 if "300" in row["test"] else 8,
            )
        # Both were compiled and kept, each as its own engine.
        self.assertEqual(len(list(self.home.glob("cache/lathe/engines/*.lathe"))), 2)
        # Only without the cache does the last step evaluate 300 rows.
        self.assertGreater(
            rows["tg300@kv-off"]["last_token_ms"], 3 * rows["tg300"]["last_token_ms"]
        )

        plot = xml.etree.ElementTree.parse(self.home / "kv.svg").getroot()
        self.assertEqual(plot.tag, f"{SVG}svg")
        texts = [element.text for element in plot.iter(f"{SVG}text")]
        for text in (
            *("Time to generate, m.gguf", "generated tokens", "time in s"),
            *("KV cache on", "KV cache off"),
        ):
            self.assertIn(text, texts)
        self.assertEqual(len(list(plot.iter(f"{SVG}circle"))), 4)

        table = self.done(*bench[:-2], "-n", "4", "-d", "16")
        self.assertRegex(table, r"\ntg4@d16 .*\ntg4@d16@kv-off ")

    def test_a_model_name_cannot_break_the_plot(self):
        name = "a<b>&\x01\"'\xe9.gguf"
        write_tiny_model(self.home / name)
        self.done(*("bench", name, "-p", "0", "-n", "2", "-r", "1", "--svg", "p.svg"))
        plot = xml.etree.ElementTree.parse(self.home / "p.svg").getroot()
        self.assertIn("a<b>&", plot.find(f"{SVG}title").text)

    def test_bad_requests(self):
        engine = self.engine()
        off = ("--kv-cache", "off")
        self.fails(1, "only a model file can be compiled", "bench", engine, *off)
        self.fails(2, "nothing to measure", "bench", "tiny.gguf", "-n", "0", *off)
        self.fails(2, "kv-cache", "bench", engine, "--kv-cache", "maybe")
        plot = ("bench", engine, "-n", "0", "--svg", "x.svg")
        self.fails(2, "--svg shows generation", *plot)


if __name__ == "__main__":
    unittest.main()
