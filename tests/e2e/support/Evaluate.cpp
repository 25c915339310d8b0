#include "tests/e2e/support/Evaluate.h"

#include "runtime/schedule/Generate.h"

#include <algorithm>

using namespace lathe;
using namespace lathe::runtime;

std::vector<std::string> tests::nativeIsas() {
  CpuFeatures cpu = CpuFeatures::detect();
  std::vector<std::string> isas;
  for (const char *isa : {"generic", "avx2", "avx512"})
    if (cpu.supportsIsa(isa))
      isas.emplace_back(isa);
  return isas;
}

Result<codegen::CompileSummary>
tests::compileModel(const std::string &model, const std::string &output,
                    std::span<const std::string> isas,
                    const std::string &kvDtype, bool strict) {
  codegen::CompileOptions options;
  options.strict = strict;
  options.output = output;
  for (const std::string &isa : isas)
    options.targets.push_back("cpu:" + isa);
  options.kvDtype = kvDtype;
  // Tests leave the user's keys alone.
  options.sign = false;
  return latheCompiler()->compile(model, options);
}

Result<std::shared_ptr<const LoadedEngine>>
tests::loadEngine(const std::string &path, std::string_view isa) {
  auto engine = Engine::open(path, {.trustCode = true, .trust = {}});
  if (!engine)
    return failFrom(engine);
  return LoadedEngine::load(std::move(*engine), isa);
}

Result<std::vector<f32>>
tests::logitsOf(const std::shared_ptr<const LoadedEngine> &engine,
                std::span<const i32> tokens, u32 skip, u32 chunk, u32 threads) {
  auto session = Session::create(engine, {.threads = threads,
                                          .context = u32(tokens.size()),
                                          .chunk = chunk,
                                          .poisonFreed = true});
  if (!session)
    return failFrom(session);
  std::vector<f32> logits;
  auto visitor = [&](u32, std::span<const f32> row) {
    logits.insert(logits.end(), row.begin(), row.end());
  };
  if (auto done = (*session)->append(tokens, skip, visitor); !done)
    return failFrom(done);
  return logits;
}

Result<std::vector<f32>> tests::logitsInBatch(const LoadedEngine &engine,
                                              std::span<const i32> tokens,
                                              u32 skip, u32 threads) {
  constexpr u32 sequenceCount = 16, watched = 5, mostRows = 23;
  const StepProgram &program = engine.program();
  auto team = ThreadTeam::create({.threads = threads});
  if (!team)
    return failFrom(team);
  u32 length = u32(tokens.size());
  std::vector<u32> pages =
      KvCache::pagesForSequence(program.groups, length, mostRows);
  for (u32 &count : pages)
    count *= sequenceCount;
  auto cache =
      KvCache::create(program.groups, {.pages = pages, .poisonFreed = true});
  if (!cache)
    return failFrom(cache);
  auto executor = CpuExecutor::create(
      program, {.rows = sequenceCount * mostRows, .sequences = sequenceCount},
      **team, cache->get());
  if (!executor)
    return failFrom(executor);

  // Each sequence has the ids rotated by another distance, and its own pace.
  static_assert(mostRows <= maxHeadRows);
  std::vector<std::vector<i32>> texts(sequenceCount);
  std::vector<SequenceCache> sequences;
  for (u32 s = 0; s < sequenceCount; ++s) {
    texts[s].assign(tokens.begin(), tokens.end());
    if (s != watched)
      std::ranges::rotate(texts[s], texts[s].begin() + (s * 17) % length);
    sequences.emplace_back(**cache, length);
  }
  std::vector<f32> logits;
  for (u32 step = 0; sequences[watched].length() < length; ++step) {
    std::vector<BatchSequence> batch;
    u32 rows = 0;
    std::vector<u32> shown; // rows of the batch
    for (u32 s = 0; s < sequenceCount; ++s) {
      u32 position = sequences[s].length();
      // In turns one row (decode) and several (prefill).
      u32 count = (step + s) % 3 == 0 ? 1 : 1 + (s * 5 + step * 7) % mostRows;
      count = std::min(count, length - position);
      if (count == 0)
        continue;
      if (auto extended = sequences[s].extend(count); !extended)
        return failFrom(extended);
      u32 wanted = s % 3; // more or less than there are
      if (s == watched) {
        u32 skipped = std::clamp(skip, position, position + count) - position;
        wanted = count - skipped;
        for (u32 row = skipped; row < count; ++row)
          shown.push_back(rows + row);
      }
      batch.push_back({&sequences[s],
                       std::span(texts[s]).subspan(position, count), wanted});
      rows += count;
    }
    if (auto done = (*executor)->step(batch); !done)
      return failFrom(done);
    if (shown.empty())
      continue;
    const f32 *values = (*executor)->head(shown);
    logits.insert(logits.end(), values, values + shown.size() * program.vocab);
  }
  return logits;
}

Result<std::vector<i32>>
tests::greedyIds(const std::shared_ptr<const LoadedEngine> &engine,
                 std::span<const i32> prompt, u32 count) {
  auto session = Session::create(engine, {.threads = 1,
                                          .context = u32(prompt.size()) + count,
                                          .poisonFreed = true});
  if (!session)
    return failFrom(session);
  GenerateOptions options;
  options.sampling.temperature = 0;
  options.maxTokens = count;
  auto generation = generate(**session, prompt, options);
  if (!generation)
    return failFrom(generation);
  return generation->tokens;
}
