"""What has broken other servers, against lathe serve: hostile bodies, prompts
that do not fit, clients that go away."""

import http.client
import json
import os
import re
import resource
import socket
import time
import urllib.parse

import chain_model
import support


def take_a_small_stack():
    """ulimit -s 1024: all threads get as much."""
    resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, 1 << 20))


class Bodies(support.ServeTest):
    process = {"preexec_fn": take_a_small_stack}

    def status(self, raw: bytes, path="/v1/chat/completions") -> int:
        return self.server.request(path, raw=raw)[0]

    def test_hostile_json(self):
        start = b'{"messages":[{"role":"user","content":"a"}],"tools":'
        for depth in (3000, 100_000):
            nested = b"[" * depth + b"]" * depth
            self.assertEqual(self.status(start + nested + b"}"), 400)
            self.assertEqual(self.status(start + b"[" * depth), 400)
        for body in (b"", b"{", b"[]", b"nul", start, b'{"prompt":"\xc3\x28"}'):
            self.assertEqual(self.status(body), 400, body)
        self.assertEqual(self.status(b'{"prompt":"\\ud800"}', "/v1/completions"), 400)

    def test_long_runs(self):
        for text in ("Z" * 131072, "\n" * 50_000, " " * 50_000, "a" * (1 << 20)):
            begun = time.monotonic()
            status, reply = self.server.request("/v1/completions", {"prompt": text})
            self.assertLess(time.monotonic() - begun, 2)
            self.assertEqual(status, 400)
            self.assertEqual(reply["error"]["code"], "context_length_exceeded")
            for body in (
                {"prompt": text},
                {"messages": [{"role": "user", "content": text}]},
            ):
                status, reply = self.server.request("/tokenize", body)
                self.assertEqual(status, 200)
                self.assertGreaterEqual(reply["count"], len(text))

    def test_nul_is_a_character(self):
        def ids(content):
            body = {"messages": [{"role": "user", "content": content}]}
            return self.server.request("/tokenize", body)[1]["tokens"]

        self.assertNotEqual(ids("ab\0cd"), ids("ab"))
        self.assertEqual(ids("ab\0cd")[-10:], ids("ab")[-10:])

    def test_bytes_that_are_no_text(self):
        # A lone byte of a character, for ever: still JSON, all of it U+FFFD.
        status, reply = self.server.request(
            "/v1/completions", {"prompt": [0xC3], "max_tokens": 5, "logprobs": 1}
        )
        self.assertEqual(status, 200)
        self.assertEqual(set(reply["choices"][0]["text"]), {"\ufffd"})


class Clients(support.ServeTest):
    options = ("--requests", "1")

    def open(self, stream: bool) -> socket.socket:
        """A request that goes on until the context is full."""
        address = urllib.parse.urlparse(self.server.url)
        connection = socket.create_connection((address.hostname, address.port))
        body = json.dumps({"prompt": "s", "max_tokens": 500, "stream": stream})
        connection.sendall(
            f"POST /v1/completions HTTP/1.1\r\nHost: a\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        return connection

    def gauge(self, name: str) -> float:
        text = self.server.request("/metrics")[1]
        return float(re.search(rf"^lathe:{name}\b.* (\S+)$", text, re.M)[1])

    def held(self, what: str) -> int:
        """Descriptors ("fd") or threads ("task")."""
        return len(os.listdir(f"/proc/{self.server.process.pid}/{what}"))

    def test_clients_that_leave(self):
        self.server.request("/livez")
        files, threads = self.held("fd"), self.held("task")
        for i in range(50):
            stream = i % 2 == 0
            running, waiting = self.open(stream), self.open(stream)
            if stream:
                self.assertIn(b"200", running.recv(64))
            running.close()
            waiting.close()
        # Within a second nothing of them is left, and who comes next is served.
        end = time.monotonic() + 1
        names = ("num_requests_running", "num_requests_waiting")
        while any(self.gauge(name) for name in names):
            self.assertLess(time.monotonic(), end, "answers go on")
        self.assertEqual(self.gauge("kv_cache_usage_perc"), 0)
        self.assertLessEqual(self.held("fd"), files + 2)
        self.assertLessEqual(self.held("task"), threads)
        begun = time.monotonic()
        status, _ = self.server.request("/v1/completions", {"prompt": "x"})
        self.assertEqual(status, 200)
        self.assertLess(time.monotonic() - begun, 1)

    def test_keep_alive(self):
        address = urllib.parse.urlparse(self.server.url)
        connection = http.client.HTTPConnection(address.hostname, address.port)
        for stream in (False, True, False):
            body = {"prompt": "x", "temperature": 0, "stream": stream}
            connection.request("POST", "/v1/completions", json.dumps(body))
            reply = connection.getresponse()
            self.assertEqual(reply.status, 200)
            self.assertIn(b"DEF", reply.read())
        connection.close()


class DraftingClients(Clients):
    """The same while a draft model drafts, all of it right."""

    options = (*Clients.options, "--draft-always", "--draft")

    @classmethod
    def setUpClass(cls):
        draft = support.make_home() / "draft.gguf"
        chain_model.write(draft)
        cls.options = (*DraftingClients.options, draft)
        super().setUpClass()

    def tearDown(self):
        super().tearDown()
        self.assertGreater(self.gauge("spec_decode_num_accepted_tokens_total"), 0)


class WithoutTemplate(support.ServeTest):
    template = ""

    def test_chat_is_refused(self):
        status, reply = self.server.request(
            "/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}
        )
        self.assertEqual(status, 400)
        self.assertIn("template", reply["error"]["message"])
        self.assertNotIn(str(self.home), reply["error"]["message"])


class Beginnings(support.ServeTest):
    def test_begin_token_is_warned_of(self):
        status, reply = self.server.request(
            "/v1/completions", {"prompt": "<|bos|>x", "max_tokens": 1}
        )
        self.assertEqual(reply["usage"]["prompt_tokens"], 2)
        self.assertIn("begins with '<|bos|>'", self.server.printed())
