#!/usr/bin/env python3
"""Writes the seeded random GGUF models that the golden logits belong to.

Each is the same file, bit for bit, on every machine (see random_weights.py), so
only seeds and golden values are committed. Needs Python 3.11 and numpy
(Debian: python3-numpy). Files that are there and complete are left alone.

usage: make_seeded.py OUT_DIR [--check] [NAME...]   (--list prints the names)
"""

import argparse
import hashlib
import json
import math
import pathlib
import sys

try:
    import numpy
except ImportError:
    sys.exit("make_seeded.py: numpy is missing (apt-get install python3-numpy)")

import cases
import gguf_file
import random_weights

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE / "golden.json"
TYPES = {
    "u": gguf_file.U32,
    "f": gguf_file.F32,
    "s": gguf_file.STRING,
    "B": (gguf_file.ARRAY, gguf_file.BOOL),
}


def byte_letters() -> list:
    """GPT-2's printable letter of each byte value."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters, extra = [], 0
    for byte in range(256):
        if byte in plain:
            letters.append(chr(byte))
        else:
            letters.append(chr(256 + extra))
            extra += 1
    return letters


def tokenizer() -> list:
    """A byte-level BPE of 512 tokens: 256 bytes, 252 pairs, 4 control tokens."""
    letters = byte_letters()
    space = letters[0x20]
    pairs = [(space, c) for c in "abcdefghijklmnopqrstuvwxyz"]
    pairs += [(v, c) for v in "aeiou" for c in "bcdfghjklmnpqrstvwxyz"]
    pairs += [(c, v) for c in "bcdfghjklmnpqrstvwxyz" for v in "aeiouy"]
    pairs = pairs[: cases.VOCABULARY - 4 - 256]
    control = ["<|bos|>", "<|eos|>", "<|pad|>", "<|unk|>"]
    tokens = letters + [a + b for a, b in pairs] + control
    assert len(set(tokens)) == len(tokens) == cases.VOCABULARY
    first = cases.VOCABULARY - len(control)
    kinds = [1] * first + [3] * len(control)  # 1 normal, 3 control
    text = (gguf_file.ARRAY, gguf_file.STRING)
    return [
        ("tokenizer.ggml.model", gguf_file.STRING, "gpt2"),
        ("tokenizer.ggml.pre", gguf_file.STRING, "gpt-2"),
        ("tokenizer.ggml.tokens", text, tokens),
        ("tokenizer.ggml.token_type", (gguf_file.ARRAY, gguf_file.I32), kinds),
        ("tokenizer.ggml.merges", text, [f"{a} {b}" for a, b in pairs]),
        ("tokenizer.ggml.bos_token_id", gguf_file.U32, first),
        ("tokenizer.ggml.eos_token_id", gguf_file.U32, first + 1),
        ("tokenizer.ggml.padding_token_id", gguf_file.U32, first + 2),
        ("tokenizer.ggml.unknown_token_id", gguf_file.U32, first + 3),
        ("tokenizer.ggml.add_bos_token", gguf_file.BOOL, False),
    ]


def metadata(case: cases.Case) -> list:
    """(key, kind, value) of a case, the tokenizer's included."""
    rows = [
        ("context_length", "u", 512),
        ("embedding_length", "u", case.hidden),
        ("block_count", "u", case.layers),
        ("feed_forward_length", "u", case.ffn),
        ("attention.head_count", "u", case.heads),
        ("attention.head_count_kv", "u", case.kv_heads),
        ("attention.layer_norm_rms_epsilon", "f", case.epsilon),
        ("rope.freq_base", "f", case.rope_base),
        ("vocab_size", "u", cases.VOCABULARY),
    ]
    if case.head_size * case.heads != case.hidden or case.arch == "gemma3":
        rows.append(("attention.key_length", "u", case.head_size))
        rows.append(("attention.value_length", "u", case.head_size))
    if case.arch == "llama":
        rows.append(("rope.dimension_count", "u", case.head_size))
    rows += case.extra
    general = [
        ("general.architecture", gguf_file.STRING, case.arch),
        ("general.name", gguf_file.STRING, case.name),
    ]
    own = [(f"{case.arch}.{key}", TYPES[kind], value) for key, kind, value in rows]
    return general + own + tokenizer()


def tensors(case: cases.Case, seed: int) -> list:
    """(name, shape, ggml type, bytes). Deviations keep activations near 1 and
    attention and logits sharp enough that a wrong mask or position shows."""
    result = []
    matrix_type = random_weights.type_number(case.weights)

    def matrix(name: str, rows: int, columns: int, gain: float = 1.0):
        deviation = gain / math.sqrt(columns)
        data = random_weights.weight(seed, name, rows, columns, deviation, case.weights)
        result.append((name, (rows, columns), matrix_type, data))

    def vector(name: str, count: int, mean: float, deviation: float):
        stream = random_weights.Stream(seed, name)
        values = random_weights.floats(stream, count, mean, deviation)
        result.append((name, (count,), 0, values.astype("<f4").tobytes()))

    def norm(name: str, count: int, mean: float = 1.0):
        vector(name, count, mean, 0.25)

    hidden, heads, size = case.hidden, case.heads, case.head_size
    query, key = heads * size, case.kv_heads * size
    qk_norm = case.arch in ("qwen3", "gemma3")
    # A tied head wants rows whose product with a unit-size state has deviation
    # about 2.5; Gemma multiplies its embedding by sqrt(hidden) itself.
    matrix("token_embd.weight", cases.VOCABULARY, hidden, 2.5)
    norm("output_norm.weight", hidden)
    if not case.tied:
        matrix("output.weight", cases.VOCABULARY, hidden, 2.5)
    if case.rope_factors:
        factors = numpy.linspace(1.0, 8.0, size // 2, dtype=numpy.float32)
        result.append(
            ("rope_freqs.weight", (size // 2,), 0, factors.astype("<f4").tobytes())
        )
    for layer in range(case.layers):
        prefix = f"blk.{layer}."
        norm(prefix + "attn_norm.weight", hidden)
        matrix(prefix + "attn_q.weight", query, hidden, 1.5)
        matrix(prefix + "attn_k.weight", key, hidden, 1.5)
        matrix(prefix + "attn_v.weight", key, hidden)
        matrix(prefix + "attn_output.weight", hidden, query)
        if qk_norm:
            norm(prefix + "attn_q_norm.weight", size, 1.5)
            norm(prefix + "attn_k_norm.weight", size, 1.5)
        norm(prefix + "ffn_norm.weight", hidden)
        matrix(prefix + "ffn_gate.weight", case.ffn, hidden, 1.5)
        matrix(prefix + "ffn_up.weight", case.ffn, hidden)
        matrix(prefix + "ffn_down.weight", hidden, case.ffn)
        if case.arch == "gemma3":
            norm(prefix + "post_attention_norm.weight", hidden, case.post_norm)
            norm(prefix + "post_ffw_norm.weight", hidden, case.post_norm)
        names = {
            "q": ("attn_q", query),
            "k": ("attn_k", key),
            "v": ("attn_v", key),
            "o": ("attn_output", hidden),
            "gate": ("ffn_gate", case.ffn),
            "up": ("ffn_up", case.ffn),
            "down": ("ffn_down", hidden),
        }
        for bias in case.biases:
            name, count = names[bias]
            vector(f"{prefix}{name}.bias", count, 0.0, 0.5)
    return result


def make(case: cases.Case, seed: int, path: pathlib.Path) -> None:
    """Writes the GGUF of a case."""
    gguf_file.write(path, metadata(case), tensors(case, seed))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="example: make_seeded.py build/seeded llama-gqa gemma3-gqa",
    )
    parser.add_argument("out", type=pathlib.Path, nargs="?")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--list", action="store_true", help="print all names")
    parser.add_argument(
        "--check", action="store_true", help="compare the sums with golden.json"
    )
    arguments = parser.parse_intermixed_args()
    known = {case.name: case for case in cases.ALL}
    if arguments.list:
        print("\n".join(known))
        return 0
    if arguments.out is None:
        parser.error("OUT_DIR is missing")
    for name in arguments.names:
        if name not in known:
            parser.error(f"unknown model '{name}' (--list prints the names)")
    golden = json.loads(GOLDEN.read_text())["cases"]
    arguments.out.mkdir(parents=True, exist_ok=True)
    # A file older than what it is made of is written again.
    sources = ["make_seeded.py", "cases.py", "gguf_file.py", "random_weights.py"]
    newest = max((HERE / s).stat().st_mtime_ns for s in sources)
    newest = max(newest, GOLDEN.stat().st_mtime_ns)
    bad = 0
    for name in arguments.names or known:
        path = arguments.out / f"{name}.gguf"
        if not path.exists() or path.stat().st_mtime_ns < newest:
            make(known[name], golden[name]["seed"], path)
        if arguments.check:
            found = hashlib.sha256(path.read_bytes()).hexdigest()
            expected = golden[name]["sha256"]
            if found != expected:
                print(
                    f"make_seeded.py: {path} has SHA-256 {found}, expected {expected}",
                    file=sys.stderr,
                )
                bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
