"""Compiling a tiny model, and every command on its engine."""

import json
import os
import re
import shutil
import signal
import subprocess
import time

from support import BOS, EOS, LATHE, CliTest, write_tiny_model

RUN_KEYS = [
    "text",
    "tokens",
    "prompt_tokens",
    "completion_tokens",
    "finish_reason",
    "load_ms",
    "prefill_tokens_per_second",
    "decode_tokens_per_second",
    "peak_rss_bytes",
]


class Compile(CliTest):
    def test_summary(self):
        write_tiny_model(self.home / "m.gguf")
        summary = self.json("compile", "m.gguf", "-o", "m.lathe")
        self.assertEqual(summary["file_bytes"], (self.home / "m.lathe").stat().st_size)
        self.assertGreater(summary["kernels"], 0)
        self.assertGreater(summary["tensors"], 0)

    def test_options_may_stand_before_the_model(self):
        write_tiny_model(self.home / "m.gguf")
        self.done(
            *("compile", "--target", "cpu:generic", "--target", "cpu:avx2"),
            *("--disable-pass", "merge-linears", "m.gguf", "-o", "m.lathe"),
        )
        targets = self.json("inspect", "m.lathe")["targets"]
        self.assertEqual(sorted(targets), ["cpu:avx2", "cpu:generic"])

    def test_ir_and_temps(self):
        write_tiny_model(self.home / "m.gguf")
        shown = self.done(
            *("compile", "m.gguf", "-o", "m.lathe", "--save-temps", "temps"),
            *("--print-ir-after", "fuse-attention"),
        )
        self.assertIn("// ---- after fuse-attention ----", shown)
        self.assertIn("module", shown)
        self.assertTrue(list((self.home / "temps").glob("*.cpp")))
        self.done("compile", "m.gguf", "-o", "m.mlir", "--stop-after", "form-kernels")
        self.done("compile", "m.mlir", "-o", "again.lathe")
        answers = [
            self.json("run", engine, "--raw", "-p", "hello", "-n", "16")["tokens"]
            for engine in ("m.lathe", "again.lathe")
        ]
        self.assertEqual(answers[0], answers[1])

    def test_bad_input(self):
        write_tiny_model(self.home / "m.gguf")
        for option, value in (
            ("--target", "cpu:z80"),
            ("--disable-pass", "nonsense"),
            ("--disable-pass", "plan-memory"),
            ("--stop-after", "nonsense"),
            ("--print-ir-after", "nonsense"),
        ):
            with self.subTest(option=option, value=value):
                self.fails(1, value, "compile", "m.gguf", "-o", "x", option, value)
        self.fails(1, "no/where", "compile", "m.gguf", "-o", "no/where/x.lathe")
        self.assertFalse((self.home / "x").exists())


class Run(CliTest):
    def setUp(self):
        super().setUp()
        self.tiny = self.engine()

    def test_json(self):
        result = self.json("run", self.tiny, "--raw", "-p", "hello", "-n", "8")
        self.assertEqual(list(result), RUN_KEYS)
        self.assertEqual(result["completion_tokens"], len(result["tokens"]))
        ids = self.done("tokenize", self.tiny, "--ids", "hello").split()
        self.assertEqual(result["prompt_tokens"], len(ids))
        self.assertGreater(result["peak_rss_bytes"], 1 << 20)
        self.assertIn(result["finish_reason"], ("stop", "length"))

    def test_text_is_the_json_text(self):
        arguments = ("run", self.tiny, "--raw", "-p", "hello", "-n", "8")
        result = self.run_lathe(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        text = self.json(*arguments)["text"]
        self.assertEqual(result.stdout.removesuffix("\n"), text.removesuffix("\n"))
        self.assertRegex(result.stderr, r"^load .* ms \| prefill .* memory ")

    def test_prompt_sources_agree(self):
        (self.home / "p.txt").write_text("hello")
        given = [
            self.json("run", self.tiny, "-n", "4", *source, input=text)["tokens"]
            for source, text in (
                (["-p", "hello"], ""),
                (["-f", "p.txt"], ""),
                (["-f", "-"], "hello"),
                ([], "hello"),
            )
        ]
        self.assertEqual(given, [given[0]] * 4)

    def test_threads_and_chunks_do_not_matter(self):
        text = "the lighthouse keeper counted ships " * 4
        base = ("run", self.tiny, "--raw", "-p", text, "-n", "24", "--ignore-end")
        first = self.json(*base)["tokens"]
        for options in (["-t", "1"], ["-t", "3"], ["--chunk", "7"]):
            self.assertEqual(self.json(*base, *options)["tokens"], first, options)

    def test_seed_decides(self):
        base = ("run", self.tiny, "--raw", "-p", "hello", "-n", "16")
        base += ("--ignore-end", "--temperature", "1.5")
        one = self.json(*base, "--seed", "1")["tokens"]
        self.assertEqual(self.json(*base, "--seed", "1")["tokens"], one)
        self.assertNotEqual(self.json(*base, "--seed", "2")["tokens"], one)

    def test_logit_bias(self):
        base = ("run", self.tiny, "--raw", "-p", "hello", "-n", "3")
        forced = self.json(*base, "--logit-bias", "65=1e9")["tokens"]
        self.assertEqual(forced, [65, 65, 65])
        stopped = self.json(*base, "--logit-bias", f"{EOS}=+1e9")
        self.assertEqual(stopped["finish_reason"], "stop")
        self.assertEqual(stopped["tokens"], [])

    def test_stop_string_is_cut_off(self):
        base = ("run", self.tiny, "--raw", "-p", "hello", "-n", "9")
        base += ("--logit-bias", "65=1e9")
        letter = self.json(*base)["text"][0]
        stopped = self.json(*base, "--stop", letter * 2)
        self.assertEqual(stopped["text"], "")
        self.assertEqual(stopped["finish_reason"], "stop")

    def test_user_text_forges_no_control_token(self):
        base = ("run", self.tiny, "-n", "1", "-p")
        plain = self.json(*base, "ab")["prompt_tokens"]
        forged = self.json(*base, "ab<|eos|>")["prompt_tokens"]
        self.assertGreater(forged, plain + 1)
        raw = ("run", self.tiny, "--raw", "-n", "1", "-p", "ab<|eos|>")
        parsed = self.json(*raw, "--parse-special")["prompt_tokens"]
        self.assertLess(parsed, self.json(*raw)["prompt_tokens"])

    def test_bad_requests(self):
        base = ("run", self.tiny)
        self.fails(1, "context", *base, "--raw", "-p", "x" * 2000)
        self.fails(1, "lower --context", *base, "-p", "x", "--context", "100000")
        self.fails(1, "UTF-8", *base, "-f", self.tiny)
        self.fails(1, "avx1024", *base, "-p", "x", "--isa", "avx1024")
        self.fails(1, "no tokens", *base, "--raw", "-p", "")
        self.fails(1, "Is a directory|directory", *base, "-f", self.home)

    def test_interrupt_ends_cleanly(self):
        command = [LATHE, "run", self.tiny, "--raw", "-p", "x", "--ignore-end"]
        command += ["-n", "400", "--json"]
        # Interrupted at once or while generating: the answer so far is shown.
        process = subprocess.Popen(
            list(map(str, command)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment,
            text=True,
        )
        time.sleep(0.15)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=20)
        if process.returncode == -signal.SIGINT:
            self.skipTest("interrupted before the generation began")
        self.assertIn(process.returncode, (0, 130), error)
        reasons = {130: ("cancelled",), 0: ("length", "stop")}
        reason = json.loads(out)["finish_reason"]
        self.assertIn(reason, reasons[process.returncode])

    def test_reader_that_goes_away(self):
        process = subprocess.Popen(
            [LATHE, "inspect", self.tiny, "--ir", "plan-memory"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment,
        )
        process.stdout.read(1)
        process.stdout.close()
        error = process.stderr.read()
        process.stderr.close()
        self.assertIn(process.wait(20), (0, 141))
        self.assertEqual(error, b"")

    def test_without_the_compiler(self):
        alone = self.home / "alone/bin/lathe"
        alone.parent.mkdir(parents=True)
        shutil.copy2(LATHE, alone)
        expected = self.json("run", self.tiny, "-p", "hi", "-n", "4")["tokens"]
        found = self.json("run", self.tiny, "-p", "hi", "-n", "4", program=alone)
        self.assertEqual(found["tokens"], expected)
        self.fails(
            *(1, "liblathe-compiler.so is not there"),
            *("compile", "tiny.gguf", "-o", "x.lathe"),
            program=alone,
        )


class Inspect(CliTest):
    def test_views(self):
        engine = self.engine()
        overview = self.json("inspect", engine)
        self.assertEqual(overview["architecture"], "llama")
        self.assertEqual(overview["layers"], 2)
        self.assertEqual(overview["signature"], "own")
        phases = self.json("inspect", engine, "--ir")["phases"]
        self.assertIn("kv-cache-layout", phases)
        for phase in phases:
            self.assertIn("module", self.done("inspect", engine, "--ir", phase))
        kernels = self.json("inspect", engine, "--kernels")
        for kernel in kernels:
            name = kernel["symbol"]
            source = self.done("inspect", engine, "--kernels", name)
            self.assertIn(f"{name}(const StepArgs", source)
            self.assertEqual(source.count("(const StepArgs"), 1)
        self.assertEqual(self.done("inspect", engine, "--kernels", "0").count("K0"), 2)
        weights = self.json("inspect", engine, "--weights")
        names = [weight["model_name"] for weight in weights]
        self.assertIn("blk.1.ffn_down", " ".join(names))
        self.assertGreater(self.json("inspect", engine, "--memory")["weight_bytes"], 0)
        (target,) = self.json("inspect", engine, "--targets")
        self.assertEqual(target["missing_here"], "")
        for view in ([], ["--weights"], ["--memory"], ["--targets"], ["--kernels"]):
            self.assertTrue(self.done("inspect", engine, *view))

    def test_bad_requests(self):
        engine = self.engine()
        self.fails(1, "nonsense", "inspect", engine, "--ir", "nonsense")
        self.fails(1, "nonsense", "inspect", engine, "--kernels", "nonsense")
        self.fails(1, "cpu:z80", "inspect", engine, "--kernels", "--target", "cpu:z80")
        self.fails(2, "one view", "inspect", engine, "--weights", "--memory")


class Verify(CliTest):
    def test_whole_and_damaged(self):
        engine = self.engine()
        self.assertEqual(self.json("verify", engine)["signature"], "own")
        weight = self.json("inspect", engine, "--weights")[0]
        content = bytearray(engine.read_bytes())
        # The weights' section is the largest thing in the file.
        content[len(content) // 2] ^= 1
        damaged = self.home / "damaged.lathe"
        damaged.write_bytes(content)
        self.fails(1, "damaged.lathe", "verify", damaged)
        damaged.write_bytes(engine.read_bytes()[:-100])
        self.fails(1, "damaged.lathe", "verify", damaged)
        self.assertTrue(weight)


class Trust(CliTest):
    def test_another_users_engine(self):
        engine = self.engine()
        own = self.json("trust", "show")["own"]
        other = {"XDG_CONFIG_HOME": str(self.home / "other")}
        run = ("run", engine, "-p", "x", "-n", "1")
        # Where there is no compiler, its code would be all there is.
        alone = self.home / "bin" / "lathe"
        alone.parent.mkdir()
        shutil.copy2(LATHE, alone)
        self.fails(1, f"lathe trust add {own}", *run, program=alone, **other)
        self.done(*run, "--trust-code", program=alone, **other)
        self.assertIn(own, self.done("trust", "add", own, "--note", "me", **other))
        self.done(*run, program=alone, **other)
        shown = self.json("trust", "show", **other)
        self.assertEqual(shown, {"own": None, "accepted": [{"key": own, "note": "me"}]})
        self.assertEqual(self.json("verify", engine, **other)["signature"], "accepted")

    def test_strange_code_is_built_anew(self):
        engine = self.engine()
        run = ("run", engine, "--raw", "-p", "abc", "-n", "8")
        answer = self.done(*run)
        other = {"XDG_CONFIG_HOME": str(self.home / "other")}
        first = self.run_lathe(*run, **other)
        self.assertEqual((first.returncode, first.stdout), (0, answer), first.stderr)
        self.assertIn("anew", first.stderr)
        again = self.run_lathe(*run, **other)
        self.assertEqual((again.returncode, again.stdout), (0, answer), again.stderr)
        self.assertNotIn("anew", again.stderr)

    def test_code_for_another_cpu_is_built_anew(self):
        self.engine()
        engine = self.home / "generic.lathe"
        self.done(
            "compile", self.home / "tiny.gguf", "-o", engine, "--target", "cpu:generic"
        )
        run = ("run", engine, "--raw", "-p", "abc", "-n", "8")
        answer = self.done(*run)
        with open("/proc/cpuinfo", encoding="ascii", errors="ignore") as info:
            if " avx2 " not in info.read():
                self.skipTest("this CPU has no AVX2")
        rebuilt = self.run_lathe(*run, "--isa", "avx2")
        self.assertEqual((rebuilt.returncode, rebuilt.stdout), (0, answer))
        self.assertIn("anew for cpu:avx2", rebuilt.stderr)

    def test_facts_that_the_graph_contradicts(self):
        self.engine()
        model, ir = self.home / "tiny.gguf", self.home / "x.mlir"
        self.done("compile", model, "-o", ir, "--stop-after", "canonicalize")
        text = ir.read_text()
        for fact, other in (("hidden = 64", "hidden = 32"), ("vocab = 512", "vocab = 500")):
            self.assertIn(fact, text)
            ir.write_text(text.replace(fact, other))
            self.fails(1, other, "compile", ir, "-o", self.home / "x.lathe")

    def test_inputs_are_not_written_over(self):
        engine = self.engine()
        model = self.home / "tiny.gguf"
        before = model.read_bytes()
        self.fails(1, "must not be written over", "compile", model, "-o", model)
        self.assertEqual(model.read_bytes(), before)
        before = engine.read_bytes()
        text = self.home / "text.txt"
        text.write_text("the keeper of the lighthouse counted ships " * 20)
        command = ("eval", engine, "-f", text, "--chunk", "8", "--chunks", "1")
        self.fails(1, "must not be written over", *command, "--logits", engine)
        self.fails(1, "must not be written over", *command, "--logits", text)
        self.assertEqual(engine.read_bytes(), before)

    def test_inputs_that_are_no_files(self):
        fifo, folder = self.home / "fifo", self.home / "folder.mlir"
        os.mkfifo(fifo)
        folder.mkdir()
        for path in (fifo, folder):
            self.fails(
                1, "not a regular file", "compile", path, "-o", self.home / "x.lathe"
            )

    def test_seeds_are_whole_numbers(self):
        engine = self.engine()
        for seed in ("-1", "99999999999999999999", "1.5", "x"):
            self.fails(2, "seed", "run", engine, "-p", "x", "-n", "1", "--seed", seed)

    def test_dumped_ir_compiles_on_to_the_same_engine(self):
        engine = self.engine()
        model = self.home / "tiny.gguf"
        for phase in ("canonicalize", "kv-cache-layout", "plan-memory"):
            with self.subTest(phase=phase):
                ir, again = self.home / "x.mlir", self.home / "again.lathe"
                self.done("compile", model, "-o", ir, "--stop-after", phase)
                self.done("compile", ir, "-o", again)
                self.assertEqual(again.read_bytes(), engine.read_bytes())
        # A hand edit is compiled as it is.
        text = self.home / "x.mlir"
        self.done("compile", model, "-o", text, "--stop-after", "fuse-attention")
        edited = text.read_text().replace("epsilon 1.000000e-03", "epsilon 1.000000e-01")
        self.assertTrue(edited != text.read_text())
        text.write_text(edited)
        self.done("compile", text, "-o", again)
        self.assertNotEqual(again.read_bytes(), engine.read_bytes())
        self.assertIn("1.000000e-01", self.done("inspect", again, "--ir", "plan-memory"))

    def test_edits_that_cannot_run_are_refused(self):
        def dump(phase):
            ir = self.home / f"{phase}.mlir"
            self.done("compile", "tiny.gguf", "-o", ir, "--stop-after", phase)
            return ir.read_text()

        self.engine()
        graph, plan = dump("canonicalize"), dump("plan-memory")
        first = re.search(r"kernel.launch @\w+\([^)]*\) waits", plan).group()
        for text, pattern, new, message in (
            (graph, r"positions = \d+", "positions = 1000000", "does not fit .*positions"),
            (plan, r"waits \[[\d, ]+\]", "waits []", "must wait for launch 0"),
            (plan, r" slot \d+", " slot 0", "shares slot 0 with a buffer"),
            (plan, r" slot \d+", " slot 1000000000", "needs a slot below"),
            (plan, r"alloc <t = \d+", "alloc <t = 4", r"which needs \d+ bytes a row"),
            (plan, r"chunk\(128\)", "chunk(1024)", "does not fit"),
            (plan, r"(kernel.gemm @\w+) k\(\d+\)", r"\1 k(4096)", "passes"),
            (
                plan,
                re.escape(first),
                first.replace(" waits", " wanted waits"),
                "is for wanted rows",
            ),
        ):
            with self.subTest(new=new):
                edited = re.sub(pattern, new, text)
                self.assertNotEqual(edited, text)
                (self.home / "edited.mlir").write_text(edited)
                self.fails(1, message, "compile", "edited.mlir", "-o", "edited.lathe")
                self.assertFalse((self.home / "edited.lathe").exists())

    def test_passes_of_ir_without_a_graph_cannot_be_checked(self):
        self.engine()
        self.done("compile", "tiny.gguf", "-o", "k.mlir", "--stop-after", "form-kernels")
        check = ("compile", "k.mlir", "-o", "k.lathe", "--check-passes")
        self.fails(1, "passes are checked on the graph", *check)

    def test_names_that_are_no_text(self):
        self.engine()
        name = os.fsdecode(b"ca\xf1on.gguf")
        os.rename(self.home / "tiny.gguf", self.home / name)
        self.done("compile", name, "-o", "named.lathe")
        self.assertIn("ca\\\\xf1on.gguf", self.done("inspect", "named.lathe", "--json"))


class Figures(CliTest):
    def test_bench(self):
        engine = self.engine()
        result = self.json(
            *("bench", engine, "-p", "32", "-n", "8", "-r", "3", "-t", "1"),
            *("-d", "0,16", "--head", "pick"),
        )
        self.assertEqual(result["threads"], 1)
        self.assertGreater(result["limits"]["bandwidth_bytes_per_second"], 1e8)
        self.assertTrue(result["cpu"])
        tests = [row["test"] for row in result["results"]]
        self.assertEqual(tests, ["pp32", "tg8-pick", "pp32@d16", "tg8-pick@d16"])
        for row in result["results"]:
            speed = row["tokens_per_second"]
            self.assertLessEqual(0, speed["min"])
            self.assertLessEqual(speed["min"], speed["median"])
            self.assertLessEqual(speed["median"], speed["max"])
        self.assertIn("tg4 ", self.done("bench", engine, "-p", "0", "-n", "4"))
        self.fails(1, "lower -d, -p or -n", "bench", engine, "-p", "100000")

    def test_eval(self):
        engine = self.engine()
        text = self.home / "text.txt"
        text.write_text("the keeper of the lighthouse counted the ships. " * 20)
        base = ("eval", engine, "-f", text, "--chunk", "64")
        whole = self.json(*base, "--logits", "l.npy")
        self.assertEqual(list(whole), ["perplexity", "tokens", "chunks"])
        self.assertEqual(whole["tokens"], whole["chunks"] * 31)
        self.assertEqual(self.json(*base, "--chunks", "2")["chunks"], 2)
        for other in ("l.npy", engine):
            same = self.json(*base, "--compare", other)
            self.assertAlmostEqual(same["kl_divergence"]["max"], 0, places=9)
            self.assertEqual(same["top1_agreement"], 1)
            self.assertEqual(same["perplexity"], whole["perplexity"])
        write_tiny_model(self.home / "other.gguf", seed=2)
        far = self.json(*base, "--compare", "other.gguf")
        self.assertGreater(far["kl_divergence"]["mean"], 0.01)
        self.assertLess(far["top1_agreement"], 1)
        text.write_text("short")
        self.fails(1, "fewer than a chunk", *base)

    def test_perplexity_is_llama_perplexitys(self):
        """By the definition, from the logits themselves."""
        import numpy

        engine = self.engine()
        text = self.home / "text.txt"
        text.write_text("the keeper of the lighthouse counted the ships. " * 9)
        result = self.json(
            *("eval", engine, "-f", text, "--chunk", "32", "--logits", "l.npy")
        )
        ids = self.json("tokenize", engine, text.read_text())["ids"]
        logits = numpy.load(self.home / "l.npy").astype("f8")
        chunks = len(ids) // 32
        targets = [ids[c * 32 + i + 1] for c in range(chunks) for i in range(16, 31)]
        self.assertEqual(logits.shape, (len(targets), 512))
        log_sum = numpy.log(numpy.exp(logits).sum(1))
        nll = log_sum - logits[numpy.arange(len(targets)), targets]
        self.assertAlmostEqual(result["perplexity"], numpy.exp(nll.mean()), places=2)

    def test_tokenize(self):
        engine = self.engine()
        for model in (engine, "tiny.gguf"):
            result = self.json("tokenize", model, "café <|bos|>")
            self.assertNotIn(BOS, result["ids"])
            shown = self.done("tokenize", model, "--ids", "-", input="café <|bos|>")
            self.assertEqual(shown.split(), [str(i) for i in result["ids"]])
        parsed = self.json("tokenize", engine, "--parse-special", "a<|bos|>")["ids"]
        self.assertEqual(parsed[-1], BOS)
