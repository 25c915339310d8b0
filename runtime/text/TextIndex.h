/// \file
/// A hash index from token texts to ids: built once, then read by any thread.
#ifndef LATHE_RUNTIME_TEXT_TEXTINDEX_H
#define LATHE_RUNTIME_TEXT_TEXTINDEX_H

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace lathe::runtime {

/// Mixes a 64-bit key with a seed drawn once per process, so that a model file
/// cannot be made to put all its tokens into one hash bucket.
uint64_t seededHash(uint64_t key);

/// Maps texts that are not empty to ids. It keeps pointers: the texts must
/// outlive it.
class TextIndex {
public:
  /// Limits that the packing of a slot sets.
  static constexpr int32_t kMaxIds = 1 << 24;
  static constexpr size_t kMaxTextBytes = (size_t{1} << 17) - 1;

  /// `capacity` is the most texts that will be inserted.
  explicit TextIndex(size_t capacity = 0);

  /// Adds a text. Of equal texts the first one inserted is kept; false for the
  /// others.
  bool insert(std::string_view text, int32_t id);

  /// The id of a text, or -1.
  int32_t find(std::string_view text) const { return find(text, hash(text)); }
  int32_t find(std::string_view text, uint64_t hash) const;

  /// The hash of a text.
  static uint64_t hash(std::string_view text);

  /// Starts loading what find or insert of a text with this hash will touch:
  /// vocabularies do not fit into the cache, and building an index is all
  /// waiting for it.
  void prefetch(uint64_t hash) const;

private:
  /// Texts up to this length, which most are, lie in the slot itself.
  static constexpr size_t kInSlotBytes = 8;

  /// `packed` is 23 bits of hash, 17 of length and 24 of id; 0: free.
  struct Slot {
    union {
      uint64_t word = 0;   ///< A text of at most kInSlotBytes, then zeros.
      const char *address; ///< A longer one.
    };
    uint64_t packed = 0;

    bool holds(std::string_view text, uint64_t hash) const;
  };

  /// The slot of a text or the free one it belongs into.
  size_t slotOf(std::string_view text, uint64_t hash) const;

  std::vector<Slot> slots;
  size_t longest = 0; ///< Bytes of the longest text.
};

/// Maps pairs of token ids to what merging them gives.
class MergeTable {
public:
  struct Merge {
    uint32_t rank;
    int32_t merged; ///< The id of the joined piece.
  };

  /// `capacity` is the most merges that will be inserted.
  explicit MergeTable(size_t capacity = 0);

  /// Adds a merge. Of equal pairs the first one inserted is kept.
  void insert(int32_t left, int32_t right, Merge merge);

  /// Starts loading what insert of this pair will touch.
  void prefetch(int32_t left, int32_t right) const;

  /// The merge of a pair, or null.
  const Merge *find(int32_t left, int32_t right) const;

private:
  struct Slot {
    uint64_t key = ~uint64_t{0};
    Merge merge{};
  };

  size_t slotOf(uint64_t key) const;

  std::vector<Slot> slots;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_TEXT_TEXTINDEX_H
