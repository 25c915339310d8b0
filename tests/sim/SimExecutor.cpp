#include "tests/sim/SimExecutor.h"

#include "runtime/sample/Pick.h"

#include <fmt/format.h>

using namespace lathe;
using namespace lathe::runtime;
using namespace lathe::tests;

/// SplitMix64's mixing (Steele, Lea, Flood, 2014).
static u64 mix(u64 x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

u64 tests::nextState(u64 before, i32 token) {
  return mix(before ^ mix(u64(token) + 1));
}

void tests::logitsOf(u64 state, std::vector<f32> &logits, u32 vocab) {
  logits.resize(vocab);
  for (u32 i = 0; i < vocab; ++i)
    logits[i] = f32(mix(state + i) >> 40) * 0x1p-22f;
}

SimExecutor::SimExecutor(const Capacities &capacities, u32 vocab,
                         KvCache &cache, bool picks)
    : limits(capacities), words(vocab), cache(&cache), picks(picks) {}

void SimExecutor::complain(const std::string &what) {
  if (wrong.empty())
    wrong = what;
}

u64 *SimExecutor::stateAt(const SequenceCache &sequence, u32 group,
                          u32 position) {
  PageId page = sequence.pages(group)[position / pageTokens];
  PagePool &pool = cache->pool(group);
  if (page == reservedPage || pool.references(page) == 0) {
    complain(
        fmt::format("position {} has no page in group {}", position, group));
    return nullptr;
  }
  u8 *at = pool.at(page, pool.strips().front());
  return reinterpret_cast<u64 *>(at) + position % pageTokens;
}

Result<void> SimExecutor::step(std::span<const BatchSequence> batch) {
  states.clear();
  wanted.clear();
  if (std::exchange(fails, false))
    return fail(ErrorKind::Internal, "the simulation wants this step to fail");
  if (batch.size() > limits.sequences)
    complain(fmt::format("{} sequences in a step", batch.size()));
  for (const BatchSequence &part : batch) {
    u32 first = part.cache->length() - u32(part.tokens.size());
    if (part.tokens.empty())
      complain("a sequence without rows");
    for (u32 i = 0; i < part.tokens.size(); ++i) {
      u32 position = first + i;
      u64 before = 0;
      for (u32 group = 0; group < cache->groups().size(); ++group) {
        u32 window = cache->groups()[group].window;
        // All that the row sees, in each group, must be its sequence's.
        u32 seen = window == 0 || position < window ? 0 : position - window + 1;
        for (u32 other = seen; other < position; other += pageTokens)
          stateAt(*part.cache, group, other);
        if (position == 0 || window == 1)
          continue;
        u64 *own = stateAt(*part.cache, group, position - 1);
        u64 value = own ? *own : 0;
        if (before != 0 && value != before)
          complain(fmt::format("groups differ at position {}", position - 1));
        before = value;
      }
      u64 state = nextState(before, part.tokens[i]);
      for (u32 group = 0; group < cache->groups().size(); ++group) {
        u64 *to = stateAt(*part.cache, group, position);
        PageId page = part.cache->pages(group)[position / pageTokens];
        if (cache->pool(group).references(page) != 1)
          complain(
              fmt::format("position {} is written to a shared page", position));
        if (to)
          *to = state;
      }
      states.push_back(state);
      wanted.push_back(part.tokens.size() - i <= part.wanted);
    }
  }
  if (states.size() > limits.rows)
    complain(fmt::format("{} rows in a step", states.size()));
  return {};
}

const f32 *SimExecutor::head(std::span<const u32> rows) {
  if (rows.empty() || rows.size() > maxHeadRows)
    complain(fmt::format("{} rows for the head", rows.size()));
  logits.clear();
  for (u32 index : rows) {
    if (index >= states.size() || !wanted[index]) {
      complain(fmt::format("row {} is not wanted", index));
      return nullptr;
    }
    logitsOf(states[index], row, words);
    logits.insert(logits.end(), row.begin(), row.end());
  }
  return logits.data();
}

std::span<const PickResult> SimExecutor::pick(std::span<const u32> rows,
                                              std::span<const PickArgs> args) {
  const f32 *all = head(rows);
  picked.clear();
  PickScratch scratch;
  for (u32 i = 0; i < rows.size(); ++i) {
    // Now and then the definition has to do it.
    auto result =
        pickFromLogits({all + u64(i) * words, words}, args[i], scratch);
    bool leaves = !result || states[rows[i]] % 7 == 0;
    picked.push_back(leaves ? PickResult{.token = -1, .logit = 0} : *result);
  }
  return picked;
}
