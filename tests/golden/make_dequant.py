#!/usr/bin/env python3
"""Writes tests/golden/dequant.bin: blocks of every weight format and the f32
values that gguf.quants.dequantize (PyPI package gguf; made with 0.19.0) gives them.

    python3 tests/golden/make_dequant.py

Little-endian: "LDQ1", u32 formats, then per format
    u32 ggml type, u32 blocks, u32 stream blocks, u64 stream seed,
    32 bytes SHA-256 of the stream blocks' values as f32,
    the blocks, their values as f32.
The stream blocks are not stored: both sides draw them from SplitMix64.
Infinite and NaN scales are left out: import refuses them.
"""
import hashlib
import pathlib
import struct

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as Type
from gguf.quants import dequantize

# Byte offsets of the f16 fields of a block.
FORMATS = {
    "F32": [], "F16": [0], "BF16": [], "Q4_0": [0], "Q4_1": [0, 2],
    "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82],
    "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
    "IQ4_NL": [0], "IQ4_XS": [0],
}
# Zeros, least and largest subnormals and normals, largest finite, ones.
EXTREME = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x7BFF, 0xFBFF,
           0x3C00, 0xBC00]
STREAM_ELEMENTS = 1 << 18


def splitmix64(seed, count):
    """`count` outputs of SplitMix64 (Steele et al. 2014) from state `seed`."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15) * np.arange(
            1, count + 1, dtype=np.uint64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def random_blocks(seed, blocks, size):
    words = splitmix64(seed, (blocks * size + 7) // 8)
    return words.view(np.uint8)[: blocks * size].reshape(blocks, size).copy()


def make_finite(name, data):
    """Clears the lowest exponent bit of infinite and NaN scales."""
    if name == "F32":
        high = data[:, 3].astype(np.uint32) << 8 | data[:, 2]
        data[(high & 0x7F80) == 0x7F80, 2] &= 0x7F
    elif name == "BF16":
        high = data[:, 1].astype(np.uint32) << 8 | data[:, 0]
        data[(high & 0x7F80) == 0x7F80, 0] &= 0x7F
    for at in FORMATS[name]:
        data[(data[:, at + 1] & 0x7C) == 0x7C, at + 1] &= 0xFB


def values(type_, data):
    out = dequantize(data.reshape(1, -1).view(
        {Type.F32: np.float32, Type.F16: np.float16}.get(type_, np.uint8)),
        type_)
    assert out.dtype == np.float32 and np.isfinite(out).all()
    return np.ascontiguousarray(out).tobytes()


def main():
    out = [b"LDQ1", struct.pack("<I", len(FORMATS))]
    for name, scales in FORMATS.items():
        type_ = Type[name]
        elems, size = GGML_QUANT_SIZES[type_]
        blocks = {1: 256, 32: 28, 256: 8}[elems]
        seed = 0x1A7E + int(type_)
        data = random_blocks(seed, blocks, size)
        make_finite(name, data)
        # The first blocks take the extreme scales in turn, and among them are
        # all-zero and all-one codes.
        if elems > 1:
            data[0, :] = 0
            data[1, :] = 0xFF
            for at in scales:
                for i in range(min(blocks, len(EXTREME))):
                    value = EXTREME[(i + at) % len(EXTREME)]
                    data[i, at : at + 2] = value & 0xFF, value >> 8
        stream_blocks = STREAM_ELEMENTS // elems
        stream_seed = seed + 1000
        stream = random_blocks(stream_seed, stream_blocks, size)
        make_finite(name, stream)
        out.append(struct.pack("<IIIQ", int(type_), blocks, stream_blocks,
                               stream_seed))
        out.append(hashlib.sha256(values(type_, stream)).digest())
        out.append(data.tobytes())
        out.append(values(type_, data))
    path = pathlib.Path(__file__).with_name("dequant.bin")
    path.write_bytes(b"".join(out))
    print(path, path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
