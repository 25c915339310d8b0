/// \file
/// A scheduler's own view of requests; only for its parts.
#ifndef LATHE_RUNTIME_SCHEDULE_ANSWER_H
#define LATHE_RUNTIME_SCHEDULE_ANSWER_H

#include "runtime/schedule/PickTrial.h"
#include "runtime/schedule/Scheduler.h"

namespace lathe::runtime {

/// A request that has answers to come.
struct Scheduler::Task {
  RequestId id;
  Request request;
  std::shared_ptr<RequestSink> sink;
  RequestFacts facts;
  /// The smaller, the earlier it is served.
  i64 due;
};

/// One answer of a request. Until its prompt is evaluated, a request's first
/// answer stands for all.
struct Scheduler::Answer {
  std::shared_ptr<Task> task;
  u32 branch;
  Sampler sampler;
  std::vector<i32> tokens; ///< Prompt and answer.
  /// While it runs. Its last `pending()` tokens are not evaluated yet.
  std::optional<SequenceCache> sequence = std::nullopt;
  PrefixTree::Place place = {};
  bool stands = false; ///< For all answers of its request.
  bool ended = false;
  u32 rows = 0;        ///< Of the step in progress.
  u32 promptShown = 0; ///< Prompt tokens whose logits the sink has seen.
  PickTrial pickTrial = {};

  Speculator::Sequence speculation = {};
  /// Tokens of the rows of the step in progress, if any of them is drafted: the
  /// first one is not.
  std::vector<i32> draftRows = {};
  u32 accepted = 0; ///< Of the drafted ones.
  /// The draft was wrong at some row: those behind it mean nothing.
  bool isOffDraft = false;

  bool isRunning() const { return sequence.has_value(); }
  u32 pending() const {
    u32 evaluated = sequence->length();
    return tokens.size() > evaluated ? u32(tokens.size()) - evaluated : 0;
  }
  u32 answered() const { return u32(tokens.size()) - task->facts.promptTokens; }
  u32 slots() const { return stands ? task->request.branches : 1; }
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SCHEDULE_ANSWER_H
