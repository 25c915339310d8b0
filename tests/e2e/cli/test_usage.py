"""Help, version, wrong options: what needs no model."""

import re
import subprocess

from support import BIN, LATHE, CliTest

COMMANDS = (
    "run compile bench explain eval tokenize plan inspect verify trust "
    "completion".split()
)


class Help(CliTest):
    def test_each_command_shows_an_example(self):
        for command in COMMANDS:
            with self.subTest(command):
                text = self.done(command, "--help")
                self.assertIn("example:", text)
                self.assertIn(f"  lathe {command} ", text)
                self.assertRegex(text, f"Usage: lathe {command} ")

    def test_program_lists_its_commands(self):
        text = self.done("--help")
        for command in COMMANDS:
            self.assertRegex(text, rf"\n  {command} ")
        self.assertEqual(self.done(), text)

    def test_version(self):
        self.assertRegex(self.done("--version"), r"^lathe \d+\.\d+\.\d+\n$")

    def test_completion_names_every_option(self):
        for shell in ("bash", "zsh", "fish"):
            script = self.done("completion", shell)
            for word in [*COMMANDS, "print-ir-after", "temperature", "show"]:
                self.assertIn(word, script, shell)

    def test_bash_completion_completes(self):
        script = self.home / "lathe.bash"
        script.write_text(self.done("completion", "bash"))
        probe = (
            f"source {script}; COMP_WORDS=(lathe compile --sto); COMP_CWORD=2;"
            ' _lathe; echo "${COMPREPLY[@]}"'
        )
        shown = subprocess.run(["bash", "-c", probe], capture_output=True, text=True)
        self.assertEqual(shown.stdout, "--stop-after\n", shown.stderr)


class Usage(CliTest):
    def test_wrong_command_lines_end_with_2(self):
        for pattern, *arguments in (
            ("not expected: nonsense", "nonsense"),
            ("--nonsense", "run", "--nonsense"),
            ("MODEL is required", "run", "-p", "x"),
            ("exclude each other", "run", "m", "-p", "x", "-f", "y"),
            ("temperature", "run", "m", "-p", "x", "--temperature", "-1"),
            ("--top-k", "run", "m", "-p", "x", "--top-k", "many"),
            ("ID=BIAS", "run", "m", "-p", "x", "--logit-bias", "7:1"),
            ("--threads", "run", "m", "-p", "x", "--threads", "0"),
            ("MODEL is required", "compile"),
            ("-o is required", "compile", "m"),
            ("--kv-dtype", "compile", "m", "-o", "x", "--kv-dtype", "f8"),
            ("MODEL", "bench"),
            ("nothing to measure", "bench", "m", "-p", "0", "-n", "0"),
            ("--head", "bench", "m", "--head", "half"),
            ("--file", "eval", "m"),
            ("--chunk", "eval", "m", "-f", "t", "--chunk", "1"),
            ("TEXT", "tokenize", "m"),
            ("ENGINE", "inspect"),
            ("ENGINE", "verify"),
            ("subcommand", "trust"),
            ("KEY", "trust", "add"),
            ("SHELL", "completion", "tcsh"),
        ):
            with self.subTest(arguments):
                self.fails(2, re.escape(pattern), *arguments)

    def test_missing_files_end_with_1(self):
        for arguments in (
            ["run", "none", "-p", "x"],
            ["run", "./none.gguf", "-p", "x"],
            ["compile", "none.gguf", "-o", "x.lathe"],
            ["bench", "none.lathe"],
            ["eval", "none", "-f", "none.txt"],
            ["tokenize", "none", "x"],
            ["inspect", "none.lathe"],
            ["verify", "none.lathe"],
        ):
            with self.subTest(arguments):
                self.fails(1, "none", *arguments)

    def test_files_that_are_no_models(self):
        (self.home / "text.gguf").write_text("hello")
        (self.home / "x.mlir").write_text("module {}")
        for command in ("run", "bench"):
            with self.subTest(command):
                self.fails(1, "text.gguf: neither", command, "text.gguf")
                self.fails(1, "lathe compile", command, "x.mlir")
        self.fails(1, "text.gguf", "compile", "text.gguf", "-o", "x.lathe")
        self.fails(1, "not an engine file", "inspect", "text.gguf")
        self.fails(1, "not an engine file", "verify", "text.gguf")
        self.fails(1, "not a key", "trust", "add", "abc")
        self.assertEqual(list(self.home.glob("x.lathe*")), [])

    def test_known_model_that_is_not_here(self):
        self.fails(1, "tools/quickstart", "run", "smollm2", "-p", "x")
        self.assertIn("tools/quickstart", self.done("run"))


class Binary(CliTest):
    def test_needs_no_compiler_libraries(self):
        listed = subprocess.run(
            ["readelf", "--dynamic", str(LATHE)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", listed)
        self.assertTrue(needed)
        for library in needed:
            self.assertNotRegex(library, "(?i)llvm|mlir|clang|lathe-compiler")

    def test_pipeline_is_listed(self):
        phases = self.json("compile", "--print-pipeline")
        self.assertIn("fuse-attention", [phase["name"] for phase in phases])
        self.assertTrue((BIN.parent / "lib/liblathe-compiler.so").exists())

    def test_full_disk_is_noticed(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run(
                [LATHE, "--help"], stdout=full, stderr=subprocess.PIPE, text=True
            )
        self.assertEqual(result.returncode, 1)
        self.assertIn("lathe: error: cannot write", result.stderr)
