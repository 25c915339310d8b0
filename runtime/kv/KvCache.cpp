#include "runtime/kv/KvCache.h"
#include "runtime/support/Checked.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace lathe::runtime {
namespace {

/// Pages that hold `positions` tokens.
u32 pagesFor(u64 positions) {
  return u32((positions + pageTokens - 1) / pageTokens);
}

} // namespace

Result<std::unique_ptr<KvCache>>
KvCache::create(std::span<const KvGroupInfo> groups, const Options &options) {
  if (options.pages.size() != groups.size())
    return fail(ErrorKind::Internal, "{} page counts for {} KV groups",
                options.pages.size(), groups.size());
  std::unique_ptr<KvCache> cache(new KvCache);
  cache->infos.assign(groups.begin(), groups.end());
  for (size_t group = 0; group < groups.size(); ++group) {
    auto pool = PagePool::create({.pageBytes = groups[group].pageBytes,
                                  .strips = groups[group].strips,
                                  .pages = options.pages[group],
                                  .poisonFreed = options.poisonFreed});
    if (!pool)
      return failFrom(pool);
    cache->pools.push_back(std::move(*pool));
  }
  return cache;
}

std::vector<u32> KvCache::pagesForSequence(std::span<const KvGroupInfo> groups,
                                           u32 context, u32 stepRows) {
  std::vector<u32> pages;
  for (const KvGroupInfo &group : groups) {
    u32 all = std::max(1u, pagesFor(context));
    if (group.window != 0) {
      // A step of R rows sees R + window - 1 positions, which may start and end
      // within a page.
      u64 seen = u64(stepRows) + group.window - 1;
      all = std::min<u64>(all, pagesFor(seen) + u64(1));
    }
    pages.push_back(all);
  }
  return pages;
}

u64 KvCache::bytesFor(std::span<const KvGroupInfo> groups,
                      std::span<const u32> pages) {
  u64 sum = 0;
  for (size_t group = 0; group < groups.size(); ++group) {
    auto bytes =
        checkedMul<u64>(groups[group].pageBytes, u64(pages[group]) + 1);
    auto next = bytes ? checkedAdd<u64>(sum, *bytes) : std::nullopt;
    if (!next)
      return ~u64(0);
    sum = *next;
  }
  return sum;
}

bool KvCache::isConsistent() const {
  return std::all_of(pools.begin(), pools.end(),
                     [](const PagePool &pool) { return pool.isConsistent(); });
}

SequenceCache::SequenceCache(KvCache &cache, u32 maxPositions)
    : cache(&cache), limit(maxPositions),
      tables(cache.groups().size(),
             std::vector<PageId>(pagesFor(maxPositions), reservedPage)),
      firstHeld(cache.groups().size(), 0) {}

SequenceCache::SequenceCache(SequenceCache &&other) noexcept
    : cache(other.cache), positions(other.positions), limit(other.limit),
      tables(std::move(other.tables)), firstHeld(std::move(other.firstHeld)) {
  other.tables.clear();
  other.positions = 0;
  other.limit = 0;
}

SequenceCache &SequenceCache::operator=(SequenceCache &&other) noexcept {
  std::swap(cache, other.cache);
  std::swap(positions, other.positions);
  std::swap(limit, other.limit);
  std::swap(tables, other.tables);
  std::swap(firstHeld, other.firstHeld);
  return *this;
}

SequenceCache::~SequenceCache() { releaseAll(); }

void SequenceCache::releaseAll() {
  for (u32 group = 0; group < tables.size(); ++group)
    for (PageId &page : tables[group]) {
      cache->pool(group).release(page);
      page = reservedPage;
    }
}

u32 SequenceCache::firstVisiblePage(u32 group, u32 position) const {
  u32 window = cache->groups()[group].window;
  if (window == 0 || position < window)
    return 0;
  return (position - window + 1) / pageTokens;
}

i64 SequenceCache::pagesNeeded(u32 group, u32 rows) const {
  const PagePool &pool = cache->pool(group);
  const std::vector<PageId> &table = tables[group];
  u32 visible = firstVisiblePage(group, positions);
  i64 needed = i64(pagesFor(u64(positions) + rows)) - pagesFor(positions);
  for (u32 entry = firstHeld[group];
       entry < std::min(visible, pagesFor(positions)); ++entry)
    needed -= pool.references(table[entry]) == 1;
  if (rows != 0 && positions % pageTokens != 0 &&
      pool.references(table[positions / pageTokens]) > 1)
    ++needed; // the shared tail is copied
  return needed;
}

bool SequenceCache::canExtend(u32 rows) const {
  if (rows > limit - positions)
    return false;
  for (u32 group = 0; group < tables.size(); ++group)
    if (pagesNeeded(group, rows) > i64(cache->pool(group).freePages()))
      return false;
  return true;
}

u32 SequenceCache::missingPages(u32 group, u32 rows) const {
  i64 missing = pagesNeeded(group, rows) - i64(cache->pool(group).freePages());
  return missing > 0 ? u32(missing) : 0;
}

void SequenceCache::giveBack() {
  for (u32 group = 0; group < tables.size(); ++group) {
    u32 visible =
        std::min(firstVisiblePage(group, positions), pagesFor(positions));
    for (u32 &entry = firstHeld[group]; entry < visible; ++entry) {
      cache->pool(group).release(tables[group][entry]);
      tables[group][entry] = reservedPage;
    }
  }
}

void SequenceCache::share(u32 length,
                          std::span<const std::vector<PageId>> pages) {
  assert(positions == 0 && length <= limit);
  for (u32 group = 0; group < tables.size(); ++group) {
    u32 count = pagesFor(length);
    firstHeld[group] = std::min(firstVisiblePage(group, length), count);
    for (u32 entry = firstHeld[group]; entry < count; ++entry) {
      cache->pool(group).retain(pages[group][entry]);
      tables[group][entry] = pages[group][entry];
    }
  }
  positions = length;
}

void SequenceCache::replace(u32 group, u32 index, PageId page) {
  PageId &own = tables[group][index];
  assert(own != reservedPage);
  cache->pool(group).retain(page);
  cache->pool(group).release(own);
  own = page;
}

Result<void> SequenceCache::extend(u32 rows) {
  if (rows > limit - positions)
    return fail(ErrorKind::InvalidInput,
                "{} more tokens after {} pass the context of {} tokens", rows,
                positions, limit);
  for (u32 group = 0; group < tables.size(); ++group) {
    i64 needed = pagesNeeded(group, rows);
    const PagePool &pool = cache->pool(group);
    if (needed > i64(pool.freePages()))
      return fail(ErrorKind::Exhausted,
                  "the KV cache is full: {} more tokens need {} pages of group "
                  "{}, {} of {} are free",
                  rows, needed, group, pool.freePages(), pool.totalPages());
  }
  giveBack();
  for (u32 group = 0; group < tables.size(); ++group) {
    PagePool &pool = cache->pool(group);
    std::vector<PageId> &table = tables[group];
    u32 held = pagesFor(positions);
    if (rows != 0 && positions % pageTokens != 0) {
      PageId &tail = table[positions / pageTokens];
      if (pool.references(tail) > 1) {
        PageId copy = pool.allocate();
        pool.copy(copy, tail);
        pool.release(tail);
        tail = copy;
      }
    }
    for (u32 entry = held; entry < pagesFor(u64(positions) + rows); ++entry) {
      table[entry] = pool.allocate();
      assert(table[entry] != reservedPage);
    }
  }
  positions += rows;
  return {};
}

bool SequenceCache::canTruncate(u32 length) const {
  if (length > positions)
    return false;
  if (length == 0)
    return true;
  for (u32 group = 0; group < tables.size(); ++group)
    if (firstVisiblePage(group, length) < firstHeld[group])
      return false;
  return true;
}

void SequenceCache::truncate(u32 length) {
  assert(canTruncate(length));
  for (u32 group = 0; group < tables.size(); ++group) {
    for (u32 entry = pagesFor(length); entry < pagesFor(positions); ++entry) {
      cache->pool(group).release(tables[group][entry]);
      tables[group][entry] = reservedPage;
    }
    if (length == 0)
      firstHeld[group] = 0;
  }
  positions = length;
}

SequenceCache SequenceCache::fork() const {
  SequenceCache copy(*cache, limit);
  copy.positions = positions;
  copy.firstHeld = firstHeld;
  for (u32 group = 0; group < tables.size(); ++group) {
    copy.tables[group] = tables[group];
    for (PageId page : tables[group])
      if (page != reservedPage)
        cache->pool(group).retain(page);
  }
  return copy;
}

} // namespace lathe::runtime
