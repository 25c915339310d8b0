/// \file
/// The pages of one KV group: a fixed number, counted references.
#ifndef LATHE_RUNTIME_KV_PAGEPOOL_H
#define LATHE_RUNTIME_KV_PAGEPOOL_H

#include "kernels/abi/StepArgs.h"
#include "runtime/device/Memory.h"
#include "runtime/support/Result.h"

#include <vector>

namespace lathe::runtime {

/// A page's number in its pool; reservedPage (0) is none.
using PageId = u32;

/// A part of every page that lies in the pool beside the same part of the next
/// page (KvGroupArgs).
struct KvStrip {
  u64 offset; ///< In a page.
  u64 bytes;
};

/// A fixed set of equal pages whose contents are opaque bytes. Page 0 is
/// reserved: always zero and never given out. A page is given out zeroed, with
/// one reference, and returns to the pool with its last. One thread at a time.
class PagePool {
public:
  struct Options {
    /// Bytes of one page, > 0: all layers of the group for pageTokens tokens.
    u64 pageBytes = 0;
    /// How pages lie in the pool, within a page and apart; empty: each page is
    /// one strip.
    std::vector<KvStrip> strips = {};
    /// Pages that can be given out, > 0; the reserved one comes on top.
    u32 pages = 0;
    /// Fills pages that come back with 0xff, a NaN in every float format, so
    /// that a read of a freed page shows.
    bool poisonFreed = false;
  };

  /// Maps the pool; its memory is taken as pages are first used. Errors:
  /// InvalidInput (zero sizes), Exhausted (address space).
  static Result<PagePool> create(const Options &options);

  /// A zeroed page with one reference, or reservedPage if none is free.
  PageId allocate();

  /// Adds a reference to a page that has one.
  void retain(PageId page);

  /// Drops a reference; with the last the page is free. reservedPage is
  /// ignored.
  void release(PageId page);

  /// References of a page; 0 if it is free.
  u32 references(PageId page) const { return counts[page]; }

  /// Copies the contents of a page.
  void copy(PageId to, PageId from);

  /// Where a strip of a page lies.
  u8 *at(PageId page, const KvStrip &strip) const {
    return base() + strip.offset * (u64(total) + 1) + page * strip.bytes;
  }
  const std::vector<KvStrip> &strips() const { return parts; }

  /// For KvGroupArgs::pool.
  u8 *base() const { return memory.data(); }
  u32 totalPages() const { return total; }
  u32 freePages() const { return total - used; }
  u32 usedPages() const { return used; }

  /// True if every page is either free once or used: free + used = total, and
  /// the free list agrees with the reference counts. Linear time; for tests and
  /// debug builds.
  bool isConsistent() const;

private:
  PagePool() = default;
  void fill(PageId page, int byte);

  MemoryRegion memory;
  std::vector<KvStrip> parts;
  u32 total = 0;
  u32 used = 0;
  bool poisonFreed = false;
  /// Pages from here on have never been given out and are zero as mapped.
  PageId untouched = reservedPage + 1;
  std::vector<PageId> freed; ///< Returned pages, a stack.
  std::vector<u32> counts;   ///< References by page.
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_KV_PAGEPOOL_H
