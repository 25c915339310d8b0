/// \file
/// A load of requests for measuring how an engine serves many at once.
#ifndef LATHE_TOOLS_LATHE_SERVELOAD_H
#define LATHE_TOOLS_LATHE_SERVELOAD_H

#include "runtime/schedule/ServingEngine.h"
#include "runtime/support/Result.h"
#include "tools/lathe/Terminal.h"

#include <vector>

namespace lathe::tools {

/// Requests whose lengths spread as those of chats do: log-normal, a few many
/// times as long as the middle one.
struct LoadOptions {
  u32 requests = 64;
  u32 meanPrompt = 160; ///< Tokens, without the shared ones.
  u32 meanAnswer = 200; ///< Tokens.
  u32 sharedPrompt = 0; ///< Tokens that all prompts start with.
  u32 concurrency = 16; ///< Requests in progress.
  u64 seed = 1;
};

/// One request: its prompt, and how many tokens it wants.
struct LoadRequest {
  std::vector<i32> prompt;
  u32 answer;
};

/// The requests of a load, in order; their means are those asked for, to one
/// token. `vocab` bounds the ids.
std::vector<LoadRequest> makeLoad(const LoadOptions &options, u32 vocab);

/// As a static batch gets them: groups of `size` in order, each padded to its
/// longest prompt and longest answer.
std::vector<LoadRequest> padToGroups(std::vector<LoadRequest> load, u32 size);

/// What serving a load came to. Latencies in seconds, ascending.
struct LoadOutcome {
  f64 seconds = 0;
  u64 answered = 0; ///< Tokens.
  std::vector<f64> firstTokens;
  std::vector<f64> betweenTokens;
  runtime::SchedulerStats stats; ///< Of the engine, at the end.
};

/// Sends the requests, `concurrency` in progress at any time; `inGroups`: the
/// next so many only when all of the last are done. Errors: those of
/// ServingEngine::submit(), an answer that failed; Environment if the user
/// interrupts.
runtime::Result<LoadOutcome> serveLoad(runtime::ServingEngine &engine,
                                       const std::vector<LoadRequest> &load,
                                       u32 concurrency, bool inGroups,
                                       Progress &progress);

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_SERVELOAD_H
