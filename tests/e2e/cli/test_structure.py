"""What an engine consists of: kernels, launches and barriers of the real models
against a committed table, so that no slower path slips in unseen.

A wanted change: run `python3 test_structure.py --update` and read the diff.
"""

import json
import os
import pathlib
import sys
import unittest

from support import CliTest

TABLE = pathlib.Path(__file__).with_name("structure.json")
MODELS = {
    "smollm2": "SmolLM2-135M-Instruct.Q4_1.gguf",
    "gemma3": "gemma-3-270m-Q4_K_M.gguf",
}


def model_path(name: str):
    folder = os.environ.get("LATHE_MODELS", "")
    path = pathlib.Path(folder) / MODELS[name]
    return path if folder and path.exists() else None


def barriers(source: str, function: str) -> int:
    """Waits between launches in a printed function."""
    begin = source.index(f"static void {function}(")
    return source[begin : source.index("\n}\n", begin)].count("wait(args, threads)")


class Structure(CliTest):
    def describe(self, model: pathlib.Path):
        engine, temps = self.home / "x.lathe", self.home / "temps"
        self.done(
            *("compile", model, "-o", engine, "--target", "cpu:avx2"),
            *("--strict", "--save-temps", temps),
        )
        source = (temps / "cpu-avx2.cpp").read_text()
        kernels = self.json("inspect", engine, "--kernels")
        return {
            "kernels": [
                [kernel["launches"], kernel["summary"]] for kernel in kernels
            ],
            "barriers": {
                function: barriers(source, f"lathe_{function}")
                for function in (
                    "body_v1_few body_v1_many head_v1_few head_v1_many "
                    "pick_v1_few pick_v1_many".split()
                )
            },
            # With all logits; the norm before them counts for the pick, too.
            "weight_bytes_per_token": sum(
                kernel["launches"] * kernel["weight_bytes"]
                for kernel in kernels
                if kernel["skeleton"] != "pick"
            ),
        }

    def test_real_models(self):
        found = [name for name in MODELS if model_path(name)]
        if not found:
            print("SKIPPED: no SmolLM2 and no Gemma in $LATHE_MODELS", file=sys.stderr)
            self.skipTest("no models")
        expected = json.loads(TABLE.read_text())
        for name in found:
            with self.subTest(model=name):
                self.assertEqual(self.describe(model_path(name)), expected[name])

    def test_contract_kernels_only_where_a_phase_is_left_out(self):
        self.engine()
        model, engine = self.home / "tiny.gguf", self.home / "x.lathe"

        def skeletons(*options):
            self.done("compile", model, "-o", engine, *options)
            kernels = self.json("inspect", engine, "--kernels")
            return {kernel["skeleton"] for kernel in kernels}

        self.assertNotIn("contract", skeletons())
        for phase in ("fuse-attention", "kv-cache-layout", "quantize-activations"):
            self.assertIn("contract", skeletons("--disable-pass", phase))


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        sys.exit(__doc__)
    case = Structure("describe")
    case.setUp()
    table = {name: case.describe(model_path(name)) for name in MODELS}
    TABLE.write_text(json.dumps(table, indent=1) + "\n")
    case.doCleanups()
