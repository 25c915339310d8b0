"""The page at /, in a real browser. With LATHE_SCREENSHOT=FILE, saves what it
looks like with the model LATHE_MODEL (a path)."""

import http.server
import os
import pathlib
import random
import re
import tempfile
import threading
import time
import unittest
import urllib.request

from browser import Browser, find_browser
from support import Server, ServeTest, make_home


def has_drawn(chart: str) -> str:
    """JavaScript: a chart has a line of more than one point."""
    return (
        f"/L/.test(document.querySelector('#{chart} .line').getAttribute('d') ?? '')"
    )


@unittest.skipUnless(find_browser(), "no chromium")
class PageTest(ServeTest):
    def browse(self, url=None, **options) -> Browser:
        browser = Browser(**options)
        self.addCleanup(browser.close)
        browser.open(url or self.server.url)
        return browser

    def ask(self, browser: Browser, text: str):
        browser.wait_for("model")
        browser.type(text)
        browser.press("Enter", 13)
        browser.wait_for("document.querySelector('.answer footer')?.textContent")

    def test_an_answer_streams_into_the_page_and_charts_are_drawn(self):
        browser = self.browse()
        browser.wait_for("model")
        self.assertEqual(browser.evaluate("document.title"), "chain – Lathe")
        browser.evaluate(
            "window.parts = new Set(); new MutationObserver(() => parts.add("
            "document.querySelector('.answer .text')?.textContent)).observe("
            "document.body, {childList: true, subtree: true})"
        )
        self.ask(browser, "Hello")
        answer = "document.querySelector('.answer .text').textContent"
        self.assertEqual(browser.evaluate(answer), "DEFGHIJ!")
        self.assertRegex(
            browser.evaluate("document.querySelector('.answer footer').textContent"),
            r"^\d tokens",
        )
        for chart in ("throughput", "cache", "queue"):
            browser.wait_for(has_drawn(chart))
        browser.wait_for("Math.max(...history.throughput) > 0")
        self.assertEqual(browser.errors, [])

    def test_parameters_go_into_the_request(self):
        browser = self.browse()
        browser.wait_for("model")
        browser.evaluate("$('seed').value = 7; $('maxTokens').value = 2")
        body = "JSON.parse(requestBody())"
        self.assertEqual(browser.evaluate(f"{body}.seed"), 7)
        self.assertEqual(browser.evaluate(f"{body}.temperature"), 0.7)
        browser.evaluate("$('prompt').focus()")
        self.ask(browser, "Hello")
        self.assertEqual(
            browser.evaluate("document.querySelector('.answer .text').textContent"),
            "DEFG",
        )
        self.assertRegex(
            browser.evaluate("document.querySelector('.answer footer').textContent"),
            "cut at the most tokens",
        )

    def test_stop_ends_an_answer_on_the_server_too(self):
        # Fillers are their own successors: the answer has no end.
        browser = self.browse()
        browser.wait_for("model")
        browser.evaluate(
            "requestBody = () => JSON.stringify({model, stream: true, messages,"
            " max_tokens: 400, logit_bias: {300: 100}})"
        )
        # Nor for the page, which on a busy machine could else be at the most
        # tokens before anybody has clicked.
        browser.evaluate(
            "window.eventsBefore = eventsOf;"
            " eventsOf = async function* (response) {"
            "   yield (await eventsBefore(response).next()).value;"
            "   await new Promise((_, fail) => running.signal.addEventListener("
            "     'abort', () => fail(running.signal.reason))); }; 0"
        )
        browser.type("Hello")
        browser.press("Enter", 13)
        browser.wait_for("!$('stop').hidden")
        browser.click("#stop")
        browser.wait_for("!running")
        self.assertIn(
            "stopped",
            browser.evaluate("document.querySelector('.answer footer').textContent"),
        )
        browser.wait_for("history.queue.at(-1) === 0")

    def test_html_in_texts_stays_text(self):
        browser = self.browse()
        self.ask(browser, "<b id=evil>x</b>")
        self.assertEqual(
            browser.evaluate("document.querySelector('.user').textContent"),
            "<b id=evil>x</b>",
        )
        self.assertFalse(browser.evaluate("Boolean(document.querySelector('#evil'))"))
        shown = browser.evaluate(
            "(() => { const into = document.createElement('div');"
            " show(into, 'a **b** `c`\\n```js\\n<i>d</i>\\n```\\nend');"
            " return into.innerHTML; })()"
        )
        self.assertEqual(
            shown,
            '<div class="text">a <b>b</b> <code>c</code>\n</div>'
            '<pre>&lt;i&gt;d&lt;/i&gt;</pre><div class="text">end</div>',
        )

    def test_it_fits_a_phone_and_follows_the_system_to_dark(self):
        browser = self.browse(width=360, height=640, dark=True)
        self.ask(browser, "Hello " + "w" * 200)
        root = "document.documentElement"
        self.assertEqual(
            browser.evaluate(f"[{root}.scrollWidth, {root}.scrollHeight]"), [360, 640]
        )
        self.assertTrue(
            browser.evaluate(
                "$('send').getBoundingClientRect().right <= 360 &&"
                " $('seed').getBoundingClientRect().bottom <= 640"
            )
        )
        dark = browser.evaluate("getComputedStyle(document.body).backgroundColor")
        browser.click("#theme")
        light = browser.evaluate("getComputedStyle(document.body).backgroundColor")
        self.assertNotEqual(dark, light)

    def test_nothing_comes_from_elsewhere(self):
        with urllib.request.urlopen(self.server.url) as reply:
            policy = reply.headers["content-security-policy"]
            text = reply.read().decode()
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        self.assertNotRegex(text, r"(src|href)=\"(?!data:)")
        self.assertNotRegex(text, r"@import|url\(")


@unittest.skipUnless(find_browser(), "no chromium")
class BrowserTest(unittest.TestCase):
    """The tests' own driver."""

    def test_it_starts_whatever_descriptors_are_free(self):
        held = []
        self.addCleanup(lambda: [os.close(one) for one in held])
        while not held or held[-1] < 9:
            browser = Browser()
            self.addCleanup(browser.process.kill)
            self.assertEqual(browser.evaluate("1 + 1"), 2)
            browser.close()
            held.append(os.open(os.devnull, os.O_RDONLY))

    def test_it_tells_why_it_has_ended(self):
        browser = Browser()
        self.addCleanup(browser.close)
        browser.process.kill()
        with self.assertRaisesRegex(EOFError, "ended with status -9; it said:\n"):
            browser.evaluate("1")


class Elsewhere(http.server.BaseHTTPRequestHandler):
    """An empty page of another server."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


KEY = "a-secret-key"


@unittest.skipUnless(find_browser(), "no chromium")
class KeyTest(ServeTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="lathe-keys-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.options = cls.with_key(KEY)
        super().setUpClass()

    @classmethod
    def with_key(cls, key: str):
        """Options of a server."""
        file = pathlib.Path(cls.folder.name, key)
        file.touch(0o600)
        file.write_text(key + "\n")
        return ("--api-key-file", file)

    def tearDown(self):
        self.assertIsNone(self.server.process.poll())

    def browse(self, *passwords, url=None) -> Browser:
        browser = Browser()
        self.addCleanup(browser.close)
        browser.answer_prompts(*passwords)
        browser.open(url or self.server.url)
        return browser

    def wait_for_log(self, begin: int, line: str):
        """A line comes after the answer that it is about."""
        end = time.monotonic() + 60
        while not re.search(line, self.server.printed()[begin:]):
            self.assertLess(time.monotonic(), end, f"never logged: {line}")
            time.sleep(0.05)

    def chat(self, browser: Browser) -> str:
        browser.evaluate("$('prompt').focus()")
        browser.type("Hello")
        browser.press("Enter", 13)
        browser.wait_for("document.querySelector('.answer footer')?.textContent")
        return browser.evaluate("document.querySelector('.answer').innerText")

    def test_the_browser_asks_for_the_key_and_adds_it(self):
        browser = self.browse("wrong", KEY)
        browser.wait_for("model")
        self.assertIn("DEFGHIJ!", self.chat(browser))
        browser.wait_for(has_drawn("throughput"))
        # For the page alone, never for what its script asks.
        self.assertEqual(browser.prompts, [self.server.url + "/"] * 2)
        self.assertEqual(
            browser.evaluate(
                "[sessionStorage.length, localStorage.length, document.cookie]"
            ),
            [0, 0, ""],
        )

    def test_the_address_may_hold_the_key(self):
        url = self.server.url.replace("://", f"://:{KEY}@")
        browser = self.browse(url=url)
        browser.wait_for("model")
        self.assertIn("DEFGHIJ!", self.chat(browser))
        self.assertEqual(browser.prompts, [])

    def test_without_a_key_there_is_no_page(self):
        browser = self.browse()
        self.assertEqual(len(browser.prompts), 1)
        self.assertIn("invalid_api_key", browser.evaluate("document.body.innerText"))
        self.assertTrue(browser.evaluate("typeof ask === 'undefined'"))

    def test_a_changed_key_is_told_of_and_asked_for_by_a_reload(self):
        model, home = self.home / "chain.gguf", make_home()
        first = Server(model, *self.with_key("old"), home=home)
        self.addCleanup(first.stop)
        browser = self.browse("old", "new", url=first.url)
        browser.wait_for("model")
        first.stop()
        port = first.url.rsplit(":", 1)[1]
        second = Server(model, *self.with_key("new"), home=home, port=port)
        self.addCleanup(second.stop)
        self.assertEqual(first.url, second.url)
        told = "the key is not accepted any more: reload the page to give another"
        browser.wait_for(f"$('model').textContent === '{told}'")
        self.assertIn(told, self.chat(browser))
        self.assertEqual(len(browser.prompts), 1)
        browser.wait_for_load(lambda: browser.call("Page.reload"))
        browser.wait_for("model")
        self.assertEqual(len(browser.prompts), 2)
        self.assertIn("DEFGHIJ!", self.chat(browser))

    def test_no_other_page_can_use_the_key(self):
        browser = self.browse(KEY)
        browser.wait_for("model")
        other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
        self.addCleanup(other.server_close)
        threading.Thread(target=other.serve_forever).start()
        self.addCleanup(other.shutdown)
        # The same site as the server, and another one.
        for host in ("127.0.0.1", "localhost"):
            browser.open(f"http://{host}:{other.server_port}")
            before = len(self.server.printed())
            browser.evaluate(
                f"fetch('{self.server.url}/v1/completions', {{method: 'POST',"
                " mode: 'no-cors', credentials: 'include',"
                ' body: \'{"prompt": "x"}\'}).then(() => 1)'
            )
            leave = f"location.href = '{self.server.url}'"
            browser.wait_for_load(lambda: browser.evaluate(leave))
            self.assertIn("foreign_page", browser.evaluate("document.body.innerText"))
            for line in ("POST '/v1/completions': 40[13],", "GET '/': 403,"):
                self.wait_for_log(before, line)
            self.assertNotIn(": 200,", self.server.printed()[before:])
        # Its own page still can.
        browser.open(self.server.url)
        browser.wait_for("model")
        self.assertEqual(len(browser.prompts), 1)


@unittest.skipUnless("LATHE_SCREENSHOT" in os.environ, "no screenshot is asked for")
class Screenshot(unittest.TestCase):
    def test_take_one(self):
        home = pathlib.Path(os.environ["HOME"])
        model = pathlib.Path(os.environ["LATHE_MODEL"])
        options = ("--name", "smollm2", "--context", 512, "--requests", 8)
        server = Server(model, *options, home=home)
        self.addCleanup(server.stop)
        self.addCleanup(setattr, self, "is_over", True)
        for seed in range(10):
            threading.Thread(target=self.use, args=(server, seed)).start()
        browser = Browser()
        self.addCleanup(browser.close)
        browser.open(server.url)
        browser.wait_for("model")
        time.sleep(85)
        browser.evaluate("$('temperature').value = 0; $('seed').value = 1")
        browser.type("What is a lathe used for?")
        browser.press("Enter", 13)
        browser.wait_for("document.querySelector('.answer footer')?.textContent")
        time.sleep(1.5)
        shot = browser.screenshot()
        pathlib.Path(os.environ["LATHE_SCREENSHOT"]).write_bytes(shot)

    is_over = False

    def use(self, server: Server, seed: int):
        """Another client, who comes and goes."""
        chance = random.Random(seed)
        while not self.is_over:
            body = {
                "prompt": "Once upon a time there was a lathe " * chance.randrange(20),
                "temperature": 1,
                "seed": seed,
                "max_tokens": chance.randrange(40, 200),
            }
            server.request("/v1/completions", {**body, "prompt": body["prompt"] + "x"})
            time.sleep(chance.random() * 4)
