#!/usr/bin/env python3
"""Tests tools/bench/against_llama with stand-ins for lathe and llama.cpp."""

import json
import unittest

from stand_ins import StandIns

# Each call of a stand-in counts up, so that figures differ from call to call.
LATHE = """#!/usr/bin/env python3
import json, pathlib, sys
log = pathlib.Path(__file__).with_suffix(".log")
calls = len(log.read_text().splitlines()) if log.exists() else 0
log.open("a").write(" ".join(sys.argv[1:]) + "\\n")
def figure(x): return {"median": x, "min": x, "max": x}
print(json.dumps({"cpu": "x", "threads": 2,
  "results": [{"test": "pp64", "tokens_per_second": figure(100.0 + calls)},
              {"test": "tg8", "tokens_per_second": figure(30.0)}]}))
"""
BENCH = """#!/usr/bin/env python3
import json, sys
speed = 10.0 if "Q4_0" in " ".join(sys.argv) else 20.0
print(json.dumps([
  {"n_prompt": 64, "n_gen": 0, "n_depth": 0, "avg_ts": 50.0},
  {"n_prompt": 0, "n_gen": 8, "n_depth": 0, "avg_ts": speed}]))
"""
NOTHING = "#!/bin/sh\n"


class AgainstLlama(StandIns):
    def setUp(self):
        super().setUp()
        self.write("lathe", LATHE)
        self.write("peer/bin/llama-bench", BENCH)
        self.write("peer/bin/llama-perplexity", NOTHING)
        self.write("peer/bin/llama-batched-bench", NOTHING)
        self.write("model.gguf", "")

    def run_script(self, *more):
        words = ["-p", "64", "-n", "8", "--pairs", "3", *more]
        return self.against_llama(self.root / "model.gguf", *words)

    def test_medians_and_ratios(self):
        out = self.root / "out.json"
        done = self.run_script("--json", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(out.read_text())
        prefill = result["tests"]["pp64"]
        # Calls 1, 2 and 3 count; call 0 is the warm-up.
        self.assertEqual(prefill["lathe"], {"median": 102, "min": 101, "max": 103})
        self.assertAlmostEqual(prefill["peers"]["llama.cpp"]["ratio"]["median"], 2.04)
        decode = result["tests"]["tg8"]["peers"]
        self.assertEqual(decode["llama.cpp"]["ratio"]["median"], 1.5)
        self.assertEqual(decode["llama.cpp Q4_0"]["ratio"]["median"], 3.0)
        self.assertIn("| tg8 | 30.0 | 20.0 | 1.50 (1.50–1.50) | 10.0 |", done.stdout)
        calls = (self.root / "lathe.log").read_text().splitlines()
        self.assertEqual(len(calls), 4)
        self.assertIn("bench", calls[0])
        self.assertIn("-t 2 -r 1 -d 0 --json", calls[0])

    def test_failing_lathe_is_one_clear_line(self):
        self.write("lathe", "#!/bin/sh\necho 'error: no such file' >&2\nexit 3\n")
        done = self.run_script("--no-q4_0")
        self.assertEqual(done.returncode, 1)
        last = done.stderr.strip().splitlines()[-1]
        self.assertIn("failed: error: no such file", last)

    def test_missing_figure_is_an_error(self):
        self.write("lathe", "#!/bin/sh\necho '{\"results\": []}'\n")
        done = self.run_script("--no-q4_0")
        self.assertEqual(done.returncode, 1)
        self.assertIn("lathe gave no figure for pp64, tg8", done.stderr)

    def test_incomplete_peer_is_named(self):
        (self.root / "peer/bin/llama-bench").unlink()
        done = self.run_script()
        self.assertEqual(done.returncode, 1)
        self.assertIn("has no complete bin/", done.stderr)


if __name__ == "__main__":
    unittest.main()
