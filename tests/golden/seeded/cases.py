"""The seeded models: one per architecture and option that Lathe claims.

A row here is what makes an option count as supported: its golden logits come
from llama.cpp (make_seeded_golden.py). To add one, add a Case and run that
script. The random seed of each case stands in golden.json, which it writes.
"""

import dataclasses

VOCABULARY = 512


@dataclasses.dataclass(frozen=True)
class Case:
    """Hyper-parameters of one seeded model. Sizes are in elements."""

    name: str
    arch: str
    hidden: int = 64
    ffn: int = 128
    heads: int = 4
    kv_heads: int = 2
    head_size: int = 16
    layers: int = 4
    # Larger than real models have, so that a wrong one shows.
    epsilon: float = 1e-3
    tied: bool = False
    rope_base: float = 10000.0
    # Biases: any of "q", "k", "v", "o", "gate", "up", "down".
    biases: tuple = ()
    # llama-3's frequency factors, as a tensor rope_freqs.weight.
    rope_factors: bool = False
    # Further metadata: (key without the architecture, type letter, value).
    extra: tuple = ()
    # Mean of Gemma's norms behind attention and feed-forward: large, else the
    # scaled embedding drowns what four layers add.
    post_norm: float = 5.0
    # Format of all matrices, a name of random_weights.
    weights: str = "f32"
    # Where llama.cpp lacks the option: golden values by reference.py (float64).
    by_reference: bool = False


# RoPE scaling; YaRN from 128 trained positions, so that 300 lie far outside.
LINEAR = (("rope.scaling.type", "s", "linear"), ("rope.scaling.factor", "f", 4.0))
YARN = (
    ("rope.scaling.type", "s", "yarn"),
    ("rope.scaling.factor", "f", 4.0),
    ("rope.scaling.original_context_length", "u", 128),
)
QKV = ("q", "k", "v")


def window(tokens: int, pattern=None) -> tuple:
    """Sliding window; pattern is None (llama.cpp's default 6), N (each Nth layer
    is full), or a tuple that says for each layer whether it has a window."""
    rows = [("attention.sliding_window", "u", tokens)]
    if pattern is not None:
        kind = "u" if isinstance(pattern, int) else "B"
        rows.append(("attention.sliding_window_pattern", kind, pattern))
    return tuple(rows)


def _llama(option: str, **values) -> Case:
    return Case("llama-" + option, "llama", **values)


def _qwen2(option: str, **values) -> Case:
    return Case("qwen2-" + option, "qwen2", biases=QKV, epsilon=2e-3, **values)


def _qwen3(option: str, **values) -> Case:
    values = {"rope_base": 1e6, **values}
    return Case("qwen3-" + option, "qwen3", epsilon=3e-3, **values)


def _gemma3(option: str, **values) -> Case:
    values = {
        "tied": True,
        "head_size": 32,
        "rope_base": 1e6,
        "extra": window(64, 2),
        **values,
    }
    return Case("gemma3-" + option, "gemma3", epsilon=4e-3, **values)


ARCHITECTURES = [
    _llama("mha", kv_heads=4),
    _llama("gqa"),
    _llama("mqa", kv_heads=1),
    _llama("head-size", hidden=128, heads=6, head_size=32),
    # Nothing is a multiple of 32: hidden 100, 3 heads, ffn 150, head 20.
    _llama("odd-sizes", hidden=100, ffn=150, heads=3, kv_heads=3, head_size=20),
    _llama("tied", tied=True),
    _llama("bias", biases=QKV + ("o",)),
    _llama("ffn-bias", biases=("gate", "up", "down")),
    _llama("rope-base", rope_base=500000.0, head_size=32),
    _llama("rope-linear", extra=LINEAR),
    _llama("rope-llama3", rope_factors=True, rope_base=500000.0, head_size=64),
    _llama("rope-yarn", extra=YARN, head_size=32),
    _llama(
        "rope-yarn-attn-factor",
        extra=YARN + (("rope.scaling.attn_factor", "f", 1.25),),
        head_size=32,
    ),
    _qwen2("mha", kv_heads=4),
    _qwen2("gqa"),
    _qwen2("mqa", kv_heads=1),
    _qwen2("tied", tied=True, rope_base=1e6),
    _qwen2("rope-linear", extra=LINEAR),
    _qwen2("rope-yarn", extra=YARN, rope_base=1e6),
    _qwen3("mha", kv_heads=4),
    _qwen3("gqa"),
    _qwen3("mqa", kv_heads=1),
    _qwen3("head-size", head_size=32),
    _qwen3("tied", tied=True, head_size=32),
    _qwen3("rope-linear", extra=LINEAR),
    _qwen3("rope-yarn", extra=YARN, head_size=32),
    _gemma3("gqa"),
    _gemma3("mha", kv_heads=4),
    _gemma3("mqa", kv_heads=1),
    _gemma3("head-size-equal", head_size=16),
    _gemma3("no-window", extra=()),
    _gemma3("default-pattern", extra=window(64), layers=7),
    _gemma3("pattern-array", extra=window(48, (True, False, False, True))),
    _gemma3("window-odd", extra=window(37, 3), layers=6),
    _gemma3("untied", tied=False),
    # 62 layers are the 27B model, which scales scores by another rule.
    _gemma3(
        "27b-scale",
        layers=62,
        hidden=32,
        ffn=32,
        heads=2,
        kv_heads=1,
        post_norm=1.0,
        extra=window(64),
    ),
    _gemma3("softcap", extra=window(64, 2) + (("final_logit_softcapping", "f", 8.0),)),
    # In Google's and Hugging Face's code, but not in llama.cpp's.
    _gemma3(
        "attention-softcap",
        extra=window(64, 2) + (("attn_logit_softcapping", "f", 2.0),),
        by_reference=True,
    ),
    _gemma3("rope-linear", extra=window(64, 2) + LINEAR),
    _gemma3("rope-bases", extra=window(64, 2) + (("rope.freq_base_swa", "f", 500.0),)),
]

# One model per weight format, llama with GQA; every bit pattern of the codes.
FORMAT_NAMES = [
    "f16",
    "bf16",
    "q4_0",
    "q4_1",
    "q5_0",
    "q5_1",
    "q8_0",
    "q2_k",
    "q3_k",
    "q4_k",
    "q5_k",
    "q6_k",
    "iq4_nl",
    "iq4_xs",
]
FORMATS = [
    Case(
        "format-" + name.replace("_", "-"),
        "llama",
        hidden=256,
        ffn=512,
        head_size=64,
        weights=name,
    )
    for name in FORMAT_NAMES
]

ALL = ARCHITECTURES + FORMATS
