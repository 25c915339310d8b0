#include "runtime/schedule/ServingEngine.h"
#include "runtime/device/CpuBudget.h"
#include "runtime/device/Memory.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <pthread.h>

namespace lathe::runtime {

/// kvUsage() walks the prefix cache, so it is not asked for in each step.
static constexpr Instant usageInterval = 100'000'000;

Instant ServingEngine::now() {
  return Instant(std::chrono::steady_clock::now().time_since_epoch() /
                 std::chrono::nanoseconds(1));
}

Result<std::unique_ptr<ServingEngine>>
ServingEngine::create(std::shared_ptr<const LoadedEngine> engine,
                      const ServingOptions &options) {
  StepProgram program = engine->program();
  if (!program.kv)
    return fail(ErrorKind::Unsupported,
                "{} has no KV cache and cannot be served; compile it with all "
                "phases",
                engine->engine().path());
  u32 threads = options.threads ? options.threads : CpuBudget::detect().threads;
  auto team = ThreadTeam::create({.threads = threads});
  if (!team)
    return failFrom(team);
  std::unique_ptr<ServingEngine> self(new ServingEngine);
  self->loaded = std::move(engine);
  self->team = std::move(*team);

  // A draft model keeps as many tokens as the model: its KV groups are planned
  // as if they were the model's own, and its buffers like a part of them.
  StepProgram both = program;
  u64 weightBytes = self->loaded->engine().weights().size();
  const DraftWishes &drafts = options.drafts;
  u32 mostTokens = drafts.speculation.mostTokens;
  if (drafts.model) {
    auto checked = DraftEngine::check(*self->loaded, *drafts.model);
    if (!checked)
      return failFrom(checked);
    self->draftWarning = std::move(*checked);
    for (const KvGroupInfo &group :
         DraftEngine::groupsOf(*drafts.model, mostTokens))
      both.groups.push_back(group);
    both.slots.push_back(
        {.constant = CpuExecutor::arenaBytes(
             drafts.model->program(),
             {.rows = std::max(options.stepRows, options.maxRunning),
              .sequences = options.maxRunning},
             threads)});
    weightBytes += drafts.model->engine().weights().size();
  }
  auto plan = MemoryPlan::settleHere(both, threads,
                                     {.context = options.context,
                                      .requests = options.maxRunning,
                                      .stepRows = options.stepRows,
                                      .weightBytes = weightBytes,
                                      .names = options.names},
                                     options.memoryBytes);
  if (!plan)
    return failFrom(plan);
  program.context = plan->context;
  auto ownEnd = plan->pages.begin() + i64(program.groups.size());
  auto cache =
      KvCache::create(program.groups, {.pages = {plan->pages.begin(), ownEnd},
                                       .poisonFreed = options.poisonFreed});
  if (!cache)
    return failFrom(cache);
  self->cache = std::move(*cache);
  auto executor = CpuExecutor::create(
      std::move(program), {.rows = plan->stepRows, .sequences = plan->requests},
      *self->team, self->cache.get());
  if (!executor)
    return failFrom(executor);
  self->executor = std::move(*executor);
  Proposer *proposer = drafts.byLookup ? &self->lookup : nullptr;
  if (drafts.model) {
    auto draft = DraftEngine::create(drafts.model, self->vocab(), *self->team,
                                     {.pages = {ownEnd, plan->pages.end()},
                                      .stepRows = plan->stepRows,
                                      .sequences = plan->requests,
                                      .mostTokens = mostTokens,
                                      .poisonFreed = options.poisonFreed});
    if (!draft)
      return failFrom(draft);
    self->draft = std::move(*draft);
    proposer = &self->draft->proposer();
  }
  auto scheduler = Scheduler::create(*self->executor, *self->cache,
                                     {.context = plan->context,
                                      .maxWaiting = options.maxWaiting,
                                      .mixedRows = options.mixedRows,
                                      .prefixCache = options.prefixCache,
                                      .speculation = drafts.speculation},
                                     now, proposer);
  if (!scheduler)
    return failFrom(scheduler);
  self->scheduler = std::move(*scheduler);
  self->mostAnswers = plan->requests + options.maxWaiting;
  self->settled = std::move(*plan);

  // Signals are for the program's own threads.
  sigset_t allSignals, before;
  sigfillset(&allSignals);
  pthread_sigmask(SIG_SETMASK, &allSignals, &before);
  self->thread = std::thread([engine = self.get()] { engine->work(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return self;
}

ServingEngine::~ServingEngine() { stop(); }

void ServingEngine::stop() {
  {
    std::lock_guard lock(mutex);
    ending = true;
  }
  wakeUp.notify_one();
  if (thread.joinable())
    thread.join();
}

Result<RequestId> ServingEngine::submit(Request request,
                                        std::shared_ptr<RequestSink> sink) {
  if (auto valid = scheduler->check(request); !valid)
    return failFrom(valid);
  RequestId id;
  {
    std::lock_guard lock(mutex);
    if (ending)
      return fail(ErrorKind::Environment, "the engine is being stopped");
    u64 there = u64(published.scheduler.running) + published.scheduler.waiting +
                arrivals.size();
    if (there >= mostAnswers)
      return fail(ErrorKind::Exhausted,
                  "{} answers are being made or waited for already", there);
    id = ++lastId;
    arrivals.push_back({id, std::move(request), std::move(sink)});
  }
  wakeUp.notify_one();
  return id;
}

void ServingEngine::cancel(RequestId id) {
  {
    std::lock_guard lock(mutex);
    cancels.push_back(id);
  }
  wakeUp.notify_one();
}

ServingStats ServingEngine::stats() const {
  std::lock_guard lock(mutex);
  return published;
}

void ServingEngine::takeIn(std::vector<Arrival> &arrived,
                           std::vector<RequestId> &cancelled) {
  for (Arrival &arrival : arrived) {
    u32 branches = arrival.request.branches;
    RequestFacts facts{.promptTokens = u32(arrival.request.prompt.size()),
                       .submitted = now()};
    auto queued =
        scheduler->submit(arrival.id, std::move(arrival.request), arrival.sink);
    // Forks may have filled the queue since submit() looked.
    for (u32 branch = 0; !queued && branch < branches; ++branch)
      arrival.sink->onEnd(
          branch, {.reason = EndReason::Failed, .error = queued.error()},
          facts);
  }
  for (RequestId id : cancelled)
    scheduler->cancel(id);
  arrived.clear();
  cancelled.clear();
}

f64 ServingEngine::kvUsage() const {
  f64 usage = 0;
  for (u32 group = 0; group < cache->groups().size(); ++group) {
    const PagePool &pool = cache->pool(group);
    u32 used = pool.usedPages();
    if (const PrefixTree *tree = scheduler->prefixes())
      used -= tree->idlePages(group);
    usage = std::max(usage, f64(used) / pool.totalPages());
  }
  return usage;
}

void ServingEngine::publish() {
  SchedulerStats stats = scheduler->stats();
  Instant time = now();
  bool isDue = !scheduler->hasWork() || time - usageAt >= usageInterval;
  f64 usage = isDue ? kvUsage() : 0;
  std::lock_guard lock(mutex);
  published.scheduler = stats;
  if (isDue) {
    published.kvUsage = usage;
    usageAt = time;
  }
}

void ServingEngine::work() {
  std::vector<Arrival> arrived;
  std::vector<RequestId> cancelled;
  for (;;) {
    bool isEnding = false;
    {
      std::unique_lock lock(mutex);
      wakeUp.wait(lock, [this] {
        return ending || scheduler->hasWork() || !arrivals.empty() ||
               !cancels.empty();
      });
      arrived.swap(arrivals);
      // They are still there for submit(), which counts.
      published.scheduler.waiting += u32(arrived.size());
      cancelled.swap(cancels);
      isEnding = ending;
    }
    takeIn(arrived, cancelled);
    if (isEnding)
      break;
    if (scheduler->hasWork())
      scheduler->step();
    publish();
  }
  scheduler->cancelAll();
  publish();
}

} // namespace lathe::runtime
