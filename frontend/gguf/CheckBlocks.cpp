// Are a tensor's scales finite?

#include "frontend/gguf/Header.h"
#include "runtime/support/Fp16.h"
#include "runtime/support/Quote.h"

namespace lathe::frontend {

using kernels::Format;
using kernels::FormatTraits;
using runtime::ErrorKind;
using runtime::fail;
using runtime::Result;

namespace {

uint16_t loadHalf(const uint8_t *at) {
  return static_cast<uint16_t>(at[0] | at[1] << 8);
}

/// True if one block (one element of a float format) has a scale or value that
/// is infinite or NaN.
bool isNonFinite(const FormatTraits &traits, const uint8_t *block) {
  switch (traits.format) {
  case Format::F32:
    return runtime::bf16IsNonFinite(loadHalf(block + 2));
  case Format::F16:
    return runtime::f16IsNonFinite(loadHalf(block));
  case Format::BF16:
    return runtime::bf16IsNonFinite(loadHalf(block));
  default:
    return runtime::f16IsNonFinite(loadHalf(block + traits.scaleAt)) ||
           (traits.offsetAt >= 0 &&
            runtime::f16IsNonFinite(loadHalf(block + traits.offsetAt)));
  }
}

} // namespace

Result<void> GgufFile::checkBlocks(const GgufTensor &tensor) const {
  const FormatTraits &traits = traitsOf(tensor.format);
  const uint8_t *block = tensor.data.data();
  uint64_t blocks = tensor.data.size() / traits.blockBytes;
  for (uint64_t i = 0; i < blocks; ++i, block += traits.blockBytes) {
    if (!isNonFinite(traits, block))
      continue;
    uint64_t perRow = tensor.k() / traits.blockElems;
    return fail(
        ErrorKind::InvalidInput, "{}: tensor {}: {} {} (row {}, column {}) {}",
        runtime::displayPath(shardPath(tensor.shard)),
        runtime::quoted(tensor.name),
        kernels::isFloatFormat(tensor.format) ? "element" : "block", i,
        i / perRow, i % perRow * traits.blockElems,
        kernels::isFloatFormat(tensor.format) ? "is infinite or NaN"
                                              : "has an infinite or NaN scale");
  }
  return {};
}

} // namespace lathe::frontend
