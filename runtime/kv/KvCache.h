/// \file
/// The paged KV cache: one pool per KV group of a program, and the page tables
/// of the sequences that live in them.
#ifndef LATHE_RUNTIME_KV_KVCACHE_H
#define LATHE_RUNTIME_KV_KVCACHE_H

#include "runtime/kv/PagePool.h"

#include <memory>
#include <span>
#include <vector>

namespace lathe::runtime {

/// One KV group of a program (interfaces.md, "KV groups").
struct KvGroupInfo {
  /// Keys that a row sees besides its own: all earlier ones if 0, otherwise
  /// those at positions p with t - window < p.
  u32 window = 0;
  /// Bytes of one page of pageTokens tokens, all layers of the group.
  u64 pageBytes = 0;
  /// As PagePool::Options.
  std::vector<KvStrip> strips = {};
  /// KV heads of each of the group's attention launches.
  u32 kvHeads = 1;
};

/// The pools of all groups. Sequences hold pages in it and must not outlive it.
/// One thread at a time, together with its sequences.
class KvCache {
public:
  struct Options {
    /// Pages to give out in each group, in the order of `groups`.
    std::vector<u32> pages;
    bool poisonFreed = false; ///< As PagePool::Options.
  };

  /// Maps the pools. Errors as PagePool::create.
  static Result<std::unique_ptr<KvCache>>
  create(std::span<const KvGroupInfo> groups, const Options &options);

  /// Pages per group that a sequence of up to `context` positions holds at most
  /// if it never grows by more than `stepRows` at a time.
  static std::vector<u32> pagesForSequence(std::span<const KvGroupInfo> groups,
                                           u32 context, u32 stepRows);

  /// Bytes of pools with these page counts, the reserved pages included;
  /// saturates at 2^64 - 1.
  static u64 bytesFor(std::span<const KvGroupInfo> groups,
                      std::span<const u32> pages);

  std::span<const KvGroupInfo> groups() const { return infos; }
  PagePool &pool(u32 group) { return pools[group]; }
  const PagePool &pool(u32 group) const { return pools[group]; }

  /// True if all pools are (PagePool::isConsistent).
  bool isConsistent() const;

private:
  KvCache() = default;

  std::vector<KvGroupInfo> infos;
  std::vector<PagePool> pools;
};

/// The KV cache of one sequence: its length and a page table per group.
///
/// extend() before a step makes room for the step's rows; the step writes them.
/// Pages of window groups that no later row can see are given back while
/// growing; their table entries become reservedPage. Destroyed, it gives all
/// pages back. Moving is cheap; it allocates only when created or forked.
class SequenceCache {
public:
  /// An empty sequence of at most `maxPositions` tokens in `cache`.
  SequenceCache(KvCache &cache, u32 maxPositions);
  SequenceCache(SequenceCache &&other) noexcept;
  SequenceCache &operator=(SequenceCache &&other) noexcept;
  ~SequenceCache();

  /// Positions in the cache, those of the step in progress included.
  u32 length() const { return positions; }
  u32 maxPositions() const { return limit; }
  /// True if its pages are those of `pools`.
  bool isIn(const KvCache &pools) const { return cache == &pools; }

  /// True if extend(rows) would succeed now.
  bool canExtend(u32 rows) const;

  /// Gives back the pages that no later row can see, as extend() does. Whoever
  /// else holds them may then do so, too.
  void giveBack();

  /// Pages of a group that are too few for extend(rows).
  u32 missingPages(u32 group, u32 rows) const;

  /// Makes room for `rows` more positions. A tail page that another sequence
  /// shares is copied first. On an error nothing has changed. Errors:
  /// InvalidInput (past maxPositions()), Exhausted (a group has too few free
  /// pages).
  Result<void> extend(u32 rows);

  /// True if truncate(length) keeps all that rows from `length` on can see.
  /// False if pages of a window group that they need have been given back:
  /// then the sequence must be evaluated again from its start.
  bool canTruncate(u32 length) const;

  /// Forgets the positions from `length` on; `length` <= length() and
  /// canTruncate(length), or 0. Undoing rows of the latest extend() is always
  /// possible.
  void truncate(u32 length);

  /// A second sequence with the same contents. Pages are shared until one of
  /// the two writes to them.
  SequenceCache fork() const;

  /// Makes an empty sequence one of `length` positions, not past the limit,
  /// whose keys and values are in `pages` [group][page]; it holds references to
  /// those that its next row can see, which must all be there.
  void share(u32 length, std::span<const std::vector<PageId>> pages);

  /// Takes `page`, whose contents are the same, for its own page of that index.
  void replace(u32 group, u32 index, PageId page);

  /// Page ids of a group by position / pageTokens, for all of maxPositions();
  /// reservedPage where there is none. Valid until the next change.
  std::span<const PageId> pages(u32 group) const { return tables[group]; }

private:
  /// First entry of the group's table that a row at `position` can see.
  u32 firstVisiblePage(u32 group, u32 position) const;
  /// New pages that extend(rows) takes from a group, less those it gives back.
  i64 pagesNeeded(u32 group, u32 rows) const;
  void releaseAll();

  KvCache *cache;
  u32 positions = 0;
  u32 limit;
  std::vector<std::vector<PageId>> tables;
  /// Per group, entries below hold no page any more.
  std::vector<u32> firstHeld;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_KV_KVCACHE_H
