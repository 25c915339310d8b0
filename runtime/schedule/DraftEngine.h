/// \file
/// A draft model beside the engine that it drafts for.
#ifndef LATHE_RUNTIME_SCHEDULE_DRAFTENGINE_H
#define LATHE_RUNTIME_SCHEDULE_DRAFTENGINE_H

#include "runtime/device/CpuExecutor.h"
#include "runtime/device/ThreadTeam.h"
#include "runtime/schedule/LoadedEngine.h"
#include "runtime/speculate/DraftModelProposer.h"

#include <memory>
#include <string>
#include <vector>

namespace lathe::runtime {

/// Owns a draft model's executor, KV cache and proposer. One thread at a time,
/// the same as the target's.
class DraftEngine {
public:
  struct Options {
    std::vector<u32> pages; ///< Per group of groupsOf().
    u32 stepRows = 512;
    u32 sequences = 1;
    u32 mostTokens = 8;       ///< Of a draft.
    bool poisonFreed = false; ///< PagePool::Options
  };

  /// Whether `draft` can draft for `target`: checkSameVocabulary(), with a KV
  /// cache. The result is its warning.
  static Result<std::string> check(const LoadedEngine &target,
                                   const LoadedEngine &draft);

  /// The KV groups of a draft engine's cache.
  static std::vector<KvGroupInfo> groupsOf(const LoadedEngine &draft,
                                           u32 mostTokens);

  /// For an engine that check() lets pass. `team` is usually the target's and
  /// must outlive it. Errors: those of KvCache::create and CpuExecutor::create.
  static Result<std::unique_ptr<DraftEngine>>
  create(std::shared_ptr<const LoadedEngine> draft, u32 targetVocab,
         ThreadTeam &team, const Options &options);

  DraftModelProposer &proposer() { return *drafts; }

private:
  DraftEngine() = default;

  std::shared_ptr<const LoadedEngine> loaded;
  std::unique_ptr<KvCache> cache;
  std::unique_ptr<CpuExecutor> executor;
  std::unique_ptr<DraftModelProposer> drafts;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SCHEDULE_DRAFTENGINE_H
