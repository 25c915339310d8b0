// What each model's engine consists of: launches, skeletons, formats and
// barriers, against a committed table, so that no slower path slips in unseen;
// that the program is what runs; and that a step neither allocates nor locks
// nor calls the system.
//
// A wanted change: run
//   LATHE_UPDATE_STRUCTURE=1 ctest --test-dir build -R '^structure$'
// with LATHE_MODELS set to the folder of the real models, and read the diff of
// structure.txt. In it, "|" is a barrier of every step and "/" one of steps of
// many rows alone; "*" marks launches for wanted rows.
#include "runtime/schedule/TracedSteps.h"
#include "tests/e2e/seeded/SeededModel.h"
#include "tests/e2e/structure/Describe.h"
#include "tests/e2e/structure/StepGuard.h"
#include "tests/e2e/support/Evaluate.h"
#include "tests/unit/support/TempDir.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>

using namespace lathe;
using namespace lathe::tests;
using runtime::LoadedEngine;
using runtime::StepTrace;
using runtime::TracedSteps;

namespace {

constexpr const char *tablePath = "tests/e2e/structure/structure.txt";

/// Sections of the table by name; a section starts with "[name]".
std::map<std::string, std::string> readTable() {
  std::map<std::string, std::string> table;
  std::ifstream in(tablePath);
  std::string name;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("[") && line.ends_with("]"))
      name = line.substr(1, line.size() - 2);
    else if (!line.empty() && !name.empty())
      table[name] += line + "\n";
  }
  return table;
}

void updateTable(const std::string &name, const std::string &text) {
  auto table = readTable();
  table[name] = text;
  std::ofstream out(tablePath);
  out << "Made and checked by StructureTest.cpp, which says how and what it "
         "means.\n";
  for (const auto &[section, lines] : table)
    out << "\n[" << section << "]\n" << lines;
}

std::string pathOf(const std::string &name) {
  const std::map<std::string, std::string> real = {
      {"smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"},
      {"gemma3", "gemma-3-270m-Q4_K_M.gguf"}};
  auto found = real.find(name);
  if (found == real.end())
    return seededPath(name);
  const char *folder = std::getenv("LATHE_MODELS");
  return folder ? std::string(folder) + "/" + found->second : "";
}

std::vector<std::string> modelNames() {
  std::vector<std::string> names = seededNames();
  names.insert(names.begin(), {"smollm2", "gemma3"});
  return names;
}

/// Weights are stored in groups of 16 rows: a model with others is padded, and
/// does not get the kernels that work on whole groups.
bool hasWholeGroups(const std::string &name) {
  return name != "llama-odd-sizes";
}

/// Barriers of a layer in a step of few rows: before q, k and v, attention, its
/// output, gate and up, down. Gemma's post-norm at the end of a layer also
/// starts the next; its first layer waits for the embedding besides.
u32 mostBarriers(const std::string &name) {
  return name.starts_with("gemma3") ? 6 : 5;
}

/// Every launch was run by every thread, in the program's order.
void expectComplete(const std::vector<u64> &stamps, u32 threads) {
  ASSERT_FALSE(stamps.empty());
  for (u32 thread = 0; thread < threads; ++thread) {
    u64 last = 0;
    for (size_t at = thread; at * 2 < stamps.size(); at += threads)
      for (u64 stamp : {stamps[at * 2], stamps[at * 2 + 1]}) {
        ASSERT_LT(0u, stamp) << "launch " << at / threads;
        ASSERT_LE(last, stamp) << "launch " << at / threads;
        last = stamp;
      }
  }
}

void expectTable(const std::string &name, const LoadedEngine &engine) {
  std::string text = describe(engine);
  if (std::getenv("LATHE_UPDATE_STRUCTURE"))
    updateTable(name, text);
  EXPECT_EQ(text, readTable()[name]);
  EXPECT_LE(mostBarriersPerLayer(engine), mostBarriers(name));
  f64 stored = f64(weightBytesPerToken(engine)),
      source = f64(sourceBytesPerToken(pathOf(name)));
  if (hasWholeGroups(name)) {
    EXPECT_LE(stored, 1.02 * source);
    EXPECT_EQ(text.find("contract"), std::string::npos) << "a slow skeleton";
  }
  EXPECT_GE(stored, source) << "a tensor is not read";
}

/// Steps run the program with its barriers and nothing else.
void expectProgram(const std::shared_ptr<const LoadedEngine> &engine) {
  constexpr u32 threads = 2;
  for (u32 rows : {1u, maxReplicatedRows + 1}) {
    SCOPED_TRACE(testing::Message() << rows << " rows");
    auto steps = TracedSteps::create(
        engine, {.depth = 20, .rows = rows, .threads = threads});
    ASSERT_TRUE(steps.has_value()) << steps.error().message;
    ASSERT_TRUE((*steps)->prepare().has_value());
    StepTrace trace = (*steps)->newTrace();
    u32 before = (*steps)->barriers();
    ASSERT_TRUE((*steps)->run(trace).has_value());
    // The head has one row in any case.
    u32 expected = barriersOf(*engine, "body", rows <= maxReplicatedRows).all +
                   barriersOf(*engine, "head", true).all;
    EXPECT_EQ((*steps)->barriers() - before, expected);
    expectComplete(trace.body, threads);
    expectComplete(trace.head, threads);
  }
}

/// Steps neither allocate nor lock nor call the system.
void expectQuiet(const std::shared_ptr<const LoadedEngine> &engine) {
  std::vector<std::unique_ptr<TracedSteps>> all;
  std::vector<StepTrace> traces;
  auto run = [&] {
    bool succeeded = true;
    for (size_t i = 0; i < all.size(); ++i)
      succeeded &= all[i]->run(traces[i]).has_value();
    return succeeded;
  };
  auto prepare = [&] {
    for (u32 rows : {1u, maxReplicatedRows + 1}) {
      auto steps = TracedSteps::create(
          engine, {.sequences = 2, .depth = 300, .rows = rows, .threads = 2});
      if (!steps || !(*steps)->prepare())
        return false;
      traces.push_back((*steps)->newTrace());
      all.push_back(std::move(*steps));
    }
    return run(); // What is done once is done.
  };
  GuardResult result = runGuarded(prepare, [&] { return run() && run(); });
  EXPECT_TRUE(result.finished) << result.failure;
  EXPECT_EQ(result.failure, "");
  EXPECT_EQ(result.allocations, 0);
  EXPECT_EQ(result.locks, 0);
  if (!countsAllocations())
    std::cout << "NOT TESTED: allocations and locks, under a sanitizer\n";
}

class StructureTest : public testing::TestWithParam<std::string> {};

TEST_P(StructureTest, IsAsCommitted) {
  const std::string &name = GetParam();
  if (!std::filesystem::exists(pathOf(name)))
    GTEST_SKIP() << "SKIPPED, NOT TESTED: no " << name
                 << "; set LATHE_MODELS to the real models' folder";
  TempDir temp;
  std::string path = temp.path("x.lathe"), isa = nativeIsas().back();
  auto compiled = compileModel(pathOf(name), path, std::span(&isa, 1), "f16",
                               hasWholeGroups(name));
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message;
  auto engine = loadEngine(path, "");
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  // All kernels of a target are compiled for its ISA layer.
  EXPECT_EQ((*engine)->targetName(), "cpu:" + isa);
  expectTable(name, **engine);
  expectProgram(*engine);
  expectQuiet(*engine);
}

INSTANTIATE_TEST_SUITE_P(All, StructureTest, testing::ValuesIn(modelNames()),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

} // namespace
