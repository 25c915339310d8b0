#include "runtime/schedule/Scheduler.h"
#include "runtime/schedule/ShareRows.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdlib>

namespace lathe::runtime {

/// Either way; so that it can be counted in nanoseconds of waiting.
static constexpr i64 priorityMax = 1000;

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

  bool isRunning() const { return sequence.has_value(); }
  u32 pending() const { return u32(tokens.size()) - sequence->length(); }
  u32 answered() const { return u32(tokens.size()) - task->facts.promptTokens; }
  u32 slots() const { return stands ? task->request.branches : 1; }
};

Result<std::unique_ptr<Scheduler>> Scheduler::create(StepExecutor &executor,
                                                     KvCache &cache,
                                                     SchedulerOptions options,
                                                     Clock now) {
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
      new Scheduler(executor, cache, options, std::move(now)));
  scheduler->isBoundByPages = isBoundByPages;
  return scheduler;
}

Scheduler::Scheduler(StepExecutor &executor, KvCache &cache,
                     SchedulerOptions options, Clock now)
    : executor(&executor), cache(&cache), options(options),
      now(std::move(now)) {
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
}

bool Scheduler::makeRoom(Answer &answer, u32 rows) {
  while (!answer.sequence->canExtend(rows)) {
    // What it gives back may be left to the prefix cache alone, and be evicted.
    answer.sequence->giveBack();
    u32 freed = 0;
    for (u32 group = 0; tree && group < cache->groups().size(); ++group)
      if (u32 missing = answer.sequence->missingPages(group, rows))
        freed += tree->evict(group, missing);
    if (freed != 0)
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
  answer.place.leave();
  ++counts.preemptions;
}

void Scheduler::evaluate() {
  batch.clear();
  u64 promptRows = 0, decodeRows = 0;
  for (auto at : planned) {
    Answer &answer = **at;
    const Request &request = answer.task->request;
    u32 first = answer.sequence->length() - answer.rows;
    bool isWhole = answer.pending() == 0;
    u32 wanted = isWhole && request.maxTokens != 0 ? 1 : 0;
    if (request.showPromptLogits &&
        answer.promptShown + 1 < answer.task->facts.promptTokens)
      wanted = answer.rows;
    batch.push_back(
        {.cache = &*answer.sequence,
         .tokens = std::span(answer.tokens).subspan(first, answer.rows),
         .wanted = wanted});
    promptRows += answer.answered() == 0 || answer.rows > 1 ? answer.rows : 0;
    decodeRows += answer.answered() != 0 && answer.rows == 1;
  }
  counts.promptRows += promptRows;
  counts.decodeRows += decodeRows;
  counts.decodeSlots += decodeRows != 0 ? options.maxRunning : 0;
  for (const auto &answer : all)
    if (answer->isRunning()) {
      u32 length = answer->sequence->length();
      counts.heldTokens += length;
      counts.reservedTokens +=
          (length + pageTokens - 1) / pageTokens * pageTokens;
    }
  ++counts.steps;
  if (auto done = executor->step(batch); !done) {
    for (auto at : planned)
      end(**at, {.reason = EndReason::Failed, .error = done.error()});
    return;
  }

  std::vector<WantedRow> rows;
  std::vector<Answer *> done; // that are no more than their prompt
  u32 firstRow = 0;
  for (u32 i = 0; i < planned.size(); ++i) {
    auto at = planned[i];
    Answer &answer = **at;
    u32 first = answer.sequence->length() - answer.rows;
    if (tree)
      tree->extend(answer.place, answer.tokens, *answer.sequence);
    u32 shown = answer.task->request.showPromptLogits
                    ? answer.task->facts.promptTokens - 1
                    : 0;
    for (u32 position = std::max(first, answer.promptShown);
         position < std::min(first + answer.rows, shown); ++position)
      rows.push_back({&answer, firstRow + position - first, position});
    if (answer.pending() == 0) {
      auto last = at;
      if (answer.stands) {
        fork(at);
        std::advance(last, answer.task->request.branches - 1);
      }
      for (auto each = at;; ++each) {
        if (answer.task->request.maxTokens == 0 ||
            answer.tokens.size() == options.context)
          done.push_back(each->get());
        else
          rows.push_back({each->get(), firstRow + answer.rows - 1,
                          first + answer.rows - 1});
        if (each == last)
          break;
      }
    }
    firstRow += answer.rows;
  }
  handOut(rows);
  for (Answer *answer : done)
    end(*answer, {.reason = EndReason::Length});
}

void Scheduler::fork(Answers::iterator answer) {
  Answer &first = **answer;
  const Task &task = *first.task;
  first.stands = false;
  auto behind = std::next(answer);
  for (u32 branch = 1; branch < task.request.branches; ++branch) {
    SamplerOptions sampling = task.request.sampling;
    sampling.seed += branch;
    auto sampler = Sampler::create(std::move(sampling), executor->vocab());
    auto other = std::make_unique<Answer>(Answer{.task = first.task,
                                                 .branch = branch,
                                                 .sampler = std::move(*sampler),
                                                 .tokens = first.tokens});
    other->sequence.emplace(first.sequence->fork());
    if (tree)
      other->place = first.place.copy();
    other->promptShown = task.facts.promptTokens; // The first one shows it.
    all.insert(behind, std::move(other));
  }
}

/// Calls body with parts of at most maxHeadRows rows.
static void inParts(const auto &rows, auto body) {
  for (std::span left(rows); !left.empty();) {
    auto part = left.first(std::min<size_t>(left.size(), maxHeadRows));
    left = left.subspan(part.size());
    body(part);
  }
}

void Scheduler::handOut(std::span<const WantedRow> rows) {
  std::vector<WantedRow> whole, picks;
  for (const WantedRow &row : rows) {
    const Answer &answer = *row.answer;
    bool isPick = executor->canPick() && !answer.task->request.showLogits &&
                  !answer.sampler.hasTopP() &&
                  answer.sampler.options().topK <= maxPickTopK &&
                  row.position + 1 == answer.tokens.size();
    (isPick ? picks : whole).push_back(row);
  }
  // Prompt logits come before an answer's token.
  inParts(whole, [this](auto part) { handOutLogits(part); });
  std::vector<WantedRow> unpicked;
  inParts(picks, [&](auto part) { handOutPicks(part, unpicked); });
  inParts(unpicked, [this](auto part) { handOutLogits(part); });
}

void Scheduler::handOutPicks(std::span<const WantedRow> rows,
                             std::vector<WantedRow> &unpicked) {
  std::array<u32, maxHeadRows> numbers;
  std::array<PickArgs, maxHeadRows> args;
  for (size_t i = 0; i < rows.size(); ++i) {
    numbers[i] = rows[i].row;
    args[i] = rows[i].answer->sampler.argsFor(rows[i].answer->tokens);
  }
  auto picked = executor->pick(std::span(numbers).first(rows.size()),
                               std::span(args).first(rows.size()));
  for (size_t i = 0; i < rows.size(); ++i)
    if (picked[i].token < 0)
      unpicked.push_back(rows[i]);
    else
      takeToken(*rows[i].answer, picked[i], {});
}

void Scheduler::handOutLogits(std::span<const WantedRow> rows) {
  std::array<u32, maxHeadRows> numbers;
  for (size_t i = 0; i < rows.size(); ++i)
    numbers[i] = rows[i].row;
  const f32 *logits = executor->head(std::span(numbers).first(rows.size()));
  u32 vocab = executor->vocab();
  for (size_t i = 0; i < rows.size(); ++i) {
    Answer &answer = *rows[i].answer;
    std::span<const f32> own(logits + i * vocab, vocab);
    if (rows[i].position + 1 < answer.task->facts.promptTokens) {
      answer.task->sink->onPromptLogits(rows[i].position, own);
      answer.promptShown = rows[i].position + 1;
    }
    if (rows[i].position + 1 == answer.tokens.size())
      takeToken(answer, answer.sampler.sample(own, answer.tokens),
                answer.task->request.showLogits ? own : std::span<const f32>());
  }
}

void Scheduler::takeToken(Answer &answer, const Result<PickResult> &picked,
                          std::span<const f32> logits) {
  if (!picked)
    return end(answer, {.reason = EndReason::Failed, .error = picked.error()});
  const Request &request = answer.task->request;
  if (std::ranges::count(request.stopTokens, picked->token) != 0)
    return end(answer, {.reason = EndReason::Stop});
  u32 position = u32(answer.tokens.size());
  answer.tokens.push_back(picked->token);
  ++counts.tokens;
  if (!answer.task->sink->onToken(answer.branch,
                                  {picked->token, position, logits}))
    return end(answer, {.reason = EndReason::Stop});
  if (answer.answered() == request.maxTokens ||
      answer.tokens.size() == options.context)
    end(answer, {.reason = EndReason::Length});
}

void Scheduler::end(Answer &answer, End how) {
  if (answer.ended)
    return;
  answer.ended = true;
  answer.sequence.reset();
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
