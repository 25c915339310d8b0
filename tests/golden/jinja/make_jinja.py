#!/usr/bin/env python3
"""Makes jinja.json: what Python's jinja2, set up as Hugging Face's
apply_chat_template sets it up, makes of chat templates and of many small
expressions. tests/unit/jinja compares byte for byte.

To add a template: a file templates/NAME.jinja beside this script. To add a
context or a micro-case: an entry below. Then run
    python3 make_jinja.py [--smollm2 MODEL.gguf] > jinja.json
(jinja2 3.1; the option takes SmolLM2's own template from the model)."""
import argparse
import copy
import datetime
import json
import pathlib
import random
import sys

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from micro_cases import micro_cases

HERE = pathlib.Path(__file__).parent
NOW = datetime.datetime(2024, 7, 26, 14, 5, 9)


class Raised(Exception):
    """raise_exception was called; its text reaches the user unchanged."""


class Generation(jinja2.ext.Extension):
    """{% generation %} marks the assistant's text; it renders as its body."""

    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(
            self.call_method("_body"), [], [], body).set_lineno(lineno)

    def _body(self, caller):
        return caller()


def environment(optimized=True):
    def raise_exception(message):
        raise Raised(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None,
               sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent,
                          separators=separators, sort_keys=sort_keys)

    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True,
        extensions=[Generation, jinja2.ext.loopcontrols], optimized=optimized)
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def render(env, source, context):
    try:
        # jinja2's indent filter changes a list it is given.
        context = copy.deepcopy(context)
        return {"text": env.from_string(source).render(**context)}
    except Raised as e:
        return {"error": "raised", "raised": str(e)}
    except Exception as e:  # pylint: disable=broad-except
        return {"error": f"{type(e).__name__}"}


WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a place, \"now\" & <soon>",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "the city's name"},
                "days": {"type": "integer", "minimum": 1,
                         "enum": [1, 3, 18446744073709551615]},
                "unit": {"type": ["string", "null"], "default": "°C",
                         "enum": ["°C", "°F"]},
                "where": {"type": "object", "properties": {
                    "lat": {"type": "number", "nullable": True},
                    "tags": {"type": "array", "items": {"type": "string"}}},
                    "required": ["lat"]},
            },
            "required": ["city", "days"],
        },
        "return": {"type": "object", "description": "a forecast"},
    },
}
CALL = {"id": "call00001", "type": "function",
        "function": {"name": "get_weather",
                     "arguments": {"city": "Zürich", "days": 3, "x": 0.1,
                                   "deep": {"a": [True, None]}}}}


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
HELLO = [user("Hello, who are you?")]
TURNS = [user("  One?  "), assistant("Two.\n"), user("It's \"3\"\n\nok <|im_end|>")]
TOOL_TURNS = [
    {"role": "system", "content": "Be brief."}, user("Weather in Zürich?"),
    assistant("", tool_calls=[CALL]),
    {"role": "tool", "name": "get_weather", "tool_call_id": "call00001",
     "content": "{\"t\": 21.5}"},
    user("And tomorrow?")]
CONTEXTS = {
    "hello": {**TOKENS, "messages": HELLO, "add_generation_prompt": True},
    "turns": {**TOKENS, "messages": TURNS, "add_generation_prompt": False},
    "system": {**TOKENS, "add_generation_prompt": True, "messages": [
        {"role": "system", "content": " You are a 🦙. "}, *TURNS]},
    "tools": {**TOKENS, "messages": TOOL_TURNS, "tools": [WEATHER],
              "add_generation_prompt": True},
    "two tools": {**TOKENS, "messages": HELLO, "add_generation_prompt": True,
                  "tools": [WEATHER, {"type": "function", "function": {
                      "name": "noop", "description": "Nothing",
                      "parameters": {"type": "object", "properties": {}}}}],
                  "enable_thinking": False},
    "thinking": {**TOKENS, "add_generation_prompt": True,
                 "enable_thinking": True, "messages": [
                     user("2+2?"),
                     assistant("<think>\nhm\n</think>\n\n4"), user("sure?"),
                     assistant("yes", reasoning_content="I think so.")]},
    "parts": {**TOKENS, "add_generation_prompt": True, "messages": [
        {"role": "user", "content": [{"type": "text", "text": "ab"},
                                     {"type": "image"},
                                     {"type": "text", "text": "cd"}]}]},
    "wrong order": {**TOKENS, "messages": [assistant("first"), user("then")],
                    "add_generation_prompt": True},
    "odd role": {**TOKENS, "messages": [{"role": "narrator", "content": "x"}],
                 "add_generation_prompt": True},
    "documents": {**TOKENS, "messages": HELLO, "add_generation_prompt": True,
                  "documents": [{"title": "T1", "text": "Some text"},
                                {"title": "T2", "text": "More\ntext"}]},
    "empty": {**TOKENS, "messages": [], "add_generation_prompt": True},
}
MICRO = {
    "s": "Hello World", "u": "éß Ǆ Σας ΑΣ 日本 🦙\u00a0x\u200b", "e": "",
    "n": 7, "m": -3, "f": 2.5, "big": 1e22, "small": 1.5e-7, "t": True,
    "none": None, "l": [3, 1, 2], "ls": ["b", "A", "c", "a"], "el": [],
    "d": {"b": 1, "a": [1, {"x": None}], "items": "mine"}, "ed": {},
    "rows": [{"k": "x", "v": 1, "o": {"p": 5}}, {"k": "Y", "v": 3},
             {"k": "x", "v": 2, "o": {"p": 4}}],
    "lines": "a\n  b\n\nc\r\nd\n", "q": "it's \"q\" \\ \t\x07é\u2028",
    "messages": TURNS, "tools": [WEATHER],
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--smollm2")
    options = parser.parse_args()
    env = environment()
    if options.smollm2:
        import gguf
        field = gguf.GGUFReader(options.smollm2).fields["tokenizer.chat_template"]
        (HERE / "templates/smollm2.jinja").write_bytes(
            bytes(field.parts[field.data[0]]))
    templates = {}
    for path in sorted((HERE / "templates").glob("*.jinja")):
        source = path.read_bytes().decode("utf-8")
        templates[path.stem] = {"source": source, "results": {
            name: render(env, source, context)
            for name, context in CONTEXTS.items()}}
    # jinja2 folds constants by other rules than it computes with; where the
    # two differ nothing is to be learnt.
    plain = environment(optimized=False)
    micro = []
    for source in micro_cases(random.Random(3)):
        result = render(env, source, MICRO)
        unfolded = source
        if source.startswith("{{ ") and source.count("{{") == 1:
            # Output folds even without the optimizer; assignment does not.
            unfolded = source.replace("{{", "{% set r_ =").replace(
                "}}", "%}{{ r_ }}")
        if result == render(plain, unfolded, MICRO):
            micro.append({"source": source, **result})
    json.dump({"contexts": {**CONTEXTS, "micro": MICRO},
               "templates": templates, "micro": micro},
              sys.stdout, ensure_ascii=False, separators=(",", ":"))
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
