#include "tests/kernels/Bounds.h"
#include "tests/kernels/contract/Random.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace lathe;
using namespace lathe::contract;
namespace bounds = lathe::tests::bounds;

namespace {

constexpr f32 nan = std::numeric_limits<f32>::quiet_NaN();
constexpr f32 infinity = std::numeric_limits<f32>::infinity();

/// K or V of one head, the rows of positions, settable key by key.
class Cache {
public:
  Cache(const AttentionShape &shape, u64 positions)
      : type(shape.type), dim(shape.headDim), rowBytes(kvRowBytes(type, dim)),
        bytes(positions * rowBytes) {}

  void set(u64 position, const std::vector<f32> &values) {
    toCache(type, values.data(), dim, &bytes[position * rowBytes]);
  }
  void fill(u64 position, f32 value) {
    set(position, std::vector<f32>(dim, value));
  }
  f64 at(u64 position, u64 d) const {
    const u8 *row = &bytes[position * rowBytes];
    f64 scale = type == KvType::Int8 ? scaleOf(row) : 1;
    return scale * fromCache(type, row, d);
  }
  const u8 *data() const { return bytes.data(); }

private:
  KvType type;
  u64 dim, rowBytes;
  std::vector<u8> bytes;
};

struct Case {
  Case(const AttentionShape &shape, u64 positions, u64 seed)
      : shape(shape), keys(shape, positions), values(shape, positions) {
    tests::RandomInputs random(seed);
    for (u64 p = 0; p < positions; ++p) {
      keys.set(p, random.activations(shape.headDim));
      values.set(p, random.activations(shape.headDim));
    }
    query = random.activations(shape.headDim);
    for (f32 &q : query)
      q *= 0.5f;
  }
  std::vector<f32> run(u32 position) const {
    std::vector<f32> out(shape.headDim);
    attentionRow(shape, query.data(), keys.data(), values.data(), position,
                 out.data());
    return out;
  }

  AttentionShape shape;
  Cache keys, values;
  std::vector<f32> query;
};

/// Half a step of the activation block that holds value i of `values`.
f64 quantizationError(const std::vector<f32> &values, u64 i) {
  f32 largest = 0;
  for (u64 j = i / 32 * 32; j < std::min(i / 32 * 32 + 32, values.size()); ++j)
    largest = std::max(largest, std::fabs(values[j]));
  return 1.001 * largest / 254;
}

/// What int8 adds to the bound of attention, relative to the largest value:
/// queries are rounded, which moves scores by at most `scoreError`, and so are
/// the keys' weights, by half a step of the largest `weights` (of softmax) of
/// 32 keys each.
f64 int8Bound(const std::vector<f64> &weights, u32 first, f64 scoreError) {
  f64 rounded = 0;
  for (u64 i = 0; i < weights.size(); ++i) {
    u64 block = (first + i) / 32;
    f64 largest = 0;
    for (u64 j = 0; j < weights.size(); ++j)
      if ((first + j) / 32 == block)
        largest = std::max(largest, weights[j]);
    rounded += 1.01 * std::exp(2 * scoreError) * largest / 254;
  }
  return std::expm1(2 * scoreError) + rounded;
}

void expectCloseToDouble(const Case &original, u32 position) {
  Case c = original;
  u64 dim = c.shape.headDim;
  if (c.shape.type == KvType::Int8) {
    u64 run = butterfly(c.query.data(), dim);
    for (f32 &q : c.query)
      q /= f32(run);
  }
  u32 first = c.shape.window && position + 1 > c.shape.window
                  ? position + 1 - c.shape.window
                  : 0;
  std::vector<f64> scores, out(dim);
  std::vector<f64> weights;
  f64 largest = -INFINITY, magnitude = 0, valueMagnitude = 0, sum = 0;
  f64 scoreError = 0;
  for (u32 p = first; p <= position; ++p) {
    f64 s = 0, m = 0, error = 0;
    for (u64 d = 0; d < dim; ++d) {
      s += f64(c.query[d]) * c.keys.at(p, d);
      m += std::fabs(f64(c.query[d]) * c.keys.at(p, d));
      valueMagnitude = std::max(valueMagnitude, std::fabs(c.values.at(p, d)));
      error += quantizationError(c.query, d) * std::fabs(c.keys.at(p, d));
    }
    scoreError = std::max(scoreError, error);
    if (c.shape.softcap > 0)
      s = c.shape.softcap * std::tanh(s / c.shape.softcap);
    scores.push_back(s);
    largest = std::max(largest, s);
    magnitude = std::max(magnitude, m);
  }
  for (u32 p = first; p <= position; ++p) {
    f64 e = std::exp(scores[p - first] - largest);
    sum += e;
    weights.push_back(e);
    for (u64 d = 0; d < dim; ++d)
      out[d] += e * c.values.at(p, d);
  }
  u64 keys = position + 1 - first;
  f64 bound =
      valueMagnitude * bounds::attention(dim, keys, keys / c.shape.chunk + 2,
                                         magnitude, c.shape.softcap);
  if (c.shape.type == KvType::Int8) {
    for (f64 &weight : weights)
      weight /= sum;
    bound += valueMagnitude * int8Bound(weights, first, scoreError);
  }
  std::vector<f32> got = original.run(position);
  for (u64 d = 0; d < dim; ++d)
    ASSERT_LE(std::fabs(got[d] - out[d] / sum), bound)
        << "position " << position << ", d " << d;
}

TEST(Attention, IsWithinItsBoundOfDouble) {
  u64 seed = 10;
  for (KvType type : {KvType::F16, KvType::BF16, KvType::F32, KvType::Int8})
    for (u64 dim : {32u, 64u, 256u})
      for (u32 window : {0u, 1u, 100u, 512u})
        for (f32 softcap : {0.0f, 20.0f}) {
          Case c({dim, type, 128, window, softcap}, 700, seed++);
          for (u32 position : {0u, 1u, 15u, 127u, 128u, 255u, 300u, 699u})
            expectCloseToDouble(c, position);
        }
}

TEST(Attention, OneKeyGivesItsValue) {
  Case c({64, KvType::F16, 128, 0, 0}, 1, 40);
  std::vector<f32> out = c.run(0);
  for (u64 d = 0; d < 64; ++d)
    EXPECT_TRUE(sameF32(out[d], f32(c.values.at(0, d))));
}

TEST(Attention, NeverReadsWhatARowMayNotSee) {
  // Poison: later positions, and those that a window has left.
  for (f32 poison : {nan, infinity, -infinity}) {
    for (u32 window : {0u, 1u, 16u, 129u, 200u}) {
      Case c({32, KvType::F32, 128, window, 0}, 400, 41);
      for (u32 position : {0u, 100u, 127u, 128u, 255u, 256u, 399u}) {
        std::vector<f32> clean = c.run(position);
        Case dirty = c;
        for (u32 p = 0; p < 400; ++p)
          if (p > position || (window && p + window <= position)) {
            dirty.keys.fill(p, poison);
            dirty.values.fill(p, poison);
          }
        std::vector<f32> out = dirty.run(position);
        ASSERT_EQ(firstDifference(out.data(), clean.data(), 32), 32u);
        ASSERT_TRUE(std::isfinite(out[0]));
      }
    }
  }
}

TEST(Attention, WindowSeesExactlyItsLastKeys) {
  // Values tell keys apart: all keys score 0, so the result is a mean.
  AttentionShape shape{1, KvType::F32, 128, 3, 0};
  Cache keys(shape, 300), values(shape, 300);
  for (u32 p = 0; p < 300; ++p)
    values.fill(p, f32(p));
  f32 query = 1.0f;
  auto mean = [&](u32 position) {
    f32 out;
    attentionRow(shape, &query, keys.data(), values.data(), position, &out);
    return out;
  };
  EXPECT_FLOAT_EQ(mean(0), 0.0f);
  EXPECT_FLOAT_EQ(mean(1), 0.5f);
  EXPECT_FLOAT_EQ(mean(2), 1.0f);
  EXPECT_FLOAT_EQ(mean(3), 2.0f);
  EXPECT_FLOAT_EQ(mean(128), 127.0f);
  EXPECT_FLOAT_EQ(mean(129), 128.0f);
  EXPECT_FLOAT_EQ(mean(130), 129.0f);
}

TEST(Attention, SkipsChunksThatARowDoesNotSee) {
  AttentionShape shape{8, KvType::F16, 128, 100, 0};
  Case c(shape, 400, 42);
  auto chunk = [&](u32 position, u32 index) {
    return attentionChunk(shape, c.query.data(), c.keys.data(), c.values.data(),
                          position, index);
  };
  EXPECT_TRUE(chunk(226, 0)); // sees 127 ... 226
  EXPECT_FALSE(chunk(227, 0));
  EXPECT_TRUE(chunk(227, 1));
  EXPECT_FALSE(chunk(227, 2));
  // One chunk alone is the result, unscaled by any combination.
  auto only = chunk(227, 1);
  std::vector<f32> out = c.run(227);
  for (u64 d = 0; d < 8; ++d)
    EXPECT_TRUE(sameF32(out[d], only->o[d] * (1.0f / only->l)));
}

TEST(Attention, CombinesChunksFromTheLeft) {
  for (u64 seed = 100; seed < 130; ++seed) {
    Case c({16, KvType::F16, 128, 0, 0}, 512, seed);
    std::optional<AttentionPartial> parts[4];
    for (u32 i = 0; i < 4; ++i)
      parts[i] = attentionChunk(c.shape, c.query.data(), c.keys.data(),
                                c.values.data(), 511, i);
    AttentionPartial left = *parts[0];
    for (u32 i = 1; i < 4; ++i) {
      const AttentionPartial &right = *parts[i];
      f32 m = std::max(left.m, right.m);
      f32 a = contract::expf(left.m - m), b = contract::expf(right.m - m);
      left.l = std::fma(left.l, a, right.l * b);
      for (u64 d = 0; d < 16; ++d)
        left.o[d] = std::fma(left.o[d], a, right.o[d] * b);
      left.m = m;
    }
    std::vector<f32> out = c.run(511);
    for (u64 d = 0; d < 16; ++d)
      ASSERT_TRUE(sameF32(out[d], left.o[d] * (1.0f / left.l)));
  }
}

TEST(Attention, ScoresAndSumsFollowTheirOrders) {
  // d ascends: 1, then 2^24, then -2^24 leaves 0, so both keys weigh the same.
  AttentionShape shape{3, KvType::F32, 128, 0, 0};
  Cache keys(shape, 2), values(shape, 2);
  std::vector<f32> query = {1.0f, 1.0f, 1.0f};
  keys.set(0, {1.0f, 0x1p24f, -0x1p24f});
  values.set(0, {1.0f, 2.0f, 3.0f});
  values.set(1, {3.0f, 2.0f, 1.0f});
  auto part =
      attentionChunk(shape, query.data(), keys.data(), values.data(), 1, 0);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->m, 0.0f);
  EXPECT_EQ(part->l, 2.0f);
  EXPECT_EQ(part->o, (std::vector<f32>{4.0f, 4.0f, 4.0f}));

  // Key j is in lane j mod 16: 2^-24 meets 1 only when lanes 0 and 8 meet,
  // behind a second 2^-24 of lane 8, and then two of them count.
  Cache far(shape, 25);
  std::vector<f32> one = {1.0f, 0.0f, 0.0f};
  for (u32 p = 0; p < 25; ++p)
    far.set(p, {-90.0f, 0, 0});
  far.set(0, {0, 0, 0});
  f32 tiny = -16.635532f; // exp of it is 2^-24 but for its last bits
  far.set(8, {tiny, 0, 0});
  far.set(24, {tiny, 0, 0});
  Cache any(shape, 25);
  auto lanes = attentionChunk(shape, one.data(), far.data(), any.data(), 24, 0);
  EXPECT_EQ(lanes->l, 1.0f + (contract::expf(tiny) + contract::expf(tiny)));
  EXPECT_GT(lanes->l, 1.0f);
}

TEST(Attention, NanAndInfiniteScoresMakeTheRowNan) {
  for (f32 bad : {nan, infinity, -nan}) {
    Case c({16, KvType::F32, 128, 0, 0}, 300, 44);
    c.query.assign(16, 1.0f);
    c.keys.fill(140, bad);
    for (f32 value : c.run(299))
      EXPECT_TRUE(std::isnan(value));
    for (f32 value : c.run(139))
      EXPECT_TRUE(std::isfinite(value));
  }
}

TEST(Attention, AKeyOfMinusInfinityCountsNothing) {
  Case c({16, KvType::F32, 128, 0, 0}, 300, 45);
  c.query.assign(16, 1.0f);
  c.keys.fill(140, -infinity);
  for (f32 value : c.run(299))
    EXPECT_TRUE(std::isfinite(value));
}

TEST(Attention, FarKeysVanishWithoutHarm) {
  // The last chunk's key outweighs all others by more than exp can show.
  Case c({4, KvType::F32, 128, 0, 0}, 300, 46);
  c.query.assign(4, 1.0f);
  c.keys.fill(299, 1000.0f);
  std::vector<f32> out = c.run(299);
  for (u64 d = 0; d < 4; ++d)
    EXPECT_TRUE(sameF32(out[d], c.values.at(299, d)));
}

} // namespace
