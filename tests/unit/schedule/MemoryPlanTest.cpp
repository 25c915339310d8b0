#include "runtime/schedule/MemoryPlan.h"
#include "runtime/device/CpuExecutor.h"
#include "tests/unit/device/FakeProgram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

using namespace lathe;
using namespace lathe::runtime;
using namespace lathe::tests;
using testing::HasSubstr;
using testing::Not;

namespace {

constexpr u32 threads = 2;

/// A limit of weights, buffers and KV.
MemoryLimit limitOf(u64 bytes) {
  MemoryLimit limit;
  limit.budget = {bytes, "--memory"};
  limit.countsWeights = true;
  limit.option = "--memory";
  return limit;
}

Result<MemoryPlan> settle(const StepProgram &program, MemoryWishes wishes,
                          u64 bytes) {
  MemoryLimit limit = limitOf(bytes);
  return MemoryPlan::settle(program, threads, wishes, {&limit, 1});
}

/// What one sequence of `context` needs in all, added up anew.
u64 needsOfOne(StepProgram program, const MemoryWishes &wishes, u32 context) {
  program.context = context;
  u32 rows = u32(std::min<u64>(std::max(wishes.stepRows, wishes.requests),
                               u64(context) * wishes.requests));
  auto pages = KvCache::pagesForSequence(program.groups, context, rows);
  return wishes.weightBytes + KvCache::bytesFor(program.groups, pages) +
         CpuExecutor::arenaBytes(
             program, {.rows = rows, .sequences = wishes.requests}, threads);
}

/// Grows one sequence to the context in steps of all rows.
void expectOneFits(const MemoryPlan &plan) {
  std::vector<KvGroupInfo> groups = plan.groups;
  for (KvGroupInfo &group : groups)
    group.pageBytes = 64;
  auto cache = KvCache::create(groups, {.pages = plan.pages}).value();
  SequenceCache sequence(*cache, plan.context);
  while (sequence.length() < plan.context) {
    u32 rows = std::min(plan.stepRows, plan.context - sequence.length());
    ASSERT_TRUE(sequence.extend(rows).has_value())
        << sequence.length() << " of " << plan.context;
  }
}

TEST(MemoryPlan, RandomProgramsStayWithinTheirMemory) {
  std::mt19937 random(7);
  auto upTo = [&](u64 most) { return 1 + random() % most; };
  u32 settled = 0, refused = 0, lowered = 0, shared = 0;
  for (int round = 0; round < 3000; ++round) {
    StepProgram program = fakeProgram({}, u32(upTo(1 << upTo(17))));
    for (u32 group = 0, count = u32(upTo(3)); group < count; ++group)
      program.groups.push_back({.window = random() % 2 ? u32(upTo(2000)) : 0,
                                .pageBytes = upTo(1 << upTo(16)),
                                .kvHeads = u32(upTo(4))});
    for (SlotSize &slot : program.slots)
      slot = {.rows = upTo(1000), .sequences = upTo(50), .constant = upTo(999)};
    MemoryWishes wishes;
    wishes.context = random() % 3 ? 0 : u32(upTo(program.context));
    wishes.requests = u32(upTo(1 << upTo(6)));
    wishes.stepRows = u32(upTo(600));
    wishes.weightBytes = random() % 2 ? upTo(10000000) : 0;
    u32 wanted = wishes.context ? wishes.context : program.context;
    u64 needed = needsOfOne(program, wishes, wanted);
    u64 bytes = random() % 2 ? upTo(needed) : needed + upTo(needed * 8);
    SCOPED_TRACE(round);
    auto plan = settle(program, wishes, bytes);
    u32 least = wishes.context
                    ? wishes.context
                    : std::min(program.context, MemoryPlan::leastContext);
    if (!plan) {
      ++refused;
      ASSERT_EQ(plan.error().kind, ErrorKind::Exhausted);
      ASSERT_GT(needsOfOne(program, wishes, least), bytes);
      continue;
    }
    ++settled;
    lowered += plan->context < wanted;
    ASSERT_EQ(plan->context < wanted, !plan->notice.empty());
    ASSERT_GE(plan->context, least);
    ASSERT_LE(plan->totalBytes(), bytes);
    ASSERT_EQ(plan->kvBytes, KvCache::bytesFor(program.groups, plan->pages));
    program.context = plan->context;
    ASSERT_EQ(plan->arenaBytes,
              CpuExecutor::arenaBytes(
                  program,
                  {.rows = plan->stepRows, .sequences = plan->requests},
                  threads));
    ASSERT_GE(plan->requestsOf(plan->context), 1u);
    expectOneFits(*plan);

    // Nothing is left that would hold more of what was wished.
    auto one = KvCache::pagesForSequence(program.groups, plan->context,
                                         plan->stepRows);
    bool all = true;
    u64 onePageEach = 0;
    for (size_t group = 0; group < one.size(); ++group) {
      ASSERT_LE(plan->pages[group], u64(one[group]) * wishes.requests);
      all = all && plan->pages[group] == u64(one[group]) * wishes.requests;
      onePageEach += program.groups[group].pageBytes;
    }
    shared += !all;
    if (!all)
      ASSERT_LT(bytes - plan->totalBytes(), onePageEach);
    ASSERT_EQ(bytes - plan->totalBytes(), plan->kvAvailable - plan->kvBytes);
  }
  for (u32 count : {settled, refused, lowered, shared})
    EXPECT_GT(count, 100u);
}

TEST(MemoryPlan, WindowsHavePagesForShortRequests) {
  StepProgram program = fakeProgram({1024, 0}, 131072);
  MemoryWishes wishes{.requests = 16};
  program.groups[0].pageBytes = 5000;
  program.groups[1].pageBytes = 1000;
  auto plan = settle(program, wishes, 16'000'000).value();
  EXPECT_EQ(plan.context, 131072u);
  EXPECT_EQ(plan.requestsOf(131072), 1u);
  EXPECT_GE(plan.pages[0], 16u * 512 / pageTokens);
  EXPECT_EQ(plan.requestsOf(512), 16u);
  EXPECT_EQ(plan.kvTokens(), u64(plan.pages[1]) * pageTokens);
  // Much memory: in proportion, as many as were wished and no more.
  plan = settle(program, wishes, u64(1) << 40).value();
  EXPECT_EQ(plan.requestsOf(131072), 16u);
  EXPECT_EQ(plan.pages[1], 16u * 131072 / pageTokens);
  EXPECT_LT(plan.pages[0], 16u * 131072 / pageTokens);
}

TEST(MemoryPlan, CountsRequestsByPages) {
  StepProgram program = fakeProgram({0}, 4096);
  program.groups[0].pageBytes = 1000;
  program.slots.clear();
  auto plan = settle(program, {.requests = 3}, 100'000'000).value();
  EXPECT_EQ(plan.pages, std::vector<u32>{3 * 256});
  EXPECT_EQ(plan.kvTokens(), 3u * 4096);
  EXPECT_EQ(plan.requestsOf(4096), 3u);
  EXPECT_EQ(plan.requestsOf(4095), 3u);
  EXPECT_EQ(plan.requestsOf(2048), 6u);
  EXPECT_EQ(plan.requestsOf(1), 3u * 256);
  u64 pages = (100'000'000 - plan.arenaBytes) / 1000 - 1;
  EXPECT_EQ(plan.requestsAvailable(4096), pages / 256);
  EXPECT_EQ(plan.requestsAvailable(17), pages / 2);
}

// B50: both numbers and the option to change.
TEST(MemoryPlan, TooLittleMemoryIsSaid) {
  StepProgram program = fakeProgram({0}, 1 << 20);
  program.groups[0].pageBytes = 1 << 20;
  auto message = [&](MemoryWishes wishes, u64 bytes) {
    auto plan = settle(program, wishes, bytes);
    EXPECT_FALSE(plan.has_value());
    EXPECT_EQ(plan.error().kind, ErrorKind::Exhausted);
    return plan ? "" : plan.error().message;
  };
  std::string text = message({}, 10'000'000);
  EXPECT_THAT(text, HasSubstr("a context of 256 tokens (weights, KV cache and "
                              "buffers) needs 17.0 MiB ("));
  EXPECT_THAT(text, HasSubstr("only 9.5 MiB (10000000 bytes, --memory) are "
                              "available; lower --context or raise --memory"));
  EXPECT_THAT(message({.context = 5000}, 100'000'000),
              HasSubstr("a context of 5000 tokens"));
  text = message({.weightBytes = 20'000'000}, 10'000'000);
  EXPECT_THAT(text, HasSubstr("available; raise --memory"));
  program.slots = {{.rows = 1 << 20}};
  text = message({.stepRows = 256}, 100'000'000);
  EXPECT_THAT(text, HasSubstr("lower --chunk or raise --memory"));
  text = message({.requests = 300, .stepRows = 256}, 100'000'000);
  EXPECT_THAT(text, HasSubstr("lower --requests or raise --memory"));
}

TEST(MemoryPlan, ContextIsLoweredWithANotice) {
  StepProgram program = fakeProgram({0}, 1 << 20);
  auto plan = settle(program, {}, 1'000'000).value();
  EXPECT_LT(plan.context, 1u << 20);
  EXPECT_EQ(plan.context % 256, 0u);
  EXPECT_THAT(plan.notice,
              HasSubstr(fmt::format("context lowered from 1048576 to {} tokens",
                                    plan.context)));
  EXPECT_THAT(plan.notice, HasSubstr("--context sets it"));
  // One more step would not have fitted.
  EXPECT_FALSE(settle(program, {.context = plan.context + 256}, 1'000'000));
}

TEST(MemoryPlan, WishesOutOfRangeAreErrors) {
  StepProgram program = fakeProgram({0}, 256);
  auto kindOf = [&](MemoryWishes wishes) {
    auto plan = settle(program, wishes, u64(1) << 40);
    return plan ? ErrorKind::Internal : plan.error().kind;
  };
  EXPECT_EQ(kindOf({.context = 257}), ErrorKind::InvalidInput);
  EXPECT_EQ(kindOf({.requests = 0}), ErrorKind::InvalidInput);
  EXPECT_EQ(kindOf({.requests = MemoryPlan::mostRequests + 1}),
            ErrorKind::InvalidInput);
  EXPECT_EQ(kindOf({.stepRows = 0}), ErrorKind::InvalidInput);
}

TEST(MemoryPlan, AStepHasARowForEachRequest) {
  auto rowsOf = [](MemoryWishes wishes) {
    return settle(fakeProgram({0}, 256), wishes, 1 << 30).value().stepRows;
  };
  EXPECT_EQ(rowsOf({.requests = 300, .stepRows = 200}), 300u);
  EXPECT_EQ(rowsOf({.requests = 2, .stepRows = 200}), 200u);
  EXPECT_EQ(rowsOf({.context = 5, .requests = 2, .stepRows = 200}), 10u);
}

TEST(MemoryPlan, WithoutACacheAStepIsOneSequence) {
  auto plan =
      settle(fakeProgram({0}, 300, false), {.requests = 4}, 1 << 30).value();
  EXPECT_EQ(plan.requests, 1u);
  EXPECT_EQ(plan.stepRows, 300u);
  EXPECT_EQ(plan.kvBytes, 0u);
  EXPECT_EQ(plan.requestsOf(300), 1u);
}

TEST(MemoryPlan, HereWeightsStayInMemoryIfTheyCan) {
  StepProgram program = fakeProgram({0}, 4096);
  MemoryWishes wishes{.requests = 4, .weightBytes = 1000};
  auto plan = MemoryPlan::settleHere(program, threads, wishes, 0).value();
  EXPECT_EQ(plan.requestsOf(4096), 4u);
  EXPECT_EQ(plan.notice, "");
  // As a session does: the system drops pages of files.
  wishes.weightBytes = u64(1) << 60;
  plan = MemoryPlan::settleHere(program, threads, wishes, 0).value();
  EXPECT_EQ(plan.requests, 1u);
  EXPECT_EQ(plan.requestsOf(4096), 1u);
  EXPECT_THAT(plan.notice, HasSubstr("read from the disk again"));
  // A limit that is asked for counts them.
  auto refused = MemoryPlan::settleHere(program, threads, wishes, u64(1) << 59);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("--memory"));
}

TEST(MemoryPlan, HereMoreThanThereIsIsRefused) {
  StepProgram program = fakeProgram({0}, 4096);
  program.groups[0].pageBytes = u64(1) << 40;
  for (u64 asked : {u64(0), u64(1) << 61}) {
    auto plan = MemoryPlan::settleHere(program, threads, {}, asked);
    ASSERT_FALSE(plan.has_value());
    EXPECT_EQ(plan.error().kind, ErrorKind::Exhausted);
    EXPECT_THAT(plan.error().message, HasSubstr("lower --context"));
    EXPECT_THAT(plan.error().message, Not(HasSubstr("--memory")));
  }
}

} // namespace
