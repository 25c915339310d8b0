/// \file
/// A proposer to learn from: what followed this token last time follows again.
/// docs/add-a-proposer.md walks through it.
#ifndef LATHE_TESTS_EXAMPLES_PROPOSER_SUCCESSORPROPOSER_H
#define LATHE_TESTS_EXAMPLES_PROPOSER_SUCCESSORPROPOSER_H

#include "runtime/speculate/Proposer.h"

#include <unordered_map>

// example
class SuccessorProposer : public lathe::runtime::Proposer {
  using i32 = lathe::i32;

  /// What is known of one sequence.
  struct Seen : Sequence {
    std::unordered_map<i32, i32> next; ///< Token to the one behind it.
    size_t told = 0;
  };

public:
  std::unique_ptr<Sequence> start(std::string_view) override {
    return std::make_unique<Seen>();
  }

  std::unique_ptr<Sequence> fork(const Sequence &sequence) override {
    return std::make_unique<Seen>(static_cast<const Seen &>(sequence));
  }

  void propose(std::span<Draft> drafts) override {
    for (Draft &draft : drafts) {
      Seen &seen = *static_cast<Seen *>(draft.sequence);
      std::span<const i32> tokens = draft.tokens;
      for (; seen.told < tokens.size(); ++seen.told)
        if (seen.told != 0)
          seen.next[tokens[seen.told - 1]] = tokens[seen.told];
      i32 last = tokens.back();
      while (draft.proposed.size() < draft.most) {
        auto found = seen.next.find(last);
        if (found == seen.next.end())
          break;
        last = found->second;
        draft.proposed.push_back(last);
      }
    }
  }
};
// end of example

#endif // LATHE_TESTS_EXAMPLES_PROPOSER_SUCCESSORPROPOSER_H
