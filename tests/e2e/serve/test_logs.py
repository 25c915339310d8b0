"""What lathe serve logs of requests."""

import json
import re
import urllib.request

from support import ServeTest


class JsonLogTest(ServeTest):
    options = ("--log-json",)

    def lines(self, path: str) -> list:
        """The parsed lines about requests to `path`."""
        lines = [json.loads(line) for line in self.server.printed().splitlines()]
        return [line for line in lines if line.get("path") == path]

    def wait_for_line(self, path: str) -> dict:
        """The last line about requests to `path`, which may come after the
        answer."""
        while not self.lines(path):
            self.server.request("/livez")
        return self.lines(path)[-1]

    def test_a_request_is_a_line_with_its_id_and_no_text(self):
        request = urllib.request.Request(
            self.server.url + "/v1/completions?user=hidden",
            json.dumps({"prompt": "the hidden x", "max_tokens": 4}).encode(),
            {"Content-Type": "application/json", "X-Request-Id": "my-id-1"},
        )
        with urllib.request.urlopen(request) as reply:
            self.assertEqual(reply.headers["x-request-id"], "my-id-1")
            text = json.load(reply)["choices"][0]["text"]
        line = self.wait_for_line("/v1/completions")
        self.assertEqual(line["request_id"], "my-id-1")
        self.assertEqual(line["method"], "POST")
        self.assertEqual(line["status"], 200)
        self.assertEqual(line["level"], "info")
        self.assertEqual(line["completion_tokens"], 4)
        self.assertGreater(line["prompt_tokens"], 0)
        self.assertGreater(line["duration_seconds"], 0)
        self.assertRegex(line["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        printed = self.server.printed()
        self.assertNotIn("hidden", printed)
        self.assertNotIn(text, printed)

    def test_what_is_wrong_is_logged_too(self):
        self.server.request("/v1/nothing", {})
        self.assertEqual(self.wait_for_line("/v1/nothing")["status"], 404)

    def test_other_messages_are_json(self):
        for line in self.server.printed().splitlines():
            self.assertLessEqual({"time", "level"}, json.loads(line).keys())
        self.assertIn('"message":"serving on http://', self.server.printed())


class TextLogTest(ServeTest):
    def test_a_request_is_a_line(self):
        self.server.request("/v1/completions", {"prompt": "hidden x", "max_tokens": 4})
        self.server.request("/v1/nothing")
        while "/v1/nothing" not in self.server.printed():
            pass
        printed = self.server.printed()
        self.assertRegex(
            printed,
            re.compile(
                r"^lathe: info: '\S+' POST '/v1/completions': 200, \d+ ms, "
                r"\d+ \+ 4 tokens$",
                re.M,
            ),
        )
        self.assertNotIn("hidden", printed)
        self.assertNotIn("/livez", printed)
