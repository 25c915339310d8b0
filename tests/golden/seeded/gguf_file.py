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


def header(metadata: list, tensors: list) -> bytes:
    """What precedes the tensors' data, padded; their data follow one another,
    each padded to ALIGNMENT.

    metadata: (key, kind, value). tensors: (name, shape outermost first, ggml
    type number, size in bytes).
    """
    parts = [b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))]
    for key, kind, value in metadata:
        parts.append(_string(key) + _value(kind, value))
    offset = 0
    for name, shape, ggml_type, size in tensors:
        parts.append(_string(name) + struct.pack("<I", len(shape)))
        parts += [struct.pack("<Q", n) for n in reversed(shape)]
        parts.append(struct.pack("<IQ", ggml_type, offset))
        offset += -(-size // ALIGNMENT) * ALIGNMENT
    data = b"".join(parts)
    return data + b"\0" * (-len(data) % ALIGNMENT)


def write(path, metadata: list, tensors: list) -> None:
    """Writes a file; it appears under its name only when it is complete.

    metadata and tensors as in header(), with the bytes in place of their size.
    """
    part = f"{path}.part.{os.getpid()}"
    with open(part, "wb") as out:
        sizes = [(*tensor[:3], len(tensor[3])) for tensor in tensors]
        out.write(header(metadata, sizes))
        for _, _, _, data in tensors:
            out.write(data + b"\0" * (-len(data) % ALIGNMENT))
    os.replace(part, path)
