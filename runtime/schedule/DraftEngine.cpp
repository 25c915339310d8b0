#include "runtime/schedule/DraftEngine.h"
#include "runtime/speculate/SameVocabulary.h"

namespace lathe::runtime {

Result<std::string> DraftEngine::check(const LoadedEngine &target,
                                       const LoadedEngine &draft) {
  const std::string &path = draft.engine().path();
  if (!draft.program().kv)
    return fail(ErrorKind::Unsupported,
                "{} has no KV cache and cannot draft; compile it with all "
                "phases",
                path);
  auto targets = target.engine().tokenizer();
  if (!targets)
    return failFrom(targets);
  auto own = draft.engine().tokenizer();
  if (!own)
    return failFrom(own);
  auto checked = checkSameVocabulary(*targets, *own);
  if (!checked)
    return failFrom(checked, path);
  return checked->empty() ? *checked : path + ": " + *checked;
}

std::vector<KvGroupInfo> DraftEngine::groupsOf(const LoadedEngine &draft,
                                               u32 mostTokens) {
  return DraftModelProposer::groupsFor(draft.program().groups, mostTokens);
}

Result<std::unique_ptr<DraftEngine>>
DraftEngine::create(std::shared_ptr<const LoadedEngine> draft, u32 targetVocab,
                    ThreadTeam &team, const Options &options) {
  std::unique_ptr<DraftEngine> self(new DraftEngine);
  auto cache = KvCache::create(
      groupsOf(*draft, options.mostTokens),
      {.pages = options.pages, .poisonFreed = options.poisonFreed});
  if (!cache)
    return failFrom(cache);
  self->cache = std::move(*cache);
  const StepProgram &program = draft->program();
  auto executor = CpuExecutor::create(
      program, {.rows = options.stepRows, .sequences = options.sequences}, team,
      self->cache.get());
  if (!executor)
    return failFrom(executor);
  self->executor = std::move(*executor);
  auto drafts = DraftModelProposer::create(*self->executor, *self->cache,
                                           {.vocab = targetVocab,
                                            .context = program.context,
                                            .mostTokens = options.mostTokens});
  if (!drafts)
    return failFrom(drafts);
  self->drafts = std::move(*drafts);
  self->loaded = std::move(draft);
  return self;
}

} // namespace lathe::runtime
