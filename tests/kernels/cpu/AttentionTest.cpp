// rope_append and attention of every layer against the contract: prefill,
// decode, ragged batches, items of any cut, windows, poisoned pages.

#include "tests/kernels/cpu/Layers.h"

#include <cmath>
#include <cstring>
#include <numeric>

using namespace lathe;
using namespace lathe::tests;

namespace {

/// Sequences that grow step by step, with a paged cache and a plain copy of
/// what the contract says is in it.
class Conversation {
public:
  Conversation(const AttentionCase &shape, u32 sequences, u64 seed)
      : shape(shape), random(seed), plain(sequences), lengths(sequences, 0),
        pages(sequences * tableStride, reservedPage),
        pool(partOffset * poolPages + 2 * partBytes() * poolPages) {
    // Every slot that no token was written to is NaN, so is page 0.
    std::memset(pool.data(), 0xff, pool.size());
    order.resize(poolPages - 1);
    std::iota(order.begin(), order.end(), 1u);
    for (u64 i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[random.below(u32(i))]);
    group.pool = pool.data();
    group.pageTableStride = tableStride;
    group.pageCount = poolPages;
    u64 d = u64(shape.headDim);
    qNorm = random.activations(d);
    kNorm = random.activations(d);
    for (i64 p = 0; p < maxContext; ++p)
      for (i64 i = 0; i < shape.ropePairs; ++i) {
        f64 angle = f64(p) * std::pow(10000.0, -f64(i) / f64(shape.ropePairs));
        table.push_back(f32(std::cos(angle)));
        table.push_back(f32(std::sin(angle)));
      }
  }

  /// Appends `counts[s]` tokens to each sequence and checks the step on
  /// `function`s of one layer. `chunksPerItem` 0: items fold; else every item
  /// has so many chunks at most, and partials. `rowsPerItem`: rows of an item.
  /// `infinite`: some values are; at most headDim rows. `owned`: every thread
  /// prepares what its own units read, and nobody waits.
  void step(const AttentionCase &kernel, const std::string &what,
            const std::vector<u32> &counts, u32 threads, u32 rowsPerItem,
            u32 chunksPerItem, bool parallel = false, bool infinite = false,
            bool owned = false) {
    u64 d = u64(shape.headDim), heads = u64(shape.heads),
        kvHeads = u64(shape.kvHeads);
    std::vector<i32> positions;
    std::vector<u32> rowSequence, starts;
    for (u32 s = 0; s < counts.size(); ++s) {
      starts.push_back(u32(positions.size()));
      for (u32 i = 0; i < counts[s]; ++i) {
        positions.push_back(i32(lengths[s] + i));
        rowSequence.push_back(s);
      }
    }
    u32 rows = u32(positions.size());
    starts.push_back(rows);
    std::vector<f32> q = random.activations(rows * heads * d);
    std::vector<f32> k = random.activations(rows * kvHeads * d);
    std::vector<f32> v = random.activations(rows * kvHeads * d);
    // Row i has an infinite value at d = i: only rows that see it may tell.
    if (infinite)
      for (u32 row = 0; row < rows; ++row)
        v[row * kvHeads * d + row] = INFINITY;
    for (u32 s = 0; s < counts.size(); ++s)
      mapPages(s, lengths[s], lengths[s] + counts[s]);

    StepArgs args = {};
    args.rows = rows;
    args.sequences = u32(counts.size());
    args.groups = &group;
    group.pages = pages.data();
    args.positions = positions.data();
    args.rowSequence = rowSequence.data();
    args.sequenceStarts = starts.data();

    Guarded<f32> qOut(rows * heads * d);
    u8 *keys = pool.data() + partOffset * poolPages;
    u8 *values = keys + partBytes() * poolPages;
    std::vector<const void *> operands = {q.data(), k.data(), v.data()};
    if (shape.ropePairs > 0)
      operands.push_back(table.data());
    if (shape.qkNorm) {
      operands.push_back(qNorm.data());
      operands.push_back(kNorm.data());
    }
    operands.insert(operands.end(), {keys, values, qOut.data()});
    if (!owned)
      runTeam(kernel.rope, &args, operands, rows, threads, parallel);

    // The contract's queries and cache.
    std::vector<f32> qWant = q;
    contract::HeadRecipe recipe;
    recipe.headDim = d;
    recipe.ropePairs = u64(shape.ropePairs);
    recipe.style = shape.ropeHalves ? contract::RopeStyle::Halves
                                    : contract::RopeStyle::Adjacent;
    recipe.epsilon = shape.epsilon;
    for (u32 row = 0; row < rows; ++row) {
      const f32 *entry =
          table.data() + u64(positions[row]) * u64(shape.ropePairs) * 2;
      recipe.norm = shape.qkNorm ? qNorm.data() : nullptr;
      recipe.scale = shape.qScale;
      for (u64 h = 0; h < heads; ++h)
        contract::prepareHead(recipe, entry, &qWant[(row * heads + h) * d]);
      recipe.norm = shape.qkNorm ? kNorm.data() : nullptr;
      recipe.scale.reset();
      Plain &copy = plain[rowSequence[row]];
      copy.keys.resize(kvHeads);
      copy.values.resize(kvHeads);
      for (u64 h = 0; h < kvHeads; ++h) {
        std::vector<f32> head(&k[(row * kvHeads + h) * d],
                              &k[(row * kvHeads + h) * d] + d);
        contract::prepareHead(recipe, entry, head.data());
        if (shape.type == KvType::Int8)
          contract::butterfly(head.data(), d);
        append(copy.keys[h], head.data());
        append(copy.values[h], &v[(row * kvHeads + h) * d]);
      }
    }
    if (!owned)
      expectSame(what + " q", qWant.data(), qOut.data(), qWant.size());
    EXPECT_TRUE(qOut.guardIntact());

    attend(kernel, what, args, qWant.data(), keys, values, threads, rowsPerItem,
           chunksPerItem, counts, parallel, infinite,
           owned ? &operands : nullptr);
    for (u32 s = 0; s < counts.size(); ++s)
      lengths[s] += counts[s];
  }

  /// Appends to every sequence until its length is `phase` modulo the chunk.
  void fill(const AttentionCase &kernel, const std::string &what, u32 phase) {
    std::vector<u32> counts;
    for (u32 length : lengths)
      counts.push_back((phase + chunk - length % chunk) % chunk);
    step(kernel, what + " filling", counts, 1, 64, 0);
  }

private:
  static constexpr u32 tableStride = 64, poolPages = 200;
  static constexpr i64 maxContext = tableStride * pageTokens;
  static constexpr u32 chunk = 128;
  /// Of the layer's K in a page.
  static constexpr u64 partOffset = 64;

  struct Plain {
    /// Per KV head the rows of all positions in the cache's dtype.
    std::vector<std::vector<u8>> keys, values;
  };

  /// Bytes of a layer's K, or V, in a page.
  u64 partBytes() const {
    return u64(shape.kvHeads) * kvTileBytes(shape.type, u64(shape.headDim));
  }

  void append(std::vector<u8> &cache, const f32 *values) {
    u64 bytes = contract::kvRowBytes(shape.type, u64(shape.headDim));
    cache.resize(cache.size() + bytes);
    contract::toCache(shape.type, values, u64(shape.headDim),
                      cache.data() + cache.size() - bytes);
  }

  /// Gives pages to positions [from, to) and takes back those that no row at
  /// `from` or later sees.
  void mapPages(u32 sequence, u32 from, u32 to) {
    u32 *entries = &pages[sequence * tableStride];
    for (u32 position = from; position < to; ++position)
      if (entries[position / pageTokens] == reservedPage)
        entries[position / pageTokens] = order[nextPage++];
    if (shape.window > 0)
      for (u32 page = 0;
           i64((page + 1) * pageTokens) <= i64(from) - shape.window + 1; ++page)
        entries[page] = reservedPage;
  }

  void attend(const AttentionCase &kernel, const std::string &what,
              StepArgs &args, const f32 *q, const u8 *keys, const u8 *values,
              u32 threads, u32 rowsPerItem, u32 chunksPerItem,
              const std::vector<u32> &counts, bool parallel, bool infinite,
              std::vector<const void *> *ropeOperands) {
    std::vector<AttentionWork> items;
    u32 counter = 0, sets = 0;
    for (u32 s = 0; s < counts.size(); ++s)
      for (u32 at = 0; at < counts[s]; at += rowsPerItem) {
        AttentionWork item = {};
        item.sequence = s;
        item.firstRow = args.sequenceStarts[s] + at;
        item.rowCount = std::min(rowsPerItem, counts[s] - at);
        i64 first = i64(lengths[s]) + at;
        i64 last = first + item.rowCount - 1;
        i64 begin = shape.window > 0
                        ? std::max<i64>(0, first - shape.window + 1) / chunk
                        : 0;
        u32 chunks = u32(last / chunk - begin + 1);
        if (chunksPerItem == 0) {
          item.firstChunk = u32(begin);
          item.chunkCount = chunks;
          item.partial = ~0u;
          items.push_back(item);
          continue;
        }
        item.siblings = (chunks + chunksPerItem - 1) / chunksPerItem;
        item.counter = counter++;
        for (u32 c = 0; c < chunks; c += chunksPerItem) {
          item.firstChunk = u32(begin) + c;
          item.chunkCount = std::min(chunksPerItem, chunks - c);
          item.partial = sets;
          sets += item.chunkCount * item.rowCount;
          items.push_back(item);
        }
      }
    u64 d = u64(shape.headDim), heads = u64(shape.heads);
    std::vector<u32> counters(u64(counter) * u64(shape.kvHeads));
    Guarded<f32> partials(sets * heads * (d + 2));
    AttentionWorkList list = {items.data(), counters.data(), u32(items.size()),
                              counter};
    args.attentionWork = &list;
    bool q8 = shape.store == Store::Q8;
    u64 width = heads * d;
    Guarded<f32> out(q8 ? 0 : args.rows * width);
    Guarded<ActivationBlock> blocks(q8 ? args.rows * width / 32 : 0);
    std::vector<const void *> operands = {
        q, keys, values, partials.data(),
        q8 ? static_cast<void *>(blocks.data()) : out.data()};
    if (!ropeOperands) {
      runTeam(kernel.attention, &args, operands, u32(items.size()), threads,
              parallel);
    } else {
      // One thread after the other: none may need what a later one prepares.
      for (u32 thread = threads; thread-- > 0;) {
        std::vector<f32> own(args.rows * width, NAN);
        ropeOperands->back() = operands[0] = own.data();
        kernel.ownedRope(&args, ropeOperands->data(), args.rows, thread,
                         threads);
        kernel.attention(&args, operands.data(), u32(items.size()), thread,
                         threads);
      }
    }

    contract::AttentionShape reference;
    reference.headDim = d;
    reference.type = shape.type;
    reference.window = u32(shape.window);
    reference.softcap = shape.softcap;
    std::vector<f32> want(args.rows * width);
    u64 perKv = heads / u64(shape.kvHeads);
    for (u32 row = 0; row < args.rows; ++row)
      for (u64 h = 0; h < heads; ++h) {
        const Plain &copy = plain[args.rowSequence[row]];
        contract::attentionRow(
            reference, q + row * width + h * d, copy.keys[h / perKv].data(),
            copy.values[h / perKv].data(), u32(args.positions[row]),
            &want[row * width + h * d]);
      }
    for (f32 value : want)
      if (!std::isfinite(value))
        ASSERT_TRUE(infinite) << what;
    if (q8) {
      std::vector<ActivationBlock> wantBlocks(args.rows * width / 32);
      for (u32 row = 0; row < args.rows; ++row)
        contract::quantizeRow(&want[row * width], width,
                              &wantBlocks[row * width / 32]);
      expectSame(what, wantBlocks.data(), blocks.data(), blocks.size());
    } else {
      expectSame(what, want.data(), out.data(), want.size());
    }
    EXPECT_TRUE(out.guardIntact() && blocks.guardIntact() &&
                partials.guardIntact())
        << what;
    for (u32 value : counters)
      EXPECT_EQ(value, 0u) << what;
  }

  const AttentionCase &shape;
  RandomInputs random;
  std::vector<Plain> plain;
  std::vector<u32> lengths;
  std::vector<u32> pages;
  std::vector<u8> pool;
  std::vector<u32> order;
  u64 nextPage = 0;
  KvGroupArgs group = {};
  std::vector<f32> table, qNorm, kNorm;
};

TEST(Attention, EqualsTheContract) {
  for (const Layer *layer : layers())
    for (const AttentionCase &test : layer->attentions) {
      std::string what = std::string(layer->name) + " " + test.name;
      Conversation talk(test, 3, 5);
      talk.step(test, what + " prefill", {5, 1, 40}, 1, 16, 0);
      talk.step(test, what + " ragged", {1, 130, 1}, 2, 16, 0);
      talk.step(test, what + " decode, partials", {1, 1, 1}, 3, 1, 1);
      talk.step(test, what + " long prefill", {300, 0, 17}, 3, 64, 0);
      talk.step(test, what + " two chunks an item", {3, 1, 0}, 2, 1, 2);
      talk.step(test, what + " rows with partials", {3, 2, 150}, 1, 4, 1);
      talk.step(test, what + " decode, folding", {1, 1, 1}, 1, 1, 0);
      talk.step(test, what + " in parallel", {1, 1, 1}, 3, 1, 1, true);
      talk.step(test, what + " owned", {1, 1, 2}, 3, 1, 0, false, false, true);
      talk.step(test, what + " owned, partials", {1, 2, 1}, 2, 1, 1, false,
                false, true);
      // Rows of one sequence on both sides of a chunk's end, in items of their
      // own.
      talk.fill(test, what, 126);
      talk.step(test, what + " owned, across chunks", {4, 4, 4}, 3, 2, 1, false,
                false, true);
      talk.step(test, what + " owned, again", {1, 3, 1}, 4, 4, 1, false, false,
                true);
      // Threads share an item's query heads.
      talk.step(test, what + " many threads", {0, 3, 0}, 16, 4, 0, true);
      talk.step(test, what + " many threads, partials", {0, 3, 0}, 64, 1, 1,
                true);
      talk.step(test, what + " many threads, owned", {0, 3, 0}, 16, 4, 0, false,
                false, true);
      talk.step(test, what + " infinite values", {0, 9, 0}, 1, 16, 0, false,
                true);
    }
}

} // namespace
