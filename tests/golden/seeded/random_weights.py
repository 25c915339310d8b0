"""Seeded random weights that are the same bits on every machine, for ever.

The numbers come from a counter-based generator (the finalizer of SplitMix64,
Steele et al. 2014) in integer arithmetic, followed by float operations that
IEEE 754 rounds in one way only. A tensor's values depend on the seed and its
name alone, not on the other tensors.
"""

import math

import numpy

GOLDEN = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1


def _mix(x: numpy.ndarray) -> numpy.ndarray:
    x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return x ^ (x >> numpy.uint64(31))


class Stream:
    """The random numbers of one (seed, name)."""

    def __init__(self, seed: int, name: str):
        key = 0xCBF29CE484222325  # FNV-1a over the name
        for byte in name.encode():
            key = ((key ^ byte) * 0x100000001B3) & MASK
        self._key = (key ^ (seed * GOLDEN)) & MASK
        self._next = 0

    def words(self, count: int) -> numpy.ndarray:
        """uint64 [count]"""
        index = numpy.arange(self._next, self._next + count, dtype=numpy.uint64)
        self._next += count
        with numpy.errstate(over="ignore"):
            start = numpy.uint64(self._key) + index * numpy.uint64(GOLDEN)
            return _mix(_mix(start) + numpy.uint64(self._key))

    def unit(self, count: int) -> numpy.ndarray:
        """float32 [count], uniform in [-0.5, 0.5), multiples of 2^-24"""
        bits = (self.words(count) >> numpy.uint64(40)).astype(numpy.float32)
        return bits * numpy.float32(2.0**-24) - numpy.float32(0.5)

    def bytes(self, count: int) -> numpy.ndarray:
        """uint8 [count]"""
        return self.words(-(-count // 8)).view(numpy.uint8)[:count]


def floats(stream: Stream, count: int, mean: float, deviation: float):
    """float32 [count], uniform around mean with the standard deviation given."""
    width = numpy.float32(math.sqrt(12.0) * deviation)
    return stream.unit(count) * width + numpy.float32(mean)


# The weight formats: ggml type number, values per block, bytes per block, spread,
# fields of a block in order. A field is ("random", bytes), filled with any bits,
# or ("half", factor): an IEEE half, the block's scale times factor. The
# scale is drawn per block; spread is the standard deviation that uniform
# codes would have at scale 1, so that weights come out with the one asked for.
# Block layouts: ggml-common.h of ggml.
FORMATS = {
    "q4_0": (2, 32, 18, 4.64, [("half", 1), ("random", 16)]),
    "q4_1": (3, 32, 20, 4.61, [("half", 1), ("half", -7.5), ("random", 16)]),
    "q5_0": (6, 32, 22, 9.25, [("half", 1), ("random", 4), ("random", 16)]),
    "q5_1": (
        7,
        32,
        24,
        9.23,
        [("half", 1), ("half", -15.5), ("random", 4), ("random", 16)],
    ),
    "q8_0": (8, 32, 34, 73.9, [("half", 1), ("random", 32)]),
    "q2_k": (
        10,
        256,
        84,
        13.9,
        [("random", 16), ("random", 64), ("half", 1), ("half", 1.5)],
    ),
    "q3_k": (
        11,
        256,
        110,
        43.4,
        [("random", 32), ("random", 64), ("random", 12), ("half", 1)],
    ),
    "q4_k": (
        12,
        256,
        144,
        258.0,
        [("half", 1), ("half", 7.5), ("random", 12), ("random", 128)],
    ),
    "q5_k": (
        13,
        256,
        176,
        527.0,
        [
            ("half", 1),
            ("half", 15.5),
            ("random", 12),
            ("random", 32),
            ("random", 128),
        ],
    ),
    "q6_k": (
        14,
        256,
        210,
        1366.0,
        [("random", 128), ("random", 64), ("random", 16), ("half", 1)],
    ),
    "iq4_nl": (20, 32, 18, 69.0, [("half", 1), ("random", 16)]),
    "iq4_xs": (
        23,
        256,
        136,
        1276.0,
        [("half", 1), ("random", 2), ("random", 4), ("random", 128)],
    ),
}
PLAIN = {"f32": 0, "f16": 1, "bf16": 30}


def type_number(name: str) -> int:
    """The ggml type number of a format's name."""
    return PLAIN[name] if name in PLAIN else FORMATS[name][0]


def weight(seed: int, name: str, rows: int, columns: int, deviation: float, kind: str):
    """The bytes of a [rows, columns] weight in a format."""
    stream = Stream(seed, name)
    count = rows * columns
    if kind in PLAIN:
        values = floats(stream, count, 0.0, deviation)
        if kind == "f16":
            return values.astype("<f2").tobytes()
        if kind == "bf16":
            bits = values.view(numpy.uint32)
            rounded = bits + numpy.uint32(0x7FFF) + ((bits >> 16) & numpy.uint32(1))
            return (rounded >> 16).astype("<u2").tobytes()
        return values.astype("<f4").tobytes()
    _, block, size, spread, fields = FORMATS[kind]
    if columns % block:
        raise ValueError(f"{name}: {columns} columns are no multiple of {block}")
    blocks = count // block
    # Scales between 0.5 and 1.5 of the mean one, of either sign where the
    # format has no separate minimum (llama.cpp writes both signs there too).
    scale = (stream.unit(blocks) + numpy.float32(1.0)) * numpy.float32(
        deviation / spread
    )
    if sum(field[0] == "half" for field in fields) == 1:
        scale = numpy.where(stream.unit(blocks) < 0, -scale, scale)
    parts = []
    for what, argument in fields:
        if what == "half":
            half = (scale * numpy.float32(argument)).astype("<f2")
            parts.append(half.view(numpy.uint8).reshape(blocks, 2))
        else:
            parts.append(stream.bytes(blocks * argument).reshape(blocks, argument))
    data = numpy.concatenate(parts, axis=1)
    assert data.shape == (blocks, size)
    return data.tobytes()
