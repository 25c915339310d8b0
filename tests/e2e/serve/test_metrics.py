"""/metrics, and the dashboard that charts it."""

import json
import re

from support import REPOSITORY, ServeTest

DASHBOARD = REPOSITORY / "tools/deploy/grafana.json"

# vLLM's, with the other prefix.
NAMES = {
    "num_requests_running": "gauge",
    "num_requests_waiting": "gauge",
    "kv_cache_usage_perc": "gauge",
    "prefix_cache_queries_total": "counter",
    "prefix_cache_hits_total": "counter",
    "num_preemptions_total": "counter",
    "prompt_tokens_total": "counter",
    "generation_tokens_total": "counter",
    "request_success_total": "counter",
    "spec_decode_num_drafts_total": "counter",
    "spec_decode_num_draft_tokens_total": "counter",
    "spec_decode_num_accepted_tokens_total": "counter",
    "time_to_first_token_seconds": "histogram",
    "inter_token_latency_seconds": "histogram",
    "e2e_request_latency_seconds": "histogram",
    "request_queue_time_seconds": "histogram",
    "request_prefill_time_seconds": "histogram",
    "request_decode_time_seconds": "histogram",
}


def series(text: str) -> dict:
    """{(name, labels): value} of Prometheus' text format."""
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, labels, value = re.fullmatch(
                r"([a-z0-9_:]+)(?:\{(.*)\})? (\S+)", line
            ).groups()
            found[name, labels or ""] = float(value)
    return found


class MetricsTest(ServeTest):
    def metrics(self) -> dict:
        status, text = self.server.request("/metrics")
        self.assertEqual(status, 200)
        return series(text)

    def total(self, name: str, part: str = "") -> float:
        """The sum over all labels with `part` in them."""
        return sum(
            value
            for (known, labels), value in self.metrics().items()
            if known == "lathe:" + name and part in labels
        )

    def complete(self, **body):
        request = {"prompt": "x", "max_tokens": 5, "temperature": 0, **body}
        status, reply = self.server.request("/v1/completions", request)
        self.assertEqual(status, 200, reply)
        return reply

    def test_names_and_types_are_vllms(self):
        _, text = self.server.request("/metrics")
        types = dict(re.findall(r"^# TYPE lathe:(\S+) (\S+)$", text, re.M))
        self.assertEqual(types, NAMES)
        for _, labels in series(text):
            self.assertIn('model_name="chain"', labels)

    def test_every_metric_of_the_dashboard_exists(self):
        board = json.loads(DASHBOARD.read_text())
        known = {name for name, _ in self.metrics()}
        charted = set()
        for panel in board["panels"]:
            for target in panel.get("targets", []):
                charted |= set(re.findall(r"lathe:\w+", target["expr"]))
        for variable in board["templating"]["list"]:
            charted |= set(re.findall(r"lathe:\w+", variable.get("definition", "")))
        self.assertGreater(len(charted), 20)
        self.assertEqual(charted - known, set())
        # And nothing that exists is missing on it.
        families = {f"lathe:{name}" for name in NAMES}
        families = {
            family
            for family in families
            if not any(name.startswith(family) for name in charted)
        }
        self.assertEqual(families, set())

    def test_panels_lie_beside_each_other(self):
        taken = set()
        for panel in json.loads(DASHBOARD.read_text())["panels"]:
            place = panel["gridPos"]
            for x in range(place["x"], place["x"] + place["w"]):
                for y in range(place["y"], place["y"] + place["h"]):
                    self.assertNotIn((x, y), taken, panel["title"])
                    self.assertLess(x, 24)
                    taken.add((x, y))

    def test_answers_are_counted(self):
        def counts():
            return [
                self.total(name, part)
                for name, part in (
                    ("prompt_tokens_total", ""),
                    ("generation_tokens_total", ""),
                    ("request_success_total", '"length"'),
                    ("time_to_first_token_seconds_count", ""),
                    ("e2e_request_latency_seconds_count", ""),
                    ("inter_token_latency_seconds_count", ""),
                )
            ]

        before = counts()
        reply = self.complete(n=2, max_tokens=3)
        usage = reply["usage"]
        self.assertEqual(usage["completion_tokens"], 6)
        expected = [usage["prompt_tokens"], 6, 2, 2, 2, 4]
        after = counts()
        self.assertEqual([b - a for a, b in zip(before, after)], expected)

    def test_idle_engine_holds_nothing(self):
        self.complete()
        self.assertEqual(self.total("kv_cache_usage_perc"), 0)
        self.assertEqual(self.total("num_requests_running"), 0)
        self.assertEqual(self.total("num_requests_waiting"), 0)

    def test_prefix_cache_hits_are_counted(self):
        prompt = "DEFGHIJ" * 20
        self.complete(prompt=prompt)
        before = self.total("prefix_cache_hits_total")
        self.complete(prompt=prompt)
        self.assertGreater(self.total("prefix_cache_hits_total"), before + 16)
