#include "runtime/schedule/Scheduler.h"
#include "runtime/schedule/Answer.h"
#include "runtime/schedule/ShareRows.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>

namespace lathe::runtime {

/// Either way; so that it can be counted in nanoseconds of waiting.
static constexpr i64 priorityMax = 1000;

Result<std::unique_ptr<Scheduler>>
Scheduler::create(StepExecutor &executor, KvCache &cache,
                  SchedulerOptions options, Clock now, Proposer *proposer) {
  const StepExecutor::Capacities &most = executor.capacities();
  if (options.maxRunning == 0)
    options.maxRunning = most.sequences;
  if (options.maxRunning > most.sequences || options.maxRunning > most.rows)
    return fail(ErrorKind::InvalidInput,
                "{} answers cannot run together in steps of {} rows and {} "
                "sequences",
                options.maxRunning, most.rows, most.sequences);
  options.mixedRows = std::clamp(options.mixedRows, 1u, most.rows);
  auto fits = [&](u32 context) {
    auto pages = KvCache::pagesForSequence(cache.groups(), context, most.rows);
    for (u32 group = 0; group < pages.size(); ++group)
      if (pages[group] > cache.pool(group).totalPages())
        return false;
    return true;
  };
  u32 low = 0, high = options.context;
  while (low < high) {
    u32 middle = low + (high - low + 1) / 2;
    if (fits(middle))
      low = middle;
    else
      high = middle - 1;
  }
  if (low == 0)
    return fail(ErrorKind::InvalidInput,
                "the KV cache is too small for any sequence");
  bool isBoundByPages = low < options.context;
  options.context = low;
  std::unique_ptr<Scheduler> scheduler(
      new Scheduler(executor, cache, options, std::move(now), proposer));
  scheduler->isBoundByPages = isBoundByPages;
  return scheduler;
}

Scheduler::Scheduler(StepExecutor &executor, KvCache &cache,
                     SchedulerOptions options, Clock now, Proposer *proposer)
    : executor(&executor), cache(&cache), options(options),
      now(std::move(now)) {
  if (proposer)
    speculator.emplace(*proposer, options.speculation, executor.vocab(),
                       this->now);
  if (options.prefixCache)
    tree = std::make_unique<PrefixTree>(cache);
}

Scheduler::~Scheduler() = default;

Result<void> Scheduler::check(const Request &request) const {
  if (request.prompt.empty())
    return fail(ErrorKind::InvalidInput,
                "the prompt has no tokens, not even a begin token");
  if (request.prompt.size() > options.context)
    return fail(ErrorKind::InvalidInput, "the prompt has {} tokens; {} {}",
                request.prompt.size(),
                isBoundByPages ? "the KV cache has pages for"
                               : "the context is",
                options.context);
  for (i32 token : request.prompt)
    if (token < 0 || u32(token) >= executor->vocab())
      return fail(ErrorKind::InvalidInput,
                  "token {} is not in the vocabulary of {}", token,
                  executor->vocab());
  if (request.branches == 0 || request.branches > options.maxRunning)
    return fail(ErrorKind::InvalidInput,
                "{} answers were asked for; 1 to {} are possible",
                request.branches, options.maxRunning);
  if (std::abs(i64(request.priority)) > priorityMax)
    return fail(ErrorKind::InvalidInput,
                "priority {} is out of range; {} to {} are possible",
                request.priority, -priorityMax, priorityMax);
  if (auto sampler = Sampler::create(request.sampling, executor->vocab());
      !sampler)
    return failFrom(sampler);
  return {};
}

Result<void> Scheduler::submit(RequestId id, Request request,
                               std::shared_ptr<RequestSink> sink) {
  if (auto valid = check(request); !valid)
    return valid;
  auto sampler = Sampler::create(request.sampling, executor->vocab());
  if (all.size() >= u64(options.maxRunning) + options.maxWaiting)
    return fail(ErrorKind::Exhausted,
                "{} answers are being made or waited for already", all.size());
  auto task = std::make_shared<Task>();
  task->id = id;
  task->facts.promptTokens = u32(request.prompt.size());
  task->facts.submitted = now();
  task->due = i64(task->facts.submitted) -
              i64(request.priority) * i64(options.agingTime);
  task->sink = std::move(sink);
  auto answer = std::make_unique<Answer>(Answer{.task = task,
                                                .branch = 0,
                                                .sampler = std::move(*sampler),
                                                .tokens = request.prompt});
  answer->stands = request.branches > 1;
  task->request = std::move(request);
  auto later = std::ranges::find_if(
      all, [&](const auto &other) { return other->task->due > task->due; });
  all.insert(later, std::move(answer));
  return {};
}

void Scheduler::cancel(RequestId id) {
  for (const auto &answer : all)
    if (answer->task->id == id)
      end(*answer, {.reason = EndReason::Cancelled});
  sweep();
}

void Scheduler::cancelAll() {
  for (const auto &answer : all)
    end(*answer, {.reason = EndReason::Cancelled});
  sweep();
}

SchedulerStats Scheduler::stats() const {
  SchedulerStats stats = counts;
  if (speculator)
    stats.speculation = speculator->stats();
  for (const auto &answer : all)
    ++(answer->isRunning() ? stats.running : stats.waiting);
  return stats;
}

void Scheduler::step() {
  endLate();
  start();
  plan();
  if (!planned.empty())
    evaluate();
  sweep();
}

void Scheduler::endLate() {
  Instant time = now();
  for (const auto &answer : all)
    if (auto deadline = answer->task->request.deadline;
        deadline && *deadline < time)
      end(*answer, {.reason = EndReason::Deadline});
  sweep();
}

/// Whether its tokens and the next of each running answer find pages.
bool Scheduler::canStart(const Answer &answer, u32 running) const {
  auto pages = KvCache::pagesForSequence(
      cache->groups(), u32(answer.tokens.size()), executor->capacities().rows);
  for (u32 group = 0; group < pages.size(); ++group) {
    u64 there = cache->pool(group).freePages();
    u64 wanted = u64(pages[group]) + running;
    if (there < wanted && tree)
      there += tree->idlePages(group);
    if (there < wanted && running != 0)
      return false;
  }
  return true;
}

void Scheduler::start() {
  u32 running = 0;
  for (const auto &answer : all)
    if (answer->isRunning())
      running += answer->slots();
  for (const auto &answer : all) {
    if (answer->isRunning())
      continue;
    // Nobody overtakes who cannot start.
    if (running + answer->slots() > options.maxRunning ||
        !canStart(*answer, running))
      return;
    Task &task = *answer->task;
    answer->sequence.emplace(*cache, options.context);
    if (tree) {
      // At least one token is evaluated, for its logits.
      u32 most = task.request.showPromptLogits &&
                         answer->promptShown + 1 < task.facts.promptTokens
                     ? 0
                     : u32(answer->tokens.size()) - 1;
      answer->place = tree->match(task.request.cacheSalt, answer->tokens, most,
                                  *answer->sequence);
      counts.queriedTokens += answer->tokens.size();
      counts.cachedTokens += answer->sequence->length();
      if (task.facts.started == 0)
        task.facts.cachedTokens = answer->sequence->length();
    }
    if (task.facts.started == 0)
      task.facts.started = now();
    running += answer->slots();
  }
}

void Scheduler::plan() {
  planned.clear();
  std::vector<u32> wants;
  u32 decodes = 0;
  for (const auto &answer : all) {
    answer->rows = 0;
    if (!answer->isRunning())
      continue;
    if (answer->pending() == 1)
      ++decodes;
    else
      wants.push_back(answer->pending());
  }
  u32 left = executor->capacities().rows - decodes;
  std::vector<u32> shares =
      shareRows(decodes != 0 ? std::min(left, options.mixedRows) : left, wants);
  auto share = shares.begin();
  // In order, so that who makes room preempts only who is not in the step yet.
  for (auto at = all.begin(); at != all.end(); ++at) {
    Answer &answer = **at;
    if (!answer.isRunning())
      continue;
    bool isDecode = answer.pending() == 1;
    u32 rows = isDecode ? 1 : *share++;
    // What does not fit ends with an earlier page.
    while (rows != 0 && !makeRoom(answer, rows))
      rows -= std::min(rows,
                       (answer.sequence->length() + rows - 1) % pageTokens + 1);
    if (rows == 0) {
      if (isDecode)
        preempt(answer);
      continue;
    }
    [[maybe_unused]] auto extended = answer.sequence->extend(rows);
    assert(extended);
    answer.rows = rows;
    planned.push_back(at);
  }
  if (speculator)
    planDrafts();
}

Speculator::Job Scheduler::draftJob(Answer &answer) {
  return {.sequence = &answer.speculation,
          .salt = answer.task->request.cacheSalt,
          .tokens = answer.tokens,
          .sampler = &answer.sampler,
          .most = 0};
}

/// After all other rows have their pages, so that nobody goes without for a
/// draft.
void Scheduler::planDrafts() {
  std::vector<Speculator::Job> jobs;
  std::vector<Answer *> drafting;
  u32 rows = 0;
  for (auto at : planned) {
    Answer &answer = **at;
    rows += answer.rows;
    if (answer.rows != 1 || answer.pending() != 0 || answer.answered() == 0)
      continue;
    // The last token of an answer is never evaluated.
    u32 most = std::min(answer.task->request.maxTokens - answer.answered(),
                        options.context - u32(answer.tokens.size()));
    drafting.push_back(&answer);
    jobs.push_back(draftJob(answer));
    jobs.back().most = most - 1;
  }
  speculator->propose(jobs, rows, executor->capacities().rows - rows);
  for (u32 i = 0; i < jobs.size(); ++i)
    if (!jobs[i].draft.empty())
      addDraft(*drafting[i], jobs[i].draft);
}

void Scheduler::addDraft(Answer &answer, std::span<const i32> draft) {
  SequenceCache &sequence = *answer.sequence;
  u32 first = sequence.length() - 1;
  // Rows that can be undone must come with one extend().
  sequence.truncate(first);
  u32 rows = 1 + u32(draft.size());
  while (!sequence.canExtend(rows))
    if (evictFor(answer, rows) == 0) // What does not fit ends with a page.
      rows -= std::min(rows - 1, (first + rows - 1) % pageTokens + 1);
  [[maybe_unused]] auto extended = sequence.extend(rows);
  assert(extended);
  if (rows == 1)
    return;
  answer.rows = rows;
  answer.accepted = 0;
  answer.isOffDraft = false;
  answer.draftRows.assign({answer.tokens.back()});
  answer.draftRows.insert(answer.draftRows.end(), draft.begin(),
                          draft.begin() + rows - 1);
}

u32 Scheduler::evictFor(const Answer &answer, u32 rows) {
  u32 freed = 0;
  for (u32 group = 0; tree && group < cache->groups().size(); ++group)
    if (u32 missing = answer.sequence->missingPages(group, rows))
      freed += tree->evict(group, missing);
  return freed;
}

bool Scheduler::makeRoom(Answer &answer, u32 rows) {
  while (!answer.sequence->canExtend(rows)) {
    // What it gives back may be left to the prefix cache alone, and be evicted.
    answer.sequence->giveBack();
    if (evictFor(answer, rows) != 0)
      continue;
    if (Answer *victim = youngestAfter(answer))
      preempt(*victim);
    else if (!forgetSharedTail(answer))
      return false;
  }
  return true;
}

/// Of a tail page that it shares with the prefix cache, an answer needs a copy.
/// Where there is no page for one, its tokens are evaluated again instead.
bool Scheduler::forgetSharedTail(Answer &answer) {
  SequenceCache &sequence = *answer.sequence;
  u32 length = sequence.length(), whole = length - length % pageTokens;
  bool isShared = false;
  for (u32 group = 0; group < cache->groups().size() && whole != length;
       ++group)
    isShared |= cache->pool(group).references(
                    sequence.pages(group)[whole / pageTokens]) > 1;
  if (!isShared)
    return false;
  if (sequence.canTruncate(whole)) {
    sequence.truncate(whole);
  } else {
    sequence.truncate(0);
    if (tree)
      answer.place = tree->match(answer.task->request.cacheSalt, answer.tokens,
                                 0, sequence);
  }
  return true;
}

Scheduler::Answer *Scheduler::youngestAfter(const Answer &answer) const {
  for (auto at = all.rbegin(); at->get() != &answer; ++at)
    if ((*at)->isRunning())
      return at->get();
  return nullptr;
}

void Scheduler::preempt(Answer &answer) {
  assert(answer.rows == 0);
  answer.sequence.reset();
  answer.speculation.state.reset();
  answer.place.leave();
  ++counts.preemptions;
}

void Scheduler::end(Answer &answer, End how) {
  if (answer.ended)
    return;
  answer.ended = true;
  if (!answer.draftRows.empty() && how.reason != EndReason::Failed)
    settleDraft(answer);
  answer.draftRows.clear();
  answer.sequence.reset();
  answer.speculation.state.reset();
  answer.place.leave();
  const Task &task = *answer.task;
  u32 branches = answer.stands ? task.request.branches : 1;
  for (u32 i = 0; i < branches; ++i)
    task.sink->onEnd(answer.branch + i, how, task.facts);
}

void Scheduler::sweep() {
  std::erase_if(all, [](const auto &answer) { return answer->ended; });
}

bool Scheduler::isConsistent() const {
  if (!cache->isConsistent() || (tree && !tree->isConsistent()))
    return false;
  for (u32 group = 0; group < cache->groups().size(); ++group) {
    const PagePool &pool = cache->pool(group);
    std::vector<u32> owners(u64(pool.totalPages()) + 1);
    for (const auto &answer : all)
      if (answer->isRunning())
        for (PageId page : answer->sequence->pages(group))
          ++owners[page];
    if (tree)
      tree->countPages(group, owners);
    for (PageId page = reservedPage + 1; page < owners.size(); ++page)
      if (owners[page] != pool.references(page))
        return false;
  }
  return true;
}

} // namespace lathe::runtime
