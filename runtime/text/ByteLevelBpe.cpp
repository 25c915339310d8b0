// Byte-level BPE (Radford et al. 2019): the text is split by the family's
// patterns, then in each piece the pair of neighbours whose merge has the
// lowest rank is joined until no pair has one; of equal ranks the leftmost.

#include "runtime/text/PreTokenizer.h"
#include "runtime/text/SegmentEncoder.h"
#include "runtime/text/TextIndex.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <array>

namespace lathe::runtime {
namespace {

/// The pieces of one word as a linked list, and the merges that wait; reused
/// from word to word.
class WordMerger {
public:
  explicit WordMerger(const MergeTable &merges) : merges_(merges) {}

  void add(int32_t id) {
    int32_t at = static_cast<int32_t>(symbols_.size());
    symbols_.push_back({id, at - 1, at + 1});
  }

  /// Merges what was added, appends the ids and forgets them.
  void finish(std::vector<int32_t> &ids) {
    if (symbols_.empty())
      return;
    symbols_.back().next = -1;
    for (int32_t i = 0; symbols_[i].next >= 0; ++i)
      propose(i, symbols_[i].next);
    while (!waiting_.empty()) {
      std::pop_heap(waiting_.begin(), waiting_.end());
      Waiting merge = waiting_.back();
      waiting_.pop_back();
      Symbol &left = symbols_[merge.left];
      // One of the two may have been merged with somebody else meanwhile.
      if (left.id != merge.leftId || left.next < 0 ||
          symbols_[left.next].id != merge.rightId)
        continue;
      Symbol &right = symbols_[left.next];
      left.id = merge.merged;
      left.next = right.next;
      right.id = kGone;
      if (left.next >= 0)
        symbols_[left.next].previous = merge.left;
      if (left.previous >= 0)
        propose(left.previous, merge.left);
      if (left.next >= 0)
        propose(merge.left, left.next);
    }
    for (int32_t i = 0; i >= 0; i = symbols_[i].next)
      ids.push_back(symbols_[i].id);
    symbols_.clear();
  }

private:
  static constexpr int32_t kGone = -1;

  struct Symbol {
    int32_t id, previous, next;
  };
  struct Waiting {
    uint32_t rank;
    int32_t left, leftId, rightId, merged;
    /// Heap order: the top is the lowest rank, then the leftmost.
    bool operator<(const Waiting &other) const {
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };

  void propose(int32_t left, int32_t right) {
    int32_t leftId = symbols_[left].id, rightId = symbols_[right].id;
    const MergeTable::Merge *merge = merges_.find(leftId, rightId);
    if (!merge)
      return;
    waiting_.push_back({merge->rank, left, leftId, rightId, merge->merged});
    std::push_heap(waiting_.begin(), waiting_.end());
  }

  const MergeTable &merges_;
  std::vector<Symbol> symbols_;
  std::vector<Waiting> waiting_;
};

class ByteLevelBpe final : public SegmentEncoder {
public:
  ByteLevelBpe(PreTokenizer preTokenizer, const PieceTable &pieces,
               TextIndex index, MergeTable merges)
      : preTokenizer_(std::move(preTokenizer)), pieces_(pieces),
        index_(std::move(index)), merges_(std::move(merges)) {}

  Result<void> encode(std::string_view text, bool spacePrefix,
                      std::vector<int32_t> &ids) const override {
    std::string prefixed;
    if (spacePrefix) {
      prefixed.reserve(text.size() + 1);
      prefixed.append(" ").append(text);
      text = prefixed;
    }
    WordMerger merger(merges_);
    std::vector<uint32_t> ends;
    while (!text.empty()) {
      // The patterns know characters only: a run of bytes that form none is a
      // piece of its own.
      size_t valid = 0, size = runLength(text, valid);
      ends.clear();
      if (!valid)
        ends.push_back(static_cast<uint32_t>(size));
      else if (auto r = preTokenizer_.split(text.substr(0, size), ends); !r)
        return r;
      uint32_t begin = 0;
      for (uint32_t end : ends) {
        encodeWord(text.substr(begin, end - begin), merger, ids);
        begin = end;
      }
      text.remove_prefix(size);
    }
    return {};
  }

private:
  /// Length of the longest start of `text` that is all valid (valid = 1) or
  /// all invalid UTF-8 (valid = 0).
  static size_t runLength(std::string_view text, size_t &valid) {
    size_t size = 0;
    while (size < text.size()) {
      Utf8Unit unit = readUtf8(text.substr(size));
      size_t isValid = unit.kind == Utf8Kind::Valid;
      if (size == 0)
        valid = isValid;
      else if (isValid != valid)
        break;
      size += unit.size;
    }
    return size;
  }

  void encodeWord(std::string_view word, WordMerger &merger,
                  std::vector<int32_t> &ids) const {
    if (preTokenizer_.ignoresMerges())
      if (int32_t id = index_.find(word); id >= 0) {
        ids.push_back(id);
        return;
      }
    // A byte without a token is left out, as every other implementation does
    // (SmolLM2 lacks a few control characters).
    for (char c : word)
      if (int32_t id = pieces_.byteToken(static_cast<uint8_t>(c));
          id != kNoToken)
        merger.add(id);
    merger.finish(ids);
  }

  PreTokenizer preTokenizer_;
  const PieceTable &pieces_;
  TextIndex index_;
  MergeTable merges_;
};

/// A merge in raw bytes: what it yields, and where its left piece ends.
struct RawMerge {
  std::string joined;
  size_t leftSize = 0;

  std::string_view left() const {
    return std::string_view(joined).substr(0, leftSize);
  }
  std::string_view right() const {
    return std::string_view(joined).substr(leftSize);
  }
};

/// Reads "left right". False if it is not two pieces in the byte alphabet.
bool parseMerge(std::string_view text, RawMerge &merge) {
  // A space can be in neither part: the byte alphabet has none.
  size_t space = text.find(' ');
  std::string right;
  if (space == text.npos || space == 0 || space + 1 == text.size() ||
      !decodeByteAlphabet(text.substr(0, space), merge.joined) ||
      !decodeByteAlphabet(text.substr(space + 1), right))
    return false;
  merge.leftSize = merge.joined.size();
  merge.joined += right;
  return true;
}

} // namespace

Result<std::unique_ptr<SegmentEncoder>>
makeByteLevelBpe(const TokenizerSpec &spec, const PieceTable &pieces) {
  auto preTokenizer = PreTokenizer::create(spec.preTokenizer);
  if (!preTokenizer)
    return failFrom(preTokenizer);

  const size_t ahead = 16; // Texts prefetched before they are looked up.
  size_t count = spec.tokens.size();
  TextIndex index(count);
  TextIndex markers(spec.types.size() -
                    std::ranges::count(spec.types, TokenType::Normal));
  std::string raw;
  for (size_t i = 0; i < count; ++i) {
    auto id = static_cast<int32_t>(i);
    if (i + ahead < count)
      index.prefetch(pieces[id + ahead]);
    if (spec.tokens[id].empty())
      continue;
    if (typeOf(spec, id) != TokenType::Normal)
      markers.insert(spec.tokens[id], id);
    else if (decodeByteAlphabet(spec.tokens[id], raw))
      index.insert(pieces[id], id);
  }

  MergeTable merges(spec.merges.size());
  std::array<RawMerge, ahead> block;
  for (size_t first = 0; first < spec.merges.size(); first += ahead) {
    size_t size = std::min(ahead, spec.merges.size() - first);
    for (size_t i = 0; i < size; ++i) {
      if (!parseMerge(spec.merges[first + i], block[i]))
        return fail(ErrorKind::InvalidInput,
                    "tokenizer: merge {} is not two pieces in GPT-2's byte "
                    "alphabet with a space between",
                    first + i);
      for (auto text : {block[i].left(), block[i].right(),
                        std::string_view(block[i].joined)})
        index.prefetch(text);
    }
    for (size_t i = 0; i < size; ++i) {
      const RawMerge &merge = block[i];
      int32_t left = index.find(merge.left());
      int32_t right = index.find(merge.right());
      int32_t joined = index.find(merge.joined);
      if (left >= 0 && right >= 0 && joined >= 0) {
        merges.insert(left, right, {static_cast<uint32_t>(first + i), joined});
        continue;
      }
      // A piece that is a control token is left to the special tokens; one
      // that is no token at all is a fault.
      if (markers.find(merge.left()) < 0 && markers.find(merge.right()) < 0 &&
          markers.find(merge.joined) < 0)
        return fail(ErrorKind::InvalidInput,
                    "tokenizer: merge {} is of pieces that are no tokens",
                    first + i);
    }
  }
  return std::make_unique<ByteLevelBpe>(std::move(*preTokenizer), pieces,
                                        std::move(index), std::move(merges));
}

} // namespace lathe::runtime
