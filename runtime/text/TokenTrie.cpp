#include "runtime/text/TokenTrie.h"

#include <algorithm>

namespace lathe::runtime {

TokenTrie::TokenTrie(std::vector<Entry> entries) {
  root.fill(kNone);
  std::erase_if(entries, [](const Entry &e) { return e.first.empty(); });
  std::ranges::sort(entries); // By text, then by id.
  auto last = std::unique(
      entries.begin(), entries.end(),
      [](const Entry &a, const Entry &b) { return a.first == b.first; });
  entries.erase(last, entries.end());

  // Breadth first over ranges of sorted entries that share a prefix, so that
  // the children of a node come out next to each other. work[i] belongs to
  // node i - 1; work[0] is the root.
  struct Range {
    size_t begin, end, depth;
  };
  std::vector<Range> work{{0, entries.size(), 0}};
  for (size_t next = 0; next < work.size(); ++next) {
    auto [begin, end, depth] = work[next];
    if (next > 0) {
      Node &node = nodes[next - 1];
      if (entries[begin].first.size() == depth)
        node.id = entries[begin++].second;
      node.firstChild = static_cast<uint32_t>(nodes.size());
    }
    while (begin < end) {
      char byte = entries[begin].first[depth];
      size_t stop = begin;
      while (stop < end && entries[stop].first[depth] == byte)
        ++stop;
      if (next > 0)
        ++nodes[next - 1].children;
      else
        root[static_cast<uint8_t>(byte)] = static_cast<uint32_t>(nodes.size());
      nodes.push_back({0, 0, static_cast<uint8_t>(byte), -1});
      work.push_back({begin, stop, depth + 1});
      begin = stop;
    }
  }
}

uint32_t TokenTrie::child(uint32_t node, uint8_t byte) const {
  auto first = nodes.begin() + nodes[node].firstChild;
  auto last = first + nodes[node].children;
  auto at = std::lower_bound(
      first, last, byte, [](const Node &n, uint8_t b) { return n.byte < b; });
  if (at == last || at->byte != byte)
    return kNone;
  return static_cast<uint32_t>(at - nodes.begin());
}

} // namespace lathe::runtime
