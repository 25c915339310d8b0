/// \file
/// Where the end of a text has occurred in it before.
#ifndef LATHE_RUNTIME_SPECULATE_SUFFIXAUTOMATON_H
#define LATHE_RUNTIME_SPECULATE_SUFFIXAUTOMATON_H

#include "kernels/abi/Types.h"

#include <vector>

namespace lathe::runtime {

/// The suffix automaton of a text of token ids that grows at its end: the
/// smallest automaton that accepts all of the text's suffixes. Each state
/// stands for the strings that end at the same positions of the text; its link
/// leads to the longest of their suffixes that also ends elsewhere.
///
/// A token takes constant time on average, however large the vocabulary, and at
/// most 2 states of 16 bytes, 3 edges of 16 and 8 slots of 4 in a hash table:
/// at most 112 bytes, usually about 60, besides the vectors' own spare room.
///
/// Source: Blumer et al., 1985, "The smallest automaton recognizing the
/// subwords of a text", section 2.
class SuffixAutomaton {
public:
  SuffixAutomaton();

  /// Adds a token at the end.
  void append(i32 token);

  u32 size() const { return length; }

  /// The longest suffix of the text that has occurred before.
  struct Match {
    u32 length = 0; ///< 0: the last token is a new one.
    u32 end = 0;    ///< Of an earlier occurrence: the token that follows it is
                    ///< the text's `end`-th, from 0. The latest occurrence,
                    ///< unless it was part of more than pathMost longer ones.
  };
  Match match() const { return latest; }

  /// How many ever shorter suffixes append() marks as seen here.
  static constexpr u32 pathMost = 32;

  /// Bytes that it holds.
  u64 bytes() const;

private:
  static constexpr u32 none = ~0u;

  struct State {
    u32 length; ///< Of its longest string.
    u32 link;
    u32 end;       ///< Tokens up to where its strings have ended last.
    u32 firstEdge; ///< Of a list.
  };
  struct Edge {
    u32 from;
    i32 token;
    u32 to;
    u32 next;
  };

  u32 addState(u32 length);
  void addEdge(u32 from, i32 token, u32 to);
  u32 slotOf(u32 from, i32 token) const;
  /// The edge's index, or none.
  u32 find(u32 from, i32 token) const { return slots[slotOf(from, token)]; }
  void growSlots();

  std::vector<State> states;
  std::vector<Edge> edges;
  std::vector<u32> slots; ///< Edges by (from, token); a power of two of them.
  u32 last = 0;           ///< State of the whole text.
  u32 length = 0;
  Match latest;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SPECULATE_SUFFIXAUTOMATON_H
