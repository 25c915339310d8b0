#!/usr/bin/env python3
"""Runs the seeded models in float64 numpy and compares with the golden logits.

Independent of llama.cpp and of Lathe, written from the papers' formulas: it
shows that the golden logits are what the architecture means, and how much of an
error bound is left once float32 rounding in llama.cpp itself is taken off.
Weight formats are decoded by the gguf package (PyPI).

usage: reference.py [NAME...]   prints one NMSE per model; fails above LIMIT
"""

import argparse
import json
import math
import sys

import gguf
import numpy

import cases
import make_seeded

# Tests hold Lathe to 1e-8; the golden values themselves must be far better.
LIMIT = 1e-9


def weights(case: cases.Case, seed: int) -> dict:
    """Tensor name -> float64 array."""
    result = {}
    for name, shape, ggml_type, data in make_seeded.tensors(case, seed):
        raw = numpy.frombuffer(data, numpy.uint8)
        if len(shape) == 2:
            raw = raw.reshape(shape[0], -1)
        kind = gguf.GGMLQuantizationType(ggml_type)
        if kind == gguf.GGMLQuantizationType.F32:
            values = raw.view(numpy.float32)
        elif kind == gguf.GGMLQuantizationType.F16:
            values = raw.view(numpy.float16)
        else:
            values = gguf.quants.dequantize(raw, kind)
        result[name] = values.astype(numpy.float64).reshape(shape)
    return result


def rms_norm(x, weight, epsilon):
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight


def rope_tables(case: cases.Case, positions, base: float, scaled: bool, factors):
    """(cos, sin) [positions, head size / 2], YaRN's magnitude included."""
    size = case.head_size
    extra = {key: value for key, _, value in case.extra} if scaled else {}
    index = numpy.arange(size // 2)
    frequency = base ** (-2.0 * index / size)
    if factors is not None:
        frequency = frequency / factors
    kind = extra.get("rope.scaling.type")
    magnitude = 1.0
    if kind == "linear":
        frequency = frequency / extra["rope.scaling.factor"]
    elif kind == "yarn":
        # Peng et al. 2023 with beta fast 32, slow 1; the interpolated dimensions
        # are counted in pairs, as the reference code does.
        factor = extra["rope.scaling.factor"]
        original = extra["rope.scaling.original_context_length"]

        def dimension(rotations):
            turns = original / (rotations * 2 * math.pi)
            return size * math.log(turns) / (2 * math.log(base))

        low = max(0, math.floor(dimension(32.0)))
        high = min(size - 1, math.ceil(dimension(1.0)))
        ramp = numpy.clip((index - low) / max(0.001, high - low), 0, 1)
        frequency = frequency * (1 - ramp) + frequency / factor * ramp
        magnitude = 0.1 * math.log(factor) + 1.0
        magnitude *= extra.get("rope.scaling.attn_factor", 1.0)
    angle = positions[:, None] * frequency[None, :]
    return numpy.cos(angle) * magnitude, numpy.sin(angle) * magnitude


def rotate(x, tables, adjacent: bool):
    """x [tokens, heads, size]; pairs (2i, 2i+1) for llama, (i, i+size/2) else."""
    cos, sin = (t[:, None, :] for t in tables)
    half = x.shape[-1] // 2
    a, b = (x[..., 0::2], x[..., 1::2]) if adjacent else (x[..., :half], x[..., half:])
    out = numpy.empty_like(x)
    first, second = a * cos - b * sin, a * sin + b * cos
    if adjacent:
        out[..., 0::2], out[..., 1::2] = first, second
    else:
        out[..., :half], out[..., half:] = first, second
    return out


def windowed_layers(case: cases.Case) -> list:
    """For each layer its window in tokens, or None for full attention."""
    extra = {key: value for key, _, value in case.extra}
    tokens = extra.get("attention.sliding_window")
    if tokens is None:
        return [None] * case.layers
    pattern = extra.get("attention.sliding_window_pattern", 6)
    if isinstance(pattern, int):
        pattern = [i % pattern < pattern - 1 for i in range(case.layers)]
    return [tokens if p else None for p in pattern]


def forward(case: cases.Case, w: dict, ids: list) -> numpy.ndarray:
    """Logits [tokens, vocabulary] in float64."""
    gemma = case.arch == "gemma3"
    extra = {key: value for key, _, value in case.extra}
    count, size = len(ids), case.head_size
    positions = numpy.arange(count)
    x = w["token_embd.weight"][ids]
    if gemma:
        x = x * math.sqrt(case.hidden)

    def linear(value, name):
        return value @ w[name + ".weight"].T + w.get(name + ".bias", 0.0)

    for layer, window in enumerate(windowed_layers(case)):
        p = f"blk.{layer}."
        base = extra.get("rope.freq_base_swa", 10000.0) if window else case.rope_base
        factors = w.get("rope_freqs.weight")
        tables = rope_tables(case, positions, base, not window, factors)
        h = rms_norm(x, w[p + "attn_norm.weight"], case.epsilon)
        q = linear(h, p + "attn_q").reshape(count, case.heads, size)
        k = linear(h, p + "attn_k").reshape(count, case.kv_heads, size)
        v = linear(h, p + "attn_v").reshape(count, case.kv_heads, size)
        if case.arch in ("qwen3", "gemma3"):
            q = rms_norm(q, w[p + "attn_q_norm.weight"], case.epsilon)
            k = rms_norm(k, w[p + "attn_k_norm.weight"], case.epsilon)
        q = rotate(q, tables, case.arch == "llama")
        k = rotate(k, tables, case.arch == "llama")
        group = case.heads // case.kv_heads
        k, v = numpy.repeat(k, group, 1), numpy.repeat(v, group, 1)
        # Gemma 3 27B scales by hidden/heads.
        per_head = case.hidden // case.heads if case.layers == 62 else size
        scores = numpy.einsum("qhd,khd->hqk", q, k) / math.sqrt(per_head)
        cap = extra.get("attn_logit_softcapping")
        if cap:
            scores = numpy.tanh(scores / cap) * cap
        distance = positions[:, None] - positions[None, :]
        hidden = distance < 0
        if window:
            hidden |= distance >= window
        scores = numpy.where(hidden[None], -numpy.inf, scores)
        scores = numpy.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        o = numpy.einsum("hqk,khd->qhd", scores, v).reshape(count, -1)
        o = linear(o, p + "attn_output")
        if gemma:
            o = rms_norm(o, w[p + "post_attention_norm.weight"], case.epsilon)
        x = x + o
        h = rms_norm(x, w[p + "ffn_norm.weight"], case.epsilon)
        gate, up = linear(h, p + "ffn_gate"), linear(h, p + "ffn_up")
        if gemma:
            inner = math.sqrt(2 / math.pi) * (gate + 0.044715 * gate**3)
            gate = 0.5 * gate * (1 + numpy.tanh(inner))
        else:
            gate = gate / (1 + numpy.exp(-gate))
        f = linear(gate * up, p + "ffn_down")
        if gemma:
            f = rms_norm(f, w[p + "post_ffw_norm.weight"], case.epsilon)
        x = x + f
    x = rms_norm(x, w["output_norm.weight"], case.epsilon)
    logits = x @ w.get("output.weight", w["token_embd.weight"]).T
    cap = extra.get("final_logit_softcapping")
    return numpy.tanh(logits / cap) * cap if cap else logits


def greedy(case: cases.Case, w: dict, prompt: list, steps: int) -> tuple:
    """(ids, gaps): `steps` greedy ids after the prompt and how far the best
    logit lay above the second each time."""
    ids, gaps = list(prompt), []
    for _ in range(steps):
        row = forward(case, w, ids)[-1]
        second, best = numpy.sort(row)[-2:]
        ids.append(int(row.argmax()))
        gaps.append(float(best - second))
    return ids[len(prompt) :], gaps


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="example: reference.py llama-gqa",
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    names = parser.parse_args().names
    golden = json.loads(make_seeded.GOLDEN.read_text())
    known = {case.name: case for case in cases.ALL}
    for name in names:
        if name not in known:
            parser.error(f"unknown model '{name}'")
    bad = 0
    for name in names or known:
        case = known[name]
        if case.by_reference:
            print(f"{name:28} is made by this reference")
            continue
        w = weights(case, golden["cases"][name]["seed"])
        logits = forward(case, w, golden["tokens"])[golden["logits_positions"]]
        path = make_seeded.HERE / "golden" / f"{name}.f32"
        kept = numpy.fromfile(path, "<f4").astype(numpy.float64).reshape(logits.shape)
        error = ((kept - logits) ** 2).sum() / (logits**2).sum()
        print(f"{name:28} {error:.2e}{'' if error <= LIMIT else '  TOO LARGE'}")
        bad += not error <= LIMIT
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
