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
  explicit WordMerger(const MergeTable &merges) : merges(merges) {}

  void add(int32_t id) {
    int32_t at = static_cast<int32_t>(symbols.size());
    symbols.push_back({id, at - 1, at + 1});
  }

  /// Merges what was added, appends the ids and forgets them.
  void finish(std::vector<int32_t> &ids) {
    if (symbols.empty())
      return;
    symbols.back().next = -1;
    for (int32_t i = 0; symbols[i].next >= 0; ++i)
      propose(i, symbols[i].next);
    while (!waiting.empty()) {
      std::pop_heap(waiting.begin(), waiting.end());
      Waiting merge = waiting.back();
      waiting.pop_back();
      Symbol &left = symbols[merge.left];
      // One of the two may have been merged with somebody else meanwhile.
      if (left.id != merge.leftId || left.next < 0 ||
          symbols[left.next].id != merge.rightId)
        continue;
      Symbol &right = symbols[left.next];
      left.id = merge.merged;
      left.next = right.next;
      right.id = kGone;
      if (left.next >= 0)
        symbols[left.next].previous = merge.left;
      if (left.previous >= 0)
        propose(left.previous, merge.left);
      if (left.next >= 0)
        propose(merge.left, left.next);
    }
    for (int32_t i = 0; i >= 0; i = symbols[i].next)
      ids.push_back(symbols[i].id);
    symbols.clear();
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
    int32_t leftId = symbols[left].id, rightId = symbols[right].id;
    const MergeTable::Merge *merge = merges.find(leftId, rightId);
    if (!merge)
      return;
    waiting.push_back({merge->rank, left, leftId, rightId, merge->merged});
    std::push_heap(waiting.begin(), waiting.end());
  }

  const MergeTable &merges;
  std::vector<Symbol> symbols;
  std::vector<Waiting> waiting;
};

class ByteLevelBpe final : public SegmentEncoder {
public:
  ByteLevelBpe(PreTokenizer preTokenizer, const PieceTable &pieces,
               TextIndex index, MergeTable merges)
      : preTokenizer(std::move(preTokenizer)), pieces(pieces),
        index(std::move(index)), merges(std::move(merges)) {}

  Result<void> encode(std::string_view text, bool spacePrefix,
                      std::vector<int32_t> &ids) const override {
    std::string prefixed;
    if (spacePrefix) {
      prefixed.reserve(text.size() + 1);
      prefixed.append(" ").append(text);
      text = prefixed;
    }
    WordMerger merger(merges);
    std::vector<uint32_t> ends;
    while (!text.empty()) {
      // The patterns know characters only: a run of bytes that form none is a
      // piece of its own.
      size_t valid = 0, size = runLength(text, valid);
      ends.clear();
      if (!valid)
        ends.push_back(static_cast<uint32_t>(size));
      else if (auto r = preTokenizer.split(text.substr(0, size), ends); !r)
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
    if (preTokenizer.ignoresMerges())
      if (int32_t id = index.find(word); id >= 0) {
        ids.push_back(id);
        return;
      }
    // A byte without a token is left out, as every other implementation does
    // (SmolLM2 lacks a few control characters).
    for (char c : word)
      if (int32_t id = pieces.byteToken(static_cast<uint8_t>(c));
          id != kNoToken)
        merger.add(id);
    merger.finish(ids);
  }

  PreTokenizer preTokenizer;
  const PieceTable &pieces;
  TextIndex index;
  MergeTable merges;
};

/// A merge on its way from text to ids.
struct RawMerge {
  std::string joined; ///< What it yields, in raw bytes.
  size_t leftSize = 0;
  uint64_t leftHash = 0, rightHash = 0;
  int32_t leftId = kNoToken, rightId = kNoToken, joinedId = kNoToken;

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
  if (space == text.npos || space == 0 || space + 1 == text.size())
    return false;
  merge.joined.clear();
  if (!appendFromByteAlphabet(text.substr(0, space), merge.joined))
    return false;
  merge.leftSize = merge.joined.size();
  if (!appendFromByteAlphabet(text.substr(space + 1), merge.joined))
    return false;
  merge.leftHash = TextIndex::hash(merge.left());
  merge.rightHash = TextIndex::hash(merge.right());
  return true;
}

/// Texts prefetched before they are looked up.
constexpr size_t kAhead = 16;

/// The tokens of a spec by their texts.
class Vocabulary {
public:
  Vocabulary(const TokenizerSpec &spec, const PieceTable &pieces)
      : pieces(pieces), index(spec.tokens.size()),
        markers(spec.types.size() -
                std::ranges::count(spec.types, TokenType::Normal)),
        isFound(spec.tokens.size()) {
    std::string raw;
    for (size_t i = 0; i < spec.tokens.size(); ++i) {
      auto id = static_cast<int32_t>(i);
      if (i + kAhead < spec.tokens.size())
        index.prefetch(TextIndex::hash(pieces[id + kAhead]));
      if (spec.tokens[i].empty())
        continue;
      raw.clear();
      if (typeOf(spec, id) != TokenType::Normal)
        markers.insert(spec.tokens[i], id);
      else if (appendFromByteAlphabet(spec.tokens[i], raw))
        isFound[i] = index.insert(pieces[id], id);
    }
  }

  void prefetch(uint64_t hash) const { index.prefetch(hash); }

  /// The normal token with these bytes, or -1.
  int32_t find(std::string_view text, uint64_t hash) const {
    return index.find(text, hash);
  }

  /// As find, for the joined texts of merges in order. Vocabularies are made
  /// merge by merge: nearly always it is the token before or the next one.
  int32_t findNext(std::string_view text) {
    for (int32_t id : {last, last + 1})
      if (static_cast<size_t>(id) < isFound.size() && isFound[id] &&
          pieces[id] == text)
        return last = id;
    int32_t id = index.find(text);
    last = id >= 0 ? id : last;
    return id;
  }

  /// True if a token of another type is spelled like this.
  bool isMarker(std::string_view text) const { return markers.find(text) >= 0; }

  TextIndex takeIndex() && { return std::move(index); }

private:
  const PieceTable &pieces;
  TextIndex index;           ///< Normal tokens by their bytes.
  TextIndex markers;         ///< The others by their texts.
  std::vector<bool> isFound; ///< By id; false for later ones of equal bytes.
  int32_t last = 0;
};

/// The merges by pairs of ids. All time goes into waiting for memory, so they
/// are read in blocks: what one loop starts to load the next one uses.
Result<MergeTable> readMerges(const std::vector<std::string> &texts,
                              Vocabulary &vocabulary) {
  MergeTable merges(texts.size());
  std::array<RawMerge, kAhead> block;
  for (size_t first = 0; first < texts.size(); first += kAhead) {
    size_t size = std::min(kAhead, texts.size() - first);
    for (size_t i = 0; i < size; ++i) {
      if (!parseMerge(texts[first + i], block[i]))
        return fail(ErrorKind::InvalidInput,
                    "tokenizer: merge {} is not two pieces in GPT-2's byte "
                    "alphabet with a space between",
                    first + i);
      vocabulary.prefetch(block[i].leftHash);
      vocabulary.prefetch(block[i].rightHash);
    }
    for (size_t i = 0; i < size; ++i) {
      RawMerge &merge = block[i];
      merge.leftId = vocabulary.find(merge.left(), merge.leftHash);
      merge.rightId = vocabulary.find(merge.right(), merge.rightHash);
      merge.joinedId = vocabulary.findNext(merge.joined);
      merges.prefetch(merge.leftId, merge.rightId);
    }
    for (size_t i = 0; i < size; ++i) {
      const RawMerge &merge = block[i];
      if (merge.leftId >= 0 && merge.rightId >= 0 && merge.joinedId >= 0) {
        merges.insert(merge.leftId, merge.rightId,
                      {static_cast<uint32_t>(first + i), merge.joinedId});
        continue;
      }
      // A piece that is a control token is left to the special tokens; one
      // that is no token at all is a fault.
      if (!vocabulary.isMarker(merge.left()) &&
          !vocabulary.isMarker(merge.right()) &&
          !vocabulary.isMarker(merge.joined))
        return fail(ErrorKind::InvalidInput,
                    "tokenizer: merge {} is of pieces that are no tokens",
                    first + i);
    }
  }
  return merges;
}

} // namespace

Result<std::unique_ptr<SegmentEncoder>>
makeByteLevelBpe(const TokenizerSpec &spec, const PieceTable &pieces) {
  auto preTokenizer = PreTokenizer::create(spec.preTokenizer);
  if (!preTokenizer)
    return failFrom(preTokenizer);
  Vocabulary vocabulary(spec, pieces);
  auto merges = readMerges(spec.merges, vocabulary);
  if (!merges)
    return failFrom(merges);
  return std::make_unique<ByteLevelBpe>(std::move(*preTokenizer), pieces,
                                        std::move(vocabulary).takeIndex(),
                                        std::move(*merges));
}

} // namespace lathe::runtime
