"""The models that make_model writes: sizes, formats, metadata and tokenizer.

Sizes of Llama-3.2-1B and Llama-3.1-8B are those of their published GGUF files,
TinyLlama-1.1B's those of its config.json; the mix of formats called Q4_K_M is
llama.cpp's (llama_tensor_get_type in its src/llama-quant.cpp).
"""

import dataclasses
import math
import pathlib
import sys

SEEDED = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/seeded"
sys.path.insert(0, str(SEEDED))

import gguf_file  # noqa: E402

FORMATS = "q4_k_m q8_0 q5_0 q4_1 q4_0 q6_k q4_k f16 bf16 f32".split()
# "general.file_type" of ggml's LLAMA_FTYPE_MOSTLY_*.
FILE_TYPES = dict(zip(FORMATS, (15, 7, 8, 3, 2, 18, 14, 1, 32, 0)))
FIRST_CONTROL = {"<|begin_of_text|>": 0, "<|end_of_text|>": 1}
HEADERS = {"<|start_header_id|>": 6, "<|end_header_id|>": 7, "<|eot_id|>": 9}
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m['role'] }}"
    "<|end_header_id|>\n\n{{ m['content'] }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant"
    "<|end_header_id|>\n\n{% endif %}"
)


@dataclasses.dataclass(frozen=True)
class Shape:
    """Sizes of a llama model, in elements."""

    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    head_size: int
    layers: int
    vocabulary: int
    tied: bool
    context: int = 131072
    # Of llama-3's rope scaling; None: plain rope.
    rope_factor: float | None = None


SHAPES = {
    "llama-3.2-1b": Shape(
        2048, 8192, 32, 8, 64, 16, 128256, tied=True, rope_factor=32.0
    ),
    "llama-3.1-8b": Shape(
        4096, 14336, 32, 8, 128, 32, 128256, tied=False, rope_factor=8.0
    ),
    "tinyllama-1.1b": Shape(2048, 5632, 32, 4, 64, 22, 32000, tied=False, context=2048),
    # About SmolLM2-135M's size, but a K-quant's block divides all its sizes.
    "small-256": Shape(768, 2048, 12, 4, 64, 20, 49152, tied=True, context=8192),
    "tiny-256": Shape(256, 512, 4, 2, 64, 4, 2048, tied=False, context=2048),
}


def rope_factors(size: int, factor: float) -> list:
    """llama-3's frequency factors of a head of `size` elements (its config's
    rope_type "llama3": base 500000, low 1, high 4, trained for 8192)."""
    trained, low, high = 8192, 1.0, 4.0
    result = []
    for pair in range(size // 2):
        wavelength = 2 * math.pi * 500000.0 ** (2 * pair / size)
        if wavelength < trained / high:
            result.append(1.0)
        elif wavelength > trained / low:
            result.append(factor)
        else:
            smooth = (trained / wavelength - low) / (high - low)
            result.append(1 / ((1 - smooth) / factor + smooth))
    return result


def _more_bits(layer: int, layers: int) -> bool:
    """The layers where Q4_K_M takes Q6_K for attn_v and ffn_down."""
    eighth = layers // 8
    return (
        layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2
    )


@dataclasses.dataclass(frozen=True)
class Tensor:
    """kind: a format of random_weights, "norm" or "rope" (both F32)."""

    name: str
    shape: tuple
    kind: str
    gain: float = 1.0


@dataclasses.dataclass(frozen=True)
class Depth:
    """How much of a shape is written, and what its later layers matter.

    Two files of one shape, format and seed have the same layers up to the lesser
    depth, as long as neither fades there: so the shallow one can draft for the
    other, and is right the more often the fainter the layers beyond it are."""

    layers: int | None = None  # only the first so many
    fade_from: int | None = None  # the layers from here on
    fade: float = 1.0  # add so much of what they would


def cut(shape: Shape, depth: Depth) -> Shape:
    """The shape that is left of it."""
    return dataclasses.replace(shape, layers=depth.layers or shape.layers)


def tensors(shape: Shape, name: str, depth: Depth = Depth()) -> list:
    """The tensors of a shape in a format of FORMATS, in the file's order.

    Gains as in tests/golden/seeded: a weight's deviation is gain / sqrt(columns),
    so that activations keep the size of 1 and logits are sharp."""
    mixed = name == "q4_k_m"
    plain = "q4_k" if mixed else name
    large = "q6_k" if mixed else name
    hidden, size = shape.hidden, shape.head_size
    query, key = shape.heads * size, shape.kv_heads * size
    embedding = large if shape.tied else plain
    rows = [
        Tensor("token_embd.weight", (shape.vocabulary, hidden), embedding, 2.5),
        Tensor("output_norm.weight", (hidden,), "norm"),
    ]
    if not shape.tied:
        rows.append(Tensor("output.weight", (shape.vocabulary, hidden), large, 2.5))
    if shape.rope_factor:
        rows.append(Tensor("rope_freqs.weight", (size // 2,), "rope"))
    for layer in range(cut(shape, depth).layers):
        fades = depth.fade_from is not None and layer >= depth.fade_from
        output = depth.fade if fades else 1.0
        prefix = f"blk.{layer}."
        down = large if _more_bits(layer, shape.layers) else plain
        for part, sizes, kind, gain in (
            ("attn_norm", (hidden,), "norm", 1.0),
            ("attn_q", (query, hidden), plain, 1.5),
            ("attn_k", (key, hidden), plain, 1.5),
            ("attn_v", (key, hidden), down, 1.0),
            ("attn_output", (hidden, query), plain, output),
            ("ffn_norm", (hidden,), "norm", 1.0),
            ("ffn_gate", (shape.ffn, hidden), plain, 1.5),
            ("ffn_up", (shape.ffn, hidden), plain, 1.0),
            ("ffn_down", (hidden, shape.ffn), down, output),
        ):
            rows.append(Tensor(f"{prefix}{part}.weight", sizes, kind, gain))
    return rows


def _byte_letters() -> list:
    """GPT-2's printable letter of each byte value."""
    plain = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(256, 512))
    return [chr(b if b in plain else next(others)) for b in range(256)]


def _pairs(count: int) -> list:
    """The parts of `count` merges, each of letters or of earlier merges: two
    letters, a space and what follows it, three letters, four."""
    space = _byte_letters()[0x20]
    letters = "abcdefghijklmnopqrstuvwxyz"
    two = [(a, b) for a in letters for b in letters]
    doubles = [a + b for a, b in two]
    result = two + [(space, a) for a in letters]
    result += [(space + a, b) for a in letters for b in doubles]
    result += [(a, b) for a in doubles for b in letters]
    # Two pairs, spread over all of them: 5 has no divisor in common with 676².
    every = len(doubles) ** 2
    for i in range(max(0, count - len(result))):
        first, second = divmod(i * 5 % every, len(doubles))
        result.append((doubles[first], doubles[second]))
    return result[:count]


def _tokenizer(vocabulary: int) -> list:
    """Metadata of a byte-level BPE in the manner of Llama 3: 256 bytes, merges,
    and 256 control tokens at the end."""
    pairs = _pairs(vocabulary - 512)
    first = vocabulary - 256
    control = [f"<|reserved_special_token_{i}|>" for i in range(256)]
    for name, place in (FIRST_CONTROL | HEADERS).items():
        control[place] = name
    tokens = _byte_letters() + [a + b for a, b in pairs] + control
    if len(set(tokens)) != vocabulary:
        raise ValueError("tokens are not distinct")
    text = (gguf_file.ARRAY, gguf_file.STRING)
    kinds = [1] * first + [3] * 256  # 1 normal, 3 control
    return [
        ("tokenizer.ggml.model", gguf_file.STRING, "gpt2"),
        ("tokenizer.ggml.pre", gguf_file.STRING, "llama-bpe"),
        ("tokenizer.ggml.tokens", text, tokens),
        ("tokenizer.ggml.token_type", (gguf_file.ARRAY, gguf_file.I32), kinds),
        ("tokenizer.ggml.merges", text, [f"{a} {b}" for a, b in pairs]),
        ("tokenizer.ggml.bos_token_id", gguf_file.U32, first),
        ("tokenizer.ggml.eos_token_id", gguf_file.U32, first + HEADERS["<|eot_id|>"]),
        ("tokenizer.ggml.add_bos_token", gguf_file.BOOL, True),
        ("tokenizer.chat_template", gguf_file.STRING, CHAT_TEMPLATE),
    ]


def metadata(name: str, shape: Shape, kind: str, seed: int) -> list:
    """(key, type, value) of a file, the tokenizer's included."""
    title = f"{name} {kind.upper()}, random weights, seed {seed}"
    own = [
        ("context_length", shape.context),
        ("embedding_length", shape.hidden),
        ("block_count", shape.layers),
        ("feed_forward_length", shape.ffn),
        ("attention.head_count", shape.heads),
        ("attention.head_count_kv", shape.kv_heads),
        ("rope.dimension_count", shape.head_size),
        ("vocab_size", shape.vocabulary),
    ]
    return [
        ("general.architecture", gguf_file.STRING, "llama"),
        ("general.name", gguf_file.STRING, title),
        ("general.file_type", gguf_file.U32, FILE_TYPES[kind]),
        *((f"llama.{key}", gguf_file.U32, value) for key, value in own),
        ("llama.attention.layer_norm_rms_epsilon", gguf_file.F32, 1e-5),
        ("llama.rope.freq_base", gguf_file.F32, 500000.0),
        *_tokenizer(shape.vocabulary),
    ]
