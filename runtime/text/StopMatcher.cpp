#include "runtime/text/StopMatcher.h"

#include "runtime/text/Utf8.h"

#include <algorithm>

namespace lathe::runtime {

Result<StopMatcher> StopMatcher::create(const std::vector<std::string> &stops,
                                        bool includeStop) {
  if (stops.size() > kMaxStops)
    return fail(ErrorKind::InvalidInput, "{} stop strings; the limit is {}",
                stops.size(), kMaxStops);
  StopMatcher matcher;
  matcher.includeStop = includeStop;
  std::vector<State> &states = matcher.states;
  for (size_t i = 0; i < stops.size(); ++i) {
    if (stops[i].empty())
      return fail(ErrorKind::InvalidInput, "stop string {} is empty", i);
    if (stops[i].size() > kMaxStopBytes)
      return fail(ErrorKind::InvalidInput,
                  "stop string {} has {} bytes; the limit is {}", i,
                  stops[i].size(), kMaxStopBytes);
    if (!isValidUtf8(stops[i]))
      return fail(ErrorKind::InvalidInput, "stop string {} is not UTF-8", i);
    uint32_t state = 0;
    for (char c : stops[i]) {
      uint32_t edge = state << 8 | static_cast<uint8_t>(c);
      auto [at, added] =
          matcher.edges.try_emplace(edge, static_cast<uint32_t>(states.size()));
      if (added)
        states.push_back({.depth = states[state].depth + 1});
      state = at->second;
    }
    if (states[state].stop == kNone) {
      states[state].stop = static_cast<uint32_t>(i);
      states[state].stopBytes = states[state].depth;
    }
  }

  // Fallbacks by increasing depth: a state's fallback is shallower than it.
  std::vector<std::pair<uint32_t, uint32_t>> edges(matcher.edges.begin(),
                                                   matcher.edges.end());
  std::ranges::sort(edges, [&](const auto &a, const auto &b) {
    return states[a.second].depth < states[b.second].depth;
  });
  for (auto [edge, target] : edges) {
    uint32_t source = edge >> 8;
    State &state = states[target];
    if (source != 0)
      state.fallback = matcher.next(states[source].fallback, edge & 0xFF);
    if (state.stop == kNone) {
      state.stop = states[state.fallback].stop;
      state.stopBytes = states[state.fallback].stopBytes;
    }
  }
  return matcher;
}

uint32_t StopMatcher::next(uint32_t state, uint8_t byte) const {
  while (true) {
    if (auto edge = edges.find(state << 8 | byte); edge != edges.end())
      return edge->second;
    if (state == 0)
      return 0;
    state = states[state].fallback;
  }
}

bool StopMatcher::push(std::string_view text, std::string &out) {
  if (done)
    return true;
  for (char c : text) {
    held.push_back(c);
    current = next(current, static_cast<uint8_t>(c));
    const State &state = states[current];
    size_t open = held.size() - state.depth;
    if (state.stop != kNone) {
      size_t begin = held.size() - state.stopBytes;
      if (!found || begin < matchBegin) {
        found = true;
        matchBegin = begin;
        matchEnd = held.size();
        matchStop = state.stop;
      }
    }
    if (found && matchBegin <= open)
      return finish(out);
  }
  size_t open = held.size() - states[current].depth;
  size_t passed = found ? std::min(open, matchBegin) : open;
  out.append(held, 0, passed);
  held.erase(0, passed);
  matchBegin -= found ? passed : 0;
  matchEnd -= found ? passed : 0;
  return false;
}

bool StopMatcher::flush(std::string &out) {
  if (done || found)
    return done || finish(out);
  out.append(held);
  held.clear();
  current = 0;
  return false;
}

bool StopMatcher::finish(std::string &out) {
  out.append(held, 0, includeStop ? matchEnd : matchBegin);
  held.clear();
  done = true;
  return true;
}

} // namespace lathe::runtime
