#include "runtime/speculate/SuffixAutomaton.h"

namespace lathe::runtime {

static constexpr u32 root = 0;

SuffixAutomaton::SuffixAutomaton() : slots(16, none) { addState(0); }

u32 SuffixAutomaton::addState(u32 newLength) {
  states.push_back(
      {.length = newLength, .link = none, .end = 0, .firstEdge = none});
  return u32(states.size()) - 1;
}

/// The slot of an edge, or the empty one where it belongs: open addressing with
/// linear probing, at most three quarters full.
u32 SuffixAutomaton::slotOf(u32 from, i32 token) const {
  u64 key = (u64(from) << 32 | u32(token)) * 0x9e3779b97f4a7c15;
  u32 mask = u32(slots.size()) - 1;
  u32 slot = u32(key >> 32) & mask;
  while (slots[slot] != none &&
         (edges[slots[slot]].from != from || edges[slots[slot]].token != token))
    slot = (slot + 1) & mask;
  return slot;
}

void SuffixAutomaton::growSlots() {
  slots.assign(slots.size() * 2, none);
  for (u32 edge = 0; edge < edges.size(); ++edge)
    slots[slotOf(edges[edge].from, edges[edge].token)] = edge;
}

void SuffixAutomaton::addEdge(u32 from, i32 token, u32 to) {
  if (edges.size() >= slots.size() / 4 * 3)
    growSlots();
  u32 edge = u32(edges.size());
  slots[slotOf(from, token)] = edge;
  edges.push_back({from, token, to, states[from].firstEdge});
  states[from].firstEdge = edge;
}

void SuffixAutomaton::append(i32 token) {
  u32 whole = addState(++length);
  states[whole].end = length;
  u32 at = last;
  u32 edge = none;
  for (; at != none; at = states[at].link) {
    edge = find(at, token);
    if (edge != none)
      break;
    addEdge(at, token, whole);
  }
  u32 link = root;
  if (at != none) {
    link = edges[edge].to;
    if (states[link].length != states[at].length + 1) {
      // Of that state's strings only the shorter ones end here as well: they
      // get a state of their own.
      u32 longer = link;
      link = addState(states[at].length + 1);
      states[link].link = states[longer].link;
      states[link].end = states[longer].end;
      for (u32 each = states[longer].firstEdge; each != none;
           each = edges[each].next)
        addEdge(link, edges[each].token, edges[each].to);
      states[longer].link = link;
      for (; at != none; at = states[at].link) {
        edge = find(at, token);
        if (edge == none || edges[edge].to != longer)
          break;
        edges[edge].to = link;
      }
    }
  }
  states[whole].link = link;
  last = whole;
  latest = {.length = states[link].length, .end = states[link].end};
  // All suffixes end here now. A run of one token has as many states as tokens,
  // hence the bound.
  u32 left = pathMost;
  for (at = link; at != root && left != 0; at = states[at].link, --left)
    states[at].end = length;
}

u64 SuffixAutomaton::bytes() const {
  return states.capacity() * sizeof(State) + edges.capacity() * sizeof(Edge) +
         slots.capacity() * sizeof(u32);
}

} // namespace lathe::runtime
