/// \file
/// SentencePiece's precompiled normalization map: the longest prefix of a text
/// that it replaces, and by what.
#ifndef LATHE_RUNTIME_TEXT_CHARSMAP_H
#define LATHE_RUNTIME_TEXT_CHARSMAP_H

#include "runtime/support/Result.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace lathe::runtime {

/// The blob `precompiled_charsmap`: a little-endian u32 byte count, that many
/// bytes of a Darts double array, then NUL-terminated replacement texts.
/// Comes from a file: every index in it is checked when it is followed.
class Charsmap {
public:
  Charsmap() = default;

  /// An empty blob is the map that replaces nothing. Fails if the sizes do
  /// not fit or the replacement texts do not end with NUL.
  static Result<Charsmap> create(std::span<const uint8_t> blob);

  struct Match {
    size_t length = 0; ///< Bytes of the text that are replaced; 0: none.
    std::string_view replacement;
  };

  /// The longest start of `text` that the map replaces. The view points into
  /// the map.
  Match longestPrefix(std::string_view text) const;

private:
  std::vector<uint32_t> units;
  std::vector<char> replacements;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_TEXT_CHARSMAP_H
