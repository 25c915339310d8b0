"""A GGUF model whose next token follows from the last one by a table: what it
answers is known, and no rounding can change it.

One layer of a Llama in F32 with hidden = vocabulary = 512. The embedding is the
identity and the layer adds nothing, so the residual stream stays one-hot; the
head gives each token's successor a lead of 20 nats.
"""

import math
import pathlib
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(REPOSITORY / "tests/golden/seeded"))
import gguf_file  # noqa: E402
import make_seeded  # noqa: E402
import numpy  # noqa: E402

SIZE, HEADS, EPSILON = 512, 8, 1e-6
CONTROL = ["<|bos|>", "<|eos|>", "<|im_start|>", "<|im_end|>"]
PIECES = ["DE", "DEF", "HI"]
BOS, END = SIZE - 4, SIZE - 1
TEMPLATE = (
    "{% for m in messages %}"
    "{% if m.role == 'forbidden' %}"
    "{{ raise_exception('Role forbidden not supported') }}{% endif %}"
    "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
    "{% endfor %}{{ '<|im_start|>assistant\n' }}"
)
# What a chat, and a prompt that ends in x, are answered with.
ANSWER = ["DEF", "G", "HI", "J", "!", "<|im_end|>"]


def tokens() -> list:
    """Bytes, the pieces, fillers, control tokens."""
    known = make_seeded.byte_letters() + PIECES
    fillers = [f"<filler{i}>" for i in range(SIZE - len(known) - len(CONTROL))]
    return known + fillers + CONTROL


def identifier(text: str) -> int:
    """The id of a token by its text (one byte, or a piece)."""
    letters = make_seeded.byte_letters()
    return tokens().index(letters[ord(text)] if len(text) == 1 else text)


def successors() -> list:
    """The next token of each; a token without an own one is its own."""
    after = list(range(SIZE))
    for start in ("\n", "x"):
        chain = [start, *ANSWER]
        for token, following in zip(chain, chain[1:]):
            after[identifier(token)] = identifier(following)
    return after


def tokenizer(template: str, names: list) -> list:
    text = (gguf_file.ARRAY, gguf_file.STRING)
    count = SIZE - len(CONTROL)
    kinds = [1] * (256 + len(PIECES))
    kinds += [5] * (count - len(kinds)) + [3] * len(CONTROL)
    rows = [
        ("tokenizer.ggml.model", gguf_file.STRING, "gpt2"),
        ("tokenizer.ggml.pre", gguf_file.STRING, "gpt-2"),
        ("tokenizer.ggml.tokens", text, names),
        ("tokenizer.ggml.token_type", (gguf_file.ARRAY, gguf_file.I32), kinds),
        ("tokenizer.ggml.merges", text, ["D E", "DE F", "H I"]),
        ("tokenizer.ggml.bos_token_id", gguf_file.U32, BOS),
        ("tokenizer.ggml.eos_token_id", gguf_file.U32, END),
        ("tokenizer.ggml.add_bos_token", gguf_file.BOOL, True),
    ]
    if template:
        rows.append(("tokenizer.chat_template", gguf_file.STRING, template))
    return rows


def write(path: pathlib.Path, template=TEMPLATE, context=512, names=None) -> None:
    """Writes the model; without a template it cannot chat. `names` are other
    texts of the same tokens."""
    metadata = [
        ("general.architecture", gguf_file.STRING, "llama"),
        ("general.name", gguf_file.STRING, "chain"),
    ]
    for key, value in (
        ("context_length", context),
        ("embedding_length", SIZE),
        ("block_count", 1),
        ("feed_forward_length", SIZE),
        ("attention.head_count", HEADS),
        ("attention.head_count_kv", HEADS),
        ("rope.dimension_count", SIZE // HEADS),
        ("vocab_size", SIZE),
    ):
        metadata.append((f"llama.{key}", gguf_file.U32, value))
    for key, value in (
        ("attention.layer_norm_rms_epsilon", EPSILON),
        ("rope.freq_base", 10000.0),
    ):
        metadata.append((f"llama.{key}", gguf_file.F32, value))

    one = numpy.eye(SIZE, dtype="<f4")
    zero = numpy.zeros((SIZE, SIZE), dtype="<f4")
    # The final norm turns one-hot 1 into 1 / sqrt(1 / SIZE + EPSILON).
    head = zero.copy()
    for token, following in enumerate(successors()):
        head[following, token] = 20 * math.sqrt(1 / SIZE + EPSILON)
    matrices = {
        "token_embd": one,
        "output": head,
        "blk.0.attn_q": one,
        "blk.0.attn_k": one,
        "blk.0.attn_v": one,
        "blk.0.attn_output": zero,
        "blk.0.ffn_gate": one,
        "blk.0.ffn_up": one,
        "blk.0.ffn_down": zero,
    }
    tensors = [
        (f"{name}.weight", (SIZE, SIZE), 0, matrix.tobytes())
        for name, matrix in matrices.items()
    ]
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        data = numpy.ones(SIZE, dtype="<f4").tobytes()
        tensors.append((f"{name}.weight", (SIZE,), 0, data))
    gguf_file.write(path, metadata + tokenizer(template, names or tokens()), tensors)
