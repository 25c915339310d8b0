#include "kernels/formats/BlockCodec.h"

#include <cstring>

namespace lathe::kernels {

namespace {

/// Reads a block's bytes in order into fields.
class Splitter {
public:
  Splitter(const uint8_t *block, BlockFields &fields, size_t elems)
      : at(block), fields(fields) {
    std::memset(fields.codes, 0, elems);
  }

  void half(int index) {
    fields.half[index] = static_cast<uint16_t>(at[0] | at[1] << 8);
    at += 2;
  }
  void scales(size_t count) {
    std::memcpy(fields.scales, at, count);
    at += count;
  }
  /// Codes of `Bits` bits, 8 / Bits of them per byte. Groups of `GroupBytes`
  /// bytes follow each other; inside a group, the lowest bits of all bytes hold
  /// the first GroupBytes elements, the next bits the next, and so on.
  template <int Bits, size_t GroupBytes> void plane(size_t bytes, int shift) {
    constexpr unsigned mask = (1u << Bits) - 1;
    uint8_t *code = fields.codes;
    for (size_t group = 0; group < bytes; group += GroupBytes, at += GroupBytes)
      for (int part = 0; part < 8; part += Bits, code += GroupBytes)
        for (size_t i = 0; i < GroupBytes; ++i)
          code[i] |= static_cast<uint8_t>(((at[i] >> part) & mask) << shift);
  }

private:
  const uint8_t *at;
  BlockFields &fields;
};

/// Writes fields to a block's bytes in order; mirrors Splitter.
class Joiner {
public:
  Joiner(uint8_t *block, const BlockFields &fields)
      : at(block), fields(fields) {}

  void half(int index) {
    at[0] = static_cast<uint8_t>(fields.half[index]);
    at[1] = static_cast<uint8_t>(fields.half[index] >> 8);
    at += 2;
  }
  void scales(size_t count) {
    std::memcpy(at, fields.scales, count);
    at += count;
  }
  template <int Bits, size_t GroupBytes> void plane(size_t bytes, int shift) {
    constexpr unsigned mask = (1u << Bits) - 1;
    const uint8_t *code = fields.codes;
    std::memset(at, 0, bytes);
    for (size_t group = 0; group < bytes; group += GroupBytes, at += GroupBytes)
      for (int part = 0; part < 8; part += Bits, code += GroupBytes)
        for (size_t i = 0; i < GroupBytes; ++i)
          at[i] |= static_cast<uint8_t>(((code[i] >> shift) & mask) << part);
  }

private:
  uint8_t *at;
  const BlockFields &fields;
};

/// The fields of each format's block in stored order (ggml's block_q*
/// structures; semantics checked against the gguf Python package).
template <typename Codec> void walk(Format format, Codec &&codec) {
  switch (format) {
  case Format::F32:
  case Format::F16:
  case Format::BF16:
    return;
  case Format::Q4_0:
  case Format::IQ4_NL:
    codec.half(0);
    codec.template plane<4, 16>(16, 0);
    return;
  case Format::Q4_1:
    codec.half(0);
    codec.half(1);
    codec.template plane<4, 16>(16, 0);
    return;
  case Format::Q5_0:
    codec.half(0);
    codec.template plane<1, 1>(4, 4);
    codec.template plane<4, 16>(16, 0);
    return;
  case Format::Q5_1:
    codec.half(0);
    codec.half(1);
    codec.template plane<1, 1>(4, 4);
    codec.template plane<4, 16>(16, 0);
    return;
  case Format::Q8_0:
    codec.half(0);
    codec.template plane<8, 32>(32, 0);
    return;
  case Format::Q2_K:
    codec.scales(16);
    codec.template plane<2, 32>(64, 0);
    codec.half(0);
    codec.half(1);
    return;
  case Format::Q3_K:
    codec.template plane<1, 32>(32, 2);
    codec.template plane<2, 32>(64, 0);
    codec.scales(12);
    codec.half(0);
    return;
  case Format::Q4_K:
    codec.half(0);
    codec.half(1);
    codec.scales(12);
    codec.template plane<4, 32>(128, 0);
    return;
  case Format::Q5_K:
    codec.half(0);
    codec.half(1);
    codec.scales(12);
    codec.template plane<1, 32>(32, 4);
    codec.template plane<4, 32>(128, 0);
    return;
  case Format::Q6_K:
    codec.template plane<4, 64>(128, 0);
    codec.template plane<2, 32>(64, 4);
    codec.scales(16);
    codec.half(0);
    return;
  case Format::IQ4_XS:
    codec.half(0);
    codec.half(1);
    codec.scales(4);
    codec.template plane<4, 16>(128, 0);
    return;
  }
}

} // namespace

void splitBlock(Format format, const uint8_t *block, BlockFields &fields) {
  walk(format, Splitter(block, fields, traitsOf(format).blockElems));
}

void joinBlock(Format format, const BlockFields &fields, uint8_t *block) {
  walk(format, Joiner(block, fields));
}

} // namespace lathe::kernels
