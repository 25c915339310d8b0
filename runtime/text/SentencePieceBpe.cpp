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
      : spec_(spec), pieces_(pieces), index_(spec.tokens.size()) {
    const int32_t count = static_cast<int32_t>(spec.tokens.size());
    for (int32_t id = 0; id < count; ++id) {
      if (id + 16 < count)
        index_.prefetch(spec.tokens[id + 16]);
      TokenType type = typeOf(spec, id);
      bool matchesText = type == TokenType::Normal ||
                         type == TokenType::UserDefined ||
                         type == TokenType::Unused;
      if (matchesText && !spec.tokens[id].empty())
        index_.insert(spec.tokens[id], id);
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
        : model_(model), text_(text) {}

    void run(std::vector<int32_t> &ids) {
      if (text_.empty())
        return;
      for (size_t at = 0; at < text_.size();) {
        Utf8Unit unit = readUtf8(text_.substr(at));
        // Bytes that form no character stay apart, each for itself.
        uint32_t size = unit.kind == Utf8Kind::Valid ? unit.size : 1;
        auto index = static_cast<int32_t>(symbols_.size());
        symbols_.push_back(
            {static_cast<uint32_t>(at), size, index - 1, index + 1});
        at += size;
      }
      symbols_.back().next = -1;
      for (int32_t i = 0; symbols_[i].next >= 0; ++i)
        propose(i, symbols_[i].next);
      while (!waiting_.empty()) {
        std::pop_heap(waiting_.begin(), waiting_.end());
        Waiting merge = waiting_.back();
        waiting_.pop_back();
        Symbol &left = symbols_[merge.left];
        // Sizes only grow: an equal sum means that both are as proposed.
        if (left.size == 0 || left.next != merge.right ||
            left.size + symbols_[merge.right].size != merge.size)
          continue;
        Symbol &right = symbols_[merge.right];
        left.size = merge.size;
        left.next = right.next;
        right.size = 0;
        if (left.next >= 0)
          symbols_[left.next].previous = merge.left;
        if (left.previous >= 0)
          propose(left.previous, merge.left);
        if (left.next >= 0)
          propose(merge.left, left.next);
      }
      bool afterUnknown = false;
      for (int32_t i = 0; i >= 0; i = symbols_[i].next)
        afterUnknown =
            model_.emit(text_.substr(symbols_[i].begin, symbols_[i].size),
                        afterUnknown, ids);
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
      uint32_t size = symbols_[left].size + symbols_[right].size;
      int32_t id = model_.index_.find(text_.substr(symbols_[left].begin, size));
      if (id < 0)
        return;
      waiting_.push_back({model_.spec_.scores[id], left, right, size});
      std::push_heap(waiting_.begin(), waiting_.end());
    }

    const SentencePieceBpe &model_;
    std::string_view text_;
    std::vector<Symbol> symbols_;
    std::vector<Waiting> waiting_;
  };

  /// Appends the ids of a final symbol; true if it was unknown. A run of
  /// unknown characters is one unknown token.
  bool emit(std::string_view symbol, bool afterUnknown,
            std::vector<int32_t> &ids) const {
    if (int32_t id = index_.find(symbol); id >= 0) {
      ids.push_back(id);
      return false;
    }
    size_t before = ids.size();
    for (char c : symbol) {
      int32_t id = pieces_.byteToken(static_cast<uint8_t>(c));
      if (id == kNoToken) {
        ids.resize(before);
        if (!afterUnknown)
          ids.push_back(spec_.unkId);
        return true;
      }
      ids.push_back(id);
    }
    return false;
  }

  const TokenizerSpec &spec_;
  const PieceTable &pieces_;
  TextIndex index_;
};

} // namespace

std::unique_ptr<SegmentEncoder> makeSentencePieceBpe(const TokenizerSpec &spec,
                                                     const PieceTable &pieces) {
  return std::make_unique<SentencePieceBpe>(spec, pieces);
}

} // namespace lathe::runtime
