/// \file
/// A byte trie over token texts: all tokens that start at a place in a text.
#ifndef LATHE_RUNTIME_TEXT_TOKENTRIE_H
#define LATHE_RUNTIME_TEXT_TOKENTRIE_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace lathe::runtime {

/// Immutable once built; keeps no reference to the texts it was built from.
class TokenTrie {
public:
  using Entry = std::pair<std::string_view, int32_t>; ///< Text and id.

  TokenTrie() : TokenTrie(std::vector<Entry>{}) {}

  /// Empty texts are left out; of equal texts the lowest id is kept.
  explicit TokenTrie(std::vector<Entry> entries);

  /// True if no token starts with this byte: a cheap first look.
  bool noneStartsWith(char byte) const {
    return root[static_cast<uint8_t>(byte)] == kNone;
  }

  /// Calls found(length in bytes, id) for every token that is a prefix of
  /// `text`, shortest first.
  template <typename Found>
  void eachPrefix(std::string_view text, Found found) const {
    uint32_t node = kNone;
    for (size_t i = 0; i < text.size(); ++i) {
      node = i == 0 ? root[static_cast<uint8_t>(text[0])]
                    : child(node, static_cast<uint8_t>(text[i]));
      if (node == kNone)
        return;
      if (nodes[node].id >= 0)
        found(i + 1, nodes[node].id);
    }
  }

private:
  static constexpr uint32_t kNone = ~uint32_t{0};

  /// The children of a node lie side by side, ordered by byte.
  struct Node {
    uint32_t firstChild = 0;
    uint16_t children = 0;
    uint8_t byte = 0;
    int32_t id = -1;
  };

  uint32_t child(uint32_t node, uint8_t byte) const;

  std::array<uint32_t, 256> root;
  std::vector<Node> nodes;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_TEXT_TOKENTRIE_H
