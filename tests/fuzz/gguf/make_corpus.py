#!/usr/bin/env python3
"""Writes the seeds of the GGUF fuzz target with the gguf Python package.

    python3 tests/fuzz/gguf/make_corpus.py
"""
import pathlib

import numpy as np
from gguf import GGMLQuantizationType as Type, GGUFWriter
from gguf.constants import GGML_QUANT_SIZES

FOLDER = pathlib.Path(__file__).with_name("corpus")
FORMATS = ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0",
           "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS"]


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    FOLDER.mkdir(exist_ok=True)
    rng = np.random.default_rng(1)

    writer = GGUFWriter(FOLDER / "model.gguf", "llama")
    writer.add_block_count(1)
    writer.add_embedding_length(64)
    writer.add_head_count_kv([1, 2])
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_token_list(["<s>", "a", "日本"])
    writer.add_token_scores([0.0, -1.0, -2.0])
    writer.add_token_types([3, 1, 1])
    writer.add_bool("test.bool", True)
    writer.add_int64("test.i64", -(2**63))
    writer.add_float64("test.f64", 0.1)
    writer.add_array("test.nested", [[1, 2], [3]])
    writer.add_tensor("token_embd.weight",
                      rng.standard_normal((3, 64), dtype=np.float32))
    writer.add_tensor("output_norm.weight", np.ones(64, dtype=np.float32))
    finish(writer)

    writer = GGUFWriter(FOLDER / "formats.gguf", "llama")
    for name in FORMATS:
        elems, size = GGML_QUANT_SIZES[Type[name]]
        rows = rng.integers(0, 0x3C, (2, size), dtype=np.uint8)
        writer.add_tensor("w." + name, rows, raw_dtype=Type[name])
    finish(writer)

    writer = GGUFWriter(FOLDER / "aligned.gguf", "gemma3")
    writer.add_custom_alignment(64)
    for i in range(3):
        writer.add_tensor(f"blk.{i}.norm", np.ones(3 + i, dtype=np.float16))
    finish(writer)

    writer = GGUFWriter(FOLDER / "shard.gguf", "llama")
    writer.add_uint16("split.no", 0)
    writer.add_uint16("split.count", 2)
    writer.add_int32("split.tensors.count", 1)
    writer.add_tensor("a", np.ones(4, dtype=np.float32))
    finish(writer)


if __name__ == "__main__":
    main()
