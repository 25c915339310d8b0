"""Writes GGUF v3 files from plain values: all that the seeded models need.

Own code rather than the gguf package, so that a bare Debian with python3-numpy
can make the models at test time.
"""

import os
import struct

ALIGNMENT = 32

# Value types of metadata: GGUF specification, "gguf_metadata_value_type".
U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _scalar(kind: int, value) -> bytes:
    if kind == STRING:
        return _string(value)
    return struct.pack({U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}[kind], value)


def _value(kind, value) -> bytes:
    """kind is a scalar type, or (ARRAY, element type)."""
    if isinstance(kind, tuple):
        head = struct.pack("<IIQ", ARRAY, kind[1], len(value))
        return head + b"".join(_scalar(kind[1], v) for v in value)
    return struct.pack("<I", kind) + _scalar(kind, value)


def write(path, metadata: list, tensors: list) -> None:
    """Writes a file; it appears under its name only when it is complete.

    metadata: (key, kind, value). tensors: (name, shape outermost first, ggml
    type number, bytes).
    """
    part = f"{path}.part.{os.getpid()}"
    with open(part, "wb") as out:
        out.write(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)))
        for key, kind, value in metadata:
            out.write(_string(key) + _value(kind, value))
        offset = 0
        for name, shape, ggml_type, data in tensors:
            out.write(_string(name) + struct.pack("<I", len(shape)))
            out.write(b"".join(struct.pack("<Q", n) for n in reversed(shape)))
            out.write(struct.pack("<IQ", ggml_type, offset))
            offset += -(-len(data) // ALIGNMENT) * ALIGNMENT
        out.write(b"\0" * (-out.tell() % ALIGNMENT))
        for _, _, _, data in tensors:
            out.write(data + b"\0" * (-len(data) % ALIGNMENT))
    os.replace(part, path)
