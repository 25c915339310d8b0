#include "runtime/schedule/TracedSteps.h"

#include "runtime/device/CpuBudget.h"
#include "runtime/device/Memory.h"
#include "runtime/engine/Validate.h"
#include "runtime/schedule/AnyToken.h"
#include "runtime/support/Checked.h"

#include <algorithm>

namespace lathe::runtime {
namespace {

/// Rows of a step that fills the caches.
constexpr u32 fillRows = 512;

u64 timeStamp() { return __builtin_ia32_rdtsc(); }

} // namespace

Result<std::unique_ptr<TracedSteps>>
TracedSteps::create(std::shared_ptr<const LoadedEngine> engine,
                    const Options &options) {
  StepProgram program = engine->program();
  if (!program.kv)
    return fail(ErrorKind::Unsupported,
                "{}: compiled without a KV cache; it has no steps at a depth",
                engine->engine().path());
  if (options.sequences == 0 || options.sequences > maxHeadRows ||
      options.rows == 0)
    return fail(ErrorKind::InvalidInput,
                "{} sequences of {} rows were asked for; a step takes 1 to {}, "
                "each with a row or more",
                options.sequences, options.rows, maxHeadRows);
  u64 context = u64(options.depth) + options.rows;
  if (context > program.context)
    return fail(ErrorKind::InvalidInput,
                "{} tokens behind {} were asked for; this engine's context is "
                "{} tokens; lower --context or --prefill",
                options.rows, options.depth, program.context);
  program.context = u32(context);
  u64 rows = u64(options.sequences) * options.rows;
  u32 stepRows = std::max(options.rows, std::min(options.depth, fillRows));
  u32 capacity = u32(std::min<u64>(std::max<u64>(rows, stepRows), ~0u));
  u32 threads = options.threads ? options.threads : CpuBudget::detect().threads;

  std::vector<u32> pages =
      KvCache::pagesForSequence(program.groups, u32(context), stepRows);
  bool countable = rows <= capacity;
  for (u32 &count : pages) {
    auto all = checkedMul<u32>(count, options.sequences);
    countable &= all.has_value();
    count = all.value_or(~0u);
  }
  CpuExecutor::Capacities capacities = {.rows = capacity,
                                        .sequences = options.sequences};
  auto needed =
      checkedAdd<u64>(KvCache::bytesFor(program.groups, pages),
                      CpuExecutor::arenaBytes(program, capacities, threads));
  if (auto fits = MemoryBudget::detect().check(
          countable ? needed.value_or(~u64(0)) : ~u64(0),
          "the step (KV cache and buffers)", "lower --context or --batch");
      !fits)
    return failFrom(fits);

  std::unique_ptr<TracedSteps> steps(new TracedSteps);
  steps->options = options;
  auto team = ThreadTeam::create({.threads = threads});
  if (!team)
    return failFrom(team);
  steps->team = std::move(*team);
  auto cache = KvCache::create(program.groups, {.pages = pages});
  if (!cache)
    return failFrom(cache);
  steps->cache = std::move(*cache);
  u32 vocab = program.vocab;
  auto executor = CpuExecutor::create(std::move(program), capacities,
                                      *steps->team, steps->cache.get());
  if (!executor)
    return failFrom(executor);
  steps->executor = std::move(*executor);
  for (u32 s = 0; s < options.sequences; ++s) {
    steps->sequences.emplace_back(*steps->cache, u32(context));
    for (u32 row = 0; row < options.rows; ++row)
      steps->tokens.push_back(anyToken(s, options.depth + row, vocab));
    steps->headRows.push_back((s + 1) * options.rows - 1);
  }
  for (u32 s = 0; s < options.sequences; ++s)
    steps->batch.push_back(
        {&steps->sequences[s],
         std::span(steps->tokens).subspan(u64(s) * options.rows, options.rows),
         /*wanted=*/1});
  steps->engine = std::move(engine);
  return steps;
}

Result<void> TracedSteps::extendAll(u32 rows) {
  for (SequenceCache &sequence : sequences)
    if (auto extended = sequence.extend(rows); !extended)
      return extended;
  return {};
}

Result<void> TracedSteps::prepare(const std::function<bool(u32)> &stop) {
  std::vector<i32> text(options.depth);
  for (u32 i = 0; i < options.depth; ++i)
    text[i] = anyToken(0, i, executor->stepProgram().vocab);
  for (u32 done = 0; done < options.depth && !(stop && stop(done));) {
    u32 count =
        std::min({options.depth - done, executor->capacities().rows, fillRows});
    if (auto extended = extendAll(count); !extended)
      return extended;
    BatchSequence part{&sequences[0], std::span(text).subspan(done, count),
                       /*wanted=*/0};
    if (auto ran = executor->step({&part, 1}); !ran)
      return ran;
    done += count;
  }
  copyCaches();
  return {};
}

/// All sequences have pages at the same places.
void TracedSteps::copyCaches() {
  const auto &groups = executor->stepProgram().groups;
  for (u32 group = 0; group < groups.size(); ++group) {
    PagePool &pool = cache->pool(group);
    auto from = sequences[0].pages(group);
    for (size_t s = 1; s < sequences.size(); ++s) {
      auto to = sequences[s].pages(group);
      for (size_t i = 0; i < from.size(); ++i)
        if (from[i] != reservedPage && to[i] != reservedPage)
          pool.copy(to[i], from[i]);
    }
  }
}

Result<void> TracedSteps::run(StepTrace &trace) {
  trace.begin = timeStamp();
  if (auto extended = extendAll(options.rows); !extended)
    return extended;
  auto ran = executor->step(batch, trace.body.data());
  if (ran)
    executor->head(headRows, trace.head.data());
  trace.end = timeStamp();
  for (SequenceCache &sequence : sequences)
    sequence.truncate(options.depth);
  return ran;
}

StepTrace TracedSteps::newTrace() const {
  StepTrace trace;
  for (const auto *entry : *engine->manifestProgram().entries()) {
    std::string_view name = viewOf(entry->name());
    size_t stamps = size_t(entry->launches()->size()) * threads() * 2;
    if (name == "body")
      trace.body.resize(stamps);
    else if (name == "head")
      trace.head.resize(stamps);
  }
  return trace;
}

StepShape TracedSteps::shape() const {
  StepShape shape;
  shape.sequences.assign(sequences.size(),
                         {.start = options.depth, .rows = options.rows});
  shape.headRows = u32(headRows.size());
  return shape;
}

} // namespace lathe::runtime
