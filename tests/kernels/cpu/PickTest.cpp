// The pick of every layer against its definition, pickFromLogits() of the
// head's logits, and its bounds against the logits themselves.

#include "runtime/sample/Pick.h"
#include "kernels/formats/Coarse.h"
#include "kernels/formats/Layout.h"
#include "tests/kernels/cpu/Layers.h"

#include <algorithm>
#include <cstring>

using namespace lathe;
using namespace lathe::tests;
using runtime::pickFromLogits;

namespace {

/// A head and rows of hidden states.
struct PickFixture {
  u64 n, k;
  std::vector<u8> source;
  std::vector<f32> x;
  u32 rows;

  std::vector<u8> head, coarse;
  std::vector<f32> errors;
  std::vector<ActivationBlock> blocks;
  std::vector<f32> logits;

  PickFixture(const PickCase &test, u32 rows)
      : n(u64(test.n)), k(u64(test.k)), rows(rows) {
    RandomInputs random(7 + n);
    source = random.weights(Format::Q8_0, n, k);
    x = random.activations(rows * k);
    finish();
  }

  u64 rowBytes() const { return k / 32 * 34; }
  /// Block `block` of weight row `row`.
  u8 *block(u64 row, u64 block) {
    return &source[row * rowBytes() + block * 34];
  }
  void setScale(u64 row, u64 at, u16 half) {
    std::memcpy(block(row, at), &half, sizeof half);
  }
  void copyRow(u64 from, u64 to) {
    std::copy_n(block(from, 0), rowBytes(), block(to, 0));
  }

  /// After changes to source or x.
  void finish() {
    head.resize(*kernels::packedBytes(Format::Q8_0, n, k));
    kernels::packRows(Format::Q8_0, source.data(), n, k, head.data());
    std::vector<u8> rounded(n * k / 32 * 22);
    errors.resize(n);
    for (u64 row = 0; row < n; ++row) {
      kernels::coarsenRow(block(row, 0), k, &rounded[row * k / 32 * 22]);
      errors[row] = kernels::coarseError(block(row, 0), k);
    }
    coarse.resize(*kernels::packedBytes(Format::Q5_0, n, k));
    kernels::packRows(Format::Q5_0, rounded.data(), n, k, coarse.data());
    blocks.resize(rows * k / 32);
    for (u64 row = 0; row < rows; ++row)
      contract::quantizeRow(&x[row * k], k, &blocks[row * k / 32]);
    logits.resize(rows * n);
    for (u64 row = 0; row < rows; ++row)
      for (u64 i = 0; i < n; ++i)
        logits[row * n + i] = contract::gemmRow(Format::Q8_0, block(i, 0), k,
                                                &blocks[row * k / 32]);
  }

  /// Picks for `count` rows from `first` on, all by `args` but for the
  /// position. The rows that were left to the definition.
  u32 check(const Layer &layer, u32 index, const PickArgs &args, u32 first,
            u32 count, u32 threads) const {
    StepBarrier state = {};
    std::vector<PickArgs> perRow(count, args);
    for (u32 i = 0; i < count; ++i)
      perRow[i].position += i;
    StepArgs step = {};
    step.barrier = &state;
    step.pickArgs = perRow.data();
    Guarded<f32> bounds(count * n);
    Guarded<u8> states(count * pickStateBytes);
    Guarded<PickResult> picked(count);
    runTeam(layer.picks.cases[index].function, &step,
            {&blocks[first * k / 32], head.data(), coarse.data(), errors.data(),
             bounds.data(), states.data(), picked.data()},
            count, threads, true);
    EXPECT_TRUE(bounds.guardIntact() && states.guardIntact() &&
                picked.guardIntact());
    u32 open = 0;
    runtime::PickScratch scratch;
    for (u32 i = 0; i < count; ++i) {
      std::span<const f32> row(&logits[(first + i) * n], n);
      auto want = pickFromLogits(row, perRow[i], scratch);
      if (picked[i].token < 0) {
        ++open;
        continue;
      }
      std::string where = std::string(layer.name) + " n " + std::to_string(n) +
                          " k " + std::to_string(k) + " row " +
                          std::to_string(first + i) + " threads " +
                          std::to_string(threads);
      EXPECT_TRUE(want) << where;
      if (!want)
        continue;
      EXPECT_EQ(picked[i].token, want->token) << where;
      EXPECT_EQ(std::memcmp(&picked[i].logit, &want->logit, sizeof(f32)), 0)
          << where << ": " << picked[i].logit << ", not " << want->logit;
      bool plain = args.editCount == 0 && !args.allowed;
      for (u64 token = 0; plain && token < n; ++token)
        if (!(bounds[i * n + token] >= row[token])) {
          ADD_FAILURE() << where << ": token " << token << " has the bound "
                        << bounds[i * n + token] << ", but the logit "
                        << row[token];
          break;
        }
    }
    return open;
  }
};

/// Every kind of request.
struct Request {
  const char *name;
  PickArgs args;
};

std::vector<Request> requests(u64 n, const std::vector<PickEdit> &edits,
                              const std::vector<u32> &allowed) {
  PickArgs drawn = {.temperature = 0.8f, .position = 5, .seed = 99};
  PickArgs hot = drawn;
  hot.temperature = 30;
  PickArgs top = drawn;
  top.topK = 40;
  PickArgs topHot = hot;
  topHot.topK = 3;
  PickArgs least = hot;
  least.minP = 0.2f;
  PickArgs both = hot;
  both.topK = 100;
  both.minP = 0.05f;
  std::vector<Request> list = {
      {"greedy", {}},        {"drawn", drawn}, {"hot", hot},  {"top-k", top},
      {"hot top-k", topHot}, {"min-p", least}, {"both", both}};
  for (u64 i = list.size(); i-- > 0;) {
    Request edited = list[i];
    edited.args.edits = edits.data();
    edited.args.editCount = edits.size();
    list.push_back(edited);
    edited.args.allowed = allowed.data();
    list.push_back(edited);
  }
  (void)n;
  return list;
}

class Picks : public testing::TestWithParam<u32> {};

TEST_P(Picks, EqualTheDefinition) {
  const PickCase &test = layers()[0]->picks.cases[GetParam()];
  PickFixture fixture(test, 32);
  RandomInputs random(3);
  std::vector<PickEdit> edits;
  for (u32 token = random.below(4); token < fixture.n;
       token += 1 + random.below(60))
    edits.push_back({i32(token), random.uniform(-5, 5),
                     random.below(2) ? 1.0f : random.uniform(0.5f, 2)});
  // Some whole groups are forbidden.
  std::vector<u32> allowed((fixture.n + 31) / 32);
  for (u32 &word : allowed)
    word =
        random.below(3) == 0 ? 0 : random.below(1u << 31) << random.below(20);
  allowed[0] |= 2;
  u32 open = 0;
  for (const Layer *layer : layers())
    for (const Request &request : requests(fixture.n, edits, allowed)) {
      SCOPED_TRACE(request.name);
      open += fixture.check(*layer, GetParam(), request.args, 0, 32, 2);
      for (u32 threads : {1u, 3u})
        open += fixture.check(*layer, GetParam(), request.args, threads, 3,
                              threads);
      if (HasFailure())
        return;
    }
  EXPECT_EQ(open, 0u);
}

INSTANTIATE_TEST_SUITE_P(Table, Picks,
                         testing::Range(0u, layers()[0]->picks.count));

constexpr u32 wide = 2; // n = 1000, k = 96

TEST(Pick, TakesTheLowestIdOfEqualLogits) {
  const PickCase &test = layers()[0]->picks.cases[wide];
  PickFixture some(test, 4);
  for (u64 row = 0; row < some.n; row += 3)
    some.copyRow(500, row);
  some.finish();
  PickFixture all(test, 4);
  for (u64 row = 0; row < all.n; ++row)
    all.copyRow(500, row);
  all.finish();
  PickFixture zeros(test, 4);
  std::fill(zeros.x.begin(), zeros.x.end(), 0.0f);
  zeros.finish();
  for (const Layer *layer : layers())
    for (const PickFixture *fixture : {&some, &all, &zeros})
      for (const Request &request : requests(0, {}, {}))
        if (!request.args.allowed) {
          SCOPED_TRACE(request.name);
          EXPECT_EQ(fixture->check(*layer, wide, request.args, 0, 4, 3), 0u);
        }
}

TEST(Pick, HoldsWhereTheBoundIsNearlyReached) {
  // Activations of one size; every weight is off by 3, up or down as its
  // activation is, or the other way.
  const PickCase &test = layers()[0]->picks.cases[wide];
  PickFixture fixture(test, 2);
  RandomInputs random(1);
  for (u64 i = 0; i < fixture.k; ++i) {
    f32 value = random.below(2) ? 1.0f : -1.0f;
    for (u64 row = 0; row < 2; ++row)
      fixture.x[row * fixture.k + i] = value;
    for (u64 row = 0; row < fixture.n; ++row) {
      bool isUp = (value > 0) == (row % 3 == 0);
      i32 code = 8 * (i32(random.below(30)) - 15) + (isUp ? 3 : -3);
      fixture.block(row, i / 32)[2 + i % 32] = u8(code);
      fixture.setScale(row, i / 32, 0x1c00);
    }
  }
  fixture.finish();
  for (const Layer *layer : layers())
    EXPECT_EQ(fixture.check(*layer, wide, {}, 0, 2, 2), 0u);
}

TEST(Pick, HoldsAtTheEndsOfTheRanges) {
  const PickCase &test = layers()[0]->picks.cases[wide];
  for (f32 size : {0x1p-100f, 1e-20f, 1.0f, 1e20f})
    for (u16 scale : {0x0001, 0x03ff, 0x6fff, 0xefff, 0x7bff}) {
      PickFixture fixture(test, 2);
      for (u64 row = 0; row < fixture.n; ++row)
        for (u64 block = 0; block < fixture.k / 32; ++block)
          if ((row + block) % 3 != 0)
            fixture.setScale(row, block, scale);
      for (f32 &value : fixture.x)
        value *= size;
      fixture.finish();
      // Eight times the largest scale is none.
      u32 open = scale == 0x7bff ? 2 : 0;
      for (const Layer *layer : layers())
        for (f32 temperature : {0.0f, 1.0f})
          EXPECT_EQ(fixture.check(*layer, wide, {.temperature = temperature}, 0,
                                  2, 2),
                    open)
              << size << " " << scale;
    }
}

TEST(Pick, LeavesToTheDefinitionWhatItCannotTell) {
  const PickCase &test = layers()[0]->picks.cases[wide];
  PickFixture nan(test, 2), infinite(test, 2), activations(test, 2),
      good(test, 2);
  nan.setScale(999, 2, 0x7e00);
  infinite.setScale(3, 0, 0xfc00);
  activations.x[7] = INFINITY;
  activations.x[activations.k] = NAN;
  nan.finish();
  infinite.finish();
  activations.finish();
  std::vector<u32> none(32);
  PickEdit flipped = {3, 0, -1}, unknown = {3, NAN, 1}, over = {3, INFINITY, 1};
  std::vector<PickEdit> unordered = {{5, 0, 1}, {4, 0, 1}};
  for (const Layer *layer : layers()) {
    for (const PickFixture *fixture : {&nan, &infinite, &activations})
      for (f32 temperature : {0.0f, 1.0f})
        EXPECT_EQ(
            fixture->check(*layer, wide, {.temperature = temperature}, 0, 2, 2),
            2u);
    EXPECT_EQ(good.check(*layer, wide, {.topK = maxPickTopK + 1}, 0, 2, 2), 2u);
    EXPECT_EQ(good.check(*layer, wide, {.allowed = none.data()}, 0, 2, 2), 2u);
    for (const PickEdit *edit : {&flipped, &unknown, &over})
      EXPECT_EQ(
          good.check(*layer, wide, {.edits = edit, .editCount = 1}, 0, 2, 2),
          2u);
    EXPECT_EQ(good.check(*layer, wide,
                         {.edits = unordered.data(), .editCount = 2}, 0, 2, 2),
              2u);
  }
}

} // namespace
