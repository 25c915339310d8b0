// The gemm of every layer against the contract, bit for bit, for every format,
// row count, tile and split over threads.

#include "tests/kernels/cpu/Layers.h"

#include <cstring>

using namespace lathe;
using namespace lathe::tests;

namespace {

/// Everything a gemm case reads, and what it must write.
struct GemmFixture {
  static constexpr u32 maxRows = 147;

  const GemmCase &test;
  /// For the layers that multiply bf16.
  bool brainDots;
  std::vector<f32> x;
  std::vector<ActivationBlock> blocks;
  std::vector<PackedWeights> weights;
  std::vector<std::vector<f32>> sides;
  /// Per segment [maxRows][n].
  std::vector<std::vector<f32>> expected;
  std::vector<std::vector<ActivationBlock>> expectedBlocks;

  GemmFixture(const GemmCase &test, bool brainDots)
      : test(test), brainDots(brainDots) {
    RandomInputs random(42);
    x = random.activations(u64(maxRows * test.k));
    u64 perRow = u64(test.k / 32);
    if (test.input == Store::Q8) {
      // A row of zeros and one that is not finite.
      std::fill_n(x.begin() + 2 * test.k, test.k, 0.0f);
      x[u64(5 * test.k + 7)] = INFINITY;
      blocks.resize(maxRows * perRow);
      for (u32 row = 0; row < maxRows; ++row)
        contract::quantizeRow(&x[u64(row * test.k)], u64(test.k),
                              &blocks[row * perRow]);
    }
    for (u32 s = 0; s < test.segmentCount; ++s)
      addSegment(random, test.segments[s]);
  }

  f32 accumulator(const SegmentCase &segment, const PackedWeights &weight,
                  u32 row, i64 weightRow) const {
    const u8 *at =
        weight.source.data() +
        u64(weightRow) * contract::weightRowBytes(segment.format, u64(test.k));
    if (test.input == Store::Q8)
      return contract::gemmRow(segment.format, at, u64(test.k),
                               &blocks[row * u64(test.k / 32)]);
    const f32 *inputs = &x[u64(row * test.k)];
    if (brainDots && segment.format == Format::BF16)
      return contract::brainRow(at, u64(test.k), inputs);
    return contract::gemmRow(segment.format, at, u64(test.k), inputs);
  }

  void addSegment(RandomInputs &random, const SegmentCase &segment) {
    i64 n = segment.n;
    weights.push_back(
        packedWeights(random, segment.format, n, test.k, segment.paired));
    u64 firstSide = sides.size();
    for (u32 i = 0; i < segment.sideCount; ++i)
      sides.push_back(random.activations(
          segment.sides[i] == Side::Element  ? u64(maxRows * n)
          : segment.sides[i] == Side::Column ? u64(n)
                                             : maxRows));
    std::vector<f32> values(u64(maxRows * n));
    std::vector<ActivationBlock> stored;
    u64 unitBlocks = u64(n + 31) / 32;
    if (segment.store == Store::Q8)
      stored.resize(maxRows * unitBlocks);
    for (u32 row = 0; row < maxRows; ++row) {
      for (i64 c = 0; c < n; ++c) {
        f32 at[3] = {};
        for (u32 i = 0; i < segment.sideCount; ++i) {
          const std::vector<f32> &side = sides[firstSide + i];
          at[i] = segment.sides[i] == Side::Element  ? side[u64(row * n + c)]
                  : segment.sides[i] == Side::Column ? side[u64(c)]
                                                     : side[row];
        }
        f32 first = accumulator(segment, weights.back(), row, c);
        f32 second = segment.paired
                         ? accumulator(segment, weights.back(), row, n + c)
                         : 0;
        values[u64(row * n + c)] = regionOf(segment.region, first, second, at);
      }
      if (segment.store == Store::Q8)
        contract::quantizeRow(&values[u64(row * n)], u64(n),
                              &stored[row * unitBlocks]);
    }
    expected.push_back(std::move(values));
    expectedBlocks.push_back(std::move(stored));
  }

  void check(const GemmCase &kernel, const std::string &what, u32 firstRow,
             u32 rows, u32 threads, bool parallel) const {
    std::vector<const void *> operands;
    if (test.input == Store::Q8)
      operands.push_back(blocks.data() + firstRow * u64(test.k / 32));
    else
      operands.push_back(x.data() + firstRow * test.k);
    for (const PackedWeights &weight : weights)
      operands.push_back(weight.packed.data());
    u64 side = 0;
    for (u32 s = 0; s < test.segmentCount; ++s)
      for (u32 i = 0; i < test.segments[s].sideCount; ++i, ++side) {
        Side kind = test.segments[s].sides[i];
        u64 skip = kind == Side::Element ? firstRow * u64(test.segments[s].n)
                   : kind == Side::Row   ? firstRow
                                         : 0;
        operands.push_back(sides[side].data() + skip);
      }
    std::vector<Guarded<f32>> floats;
    std::vector<Guarded<ActivationBlock>> quantized;
    floats.reserve(3);
    quantized.reserve(3);
    for (u32 s = 0; s < test.segmentCount; ++s) {
      u64 n = u64(test.segments[s].n);
      bool q8 = test.segments[s].store == Store::Q8;
      floats.emplace_back(q8 ? 0 : rows * n);
      quantized.emplace_back(q8 ? rows * ((n + 31) / 32) : 0);
      operands.push_back(q8 ? static_cast<void *>(quantized[s].data())
                            : floats[s].data());
    }
    runTeam(kernel.function, nullptr, operands, rows, threads, parallel);
    for (u32 s = 0; s < test.segmentCount; ++s) {
      u64 n = u64(test.segments[s].n);
      std::string where = what + " segment " + std::to_string(s) + " rows " +
                          std::to_string(firstRow) + "+" +
                          std::to_string(rows) + " threads " +
                          std::to_string(threads);
      if (test.segments[s].store == Store::F32)
        expectSame(where, expected[s].data() + firstRow * n, floats[s].data(),
                   floats[s].size());
      else
        expectSame(where, expectedBlocks[s].data() + firstRow * ((n + 31) / 32),
                   quantized[s].data(), quantized[s].size());
      EXPECT_TRUE(floats[s].guardIntact() && quantized[s].guardIntact())
          << where;
    }
  }
};

class GemmEveryFormat : public testing::TestWithParam<u32> {};

TEST_P(GemmEveryFormat, EqualsTheContract) {
  const GemmCase &test = layers()[0]->gemms.cases[GetParam()];
  const GemmFixture plain(test, false), brain(test, true);
  for (const Layer *layer : layers()) {
    const GemmFixture &fixture = layer->brainDots ? brain : plain;
    const GemmCase &kernel = layer->gemms.cases[GetParam()];
    std::string what = std::string(layer->name) + " " + test.name;
    // Rows 2 and 5 are special. Every tile, alone and beside others; 147 rows
    // need more than one panel.
    for (u32 rows : {1u, 2u, 3u, 4u, 5u, 8u, 15u, GemmFixture::maxRows})
      fixture.check(kernel, what, 0, rows, 1, false);
    // The same rows elsewhere in the batch.
    fixture.check(kernel, what, 1, 1, 1, false);
    fixture.check(kernel, what, 5, 1, 1, false);
    fixture.check(kernel, what, 3, 6, 1, false);
    for (u32 threads : {2u, 3u, 4u, 7u, 40u})
      for (u32 rows : {1u, 9u})
        fixture.check(kernel, what, 0, rows, threads, false);
    fixture.check(kernel, what, 0, 12, 3, true);
    if (HasFailure())
      return;
  }
}

INSTANTIATE_TEST_SUITE_P(Table, GemmEveryFormat,
                         testing::Range(0u, layers()[0]->gemms.count),
                         [](const testing::TestParamInfo<u32> &info) {
                           return std::string(
                               layers()[0]->gemms.cases[info.param].name);
                         });

} // namespace
