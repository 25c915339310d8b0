// SentencePiece's BPE: spaces become U+2581, then of all neighbours whose
// joined text is a token the pair with the highest score is joined, the
// leftmost of equals, until there is none. Characters outside the vocabulary
// become byte tokens, or the unknown token where those are missing.

#include "runtime/text/SegmentEncoder.h"
#include "runtime/text/TextIndex.h"
#include "runtime/text/Utf8.h"

#include <algorithm>

namespace lathe::runtime {
namespace {

class SentencePieceBpe final : public SegmentEncoder {
public:
  SentencePieceBpe(const TokenizerSpec &spec, const PieceTable &pieces)
      : spec(spec), pieces(pieces), index(spec.tokens.size()) {
    const int32_t count = static_cast<int32_t>(spec.tokens.size());
    for (int32_t id = 0; id < count; ++id) {
      if (id + 16 < count)
        index.prefetch(TextIndex::hash(spec.tokens[id + 16]));
      TokenType type = typeOf(spec, id);
      bool matchesText = type == TokenType::Normal ||
                         type == TokenType::UserDefined ||
                         type == TokenType::Unused;
      if (matchesText && !spec.tokens[id].empty())
        index.insert(spec.tokens[id], id);
    }
  }

  Result<void> encode(std::string_view text, bool spacePrefix,
                      std::vector<int32_t> &ids) const override {
    std::string escaped;
    escaped.reserve(text.size() + text.size() / 2 + 3);
    if (spacePrefix)
      escaped.append(kSpaceMark);
    for (char c : text)
      if (c == ' ')
        escaped.append(kSpaceMark);
      else
        escaped.push_back(c);
    Merger(*this, escaped).run(ids);
    return {};
  }

private:
  static constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

  /// One call's state.
  class Merger {
  public:
    Merger(const SentencePieceBpe &model, std::string_view text)
        : model(model), text(text) {}

    void run(std::vector<int32_t> &ids) {
      if (text.empty())
        return;
      for (size_t at = 0; at < text.size();) {
        Utf8Unit unit = readUtf8(text.substr(at));
        // Bytes that form no character stay apart, each for itself.
        uint32_t size = unit.kind == Utf8Kind::Valid ? unit.size : 1;
        auto index = static_cast<int32_t>(symbols.size());
        symbols.push_back(
            {static_cast<uint32_t>(at), size, index - 1, index + 1});
        at += size;
      }
      symbols.back().next = -1;
      for (int32_t i = 0; symbols[i].next >= 0; ++i)
        propose(i, symbols[i].next);
      while (!waiting.empty()) {
        std::pop_heap(waiting.begin(), waiting.end());
        Waiting merge = waiting.back();
        waiting.pop_back();
        Symbol &left = symbols[merge.left];
        // Sizes only grow: an equal sum means that both are as proposed.
        if (left.size == 0 || left.next != merge.right ||
            left.size + symbols[merge.right].size != merge.size)
          continue;
        Symbol &right = symbols[merge.right];
        left.size = merge.size;
        left.next = right.next;
        right.size = 0;
        if (left.next >= 0)
          symbols[left.next].previous = merge.left;
        if (left.previous >= 0)
          propose(left.previous, merge.left);
        if (left.next >= 0)
          propose(merge.left, left.next);
      }
      bool afterUnknown = false;
      for (int32_t i = 0; i >= 0; i = symbols[i].next)
        afterUnknown = model.emit(
            text.substr(symbols[i].begin, symbols[i].size), afterUnknown, ids);
    }

  private:
    struct Symbol {
      uint32_t begin, size;
      int32_t previous, next;
    };
    struct Waiting {
      float score;
      int32_t left, right;
      uint32_t size; ///< Bytes of both together.
      bool operator<(const Waiting &other) const {
        return score != other.score ? score < other.score : left > other.left;
      }
    };

    void propose(int32_t left, int32_t right) {
      uint32_t size = symbols[left].size + symbols[right].size;
      int32_t id = model.index.find(text.substr(symbols[left].begin, size));
      if (id < 0)
        return;
      waiting.push_back({model.spec.scores[id], left, right, size});
      std::push_heap(waiting.begin(), waiting.end());
    }

    const SentencePieceBpe &model;
    std::string_view text;
    std::vector<Symbol> symbols;
    std::vector<Waiting> waiting;
  };

  /// Appends the ids of a final symbol; true if it was unknown. A run of
  /// unknown characters is one unknown token.
  bool emit(std::string_view symbol, bool afterUnknown,
            std::vector<int32_t> &ids) const {
    if (int32_t id = index.find(symbol); id >= 0) {
      ids.push_back(id);
      return false;
    }
    size_t before = ids.size();
    for (char c : symbol) {
      int32_t id = pieces.byteToken(static_cast<uint8_t>(c));
      if (id == kNoToken) {
        ids.resize(before);
        if (!afterUnknown)
          ids.push_back(spec.unkId);
        return true;
      }
      ids.push_back(id);
    }
    return false;
  }

  const TokenizerSpec &spec;
  const PieceTable &pieces;
  TextIndex index;
};

} // namespace

std::unique_ptr<SegmentEncoder> makeSentencePieceBpe(const TokenizerSpec &spec,
                                                     const PieceTable &pieces) {
  return std::make_unique<SentencePieceBpe>(spec, pieces);
}

} // namespace lathe::runtime
