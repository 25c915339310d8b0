#include "tests/kernels/bench/BenchCases.h"

#include "kernels/formats/Layout.h"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <sys/mman.h>

namespace lathe::bench {

WeightMemory makeWeights(u64 size) {
  void *map = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) {
    std::perror("memory for weights");
    std::exit(1);
  }
  madvise(map, size, MADV_HUGEPAGE);
  u8 *bytes = static_cast<u8 *>(map);
  std::mt19937_64 random(1);
  for (u64 i = 0; i < size; i += 8) {
    u64 word = random() & 0x3333333333333333;
    std::memcpy(bytes + i, &word, 8);
  }
  return {bytes, size};
}

namespace {

class GemmCase : public BenchCase {
public:
  GemmCase(const GemmBench &bench, u32 rows, const WeightMemory &weights)
      : BenchCase(bench.function, rows), weights(weights.bytes),
        bytes(*kernels::packedBytes(bench.format, u64(bench.n), u64(bench.k))),
        copies(weights.size / bytes), blocks(rows * u64(bench.k) / 32),
        floats(rows * u64(bench.k), 0.5f), out(rows * u64(bench.n)) {
    for (u64 i = 0; i < blocks.size(); ++i) {
      blocks[i].d = 0.01f;
      for (int j = 0; j < 32; ++j) {
        blocks[i].q[j] = i8(j * 7 % 255 - 127);
        blocks[i].laneSum[j / 16][j % 4 / 2] += blocks[i].q[j];
      }
    }
    bool floatInput = kernels::isFloatFormat(bench.format);
    operands = {floatInput ? static_cast<void *>(floats.data()) : blocks.data(),
                weights.bytes, out.data()};
    f64 macs = f64(rows) * f64(bench.n) * f64(bench.k);
    each = floatInput ? Work{f64(bytes), 0, macs} : Work{f64(bytes), macs, 0};
  }

  void next() override {
    at = at + 1 < copies ? at + 1 : 0;
    operands[1] = weights + at * bytes;
  }

private:
  const u8 *weights;
  u64 bytes, copies, at = 0;
  std::vector<ActivationBlock> blocks;
  std::vector<f32> floats, out;
};

/// Pages 1 to `pages` of a pool, in order.
std::vector<u32> pageTable(u32 pages) {
  std::vector<u32> table(pages);
  for (u32 i = 0; i < pages; ++i)
    table[i] = i + 1;
  return table;
}

u32 pagesOf(u32 tokens) { return (tokens + pageTokens - 1) / pageTokens; }

/// `rows` rows at the end of a sequence of `depth` + rows keys, layer after
/// layer, so that at few rows K and V come from memory as in decoding.
class AttentionCase : public BenchCase {
public:
  AttentionCase(const AttentionBench &bench, u32 rows, u32 depth)
      : BenchCase(bench.function, rows),
        table(pageTable(pagesOf(depth + rows))),
        poolPart(u64(bench.kvHeads) *
                 kvTileBytes(bench.type, u64(bench.headDim)) *
                 (table.size() + 1)),
        pool(layers * poolPart, 0x2e66), positions(rows),
        q(rows * u64(bench.heads * bench.headDim), 0.1f), out(q.size() / 32) {
    u32 pages = u32(table.size());
    group = {reinterpret_cast<u8 *>(pool.data()), table.data(), pages,
             pages + 1};
    for (u32 i = 0; i < rows; ++i)
      positions[i] = i32(depth + i);
    constexpr u32 tile = 16;
    for (u32 at = 0; at < rows; at += tile) {
      u32 count = std::min(tile, rows - at);
      items.push_back(
          {0, at, count, 0, (depth + at + count + 127) / 128, ~0u, 0, 0});
    }
    list = {items.data(), nullptr, u32(items.size()), 0};
    args.groups = &group;
    args.positions = positions.data();
    args.attentionWork = &list;
    this->rows = list.count;
    operands = {q.data(), nullptr, nullptr, nullptr, out.data()};
    next();
    f64 pairs = 0;
    for (u32 i = 0; i < rows; ++i)
      pairs += depth + i + 1;
    f64 keyBytes =
        2 *
        f64(u64(bench.kvHeads) * kvTileBytes(bench.type, u64(bench.headDim))) /
        pageTokens;
    each = {f64(depth + rows) * keyBytes, 0,
            2 * pairs * f64(bench.heads * bench.headDim)};
  }

  void next() override {
    const u8 *keys = group.pool + 2 * layer * poolPart;
    operands[1] = keys;
    operands[2] = keys + poolPart;
    layer = layer + 1 < layers ? layer + 1 : 0;
  }

private:
  static constexpr u64 layers = 30;
  std::vector<u32> table;
  u64 poolPart, layer = 0;
  std::vector<u16> pool;
  std::vector<i32> positions;
  std::vector<f32> q;
  std::vector<ActivationBlock> out;
  KvGroupArgs group;
  std::vector<AttentionWork> items;
  AttentionWorkList list;
};

/// The activations and the cache stay in L2: what is measured is the work.
class RopeCase : public BenchCase {
public:
  RopeCase(const RopeBench &bench, u32 rows)
      : BenchCase(bench.function, rows), table(pageTable(pagesOf(rows))),
        sequence(rows, 0), positions(rows),
        queries(rows * u64(bench.heads * bench.headDim), 0.1f),
        out(queries.size()),
        keys(rows * u64(bench.kvHeads * bench.headDim), 0.1f),
        angles(rows * u64(bench.pairs) * 2, 0.5f) {
    u32 pages = u32(table.size());
    u64 part = u64(bench.kvHeads) *
               kvTileBytes(bench.type, u64(bench.headDim)) * (pages + 1);
    pool.resize(2 * part);
    for (u32 i = 0; i < rows; ++i)
      positions[i] = i32(i);
    group = {pool.data(), table.data(), pages, pages + 1};
    args.groups = &group;
    args.positions = positions.data();
    args.rowSequence = sequence.data();
    operands = {queries.data(), keys.data(),       keys.data(), angles.data(),
                group.pool,     group.pool + part, out.data()};
    each = {f64(8 * queries.size() + 12 * keys.size()), 0, 0};
  }

private:
  std::vector<u8> pool;
  std::vector<u32> table, sequence;
  std::vector<i32> positions;
  std::vector<f32> queries, out, keys, angles;
  KvGroupArgs group;
};

class RowwiseCase : public BenchCase {
public:
  RowwiseCase(const RowwiseBench &bench, u32 rows)
      : BenchCase(bench.function, rows), x(rows * u64(bench.k), 0.5f),
        weight(u64(bench.k), 1), out(x.size() / 32) {
    operands = {x.data(), weight.data(), out.data()};
    each = {f64(4 * x.size() + out.size() * sizeof(ActivationBlock)), 0, 0};
  }

private:
  std::vector<f32> x, weight;
  std::vector<ActivationBlock> out;
};

class EmbedCase : public BenchCase {
public:
  EmbedCase(const EmbedBench &bench, u32 rows, const WeightMemory &weights)
      : BenchCase(bench.function, rows), vocab(u32(bench.vocab)), tokens(rows),
        out(rows * u64(bench.k)) {
    args.tokens = tokens.data();
    operands = {weights.bytes, out.data()};
    u64 k = u64(bench.k);
    u64 rowBytes = *kernels::packedBytes(bench.format, 16, k) / 16;
    each = {f64(rows) * f64(rowBytes + 4 * k), 0, 0};
  }

  void next() override {
    for (i32 &token : tokens)
      token = i32(random() % vocab);
  }

private:
  std::mt19937 random{1};
  u32 vocab;
  std::vector<i32> tokens;
  std::vector<f32> out;
};

/// The bytes of the coarse head; what must be computed exactly comes on top.
class PickCase : public BenchCase {
public:
  PickCase(const PickBench &bench, const WeightMemory &weights)
      : BenchCase(bench.function, 1), x(u64(bench.k) / 32),
        errors(u64(bench.n), 1e-6f), bounds(u64(bench.n)),
        rowState(pickStateBytes) {
    u64 n = u64(bench.n), k = u64(bench.k);
    u64 headBytes = *kernels::packedBytes(kernels::Format::Q8_0, n, k);
    u64 coarseBytes = *kernels::packedBytes(kernels::Format::Q5_0, n, k);
    assert(headBytes + coarseBytes <= weights.size);
    for (ActivationBlock &block : x) {
      block = {};
      block.d = 0.01f;
      block.q[0] = 100;
      block.laneSum[0][0] = 100;
    }
    args.headRows = 1;
    args.pickArgs = &how;
    args.barrier = &barrier;
    operands = {x.data(),      weights.bytes, weights.bytes + headBytes,
                errors.data(), bounds.data(), rowState.data(),
                &picked};
    each = {f64(coarseBytes), f64(n * k), 0};
  }

private:
  std::vector<ActivationBlock> x;
  std::vector<f32> errors, bounds;
  std::vector<u8> rowState;
  PickArgs how;
  PickResult picked;
  StepBarrier barrier = {};
};

} // namespace

std::vector<NamedCase> casesOf(const BenchLayer &layer) {
  std::vector<NamedCase> cases;
  // `make` takes the memory, whether the case needs it or not.
  auto add = [&](std::string name, bool counted, auto make) {
    cases.push_back({layer.name + ("/" + name), counted, std::move(make)});
  };
  using Made = std::unique_ptr<BenchCase>;

  for (u32 i = 0; i < layer.gemmCount; ++i) {
    const GemmBench &gemm = layer.gemms[i];
    std::string name = std::string("gemm/") + gemm.name + "/" +
                       std::to_string(gemm.n) + "x" + std::to_string(gemm.k);
    for (u32 rows : {1, 2, 4, 8, 64, 512})
      add(name + "/M:" + std::to_string(rows),
          rows == 1 || rows == 8 || rows == 64,
          [&gemm, rows](const WeightMemory &weights) -> Made {
            return std::make_unique<GemmCase>(gemm, rows, weights);
          });
  }

  struct AttentionShape {
    u32 rows, depth;
    bool counted;
  };
  for (u32 i = 0; i < layer.attentionCount; ++i)
    for (auto [rows, depth, counted] : {AttentionShape{1, 128, false},
                                        {1, 512, true},
                                        {1, 4096, false},
                                        {64, 0, true},
                                        {512, 0, false},
                                        {512, 3584, false}})
      add("attention" + std::string(layer.attentions[i].name) + "/rows:" +
              std::to_string(rows) + "/depth:" + std::to_string(depth),
          counted,
          [&bench = layer.attentions[i], rows,
           depth](const WeightMemory &) -> Made {
            return std::make_unique<AttentionCase>(bench, rows, depth);
          });

  auto addRows = [&](const std::string &skeleton, auto make) {
    for (u32 rows : {1, 64})
      add(skeleton + "/rows:" + std::to_string(rows), true,
          [make, rows](const WeightMemory &weights) -> Made {
            return make(rows, weights);
          });
  };
  for (u32 i = 0; i < layer.ropeCount; ++i)
    addRows("rope_append" + std::string(layer.ropes[i].name),
            [&bench = layer.ropes[i]](u32 rows, const WeightMemory &) {
              return std::make_unique<RopeCase>(bench, rows);
            });
  addRows("rowwise", [&layer](u32 rows, const WeightMemory &) {
    return std::make_unique<RowwiseCase>(layer.rowwise, rows);
  });
  addRows("embed", [&layer](u32 rows, const WeightMemory &weights) {
    return std::make_unique<EmbedCase>(layer.embed, rows, weights);
  });
  add("pick", true, [&layer](const WeightMemory &weights) -> Made {
    return std::make_unique<PickCase>(layer.pick, weights);
  });
  return cases;
}

} // namespace lathe::bench
