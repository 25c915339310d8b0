/// \file
/// The drafts of a scheduler's answers: who is asked for how many, what of
/// them is worth checking, and what came of it.
#ifndef LATHE_RUNTIME_SPECULATE_SPECULATOR_H
#define LATHE_RUNTIME_SPECULATE_SPECULATOR_H

#include "runtime/speculate/DraftLength.h"

#include <functional>

namespace lathe::runtime {

struct SpeculationOptions {
  /// Most tokens of a draft.
  u32 mostTokens = 8;
  /// Draft as many as pay by what was measured, down to none; otherwise always
  /// mostTokens, as far as they fit the step.
  bool adapts = true;
};

/// What has been drafted so far.
struct SpeculationStats {
  u64 drafts = 0;   ///< Checked ones, not empty.
  u64 drafted = 0;  ///< Their tokens.
  u64 accepted = 0; ///< Of these, tokens of answers.
};

/// Asks a proposer for drafts whose lengths follow measurements: how often the
/// drafts of a request are right, what a step of so many rows takes, and what
/// drafting takes. Deterministic if the proposer and the clock are. One thread
/// at a time; the proposer must outlive it.
class Speculator {
public:
  /// Nanoseconds since some start.
  using Clock = std::function<u64()>;

  /// What it knows of one answer. Without a state the proposer is told all
  /// tokens again.
  struct Sequence {
    std::unique_ptr<Proposer::Sequence> state = nullptr;
    Acceptance acceptance = {};
    u32 certainty = 0;
    u32 told = 0; ///< Tokens that the state knows.
  };

  /// An answer that gets its next row in a step.
  struct Job {
    Sequence *sequence;
    std::string_view salt;       ///< As Proposer::start().
    std::span<const i32> tokens; ///< Prompt and answer.
    Sampler *sampler;
    u32 most;                    ///< Tokens of a draft.
    std::vector<i32> draft = {}; ///< Proposed: ids of the vocabulary.
  };

  Speculator(Proposer &proposer, SpeculationOptions options, u32 vocab,
             Clock now)
      : proposer(&proposer), options(options), vocab(vocab),
        now(std::move(now)) {}

  /// Drafts for a step of `rows` rows, of which one is each job's, with at most
  /// `rowsLeft` more.
  void propose(std::span<Job> jobs, u32 rows, u32 rowsLeft);

  /// A second sequence that is the same so far.
  Sequence fork(const Job &job);

  /// A draft of `drafted` tokens was checked: so many were accepted, then there
  /// was a wrong one or not (the answer was over before).
  void learn(Sequence &sequence, u32 drafted, u32 accepted, bool isRejected);

  /// A step of so many rows took so long.
  void learnStep(u32 rows, u64 nanoseconds) {
    steps.add(rows, f64(nanoseconds) * 1e-9);
  }

  const SpeculationStats &stats() const { return counts; }

private:
  /// What drafts pay is judged by steps without them: one in so many steps goes
  /// without where none did lately.
  static constexpr u32 withoutEvery = 64;

  bool measuresWithout(std::span<const Job> jobs, u32 rows);
  void choose(std::span<const Job> jobs, u32 rows, u32 rowsLeft,
              const DraftCost &cost);
  /// Starts it if need be; it will know the job's tokens.
  Proposer::Sequence *follow(const Job &job);
  void ask(std::span<Job> jobs);
  f64 acceptanceOf(const Sequence &sequence) const;

  Proposer *proposer;
  SpeculationOptions options;
  u32 vocab;
  Clock now;

  StepTimes steps;
  StepTimes draftTokens; ///< One more token, by the drafts made together.
  Acceptance all;        ///< Of all requests.
  /// Steps since one went without drafts to be measured, and since drafting
  /// was measured.
  u32 sinceWithout = withoutEvery, sinceDrafting = 0;
  SpeculationStats counts;
  std::vector<DraftChoice> choices; ///< By job.
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SPECULATE_SPECULATOR_H
