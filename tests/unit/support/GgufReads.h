/// \file
/// All reads that a GGUF file offers, for files that may be damaged.
#ifndef LATHE_TESTS_UNIT_SUPPORT_GGUFREADS_H
#define LATHE_TESTS_UNIT_SUPPORT_GGUFREADS_H

#include "frontend/gguf/GgufFile.h"

namespace lathe::tests {

/// Reads each key as each type and checks the blocks of each tensor. True if
/// all blocks are sound; what keys say is ignored, as most are not of the type
/// that is asked for.
inline bool readWholeGguf(const frontend::GgufFile &file) {
  for (const frontend::GgufEntry &entry : file.entries()) {
    (void)file.getU32(entry.key);
    (void)file.getU64(entry.key);
    (void)file.getI64(entry.key);
    (void)file.getF32(entry.key);
    (void)file.getBool(entry.key);
    (void)file.getString(entry.key);
    (void)file.getStringArray(entry.key);
    (void)file.getI32Array(entry.key);
    (void)file.getF32Array(entry.key);
    (void)file.getU32PerLayer(entry.key, 4);
  }
  bool sound = true;
  for (const frontend::GgufTensor &tensor : file.tensors())
    sound &= file.checkBlocks(tensor).has_value();
  return sound;
}

} // namespace lathe::tests

#endif // LATHE_TESTS_UNIT_SUPPORT_GGUFREADS_H
