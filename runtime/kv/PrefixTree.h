/// \file
/// Which prefixes of token sequences have their keys and values in the cache.
#ifndef LATHE_RUNTIME_KV_PREFIXTREE_H
#define LATHE_RUNTIME_KV_PREFIXTREE_H

#include "runtime/kv/KvCache.h"

#include <array>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::runtime {

/// A radix tree over token ids whose edges are full pages: a node stands for
/// the tokens on the way to it and holds a reference to the last page of each
/// KV group. Keys and values depend on nothing but the tokens before them
/// (docs/numerics.md), so whoever continues a prefix of the tree may use its
/// pages. Trees of different salts share nothing, so that nobody can tell from
/// the speed of an answer what others asked.
///
/// Pages that only the tree still refers to are *idle*: they can be evicted,
/// least recently used first, children before parents. Of a window group single
/// pages go; where one is missing, a prefix that would need it ends earlier.
///
/// Source: Zheng et al., 2023, "SGLang" (RadixAttention), section 3.
///
/// One thread at a time, together with its cache.
class PrefixTree {
public:
  /// The tokens of a path, page by page; owned by the tree.
  class Node;

  /// A sequence's place in the tree: the node of its last full page, or the
  /// root. It keeps the node from being evicted. Must not outlive the tree.
  class Place {
  public:
    Place() = default;
    Place(Place &&other) noexcept : node(std::exchange(other.node, nullptr)) {}
    Place &operator=(Place &&other) noexcept {
      std::swap(node, other.node);
      return *this;
    }
    ~Place() { leave(); }
    void leave();
    /// The same place again, for a fork of the sequence.
    Place copy() const { return Place(node); }

  private:
    friend class PrefixTree;
    explicit Place(Node *node);
    Node *node = nullptr;
  };

  explicit PrefixTree(KvCache &cache);
  ~PrefixTree();

  /// Finds the longest prefix of `tokens`, at most `most` of them, that is in
  /// the tree of `salt`: `into`, an empty sequence of the cache, becomes it.
  /// The prefix may end within a page; then the page is shared until the
  /// sequence goes on, which copies it. Returns the sequence's place.
  Place match(std::string_view salt, std::span<const i32> tokens, u32 most,
              SequenceCache &into);

  /// Puts the pages that a sequence has filled beyond its place into the tree
  /// and moves the place along. `tokens` are at least those evaluated. Where
  /// the tree has such pages already, the sequence takes them for its own.
  void extend(Place &place, std::span<const i32> tokens, SequenceCache &of);

  /// Frees up to `count` idle pages of a group. Returns how many it freed.
  u32 evict(u32 group, u32 count);

  /// Idle pages of a group: what evict() could free. Linear time.
  u32 idlePages(u32 group) const;

  /// Frees all that is idle.
  void clear();

  /// Adds the tree's references to a group's pages to `counts`, by page id.
  void countPages(u32 group, std::span<u32> counts) const;

  /// Pages of the tree, of each group at most.
  u32 nodes() const { return size; }

  /// True if every page of the tree is referenced, parents are more recent than
  /// children and the counts agree. Linear time; for tests.
  bool isConsistent() const;

private:
  Node *rootOf(std::string_view salt);
  void dropEmptyRoots();
  /// The node and all above it become the most recent.
  void touch(Node *node);
  void unlink(Node *node);
  void linkBefore(Node *node, Node *next);
  /// Gives a leaf's pages back.
  void erase(Node *leaf);
  bool isIdle(const Node &node, u32 group) const;
  /// Whether a sequence of `length` tokens can go on with the pages of a path:
  /// all of its windows are there.
  bool isWhole(std::span<Node *const> path, u32 length) const;

  KvCache *cache;
  std::map<std::string, std::unique_ptr<Node>, std::less<>> roots;
  std::unique_ptr<Node> ends; ///< Of the ring of nodes, least recent first.
  u32 size = 0;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_KV_PREFIXTREE_H
