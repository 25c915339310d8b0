"""lathe explain: its figures fit one another and the engine."""

import unittest
import xml.etree.ElementTree

from support import CliTest

PARTS = "work uneven between outside".split()


class Explain(CliTest):
    def explain(self, *options):
        engine = self.engine()
        result = self.json("explain", engine, "-t", "2", "-r", "8", *options)
        step, limits = result["step"], result["limits"]
        wall = step["seconds"]
        self.assertGreater(wall, 0)
        parts = sum(step[part + "_seconds"] for part in PARTS)
        self.assertAlmostEqual(parts / wall, 1, 9)
        for key in ("weight_bytes", "kv_bytes", "int8_ops", "f32_ops", "launches"):
            self.assertEqual(
                sum(kernel[key] for kernel in result["kernels"]), step[key], key
            )
        for kernel in result["kernels"]:
            moved = sum(
                kernel[part + "_bytes"] for part in ("weight", "kv", "activation")
            )
            bandwidth = moved / limits["bandwidth_bytes_per_second"]
            compute = (
                kernel["int8_ops"] / limits["int8_ops_per_second"]
                + kernel["f32_ops"] / limits["f32_ops_per_second"]
            )
            # A kernel's limit is the sum of its launches' limits, which may
            # differ in what binds: by layer, in a model with windows.
            limit = kernel["limit_seconds"]
            self.assertGreaterEqual(limit, max(bandwidth, compute) * (1 - 1e-9))
            self.assertLessEqual(limit, (bandwidth + compute) * (1 + 1e-9))
            self.assertAlmostEqual(
                kernel["limit_share"] * kernel["seconds"] / limit, 1, 6
            )
            binds = "bandwidth" if bandwidth >= compute else "compute"
            if limit < kernel["seconds"] / 2:
                binds = "overhead"
            self.assertEqual(kernel["binds"], binds)
            self.assertGreaterEqual(kernel["uneven_seconds"], 0)
        total = sum(kernel["limit_seconds"] for kernel in result["kernels"])
        self.assertAlmostEqual(step["limit_seconds"] / total, 1, 6)
        self.assertAlmostEqual(step["limit_share"] * wall / total, 1, 6)
        tokens = result["sequences"] * result["rows"]
        self.assertAlmostEqual(step["tokens_per_second"] * wall / tokens, 1, 6)
        return result

    def cache(self):
        """Bytes of a key of one layer in f16, layers, and elements of a head."""
        (group,) = self.json("inspect", self.engine(), "--memory")["kv_groups"]
        width = group["head_dim"]
        return group["kv_heads"] * width * 2, group["layers"], width

    def test_decode_reads_each_weight_once(self):
        result = self.explain("-c", "20", "--all")
        self.assertEqual(
            (result["sequences"], result["context"], result["rows"]), (1, 20, 1)
        )
        self.assertEqual((result["threads"], result["repetitions"]), (2, 8))
        kernels = {
            kernel["symbol"]: kernel
            for kernel in self.json("inspect", self.engine(), "--kernels")
        }
        # Other entry points than body and head may have more.
        self.assertLessEqual({row["kernel"] for row in result["kernels"]}, set(kernels))
        for kernel in result["kernels"]:
            known = kernels[kernel["kernel"]]
            self.assertEqual(kernel["summary"], known["summary"])
            self.assertLessEqual(kernel["launches"], known["launches"])
            if kernel["skeleton"] == "gemm":
                self.assertEqual(kernel["formats"], ["Q8_0"])
                self.assertEqual(
                    kernel["weight_bytes"], kernel["launches"] * known["weight_bytes"]
                )
                self.assertEqual(
                    kernel["int8_ops"], 2 * kernel["launches"] * known["macs_per_row"]
                )
        # 21 keys are read and one is written; a product with each of them for 4
        # query heads, and one with its value.
        key, layers, width = self.cache()
        self.assertEqual(result["step"]["kv_bytes"], layers * (21 + 1) * 2 * key)
        self.assertEqual(result["step"]["f32_ops"], layers * 21 * 4 * width * 2 * 2)
        self.assertEqual(len(result["launches"]), result["step"]["launches"])
        self.assertIn("blk.1", " ".join(row["label"] for row in result["launches"]))
        self.assertGreater(result["step"]["barriers"], 0)

    def test_batches_and_prefill_share_weights(self):
        one = self.explain("-c", "20")["step"]
        eight = self.explain("-c", "20", "--batch", "8")["step"]
        self.assertEqual(eight["kv_bytes"], 8 * one["kv_bytes"])
        self.assertEqual(eight["f32_ops"], 8 * one["f32_ops"])
        # Only rows of tables are read more often.
        self.assertLess(eight["weight_bytes"], 1.05 * one["weight_bytes"])
        prefill = self.explain("--prefill", "32")
        self.assertEqual((prefill["context"], prefill["rows"]), (0, 32))
        # Keys 0 to 31 are read, and as many written.
        key, layers, _ = self.cache()
        self.assertEqual(prefill["step"]["kv_bytes"], layers * 64 * 2 * key)
        self.assertGreater(prefill["step"]["int8_ops"], 10 * one["int8_ops"])

    def test_table_and_plot(self):
        engine, plot = self.engine(), self.home / "x.svg"
        command = ("explain", engine, "-r", "4", "-c", "8")
        table = self.done(*command, "--svg", plot)
        for text in ("gemm", "attention", "tokens/s", "of the limit", "barriers"):
            self.assertIn(text, table)
        self.assertIn("blk.1", self.done(*command, "--all"))
        root = xml.etree.ElementTree.fromstring(plot.read_text())
        shown = " ".join(root.itertext())
        for text in ("Roofline", "memory", "operations per byte", "attention"):
            self.assertIn(text, shown)

    def test_what_it_refuses(self):
        engine = self.engine()
        self.fails(1, "lower --context", "explain", engine, "-c", "100000")
        self.fails(1, "--svg", "explain", engine, "--svg", engine)
        self.fails(2, "--batch", "explain", engine, "--batch", "33")
        self.fails(2, "--prefill", "explain", engine, "--prefill", "0")
        self.fails(2, "MODEL", "explain")
        self.fails(1, "none", "explain", "none.lathe")
        whole = self.home / "whole.lathe"
        self.done(
            *("compile", self.home / "tiny.gguf", "-o", whole),
            *("--disable-pass", "kv-cache-layout"),
        )
        self.fails(1, "without a KV cache", "explain", whole)


if __name__ == "__main__":
    unittest.main()
