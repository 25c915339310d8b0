/// \file
/// A model without weights whose code is plain C++: a stand-in for an engine
/// where the runtime itself is tested.
///
/// It keeps each token's id in its KV page. The hidden state of a row is a hash
/// of all tokens that the row sees, read back through the page tables, so a
/// wrong page, position or window changes it; logits are a hash of the hidden
/// state and the token id.
#ifndef LATHE_TESTS_UNIT_DEVICE_FAKEPROGRAM_H
#define LATHE_TESTS_UNIT_DEVICE_FAKEPROGRAM_H

#include "runtime/device/StepProgram.h"

#include <atomic>
#include <gtest/gtest.h>
#include <span>

namespace lathe::tests {

inline constexpr u32 fakeVocab = 97;
inline constexpr u32 fakeHidden = 2;
/// Token t's id lies at byte fakeOffset + 4 * (t % 16) of its page.
inline constexpr u64 fakeOffset = 64;
inline constexpr u64 fakePageBytes = 128;

inline u32 mixHash(u32 hash, u32 value) {
  hash = (hash ^ (value + 1)) * 0x9e3779b1u;
  return hash ^ hash >> 15;
}

/// Hash of the tokens that the last of `tokens` sees within `window` (0: all).
inline u32 hashVisible(std::span<const i32> tokens, u32 window) {
  size_t first = window && tokens.size() > window ? tokens.size() - window : 0;
  u32 hash = 1;
  for (i32 token : tokens.subspan(first))
    hash = mixHash(hash, u32(token));
  return hash;
}

/// Hidden states hold 24 bits, exact in f32.
inline f32 hashToHidden(u32 hash) { return f32(hash >> 8); }

/// What the model answers after `tokens`: the hidden state of the last one.
inline std::vector<f32> fakeState(std::span<const i32> tokens,
                                  std::span<const u32> windows) {
  std::vector<f32> state(fakeHidden, 0);
  for (size_t group = 0; group < windows.size(); ++group)
    state[group] = hashToHidden(hashVisible(tokens, windows[group]));
  return state;
}

inline f32 fakeLogit(const f32 *state, u32 token) {
  u32 hash = mixHash(mixHash(u32(state[0]), u32(state[1])), token);
  return f32(hash >> 8) * 0x1p-22f; // [0, 4)
}

/// Windows of the groups of the programs made by fakeProgram(); the model reads
/// them as an engine's code would have them compiled in.
inline std::vector<u32> fakeWindows;
inline std::atomic<u32> fakeBodyCalls{0};

/// Whether some range of the step's wanted rows has the row.
inline bool isWantedRow(const StepArgs *args, u32 row) {
  for (u32 i = 0; i < args->wantedRangeCount; ++i)
    if (row >= args->wantedRows[i].begin &&
        row - args->wantedRows[i].begin < args->wantedRows[i].count)
      return true;
  return false;
}

inline void fakeBody(const StepArgs *args, u32 thread, u32 threads) {
  ++fakeBodyCalls;
  EXPECT_EQ(args->version, stepAbiVersion);
  EXPECT_EQ(args->sizeBytes, sizeof(StepArgs));
  if (args->trace)
    args->trace[thread * 2] = args->trace[thread * 2 + 1] = args->rows;
  if (thread != 0)
    return;
  for (u32 row = 0; row < args->rows; ++row) {
    u32 sequence = args->rowSequence[row];
    EXPECT_LE(args->sequenceStarts[sequence], row);
    EXPECT_LT(row, args->sequenceStarts[sequence + 1]);
    // Its KV is written all the same.
    f32 nowhere[fakeHidden];
    f32 *state =
        isWantedRow(args, row) ? args->hidden + row * fakeHidden : nowhere;
    for (u32 i = 0; i < fakeHidden; ++i)
      state[i] = 0;
    u32 position = u32(args->positions[row]);
    if (args->groupCount == 0) { // the whole sequence is in the step
      for (u32 i = 0; i < fakeWindows.size(); ++i)
        state[i] = hashToHidden(
            hashVisible({args->tokens, u64(row) + 1}, fakeWindows[i]));
      continue;
    }
    for (u32 group = 0; group < args->groupCount; ++group) {
      const KvGroupArgs &kv = args->groups[group];
      auto slot = [&](u32 p) {
        u32 page = kv.pages[sequence * kv.pageTableStride + p / pageTokens];
        EXPECT_NE(page, reservedPage) << "position " << p << " of row " << row;
        return reinterpret_cast<i32 *>(kv.pool + page * fakePageBytes +
                                       fakeOffset) +
               p % pageTokens;
      };
      *slot(position) = args->tokens[row];
      u32 window = fakeWindows[group], hash = 1;
      for (u32 p = window && position >= window ? position - window + 1 : 0;
           p <= position; ++p)
        hash = mixHash(hash, u32(*slot(p)));
      state[group] = hashToHidden(hash);
    }
  }
}

inline void fakeHead(const StepArgs *args, u32 thread, u32 threads) {
  for (u32 i = thread; i < args->headRows * fakeVocab; i += threads)
    args->logits[i] =
        fakeLogit(args->headInput + i / fakeVocab * fakeHidden, i % fakeVocab);
}

/// A program of this model with one KV group per window, or none (`kv` false).
inline runtime::StepProgram fakeProgram(std::vector<u32> windows, u32 context,
                                        bool kv = true) {
  fakeWindows = windows;
  runtime::StepProgram program;
  program.vocab = fakeVocab;
  program.hidden = fakeHidden;
  program.context = context;
  program.kv = kv;
  if (kv)
    for (u32 window : windows)
      program.groups.push_back(
          {.window = window, .pageBytes = fakePageBytes, .kvHeads = 1});
  program.slots = {{.rows = 12, .sequences = 4, .constant = 1},
                   {.partials = 16, .threads = 100}};
  program.attentionChunk = 32;
  program.attentionRowTile = 4;
  program.body = fakeBody;
  program.head = fakeHead;
  return program;
}

} // namespace lathe::tests

#endif // LATHE_TESTS_UNIT_DEVICE_FAKEPROGRAM_H
