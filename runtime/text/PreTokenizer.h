/// \file
/// How byte-level BPE vocabularies split text before merging: one list of
/// patterns per model family.
#ifndef LATHE_RUNTIME_TEXT_PRETOKENIZER_H
#define LATHE_RUNTIME_TEXT_PRETOKENIZER_H

#include "runtime/support/Result.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::runtime {

/// Immutable after create; any number of threads may split at once.
class PreTokenizer {
public:
  /// Finds the family that a GGUF file's tokenizer.ggml.pre names. An unknown
  /// name is an Unsupported error that lists the known ones: a wrong split
  /// gives worse answers without any other sign.
  static Result<PreTokenizer> create(std::string_view name);

  /// All names that create accepts, in alphabetical order.
  static std::vector<std::string> knownNames();

  /// Appends the end offset of each piece of `text` to `ends`; pieces cover the
  /// text and none is empty. `text` must be valid UTF-8. Takes time linear in
  /// the text and constant stack. Fails with Exhausted if a match exceeds the
  /// pattern library's limits.
  Result<void> split(std::string_view text, std::vector<uint32_t> &ends) const;

  /// True if a piece that is itself a token is taken whole, without merging.
  bool ignoresMerges() const { return takesWholeTokens; }

private:
  struct Pattern;

  PreTokenizer() = default;

  std::vector<std::shared_ptr<const Pattern>> patterns;
  bool takesWholeTokens = false;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_TEXT_PRETOKENIZER_H
