// rowwise, embed and the elementary functions of every layer against the
// contract.

#include "tests/kernels/cpu/Layers.h"

#include <cmath>
#include <cstring>

using namespace lathe;
using namespace lathe::tests;

namespace {

/// x covers the functions' whole ranges with borders, zeros, infinities, NaN
/// and denormals in front.
std::vector<f32> widelySpread(RandomInputs &random, u64 count) {
  std::vector<f32> values = {
      0.0f,       -0.0f,     INFINITY, -INFINITY, NAN,   1e-42f, -1e-42f,
      -87.33654f, -87.3366f, 88.37f,   88.3701f,  88.0f, 1e30f,  -1e30f,
      0.34657f,   -0.34658f, 127.0f,   -126.5f,   1.0f,  -1.0f};
  while (values.size() < count) {
    f32 scale = std::exp2(random.uniform(-30, 7));
    values.push_back(random.uniform(-scale, scale));
  }
  values.resize(count);
  return values;
}

bool isFunction(Region region) {
  return region == Region::Exp || region == Region::Tanh ||
         region == Region::Misc || region == Region::Clamp ||
         region == Region::Gelu;
}

void checkRowwise(const Layer &layer, const RowwiseCase &test, u32 rows,
                  u32 threads) {
  std::string what = std::string(layer.name) + " " + test.name + " rows " +
                     std::to_string(rows) + " threads " +
                     std::to_string(threads);
  RandomInputs random(7);
  u64 k = u64(test.k), blocks = (k + 31) / 32;
  std::vector<f32> x = test.stageCount == 1 && isFunction(test.stages[0].region)
                           ? widelySpread(random, rows * k)
                           : random.activations(rows * k);
  std::vector<std::vector<f32>> sides;
  std::vector<std::vector<f32>> expected;
  std::vector<f32> row = x;
  for (u32 s = 0; s < test.stageCount; ++s) {
    const StageCase &stage = test.stages[s];
    for (u32 i = 0; i < stage.sideCount; ++i)
      sides.push_back(
          random.activations(stage.sides[i] == Side::Element ? rows * k : k));
    // The order of zeros: x starts with +0, -0.
    if (stage.region == Region::Clamp)
      sides.back()[0] = sides.back()[1] = 0;
    for (u32 r = 0; r < rows; ++r) {
      f32 *at = &row[r * k];
      f32 factor = stage.rms ? contract::rmsScale(at, k, stage.epsilon) : 1.0f;
      for (u64 c = 0; c < k; ++c) {
        f32 side = 0;
        if (stage.sideCount)
          side = sides.back()[stage.sides[0] == Side::Element ? r * k + c : c];
        f32 value = stage.rms ? at[c] * factor : at[c];
        at[c] = regionOf(stage.region, value, 0, &side);
      }
    }
    for (u32 i = 0; i < stage.storeCount; ++i)
      expected.push_back(row);
  }
  std::vector<const void *> operands = {x.data()};
  for (const std::vector<f32> &side : sides)
    operands.push_back(side.data());
  std::vector<Guarded<f32>> floats;
  std::vector<Guarded<ActivationBlock>> quantized;
  floats.reserve(8);
  quantized.reserve(8);
  std::vector<Store> stores;
  for (u32 s = 0; s < test.stageCount; ++s)
    for (u32 i = 0; i < test.stages[s].storeCount; ++i) {
      bool q8 = test.stages[s].stores[i] == Store::Q8;
      stores.push_back(test.stages[s].stores[i]);
      floats.emplace_back(q8 ? 0 : rows * k);
      quantized.emplace_back(q8 ? rows * blocks : 0);
      operands.push_back(q8 ? static_cast<void *>(quantized.back().data())
                            : floats.back().data());
    }
  runTeam(test.function, nullptr, operands, rows, threads);
  for (u64 i = 0; i < stores.size(); ++i) {
    if (stores[i] == Store::F32) {
      expectSame(what, expected[i].data(), floats[i].data(), rows * k);
    } else {
      std::vector<ActivationBlock> want(rows * blocks);
      for (u32 r = 0; r < rows; ++r)
        contract::quantizeRow(&expected[i][r * k], k, &want[r * blocks]);
      expectSame(what, want.data(), quantized[i].data(), rows * blocks);
    }
    EXPECT_TRUE(floats[i].guardIntact() && quantized[i].guardIntact()) << what;
  }
}

TEST(Rowwise, EqualsTheContract) {
  for (const Layer *layer : layers())
    for (const RowwiseCase &test : layer->rowwise)
      for (u32 rows : {1u, 4u, 19u})
        for (u32 threads : {1u, 3u})
          checkRowwise(*layer, test, rows, threads);
}

TEST(Rowwise, QuantizesEverySpecialBlock) {
  // The first row of "norm" with weights that make the block special.
  for (const Layer *layer : layers()) {
    const RowwiseCase &test = layer->rowwise.cases[0];
    u64 k = u64(test.k);
    std::vector<f32> x(k, 1.0f), weight(k);
    for (u64 i = 0; i < k; ++i)
      weight[i] = i / 32 == 0   ? 0x1p-101f
                  : i / 32 == 1 ? (i % 32 == 9 ? NAN : 1.0f)
                  : i / 32 == 2 ? (i % 32 == 31 ? -INFINITY : 2.0f)
                  : i / 32 == 3 ? (i % 32 == 3 ? 0x1.8p-100f : 1e-40f)
                  // Halves: rounded to even.
                  : i / 32 == 4 ? (i % 32 == 0 ? 127.0f : f32(i % 32) - 15.5f)
                                : -f32(i % 32);
    Guarded<ActivationBlock> blocks(k / 32);
    Guarded<f32> row(k);
    runTeam(test.function, nullptr,
            {x.data(), weight.data(), blocks.data(), row.data()}, 1, 1);
    std::vector<ActivationBlock> want(k / 32);
    contract::quantizeRow(row.data(), k, want.data());
    for (u64 b = 0; b < k / 32; ++b) {
      // Which NaN a block of NaN has is fixed.
      expectSame(std::string(layer->name) + " block " + std::to_string(b),
                 &want[b], &blocks[b], 1);
    }
  }
}

TEST(Embed, EqualsTheContract) {
  for (const Layer *layer : layers())
    for (const EmbedCase &test : layer->embeds) {
      RandomInputs random(11);
      PackedWeights weights =
          packedWeights(random, test.format, test.vocab, test.k, false);
      std::vector<i32> tokens = {0, 69, 15, 16, 17, 3, 3, 64, 31};
      StepArgs args = {};
      args.tokens = tokens.data();
      u64 k = u64(test.k), rows = tokens.size();
      std::vector<f32> want(rows * k);
      for (u64 r = 0; r < rows; ++r)
        contract::embedRow(test.format, weights.source.data(), k,
                           u32(tokens[r]), &want[r * k]);
      for (f32 &value : want)
        value *= 25.298221f;
      for (u32 threads : {1u, 2u, 5u}) {
        Guarded<f32> out(rows * k);
        runTeam(test.function, &args, {weights.packed.data(), out.data()},
                u32(rows), threads);
        expectSame(std::string(layer->name) + " embed " + test.name,
                   want.data(), out.data(), rows * k);
        EXPECT_TRUE(out.guardIntact());
      }
    }
}

} // namespace
