#include "tests/e2e/seeded/SeededModel.h"

#include "runtime/schedule/Generate.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

using namespace lathe;
using namespace lathe::runtime;

extern "C" const codegen::CompilerApi *latheCompiler();

namespace {

constexpr const char *goldenFolder = "tests/golden/seeded/";

const nlohmann::json &goldenJson() {
  static const nlohmann::json json = [] {
    std::ifstream in(std::string(goldenFolder) + "golden.json");
    return nlohmann::json::parse(in);
  }();
  return json;
}

} // namespace

std::vector<std::string> tests::seededNames() {
  std::vector<std::string> names;
  for (const auto &[name, entry] : goldenJson().at("cases").items())
    names.push_back(name);
  return names;
}

tests::Golden tests::readGolden(const std::string &name) {
  const nlohmann::json &json = goldenJson(), &entry = json.at("cases").at(name);
  Golden golden;
  json.at("tokens").get_to(golden.tokens);
  json.at("prompt_tokens").get_to(golden.promptTokens);
  json.at("logits_positions").get_to(golden.positions);
  json.at("vocabulary").get_to(golden.vocabulary);
  entry.at("greedy").get_to(golden.greedy);
  if (auto found = entry.find("peer_nmse"); found != entry.end())
    golden.peerNmse = found->get<f64>();
  golden.logits.resize(golden.positions.size() * golden.vocabulary);
  std::string path = std::string(goldenFolder) + "golden/" + name + ".f32";
  std::ifstream in(path, std::ios::binary);
  auto bytes = static_cast<std::streamsize>(golden.logits.size() * sizeof(f32));
  in.read(reinterpret_cast<char *>(golden.logits.data()), bytes);
  if (in.gcount() != bytes || in.peek() != std::ifstream::traits_type::eof())
    throw std::runtime_error(path + " is not a table of " +
                             std::to_string(bytes) + " bytes");
  return golden;
}

std::string tests::seededPath(const std::string &name) {
  const char *build = std::getenv("LATHE_BINARY_DIR");
  return std::string(build ? build : ".") + "/tests/seeded/" + name + ".gguf";
}

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
                    const std::string &kvDtype) {
  codegen::CompileOptions options;
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
                std::span<const i32> tokens, u32 chunk, u32 threads) {
  auto session = Session::create(
      engine, {.threads = threads, .chunk = chunk, .poisonFreed = true});
  if (!session)
    return failFrom(session);
  std::vector<f32> logits;
  auto visitor = [&](u32, std::span<const f32> row) {
    logits.insert(logits.end(), row.begin(), row.end());
  };
  if (auto done = (*session)->append(tokens, 0, visitor); !done)
    return failFrom(done);
  return logits;
}

Result<std::vector<f32>> tests::logitsInBatch(const LoadedEngine &engine,
                                              std::span<const i32> tokens,
                                              u32 threads) {
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
    u32 rows = 0, firstWatched = 0, watchedRows = 0;
    for (u32 s = 0; s < sequenceCount; ++s) {
      u32 position = sequences[s].length();
      // In turns one row (decode) and several (prefill).
      u32 count = (step + s) % 3 == 0 ? 1 : 1 + (s * 5 + step * 7) % mostRows;
      count = std::min(count, length - position);
      if (count == 0)
        continue;
      if (auto extended = sequences[s].extend(count); !extended)
        return failFrom(extended);
      if (s == watched) {
        firstWatched = rows;
        watchedRows = count;
      }
      batch.push_back(
          {&sequences[s], std::span(texts[s]).subspan(position, count)});
      rows += count;
    }
    if (auto done = (*executor)->step(batch); !done)
      return failFrom(done);
    for (u32 row = 0; row < watchedRows; ++row) {
      u32 index = firstWatched + row;
      const f32 *values = (*executor)->head({&index, 1});
      logits.insert(logits.end(), values, values + program.vocab);
    }
  }
  return logits;
}

Result<std::vector<i32>>
tests::greedyIds(const std::shared_ptr<const LoadedEngine> &engine,
                 std::span<const i32> prompt, u32 count) {
  auto session = Session::create(engine, {.threads = 1, .poisonFreed = true});
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
