"""The prefix cache as clients see it: the same answers with and without it, and
how much of a prompt was found."""

import unittest

import support

cli = support.load_cli_support()


class PrefixCache(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = support.make_home()
        model = cls.home / "tiny.gguf"
        cli.write_tiny_model(model)
        cls.cached = support.Server(model, home=cls.home)
        cls.addClassCleanup(cls.cached.stop)
        other = support.make_home()
        cls.plain = support.Server(model, "--no-prefix-cache", home=other)
        cls.addClassCleanup(cls.plain.stop)

    def complete(self, server, prompt, **options):
        body = {"prompt": prompt, "temperature": 0, "ignore_eos": True, **options}
        status, reply = server.request("/v1/completions", body)
        self.assertEqual(status, 200, reply)
        details = reply["usage"]["prompt_tokens_details"]
        return reply["choices"], details["cached_tokens"]

    def test_prompts_sent_again(self):
        # Around the border of a page of 16 tokens.
        for count in (15, 16, 17, 31, 32, 33):
            prompt = [(7 * i + count) % 256 for i in range(count)]
            wanted, _ = self.complete(self.plain, prompt, logprobs=5)
            for turn in range(3):
                with self.subTest(count=count, turn=turn):
                    found, cached = self.complete(self.cached, prompt, logprobs=5)
                    self.assertEqual(found, wanted)
                    self.assertLess(cached, count)
                    if turn > 0:
                        self.assertGreater(cached, 0)

    def test_conversation_goes_on(self):
        prompt, cached = list(range(40)), 0
        for _ in range(4):
            wanted, _ = self.complete(self.plain, prompt, max_tokens=9)
            found, cached = self.complete(self.cached, prompt, max_tokens=9)
            self.assertEqual(found, wanted)
            _, ids = self.cached.request(
                "/tokenize",
                {"prompt": found[0]["text"], "add_special_tokens": False},
            )
            prompt = prompt + ids["tokens"] + [1, 2, 3]
        self.assertGreater(cached, 40)

    def test_echo_of_cached_tokens(self):
        prompt = list(range(60, 100))
        options = {"echo": True, "logprobs": 2, "max_tokens": 1}
        wanted, _ = self.complete(self.plain, prompt, **options)
        for _ in range(2):
            found, _ = self.complete(self.cached, prompt, **options)
            self.assertEqual(found, wanted)
        values = found[0]["logprobs"]["token_logprobs"]
        self.assertEqual((len(values), values[0]), (41, None))
        self.assertNotIn(None, values[1:])

    def test_salts_share_nothing(self):
        prompt = list(range(100, 150))
        for salt in ("a", "b"):
            _, cached = self.complete(self.cached, prompt, cache_salt=salt)
            self.assertEqual(cached, 0)
        _, cached = self.complete(self.cached, prompt, cache_salt="a")
        self.assertGreater(cached, 0)


if __name__ == "__main__":
    unittest.main()
