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
  matcher.includeStop_ = includeStop;
  std::vector<State> &states = matcher.states_;
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
      auto [at, added] = matcher.edges_.try_emplace(
          edge, static_cast<uint32_t>(states.size()));
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
  std::vector<std::pair<uint32_t, uint32_t>> edges(matcher.edges_.begin(),
                                                   matcher.edges_.end());
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
    if (auto edge = edges_.find(state << 8 | byte); edge != edges_.end())
      return edge->second;
    if (state == 0)
      return 0;
    state = states_[state].fallback;
  }
}

bool StopMatcher::push(std::string_view text, std::string &out) {
  if (done_)
    return true;
  for (char c : text) {
    held_.push_back(c);
    state_ = next(state_, static_cast<uint8_t>(c));
    const State &state = states_[state_];
    size_t open = held_.size() - state.depth;
    if (state.stop != kNone) {
      size_t begin = held_.size() - state.stopBytes;
      if (!found_ || begin < matchBegin_) {
        found_ = true;
        matchBegin_ = begin;
        matchEnd_ = held_.size();
        matchStop_ = state.stop;
      }
    }
    if (found_ && matchBegin_ <= open)
      return finish(out);
  }
  size_t open = held_.size() - states_[state_].depth;
  size_t passed = found_ ? std::min(open, matchBegin_) : open;
  out.append(held_, 0, passed);
  held_.erase(0, passed);
  matchBegin_ -= found_ ? passed : 0;
  matchEnd_ -= found_ ? passed : 0;
  return false;
}

bool StopMatcher::flush(std::string &out) {
  if (done_ || found_)
    return done_ || finish(out);
  out.append(held_);
  held_.clear();
  state_ = 0;
  return false;
}

bool StopMatcher::finish(std::string &out) {
  out.append(held_, 0, includeStop_ ? matchEnd_ : matchBegin_);
  held_.clear();
  done_ = true;
  return true;
}

} // namespace lathe::runtime
