// One matrix for the promise that bits depend on the tokens before alone: every
// weight format, KV type and ISA layer under random splits into rows, ragged
// batches, permuted and poisoned pages, forks inside pages, sequences that
// start over, drafts that are thrown away, thread counts and rounding modes of
// the caller. Logits and full KV pages are compared by memcmp with those of a
// sequence that is alone and evaluated row by row on one thread.
//
// LATHE_MATRIX_SEEDS=N runs N seeds per case instead of 2, and all KV types
// with every model instead of one in turn.

#include "runtime/device/CpuExecutor.h"
#include "tests/e2e/seeded/SeededModel.h"
#include "tests/e2e/support/Evaluate.h"
#include "tests/unit/support/TempDir.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <immintrin.h>
#include <random>

using namespace lathe;
using namespace lathe::runtime;
using namespace lathe::tests;

namespace {

/// Past two borders of attention chunks (128) and any window of the models.
constexpr u32 length = 290;
constexpr u32 laneCount = 4;
constexpr u32 mostRows = 40; ///< Of a lane in a step: more than a head takes.
constexpr u32 mostDrafts = 8;

/// A text with what is right for it.
struct Reference {
  std::vector<i32> tokens;
  std::vector<f32> logits; ///< [length][vocab]
  /// [group][page] of full pages.
  std::vector<std::vector<std::vector<u8>>> pages;
};

std::vector<u8> bytesOf(const PagePool &pool, PageId page) {
  std::vector<u8> bytes;
  for (const KvStrip &strip : pool.strips()) {
    const u8 *at = pool.at(page, strip);
    bytes.insert(bytes.end(), at, at + strip.bytes);
  }
  return bytes;
}

/// Flushes subnormal numbers in the calling thread, as a program around the
/// library may.
class FlushToZero {
public:
  explicit FlushToZero(bool isOn) : before(_mm_getcsr()) {
    if (isOn)
      _mm_setcsr(before | 0x8040);
  }
  ~FlushToZero() { _mm_setcsr(before); }

private:
  unsigned before;
};

/// An executor with its threads and its cache.
struct Machine {
  std::unique_ptr<ThreadTeam> team;
  std::unique_ptr<KvCache> cache;
  std::unique_ptr<CpuExecutor> executor;

  static Machine make(const StepProgram &program, u32 threads, u32 lanes) {
    Machine made;
    made.team = std::move(*ThreadTeam::create({.threads = threads}));
    auto pages = KvCache::pagesForSequence(program.groups, length + mostDrafts,
                                           mostRows + mostDrafts);
    for (u32 &count : pages)
      count *= lanes + 1; // One more while a lane becomes another's fork.
    made.cache = std::move(*KvCache::create(
        program.groups, {.pages = pages, .poisonFreed = true}));
    auto executor = CpuExecutor::create(
        program, {.rows = lanes * (mostRows + mostDrafts), .sequences = lanes},
        *made.team, made.cache.get());
    made.executor = std::move(*executor);
    return made;
  }
};

Reference evaluateAlone(const StepProgram &program, std::vector<i32> tokens) {
  Reference reference{std::move(tokens), {}, {}};
  Machine machine = Machine::make(program, 1, 1);
  SequenceCache sequence(*machine.cache, length);
  reference.pages.resize(program.groups.size());
  for (u32 position = 0; position < length; ++position) {
    EXPECT_TRUE(sequence.extend(1).has_value());
    BatchSequence row{&sequence,
                      std::span(reference.tokens).subspan(position, 1)};
    EXPECT_TRUE(machine.executor->step({&row, 1}).has_value());
    u32 first = 0;
    const f32 *logits = machine.executor->head({&first, 1});
    reference.logits.insert(reference.logits.end(), logits,
                            logits + program.vocab);
    for (u32 group = 0;
         (position + 1) % pageTokens == 0 && group < program.groups.size();
         ++group)
      reference.pages[group].push_back(
          bytesOf(machine.cache->pool(group),
                  sequence.pages(group)[position / pageTokens]));
  }
  return reference;
}

/// A life of several sequences from one seed.
class Life {
public:
  Life(const StepProgram &program, std::span<const Reference> texts, u64 seed)
      : program(program), texts(texts), bits(seed),
        machine(Machine::make(program, 1 + below(8), laneCount)) {
    permutePages();
    for (u32 i = 0; i < laneCount; ++i)
      lanes.push_back({SequenceCache(*machine.cache, length + mostDrafts),
                       &texts[i % texts.size()]});
  }

  void run() {
    FlushToZero mode(below(2) == 0);
    for (u32 step = 0; !testing::Test::HasFailure(); ++step) {
      if (step < 60)
        disturb();
      if (!evaluate())
        break;
    }
    for (const Lane &lane : lanes)
      comparePages(lane);
  }

private:
  struct Lane {
    SequenceCache sequence;
    const Reference *text;
    std::vector<i32> tokens = {}; ///< Of the step in progress.
    u32 start = 0, drafts = 0;
  };

  u32 below(u32 count) { return u32(bits() % count); }

  /// So that neighbours in a sequence are none in the pool.
  void permutePages() {
    for (u32 group = 0; group < program.groups.size(); ++group) {
      PagePool &pool = machine.cache->pool(group);
      std::vector<PageId> all(pool.totalPages());
      for (PageId &page : all)
        page = pool.allocate();
      std::ranges::shuffle(all, bits);
      for (PageId page : all)
        pool.release(page);
    }
  }

  /// At times a lane starts over, or becomes the fork of another of its text,
  /// cut anywhere.
  void disturb() {
    Lane &lane = lanes[below(laneCount)];
    if (below(12) == 0)
      lane.sequence.truncate(0);
    const Lane &other = lanes[below(laneCount)];
    if (below(4) != 0 || &other == &lane || other.text != lane.text)
      return;
    u32 cut = below(other.sequence.length() + 1);
    if (!other.sequence.canTruncate(cut))
      return;
    lane.sequence = other.sequence.fork();
    lane.sequence.truncate(cut);
  }

  /// One step of all lanes that are not at their end; false if all are.
  bool evaluate() {
    std::vector<BatchSequence> batch;
    std::vector<std::pair<u32, const f32 *>> wanted; // Rows, and what is right.
    u32 rows = 0;
    bool isDone = true;
    for (Lane &lane : lanes) {
      lane.start = lane.sequence.length();
      u32 left = length - lane.start;
      isDone &= left == 0;
      u32 count =
          std::min(left, below(3) == 0 ? below(mostRows + 1) : below(4));
      if (count == 0) {
        lane.tokens.clear();
        continue;
      }
      lane.drafts = below(3) == 0 ? below(mostDrafts + 1) : 0;
      auto from = lane.text->tokens.begin() + lane.start;
      lane.tokens.assign(from, from + count);
      for (u32 i = 0; i < lane.drafts; ++i)
        lane.tokens.push_back(i32(below(program.vocab)));
      EXPECT_TRUE(lane.sequence.extend(u32(lane.tokens.size())).has_value());
      u32 shown = std::min(count, below(3));
      batch.push_back({&lane.sequence, lane.tokens, shown + lane.drafts});
      for (u32 i = count - shown; i < count; ++i)
        wanted.emplace_back(rows + i, lane.text->logits.data() +
                                          u64(lane.start + i) * program.vocab);
      rows += u32(lane.tokens.size());
    }
    if (batch.empty())
      return !isDone;
    EXPECT_TRUE(machine.executor->step(batch).has_value());
    for (const auto &[row, right] : wanted) {
      const f32 *logits = machine.executor->head({&row, 1});
      EXPECT_EQ(std::memcmp(logits, right, program.vocab * sizeof(f32)), 0)
          << "row " << row << " of " << rows;
    }
    for (Lane &lane : lanes)
      if (!lane.tokens.empty())
        lane.sequence.truncate(lane.start + u32(lane.tokens.size()) -
                               lane.drafts);
    return true;
  }

  void comparePages(const Lane &lane) const {
    for (u32 group = 0; group < program.groups.size(); ++group)
      for (u32 page = 0; page < length / pageTokens; ++page) {
        PageId id = lane.sequence.pages(group)[page];
        if (id != reservedPage)
          EXPECT_EQ(bytesOf(machine.cache->pool(group), id),
                    lane.text->pages[group][page])
              << "group " << group << ", page " << page;
      }
  }

  const StepProgram &program;
  std::span<const Reference> texts;
  std::mt19937_64 bits;
  Machine machine;
  std::vector<Lane> lanes;
};

struct Case {
  std::string model, kvDtype;
};

u32 wantedSeeds() {
  const char *text = std::getenv("LATHE_MATRIX_SEEDS");
  return text ? u32(std::stoul(text)) : 0;
}

/// Every weight format with one KV type in turn, and the model with windows
/// with all of them.
std::vector<Case> allCases() {
  const std::vector<std::string> kvDtypes = {"f16", "int8", "f32", "bf16"};
  std::vector<Case> cases;
  u32 number = 0;
  for (const std::string &name : seededNames()) {
    bool isWhole = wantedSeeds() != 0 || name == "gemma3-gqa";
    if (!isWhole && !name.starts_with("format-"))
      continue;
    for (u32 i = 0; i < (isWhole ? kvDtypes.size() : 1); ++i)
      cases.push_back({name, kvDtypes[(number + i) % kvDtypes.size()]});
    ++number;
  }
  return cases;
}

class BitMatrix : public testing::TestWithParam<Case> {};

TEST_P(BitMatrix, BitsDependOnTheTokensBeforeAlone) {
  const auto &[model, kvDtype] = GetParam();
  std::vector<i32> golden = readGolden(model).tokens;
  golden.resize(length);
  // Another text that begins alike, and ends inside of a page.
  std::vector<i32> other = golden;
  std::ranges::rotate(other.begin() + 53, other.begin() + 171, other.end());
  TempDir temp;
  std::vector<std::string> isas = nativeIsas();
  // Plain loops take longest and are the same for all formats.
  if (model != "gemma3-gqa" && wantedSeeds() == 0 && isas.size() > 1)
    isas.erase(isas.begin());
  auto compiled =
      compileModel(seededPath(model), temp.path("m.lathe"), isas, kvDtype);
  ASSERT_TRUE(compiled) << compiled.error().message;
  for (const std::string &isa : isas) {
    auto loaded = loadEngine(temp.path("m.lathe"), isa);
    ASSERT_TRUE(loaded) << loaded.error().message;
    const StepProgram &program = (*loaded)->program();
    std::vector<Reference> texts = {evaluateAlone(program, golden),
                                    evaluateAlone(program, other)};
    for (u32 seed = 0; seed < std::max(2u, wantedSeeds()); ++seed) {
      SCOPED_TRACE("cpu:" + isa + ", seed " + std::to_string(seed));
      Life(program, texts, seed).run();
      ASSERT_FALSE(HasFailure());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, BitMatrix, testing::ValuesIn(allCases()),
                         [](const auto &info) {
                           std::string name =
                               info.param.model + "_" + info.param.kvDtype;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

} // namespace
