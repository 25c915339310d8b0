"""Real clients against lathe serve: what they send and what they parse."""

import json
import os
import subprocess
import typing
import unittest
import warnings

import support

MODEL = "chain"
CHAT = [{"role": "user", "content": "hello"}]
TEXT = "DEFGHIJ!"


def setUpModule():
    support.use_clients()
    # litellm would ask the internet for prices.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    # It leaves sockets to the collector, whose warning about them imports a
    # module; in the midst of another import this breaks Python 3.11's.
    warnings.simplefilter("ignore", ResourceWarning)


class OpenAiClient(support.ServeTest):
    def setUp(self):
        import openai

        self.openai = openai
        self.client = openai.OpenAI(
            base_url=self.server.url + "/v1", api_key="none", max_retries=0
        )
        self.addCleanup(self.client.close)

    def test_chat(self):
        answer = self.client.chat.completions.create(
            model=MODEL,
            messages=CHAT,
            temperature=0,
            logprobs=True,
            top_logprobs=2,
            n=2,
        )
        self.assertEqual(len(answer.choices), 2)
        for choice in answer.choices:
            self.assertEqual(choice.message.content, TEXT)
            self.assertEqual(choice.finish_reason, "stop")
            self.assertEqual(len(choice.logprobs.content), 5)
            self.assertAlmostEqual(choice.logprobs.content[0].logprob, 0, 4)
            self.assertEqual(bytes(choice.logprobs.content[0].bytes), b"DEF")
        self.assertEqual(answer.usage.completion_tokens, 10)
        self.assertTrue(answer.system_fingerprint)

    def test_chat_streamed(self):
        stream = self.client.chat.completions.create(
            model=MODEL,
            messages=CHAT,
            temperature=0,
            n=2,
            stream=True,
            stream_options={"include_usage": True},
        )
        text, ends, usage = {0: "", 1: ""}, {}, None
        for event in stream:
            for choice in event.choices:
                text[choice.index] += choice.delta.content or ""
                if choice.finish_reason:
                    ends[choice.index] = choice.finish_reason
            usage = event.usage or usage
        self.assertEqual(text, {0: TEXT, 1: TEXT})
        self.assertEqual(ends, {0: "stop", 1: "stop"})
        self.assertEqual(usage.completion_tokens, 10)

    def test_completion(self):
        for prompt in ("x", ["x"], [120], [[120]]):
            answer = self.client.completions.create(
                model=MODEL, prompt=prompt, temperature=0, logprobs=1, echo=True
            )
            self.assertEqual(answer.choices[0].text, "x" + TEXT)
            logprobs = answer.choices[0].logprobs
            self.assertIsNone(logprobs.token_logprobs[0])
            self.assertEqual(logprobs.tokens[-1], "!")
        stream = self.client.completions.create(
            model=MODEL, prompt="x", temperature=0, stop=["FG"], stream=True
        )
        self.assertEqual("".join(e.choices[0].text for e in stream), "DE")

    def test_models(self):
        self.assertEqual([m.id for m in self.client.models.list()], [MODEL])
        self.assertEqual(self.client.models.retrieve(MODEL).id, MODEL)

    def test_errors(self):
        create = self.client.chat.completions.create
        with self.assertRaises(self.openai.NotFoundError) as caught:
            create(model="other", messages=CHAT)
        self.assertEqual(caught.exception.code, "model_not_found")
        with self.assertRaises(self.openai.BadRequestError) as caught:
            create(model=MODEL, messages=[{"role": "user", "content": "a" * 600}])
        self.assertEqual(caught.exception.code, "context_length_exceeded")
        self.assertRegex(caught.exception.message, r"6\d\d.*512|512.*6\d\d")
        with self.assertRaises(self.openai.BadRequestError) as caught:
            create(model=MODEL, messages=[{"role": "forbidden", "content": "a"}])
        self.assertIn("forbidden not supported", caught.exception.message)


# A value of each field of OpenAI's request types that does something.
VALUES = {
    "audio": {"format": "wav", "voice": "alloy"},
    "best_of": 2,
    "echo": True,
    "frequency_penalty": 0.5,
    "function_call": {"name": "f"},
    "functions": [{"name": "f"}],
    "logit_bias": {"65": -1},
    "max_completion_tokens": 3,
    "max_tokens": 3,
    "metadata": {"a": "b"},
    "modalities": ["text", "audio"],
    "moderation": {"model": "m"},
    "n": 2,
    "parallel_tool_calls": False,
    "prediction": {"type": "content", "content": "a"},
    "presence_penalty": 0.5,
    "prompt_cache_key": "a",
    "prompt_cache_options": {"ttl": "5m"},
    "prompt_cache_retention": "24h",
    "reasoning_effort": "low",
    "response_format": {"type": "json_object"},
    "safety_identifier": "a",
    "seed": 1,
    "service_tier": "flex",
    "stop": ["a"],
    "store": True,
    "stream": True,
    "stream_options": {"include_usage": True},
    "suffix": "a",
    "temperature": 0.5,
    "tool_choice": "required",
    "tools": [{"type": "function", "function": {"name": "f"}}],
    "top_logprobs": 2,
    "top_p": 0.5,
    "user": "a",
    "verbosity": "low",
    "web_search_options": {},
}
# What is not implemented; every other field must work.
REFUSED = {
    "audio",
    "best_of",
    "function_call",
    "functions",
    "metadata",
    "modalities",
    "moderation",
    "parallel_tool_calls",
    "prediction",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "service_tier",
    "store",
    "suffix",
    "tool_choice",
    "tools",
    "verbosity",
    "web_search_options",
}


class EveryField(support.ServeTest):
    """Every field of the client's request types is obeyed or refused by name,
    and null is the same as nothing."""

    def send(self, path: str, base: dict, fields: typing.Iterable, values: dict):
        for name in fields:
            if name in base:
                continue
            with self.subTest(path=path, field=name):
                self.assertIn(name, values, "a new field: say what it takes")
                body = {**base, name: values[name]}
                if name == "stream_options":
                    body["stream"] = True
                if name == "top_logprobs":
                    body["logprobs"] = True
                status, reply = self.server.request(path, body)
                if name in REFUSED:
                    self.assertEqual(status, 400, reply)
                    self.assertEqual(reply["error"]["param"], name)
                    self.assertIn(name, reply["error"]["message"])
                else:
                    self.assertEqual(status, 200, reply)
                status, reply = self.server.request(path, {**base, name: None})
                self.assertEqual(status, 200, reply)

    def test_chat(self):
        from openai.types.chat import completion_create_params as params

        fields = {
            **params.CompletionCreateParamsBase.__annotations__,
            **params.CompletionCreateParamsStreaming.__annotations__,
        }
        self.assertGreater(len(fields), 30)
        base = {"model": MODEL, "messages": CHAT}
        self.send("/v1/chat/completions", base, fields, {**VALUES, "logprobs": True})

    def test_completion(self):
        from openai.types import completion_create_params as params

        fields = {
            **params.CompletionCreateParamsBase.__annotations__,
            **params.CompletionCreateParamsStreaming.__annotations__,
        }
        self.assertGreater(len(fields), 15)
        base = {"model": MODEL, "prompt": "x"}
        self.send("/v1/completions", base, fields, {**VALUES, "logprobs": 2})

    def test_unknown_fields(self):
        for path, base in (
            ("/v1/chat/completions", {"messages": CHAT}),
            ("/v1/completions", {"prompt": "x"}),
        ):
            status, reply = self.server.request(path, {**base, "max_token": 3})
            self.assertEqual(status, 400)
            self.assertEqual(reply["error"]["param"], "max_token")


class OllamaClient(support.ServeTest):
    def setUp(self):
        import ollama

        self.ollama = ollama
        self.client = ollama.Client(self.server.url)

    def test_chat(self):
        options = {"temperature": 0, "repeat_penalty": 1}
        answer = self.client.chat(MODEL, CHAT, options=options)
        self.assertEqual(answer.message.content, TEXT)
        self.assertEqual(answer.done_reason, "stop")
        self.assertEqual(answer.eval_count, 5)
        self.assertGreater(answer.total_duration, 0)
        parts = list(self.client.chat(MODEL, CHAT, options=options, stream=True))
        self.assertEqual("".join(p.message.content for p in parts), TEXT)
        self.assertTrue(parts[-1].done)

    def test_generate(self):
        options = {"temperature": 0, "num_predict": 2}
        answer = self.client.generate(MODEL, "x", raw=True, options=options)
        self.assertEqual(answer.response, "DEFG")
        self.assertEqual(answer.done_reason, "length")
        stream = self.client.generate(
            MODEL, "hello", system="be brief", options={"stop": ["FG"]}, stream=True
        )
        self.assertEqual("".join(part.response for part in stream), "DE")

    def test_models(self):
        self.assertEqual([m.model for m in self.client.list().models], [MODEL])
        self.assertEqual([m.model for m in self.client.ps().models], [MODEL])
        shown = self.client.show(MODEL)
        self.assertEqual(shown.details.family, "llama")
        self.assertEqual(shown.modelinfo["llama.context_length"], 512)

    def test_errors(self):
        with self.assertRaises(self.ollama.ResponseError) as caught:
            self.client.chat("other", CHAT)
        self.assertEqual(caught.exception.status_code, 404)
        with self.assertRaises(self.ollama.ResponseError) as caught:
            self.client.chat(MODEL, CHAT, format="json")
        self.assertIn("format", caught.exception.error)


class LiteLlm(support.ServeTest):
    def complete(self, model: str, **options):
        import litellm

        litellm.telemetry = False
        return litellm.completion(
            model=model, messages=CHAT, temperature=0, num_retries=0, **options
        )

    def backends(self):
        return (
            {
                "model": f"openai/{MODEL}",
                "api_base": self.server.url + "/v1",
                "api_key": "none",
            },
            {"model": f"ollama_chat/{MODEL}", "api_base": self.server.url},
        )

    def test_answers(self):
        for backend in self.backends():
            with self.subTest(**backend):
                answer = self.complete(**backend)
                self.assertEqual(answer.choices[0].message.content, TEXT)
                self.assertEqual(answer.usage.completion_tokens, 5)

    def test_streams(self):
        for backend in self.backends():
            with self.subTest(**backend):
                parts = self.complete(**backend, stream=True)
                text = "".join(p.choices[0].delta.content or "" for p in parts)
                self.assertEqual(text, TEXT)

    def test_context_errors_are_known(self):
        import litellm

        with self.assertRaises(litellm.ContextWindowExceededError):
            litellm.completion(
                messages=[{"role": "user", "content": "a" * 600}],
                num_retries=0,
                **self.backends()[0],
            )


class Curl(support.ServeTest):
    def test_stream(self):
        body = {"messages": CHAT, "temperature": 0, "stream": True}
        done = subprocess.run(
            ["curl", "-sN", "--fail", "-d", json.dumps(body)]
            + [self.server.url + "/v1/chat/completions"],
            capture_output=True,
            text=True,
            check=True,
        )
        events = done.stdout.split("\n\n")
        self.assertEqual(events.pop(), "")
        self.assertEqual(events.pop(), "data: [DONE]")
        text = ""
        for event in events:
            self.assertTrue(event.startswith("data: "), event)
            delta = json.loads(event[6:])["choices"][0]["delta"]
            text += delta.get("content", "")
        self.assertEqual(text, TEXT)


if __name__ == "__main__":
    unittest.main()
