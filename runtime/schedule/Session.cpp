#include "runtime/schedule/Session.h"
#include "runtime/device/CpuBudget.h"
#include "runtime/schedule/MemoryPlan.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <numeric>

namespace lathe::runtime {
namespace {} // namespace

Result<std::unique_ptr<Session>>
Session::create(std::shared_ptr<const LoadedEngine> engine,
                const SessionOptions &options) {
  auto session = create(engine->program(), options);
  if (!session)
    return failFrom(session, engine->engine().path());
  (*session)->engine = std::move(engine);
  return session;
}

Result<std::unique_ptr<Session>>
Session::create(StepProgram program, const SessionOptions &options) {
  u32 threads = options.threads ? options.threads : CpuBudget::detect().threads;
  auto team = ThreadTeam::create({.threads = threads});
  if (!team)
    return failFrom(team);

  std::vector<MemoryLimit> limits{{.budget = MemoryBudget::detect()}};
  if (options.kvBytes != 0)
    limits.insert(limits.begin(),
                  {.budget = {options.kvBytes, options.names.kvBytes},
                   .countsArena = false,
                   .option = options.names.kvBytes});
  auto plan = MemoryPlan::settle(program, threads,
                                 {.context = options.context,
                                  .stepRows = options.chunk,
                                  .names = {.context = options.names.context,
                                            .stepRows = options.names.chunk}},
                                 limits);
  if (!plan)
    return failFrom(plan);
  program.context = plan->context;

  std::unique_ptr<Session> session(new Session);
  session->team = std::move(*team);
  session->limit = plan->context;
  session->note = std::move(plan->notice);
  if (program.kv) {
    auto cache =
        KvCache::create(program.groups, {.pages = plan->pages,
                                         .poisonFreed = options.poisonFreed});
    if (!cache)
      return failFrom(cache);
    session->cache = std::move(*cache);
    session->sequence =
        std::make_unique<SequenceCache>(*session->cache, program.context);
  }
  auto executor =
      CpuExecutor::create(std::move(program), {.rows = plan->stepRows},
                          *session->team, session->cache.get());
  if (!executor)
    return failFrom(executor);
  session->executor = std::move(*executor);
  session->history.reserve(session->limit);
  return session;
}

Result<void> Session::checkTokens(std::span<const i32> tokens,
                                  u32 start) const {
  if (tokens.size() > limit - start)
    return fail(ErrorKind::InvalidInput,
                "{} tokens do not fit the context of {} tokens",
                start + tokens.size(), limit);
  for (i32 token : tokens)
    if (token < 0 || u32(token) >= vocab())
      return fail(ErrorKind::InvalidInput,
                  "token id {} is not in the vocabulary of {}", token, vocab());
  return {};
}

Result<u32> Session::step(std::span<const i32> tokens, u32 wantedFrom) {
  hasLogits = false;
  auto wantedUntil = [wantedFrom](size_t end) {
    return end > wantedFrom ? u32(end - wantedFrom) : 0;
  };
  if (!sequence) {
    stepStart = 0;
    history.insert(history.end(), tokens.begin(), tokens.end());
    BatchSequence whole{nullptr, history, wantedUntil(history.size())};
    if (auto result = executor->step({&whole, 1}); !result) {
      history.resize(history.size() - tokens.size());
      return failFrom(result);
    }
    return u32(tokens.size());
  }
  u32 count = u32(std::min<u64>(tokens.size(), executor->capacities().rows));
  if (auto extended = sequence->extend(count); !extended)
    return failFrom(extended);
  stepStart = u32(history.size());
  BatchSequence part{sequence.get(), tokens.first(count),
                     wantedUntil(stepStart + count)};
  if (auto result = executor->step({&part, 1}); !result) {
    sequence->truncate(stepStart);
    return failFrom(result);
  }
  history.insert(history.end(), tokens.begin(), tokens.begin() + count);
  return count;
}

Result<void> Session::append(std::span<const i32> tokens, u32 skip,
                             const LogitsVisitor &visitor) {
  if (auto checked = checkTokens(tokens, u32(history.size())); !checked)
    return checked;
  u32 firstShown = u32(history.size()) + skip;
  u32 last = u32(history.size() + tokens.size()) - 1;
  while (!tokens.empty()) {
    auto done = step(tokens, visitor ? std::min(firstShown, last) : last);
    if (!done)
      return failFrom(done);
    tokens = tokens.subspan(*done);
    if (!visitor)
      continue;
    u32 end = u32(history.size());
    for (u32 position = std::max(firstShown, end - *done); position < end;) {
      u32 count = std::min(maxHeadRows, end - position);
      std::array<u32, maxHeadRows> rows;
      std::iota(rows.begin(), rows.begin() + count, rowOf(position));
      const f32 *slice = executor->head({rows.data(), count});
      for (u32 i = 0; i < count; ++i)
        visitor(position + i, {slice + u64(i) * vocab(), vocab()});
      position += count;
    }
  }
  return {};
}

Result<u32> Session::replaceBy(std::span<const i32> tokens,
                               const std::function<bool()> &stop) {
  assert(!tokens.empty());
  u32 common = u32(std::mismatch(tokens.begin(), tokens.end(), history.begin(),
                                 history.end())
                       .first -
                   tokens.begin());
  // The last token's logits must be computed, so its row is.
  common = std::min(common, u32(tokens.size()) - 1);
  if (common < history.size() && sequence && !sequence->canTruncate(common))
    common = 0;
  auto rest = tokens.subspan(common);
  if (auto checked = checkTokens(rest, common); !checked)
    return failFrom(checked);
  if (common < history.size()) {
    if (sequence)
      sequence->truncate(common);
    history.resize(common);
    hasLogits = false;
  }
  while (!rest.empty() && !(stop && stop())) {
    auto done = step(rest, u32(tokens.size()) - 1);
    if (!done)
      return failFrom(done);
    rest = rest.subspan(*done);
  }
  return u32(tokens.size() - rest.size()) - common;
}

std::span<const f32> Session::logits() {
  assert(!history.empty());
  if (!hasLogits) {
    u32 row = rowOf(u32(history.size()) - 1);
    lastLogits = executor->head({&row, 1});
    hasLogits = true;
  }
  return {lastLogits, vocab()};
}

Result<PickResult> Session::pick(const PickArgs &args) {
  assert(!history.empty());
  if (executor->canPick() && args.topK <= maxPickTopK && pickTrial.isWorth() &&
      !hasLogits) {
    u32 row = rowOf(u32(history.size()) - 1);
    PickResult picked = executor->pick({&row, 1}, {&args, 1}).front();
    pickTrial.learn(picked, vocab());
    if (picked.token >= 0)
      return picked;
  }
  return pickFromLogits(logits(), args, scratch);
}

Result<void> Session::truncate(u32 length) {
  assert(length <= history.size());
  if (length == history.size())
    return {};
  if (length == 0) {
    if (sequence)
      sequence->truncate(0);
    history.clear();
    hasLogits = false;
    return {};
  }
  // Evaluating the last token that stays brings its logits back.
  std::vector<i32> kept(history.begin(), history.begin() + length);
  auto replaced = replaceBy(kept);
  if (!replaced)
    return failFrom(replaced);
  return {};
}

} // namespace lathe::runtime
