"""The page at /, in a real browser. With LATHE_SCREENSHOT=FILE, saves what it
looks like with the model LATHE_MODEL (a path)."""

import os
import pathlib
import random
import tempfile
import threading
import time
import unittest
import urllib.request

from browser import Browser, find_browser
from support import Server, ServeTest


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
        browser.wait_for("document.querySelector('.answer footer').textContent")

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


@unittest.skipUnless(find_browser(), "no chromium")
class KeyTest(ServeTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="lathe-keys-")
        cls.addClassCleanup(folder.cleanup)
        keys = pathlib.Path(folder.name, "keys")
        keys.write_text("a-secret-key\n")
        cls.options = ("--api-key-file", keys)
        super().setUpClass()

    def tearDown(self):
        self.assertIsNone(self.server.process.poll())

    def test_a_key_is_asked_for_and_kept_in_the_tab(self):
        browser = Browser()
        self.addCleanup(browser.close)
        browser.open(self.server.url)
        for key in ("wrong", "a-secret-key"):
            browser.wait_for("$('keyDialog').open")
            browser.evaluate("$('key').focus()")
            browser.type(key)
            browser.press("Enter", 13)
            browser.wait_for("model || $('keyError').textContent")
        browser.wait_for("model")
        self.assertFalse(browser.evaluate("$('keyDialog').open"))
        self.assertEqual(
            browser.evaluate("[sessionStorage.length, localStorage.length]"), [1, 0]
        )
        browser.evaluate("$('prompt').focus()")
        browser.type("Hello")
        browser.press("Enter", 13)
        browser.wait_for("document.querySelector('.answer footer')?.textContent")
        self.assertEqual(
            browser.evaluate("document.querySelector('.answer .text').textContent"),
            "DEFGHIJ!",
        )


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
        browser.wait_for("document.querySelector('.answer footer').textContent")
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
