#include "runtime/speculate/NgramProposer.h"
#include "runtime/speculate/SuffixAutomaton.h"

#include <algorithm>
#include <bit>

namespace lathe::runtime {
namespace {

struct Text : Proposer::Sequence {
  SuffixAutomaton automaton;
};

/// Longer matches are right more often: up to 3 tokens, 7, 15, more.
u32 certaintyOf(u32 matched) {
  return std::clamp<u32>(u32(std::bit_width(matched)), 2, 5) - 2;
}

} // namespace

std::unique_ptr<Proposer::Sequence> NgramProposer::start(std::string_view) {
  return std::make_unique<Text>();
}

std::unique_ptr<Proposer::Sequence>
NgramProposer::fork(const Sequence &sequence) {
  return std::make_unique<Text>(static_cast<const Text &>(sequence));
}

void NgramProposer::propose(std::span<Draft> drafts) {
  for (Draft &draft : drafts) {
    SuffixAutomaton &automaton = static_cast<Text *>(draft.sequence)->automaton;
    while (automaton.size() < draft.tokens.size())
      automaton.append(draft.tokens[automaton.size()]);
    SuffixAutomaton::Match match = automaton.match();
    if (match.length < options.leastMatch)
      continue;
    draft.certainty = certaintyOf(match.length);
    // What followed may be part of what is proposed: a text that repeats
    // itself goes on doing so.
    u32 period = u32(draft.tokens.size()) - match.end;
    for (u32 i = 0; i < draft.most; ++i)
      draft.proposed.push_back(draft.tokens[match.end + i % period]);
  }
}

} // namespace lathe::runtime
