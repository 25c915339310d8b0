"""lathe plan: what a model takes, told from its header."""

import json
import re
import shutil
import struct
import time

from support import LATHE, CliTest, write_tiny_model

# tiny.gguf as Hugging Face would describe it.
TINY = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "vocab_size": 512,
    "max_position_embeddings": 512,
    "quantization_config": {"bits": 8},
}

# As published: what each model's card or safetensors index counts.
PARAMETERS = {
    "gemma-3-270m": 268098176,
    "gemma-3-1b": 999885952,
    "gemma-3-4b": 3880263168,
    "llama-2-7b": 6738415616,
    "llama-2-13b": 13015864320,
    "llama-2-70b": 68976648192,
    "llama-3-8b": 8030261248,
    "llama-3.1-405b": 405853388800,
    "llama-3.2-1b": 1235814400,
    "mistral-7b": 7248023552,
    "qwen2.5-0.5b": 494032768,
    "qwen2.5-7b": 7615616512,
    "qwen2.5-72b": 72706203648,
    "qwen3-8b": 8190735360,
    "smollm2-135m": 134515008,
}


class PlanTest(CliTest):
    def config(self, name="config.json", **changes):
        path = self.home / name
        values = {**TINY, **changes}
        path.write_text(json.dumps({k: v for k, v in values.items() if v is not None}))
        return path


class Presets(PlanTest):
    def test_llama_2_70b(self):
        # 10.74 GB where each query head has keys of its own, not the often
        # quoted 5.2 GB, which counts keys and no values.
        plan = self.json(
            "plan",
            "--preset",
            "llama-2-70b",
            "--device",
            "a100-80g",
            "--weights",
            "int4",
        )
        gigabytes = {k: v / 1e9 for k, v in plan["kv"]["bytes"].items()}
        self.assertEqual(plan["kv"]["tokens"], 4096)
        self.assertAlmostEqual(gigabytes["mha"], 10.74, places=2)
        self.assertAlmostEqual(gigabytes["as_is"], 1.34, places=2)
        self.assertAlmostEqual(gigabytes["mqa"], 0.17, places=2)
        weights = plan["weights"]
        self.assertEqual(weights["fp32"], 4 * plan["parameters"])
        self.assertEqual(weights["fp16"], 2 * plan["parameters"])
        self.assertEqual(weights["int8"], plan["parameters"])
        self.assertEqual(weights["int4"] * 2, plan["parameters"])
        self.assertEqual(plan["attention"][0]["sharing"], "GQA-8")
        self.assertTrue(plan["fits"])
        settled = plan["plan"]
        self.assertEqual(settled["weight_bytes"], weights["q4_0"])
        self.assertLessEqual(settled["total_bytes"], 80e9)
        self.assertEqual(settled["kv_tokens"], 16 * 4096)
        whole = self.json("plan", "--preset", "llama-2-70b", "--memory", "200G")
        a100 = whole["bandwidth"][0]
        self.assertEqual((a100["device"], a100["bytes_per_second"]), ("a100-80g", 2e12))
        self.assertAlmostEqual(a100["ms_per_token"], 69, delta=1)
        self.assertAlmostEqual(
            a100["ms_per_token_at_context"] - a100["ms_per_token"], 1.3422 / 2, 2
        )

    def test_parameters_are_the_published_ones(self):
        for preset, parameters in PARAMETERS.items():
            with self.subTest(preset):
                plan = self.json("plan", "--preset", preset)
                self.assertEqual(plan["parameters"], parameters)

    def test_windows_of_gemma_3(self):
        plan = self.json("plan", "--preset", "gemma-3-1b", "--memory", "80G")
        self.assertEqual(
            [(each["layers"], each["window"]) for each in plan["attention"]],
            [(22, 512), (4, 0)],
        )
        layer = 2 * 256 * 2
        self.assertEqual(plan["kv"]["bytes_per_token"]["as_is"], 26 * layer)
        self.assertEqual(plan["kv"]["bytes"]["as_is"], layer * (22 * 512 + 4 * 32768))
        local, full = plan["plan"]["kv_groups"]
        self.assertEqual(full["pages"], 16 * 32768 // 16)
        self.assertLess(local["pages"], full["pages"] / 20)

    def test_table(self):
        text = self.done(
            "plan", "--preset", "llama-2-70b", "--device", "h200", "--requests", "1"
        )
        for line in (
            r"model +llama-2-70b \(llama\), 68\.98 G parameters",
            r"attention +80 layers: 64 heads, 8 KV heads of 128 \(GQA-8\)",
            r"INT8 +68\.98 GB +73\.29 GB with scales, as Q8_0",
            r"as it is, GQA-8 +327\.68 kB +1\.34 GB",
            r"as MHA +2\.62 MB +10\.74 GB",
            r"as MQA +40\.96 kB +167\.77 MB",
            r"KV cache +1\.35 GB +4096 tokens for 1 request, context 4096",
            r"requests +that all of it could hold together",
            r"\n +2 of 4096 tokens\n",
            r"h200 +4800\.0 GB/s +28\.\d\d ms +28\.\d\d ms",
        ):
            self.assertRegex(text, line)
        self.assertNotIn("a100", text)

    def test_fast(self):
        start = time.monotonic()
        self.done("plan", "--preset", "llama-3.1-405b", "--memory", "1T")
        self.assertLess(time.monotonic() - start, 1)

    def test_unknown(self):
        self.fails(
            1,
            "'llama-9' ?; known are .*llama-2-70b, .*smollm2",
            "plan",
            "--preset",
            "llama-9",
        )


class Memory(PlanTest):
    def test_too_small_is_an_error_with_both_numbers(self):
        for where in (["--device", "a100-80g"], ["--memory", "80G"]):
            arguments = ["plan", "--preset", "llama-2-70b", *where]
            self.fails(
                1, r"needs [\d.]+ GiB \(\d+ bytes\).*80000000000 bytes", *arguments
            )
            # What is known is told all the same.
            result = self.run_lathe(*arguments, "--json")
            plan = json.loads(result.stdout)
            self.assertFalse(plan["fits"])
            self.assertIsNone(plan["plan"])
            self.assertIn("needs", plan["misfit"])
        self.fails(
            1,
            "lower --chunk or raise --memory",
            "plan",
            "--preset",
            "smollm2-135m",
            "--weights",
            "int4",
            "--memory",
            "90M",
            "--chunk",
            "4096",
        )
        self.fails(
            1,
            "lower --context or raise --memory",
            "plan",
            "--preset",
            "smollm2-135m",
            "--context",
            "8192",
            "--memory",
            "400M",
            "--chunk",
            "64",
        )

    def test_context_is_lowered(self):
        plan = self.json("plan", "--preset", "llama-3.1-8b", "--memory", "20G")["plan"]
        self.assertEqual(plan["context"] % 256, 0)
        self.assertIn(
            f"context lowered from 131072 to {plan['context']} tokens", plan["notice"]
        )
        self.assertLessEqual(plan["total_bytes"], 20e9)
        self.assertEqual(plan["requests_that_fit"][-1]["tokens"], plan["context"])
        self.assertEqual(plan["requests_that_fit"][-1]["requests"], 1)

    def test_more_requests_share_the_memory(self):
        settled = [
            self.json(
                "plan", "--preset", "llama-3-8b", "--memory", "24G", "--requests", count
            )["plan"]
            for count in (1, 2, 100)
        ]
        self.assertEqual(settled[0]["kv_tokens"], 8192)
        self.assertEqual(settled[1]["kv_tokens"], 2 * 8192)
        self.assertGreater(settled[2]["kv_tokens"], 4 * 8192)
        self.assertLess(settled[2]["kv_tokens"], 100 * 8192)
        for plan in settled:
            self.assertLessEqual(plan["total_bytes"], 24e9)

    def test_units(self):
        for text, available in (
            ("8G", 8e9),
            ("8GB", 8e9),
            ("8Gi", 8 << 30),
            ("1.5T", 1.5e12),
            ("3000000000", 3e9),
        ):
            with self.subTest(text):
                plan = self.json("plan", "--preset", "smollm2-135m", "--memory", text)
                plan = plan["plan"]
                self.assertEqual(
                    plan["kv_available_bytes"]
                    + plan["arena_bytes"]
                    + plan["weight_bytes"],
                    available,
                )
        for text in ("", "G", "-1G", "8X", "0", "8GG", "nan", "1e99", "inf"):
            with self.subTest(text):
                self.fails(
                    2,
                    "--memory: takes a number of bytes",
                    "plan",
                    "--preset",
                    "smollm2-135m",
                    "--memory",
                    text,
                )

    def test_this_machine(self):
        plan = self.json("plan", "--preset", "smollm2-135m")
        self.assertEqual(plan["memory"], "this machine")
        self.assertTrue(plan["fits"])
        measured = self.json("plan", "--preset", "smollm2-135m", "--device", "cpu")
        (cpu,) = measured["bandwidth"]
        self.assertEqual(cpu["device"], "cpu")
        self.assertGreater(cpu["bytes_per_second"], 1e9)


class Files(PlanTest):
    def test_model_file_and_engine_say_the_same(self):
        engine = self.engine()
        of_model = self.json("plan", "tiny.gguf", "--memory", "1G")
        of_engine = self.json("plan", engine, "--memory", "1G")
        self.assertEqual(of_model["source"], "gguf")
        self.assertEqual(of_engine["source"], "engine")
        self.assertTrue(of_model["plan"]["arena_is_exact"])
        self.assertEqual(of_model["plan"], of_engine["plan"])
        for key in ("attention", "kv", "hidden", "vocab", "context", "layers"):
            self.assertEqual(of_model[key], of_engine[key], key)
        overview = self.json("inspect", engine)
        self.assertEqual(of_model["plan"]["weight_bytes"], overview["weight_bytes"])
        (group,) = self.json("inspect", engine, "--memory")["kv_groups"]
        self.assertEqual(
            of_model["plan"]["kv_groups"][0]["page_bytes"], group["page_bytes"]
        )
        # Nothing was compiled for it.
        self.assertFalse((self.home / "cache/lathe/engines").exists())

    def test_config_estimates_what_the_compiler_plans(self):
        self.engine()
        exact = self.json("plan", "tiny.gguf", "--memory", "1G")
        estimated = self.json("plan", self.config(), "--memory", "1G")
        self.assertEqual(estimated["source"], "config")
        self.assertFalse(estimated["plan"]["arena_is_exact"])
        for key in ("attention", "kv", "parameters"):
            self.assertEqual(estimated[key], exact[key], key)
        self.assertEqual(estimated["plan"]["kv_groups"], exact["plan"]["kv_groups"])
        ratio = estimated["plan"]["arena_bytes"] / exact["plan"]["arena_bytes"]
        self.assertAlmostEqual(ratio, 1, delta=0.1)

    def test_without_the_compiler(self):
        write_tiny_model(self.home / "tiny.gguf")
        bare = self.home / "bare/bin/lathe"
        bare.parent.mkdir(parents=True)
        shutil.copy2(LATHE, bare)
        plan = self.json("plan", "tiny.gguf", "--memory", "1G", program=bare)
        self.assertFalse(plan["plan"]["arena_is_exact"])
        exact = self.json("plan", "tiny.gguf", "--memory", "1G")
        self.assertEqual(plan["plan"]["kv_groups"], exact["plan"]["kv_groups"])

    def test_engine_without_a_cache(self):
        write_tiny_model(self.home / "tiny.gguf")
        self.done(
            "compile",
            "tiny.gguf",
            "-o",
            "bare.lathe",
            "--disable-pass",
            "kv-cache-layout",
        )
        plan = self.json("plan", "bare.lathe", "--memory", "1G")
        self.assertEqual((plan["layers"], plan["attention"]), (2, []))
        self.assertEqual(plan["plan"]["kv_bytes"], 0)
        self.assertEqual(plan["plan"]["step_rows"], 512)
        self.assertIn("none: each step", self.done("plan", "bare.lathe"))

    def test_other_precisions_of_a_file(self):
        write_tiny_model(self.home / "tiny.gguf")
        for kv, factor in (("f32", 2), ("f16", 1), ("bf16", 1), ("int8", 36 / 64)):
            plan = self.json("plan", "tiny.gguf", "--kv-dtype", kv, "--memory", "1G")
            self.assertEqual(plan["kv"]["bytes_per_token"]["as_is"], 512 * factor)
            (group,) = plan["plan"]["kv_groups"]
            self.assertEqual(group["page_bytes"], 16 * 512 * factor)
        plan = self.json("plan", "tiny.gguf", "--weights", "fp32", "--memory", "1G")
        self.assertEqual(plan["plan"]["weight_bytes"], 4 * plan["parameters"])

    def test_header_alone_is_read(self):
        # Weights that import would refuse: an infinite scale.
        write_tiny_model(self.home / "tiny.gguf")
        data = bytearray((self.home / "tiny.gguf").read_bytes())
        data[-34:-32] = struct.pack("<e", float("inf"))
        (self.home / "inf.gguf").write_bytes(data)
        self.fails(1, "inf.gguf", "compile", "inf.gguf", "-o", "inf.lathe")
        self.json("plan", "inf.gguf")

    def test_damaged_model_file(self):
        write_tiny_model(self.home / "tiny.gguf")
        data = (self.home / "tiny.gguf").read_bytes()
        for name, damaged in (
            ("short.gguf", data[:3000]),
            ("magic.gguf", b"GGUF" + b"\xff" * 2000),
            ("arch.gguf", data.replace(b"llama", b"llamb")),
            ("empty.gguf", b""),
        ):
            with self.subTest(name):
                (self.home / name).write_bytes(damaged)
                self.fails(1, re.escape(name), "plan", name)


class Configs(PlanTest):
    def test_missing_and_wrong_keys_are_named(self):
        for key in (
            "num_hidden_layers",
            "hidden_size",
            "intermediate_size",
            "num_attention_heads",
            "vocab_size",
            "max_position_embeddings",
            "model_type",
        ):
            with self.subTest(key):
                self.fails(
                    1,
                    f"config.json: key '{key}' is missing",
                    "plan",
                    self.config(**{key: None}),
                )
        for key, value, told in (
            ("hidden_size", "64", "key 'hidden_size' is not a whole number"),
            ("hidden_size", -64, "key 'hidden_size' is not a whole number"),
            ("hidden_size", 1 << 40, r"hidden_size is \d+; it must lie in 1 to"),
            ("num_hidden_layers", 0, "num_hidden_layers is 0; it must lie in 1 to"),
            ("num_key_value_heads", 3, "no multiple of num_key_value_heads, 3"),
            ("num_key_value_heads", 8, "num_key_value_heads is 8"),
            ("tie_word_embeddings", 1, "'tie_word_embeddings' is neither true nor"),
            (
                "model_type",
                "mamba",
                "architecture 'mamba' is not known; known are "
                "gemma3, llama, mistral, qwen2, qwen3",
            ),
            ("model_type", 7, "key 'model_type' is not a string"),
            ("quantization_config", {"bits": 3}, "--weights"),
        ):
            with self.subTest(key=key, value=value):
                self.fails(1, told, "plan", self.config(**{key: value}))

    def test_files_that_are_none(self):
        for name, text in (
            ("list.json", "[1, 2]"),
            ("cut.json", '{"model_type": "lla'),
            ("deep.json", "[" * 100000),
            ("text.json", "hello"),
        ):
            with self.subTest(name):
                (self.home / name).write_text(text)
                self.fails(
                    1,
                    f"{name}: neither a GGUF model nor an engine nor a " "config.json",
                    "plan",
                    name,
                )
        self.fails(1, "none.json", "plan", "none.json")

    def test_defaults(self):
        plan = self.json(
            "plan",
            self.config(
                num_key_value_heads=None,
                head_dim=None,
                torch_dtype="float32",
                quantization_config=None,
            ),
        )
        (layers,) = plan["attention"]
        self.assertEqual(layers["sharing"], "MHA")
        self.assertEqual(layers["head_dim"], 16)
        self.assertEqual(plan["weights"]["as_is"], 4 * plan["parameters"])

    def test_windows(self):
        def windows(**changes):
            plan = self.json("plan", self.config(num_hidden_layers=12, **changes))
            return [(each["layers"], each["window"]) for each in plan["attention"]]

        self.assertEqual(windows(sliding_window=64), [(12, 64)])
        qwen = {"model_type": "qwen2", "sliding_window": 64, "max_window_layers": 9}
        self.assertEqual(windows(**qwen, use_sliding_window=False), [(12, 0)])
        self.assertEqual(windows(**qwen, use_sliding_window=True), [(3, 64), (9, 0)])
        gemma = {"model_type": "gemma3_text", "sliding_window": 64}
        self.assertEqual(windows(**gemma), [(10, 64), (2, 0)])
        self.assertEqual(windows(**gemma, sliding_window_pattern=4), [(9, 64), (3, 0)])
        types = ["sliding_attention", "full_attention"] * 6
        self.assertEqual(windows(**gemma, layer_types=types), [(6, 64), (6, 0)])

    def test_text_part_of_a_model_that_sees(self):
        # gemma-3-4b-it's config.json: what it leaves out is what transformers
        # assumes.
        path = self.home / "config.json"
        path.write_text(
            json.dumps(
                {
                    "model_type": "gemma3",
                    "text_config": {
                        "model_type": "gemma3_text",
                        "hidden_size": 2560,
                        "intermediate_size": 10240,
                        "num_hidden_layers": 34,
                        "sliding_window": 1024,
                    },
                    "torch_dtype": "bfloat16",
                    "vision_config": {"hidden_size": 1152},
                }
            )
        )
        of_config = self.json("plan", path, "--memory", "80G")
        of_preset = self.json("plan", "--preset", "gemma-3-4b", "--memory", "80G")
        for key in ("parameters", "attention", "kv", "weights", "plan"):
            self.assertEqual(of_config[key], of_preset[key], key)


class Usage(PlanTest):
    def test_wrong_command_lines(self):
        preset = ("plan", "--preset", "smollm2-135m")
        for told, *arguments in (
            ("MODEL or --preset is required", "plan"),
            ("exclude each other", *preset, "model.gguf"),
            (
                "--device excludes --memory|--memory excludes --device",
                *preset,
                "--device",
                "h100",
                "--memory",
                "8G",
            ),
            ("--device", *preset, "--device", "h900"),
            ("--kv-dtype", *preset, "--kv-dtype", "f8"),
            ("--weights", *preset, "--weights", "int3"),
            ("--requests: takes a whole number", *preset, "--requests", "0"),
            ("--context: takes a whole number", *preset, "--context", "0"),
        ):
            with self.subTest(arguments):
                self.fails(2, told, *arguments)
        self.fails(
            1,
            "a context of 9000 tokens was asked for; .* 8192; lower " "--context",
            *preset,
            "--context",
            "9000",
        )
