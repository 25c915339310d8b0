#include "runtime/kv/PagePool.h"
#include "runtime/support/Checked.h"

#include <cassert>
#include <cstring>

namespace lathe::runtime {

Result<PagePool> PagePool::create(const Options &options) {
  if (options.pageBytes == 0 || options.pages == 0 || options.pages == ~0u)
    return fail(ErrorKind::InvalidInput,
                "a KV pool of {} pages of {} bytes cannot be", options.pages,
                options.pageBytes);
  auto bytes = checkedMul<u64>(options.pageBytes, u64(options.pages) + 1);
  if (!bytes)
    return fail(ErrorKind::Exhausted,
                "a KV pool of {} pages of {} bytes does not fit any memory",
                options.pages, options.pageBytes);
  for (const KvStrip &strip : options.strips)
    if (strip.offset > options.pageBytes ||
        strip.bytes > options.pageBytes - strip.offset)
      return fail(ErrorKind::InvalidInput,
                  "{} bytes at {} are not in a KV page of {}", strip.bytes,
                  strip.offset, options.pageBytes);
  auto memory = MemoryRegion::map(*bytes, "the KV cache");
  if (!memory)
    return failFrom(memory);
  PagePool pool;
  pool.memory = std::move(*memory);
  pool.parts = options.strips;
  if (pool.parts.empty())
    pool.parts = {{0, options.pageBytes}};
  pool.total = options.pages;
  pool.poisonFreed = options.poisonFreed;
  pool.freed.reserve(options.pages);
  pool.counts.resize(u64(options.pages) + 1);
  return pool;
}

PageId PagePool::allocate() {
  PageId id;
  if (!freed.empty()) {
    id = freed.back();
    freed.pop_back();
    fill(id, 0);
  } else if (untouched <= total) {
    id = untouched++;
  } else {
    return reservedPage;
  }
  assert(counts[id] == 0);
  counts[id] = 1;
  ++used;
  return id;
}

void PagePool::fill(PageId page, int byte) {
  for (const KvStrip &strip : parts)
    std::memset(at(page, strip), byte, strip.bytes);
}

void PagePool::copy(PageId to, PageId from) {
  for (const KvStrip &strip : parts)
    std::memcpy(at(to, strip), at(from, strip), strip.bytes);
}

void PagePool::retain(PageId page) {
  assert(page != reservedPage && page <= total && counts[page] > 0);
  ++counts[page];
}

void PagePool::release(PageId id) {
  if (id == reservedPage)
    return;
  assert(id <= total && counts[id] > 0);
  if (--counts[id] != 0)
    return;
  if (poisonFreed)
    fill(id, 0xff);
  freed.push_back(id);
  --used;
}

bool PagePool::isConsistent() const {
  u64 referenced = 0;
  for (u32 count : counts)
    referenced += count != 0;
  if (counts[reservedPage] != 0 || referenced != used)
    return false;
  u64 neverUsed = u64(total) + 1 - untouched;
  if (freed.size() + neverUsed + used != total)
    return false;
  std::vector<bool> seen(counts.size());
  for (PageId id : freed) {
    if (id == reservedPage || id >= untouched || counts[id] != 0 || seen[id])
      return false;
    seen[id] = true;
  }
  return true;
}

} // namespace lathe::runtime
