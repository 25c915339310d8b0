"""The interactive chat, on a terminal of its own."""

import os
import pty
import re
import select
import signal
import time

from support import LATHE, CliTest, write_tiny_model


class Terminal:
    """The program with a terminal as its standard streams."""

    def __init__(self, arguments, environment):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.execve(LATHE, ["lathe", *map(str, arguments)], environment)
        self.shown = ""

    def expect(self, pattern: str, seconds: float = 60):
        """Waits until new output matches; returns what was before it."""
        end = time.monotonic() + seconds
        while True:
            match = re.search(pattern, self.shown)
            if match:
                before = self.shown[: match.end()]
                self.shown = self.shown[match.end() :]
                return before
            wait = end - time.monotonic()
            if wait <= 0 or not select.select([self.master], [], [], wait)[0]:
                raise AssertionError(f"no {pattern!r} in {self.shown!r}")
            try:
                part = os.read(self.master, 4096)
            except OSError:  # The program has ended.
                part = b""
            if not part:
                raise AssertionError(f"ended without {pattern!r}: {self.shown!r}")
            self.shown += part.decode(errors="replace")

    def send(self, text: str):
        os.write(self.master, text.encode())

    def status(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class Chat(CliTest):
    def start(self, *options):
        engine = self.home / "tiny.lathe"
        if not engine.exists():
            self.engine()
        if "-n" not in options:
            options = (*options, "-n", "4")
        arguments = ["run", engine, "--ignore-end", *options]
        terminal = Terminal(arguments, {**self.environment, "TERM": "dumb"})
        self.addCleanup(os.close, terminal.master)
        terminal.expect("> ")
        return terminal

    def prefilled(self, terminal, line: str) -> int:
        terminal.send(line + "\n")
        figures = terminal.expect(r"prefill (\d+) tokens.*memory")
        terminal.expect("> ")
        return int(re.search(r"prefill (\d+)", figures)[1])

    def test_history_is_not_evaluated_again(self):
        terminal = self.start()
        first = self.prefilled(terminal, "hello there, keeper of the lighthouse")
        # The whole first turn is in the cache: only a new message is left.
        second = self.prefilled(terminal, "hello there, keeper of the lighthouse")
        self.assertLess(second, first + 20)
        terminal.send("/clear\n")
        terminal.expect("> ")
        self.assertLessEqual(self.prefilled(terminal, "hello"), first)
        terminal.send("/exit\n")
        self.assertEqual(terminal.status(), 0)

    def test_commands(self):
        terminal = self.start()
        terminal.send("/help\n")
        self.assertIn("/clear", terminal.expect("Ctrl-C"))
        terminal.expect("> ")
        terminal.send("/nonsense\n")
        terminal.expect("unknown command /nonsense")
        terminal.expect("> ")
        terminal.send("two \\\nlines\n")
        terminal.expect("memory")
        terminal.expect("> ")
        terminal.send("\x04")  # Ctrl-D
        self.assertEqual(terminal.status(), 0)

    def test_full_context_drops_the_oldest(self):
        terminal = self.start("--context", "160")
        for _ in range(4):
            self.prefilled(terminal, "the keeper counted ships")
        terminal.send("x" * 400 + "\n")
        terminal.expect("error: .*context")
        terminal.expect("> ")
        self.prefilled(terminal, "still here")
        terminal.send("/exit\n")
        self.assertEqual(terminal.status(), 0)

    def test_a_line_that_is_no_text_does_not_end_it(self):
        terminal = self.start()
        os.write(terminal.master, b"\xff\xfe\n")
        terminal.expect("error: .*UTF-8")
        terminal.expect("> ")
        self.prefilled(terminal, "still here")
        terminal.send("/exit\n")
        self.assertEqual(terminal.status(), 0)

    def test_interrupt_at_the_prompt_ends(self):
        terminal = self.start()
        os.kill(terminal.pid, signal.SIGINT)
        self.assertEqual(terminal.status(), 0)

    def test_interrupt_stops_an_answer_only(self):
        for _ in range(5):
            terminal = self.start("-n", "1000")
            terminal.send("hello\n")
            terminal.expect("hello\r\n.")
            os.kill(terminal.pid, signal.SIGINT)
            figures = terminal.expect("memory[^\r]*\r\n")
            if "cut at" not in figures:
                terminal.expect("> ")
                terminal.send("/exit\n")
                self.assertEqual(terminal.status(), 0)
                return
        self.skipTest("the answers were complete before the interrupts came")

    def test_no_template_no_chat(self):
        model = self.home / "base.gguf"
        write_tiny_model(model, template="")
        terminal = Terminal(["run", model], self.environment)
        self.addCleanup(os.close, terminal.master)
        terminal.expect("no chat template")
        self.assertEqual(terminal.status(), 1)
