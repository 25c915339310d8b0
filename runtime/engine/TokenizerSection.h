/// \file
/// The tokenizer as it stands in an engine, as plain data.
#ifndef LATHE_RUNTIME_ENGINE_TOKENIZERSECTION_H
#define LATHE_RUNTIME_ENGINE_TOKENIZERSECTION_H

#include "runtime/support/Result.h"
#include "runtime/text/TokenizerSpec.h"

#include <cstdint>
#include <span>

namespace lathe::runtime {

/// Reads the bytes of a Tokenizer section, aligned to 8 and of any origin:
/// fully verified, and every id inside the vocabulary, which has at most
/// `vocab` tokens (a greater id would address no row of the embedding). What
/// the texts mean is for Tokenizer::create to check. Errors: InvalidInput.
Result<TokenizerSpec> decodeTokenizer(std::span<const uint8_t> bytes,
                                      uint32_t vocab);

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_ENGINE_TOKENIZERSECTION_H
