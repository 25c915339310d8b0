#!/usr/bin/env python3
"""Writes a copy of a GGUF file whose weights are all F32.

Every tensor is dequantized exactly (gguf.quants.dequantize), so that a run of
the copy shows what the quantized values mean without any rounding of the
activations: the reference of the golden files. Metadata is kept; only
general.file_type changes to 0 (all F32).

Needs the PyPI packages gguf and numpy.

usage: to_f32.py IN.gguf OUT.gguf
"""

import argparse
import os
import pathlib
import sys

import gguf
import numpy


def convert(source: pathlib.Path, target: pathlib.Path) -> None:
    """Writes target from source; target appears only when it is complete."""
    reader = gguf.GGUFReader(source)
    architecture = reader.get_field("general.architecture").contents()
    part = target.with_name(target.name + ".part")
    writer = gguf.GGUFWriter(part, architecture)
    for field in reader.fields.values():
        # The writer makes these by itself.
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        kind = field.types[0]
        element = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        value = field.contents()
        if field.name == "general.file_type":
            value = int(gguf.LlamaFileType.ALL_F32)
        writer.add_key_value(field.name, value, kind, sub_type=element)
    for tensor in reader.tensors:
        # reader shapes are innermost first, numpy's are outermost first
        shape = [int(n) for n in reversed(tensor.shape)]
        writer.add_tensor_info(
            tensor.name,
            shape,
            numpy.dtype(numpy.float32),
            4 * int(tensor.n_elements),
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        writer.write_tensor_data(numpy.ascontiguousarray(values, numpy.float32))
    writer.close()
    os.replace(part, target)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="example: to_f32.py model.Q4_1.gguf model.F32.gguf",
    )
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("target", type=pathlib.Path)
    arguments = parser.parse_args()
    if not arguments.source.exists():
        print(f"to_f32.py: {arguments.source} does not exist", file=sys.stderr)
        return 1
    convert(arguments.source, arguments.target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
