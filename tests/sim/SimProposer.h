/// \file
/// Drafts for the simulation's model, of any quality.
#ifndef LATHE_TESTS_SIM_SIMPROPOSER_H
#define LATHE_TESTS_SIM_SIMPROPOSER_H

#include "runtime/speculate/DraftModelProposer.h"
#include "tests/sim/SimExecutor.h"

#include <functional>
#include <random>
#include <string>

namespace lathe::tests {

class SimProposer : public runtime::Proposer {
public:
  enum class Kind {
    Perfect, ///< Draws what the model draws.
    Half,    ///< The same, but each token may be another one.
    Random,
    Hostile, ///< Too long, ids out of range, a certainty that is none.
  };

  /// `complain` is told what was wrong with a call.
  SimProposer(Kind kind, u64 seed, u32 vocab,
              std::function<void(const std::string &)> complain)
      : kind(kind), random(seed), vocab(vocab), complain(std::move(complain)) {}

  std::unique_ptr<Sequence> start(std::string_view salt) override;
  std::unique_ptr<Sequence> fork(const Sequence &sequence) override;
  void propose(std::span<Draft> drafts) override;
  bool isCostly() const override { return takesTime; }

private:
  void propose(Draft &draft);

  Kind kind;
  std::mt19937_64 random;
  u32 vocab;
  std::function<void(const std::string &)> complain;
  bool takesTime = random() % 2 == 0;
};

/// A draft model that is the model itself, but for its vocabulary, with a KV
/// cache of its own.
struct SimDraftModel {
  SimDraftModel(std::span<const runtime::KvGroupInfo> groups,
                std::vector<u32> pages,
                const runtime::StepExecutor::Capacities &capacities,
                u32 draftVocab,
                const runtime::DraftModelProposer::Options &options);

  /// What is wrong; empty: nothing. `isOver`: no sequence is left.
  std::string problem(bool isOver) const;

  std::unique_ptr<runtime::KvCache> cache;
  std::unique_ptr<SimExecutor> executor;
  std::unique_ptr<runtime::DraftModelProposer> proposer;
};

} // namespace lathe::tests

#endif // LATHE_TESTS_SIM_SIMPROPOSER_H
