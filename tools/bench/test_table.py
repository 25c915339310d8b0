#!/usr/bin/env python3
"""Tests against_llama --table with stand-ins for lathe and the peers."""

import json
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tests/golden/seeded")]

import gguf_file  # noqa: E402
import model_bytes  # noqa: E402
import table_rows  # noqa: E402
from stand_ins import StandIns  # noqa: E402
from table_rows import Bar, Row  # noqa: E402

# A step of B rows takes 4 + B ms; the weights alone would allow 5000 tokens/s.
LATHE = """#!/usr/bin/env python3
import json, pathlib, sys
words = sys.argv[1:]
pathlib.Path(__file__).with_suffix(".log").open("a").write(" ".join(words) + "\\n")
def after(name): return int(words[words.index(name) + 1])
bandwidth = 5000.0 * WEIGHTS
if words[0] == "explain":
    print(json.dumps({"limits": {"bandwidth_bytes_per_second": bandwidth},
        "step": {"seconds": (4 + after("--batch")) / 1000}}))
elif words[0] == "bench":
    prefill = after("-p") > 0
    speed = 300.0 if prefill else 400.0
    row = {"test": "x", "tokens_per_second": dict.fromkeys(
        ("median", "min", "max"), speed)}
    row["compute_share" if prefill else "bandwidth_share"] = 0.5
    if prefill: row["arithmetic"] = "int8"
    limits = {"bandwidth_bytes_per_second": bandwidth}
    print(json.dumps({"limits": limits, "results": [row]}))
"""
# llama.cpp: -fa 0 is the faster, by far for the Q4_0 copy.
BENCH = """#!/usr/bin/env python3
import json, pathlib, sys
line = " ".join(sys.argv[1:])
pathlib.Path(__file__).with_suffix(".log").open("a").write(line + "\\n")
speed = 100.0 if "-fa 1" in line else 110.0
if "Q4_0" in line: speed += 90.0
print(json.dumps([{"n_prompt": 0, "n_gen": 8, "avg_ts": speed}]))
"""
BATCHED = """#!/usr/bin/env python3
import sys
def after(name): return int(sys.argv[sys.argv.index(name) + 1])
pp, tg, b = after("-npp"), after("-ntg"), after("-npl")
assert after("-c") == b * (pp + tg)
print("|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |")
print(f"|{pp:6} | {tg:6} | {b:4} | 1 | 7.388 | 4.33 | 3.810 | {b * 10:8.2f} | 1 | 2 |")
"""


def write_model(path, arch="llama", head=True, kind=0, extra=()):
    """A GGUF of 2 layers: hidden 64, 2 heads of 32, 1 KV head, 96 tokens."""
    numbers = {"block_count": 2, "embedding_length": 64, "attention.head_count": 2}
    numbers |= {"attention.head_count_kv": 1, **dict(extra)}
    metadata = [("general.architecture", gguf_file.STRING, arch)]
    metadata += [(f"{arch}.{k}", gguf_file.U32, v) for k, v in numbers.items()]
    sizes = {0: 4 * 96 * 64, 8: 96 * 64 // 32 * 34}
    tensors = [("token_embd.weight", (96, 64), kind, bytes(sizes[kind]))]
    if head:
        tensors.append(("output.weight", (96, 64), kind, bytes(sizes[kind])))
    gguf_file.write(path, metadata, tensors)


class Table(StandIns):
    def setUp(self):
        super().setUp()
        write_model(self.root / "model.gguf", kind=8, head=False)
        self.weights = model_bytes.read(self.root / "model.gguf").weights
        (self.root / "ik").mkdir()
        for folder in ("peer/bin", "ik"):
            self.write(f"{folder}/llama-bench", BENCH)
            self.write(f"{folder}/llama-batched-bench", BATCHED)
        # ik_llama.cpp prints its table to stderr and logs where it runs.
        noisy = BATCHED.replace("import sys\n", "import sys\nsys.stdout = sys.stderr\n")
        noisy += "open('llama.log', 'w')\n"
        noisy += "assert '-rtr' in sys.argv and '-fa' not in sys.argv\n"
        self.write("ik/llama-batched-bench", noisy)
        self.write("lathe", LATHE.replace("WEIGHTS", str(self.weights)))
        self.write("peer/bin/llama-perplexity", "")

    def run_script(self, *more):
        words = ["--table", self.root / "model.gguf", "--pairs", "2", *more]
        return self.against_llama(*words)

    def result(self, *more):
        out = self.root / "out.json"
        done = self.run_script("--json", out, *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        (model,) = json.loads(out.read_text())["models"]
        return {row["id"]: row for row in model["rows"]}, done.stdout

    def calls(self, program):
        return (self.root / program).with_suffix(".log").read_text().splitlines()

    def test_best_peer_and_screening(self):
        rows, text = self.result("--rows", "decode,pp512")
        llama = rows["decode"]["families"]["llama.cpp"]
        self.assertEqual(llama["best"], "llama.cpp Q4_0 -fa 0")
        self.assertEqual(llama["ratio"]["median"], 2.0)
        # 100 and 110 of 200 are out after the warm-up, 190 stays in.
        self.assertEqual(
            rows["decode"]["left_after_warm_up"],
            {"llama.cpp -fa 1": 100.0, "llama.cpp -fa 0": 110.0},
        )
        decode = [c for c in self.calls("peer/bin/llama-bench") if "-n 128" in c]
        self.assertEqual(len(decode), 4 + 2 * 2)
        # 64.5 keys and values of 256 bytes besides the weights. 2 x passes the
        # ratio, 28 % fails the share.
        share = 400 / (5000 * self.weights / (self.weights + 64.5 * 256))
        self.assertAlmostEqual(rows["decode"]["share_of_limit"]["median"], share)
        self.assertFalse(rows["decode"]["met"])
        self.assertEqual(rows["pp512"]["share_of_limit"]["median"], 0.5)
        self.assertEqual(rows["pp512"]["families"]["llama.cpp"]["ratio"]["median"], 1.5)
        self.assertFalse(rows["pp512"]["met"])
        self.assertIn("| prefill pp512, 2 threads | 300.0 | 200.0 (Q4_0 -fa 0) |", text)
        self.assertIn("| 1.50 (1.50–1.50) | 50 % int8 | ≥ 2.2 × | **no** |", text)

    def test_all_rows(self):
        rows, text = self.result("--no-q4_0")
        self.assertEqual(
            list(rows),
            "decode pick pp512 decode-1 deep-2048 deep-6144 pp4096 together-8 "
            "together-32 first step-1 step-2 step-4".split(),
        )
        lines = self.calls("lathe")
        self.assertIn("bench", lines[0])
        self.assertTrue(any("--head pick" in line for line in lines))
        self.assertTrue(any("-n 32 -d 6144" in line for line in lines))
        self.assertTrue(any("--batch 32 --context 161" in line for line in lines))
        self.assertTrue(any("-p 4096 -n 0" in line for line in lines))
        self.assertTrue(any("-n 128 -d 0 -t 1" in line for line in lines))
        # 8 rows in 12 ms against 80 tokens/s; 32 in 36 ms against 320.
        together = rows["together-8"]["families"]["llama.cpp"]
        self.assertAlmostEqual(together["ratio"]["median"], 8 / 0.012 / 80)
        self.assertTrue(rows["together-8"]["met"])
        self.assertAlmostEqual(rows["step-4"]["lathe"]["median"], 8.0)
        self.assertAlmostEqual(rows["step-4"]["of_one_row"]["median"], 1.6)
        self.assertFalse(rows["step-4"]["met"])
        self.assertEqual(rows["step-1"]["met"], None)
        self.assertEqual(rows["first"]["unit"], "s")
        self.assertIn("1.60 of one row's", text)

    def test_ik(self):
        rows, text = self.result(
            "--ik", self.root / "ik", "--rows", "deep-2048,together-8"
        )
        together = rows["together-8"]["families"]["ik_llama.cpp"]
        self.assertEqual(together["figure"]["median"], 80.0)
        families = rows["deep-2048"]["families"]
        self.assertEqual(families["ik_llama.cpp"]["best"], "ik_llama.cpp Q4_0 -fa 0")
        self.assertTrue(families["ik_llama.cpp"]["ahead"])
        ik = self.calls("ik/llama-bench")[0]
        self.assertIn("-rtr 1", ik)
        self.assertIn("-gp 2048,32", ik)
        self.assertNotIn("-d ", ik)
        self.assertIn("best ik_llama.cpp | ratio", text)

    def test_failed_row_is_told_and_the_rest_goes_on(self):
        self.write("peer/bin/llama-batched-bench", "#!/bin/sh\necho no >&2\nexit 1\n")
        done = self.run_script("--rows", "together-8,decode")
        self.assertEqual(done.returncode, 1)
        self.assertIn("not measured:", done.stdout)
        self.assertIn("| decode tg128, 2 threads | 400.0 |", done.stdout)

    def test_usage(self):
        done = self.run_script("--rows", "nonsense")
        self.assertEqual(done.returncode, 2)
        self.assertIn("has no row nonsense; it has decode", done.stderr)
        done = self.run_script("--ik", self.root)
        self.assertIn("there is no llama-bench", done.stderr)
        self.write("model.gguf", "no model")
        done = self.run_script()
        self.assertEqual(done.returncode, 2)
        self.assertIn("is no GGUF file", done.stderr)


class Bars(unittest.TestCase):
    def test_ratio_or_ninety_percent(self):
        bar = Bar(ratio=2, share=0.66)
        self.assertTrue(bar.met(2.1, 0.7, None, None))
        self.assertFalse(bar.met(1.9, 0.7, None, None))
        self.assertTrue(bar.met(1.9, 0.91, None, None))
        self.assertFalse(bar.met(2.1, 0.6, None, None))
        self.assertIsNone(Bar().met(9, 1, 1, 1))
        self.assertIsNone(bar.met(None, None, None, None))
        self.assertFalse(Bar(seconds=0.1).met(9, None, 0.11, None))
        self.assertFalse(Bar(step=1.1).met(None, None, None, 1.2))

    def test_every_bar_has_its_row(self):
        model = model_bytes.ModelBytes("llama", False, 1, ())
        ids = [row.id for row in table_rows.rows(model, 2, False)]
        for bars in table_rows.BARS.values():
            self.assertLessEqual(set(bars), set(ids))
        large = model_bytes.ModelBytes("llama", False, 10**9, ())
        self.assertEqual(table_rows.profile(large), "large")
        self.assertLessEqual({r.id for r in table_rows.rows(large, 2, False)}, set(ids))
        self.assertLessEqual(
            set(table_rows.BARS["large"]), {r.id for r in table_rows.rows(large, 2, False)}
        )
        quick = [row.id for row in table_rows.rows(model, 2, True)]
        self.assertEqual(ids, quick)


class Bytes(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.path = pathlib.Path(self._folder.name) / "model.gguf"

    def test_embedding_counts_as_a_row_unless_it_is_the_head(self):
        write_model(self.path, head=False)
        self.assertEqual(model_bytes.read(self.path).weights, 96 * 64 * 4)
        write_model(self.path, head=True)
        model = model_bytes.read(self.path)
        self.assertEqual(model.weights, 96 * 64 * 4 + 64 * 4)
        self.assertTrue(model.floats)

    def test_keys_and_values(self):
        write_model(self.path)
        # 2 layers x 1 head x (32 + 32) x 2 bytes
        self.assertEqual(model_bytes.read(self.path).kv(10), 2 * 128 * 10)
        window = (("attention.sliding_window", 4),)
        pattern = (*window, ("attention.sliding_window_pattern", 2))
        write_model(self.path, "gemma3", extra=pattern)
        self.assertEqual(model_bytes.read(self.path).kv(10), 128 * (4 + 10))
        write_model(self.path, "gemma3", extra=window)
        self.assertEqual(model_bytes.read(self.path).kv(10), 128 * (4 + 4))

    def test_limit(self):
        model = model_bytes.ModelBytes("llama", False, 1000, ((2, None),))
        decode = Row("decode", "decode", 2, tokens=9, depth=95)
        self.assertEqual(table_rows.limit(decode, model, 1.2e6), 1e3)
        together = Row("t", "together", 2, 9, 95, sequences=5)
        self.assertEqual(table_rows.limit(together, model, 2e6), 5 * 1e3)
        self.assertIsNone(table_rows.limit(Row("p", "prefill", 2), model, 1.0))

    def test_truncated(self):
        write_model(self.path)
        self.path.write_bytes(self.path.read_bytes()[:100])
        with self.assertRaises(ValueError):
            model_bytes.read(self.path)


if __name__ == "__main__":
    unittest.main()
