"""The process of lathe serve: how it starts and ends, and what it takes of the
machine."""

import http.client
import json
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import time
import unittest
import urllib.parse

import chain_model
import support

LATHE = support.BIN / "lathe"


class ProcessTest(unittest.TestCase):
    """Starts servers of one chain model, which is compiled once."""

    @classmethod
    def setUpClass(cls):
        cls.home = support.make_home()
        cls.model = cls.home / "chain.gguf"
        chain_model.write(cls.model)
        support.Server(cls.model, home=cls.home).stop()

    def start(self, *options, **more) -> support.Server:
        server = support.Server(self.model, *options, home=self.home, **more)
        self.addCleanup(server.stop)
        return server

    def refused(self, model, *options, port=0, limit=None):
        """What is printed by a server that does not start, and how fast."""
        environment = {**os.environ, "HOME": str(self.home)}
        begun = time.monotonic()
        done = subprocess.run(
            [LATHE, "serve", model, "--port", str(port), *map(str, options)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            preexec_fn=limit,
        )
        self.assertGreater(done.returncode, 0, done.stderr)  # And no signal.
        self.assertNotIn("serving on", done.stderr)
        errors = [line for line in done.stderr.splitlines() if "error: " in line]
        self.assertEqual(len(errors), 1, done.stderr)
        return errors[0], time.monotonic() - begun


class Start(ProcessTest):
    def test_taken_port(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            # Told before the model is read: there is none.
            for model in (self.model, self.home / "none.gguf"):
                error, seconds = self.refused(model, port=port)
                self.assertIn(f"127.0.0.1:{port}", error)
                self.assertLess(seconds, 2)

    def test_longest_context(self):
        """A context that no machine holds is lowered, or refused with numbers."""
        model = self.home / "long.gguf"
        chain_model.write(model, context=1 << 20)
        server = support.Server(model, "--memory", "64M", home=self.home)
        self.addCleanup(server.stop)
        self.assertRegex(server.printed(), r"context lowered from \d+ to \d+ tokens")
        server.stop()
        error, _ = self.refused(model, "--context", 1 << 20)
        self.assertRegex(error, r"1048576 .* \d+; lower --context")
        for options in (("--context", 100_000, "--memory", "64M"), ("--memory", "1K")):
            error, _ = self.refused(model, *options)
            self.assertRegex(error, r"\(\d+ bytes.*\(\d+ bytes.*--(context|memory)")

        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20))

        server = support.Server(model, home=self.home, preexec_fn=limit)
        self.addCleanup(server.stop)
        self.assertRegex(server.printed(), "context lowered .*ulimit -v")
        server.stop()
        error, _ = self.refused(model, "--context", 100_000, limit=limit)
        self.assertRegex(error, r"\(\d+ bytes.*\(\d+ bytes, ulimit -v.*--context")

    def test_draft_of_another_vocabulary(self):
        swapped = chain_model.tokens()
        swapped[10], swapped[11] = swapped[11], swapped[10]
        model = self.home / "swapped.gguf"
        chain_model.write(model, names=swapped)
        error, _ = self.refused(self.model, "--draft", model)
        self.assertRegex(error, r"swapped.*token 10 is")

    def test_draft_options(self):
        for options, message in (
            (("--speculate", "draft"), "--draft MODEL"),
            (("--speculate", "ngram", "--draft", self.model), "--speculate is ngram"),
            (("--draft", self.home / "none.gguf"), "none.gguf"),
        ):
            error, _ = self.refused(self.model, *options)
            self.assertIn(message, error)

    def test_threads_are_those_that_may_be_used(self):
        first = min(os.sched_getaffinity(0))

        def pin():
            os.sched_setaffinity(0, {first})

        server = self.start(preexec_fn=pin)
        self.assertIn(" 1 thread,", server.printed())
        server = self.start("--threads", 2, preexec_fn=pin)
        self.assertIn(" 2 threads,", server.printed())


class Life(ProcessTest):
    def ticks(self, server) -> int:
        """Of the CPU, by all threads."""
        fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text()
        return sum(map(int, fields.rpartition(")")[2].split()[11:13]))

    def test_idle_servers_do_nothing(self):
        servers = [self.start(), self.start()]
        body = {"prompt": "x", "temperature": 0}
        for server in servers:
            self.assertEqual(server.request("/v1/completions", body)[0], 200)
        time.sleep(0.1)
        before = [self.ticks(server) for server in servers]
        time.sleep(2)
        for server, ticks in zip(servers, before):
            used = (self.ticks(server) - ticks) / os.sysconf("SC_CLK_TCK")
            self.assertLess(used, 0.02)


class End(ProcessTest):
    def open(self, server, body: dict) -> http.client.HTTPConnection:
        """A request whose answer is still to be read."""
        address = urllib.parse.urlparse(server.url)
        connection = http.client.HTTPConnection(
            address.hostname, address.port, timeout=30
        )
        self.addCleanup(connection.close)
        connection.request("POST", "/v1/completions", json.dumps(body))
        return connection

    def endless(self, server):
        """An answer that takes many more steps than the test."""
        body = {"prompt": "s", "stream": True, "ignore_eos": True, "n": 4}
        reply = self.open(server, body).getresponse()
        self.assertIn(b"data: ", reply.readline())
        return reply

    def test_idle(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            server = self.start()
            begun = time.monotonic()
            server.process.send_signal(number)
            self.assertEqual(server.process.wait(10), 0)
            self.assertLess(time.monotonic() - begun, 2)

    def test_answers_in_progress(self):
        server = self.start("--drain", 1, "--chunk", 4)
        stream = self.endless(server)
        prefill = self.open(server, {"prompt": "y" * 500, "max_tokens": 9})
        begun = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        while "finishing" not in server.printed():
            time.sleep(0.01)
        with self.assertRaises(OSError):
            server.request("/livez", timeout=5)
        text = stream.read().decode()
        self.assertTrue(text.endswith("data: [DONE]\n\n"), text[-200:])
        self.assertRegex(text, '"finish_reason":"length"|shutting_down')
        self.assertIn(prefill.getresponse().status, (200, 503))
        self.assertEqual(server.process.wait(10), 0)
        self.assertLess(time.monotonic() - begun, 5)

    def test_second_signal(self):
        server = self.start("--drain", 60, "--chunk", 4)
        self.endless(server)
        server.process.send_signal(signal.SIGTERM)
        while "finishing" not in server.printed():
            time.sleep(0.01)
        self.assertIsNone(server.process.poll())
        server.process.send_signal(signal.SIGTERM)
        self.assertIn(server.process.wait(2), (-signal.SIGTERM, 143))

    def test_first_process_of_a_container(self):
        """The kernel spares such a process the signals that it does not handle."""
        inside = ["unshare", "--pid", "--fork", "--kill-child"]
        if subprocess.run([*inside, "true"], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("no PID namespaces here")
        for count, statuses in ((1, (0,)), (2, (143,))):
            server = self.start("--drain", 60, "--chunk", 4, wrapper=inside)
            if count == 2:
                self.endless(server)
            children = f"/proc/{server.process.pid}/task/{server.process.pid}/children"
            (child,) = map(int, pathlib.Path(children).read_text().split())
            for sent in range(count):
                os.kill(child, signal.SIGTERM)
                while sent == 0 and "finishing" not in server.printed():
                    time.sleep(0.01)
            self.assertIn(server.process.wait(5), statuses)
