"""What a GGUF model must read for one token: its limit is bandwidth over that."""

import dataclasses
import math
import pathlib
import struct

# Values and bytes of a block by ggml type number (ggml-common.h of ggml).
BLOCKS = {
    0: (1, 4),
    1: (1, 2),
    2: (32, 18),
    3: (32, 20),
    6: (32, 22),
    7: (32, 24),
    8: (32, 34),
    10: (256, 84),
    11: (256, 110),
    12: (256, 144),
    13: (256, 176),
    14: (256, 210),
    20: (32, 18),
    23: (256, 136),
    30: (1, 2),
}
FLOATS = {0, 1, 30}
SCALARS = dict(zip(range(13), "B b H h I i f ? s a Q q d".split()))


class _Reader:
    """Little-endian values of GGUF, one after another."""

    def __init__(self, data: bytes):
        self._data, self._at = data, 0

    def scalar(self, letter: str):
        size = struct.calcsize("<" + letter)
        (value,) = struct.unpack_from("<" + letter, self._data, self._at)
        self._at += size
        return value

    def text(self) -> str:
        size = self.scalar("Q")
        self._at += size
        return bytes(self._data[self._at - size : self._at]).decode(errors="replace")

    def value(self, kind: int):
        letter = SCALARS[kind]
        if letter == "s":
            return self.text()
        if letter != "a":
            return self.scalar(letter)
        element, count = self.scalar("I"), self.scalar("Q")
        return [self.value(element) for _ in range(count)]


@dataclasses.dataclass(frozen=True)
class ModelBytes:
    """arch as general.architecture; floats: most weights are F32, F16 or BF16."""

    arch: str
    floats: bool
    weights: int  # All tensors that a token reads, bytes.
    # Of each layer: bytes of key and value of one position, and the window in
    # positions (None: all).
    layers: tuple

    def kv(self, depth: float) -> float:
        """Bytes of f16 keys and values that a token reads behind `depth`."""
        return sum(
            each * (depth if window is None else min(depth, window))
            for each, window in self.layers
        )


def _windows(arch: str, key, layers: int) -> list:
    window = key("attention.sliding_window", 0)
    if not window:
        return [None] * layers
    pattern = key("attention.sliding_window_pattern", 6 if arch == "gemma3" else 1)
    if isinstance(pattern, list):
        return [window if pattern[i] else None for i in range(layers)]
    return [
        None if pattern > 1 and (i + 1) % pattern == 0 else window
        for i in range(layers)
    ]


def read(path: pathlib.Path) -> ModelBytes:
    """Reads a file's header. Raises ValueError where it is no GGUF that this
    understands."""
    try:
        # Tokenizers are a few MB; the rest of the file is not needed.
        with open(path, "rb") as file:
            return _parse(_Reader(file.read(64 << 20)))
    except (struct.error, KeyError, OverflowError, IndexError) as error:
        raise ValueError(f"{path} is no GGUF file that can be read: {error}") from None


def _parse(reader: _Reader) -> ModelBytes:
    magic, version = reader.scalar("I"), reader.scalar("I")
    if magic != 0x46554747 or version not in (2, 3):
        raise KeyError("magic or version")
    tensor_count, value_count = reader.scalar("Q"), reader.scalar("Q")
    values = {}
    for _ in range(value_count):
        name = reader.text()
        values[name] = reader.value(reader.scalar("I"))
    sizes, kinds = {}, {}
    for _ in range(tensor_count):
        name = reader.text()
        shape = [reader.scalar("Q") for _ in range(reader.scalar("I"))]
        kind = reader.scalar("I")
        reader.scalar("Q")  # offset
        block, size = BLOCKS[kind]
        sizes[name] = math.prod(shape) // block * size
        kinds[kind] = kinds.get(kind, 0) + sizes[name]
        if name == "token_embd.weight":
            embedding_row = shape[0] // block * size
    arch = values["general.architecture"]

    def key(name: str, default=None):
        return values.get(f"{arch}.{name}", default)

    weights = sum(sizes.values())
    if "output.weight" in sizes:  # Else the embedding is read whole as the head.
        weights += embedding_row - sizes["token_embd.weight"]
    layers, heads = values[f"{arch}.block_count"], values[f"{arch}.attention.head_count"]
    kv_heads = key("attention.head_count_kv", heads)
    head_size = values[f"{arch}.embedding_length"] // heads
    width = key("attention.key_length", head_size)
    width += key("attention.value_length", head_size)
    each = 2 * kv_heads * width
    windows = _windows(arch, key, layers)
    return ModelBytes(
        arch=arch,
        floats=max(kinds, key=kinds.get) in FLOATS,
        weights=weights,
        layers=tuple((each, window) for window in windows),
    )
