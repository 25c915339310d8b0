#include "runtime/kv/PrefixTree.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <unordered_set>

namespace lathe::runtime {

using PageOfTokens = std::array<i32, pageTokens>;

static PageOfTokens pageAt(std::span<const i32> tokens, u32 index) {
  PageOfTokens page;
  std::copy_n(tokens.data() + u64(index) * pageTokens, pageTokens, page.data());
  return page;
}

class PrefixTree::Node {
public:
  PageOfTokens tokens = {};
  Node *parent = nullptr; ///< Null for a root.
  u32 depth = 0;          ///< Pages up to and with this one.
  std::map<PageOfTokens, std::unique_ptr<Node>> children;
  std::vector<PageId> pages; ///< By group; reservedPage: evicted.
  u32 places = 0;
  /// The ring by recency.
  Node *older = nullptr, *newer = nullptr;

  bool isRoot() const { return parent == nullptr; }
};

PrefixTree::Place::Place(Node *node) : node(node) { ++node->places; }

void PrefixTree::Place::leave() {
  if (node)
    --node->places;
  node = nullptr;
}

PrefixTree::PrefixTree(KvCache &cache)
    : cache(&cache), ends(std::make_unique<Node>()) {
  ends->older = ends->newer = ends.get();
}

PrefixTree::~PrefixTree() {
  // Leaf by leaf: a path may be too deep to go down by recursion.
  while (ends->newer != ends.get())
    erase(ends->newer);
}

PrefixTree::Node *PrefixTree::rootOf(std::string_view salt) {
  auto found = roots.find(salt);
  if (found == roots.end()) {
    dropEmptyRoots();
    found = roots.emplace(std::string(salt), std::make_unique<Node>()).first;
  }
  return found->second.get();
}

void PrefixTree::dropEmptyRoots() {
  std::erase_if(roots, [](const auto &root) {
    return root.second->children.empty() && root.second->places == 0;
  });
}

void PrefixTree::unlink(Node *node) {
  node->older->newer = node->newer;
  node->newer->older = node->older;
}

void PrefixTree::linkBefore(Node *node, Node *next) {
  node->older = next->older;
  node->newer = next;
  node->older->newer = node->newer->older = node;
}

void PrefixTree::touch(Node *node) {
  for (; !node->isRoot(); node = node->parent) {
    unlink(node);
    linkBefore(node, ends.get());
  }
}

bool PrefixTree::isWhole(std::span<Node *const> path, u32 length) const {
  std::span<const KvGroupInfo> groups = cache->groups();
  for (u32 group = 0; group < groups.size(); ++group) {
    u32 window = groups[group].window;
    u32 first =
        window == 0 || length < window ? 0 : (length - window + 1) / pageTokens;
    for (u32 page = first; page < path.size(); ++page)
      if (path[page]->pages[group] == reservedPage)
        return false;
  }
  return true;
}

PrefixTree::Place PrefixTree::match(std::string_view salt,
                                    std::span<const i32> tokens, u32 most,
                                    SequenceCache &into) {
  assert(into.length() == 0);
  most = std::min(most, u32(tokens.size()));
  std::vector<Node *> path;
  Node *const root = rootOf(salt);
  Node *node = root;
  while ((path.size() + 1) * pageTokens <= most) {
    auto child = node->children.find(pageAt(tokens, u32(path.size())));
    if (child == node->children.end())
      break;
    node = child->second.get();
    path.push_back(node);
  }

  // A part of one more page: that of the child which agrees longest, which is
  // beside the place of the rest in the children's order.
  u32 length = u32(path.size()) * pageTokens;
  u32 rest = std::min(most - length, pageTokens);
  PageOfTokens key;
  key.fill(std::numeric_limits<i32>::min());
  std::copy_n(tokens.data() + length, rest, key.data());
  auto agreement = [&](const PageOfTokens &page) {
    return u32(
        std::mismatch(page.begin(), page.begin() + rest, key.begin()).first -
        page.begin());
  };
  auto behind = node->children.lower_bound(key);
  Node *partial = nullptr;
  u32 agreed = 0;
  auto consider = [&](const auto &child) {
    if (u32 same = agreement(child.first); same > agreed) {
      agreed = same;
      partial = child.second.get();
    }
  };
  if (behind != node->children.end())
    consider(*behind);
  if (behind != node->children.begin())
    consider(*std::prev(behind));
  if (partial) {
    path.push_back(partial);
    length += agreed;
  }

  // Where a window's pages were evicted, as much as is whole.
  while (!path.empty() && !isWhole(path, length)) {
    path.pop_back();
    length = u32(path.size()) * pageTokens;
  }
  if (path.empty())
    return Place(root);
  touch(path.back());
  std::vector<std::vector<PageId>> pages(cache->groups().size());
  for (u32 group = 0; group < pages.size(); ++group)
    for (const Node *step : path)
      pages[group].push_back(step->pages[group]);
  into.share(length, pages);
  if (length % pageTokens != 0)
    path.pop_back();
  return Place(path.empty() ? root : path.back());
}

void PrefixTree::extend(Place &place, std::span<const i32> tokens,
                        SequenceCache &of) {
  Node *node = place.node;
  u32 full = of.length() / pageTokens;
  if (node->depth >= full)
    return;
  while (node->depth < full) {
    u32 index = node->depth;
    PageOfTokens page = pageAt(tokens, index);
    auto [at, isNew] = node->children.try_emplace(page);
    if (isNew) {
      at->second = std::make_unique<Node>();
      Node &child = *at->second;
      child.tokens = page;
      child.parent = node;
      child.depth = index + 1;
      child.pages.assign(cache->groups().size(), reservedPage);
      linkBefore(&child, ends.get());
      ++size;
    }
    node = at->second.get();
    for (u32 group = 0; group < node->pages.size(); ++group) {
      PageId own = of.pages(group)[index];
      PageId &held = node->pages[group];
      if (own == reservedPage || own == held)
        continue;
      if (held == reservedPage) {
        cache->pool(group).retain(own);
        held = own;
      } else {
        of.replace(group, index, held);
      }
    }
  }
  touch(node);
  place = Place(node);
}

bool PrefixTree::isIdle(const Node &node, u32 group) const {
  PageId page = node.pages[group];
  return page != reservedPage && cache->pool(group).references(page) == 1;
}

void PrefixTree::erase(Node *leaf) {
  for (u32 group = 0; group < leaf->pages.size(); ++group)
    cache->pool(group).release(leaf->pages[group]);
  unlink(leaf);
  --size;
  leaf->parent->children.erase(PageOfTokens(leaf->tokens));
}

u32 PrefixTree::evict(u32 group, u32 count) {
  bool isWindow = cache->groups()[group].window != 0;
  u32 freed = 0;
  Node *next;
  for (Node *node = ends->newer; node != ends.get() && freed < count;
       node = next) {
    next = node->newer;
    if (!isIdle(*node, group))
      continue;
    if (isWindow) {
      cache->pool(group).release(node->pages[group]);
      node->pages[group] = reservedPage;
    } else if (node->children.empty() && node->places == 0) {
      erase(node);
    } else {
      continue;
    }
    ++freed;
  }
  return freed;
}

u32 PrefixTree::idlePages(u32 group) const {
  u32 count = 0;
  for (const Node *node = ends->newer; node != ends.get(); node = node->newer)
    count += isIdle(*node, group);
  return count;
}

void PrefixTree::countPages(u32 group, std::span<u32> counts) const {
  for (const Node *node = ends->newer; node != ends.get(); node = node->newer)
    ++counts[node->pages[group]];
}

void PrefixTree::clear() {
  for (u32 group = 0; group < cache->groups().size(); ++group)
    evict(group, ~0u);
}

bool PrefixTree::isConsistent() const {
  u32 found = 0;
  std::unordered_set<const Node *> older;
  for (const Node *node = ends->newer; node != ends.get();
       node = node->newer, ++found) {
    older.insert(node);
    if (node->newer->older != node || older.contains(node->parent))
      return false;
    for (u32 group = 0; group < node->pages.size(); ++group)
      if (node->pages[group] != reservedPage &&
          cache->pool(group).references(node->pages[group]) == 0)
        return false;
    auto child = node->parent->children.find(node->tokens);
    if (child == node->parent->children.end() || child->second.get() != node ||
        node->depth != node->parent->depth + 1)
      return false;
  }
  return found == size;
}

} // namespace lathe::runtime
