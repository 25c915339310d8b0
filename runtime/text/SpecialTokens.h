/// \file
/// Finds the tokens that are matched as whole text before anything is split:
/// user-defined ones everywhere, control ones where the text is trusted.
#ifndef LATHE_RUNTIME_TEXT_SPECIALTOKENS_H
#define LATHE_RUNTIME_TEXT_SPECIALTOKENS_H

#include "runtime/text/TokenTrie.h"
#include "runtime/text/TokenizerSpec.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace lathe::runtime {

/// Immutable; any number of threads may use it at once.
class SpecialTokens {
public:
  explicit SpecialTokens(const TokenizerSpec &spec);

  /// A stretch of bytes [begin, end) of a text.
  struct Range {
    size_t begin, end;
  };

  /// A token, or text between tokens (id = kNoToken).
  struct Fragment {
    Range range;
    int32_t id;
  };

  /// Cuts `text` at special tokens: the leftmost first and of those that start
  /// at one place the longest. Control and unknown tokens count only if they
  /// lie wholly inside one of `trusted` (ascending, disjoint).
  std::vector<Fragment> cut(std::string_view text,
                            std::span<const Range> trusted) const;

  /// The control or user-defined token whose text this is.
  std::optional<int32_t> find(std::string_view text) const;

private:
  TokenTrie userDefined;
  TokenTrie control;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_TEXT_SPECIALTOKENS_H
