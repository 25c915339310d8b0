/// \file
/// Many requests, one executor: continuous batching over a paged KV cache.
#ifndef LATHE_RUNTIME_SCHEDULE_SCHEDULER_H
#define LATHE_RUNTIME_SCHEDULE_SCHEDULER_H

#include "runtime/device/StepExecutor.h"
#include "runtime/kv/PrefixTree.h"
#include "runtime/schedule/Request.h"
#include "runtime/speculate/Speculator.h"

#include <array>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <vector>

namespace lathe::runtime {

struct SchedulerOptions {
  /// Most tokens of a sequence; lowered to what all pages together hold.
  u32 context = 0;
  /// Most answers that are evaluated together, at most the executor's
  /// sequences; 0: those.
  u32 maxRunning = 0;
  /// Most requests that wait, besides maxRunning answers.
  u32 maxWaiting = 1024;
  /// Most prompt rows of a step in which others decode: what a long prompt may
  /// delay their next token by. At most the executor's rows.
  u32 mixedRows = 128;
  /// Keep the pages of what was evaluated for prompts that start alike.
  bool prefixCache = true;
  /// Nanoseconds; one more of priority is worth so much waiting.
  Instant agingTime = 10'000'000'000;
  /// If there is a proposer.
  SpeculationOptions speculation = {};
};

/// What has happened so far, and what is the case.
struct SchedulerStats {
  u32 running = 0, waiting = 0; ///< Answers; requests' own until they fork.
  u64 steps = 0;
  u64 promptRows = 0;    ///< Evaluated rows of prompts, again ones included.
  u64 decodeRows = 0;    ///< Evaluated rows that an answer's token was put in.
  u64 tokens = 0;        ///< Answered.
  u64 queriedTokens = 0; ///< Of prompts that the prefix cache was asked for.
  u64 cachedTokens = 0;  ///< Of these, those that it had.
  u64 preemptions = 0;
  SpeculationStats speculation = {};
  /// Sums over all steps: tokens of the running answers' caches, the rest of
  /// their last pages included and not; and maxRunning, where any decoded.
  u64 heldTokens = 0, reservedTokens = 0, decodeSlots = 0;
};

/// Evaluates requests together, step by step ("iteration-level scheduling", Yu
/// et al., 2022, "Orca", section 4), each step with at most so many rows:
///
/// - Every answer in progress gets its next row. What is left goes to prompts,
///   in chunks, shared evenly (shareRows()).
/// - Where a proposer has drafts for an answer, rows for them are added, as far
///   as the step and free pages allow and as they pay (Speculator); of the
///   answer's tokens those of the draft are taken that the model draws itself.
/// - Requests start in the order of arrival; one more of priority counts like
///   having arrived agingTime earlier.
/// - Pages are taken as rows need them. Where none is free, idle ones of the
///   prefix cache go, then the youngest answer is *preempted*: it gives up its
///   pages, waits again and is evaluated once more, to the same bits. The
///   oldest is never preempted, so every request ends.
///
/// Neither which rows share a step nor drafts ever change an answer's bits
/// (docs/numerics.md). A pure state machine: time and evaluation come from
/// outside. One thread at a time; the executor, the cache and the proposer must
/// outlive it.
class Scheduler {
public:
  using Clock = std::function<Instant()>;

  /// Without a proposer nothing is drafted. Errors: InvalidInput (options
  /// beyond what the executor can).
  static Result<std::unique_ptr<Scheduler>>
  create(StepExecutor &executor, KvCache &cache, SchedulerOptions options,
         Clock now, Proposer *proposer = nullptr);
  ~Scheduler();

  /// Whether a request can be served at all. Any thread. Errors: InvalidInput
  /// (an empty prompt, ids or options out of range, a prompt longer than the
  /// context or than all pages together).
  Result<void> check(const Request &request) const;

  /// Queues a request under an id that no other in here has. `sink` lives until
  /// its last onEnd(). Errors, told at once and not to the sink: those of
  /// check(), Exhausted (the queue is full).
  Result<void> submit(RequestId id, Request request,
                      std::shared_ptr<RequestSink> sink);

  /// Ends a request's answers now and frees their pages. Unknown ids, such as
  /// those of ended requests, are ignored. Not to be called by a sink.
  void cancel(RequestId id);

  /// The same for all requests.
  void cancelAll();

  /// Whether step() would do anything.
  bool hasWork() const { return !all.empty(); }

  /// Evaluates one step and hands its tokens out. An error of the executor is
  /// told to the sinks of the step's requests.
  void step();

  SchedulerStats stats() const;

  /// Most tokens of a sequence.
  u32 context() const { return options.context; }

  const PrefixTree *prefixes() const { return tree.get(); }

  /// True if every page is owned by exactly those that the sequences and the
  /// prefix cache say. Linear time; for tests.
  bool isConsistent() const;

private:
  struct Task;
  struct Answer;
  using Answers = std::list<std::unique_ptr<Answer>>;

  /// A row whose logits are wanted.
  struct WantedRow {
    Answer *answer;
    u32 row;      ///< Of the step.
    u32 position; ///< Of its token.
  };

  Scheduler(StepExecutor &executor, KvCache &cache, SchedulerOptions options,
            Clock now, Proposer *proposer);
  void endLate();
  void start();
  bool canStart(const Answer &answer, u32 running) const;
  void plan();
  static Speculator::Job draftJob(Answer &answer);
  void planDrafts();
  /// Puts rows for a draft behind the answer's row, as far as there are pages
  /// that nobody needs.
  void addDraft(Answer &answer, std::span<const i32> draft);
  /// Makes room for rows of a running answer; younger answers that are not in
  /// the step go for it. False: there is none.
  bool makeRoom(Answer &answer, u32 rows);
  bool forgetSharedTail(Answer &answer);
  Answer *youngestAfter(const Answer &answer) const;
  void preempt(Answer &answer);
  /// Frees idle pages of the prefix cache that extend(rows) needs. Returns how
  /// many.
  u32 evictFor(const Answer &answer, u32 rows);
  void evaluate();
  void fork(Answers::iterator answer);
  static bool isShown(const WantedRow &row);
  static bool isOpen(const WantedRow &row);
  static bool isNext(const WantedRow &row);
  void handOut(std::span<const WantedRow> rows);
  void handOutPicks(std::span<const WantedRow> rows,
                    std::vector<WantedRow> &unpicked);
  static PickArgs argsFor(const WantedRow &row, std::vector<PickEdit> &edits);
  void handOutLogits(std::span<const WantedRow> rows);
  void takeToken(Answer &answer, const Result<PickResult> &picked,
                 std::span<const f32> logits);
  /// Keeps what was right of a checked draft, also for the prefix cache.
  void settleDraft(Answer &answer);
  void end(Answer &answer, End how);
  void sweep();

  StepExecutor *executor;
  KvCache *cache;
  SchedulerOptions options;
  bool isBoundByPages = false; ///< The context is what all pages hold.
  Clock now;
  std::unique_ptr<PrefixTree> tree; ///< Null without a prefix cache.

  Answers all; ///< The first are served first and preempted last.
  std::vector<Answers::iterator> planned;
  std::vector<BatchSequence> batch;
  std::array<std::vector<PickEdit>, maxHeadRows> pickEdits; ///< By row.
  std::optional<Speculator> speculator; ///< If there is a proposer.
  SchedulerStats counts;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SCHEDULE_SCHEDULER_H
