"""Real models as a user runs them: SmolLM2's ids are those of llama.cpp with F32
weights, on every ISA layer of this CPU; perplexities are as good."""

import json
import os
import pathlib
import sys
import unittest

from support import REPOSITORY, CliTest

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
GEMMA = "gemma-3-270m-Q4_K_M.gguf"
CACHE = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
MODELS = pathlib.Path(os.environ.get("LATHE_MODELS") or f"{CACHE}/lathe/models")


def golden(name: str):
    return json.loads((REPOSITORY / f"tests/golden/golden/{name}.json").read_text())


GOLDEN = golden("smollm2")

# Where the likeliest token of the F32 run leads by less, quantized activations
# may decide otherwise (llama.cpp's own quantized run leaves it earlier): what
# follows is another text. The largest gap at which this was seen is 0.51.
GAP_DECIDED = 0.6

if not (MODELS / FILE).exists():
    print(f"SKIPPED: no SmolLM2 in {MODELS} (tests/golden/fetch_models smollm2)")
    sys.exit(0)


class RealModels(CliTest):
    def setUp(self):
        super().setUp()
        self.environment["LATHE_MODELS"] = str(MODELS)

    def answer(self, engine, prompt, *options):
        return self.json(
            *("run", engine, "--raw", "--parse-special", "--ignore-end"),
            *("-p", prompt["text"], "-n", "64", *options),
        )

    def check(self, prompt, tokens):
        expected = prompt["greedy"]
        equal = next(
            (i for i, (a, b) in enumerate(zip(tokens, expected)) if a != b),
            len(expected),
        )
        name = prompt["name"]
        self.assertEqual(len(tokens), len(expected), name)
        if equal < len(expected):
            self.assertLess(prompt["gaps"][equal], GAP_DECIDED, f"{name} at {equal}")

    def test_greedy_ids_on_every_isa_layer(self):
        engine = self.home / "s.lathe"
        layers = ("generic", "avx2", "avx512")
        targets = [word for isa in layers for word in ("--target", f"cpu:{isa}")]
        self.done("compile", "smollm2", "-o", engine, "--strict", *targets)
        here = {
            target["name"].removeprefix("cpu:")
            for target in self.json("inspect", engine, "--targets")
            if not target["missing_here"]
        }
        for isa in layers:
            if isa not in here:
                print(f"NOT RUN: this CPU lacks {isa}", file=sys.stderr)
        first = {}
        for isa in filter(here.__contains__, layers):
            for prompt in GOLDEN["prompts"]:
                with self.subTest(isa=isa, prompt=prompt["name"]):
                    result = self.answer(engine, prompt, "--isa", isa)
                    self.assertEqual(result["prompt_tokens"], len(prompt["ids"]))
                    self.check(prompt, result["tokens"])
                    # The layers agree to the bit.
                    same = first.setdefault(prompt["name"], result["tokens"])
                    self.assertEqual(result["tokens"], same)

    def test_chat_template_gives_the_golden_prompt(self):
        (prompt,) = [p for p in GOLDEN["prompts"] if p["name"] == "chat"]
        chat = self.json("run", "smollm2", "-p", "Why is the sky blue?", "-n", "8")
        raw = self.answer("smollm2", prompt)
        self.assertEqual(chat["prompt_tokens"], len(prompt["ids"]))
        self.assertEqual(chat["tokens"], raw["tokens"][:8])

    def eval_text(self) -> pathlib.Path:
        text = self.home / "eval.txt"
        maker = REPOSITORY / "tests/golden/make_eval_text.py"
        os.spawnl(os.P_WAIT, sys.executable, sys.executable, str(maker), str(text))
        if not text.exists():
            self.skipTest("the licence texts of Debian 12 are not here")
        return text

    def check_perplexity(self, model: str):
        text = self.eval_text()
        expected = golden(model)["perplexity"]
        chunks = expected["chunks"]
        result = self.json("eval", model, "-f", text, "--chunks", chunks)
        self.assertEqual(result["chunks"], chunks)
        self.assertEqual(result["tokens"], chunks * 255)
        ratio = result["perplexity"] / expected["f32_weights_perplexity"]
        self.assertLess(abs(ratio - 1), 0.008)

    def test_perplexity_of_smollm2(self):
        self.check_perplexity("smollm2")

    @unittest.skipUnless((MODELS / GEMMA).exists(), f"no {GEMMA} in {MODELS}")
    def test_perplexity_of_gemma3(self):
        self.check_perplexity("gemma3")

    def check_kv_dtypes(self, model: str):
        """What a smaller KV cache adds to the KL divergence from a cache of f32, in
        nats a token. Any change of a bit costs some of it, because activations are
        rounded to int8 behind it: f16 says how much."""
        text, logits = self.eval_text(), self.home / "f32.npy"
        part = ("-f", text, "--chunks", "4")
        self.done("eval", model, *part, "--kv-dtype", "f32", "--logits", logits)
        mean = {}
        for dtype in ("f16", "bf16", "int8"):
            options = ("--kv-dtype", dtype, "--compare", logits)
            result = self.json("eval", model, *part, *options)
            mean[dtype] = result["kl_divergence"]["mean"]
        print(f"{model}: KL by dtype of KV {mean}", file=sys.stderr)
        self.assertLess(mean["bf16"] - mean["f16"], 0.002)
        self.assertLess(mean["int8"] - mean["f16"], 0.002)

    def test_kv_dtypes_of_smollm2(self):
        self.check_kv_dtypes("smollm2")

    @unittest.skipUnless((MODELS / GEMMA).exists(), f"no {GEMMA} in {MODELS}")
    def test_kv_dtypes_of_gemma3(self):
        self.check_kv_dtypes("gemma3")


if __name__ == "__main__":
    unittest.main()
